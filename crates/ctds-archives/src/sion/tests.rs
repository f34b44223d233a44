//! Tests of SION containers, with files that the writer made, and with changed ones.

use std::sync::Arc;

use ctds::HashKind;
use ctds::container::{Announced, AnnouncedFile, Container, Format, FormatOptions, Memory, Properties};
use ctds::error::ErrorKind;
use ctds::io::read_all;

const FORMAT: &Format = &super::FORMAT;

fn options(block_bytes: u64) -> FormatOptions {
    FormatOptions {
        block_bytes,
        checksums: false,
        compression: None,
        archive: true,
        hash: HashKind::Blake3,
        appendable: false,
    }
}

fn announce(files: &[(&str, &[u8])]) -> Announced {
    let file = |(name, bytes): &(&str, &[u8])| AnnouncedFile {
        name: (*name).to_owned(),
        len: bytes.len() as u64,
        properties: Properties::default(),
    };
    Announced { files: files.iter().map(file).collect(), ..Announced::default() }
}

fn packed(files: &[(&str, &[u8])], block_bytes: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sion");
    let container = FORMAT.create_for(&path, &announce(files), &options(block_bytes)).unwrap();
    for (name, bytes) in files {
        container.create(name).unwrap().write_at(0, bytes).unwrap();
    }
    container.commit().unwrap();
    std::fs::read(path).unwrap()
}

fn open(bytes: &[u8]) -> ctds::error::Result<Arc<dyn Container>> {
    (FORMAT.open)(&Memory::new([("a.sion", bytes.to_vec())]), "a.sion")
}

fn streams(container: &dyn Container) -> ctds::error::Result<Vec<Vec<u8>>> {
    container.names()?.iter().map(|name| read_all(&*container.open(name)?)).collect()
}

const TASKS: &[(&str, &[u8])] = &[("TASK0", b"first"), ("TASK1", b""), ("TASK2", &[7; 600])];

