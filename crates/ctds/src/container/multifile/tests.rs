//! Tests of MultiFiles: made byte by byte, as casacore writes them, damaged, and changed at random.

use ctds_hdf5_testing::proptest::collection::vec;
use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::sample::{Index, select};
use ctds_hdf5_testing::proptest::strategy::ValueTree;
use ctds_hdf5_testing::proptest::test_runner::TestRunner;
use ctds_hdf5_testing::{mutations, property};

use super::*;
use crate::container::{ContainerMut, Memory};
use crate::error::ErrorKind;
use crate::io::{MemoryFile, WriteAt, read_all};

/// Sample of formats/table.md 5.9: blocks of 512 bytes, file `top` of 100 bytes, `SUB` of 1024.
fn sample() -> Vec<u8> {
    let hex = "00000000000000000000000000000000000000000000000100000002\
               0000000000000000000000de00000000000002000000000000000004\
               0000000000000000bebebebe0000004a000000094d756c746946696c65\
               000000020000003500000005426c6f636b0000000100000002\
               00000003746f70000000000000006400\
               00000003535542000000000000040000\
               00000000000000010000000000000001\
               00000000000000020000000000000002ffffffffffffffff\
               00000000000000000000000000000000\
               000000000000000000000000000000000000000000000000";
    let mut bytes = crate::hex::parse(hex).unwrap();
    assert_eq!(bytes.len(), 0xde);
    bytes.resize(512, 0xaa);
    bytes.extend((0..100).map(|i| i as u8));
    bytes.resize(1024, 0xbb);
    bytes.extend((0..1024).map(|i| (i % 249) as u8));
    bytes
}

fn in_memory(bytes: Vec<u8>) -> Memory {
    Memory::new([("table.mf", bytes)])
}

fn open(bytes: Vec<u8>) -> Result<MultiFile> {
    MultiFile::open(&in_memory(bytes), "table.mf")
}

pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) fn contents(inside: &Memory) -> Result<Files> {
    let container = MultiFile::open(inside, "table.mf")?;
    let names = container.names()?.into_iter().chain(container.nested()?);
    names.map(|name| Ok((name.clone(), read_all(container.open(&name)?.as_ref())?))).collect()
}

#[test]
fn sample_of_the_format() {
    let bytes = sample();
    assert!(recognise(&bytes[..HEAD_BYTES as usize]) && !recognise(&bytes[..80]) && !recognise(b""));
    let container = open(bytes.clone()).unwrap();
    assert_eq!(container.names().unwrap(), ["SUB", "top"]);
    assert_eq!(read_all(container.open("top").unwrap().as_ref()).unwrap(), bytes[512..612]);
    assert_eq!(read_all(container.open("SUB").unwrap().as_ref()).unwrap(), bytes[1024..]);
    let mut part = [0; 100];
    container.open("SUB").unwrap().read_at(480, &mut part).unwrap();
    assert_eq!(part, bytes[1024 + 480..][..100]);
    assert!(container.open("SUB").unwrap().read_at(1000, &mut part).is_err());
    assert_eq!(container.open("other").unwrap_err().kind(), ErrorKind::NotFound);
    let info = container.describe();
    assert_eq!((info.version, info.block_bytes, info.blocks, info.free_blocks), (Some(2), Some(512), Some(4), Some(0)));
    assert_eq!(container.layout("SUB").unwrap().block_numbers.first(), Some(&(2..4)));
}

#[test]
fn writes_the_sample_of_the_format() {
    let file = Arc::new(MemoryFile::default());
    let container = MultiFileMut::create(file.clone(), 512, false).unwrap();
    let bytes = sample();
    container.create("top").unwrap().write_at(0, &bytes[512..612]).unwrap();
    container.create("SUB").unwrap().write_at(0, &bytes[1024..]).unwrap();
    container.commit().unwrap();
    let mut expected = bytes;
    expected[0xde..512].fill(0);
    expected[612..1024].fill(0);
    assert_eq!(file.bytes(), expected);
    // nothing changed, nothing is written
    container.commit().unwrap();
    assert_eq!(file.bytes(), expected);
}

