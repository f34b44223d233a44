//! Tests of MultiHDF5 containers that this module writes and reads; tests with h5py, h5dump and casacore's files are in
//! tests/python.

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
use crate::h5::{self, Attribute, Bounds, ByteFilters, ByteRows, Compression, DatasetSpec, IndexKind, LinkKind};
use crate::hash::{Hash, HashKind};
use crate::io::{ReadAt, read_all};
use crate::value::{DataType, Region, Shape, Values};

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
fn any_writes_give_the_bytes_of_a_plain_file() {
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

/// The bytes of a container with one file and this damage.
fn damaged(damage: impl FnOnce(&h5::Group)) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let container = MultiHdf5Mut::create(&path, &COMPATIBLE).unwrap();
    write(&*container, "f", &[5; 200]);
    container.commit().unwrap();
    drop(container);
    let file = h5::File::edit(&path, Bounds::Earliest).unwrap();
    damage(&file.root().unwrap());
    file.close().unwrap();
    read_all(&*open(&path)?.open("f")?)
}

#[test]
fn damage_is_an_error_that_says_what_is_wrong() {
    assert_eq!(damaged(|_| {}).unwrap(), [5; 200]);
    let attribute = |name: &'static str, value: Attribute| {
        damaged(move |root| root.group(HEADER).unwrap().set_attribute(name, &value).unwrap())
    };
    let rows = |row_bytes: u64, rows: u64| {
        damaged(move |root| {
            let group = root.group("f").unwrap();
            group.remove(DATA).unwrap();
            let spec = ByteRows { row_bytes, rows, appendable: true, filters: ByteFilters::default() };
            group.create_byte_rows(DATA, &spec).unwrap();
        })
    };
    let int = |values: Vec<i64>| Attribute::Array(Values::Int64(values));
    let names = |names: &[&str]| Attribute::Array(Values::String(names.iter().map(|&name| name.into()).collect()));
    for (result, says) in [
        (damaged(|root| root.remove(HEADER).unwrap()), "is not a MultiHDF5 container"),
        (damaged(|root| root.remove("f").unwrap()), "no group of this name"),
        (damaged(|root| root.group("f").unwrap().remove(DATA).unwrap()), "has no dataset FileData"),
        (attribute("sizes", int(vec![1, 2])), "1 names, but 2 sizes"),
        (attribute("sizes", int(vec![-1])), "-1 bytes"),
        (
            attribute("sizes", int(vec![i64::MAX])),
            "5 blocks of 64 bytes are too few for the file, which has 9223372036854775807",
        ),
        (attribute("sizes", names(&["1"])), "no integers"),
        (attribute("names", names(&["f", "f"])), "2 names, but 1 sizes"),
        (attribute("names", names(&["../f"])), "the file does not exist"),
        (attribute("names", int(vec![1])), "not strings"),
        (attribute("blockSize", int(vec![0])), "not positive"),
        (attribute("blockSize", int(vec![1 << 40])), "a row has 64 bytes"),
        (rows(63, 10), "a row has 63 bytes, expected at least 64"),
        (rows(64, 2), "2 blocks of 64 bytes"),
    ] {
        let text = result.expect_err(says).to_string();
        assert!(text.contains(says) && text.contains("f"), "{text}");
    }
    // never written, and far more than could be
    assert_eq!(rows(64, u64::MAX / 64).unwrap(), [0; 200]);
}

fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    (0..bytes.len() - wanted.len()).filter(|&at| bytes[at..].starts_with(wanted)).collect()
}

/// Replaces the dataset of a virtual file.
fn replace_data(root: &h5::Group, element: DataType, shape: Shape, chunk: Option<Shape>) {
    let group = root.group("f").unwrap();
    group.remove(DATA).unwrap();
    let spec = DatasetSpec { element, shape: &shape, chunk, appendable: false, compression: Compression::NONE };
    group.create_dataset(DATA, &spec).unwrap();
}

