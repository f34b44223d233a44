//! Tests of MultiHDF5 containers that this module writes and reads; tests with h5py, h5dump and
//! casacore's files are in tests/python.

mod damage;
mod live_files;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ctds_hdf5_testing::property;
use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::{collection, sample::Index};

use super::header::Header;
use super::names::{COMMITS, DATA};
use super::store::AT_MOMENT;
use super::*;
use crate::container::{ContainerMut, Directory, FormatOptions};
use crate::error::ErrorKind;
use crate::h5::{self, Attribute, Bounds, Compression, IndexKind, LinkKind};
use crate::hash::{Hash, HashKind};
use crate::io::{FileSource, ReadAt, read_all};
use crate::value::{Region, Shape, Values};

const COMPATIBLE: FormatOptions = FormatOptions {
    block_bytes: 64,
    checksums: false,
    compression: None,
    archive: false,
    hash: HashKind::Blake3,
    appendable: false,
};
const ARCHIVE: FormatOptions = FormatOptions { archive: true, ..COMPATIBLE };

fn all_options() -> [FormatOptions; 6] {
    [
        COMPATIBLE,
        FormatOptions { checksums: true, compression: Compression::gzip(3).into(), ..COMPATIBLE },
        ARCHIVE,
        FormatOptions { compression: Compression::gzip(1).into(), ..ARCHIVE },
        FormatOptions { checksums: true, compression: Compression::gzip(6).into(), ..ARCHIVE },
        FormatOptions { appendable: true, ..ARCHIVE },
    ]
}

fn open(path: &Path) -> Result<Arc<dyn Container>> {
    let name = path.file_name().unwrap().to_str().unwrap();
    (FORMAT.open)(&Directory::new(path.parent().unwrap()), name)
}

fn content(container: &dyn Container) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in container.names().unwrap() {
        files.insert(name.clone(), read_all(&*container.open(&name).unwrap()).unwrap());
    }
    for name in container.nested().unwrap() {
        let inner = content(&*container.enter(&name).unwrap());
        files.extend(inner.into_iter().map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
    }
    files
}