/// Five blocks, and `_hdrext`: a removed file, and `a`, which ends in byte 0 of its last block.
fn version_1(block_bytes: u64, blocks_of_a: &[u64], free: &[u64]) -> (Vec<u8>, Vec<u8>) {
    let mut e = crate::aipsio::Encoder::new(crate::io::ByteOrder::Big);
    let put_blocks = |e: &mut crate::aipsio::Encoder, blocks: &[u64]| {
        e.start("Block", 1);
        e.u32(blocks.len() as u32);
        blocks.iter().for_each(|&block| e.u64(block));
        e.end();
    };
    e.u64(0);
    e.u64(block_bytes);
    e.u64(7);
    e.root("MultiFile", 1);
    e.u64(5);
    e.start("Block", 1);
    e.u32(2);
    for (name, blocks, len) in [("a", blocks_of_a, (blocks_of_a.len() as u64 - 1) * block_bytes + 1), ("", &[], 0)] {
        e.string(name);
        put_blocks(&mut e, blocks);
        e.u64(len);
    }
    e.end();
    put_blocks(&mut e, free);
    e.end();
    let mut bytes = e.into_bytes();
    let len = bytes.len() as u64;
    bytes[..8].copy_from_slice(&len.to_be_bytes());
    let extension = bytes.split_off(bytes.len().min(block_bytes as usize));
    bytes.resize(5 * block_bytes as usize, 0x55);
    (bytes, extension)
}

#[test]
fn damaged_headers_of_version_1_are_errors() {
    for (blocks, free, words) in [
        (&[3, 5][..], &[4, 2][..], "blocks of a file: block 5, but there are blocks 1 to 4"),
        (&[3, 0], &[4, 2], "blocks of a file: block 0, but there are blocks 1 to 4"),
        (&[3, 1 << 60], &[4, 2], "blocks of a file: block 1152921504606846976, but there are blocks 1 to 4"),
        (&[3, u64::MAX], &[4, 2], "block 18446744073709551615, but there are"),
        (&[3, 1], &[9], "free blocks: block 9, but there are blocks 1 to 4"),
        (&[3, 3], &[4, 2], "block 3 at byte 768: belongs to \"a\" and to \"a\""),
        (&[3, 1], &[4, 3], "block 3 at byte 768: belongs to \"a\" and to \"free blocks\""),
        (&[1, 2, 1, 2, 1, 2], &[], "blocks of a file: more than 5 blocks"),
    ] {
        let (bytes, extension) = version_1(256, blocks, free);
        assert!(extension.is_empty());
        let message = open(bytes).unwrap_err().to_string();
        assert!(message.starts_with("table.mf: ") && message.contains(words), "{words}: {message}");
        assert!(message.contains("at byte"), "{message}");
    }
}

#[test]
fn version_1_is_read_and_becomes_version_2() {
    for block_bytes in [128, 256] {
        let (mut bytes, extension) = version_1(block_bytes, &[3, 1], &[4, 2]);
        assert_eq!(extension.is_empty(), block_bytes == 256);
        bytes[3 * block_bytes as usize..][..block_bytes as usize].fill(1);
        bytes[block_bytes as usize] = 2;
        let inside = Memory::new([("table.mf", bytes.clone()), ("table.mf_hdrext", extension.clone())]);

        let mut expected = vec![1; block_bytes as usize];
        expected.push(2);
        let mut expected = Files::from([("a".to_owned(), expected)]);
        assert_eq!(contents(&inside).unwrap(), expected);
        let info = MultiFile::open(&inside, "table.mf").unwrap().describe();
        assert_eq!((info.version, info.changes, info.free_blocks), (Some(1), Some(7), Some(2)));

        let changed = MultiFileMut::edit(&inside, "table.mf").unwrap();
        changed.create("b").unwrap().write_at(3, b"bcd").unwrap();
        assert_eq!(contents(&inside).unwrap(), expected, "before the commit nothing changes");
        changed.commit().unwrap();
        expected.insert("b".to_owned(), b"\0\0\0bcd".to_vec());
        assert_eq!(contents(&inside).unwrap(), expected);
        let read = MultiFile::open(&inside, "table.mf").unwrap();
        let info = read.describe();
        // the last block, which stays free, is cut off if the header does not continue after it
        let expected_blocks = if block_bytes == 128 { (Some(6), Some(1)) } else { (Some(4), Some(0)) };
        assert_eq!((info.version, info.changes), (Some(2), Some(8)));
        assert_eq!((info.blocks, info.free_blocks), expected_blocks);
        // the lowest free block goes first
        assert_eq!(read.layout("b").unwrap().block_numbers.first(), Some(&(2..3)));

        if block_bytes == 128 {
            let lost = MultiFile::open(&Memory::new([("table.mf", bytes.clone())]), "table.mf").unwrap_err();
            assert_eq!(lost.kind(), ErrorKind::Format, "{lost}");
            assert!(lost.to_string().contains("table.mf_hdrext"), "{lost}");
            let cut = Memory::new([("table.mf", bytes.clone()), ("table.mf_hdrext", extension[1..].to_vec())]);
            let message = MultiFile::open(&cut, "table.mf").unwrap_err().to_string();
            assert!(
                message.contains("rest of the header") && message.contains("bytes of the header expected"),
                "{message}"
            );
            assert!(open(bytes).unwrap_err().to_string().contains("rest of the header"));
        }
    }
}

