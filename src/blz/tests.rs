//! Tests with arrays made here; tests/python/formats/test_blz.py reads files of the original
//! programs.

use blosc_arrays::samples::array;

use super::{Arrays, Export, ToHdf5};
use crate::error::{ErrorKind, Fails};
use crate::h5::{self, Compression};
use crate::value::{DataType, Shape};

#[test]
fn unsupported_elements_are_refused() {
    use ErrorKind::{Format, Unsupported};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let plain = r#"{"dtype": "uint8", "chunklen": 4}"#;
    let write = |storage: &str, sizes: &str| {
        let arrays = Arrays::open(array(&path, storage, sizes, &[b"abcd"]))?;
        ToHdf5::new(&arrays).write(dir.path().join("a.h5"))
    };
    write(plain, r#"{"shape": [4]}"#).unwrap();
    std::fs::remove_file(dir.path().join("a.h5")).unwrap();
    write(plain, r#"{"shape": [9]}"#)
        .fails(Format, "array: the shape takes 9 bytes, but the chunks have 4: __1.blp is missing");
    write(r#"{"dtype": "uint8", "chunklen": 5000000000}"#, r#"{"shape": [5000000000]}"#)
        .fails(Unsupported, "array: chunks have 4 GiB or more, which HDF5 cannot store");
    write(r#"{"dtype": "|S0", "chunklen": 4}"#, r#"{"shape": [4]}"#)
        .fails(Unsupported, "array: the elements have 0 bytes, which HDF5 does not have");
    array(&path, plain, r#"{"shape": [4]}"#, &[b"abcd"]);
    std::fs::write(path.join("__attrs__"), r#"{"": 1}"#).unwrap();
    let arrays = Arrays::open(&path).unwrap();
    ToHdf5::new(&arrays)
        .write(dir.path().join("a.h5"))
        .fails(Unsupported, "HDF5 cannot have an attribute with the name \"\"");
}

#[test]
fn datasets_are_arrays_if_they_are_named() {
    use ErrorKind::{Format, Usage};
    let dir = tempfile::tempdir().unwrap();
    let (hdf5, out) = (dir.path().join("a.h5"), dir.path().join("out"));
    let file = h5::File::create(&hdf5).unwrap();
    let shape = Shape::from([3]);
    let root = file.root().unwrap();
    for name in ["x", "y"] {
        let spec = h5::DatasetSpec {
            element: DataType::Int,
            shape: &shape,
            chunk: None,
            appendable: false,
            compression: Compression::NONE,
        };
        let dataset = root.create_dataset(name, &spec).unwrap();
        if name == "y" {
            dataset.set_attribute("blz_dtype", &h5::Attribute::string("float64")).unwrap();
        }
    }
    drop(root);
    file.close().unwrap();
    let says = format!("2 datasets in the root of an HDF5 file: name one, {}/GROUP/DATASET", hdf5.display());
    Arrays::open(&hdf5).fails(Usage, &says);
    Arrays::open(hdf5.join("y")).fails(Format, "blz_dtype is float64, but the dataset has other elements");
    let arrays = Arrays::open(hdf5.join("x")).unwrap();
    Export::new(&arrays)
        .write(&out)
        .fails(Usage, "the arrays did not come from blz, bcolz or bloscpack: name the format to write");
    assert!(!out.exists());
}

#[test]
fn exports_appear_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a"), dir.path().join("out"));
    let export = |cname: &str, compression: &str| {
        let storage = format!(r#"{{"dtype": "uint8", "chunklen": 4096, "cparams": {{"cname": "{cname}"}}}}"#);
        let arrays = Arrays::open(array(&path, &storage, r#"{"shape": [4096]}"#, &[&[7; 4096]]))?;
        Export::new(&arrays).compression(compression.parse()?).write(&out)
    };
    export("brotli", "none").fails(ErrorKind::Format, "the codec \"brotli\" is not one of Blosc");
    assert!(!out.exists());
    export("brotli", "gzip:9").unwrap();
    assert_eq!(Arrays::open(&out).unwrap().list().unwrap()[0].codec.as_deref(), Some("zlib"));
}