/// Compressible bytes that depend on a number.
fn bytes(number: u64, count: u64) -> Vec<u8> {
    let byte = |at: u64| ((at + 1).wrapping_mul(2 * number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 7;
    (0..count).map(|at| byte(at) as u8).collect()
}

#[test]
fn a_length_known_before_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    for (number, options) in all_options().into_iter().enumerate() {
        // with small blocks, and with those that the disk gets while others are written
        for (block_bytes, lengths) in [(64, vec![1, 63, 64, 65, 128, 191, 192, 193]), (1 << 20, vec![(6 << 20) + 5])] {
            let options = FormatOptions { block_bytes, ..options };
            let path = folder.path().join(format!("{number}-{block_bytes}.mfh5"));
            let container = MultiHdf5Mut::create(&path, &options).unwrap();
            let mut expected = BTreeMap::new();
            for &len in &lengths {
                for blocks in [1, 3] {
                    let (name, bytes) = (format!("{len}-{blocks}"), bytes(blocks, len));
                    let file = container.create(&name).unwrap();
                    file.reserve(len).unwrap();
                    for (number, piece) in bytes.chunks((blocks * block_bytes) as usize).enumerate() {
                        file.write_at(number as u64 * blocks * block_bytes, piece).unwrap();
                    }
                    expected.insert(name, bytes);
                }
            }
            // less than was said is filled with zeros, more makes the file longer
            let file = container.create("less").unwrap();
            file.reserve(3 * block_bytes).unwrap();
            file.write_at(0, b"some").unwrap();
            let zeros = vec![0; 3 * block_bytes as usize - 4];
            expected.insert("less".to_owned(), [b"some", &zeros[..]].concat());
            let file = container.create("more").unwrap();
            file.reserve(2).unwrap();
            file.write_at(0, b"some more").unwrap();
            expected.insert("more".to_owned(), b"some more".to_vec());
            container.commit().unwrap();
            drop((file, container));
            let read = open(&path).unwrap();
            assert!(content(&*read) == expected, "{options:?}");
            for name in expected.keys().filter(|_| options.archive && !options.appendable) {
                let layout = read.layout(name).unwrap();
                let kind = if layout.blocks == 1 { IndexKind::Single } else { IndexKind::FixedArray };
                assert_eq!(layout.index, Some(kind.to_string()), "{name} {options:?}");
                let hash = Hash::of(HashKind::Blake3, &expected[name]).to_string();
                assert_eq!(layout.hash, Some((HashKind::Blake3, hash)), "{name} {options:?}");
            }
            let most = expected.values().map(|bytes| bytes.len() as u64 + block_bytes).sum::<u64>() + (1 << 17);
            // reserved bytes are part of the file, or were given back
            let disk = std::fs::metadata(&path).unwrap().blocks() * 512;
            assert!(disk <= most, "{disk} bytes on the disk, {most} at most");
        }
    }
}

/// One call on a file, and the part of the file that is read after it.
#[derive(Debug, Clone)]
struct Step {
    file: u64,
    /// Creates the file even if it exists.
    is_made: bool,
    action: Action,
    read: (Index, Index),
}

#[derive(Debug, Clone)]
enum Action {
    SetLen(u64),
    Sync,
    Remove,
    Write { offset: u64, count: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        19 => (0..1200u64, 0..400u64).prop_map(|(offset, count)| Action::Write { offset, count }),
        5 => (0..1500u64).prop_map(Action::SetLen),
        5 => Just(Action::Sync),
        1 => Just(Action::Remove),
    ];
    let parts = (0..3u64, prop::bool::weighted(0.08), action, any::<(Index, Index)>());
    parts.prop_map(|(file, is_made, action, read)| Step { file, is_made, action, read })
}

/// Changes a container, and the files expected in it.
fn apply(step: &Step, number: u64, container: &dyn ContainerMut, expected: &mut BTreeMap<String, Vec<u8>>) {
    let name = format!("table.f{}", step.file);
    let file = match expected.contains_key(&name) && !step.is_made {
        true => container.edit(&name).unwrap(),
        false => {
            expected.insert(name.clone(), Vec::new());
            container.create(&name).unwrap()
        }
    };
    let plain = expected.get_mut(&name).unwrap();
    match step.action {
        Action::SetLen(len) => {
            file.set_len(len).unwrap();
            plain.resize(len as usize, 0);
        }
        Action::Sync => file.sync().unwrap(),
        Action::Remove => {
            container.remove(&name).unwrap();
            assert!(file.write_at(0, b"x").is_err());
            expected.remove(&name);
            return;
        }
        Action::Write { offset, count } => {
            let bytes = bytes(number, count);
            file.write_at(offset, &bytes).unwrap();
            if count > 0 {
                let end = (offset + count) as usize;
                plain.resize(Vec::len(plain).max(end), 0);
                plain[offset as usize..end].copy_from_slice(&bytes);
            }
        }
    }
    if !plain.as_slice().is_empty() {
        let start = step.read.0.index(Vec::len(plain));
        let mut part = vec![0; step.read.1.index(Vec::len(plain) - start + 1)];
        container.open(&name).unwrap().read_at(start as u64, &mut part).unwrap();
        assert_eq!(part, plain[start..start + Vec::len(&part)]);
    }
}

#[test]
fn any_sequence_of_writes_gives_the_bytes_of_a_plain_file() {
    for options in all_options() {
        property(1, collection::vec(collection::vec(step(), 40), 6), |rounds| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.mfh5");
            let container = MultiHdf5Mut::create(&path, &options).unwrap();
            let nested = container.create_nested("sub").unwrap();
            let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            for (round, steps) in rounds.iter().enumerate() {
                for (number, step) in steps.iter().enumerate() {
                    apply(step, number as u64, &*container, &mut expected);
                }
                if round % 3 == 1 {
                    let bytes = bytes(round as u64, 200);
                    nested.create("inner").unwrap().write_at(3, &bytes).unwrap();
                    expected.insert("sub/inner".into(), [&[0; 3], &*bytes].concat());
                }
                container.commit().unwrap();
                assert_eq!(content(&*open(&path).unwrap()), expected, "{options:?} round {round}");
                assert_eq!(content(&*container), expected);
                if options.archive {
                    check_hashes(&*open(&path).unwrap());
                }
                assert_eq!(Seal::damage(&FileSource::open(&path).unwrap()).unwrap(), [], "{options:?} round {round}");
            }
            drop((nested, container));
            let container = MultiHdf5Mut::edit(&path).unwrap();
            let file = container.edit("table.f0").or_else(|_| container.create("table.f0")).unwrap();
            file.write_at(2000, b"end").unwrap();
            container.commit().unwrap();
            let plain = expected.entry("table.f0".into()).or_default();
            plain.resize(2000, 0);
            plain.extend_from_slice(b"end");
            assert_eq!(content(&*open(&path).unwrap()), expected);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "copies are left");
        });
    }
}