#[test]
fn headers_continue_in_alternating_sets() {
    let inside = Memory::new([]);
    let file = ContainerMut::create(&inside, "table.mf").unwrap();
    let container = MultiFileMut::create(file, 128, true).unwrap();
    let mut chains = Vec::new();
    for round in 0..4 {
        container.create(&format!("file {round}")).unwrap().write_at(0, &[round; 300]).unwrap();
        container.commit().unwrap();
        let header = &MultiFile::open(&inside, "table.mf").unwrap().opened.header.clone();
        chains.push((header.current, header.continuation.clone()));
        assert_eq!(contents(&inside).unwrap().len(), usize::from(round) + 1);
    }
    assert_eq!(chains.iter().map(|(current, _)| *current).collect::<Vec<_>>(), [1, 0, 1, 0]);
    // sets keep their blocks
    assert!(chains[3].1[0].starts_with(&chains[1].1[0]) && chains[3].1[1].starts_with(&chains[1].1[1]));
}

#[test]
fn nested_containers() {
    let inside = Memory::new([]);
    let file = ContainerMut::create(&inside, "table.mf").unwrap();
    let container = MultiFileMut::create(file, 256, true).unwrap();
    container.create("plain").unwrap().write_at(0, &[1; 400]).unwrap();
    let nested = container.create_nested("SUB").unwrap();
    assert_eq!(container.create_nested("SUB").unwrap_err().kind(), ErrorKind::Exists);
    nested.create("inner").unwrap().write_at(0, &[2; 700]).unwrap();
    let innermost = nested.create_nested("SUBSUB").unwrap();
    innermost.create("x").unwrap().write_at(0, &[3; 70]).unwrap();
    innermost.commit().unwrap();
    nested.commit().unwrap();
    assert_eq!((container.names().unwrap(), container.nested().unwrap()), (vec!["plain".into()], vec!["SUB".into()]));
    container.commit().unwrap();

    let read = MultiFile::open(&inside, "table.mf").unwrap();
    assert_eq!((read.names().unwrap(), read.nested().unwrap()), (vec!["plain".into()], vec!["SUB".into()]));
    let sub = read.enter("SUB").unwrap();
    assert_eq!(sub.names().unwrap(), ["inner"]);
    assert_eq!(sub.describe().checksum, None);
    assert_eq!(read_all(sub.open("inner").unwrap().as_ref()).unwrap(), [2; 700]);
    let x = sub.enter("SUBSUB").unwrap().open("x").unwrap();
    assert_eq!(read_all(x.as_ref()).unwrap(), [3; 70]);

    // a nested one that is damaged is a file, for nothing marks it, and entering it says why
    container.edit("SUB").unwrap().write_at(48, &[0; 8]).unwrap();
    container.commit().unwrap();
    let read = MultiFile::open(&inside, "table.mf").unwrap();
    assert_eq!(read.names().unwrap(), ["SUB", "plain"]);
    let message = read.enter("SUB").unwrap_err().to_string();
    assert!(message.contains("SUB: MultiFile header at byte 48: 0 blocks of 256 bytes"), "{message}");
}

