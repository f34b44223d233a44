//! Damage, and what finds it: of headers, datasets and lists of commits; seals and checksums.

use super::*;
use crate::h5::{ByteFilters, ByteRows, DatasetSpec};
use crate::value::{DataType, Region};

/// Bytes read of the one file of a container that `damage` has changed.
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
fn messages_name_the_damage() {
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

/// Makes a dataset of these type and extents in place of that of a virtual file.
fn replace_data(root: &h5::Group, element: DataType, shape: Shape, chunk: Option<Shape>) {
    let group = root.group("f").unwrap();
    group.remove(DATA).unwrap();
    let spec = DatasetSpec { element, shape: &shape, chunk, appendable: false, compression: Compression::NONE };
    group.create_dataset(DATA, &spec).unwrap();
}

#[test]
fn messages_of_damaged_headers_say_what_was_expected() {
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
}

#[test]
fn messages_of_damaged_names_and_chunks_say_what_was_expected() {
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

/// Error of opening to append a container with a file `f` of 100 bytes that `damage` has changed.
fn damaged_live(path: &Path, damage: impl FnOnce(&h5::Group)) -> Result<LiveContainer> {
    let mut live = LiveContainer::create(path, 64, &["f"]).unwrap();
    live.append("f", &[1; 100]).unwrap();
    live.close().unwrap();
    let file = h5::File::edit(path, Bounds::V110).unwrap();
    damage(&file.root().unwrap());
    file.close().unwrap();
    LiveContainer::open(path)
}

/// Makes a list of commits of this shape, with the path of a file and the last row.
fn replace_commits(root: &h5::Group, shape: Shape, name: &str, last: Option<i64>) {
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

#[test]
fn damaged_lists_of_commits_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    assert!(damaged_live(&path, |_| {}).is_ok());
    let names = |values: Values| {
        move |root: &h5::Group| {
            root.dataset(COMMITS).unwrap().set_attribute("names", &Attribute::Array(values)).unwrap();
        }
    };
    for (result, says) in [
        (
            damaged_live(&path, names(Values::Int(vec![1]))),
            "dataset /__MultiHDF5_Commits__ has no attribute names, which lists the files",
        ),
        (
            damaged_live(&path, |root| replace_commits(root, Shape::from([1]), "f", None)),
            "dataset /__MultiHDF5_Commits__ has shape [1], expected two axes",
        ),
        (
            damaged_live(&path, |root| replace_commits(root, Shape::from([3, 0]), "f", None)),
            "dataset /__MultiHDF5_Commits__ has 3 sizes, expected one for each of 1 files",
        ),
        (
            damaged_live(&path, |root| replace_commits(root, Shape::from([1, 1]), "f", Some(-7))),
            "the size of a file is -7 bytes, expected 0 or more",
        ),
        (
            damaged_live(&path, |root| replace_commits(root, Shape::from([1, 0]), "g", None)),
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
}

/// The largest file that a commit can record, in rows that were never written.
#[test]
fn append_beyond_the_largest_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut live = damaged_live(&folder.path().join("live.mfh5"), |root| {
        replace_commits(root, Shape::from([1, 1]), "f", Some(i64::MAX));
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
        let chunks = dataset(&h5::File::open(&path).unwrap(), "f").chunks_of_rows(u64::MAX).unwrap();
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

/// The flipped bytes are in the metadata of HDF5, in a block, after the end of a file, in the seal.
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
            // damage that libhdf5 would see is refused before; the bytes of files are read,
            // unchecked if the seal is damaged
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

        // another program changes the container by libhdf5
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