fn check_hashes(container: &dyn Container) {
    for name in container.names().unwrap() {
        let bytes = read_all(&*container.open(&name).unwrap()).unwrap();
        let hash = Hash::of(HashKind::Blake3, &bytes).to_string();
        assert_eq!(container.layout(&name).unwrap().hash, Some((HashKind::Blake3, hash)), "{name}");
    }
}

fn dataset(file: &h5::File, name: &str) -> h5::Dataset {
    file.root().unwrap().group(name).unwrap().dataset(DATA).unwrap()
}

fn write(container: &dyn ContainerMut, name: &str, bytes: &[u8]) {
    container.create(name).unwrap().write_at(0, bytes).unwrap();
}

/// Nothing newer either: formats/table.md 6.1, 6.3.
#[test]
fn compatible_containers_are_as_casacore_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.mfh5");
    let container = MultiHdf5Mut::create(&path, &FormatOptions { block_bytes: 4096, ..COMPATIBLE }).unwrap();
    write(&*container, "table.f0", &[7; 13824]);
    write(&*container, "table.f1", &[]);
    container.commit().unwrap();
    drop(container);

    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[8], 0, "superblock");
    let holds = |magic: &[u8]| bytes.windows(magic.len()).any(|window| window == magic);
    assert!(holds(b"TREE") && holds(b"SNOD"), "b-trees and symbol tables of version 1");
    for newer in [b"OHDR", b"FRHP", b"FAHD", b"EAHD", b"BTHD"] {
        assert!(!holds(newer), "{newer:?}");
    }
    let file = h5::File::open(&path).unwrap();
    let header = file.root().unwrap().group(HEADER).unwrap();
    let integer = |value| Some(Attribute::Scalar(Values::Int64(vec![value])));
    assert_eq!(header.attributes().unwrap(), ["blockSize", "hdrCounter", "names", "sizes"]);
    assert_eq!(header.attribute("blockSize").unwrap(), integer(4096));
    assert_eq!(header.attribute("hdrCounter").unwrap(), integer(1));
    let names = Values::String(vec!["table.f0".into(), "table.f1".into()]);
    assert_eq!(header.attribute("names").unwrap(), Some(Attribute::Array(names)));
    assert_eq!(header.attribute("sizes").unwrap(), Some(Attribute::Array(Values::Int64(vec![13824, 0]))));
    // one row more than needed
    for (name, rows) in [("table.f0", 5), ("table.f1", 0)] {
        let dataset = dataset(&file, name);
        assert_eq!(dataset.shape().unwrap(), Shape::from([4096, rows]));
        assert_eq!(dataset.chunk().unwrap(), Some(Shape::from([4096, 1])));
        assert!(dataset.is_appendable().unwrap() && dataset.filters().unwrap().is_empty());
        assert_eq!(dataset.index_kind().unwrap(), IndexKind::BtreeV1);
    }
    drop((file, header));
    // every change counts
    let container = MultiHdf5Mut::edit(&path).unwrap();
    container.remove("table.f0").unwrap();
    container.remove("table.f1").unwrap();
    container.commit().unwrap();
    drop(container);
    let opened = open(&path).unwrap();
    assert_eq!((opened.names().unwrap().len(), opened.describe().changes), (0, Some(2)));
}