#[test]
fn archives_tell_containers_from_files_that_look_like_them() {
    let inside = Memory::new([]);
    let file = ContainerMut::create(&inside, "table.mf").unwrap();
    let container = MultiFileMut::create_with(file, 256, false, true).unwrap();
    container.create("copy").unwrap().write_at(0, &sample()).unwrap();
    let nested = container.create_nested("SUB").unwrap();
    nested.create("copy").unwrap().write_at(0, &sample()).unwrap();
    nested.create_nested("SUBSUB").unwrap().commit().unwrap();
    nested.commit().unwrap();
    // a container in the place of a file, and the other way round
    container.create_nested("once").unwrap().commit().unwrap();
    container.create("once").unwrap();
    assert_eq!(container.nested().unwrap(), ["SUB"]);
    container.commit().unwrap();

    let expect = |container: &MultiFile| {
        assert_eq!(
            (container.names().unwrap(), container.nested().unwrap().len()),
            (vec!["copy".into(), "once".into()], 1)
        );
        assert_eq!(read_all(container.open("copy").unwrap().as_ref()).unwrap(), sample());
        assert!(container.enter("copy").unwrap_err().to_string().contains("copy: it is a file, not a container"));
        let sub = container.enter("SUB").unwrap();
        assert_eq!((sub.names().unwrap(), sub.nested().unwrap()), (vec!["copy".into()], vec!["SUBSUB".into()]));
    };
    expect(&MultiFile::open(&inside, "table.mf").unwrap());
    // files that are changed later are also marked
    let changed = MultiFileMut::edit(&inside, "table.mf").unwrap();
    changed.create("once").unwrap().write_at(0, b"changed").unwrap();
    changed.commit().unwrap();
    expect(&MultiFile::open(&inside, "table.mf").unwrap());

    // a marked file stays a container when it is damaged
    ContainerMut::edit(&changed, "SUB").unwrap().write_at(48, &[0; 8]).unwrap();
    changed.commit().unwrap();
    let read = MultiFile::open(&inside, "table.mf").unwrap();
    assert_eq!(read.nested().unwrap(), ["SUB"]);
    assert!(read.enter("SUB").unwrap_err().to_string().contains("SUB: MultiFile header at byte 48: 0 blocks"));
    // without the mark, which casacore does not keep, the bytes tell
    let mut bytes = read_all(inside.open("table.mf").unwrap().as_ref()).unwrap();
    assert_eq!(std::mem::replace(&mut bytes[57], 0), 1);
    assert_eq!(open(bytes).unwrap().nested().unwrap(), ["copy"]);
}

#[test]
fn nesting_has_a_limit() {
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        let file = Arc::new(MemoryFile::default());
        let container = MultiFileMut::create(file.clone(), 512, false).unwrap();
        container.create("table.mf").unwrap().write_at(0, &bytes).unwrap();
        container.commit().unwrap();
        bytes = file.bytes();
    }
    let mut container: Arc<dyn Container> = Arc::new(open(bytes).unwrap());
    let error = loop {
        assert_eq!(container.nested().unwrap(), ["table.mf"]);
        match container.enter("table.mf") {
            Ok(inner) => container = inner,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Limit);
}

fn damaged(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut sample = sample();
    sample[offset..offset + bytes.len()].copy_from_slice(bytes);
    sample
}

#[test]
fn damaged_headers_are_errors() {
    let big = (1_u64 << 60).to_be_bytes();
    for (offset, bytes, words) in [
        (0, &[1][..], "at byte 8: a block size of 0 bytes, at least 128 expected"),
        (0x1b, &[3], "at byte 24: MultiFile version 3, known are 1 and 2"),
        (0x1c, &[9], "at byte 28: CRC of the header: 09000000 stored"),
        (0x20, &big, "at byte 32: a header of 1152921504606846976 bytes in a file of 2048"),
        (0x27, &[1], "at byte 32: a header of 1 bytes"),
        (0x28, &[0x10], "1024 bytes in 2 blocks of 1152921504606847488 bytes, where 1 are expected"),
        (0x28, &[0; 8], "at byte 40: a block size of 0 bytes, at least 128 expected"),
        (0x30, &[0; 8], "at byte 48: 0 blocks"),
        (0x30, &big, "at byte 48: 1152921504606846976 blocks of 512 bytes"),
        (0x37, &[3], "at byte 174: blocks of a file: block 3, but there are blocks 1 to 2"),
        (0x38, &[7], "at byte 56: 7 where 1 says that there are CRCs"),
        (0x38, &[1], "at byte 28: CRC of the header: 00000000 stored"),
        (0x40, &[0], "at byte 64: 0x00bebebe where the AipsIO magic"),
        (0x6d, &[200], "Block at byte 142: file name: 4 items announced"),
        (0x72, &[0xff], "Block at byte 110: the name of a file is not UTF-8"),
        (0x7b, &[101], "\"top\": a file of 25956 bytes in 1 blocks of 512 bytes, where 51 are expected"),
        (0x8e, &[1], "at byte 142: blocks of a file: 72057594037927937 items announced"),
        (0x9d, &[9], "at byte 150: blocks of a file: block 9, but there are blocks 1 to 3"),
        (0x9d, &[2], "block 2 at byte 1024: belongs to \"top\" and to \"SUB\""),
        (
            0xae,
            &(-(1_i64 << 60)).to_be_bytes(),
            "at byte 174: blocks of a file: 1152921504606846976 blocks after block 2",
        ),
        (0xae, &i64::MIN.to_be_bytes(), "9223372036854775808 blocks after block 2 exceed the container, which has 4"),
        (0xbd, &[1], "at byte 190: free blocks: block 0, but there are blocks 1 to 3"),
        // the names `top` and `SUB` begin at 0x72 and 0x82
        (0x82, b"top", "two files are called \"top\""),
        (0xcd, &[200], "at byte 198: continuation blocks: 200 items announced, but only 16 bytes are left"),
    ] {
        let error = open(damaged(offset, bytes)).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("table.mf: ") && message.contains(words), "{offset:#x}: {message}");
        assert_eq!(error.kind(), ErrorKind::Format);
    }
}

