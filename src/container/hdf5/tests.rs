//! Tests of wrong calls on files that are stored as datasets, and of HDF5 files that only look like
//! such a container.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::container::{
    Announced, AnnouncedFile, ContainerMut, Directory, FormatOptions, Memory, Properties, Property,
};
use crate::error::{Error, ErrorKind};
use crate::h5::{self, Attribute, Compression, DatasetSpec, Group};
use crate::hash::HashKind;
use crate::io::read_all;
use crate::value::{DataType, Shape, Values};

const OPTIONS: FormatOptions = FormatOptions {
    block_bytes: 512,
    checksums: false,
    compression: None,
    archive: true,
    hash: HashKind::Blake3,
    appendable: false,
};

fn create(path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>> {
    let doubles = Properties { values: vec![("dtype".to_owned(), Property::Text("f8".to_owned()))], content: None };
    let file = |name: &str, len, properties| AnnouncedFile { name: name.to_owned(), len, properties };
    let files = vec![file("f", 16, Properties::default()), file("d", 16, doubles)];
    FORMAT.create_for(path, &Announced { files, ..Announced::default() }, options)
}

fn check(error: &Error, kind: ErrorKind, says: &str) {
    assert!(error.kind() == kind && error.to_string().ends_with(says), "{error}");
}

#[test]
fn only_what_was_announced_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let checksums = create(&path, &FormatOptions { checksums: true, ..OPTIONS }).map(drop).unwrap_err();
    check(&checksums, ErrorKind::Usage, "files as HDF5 datasets have no checksums, and do not grow");
    let container = create(&path, &OPTIONS).unwrap();
    let (file, doubles) = (container.create("f").unwrap(), container.create("d").unwrap());
    let (unknown, nested) = (container.create("g").map(drop), container.create_nested("n").map(drop));
    for (result, kind, says) in [
        (unknown, ErrorKind::NotFound, "g: this file was not announced"),
        (nested, ErrorKind::NotFound, "n: this container was not announced"),
        (container.open("f").map(drop), ErrorKind::Unsupported, "f: the file is being written"),
        (container.edit("f").map(drop), ErrorKind::Unsupported, "f: the file is written as a whole"),
        (file.read_at(0, &mut [0]), ErrorKind::Unsupported, "the file is being written"),
        (
            file.write_at(10, &[0; 7]),
            ErrorKind::Usage,
            "7 bytes from byte 10 on exceed the 16 bytes that were announced",
        ),
        (file.set_len(17), ErrorKind::Usage, "the file is 17 bytes long, 16 were announced"),
        (doubles.write_at(8, &[0; 3]), ErrorKind::Usage, "3 bytes from byte 8 on are not whole elements of 8 bytes"),
    ] {
        check(&result.expect_err(says), kind, says);
    }
    container.commit().unwrap();
    for error in [container.commit(), container.create("f").map(drop), file.write_at(0, b"x")] {
        check(&error.unwrap_err(), ErrorKind::Usage, "the container is written already");
    }
}

/// Reads all files of a container with a file `f` and this damage.
fn damaged(damage: impl FnOnce(&Group)) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = h5::File::create(&path).unwrap();
    let root = file.root().unwrap();
    root.set_attribute(FILES_MARK, &Attribute::Scalar(Values::Int64(vec![VERSION]))).unwrap();
    damage(&root);
    file.close().unwrap();
    let container = read::Files::open(&Directory::new(folder.path()), "a.h5")?;
    for name in container.nested()? {
        container.enter(&name)?;
    }
    let mut bytes = Vec::new();
    for name in container.names()? {
        bytes.extend(read_all(&*container.open(&name)?)?);
    }
    Ok(bytes)
}

#[test]
fn other_hdf5_files_are_errors() {
    let dataset = |element, shape: Shape| {
        damaged(move |root| {
            let spec =
                DatasetSpec { element, shape: &shape, chunk: None, appendable: false, compression: Compression::NONE };
            root.create_dataset("f", &spec).unwrap();
        })
    };
    assert_eq!(dataset(DataType::UChar, Shape::from([3])).unwrap(), [0; 3]);
    for (result, says) in [
        (
            damaged(|root| root.set_attribute(FILES_MARK, &Attribute::Scalar(Values::Int64(vec![7]))).unwrap()),
            "attribute ctds_files is [7], expected [1]",
        ),
        (
            dataset(DataType::UChar, Shape::from([3, 2])),
            "f: a file is a dataset of 8-bit integers with one axis, not of uchar with 2 axes",
        ),
        (
            dataset(DataType::Double, Shape::from([3])),
            "f: a file is a dataset of 8-bit integers with one axis, not of double with 1 axes",
        ),
        (
            damaged(|root| {
                root.create_group("n").unwrap();
                root.link("m", "/n").unwrap();
            }),
            ": 2 links lead to the group, expected one",
        ),
        (
            damaged(|root| {
                let link = Attribute::string("[1]");
                root.create_group("n").unwrap().set_attribute(&link_attribute("f"), &link).unwrap();
            })
            .and_then(|_| properties::of_json("[1]").map(|_| Vec::new())),
            "the properties are not a JSON object of numbers, lists of integers and strings",
        ),
    ] {
        check(&result.expect_err(says), ErrorKind::Format, says);
    }
    let inside = Memory::new([("a.h5", Vec::new())]);
    let error = read::Files::open(&inside, "a.h5").map(drop).unwrap_err();
    let says = "a.h5: an HDF5 file inside another container cannot be read: unpack the outer one first";
    check(&error, ErrorKind::Unsupported, says);
}