#[test]
fn streams_round_trip() {
    for block_bytes in [1, 512, 1000, 4096] {
        let bytes = packed(TASKS, block_bytes);
        let container = open(&bytes).unwrap();
        assert_eq!(container.names().unwrap(), ["TASK0", "TASK1", "TASK2"]);
        assert_eq!(streams(&*container).unwrap(), TASKS.iter().map(|(_, bytes)| bytes.to_vec()).collect::<Vec<_>>());
        assert_eq!(container.open("TASK3").map(drop).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(container.open("TASK00").map(drop).unwrap_err().kind(), ErrorKind::NotFound);
        let first = container.properties().unwrap().ints("sion_first_chunk").unwrap()[0];
        assert_eq!(first as u64 % block_bytes, 0);
    }
}

#[test]
fn names_are_kept_in_task_0() {
    let files: &[(&str, &[u8])] = &[("table.dat", b"x"), ("ä b", b"yz")];
    let container = open(&packed(files, 512)).unwrap();
    assert_eq!(container.names().unwrap(), ["table.dat", "ä b"]);
    assert_eq!(streams(&*container).unwrap(), [b"x".to_vec(), b"yz".to_vec()]);
}

#[test]
fn a_stream_has_the_announced_length() {
    let folder = tempfile::tempdir().unwrap();
    let container = FORMAT.create_for(&folder.path().join("a"), &announce(TASKS), &options(512)).unwrap();
    let file = container.create("TASK0").unwrap();
    assert_eq!(file.write_at(3, b"abc").unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(file.set_len(9).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(container.create("TASK9").map(drop).unwrap_err().kind(), ErrorKind::NotFound);
}

/// The streams are read, or a short error is returned.
#[test]
fn changed_metadata_is_an_error_or_other_streams() {
    let bytes = packed(TASKS, 512);
    let len = bytes.len();
    let mut refused = 0;
    for at in (0..52).chain(1076..1140).chain(len - 60..len) {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            if let Err(error) = open(&changed).and_then(|container| streams(&*container)) {
                assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Limit), "byte {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 150, "{refused}");
}

#[test]
fn files_cut_short_are_errors() {
    let bytes = packed(TASKS, 512);
    // without the mapping it is a file as parallel programs write them
    for len in (0..bytes.len() - 4).step_by(7) {
        let error = open(&bytes[..len]).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{len}: {error}");
    }
    assert!(open(&bytes[..bytes.len() - 4]).is_ok());
}

/// A file whose META2 was never written gives its chunks as far as the file goes.
#[test]
fn unclosed_files_are_salvaged() {
    let mut bytes = packed(TASKS, 512);
    let end = 1076 + 16 * 3;
    bytes[end..end + 12].fill(0);
    let error = open(&bytes).map(drop).unwrap_err();
    assert!(error.to_string().contains("never closed"), "{error}");
    // one block and a half
    bytes.truncate(1536 + 512 + 1024);
    let salvage = FORMAT.salvage.unwrap();
    let (container, damage) = salvage(&Memory::new([("a.sion", bytes)]), "a.sion").unwrap();
    assert!(damage.to_string().contains("zeros included"), "{damage}");
    let found = streams(&*container).unwrap();
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [512, 0, 1024]);
    assert!(found[0].starts_with(b"first\0") && found[2].starts_with(&[7; 600]));
}

#[test]
fn counts_are_compared_with_the_file() {
    let bytes = packed(TASKS, 512);
    for (at, value) in [(24, i32::MAX), (28, i32::MAX), (1076 + 16 * 3, i32::MAX), (20, 0), (24, -1), (16, 9)] {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
        if at == 28 {
            // the first file of a set
            changed[32..36].fill(0);
        }
        assert_eq!(open(&changed).map(drop).unwrap_err().kind(), ErrorKind::Format, "{at}");
    }
}

#[test]
fn inconsistent_indexes_records_and_mappings_are_errors() {
    let index = |names: &str, tasks: &[(&str, &[u8])]| {
        let first = format!("ctds-names 1\n{names}");
        let files = [&[("TASK0", first.as_bytes())], tasks].concat();
        open(&packed(&files, 512)).and_then(|container| streams(&*container))
    };
    let tasks: &[(&str, &[u8])] = &[("TASK1", b"x"), ("TASK2", b"y")];
    assert_eq!(index("[\"a\",\"b\"]", tasks).unwrap(), [b"x", b"y"]);
    // a file with records of keys and values: its format and mode
    let keys = |stream: &[u8], key: &str| {
        let mut bytes = packed(&[("TASK0", stream)], 512);
        bytes[16] = 5;
        bytes[36..44].copy_from_slice(&(51_i64 << 32).to_le_bytes());
        open(&bytes)?.enter("TASK0.keys")?.open(key).and_then(|value| read_all(&*value)).map(|value| vec![value])
    };
    let record = [&7u64.to_le_bytes()[..], &2u64.to_le_bytes(), b"ab"].concat();
    assert_eq!(keys(&record, "7").unwrap(), [b"ab"]);
    // two files of a set, and a mapping of one task
    let mut first = packed(&[("TASK0", b"x")], 512);
    first[28..32].copy_from_slice(&2i32.to_le_bytes());
    let mut second = first.clone();
    first[32..36].fill(0);
    first.truncate(first.len() - 4);
    first.extend([1i32, 5, 0].iter().flat_map(|number| number.to_le_bytes()));
    second[32..36].copy_from_slice(&1i32.to_le_bytes());
    let set = (FORMAT.open)(&Memory::new([("a", first), ("a.000001", second)]), "a");
    for (result, kind, says) in [
        (
            index("[\"a\"]", tasks),
            ErrorKind::Format,
            "the index of names in task 0 has 1 files, the file 2 other tasks",
        ),
        (
            index("[\"a\",\"a\"]", tasks),
            ErrorKind::Format,
            "the index of names in task 0 has \"a\" in a wrong place, or twice",
        ),
        (
            keys(&record[..17], "7"),
            ErrorKind::Format,
            "TASK0.keys: key-value record at byte 0: key 7 has 2 bytes, the stream 17 in all",
        ),
        (keys(&record, "8"), ErrorKind::NotFound, "8: the key does not exist"),
        (
            set.and_then(|container| streams(&*container)),
            ErrorKind::Format,
            "a: mapping: task 0 is given as task 0 of file 5, which does not exist",
        ),
    ] {
        let error = result.expect_err(says);
        assert!(error.kind() == kind && error.to_string().ends_with(says), "{error}");
    }
}

#[test]
fn unsupported_streams_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let create = |files: &Announced, options: &FormatOptions| FORMAT.create_for(&path, files, options);
    let long = Announced {
        files: vec![AnnouncedFile { name: "f".to_owned(), len: u64::MAX, ..AnnouncedFile::default() }],
        ..Announced::default()
    };
    let container = create(&announce(TASKS), &options(512)).unwrap();
    for (result, kind, says) in [
        (
            create(&announce(TASKS), &FormatOptions { checksums: true, ..options(512) }).map(drop),
            ErrorKind::Usage,
            "a SION file has neither checksums nor compression",
        ),
        (
            create(&announce(TASKS), &options(0)).map(drop),
            ErrorKind::Usage,
            "blocks of a SION file have 1 to 2147483647 bytes",
        ),
        (create(&long, &options(512)).map(drop), ErrorKind::Usage, "a stream is longer than any file"),
        (container.remove("TASK0"), ErrorKind::Unsupported, "TASK0: a SION file is written as a whole"),
        (container.create_nested("n").map(drop), ErrorKind::NotFound, "n: this container was not announced"),
        (
            FORMAT.create(&path, &options(512)).map(drop),
            ErrorKind::Unsupported,
            "a container of the format sion is written as a whole",
        ),
    ] {
        let error = result.expect_err(says);
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, says));
    }
}