#[test]
fn archives_have_the_index_that_their_files_need() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let kinds = |options: &FormatOptions, announce: bool| {
        let container = MultiHdf5Mut::create(&path, options).unwrap();
        let file = container.create("f").unwrap();
        // more than is kept in memory
        if announce {
            file.set_len(9_000_000).unwrap();
        }
        (0..9).for_each(|part| file.write_at(part * 1_000_000, &[part as u8; 1_000_000]).unwrap());
        write(&*container, "small", &[1; 70_000]);
        container.commit().unwrap();
        let file = h5::File::open(&path).unwrap();
        let rows = dataset(&file, "f").shape().unwrap();
        assert_eq!(rows[1], 9_000_000u64.div_ceil(options.block_bytes));
        [dataset(&file, "f").index_kind().unwrap(), dataset(&file, "small").index_kind().unwrap()]
    };
    use IndexKind::{ExtensibleArray, FixedArray};
    const ARCHIVE: FormatOptions = FormatOptions { block_bytes: 1 << 16, ..super::tests::ARCHIVE };
    assert_eq!(kinds(&ARCHIVE, true), [FixedArray, FixedArray]);
    assert_eq!(
        kinds(&FormatOptions { compression: Compression::gzip(4).into(), checksums: true, ..ARCHIVE }, true),
        [FixedArray, FixedArray]
    );
    // writers that do not announce the length of a file
    assert_eq!(kinds(&ARCHIVE, false), [ExtensibleArray, FixedArray]);
    assert_eq!(kinds(&FormatOptions { appendable: true, ..ARCHIVE }, true), [ExtensibleArray, ExtensibleArray]);
}

#[test]
fn second_writer_of_a_container_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let container = MultiHdf5Mut::create(&path, &COMPATIBLE).unwrap();
    write(&*container, "f", b"old");
    container.commit().unwrap();
    assert_eq!(MultiHdf5Mut::edit(&path).unwrap_err().kind(), ErrorKind::Locked);
    container.edit("f").unwrap().write_at(0, b"new").unwrap();
    assert_eq!(content(&*open(&path).unwrap())["f"], b"old");
    drop(container);
    // nothing was committed
    assert_eq!(content(&*open(&path).unwrap())["f"], b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    MultiHdf5Mut::edit(&path).unwrap();
}

#[test]
fn impossible_names_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let container = MultiHdf5Mut::create(&folder.path().join("a"), &COMPATIBLE).unwrap();
    for name in ["", ".", "..", "a/b", HEADER, COMMITS, "\u{fc}"] {
        assert!(container.create(name).is_err(), "{name}");
    }
    container.create_nested("n").unwrap();
    assert_eq!(container.create_nested("n").unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(container.create("n").unwrap_err().kind(), ErrorKind::Exists);
    MultiHdf5Mut::create(&folder.path().join("b"), &ARCHIVE).unwrap().create("\u{fc}").unwrap();
}

#[test]
fn calls_that_no_container_allows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let refused = |options: FormatOptions| MultiHdf5Mut::create(&path, &options).unwrap_err();
    for (error, says) in [
        (
            refused(FormatOptions { compression: Some((9999, 1)), ..COMPATIBLE }),
            "no data is written with the HDF5 filter 9999",
        ),
        (
            refused(FormatOptions { block_bytes: 0, ..COMPATIBLE }),
            "the block size is 0 bytes, expected 1 to 2^32 - 1 in HDF5",
        ),
        (
            refused(FormatOptions { appendable: true, ..COMPATIBLE }),
            "only files of an archive can grow while others read them",
        ),
        (
            refused(FormatOptions { appendable: true, checksums: true, ..ARCHIVE }),
            "what grows while others read it cannot have filters",
        ),
    ] {
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Usage, says));
    }
    let container = MultiHdf5Mut::create(&path, &COMPATIBLE).unwrap();
    let file = container.create("f").unwrap();
    for (result, says) in [
        (file.set_len(1 << 63), "the file would have 9223372036854775808 bytes; at most 2^63 - 1 are possible"),
        (file.write_at(u64::MAX, b"ab"), "the file would have 2^64 bytes or more"),
    ] {
        let error = result.expect_err(says);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().ends_with(says), "{error}");
    }
    let error = Header::check_room(4000, "f", Bounds::Earliest).unwrap_err();
    assert_eq!(error.to_string(), "the container has 4000 files, the most that casacore reads");
    assert!(Header::check_room(4000, "f", Bounds::V110).is_ok());
}