/// The sample, in which the first file was removed but still has its block.
fn removed_with_a_block() -> Vec<u8> {
    let mut bytes = sample();
    // the name becomes empty, and the rest of the header moves
    bytes.copy_within(0x75..0xde, 0x72);
    bytes[0x6e..0x72].fill(0);
    // the lengths of the header, of its record and of the object in that
    for at in [0x27, 0x47, 0x5c] {
        bytes[at] -= 3;
    }
    bytes
}

#[test]
fn calls_that_a_multifile_cannot_do() {
    let error = open(removed_with_a_block()).unwrap_err();
    assert!(error.to_string().ends_with("a removed file still has 1 blocks"), "{error}");
    let inside = Memory::new([]);
    MultiFileMut::create(inside.create("table.mf").unwrap(), 512, false).unwrap().commit().unwrap();
    inside.edit("table.mf").unwrap().write_at(0x28, &(2u64 << 30).to_be_bytes()).unwrap();
    let error = MultiFileMut::edit(&inside, "table.mf").unwrap_err();
    assert_eq!(error.to_string(), "table.mf: blocks of 2147483648 bytes, at most 1073741824 are written");
    let inside = in_memory(sample());
    let container = MultiFileMut::edit(&inside, "table.mf").unwrap();
    let file = container.edit("top").unwrap();
    container.remove("top").unwrap();
    let error = file.write_at(0, b"x").unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, "the file was removed"));
    let container = MultiFileMut::create(Arc::new(MemoryFile::default()), 512, false).unwrap();
    container.create("a").unwrap().set_len(1 << 62).unwrap();
    let error = container.create("b").unwrap().set_len(i64::MAX as u64).unwrap_err();
    assert_eq!(error.to_string(), "no more than 18014398509481983 blocks are possible");
    assert_eq!(error.kind(), ErrorKind::NoSpace);
}

/// A file in memory that cannot be made durable a second time.
#[derive(Debug, Default)]
struct Failing {
    file: MemoryFile,
    syncs: std::sync::atomic::AtomicU32,
}

impl ReadAt for Failing {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, out)
    }
}

impl WriteAt for Failing {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write_at(offset, data)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        match self.syncs.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 => Err(Error::from(std::io::Error::other("the disk does not answer"))),
            _ => Ok(()),
        }
    }
}

/// Which header the disk has is unknown once one was written and not synced.
#[test]
fn failed_commit_is_the_last() {
    let container = MultiFileMut::create(Arc::new(Failing::default()), 512, false).unwrap();
    container.create("a").unwrap().write_at(0, b"x").unwrap();
    let messages = [container.commit(), container.commit()].map(|result| result.unwrap_err().to_string());
    assert_eq!(messages, ["the disk does not answer", "an earlier commit failed: open the container again"]);
}

fn sha256(content: &[u8]) -> String {
    use sha2::Digest;
    crate::hex::Hex(&sha2::Sha256::digest(content)).to_string()
}