#[test]
fn damaged_headers_and_datasets_say_what_was_expected() {
    let attribute = |name: &'static str, value: Attribute| {
        damaged(move |root| root.group(HEADER).unwrap().set_attribute(name, &value).unwrap())
    };
    let data = |element: DataType, shape: Shape| damaged(move |root| replace_data(root, element, shape, None));
    let twice = damaged(|root| {
        let header = root.group(HEADER).unwrap();
        let names = Values::String(vec!["f".into(), "f".into()]);
        header.set_attribute("names", &Attribute::Array(names)).unwrap();
        header.set_attribute("sizes", &Attribute::Array(Values::Int64(vec![200, 200]))).unwrap();
    });
    let no_attributes = damaged(|root| {
        root.remove(HEADER).unwrap();
        root.create_group(HEADER).unwrap();
    });
    for (result, says) in [
        (twice, "two files have the name \"f\""),
        (no_attributes, "group __MultiHDF5_Header__ has no attribute blockSize"),
        (
            attribute("blockSize", Attribute::Array(Values::Int64(vec![64, 64]))),
            "attribute blockSize: 2 values, where one is expected",
        ),
        (
            data(DataType::UChar, Shape::from([256])),
            "dataset /f/FileData: the dataset has shape [256], expected two axes",
        ),
        (data(DataType::Int, Shape::from([64, 4])), "dataset /f/FileData: the elements have type int, expected uchar"),
    ] {
        let error = result.expect_err(says);
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().ends_with(says), "{error}");
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let make = |name: &str| {
        let container = MultiHdf5Mut::create(&path, &COMPATIBLE).unwrap();
        write(&*container, name, &[5; 200]);
        container.commit().unwrap();
    };
    make("a long name");
    // the name of the group is another
    let bytes = std::fs::read(&path).unwrap();
    let error_at = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] = 0xff;
        std::fs::write(&path, bytes).unwrap();
        open(&path).map_or_else(|error| error.to_string(), |_| String::new())
    };
    let says = "the name \"\\xff long name\" is not UTF-8";
    assert!(places(&bytes, b"a long name").into_iter().any(|at| error_at(at).ends_with(says)));
    // the key of the first chunk in the b-tree: its size, no skipped filters, its offsets
    make("f");
    let key = |bytes: u32| [&bytes.to_le_bytes()[..], &[0; 4 + 3 * 8]].concat();
    let bytes = std::fs::read(&path).unwrap();
    let error_at = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at..at + 28].copy_from_slice(&key(63)[..28]);
        std::fs::write(&path, bytes).unwrap();
        let opened = open(&path).and_then(|container| container.open("f"));
        opened.map_or_else(|error| error.to_string(), |_| String::new())
    };
    let says = "dataset /f/FileData: a chunk has 63 bytes, expected 64";
    assert!(places(&bytes, &key(64)).into_iter().any(|at| error_at(at).ends_with(says)));
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

/// The error of opening, to append, an appendable container with the file `f` of 100 bytes and this damage.
fn damaged_live(path: &Path, damage: impl FnOnce(&h5::Group)) -> Result<LiveContainer> {
    let mut live = LiveContainer::create(path, 64, &["f"]).unwrap();
    live.append("f", &[1; 100]).unwrap();
    live.close().unwrap();
    let file = h5::File::edit(path, Bounds::V110).unwrap();
    damage(&file.root().unwrap());
    file.close().unwrap();
    LiveContainer::open(path)
}

#[test]
fn damaged_lists_of_commits_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    assert!(damaged_live(&path, |_| {}).is_ok());
    /// The list has the path of a file and the last row.
    fn list(root: &h5::Group, shape: Shape, name: &str, last: Option<i64>) {
        root.remove(COMMITS).unwrap();
        let spec = DatasetSpec {
            element: DataType::Int64,
            shape: &shape,
            chunk: Some(shape.iter().map(|_| 1).collect()),
            appendable: true,
            compression: Compression::NONE,
        };
        let dataset = root.create_dataset(COMMITS, &spec).unwrap();
        dataset.set_attribute("names", &Attribute::Array(Values::String(vec![name.into()]))).unwrap();
        if let Some(size) = last {
            dataset.write_region(&Region::whole(&Shape::from([1, 1])), &Values::Int64(vec![size])).unwrap();
        }
    }
    let names = |values: Values| {
        move |root: &h5::Group| {
            root.dataset(COMMITS).unwrap().set_attribute("names", &Attribute::Array(values)).unwrap();
        }
    };
    let one = || Shape::from([1, 1]);
    for (result, says) in [
        (
            damaged_live(&path, names(Values::Int(vec![1]))),
            "dataset /__MultiHDF5_Commits__ has no attribute names, which lists the files",
        ),
        (
            damaged_live(&path, |root| list(root, Shape::from([1]), "f", None)),
            "dataset /__MultiHDF5_Commits__ has shape [1], expected two axes",
        ),
        (
            damaged_live(&path, |root| list(root, Shape::from([3, 0]), "f", None)),
            "dataset /__MultiHDF5_Commits__ has 3 sizes, expected one for each of 1 files",
        ),
        (
            damaged_live(&path, |root| list(root, one(), "f", Some(-7))),
            "the size of a file is -7 bytes, expected 0 or more",
        ),
        (
            damaged_live(&path, |root| list(root, Shape::from([1, 0]), "g", None)),
            "the list of commits names g, which no header has",
        ),
        (
            damaged_live(&path, |root| {
                replace_data(root, DataType::UChar, Shape::from([64, 9]), Some(Shape::from([64, 1])))
            }),
            "f: the file cannot grow while others read it",
        ),
        (
            damaged_live(&path, |root| root.remove(COMMITS).unwrap()),
            "the files of this container cannot grow while others read them",
        ),
    ] {
        let error = result.expect_err(says);
        assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().ends_with(says), "{error}");
    }
    // the largest file that a commit can record, in rows that were never written
    let mut live = damaged_live(&path, |root| {
        list(root, one(), "f", Some(i64::MAX));
        let group = root.group("f").unwrap();
        group.remove(DATA).unwrap();
        let spec = ByteRows { row_bytes: 64, rows: 1 << 57, appendable: true, filters: ByteFilters::default() };
        group.create_byte_rows(DATA, &spec).unwrap();
    })
    .unwrap();
    let error = live.append("f", b"x").unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Usage, "f: the file would have 2^63 bytes or more")
    );
}