/// Committed bytes are read, also from a file that a killed process left.
#[test]
fn appended_bytes_are_seen_once_they_are_committed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    let container = MultiHdf5Mut::create(&path, &FormatOptions { appendable: true, ..ARCHIVE }).unwrap();
    write(&*container, "f", &[1; 100]);
    write(&*container.create_nested("n").unwrap(), "g", &[2; 64]);
    container.commit().unwrap();
    drop(container);
    let mut live = LiveContainer::open(&path).unwrap();
    let mut expected = BTreeMap::from([("f".to_owned(), vec![1; 100]), ("n/g".to_owned(), vec![2; 64])]);
    let copy = folder.path().join("copy.mfh5");
    for round in 0..20 {
        for (number, (name, plain)) in expected.iter_mut().enumerate() {
            // every second file is not always written
            let bytes = bytes(round, (round * 37 + 11) % 300 * (number as u64 ^ round & 1));
            live.append(name, &bytes).unwrap();
            plain.extend_from_slice(&bytes);
        }
        live.commit().unwrap();
        // as if the process was killed now
        std::fs::copy(&path, &copy).unwrap();
        assert!(content(&*open(&copy).unwrap()) == expected, "round {round}");
        let mut reader = LiveContainerReader::open(&copy).unwrap();
        assert!(!reader.refresh().unwrap());
        for (name, plain) in &expected {
            let mut bytes = vec![0; reader.len(name).unwrap() as usize];
            reader.read_at(name, 0, &mut bytes).unwrap();
            assert_eq!(&bytes, plain);
        }
    }
    live.close().unwrap();
    assert_eq!(content(&*open(&path).unwrap()), expected);
    // the ordinary way of changing begins with the appended bytes
    let container = MultiHdf5Mut::edit(&path).unwrap();
    write(&*container, "h", b"new");
    container.commit().unwrap();
    expected.insert("h".into(), b"new".to_vec());
    assert!(content(&*container) == expected);
    drop(container);
    assert!(content(&*open(&path).unwrap()) == expected);
    check_hashes(&*open(&path).unwrap());
    let links = h5::File::open(&path).unwrap().root().unwrap().links().unwrap();
    assert!(links.contains(&(COMMITS.to_owned(), LinkKind::Dataset)));
    assert_eq!(LiveContainer::open(&copy).unwrap_err().kind(), ErrorKind::Locked);
}

/// A child process that runs one test alone, until it is killed by a signal that cannot be caught.
struct Running(Child);