/// Values in testdata/multifile are those casacore read from the files in another container.
#[test]
fn containers_that_casacore_wrote() {
    let folder = ctds_hdf5_testing::testdata().join("multifile");
    for (table, blocks, files) in [
        ("m1/t.tab", 4, &[("table.f0", "6aeb062d56824b87")][..]),
        ("m2/t.tab", 3, &[("table.f0", "30f25aa3c34cd205")][..]),
        (
            "m5/t.tab",
            6,
            &[
                ("table.f0", "7024fa1c1e6eb1a9"),
                ("table.f0_TSM1", "b4aad05743498c73"),
                ("table.f1", "8e28f75b2bc59835"),
                ("table.f1i", "0deddb4136c79aa0"),
            ][..],
        ),
    ] {
        let container = MultiFile::open(&crate::Directory::new(folder.join(table)), "table.mf").unwrap();
        let info = container.describe();
        assert_eq!((info.version, info.block_bytes, info.blocks), (Some(2), Some(512), Some(blocks)));
        assert_eq!(container.names().unwrap(), files.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (name, expected) in files {
            let content = read_all(container.open(name).unwrap().as_ref()).unwrap();
            assert_eq!(sha256(&content)[..16], **expected, "{table}: {name}");
        }
    }
}

#[test]
fn cut_containers_are_errors() {
    let whole = sample();
    let expected = contents(&in_memory(whole.clone())).unwrap();
    for len in 0..whole.len() {
        let error = contents(&in_memory(whole[..len].to_vec())).map(drop);
        let message = error.map_or_else(|error| error.to_string(), |()| format!("{len} bytes suffice"));
        assert!(message.contains("at byte"), "{len}: {message}");
    }
    // the file's bytes count, not the blocks'
    let mut longer = whole;
    longer.push(0);
    assert_eq!(contents(&in_memory(longer)).unwrap(), expected);
    // 2^50 blocks in a file without their bytes
    let mut absurd = damaged(0x30, &(1_u64 << 50).to_be_bytes());
    absurd[0xae..0xb6].copy_from_slice(&(-(1_i64 << 49)).to_be_bytes());
    absurd[0x85..0x8d].copy_from_slice(&((1_u64 << 49) * 512 + 512).to_be_bytes());
    let container = open(absurd.clone()).unwrap();
    assert!(container.open("top").is_ok());
    let message = container.open("SUB").unwrap_err().to_string();
    let at = "SUB: block 562949953421314 of 512 bytes is at byte 288230376151712768";
    assert_eq!(message, format!("{at}, but the container has 2048 bytes"));
    assert!(MultiFileMut::edit(&in_memory(absurd), "table.mf").is_err());
}

#[test]
fn loops_of_continuation_blocks_are_errors() {
    let inside = Memory::new([]);
    let file = ContainerMut::create(&inside, "table.mf").unwrap();
    let container = MultiFileMut::create(file, 128, false).unwrap();
    (0..9).for_each(|number| drop(container.create(&format!("file {number}")).unwrap()));
    container.commit().unwrap();
    let header = MultiFile::open(&inside, "table.mf").unwrap().opened.header.clone();
    let chain = &header.continuation[header.current];
    assert!(chain.len() > 2);
    let bytes = read_all(inside.open("table.mf").unwrap().as_ref()).unwrap();
    for (from, to, words) in [
        (chain.len() - 1, chain[0], "after the last of"),
        (0, chain[0], "after the last of"),
        (1, 0, "found block 0 of 128 bytes after 2 of"),
        (0, 1 << 40, "found block 1099511627776 of 128 bytes after 1 of"),
    ] {
        let mut bytes = bytes.clone();
        bytes[chain[from] as usize * 128..][..8].copy_from_slice(&to.to_be_bytes());
        let message = open(bytes).unwrap_err().to_string();
        assert!(message.contains(words), "{from} to {to}: {message}");
    }
}

#[test]
fn every_flipped_byte_is_noticed_where_there_are_checksums() {
    for block_bytes in [128, 1024] {
        let file = Arc::new(MemoryFile::default());
        let container = MultiFileMut::create(file.clone(), block_bytes, true).unwrap();
        for (name, len) in [("a", 1), ("b", 2 * block_bytes), ("c", 700)] {
            let file = container.create(name).unwrap();
            (0..len).for_each(|at| file.write_at(at, &[at as u8]).unwrap());
        }
        container.commit().unwrap();
        let bytes = file.bytes();
        let expected = contents(&in_memory(bytes.clone())).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            match contents(&in_memory(damaged)) {
                Err(error) => {
                    assert!(error.to_string().starts_with("table.mf: ") || error.to_string().contains("block"))
                }
                Ok(found) => panic!("byte {at} of {}: {}", bytes.len(), found == expected),
            }
        }
    }
    // the file and the block are named
    let file = Arc::new(MemoryFile::default());
    let container = MultiFileMut::create(file.clone(), 128, true).unwrap();
    container.create("a").unwrap().write_at(0, &[7; 300]).unwrap();
    container.commit().unwrap();
    let mut bytes = file.bytes();
    bytes[2 * 128 + 5] ^= 1;
    let container = open(bytes).unwrap();
    let mut part = [0; 2];
    container.open("a").unwrap().read_at(20, &mut part).unwrap();
    let message = container.open("a").unwrap().read_at(140, &mut part).unwrap_err().to_string();
    assert!(message.starts_with("a: block 2 at byte 256: CRC "), "{message}");
}