#[test]
fn seals_whose_regions_do_not_cover_the_file_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let container = MultiHdf5Mut::create(&path, &ARCHIVE).unwrap();
    write(&*container, "f", &[5; 200]);
    container.commit().unwrap();
    drop(container);
    let whole = std::fs::read(&path).unwrap();
    let seal = Seal::find(&whole).unwrap().unwrap();
    let (start, end) = (seal.len as usize, whole.len() - 4);
    for (change, says) in [
        (-1, format!("the regions of the seal have {} bytes, expected {}", start - 1, start)),
        (1, "the regions of the seal are longer than the file before it".to_owned()),
    ] {
        let mut bytes = whole.clone();
        // the length of the last region
        let last = start + 16 * (seal.regions as usize - 1);
        let length = u64::from_le_bytes(bytes[last..last + 8].try_into().unwrap());
        bytes[last..last + 8].copy_from_slice(&length.wrapping_add_signed(change).to_le_bytes());
        let mut crc = libdeflater::Crc::new();
        crc.update(&bytes[start..end]);
        bytes[end..].copy_from_slice(&crc.sum().to_le_bytes());
        let error = Seal::damage(&bytes).unwrap_err();
        assert_eq!(error.to_string(), format!("seal at byte {start}: {says}"));
    }
}

#[test]
fn checksums_find_every_flipped_byte_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    for options in [
        FormatOptions { checksums: true, ..ARCHIVE },
        FormatOptions { checksums: true, compression: Compression::gzip(5).into(), ..ARCHIVE },
    ] {
        let container = MultiHdf5Mut::create(&path, &options).unwrap();
        write(&*container, "f", &bytes(5, 1000));
        container.commit().unwrap();
        drop(container);
        let whole = std::fs::read(&path).unwrap();
        let chunks = dataset(&h5::File::open(&path).unwrap(), "f").chunks().unwrap();
        assert_eq!(Vec::len(&chunks), 16);
        for chunk in chunks {
            for at in (chunk.address..chunk.address + chunk.stored_bytes).step_by(5) {
                let mut bytes = whole.clone();
                bytes[at as usize] ^= 0x10;
                std::fs::write(&path, bytes).unwrap();
                let text = read_all(&*open(&path).unwrap().open("f").unwrap()).unwrap_err().to_string();
                assert!(text.contains("/f/FileData: chunk ") && text.contains("checksum"), "{text}");
            }
        }
    }
}

#[test]
fn files_cut_short_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    for options in all_options() {
        let container = MultiHdf5Mut::create(&path, &options).unwrap();
        write(&*container, "f", &bytes(5, 3000));
        container.create_nested("n").unwrap();
        container.commit().unwrap();
        drop(container);
        let whole = std::fs::read(&path).unwrap();
        let end = h5::File::open(&path).unwrap().end_of_file().unwrap() as usize;
        assert_eq!(Vec::len(&whole) > end, is_sealed(&options));
        for len in (0..end).step_by(101).chain(end..Vec::len(&whole)) {
            std::fs::write(&path, &whole[..len]).unwrap();
            // all bytes of the files come before the end of the seal
            let result = open(&path).and_then(|container| match container.check()? {
                false if len == end => Err(Error::format("no seal")),
                _ => read_all(&*container.open("f")?),
            });
            assert!(result.is_err(), "{len} bytes of {}", Vec::len(&whole));
        }
    }
}