impl Running {
    fn start(test: &str, path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([&format!("container::multihdf5::tests::{test}"), "--exact"]).env(CHILD, path);
        Running(child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Tells a test that it is a child process, and where to write.
const CHILD: &str = "MULTIHDF5_TEST_CHILD";

/// Expected files after `commits` commits.
fn state(commits: u64) -> BTreeMap<String, Vec<u8>> {
    let file = |number: u64| (format!("table.f{number}"), bytes(commits * 3 + number, 3000 + 31 * commits));
    let mut files: BTreeMap<_, _> = (0..3).map(file).collect();
    files.insert("count".into(), commits.to_le_bytes().to_vec());
    files
}

/// Copy as left if a process is killed now, with the pages of files that the system has.
fn snapshot(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    ctds_hdf5_testing::copy_tree(folder, copy.path());
    copy
}

/// The process is stopped between any two steps of a commit.
#[test]
fn killed_commit_leaves_the_old_or_the_new_container() {
    for options in [COMPATIBLE, FormatOptions { compression: Compression::gzip(1).into(), checksums: true, ..ARCHIVE }]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.mfh5");
        let container = MultiHdf5Mut::create(&path, &options).unwrap();
        state(0).iter().for_each(|(name, bytes)| write(&*container, name, bytes));
        container.commit().unwrap();
        drop(container);
        for commits in 1..=3 {
            let moments: Rc<RefCell<Vec<(&str, tempfile::TempDir)>>> = Rc::default();
            let (journal, place) = (moments.clone(), folder.path().to_owned());
            let record = move |name| journal.borrow_mut().push((name, snapshot(&place)));
            AT_MOMENT.set(Some(Box::new(record)));
            let container = MultiHdf5Mut::edit(&path).unwrap();
            for (name, bytes) in state(commits) {
                match commits % 2 {
                    0 => container.edit(&name).unwrap().write_at(0, &bytes).unwrap(),
                    _ => write(&*container, &name, &bytes),
                }
                // the file as it is while it is written
                moments.borrow_mut().push(("changed", snapshot(folder.path())));
            }
            container.commit().unwrap();
            AT_MOMENT.set(None);
            drop(container);
            let moments = std::mem::take(&mut *moments.borrow_mut());
            let names: Vec<&str> = moments.iter().map(|(name, _)| *name).filter(|name| *name != "changed").collect();
            assert_eq!(names, ["begun", "copied", "written", "closed", "sealed", "synced", "renamed"]);
            for (name, left) in &moments {
                let expected = if *name == "renamed" { commits } else { commits - 1 };
                let path = left.path().join("table.mfh5");
                assert!(content(&*open(&path).unwrap()) == state(expected), "{options:?}, killed when {name}");
                // the next change removes leftovers
                let container = MultiHdf5Mut::edit(&path).unwrap();
                write(&*container, "x", b"more");
                container.commit().unwrap();
                drop(container);
                let mut more = state(expected);
                more.insert("x".into(), b"more".to_vec());
                assert!(content(&*open(&path).unwrap()) == more, "{options:?}, changed after {name}");
                assert_eq!(std::fs::read_dir(left.path()).unwrap().count(), 1, "killed when {name}");
            }
        }
    }
}

/// Large, so that a commit takes some time.
const FILES: u64 = 30;

/// Byte `n` of the appended data.
fn appended(file: u64, n: u64) -> u8 {
    ((n * 31 + file * 7) >> 3) as u8
}

fn append_until_killed(path: &Path) {
    let mut live = LiveContainer::open(path).unwrap();
    let wait = path.with_extension("wait");
    let mut len = 0;
    for commit in 0u64.. {
        // so that the reader keeps up, even on a loaded machine
        if commit % 5 == 0 {
            std::fs::write(&wait, []).unwrap();
            while wait.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let count = commit * 1237 % 5000;
        // in all files as many bytes: so each commit is known by that
        for file in 0..FILES {
            let bytes: Vec<u8> = (len..len + count).map(|n| appended(file, n)).collect();
            let (first, rest) = bytes.split_at(bytes.len() / 3);
            live.append(&format!("f{file}"), first).unwrap();
            live.append(&format!("f{file}"), rest).unwrap();
        }
        len += count;
        // the reader waits for the file, and sees it while it is made if that is possible
        std::thread::sleep(Duration::from_millis(10));
        live.commit().unwrap();
    }
}

#[test]
fn a_process_that_reads_sees_commits_and_nothing_else() {
    if let Some(path) = std::env::var_os(CHILD) {
        return append_until_killed(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    let check = |reader: &mut dyn FnMut(&str) -> Vec<u8>| {
        // first what is written last
        let files: Vec<Vec<u8>> = (0..FILES).rev().map(|file| reader(&format!("f{file}"))).collect();
        for (file, bytes) in (0..FILES).rev().zip(&files) {
            assert_eq!(Vec::len(bytes), Vec::len(&files[0]));
            assert!((0..).zip(bytes).all(|(n, &byte)| byte == appended(file, n)), "f{file}");
        }
        Vec::len(&files[0])
    };
    for _ in 0..3 {
        let names: Vec<String> = (0..FILES).map(|file| format!("f{file}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        LiveContainer::create(&path, 4096, &names).unwrap().close().unwrap();
        let go_on = || std::fs::remove_file(path.with_extension("wait")).is_ok();
        // of the process before
        go_on();
        let process = Running::start("a_process_that_reads_sees_commits_and_nothing_else", &path);
        let (mut seen, start) = (0, Instant::now());
        // the first reader keeps others from writing
        while !go_on() {
            assert!(start.elapsed().as_secs() < 60, "the process does not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut reader = LiveContainerReader::open(&path).unwrap();
        while seen < 20 && start.elapsed().as_secs() < 60 {
            go_on();
            if reader.refresh().unwrap() {
                seen += 1;
                check(&mut |name| {
                    let mut bytes = vec![0; reader.len(name).unwrap() as usize];
                    reader.read_at(name, 0, &mut bytes).unwrap();
                    bytes
                });
            }
        }
        assert_eq!(seen, 20);
        drop((process, reader));
        // a killed writer's file is read like any container
        let container = open(&path).unwrap();
        assert!(check(&mut |name| read_all(&*container.open(name).unwrap()).unwrap()) > 0);
    }
}