#[test]
fn the_counter_may_be_anything() {
    let inside = in_memory(damaged(0x10, &[0xff; 8]));
    let container = MultiFileMut::edit(&inside, "table.mf").unwrap();
    container.create("new").unwrap().write_at(0, b"bytes").unwrap();
    container.commit().unwrap();
    assert_eq!(contents(&inside).unwrap()["new"], b"bytes");
}

/// `None` for an error, which must be of a kind that damage leads to and name the place.
fn is_suitable<T>(result: Result<T>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Limit | ErrorKind::Unsupported), "{error:?}");
    assert!(error.contexts().count() > 0, "no place: {error}");
    None
}

#[test]
fn damage_at_random_is_an_error_or_can_be_changed() {
    let file = Arc::new(MemoryFile::default());
    let container = MultiFileMut::create(file.clone(), 128, false).unwrap();
    let mut files = Files::new();
    let changes = vec(change(), 60).new_tree(&mut TestRunner::deterministic()).unwrap().current();
    changes.iter().for_each(|change| change.apply(&container, &mut files, 128));
    container.commit().unwrap();
    let bases = vec![sample(), file.bytes()];
    property(4000, (select(bases), mutations(3)), |(mut bytes, mutations)| {
        mutations.iter().for_each(|mutation| drop(mutation.apply(&mut bytes)));
        let inside = in_memory(bytes);
        is_suitable(contents(&inside));
        if let Some(container) = is_suitable(MultiFileMut::edit(&inside, "table.mf")) {
            // a container that opens for writing can be written
            container.create("new").unwrap().write_at(5, &[1; 500]).unwrap();
            container.commit().unwrap();
            let read = MultiFile::open(&inside, "table.mf").unwrap();
            assert_eq!(read.open("new").unwrap().len().unwrap(), 505);
        }
    });
}

#[derive(Debug, Clone)]
pub(super) struct Change {
    /// An existing file, or a new one.
    file: Index,
    /// Makes the name of a new file.
    name: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Remove,
    /// Grows by three blocks at most.
    SetLen(Index),
    /// Cuts to whole blocks.
    CutPart,
    Write {
        place: Place,
        count: Index,
        is_whole_blocks: bool,
        byte: u8,
    },
}

#[derive(Debug, Clone)]
enum Place {
    End,
    /// Begins at most two blocks after the end.
    BehindEnd(Index),
    Block(Index),
    Anywhere(Index),
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    let place = prop_oneof![
        4 => Just(Place::End),
        1 => any::<Index>().prop_map(Place::BehindEnd),
        1 => any::<Index>().prop_map(Place::Block),
        2 => any::<Index>().prop_map(Place::Anywhere),
    ];
    let write = (place, any::<Index>(), any::<bool>(), any::<u8>());
    let write =
        write.prop_map(|(place, count, is_whole_blocks, byte)| Kind::Write { place, count, is_whole_blocks, byte });
    let kind = prop_oneof![
        8 => write,
        2 => any::<Index>().prop_map(Kind::SetLen),
        1 => Just(Kind::CutPart),
        1 => Just(Kind::Remove),
    ];
    (any::<Index>(), 0..9u64, kind).prop_map(|(file, name, kind)| Change { file, name, kind })
}