fn is_sealed(options: &FormatOptions) -> bool {
    (options.archive || options.checksums) && !options.appendable
}

/// Flips are in the metadata of HDF5, in a block, after the end of a file, in the seal.
#[test]
fn every_flipped_byte_of_a_sealed_container_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    for options in all_options().into_iter().filter(is_sealed) {
        let container = MultiHdf5Mut::create(&path, &options).unwrap();
        write(&*container, "f", &bytes(5, 300));
        write(&*container.create_nested("n").unwrap(), "g", b"more");
        container.commit().unwrap();
        drop(container);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(Seal::damage(&whole).unwrap(), []);
        for at in 0..Vec::len(&whole) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let damage = Seal::damage(&bytes);
            // damage that libhdf5 would see is refused before; the bytes of files are read, unchecked if the seal is damaged
            match damage {
                Ok(found) => {
                    let structure = found.iter().any(|damage| damage.file.is_none());
                    assert!(!found.is_empty(), "byte {at} with {options:?}");
                    assert_eq!(Seal::check_structure(&bytes).is_err(), structure, "byte {at} with {options:?}");
                }
                Err(error) => assert!(error.to_string().contains("seal at byte "), "byte {at}: {error}"),
            }
        }
    }
}

#[test]
fn edit_reseals_intact_container() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    for options in all_options() {
        let container = MultiHdf5Mut::create(&path, &options).unwrap();
        write(&*container, "f", &bytes(5, 300));
        container.commit().unwrap();
        write(&*container, "g", &bytes(6, 3000));
        container.commit().unwrap();
        drop(container);
        assert_eq!(open(&path).unwrap().check().unwrap(), is_sealed(&options));
        let container = MultiHdf5Mut::edit(&path).unwrap();
        container.remove("g").unwrap();
        container.commit().unwrap();
        drop(container);
        assert_eq!(open(&path).unwrap().check().unwrap(), is_sealed(&options));
        assert_eq!(open(&path).unwrap().describe().checksum.is_some(), is_sealed(&options));

        // another program changes it by libhdf5
        let file = h5::File::edit(&path, Bounds::V110).unwrap();
        file.root().unwrap().create_group("mine").unwrap();
        file.close().unwrap();
        assert!(!open(&path).unwrap().check().unwrap(), "{options:?}");
        if !is_sealed(&options) {
            continue;
        }
        let container = MultiHdf5Mut::create(&path, &options).unwrap();
        write(&*container, "f", &bytes(5, 300));
        container.commit().unwrap();
        drop(container);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 30;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = MultiHdf5Mut::edit(&path).unwrap().create("h").map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn containers_in_circles_or_too_deep_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mfh5");
    let file = h5::File::create(&path).unwrap();
    let mut group = file.root().unwrap();
    let header = Header { block_bytes: 64, counter: 1, archive: true, files: vec![("n".into(), 0)] };
    for _ in 0..1000 {
        header.write(&group).unwrap();
        group = group.create_group("n").unwrap();
    }
    header.write(&group).unwrap();
    file.close().unwrap();
    let mut level = open(&path).unwrap();
    let error = loop {
        match level.enter("n") {
            Ok(inner) => level = inner,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    drop(level);

    let file = h5::File::create(&path).unwrap();
    let root = file.root().unwrap();
    header.write(&root).unwrap();
    let inner = root.create_group("n").unwrap();
    header.write(&inner).unwrap();
    inner.link("n", "/n").unwrap();
    file.close().unwrap();
    let error = open(&path).unwrap().enter("n").unwrap_err();
    assert!(error.to_string().contains("2 links lead to it"), "{error}");
}

/// Also bytes of a file that a killed process left.
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

/// The folder as it is left if a process is killed now: with the pages of its files that the system has.
fn snapshot(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    ctds_hdf5_testing::copy_tree(folder, copy.path());
    copy
}

/// The process is stopped between any two steps of a commit.
#[test]
fn killed_at_any_moment_a_container_is_old_or_new() {
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

#[test]
fn a_process_that_reads_sees_commits_and_nothing_else() {
    if let Some(path) = std::env::var_os(CHILD) {
        let mut live = LiveContainer::open(Path::new(&path)).unwrap();
        let wait = Path::new(&path).with_extension("wait");
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