impl Change {
    pub(super) fn apply(&self, container: &MultiFileMut, files: &mut Files, block_bytes: u64) {
        let number = self.file.index(files.len() + 1);
        let Some(name) = files.keys().nth(number).cloned() else {
            let name = format!("table.f{}", self.name);
            container.create(&name).unwrap();
            files.insert(name, Vec::new());
            return;
        };
        let bytes = files.get_mut(&name).unwrap();
        let len = bytes.len() as u64;
        let below = |index: &Index, end: u64| index.index(end as usize) as u64;
        let mut set_len = |len: u64| {
            ContainerMut::edit(container, &name).unwrap().set_len(len).unwrap();
            bytes.resize(len as usize, 0);
        };
        match &self.kind {
            Kind::Remove => {
                container.remove(&name).unwrap();
                files.remove(&name);
            }
            Kind::SetLen(index) => set_len(below(index, len + 3 * block_bytes)),
            Kind::CutPart => set_len(len / block_bytes * block_bytes),
            Kind::Write { place, count, is_whole_blocks, byte } => {
                let offset = match place {
                    Place::End => len,
                    Place::BehindEnd(index) => len + below(index, 2 * block_bytes),
                    Place::Block(index) => below(index, len + 1) / block_bytes * block_bytes,
                    Place::Anywhere(index) => below(index, len + 1),
                };
                let count = match is_whole_blocks {
                    true => block_bytes * below(count, 4),
                    false => below(count, 3 * block_bytes),
                };
                // none is 0, so that they differ from bytes never written
                let data: Vec<u8> = (0..count).map(|at| 1 + ((at * 31 + u64::from(*byte)) % 255) as u8).collect();
                ContainerMut::edit(container, &name).unwrap().write_at(offset, &data).unwrap();
                if !data.is_empty() {
                    bytes.resize(bytes.len().max((offset + count) as usize), 0);
                    bytes[offset as usize..][..data.len()].copy_from_slice(&data);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    Commit,
    Abandon,
}

#[test]
fn random_changes_do_what_they_do_to_plain_files() {
    for (block_bytes, checksums) in [(128, false), (128, true), (333, true), (4096, true)] {
        let after = prop_oneof![18 => Just(After::Nothing), 1 => Just(After::Commit), 1 => Just(After::Abandon)];
        // the containers that grew for long are the interesting ones
        property(2, vec((change(), after), 1500), |steps| {
            let inside = Memory::new([]);
            let file = ContainerMut::create(&inside, "table.mf").unwrap();
            let mut container = MultiFileMut::create(file, block_bytes, checksums).unwrap();
            let (mut files, mut committed) = (Files::new(), None);
            for (step, (change, after)) in steps.iter().enumerate() {
                change.apply(&container, &mut files, block_bytes);
                if step % 7 == 0 {
                    for (name, expected) in &files {
                        let found = read_all(container.open(name).unwrap().as_ref()).unwrap();
                        assert!(&found == expected, "step {step}: {name} before the commit, after {change:?}");
                    }
                }
                match after {
                    After::Commit => {
                        container.commit().unwrap();
                        assert!(contents(&inside).unwrap() == files, "step {step}");
                        committed = Some(files.clone());
                    }
                    After::Abandon if committed.is_some() => {
                        files = committed.clone().unwrap();
                        assert!(contents(&inside).unwrap() == files, "step {step}: not committed");
                        container = MultiFileMut::edit(&inside, "table.mf").unwrap();
                    }
                    _ => {}
                }
            }
            container.commit().unwrap();
            let read = MultiFile::open(&inside, "table.mf").unwrap();
            let header = &read.opened.header;
            // no block is lost
            let in_files: u64 = header.files.iter().map(|entry| entry.index.len()).sum();
            let in_header: usize = header.continuation.iter().map(Vec::len).sum();
            assert_eq!(1 + in_files + header.free.len() + in_header as u64, header.blocks);
            assert_eq!(read.opened.file.len().unwrap(), header.blocks * block_bytes);
        });
    }
}

#[test]
fn bytes_are_copied_past_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let plain: Vec<u8> = (0..3000u32).map(|i| (i * 7 % 251) as u8).collect();
    std::fs::write(folder.path().join("plain"), &plain).unwrap();
    let from = crate::io::FileSource::open(&folder.path().join("plain")).unwrap();
    for checksums in [false, true] {
        let file = Arc::new(crate::io::FileTarget::create(&folder.path().join("mf")).unwrap());
        let container = MultiFileMut::create(file, 512, checksums).unwrap();
        let target = container.create("a").unwrap();
        target.write_at(0, &[7; 100]).unwrap();
        let raw = from.raw(5).unwrap();
        let copied = target.copy_raw(100, crate::io::Raw { len: 2000, ..raw }, &());
        // with checksums the bytes have to be seen
        assert_eq!(copied, if checksums { 0 } else { 2000 });
        target.write_at(100 + copied, b"end").unwrap();
        container.commit().unwrap();
        let expected = [&[7; 100][..], &plain[5..5 + copied as usize], b"end"].concat();
        assert_eq!(read_all(&*container.open("a").unwrap()).unwrap(), expected);
    }
}

#[test]
fn reserved_space_does_not_lengthen_files() {
    use std::os::unix::fs::MetadataExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mf");
    let container = MultiFileMut::create(Arc::new(crate::io::FileTarget::create(&path).unwrap()), 512, true).unwrap();
    let file = container.create("a").unwrap();
    file.reserve(3 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 0);
    // not all file systems can do it
    let reserved = std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(reserved == 0 || reserved >= 3 << 20);
    let bytes: Vec<u8> = (0..3 << 20).map(|i: u32| (i % 251) as u8).collect();
    file.write_at(0, &bytes).unwrap();
    container.commit().unwrap();
    assert_eq!(read_all(&*container.open("a").unwrap()).unwrap(), bytes);
    let metadata = std::fs::metadata(&path).unwrap();
    assert!(metadata.blocks() * 512 <= metadata.len().next_multiple_of(1 << 16));
}
