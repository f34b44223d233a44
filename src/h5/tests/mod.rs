//! Files written and read back by this module.

mod refusals;

use std::path::Path;
use std::sync::Arc;

use num_complex::{Complex32, Complex64};

use super::*;
use crate::error::ErrorKind;
use crate::grid::ChunkRead;
use crate::io::FileSource;
use crate::value::{DataType, Region, Shape, Values};

fn spec<'a>(element: DataType, shape: &'a Shape, chunk: Option<Shape>) -> DatasetSpec<'a> {
    DatasetSpec { element, shape, chunk, appendable: false, compression: Compression::NONE }
}

/// Different values, of every type in turn.
fn samples(count: usize) -> Vec<Values> {
    let n = 0..count as u32;
    vec![
        Values::Bool(n.clone().map(|i| i % 3 == 0).collect()),
        Values::UChar(n.clone().map(|i| (i * 7) as u8).collect()),
        Values::Short(n.clone().map(|i| -(i as i16)).collect()),
        Values::UShort(n.clone().map(|i| 65535 - i as u16).collect()),
        Values::Int(n.clone().map(|i| -(i as i32) * 70000).collect()),
        Values::UInt(n.clone().map(|i| u32::MAX - i).collect()),
        Values::Int64(n.clone().map(|i| i64::MIN + i64::from(i)).collect()),
        Values::Float(n.clone().map(|i| i as f32 / 3.0).collect()),
        Values::Double(n.clone().map(|i| f64::from(i) / 3.0).collect()),
        Values::Complex(n.clone().map(|i| Complex32::new(i as f32, -0.5)).collect()),
        Values::DComplex(n.clone().map(|i| Complex64::new(0.25, f64::from(i))).collect()),
        Values::String(n.map(|i| "ü".repeat(i as usize % 5).into()).collect()),
    ]
}

/// A chunk of all of them would be larger than HDF5 allows.
#[test]
fn shapes_without_elements_have_small_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(&folder.path().join("empty.h5")).unwrap();
    let shape = Shape::from([262_144, 0, 65_536, 3]);
    for (name, appendable, chunk) in [("fixed", false, None), ("growing", true, Some(shape.clone()))] {
        for (element, filters) in [(DataType::Double, Compression::gzip(4)), (DataType::String, Compression::NONE)] {
            let spec = DatasetSpec { appendable, compression: filters, ..spec(element, &shape, chunk.clone()) };
            let dataset = file.root().unwrap().create_dataset(&format!("{name} {element:?}"), &spec).unwrap();
            let bytes = dataset.chunk().unwrap().unwrap().elements().unwrap() * 16;
            assert!(bytes < 1 << 32 && dataset.shape().unwrap() == shape, "{name}: {bytes}");
        }
    }
}

#[test]
fn every_type_in_every_layout() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.h5");
    let shape = Shape::from([3, 5, 7]);
    let chunks = [None, Some(Shape::from([3, 2, 2])), Some(shape.clone())];
    let file = File::create(&path).unwrap();
    for (n, chunk) in chunks.iter().enumerate() {
        let group = file.root().unwrap().create_group(&n.to_string()).unwrap();
        for values in samples(105) {
            let element = values.data_type();
            let dataset = group.create_dataset(element.name(), &spec(element, &shape, chunk.clone())).unwrap();
            dataset.write_region(&Region::whole(&shape), &values).unwrap();
        }
    }
    file.close().unwrap();

    let file = File::open(&path).unwrap();
    for (n, kind) in [IndexKind::None, IndexKind::FixedArray, IndexKind::Single].into_iter().enumerate() {
        let group = file.root().unwrap().group(&n.to_string()).unwrap();
        let links = group.links().unwrap();
        assert_eq!(links.len(), 12);
        for (values, (name, link)) in samples(105).iter().zip(links) {
            assert_eq!((name.as_str(), link), (values.data_type().name(), LinkKind::Dataset));
            let dataset = group.dataset(&name).unwrap();
            assert_eq!(dataset.shape().unwrap(), shape);
            assert_eq!(dataset.chunk().unwrap(), chunks[n]);
            assert_eq!(dataset.data_type().unwrap(), values.data_type());
            assert_eq!(dataset.index_kind().unwrap(), kind);
            assert!(!dataset.is_appendable().unwrap());
            let mut all = Values::new(values.data_type());
            dataset.read_region(&Region::whole(&shape), &mut all).unwrap();
            assert_eq!(&all, values);
            // the elements [1..3, 2, 4] are 1 + 3 * 2 + 15 * 4 and the one after
            let part = Region { start: Shape::from([1, 2, 4]), shape: Shape::from([2, 1, 1]) };
            dataset.read_region(&part, &mut all).unwrap();
            let mut expected = values.clone();
            expected.extend_from(values, 67..69).unwrap();
            assert_eq!(all, expected);
        }
    }
}

#[test]
fn same_input_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = dir.path().join(name);
        let file = File::create(&path).unwrap();
        let group = file.root().unwrap().create_group("MAIN").unwrap();
        group.set_attribute("readme", &Attribute::string("x")).unwrap();
        let row = group.create_dataset("row", &spec(DataType::Int64, &Shape::from([4]), None)).unwrap();
        row.write_region(&Region::whole(&Shape::from([4])), &Values::Int64(vec![0, 1, 2, 3])).unwrap();
        row.make_scale("row").unwrap();
        let names = group.create_dataset("NAME", &spec(DataType::String, &Shape::from([4]), None)).unwrap();
        names.attach_scale(0, &row).unwrap();
        group.create_dimension("dim_0", 3).unwrap();
        file.close().unwrap();
        std::fs::read(path).unwrap()
    };
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as u32;
    let start = now();
    let first = write("a.h5");
    // HDF5 would store seconds, in four bytes; two files of one second would be the same
    // nevertheless
    let is_in_file = |time: u32| first.windows(4).any(|bytes| bytes == time.to_le_bytes());
    assert!(!(start..=now()).any(is_in_file), "the time is in the file");
    assert_eq!(first, write("b.h5"));
    assert_eq!(first[8], 3, "superblock version");
}

/// Makes a growing dataset, and writes its rows in chunks of ten that are encoded here.
fn write_chunks(root: &Group, name: &str, compression: Compression, values: &[i32]) {
    let spec = DatasetSpec {
        element: DataType::Int,
        shape: &Shape::from([4, 0]),
        chunk: Some(Shape::from([4, 10])),
        appendable: true,
        compression,
    };
    let dataset = root.create_dataset(name, &spec).unwrap();
    let pipeline = dataset.pipeline().unwrap().unwrap();
    let (mut scratch, mut stored) = (FilterScratch::default(), Vec::new());
    for rows in [10, 20, 25, 60] {
        dataset.set_extent(rows).unwrap();
    }
    for (number, part) in values.chunks(40).enumerate() {
        let mut padded = part.to_vec();
        padded.resize(40, -1);
        let bytes = Values::Int(padded);
        pipeline.encode(&mut scratch, &bytes.le_bytes().unwrap(), &mut stored).unwrap();
        dataset.write_chunk(&[0, number as u64], &stored, 0).unwrap();
    }
    assert_eq!(dataset.write_chunk(&[0], &stored, 0).unwrap_err().kind(), ErrorKind::Usage);
}

/// Reads the rows that `write_chunks` wrote, by libhdf5, in chunks and as they are stored.
fn check_chunks(dataset: &Dataset, source: Arc<dyn crate::io::ReadAt>, values: &[i32]) {
    let mut all = Values::new(DataType::Int);
    let rows = |start, rows| Region { start: Shape::from([0, start]), shape: Shape::from([4, rows]) };
    dataset.read_region(&rows(0, 25), &mut all).unwrap();
    assert_eq!(all, Values::Int(values.to_vec()));
    all.clear();
    dataset.read_region(&rows(29, 31), &mut all).unwrap();
    assert_eq!(all, Values::Int([vec![-1; 4], vec![0; 120]].concat()));

    let mut chunks = dataset.chunks_of_rows(u64::MAX).unwrap();
    chunks.sort_by_key(|chunk| chunk.index[1]);
    assert_eq!(chunks.iter().map(|chunk| chunk.index.to_vec()).collect::<Vec<_>>(), [[0, 0], [0, 1], [0, 2]]);
    let reader = ChunkReader::new(dataset, source).unwrap().unwrap();
    let mut read = Values::new(DataType::Int);
    for index in 0..4 {
        reader.read_chunk(&[0, index], &mut read).unwrap();
    }
    let mut expected = values.to_vec();
    expected.resize(120, -1);
    expected.resize(160, 0);
    assert_eq!(read, Values::Int(expected.clone()));
    let mut raw = vec![7; 640];
    reader.read_raw(0, &mut raw).unwrap();
    assert_eq!(raw, *Values::Int(expected).le_bytes().unwrap());
}

#[test]
fn appending_and_chunks_of_our_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("append.h5");
    let file = File::create(&path).unwrap();
    let values: Vec<i32> = (0..4 * 25).map(|i| i * i).collect();
    let root = file.root().unwrap();
    write_chunks(&root, "plain", Compression::NONE, &values);
    write_chunks(&root, "deflated", Compression::gzip(4), &values);
    let plain = root.dataset("plain").unwrap();
    assert_eq!(plain.write_chunk(&[0, 0], &[1, 2, 3], 0).unwrap_err().kind(), ErrorKind::Usage);
    drop((plain, root));
    file.close().unwrap();

    let file = File::open(&path).unwrap();
    let source: Arc<dyn crate::io::ReadAt> = Arc::new(FileSource::open(&path).unwrap());
    for (name, filters) in [("plain", vec![]), ("deflated", vec!["shuffle", "deflate(4)"])] {
        let dataset = file.root().unwrap().dataset(name).unwrap();
        assert_eq!(dataset.shape().unwrap(), Shape::from([4, 60]));
        assert!(dataset.is_appendable().unwrap());
        assert_eq!(dataset.index_kind().unwrap(), IndexKind::ExtensibleArray);
        assert_eq!(dataset.filters().unwrap(), filters);
        check_chunks(&dataset, source.clone(), &values);
    }
}

#[test]
fn libhdf5_filters_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("filtered.h5");
    let shape = Shape::from([7, 100]);
    let file = File::create(&path).unwrap();
    for values in samples(700).into_iter().filter(|values| values.data_type() != DataType::String) {
        let element = values.data_type();
        let compression = Compression::gzip(6);
        let spec = DatasetSpec { compression, ..spec(element, &shape, Some(Shape::from([7, 30]))) };
        let dataset = file.root().unwrap().create_dataset(element.name(), &spec).unwrap();
        dataset.write_region(&Region::whole(&shape), &values).unwrap();
    }
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let source = Arc::new(FileSource::open(&path).unwrap());
    for values in samples(700).into_iter().filter(|values| values.data_type() != DataType::String) {
        let dataset = file.root().unwrap().dataset(values.data_type().name()).unwrap();
        let reader = ChunkReader::new(&dataset, source.clone()).unwrap().unwrap();
        let mut read = Values::new(values.data_type());
        (0..4).for_each(|index| reader.read_chunk(&[0, index], &mut read).unwrap());
        let mut whole = Values::new(values.data_type());
        whole.extend_from(&read, 0..700).unwrap();
        assert_eq!(whole, values);
        assert!(dataset.stored_bytes() > 0);
    }
}

#[test]
fn attributes_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attributes.h5");
    let file = File::create(&path).unwrap();
    let mut expected = Vec::new();
    {
        let root = file.root().unwrap();
        let dataset = root.create_dataset("d", &spec(DataType::Int, &Shape::from([1]), None)).unwrap();
        for values in samples(9) {
            let name = values.data_type().name();
            let mut one = Values::new(values.data_type());
            one.extend_from(&values, 3..4).unwrap();
            expected.push((format!("{name} array"), Attribute::Array(values)));
            expected.push((name.to_owned(), Attribute::Scalar(one)));
        }
        expected.push(("empty".into(), Attribute::string("")));
        expected.push(("none".into(), Attribute::Array(Values::String(vec![]))));
        expected.push(("no numbers".into(), Attribute::Array(Values::Double(vec![]))));
        expected.push(("long".into(), Attribute::string("x".repeat(200_000))));
        expected.push(("many".into(), Attribute::Array(Values::Double(vec![1.5; 30_000]))));
        for (name, value) in &expected {
            root.set_attribute(name, &Attribute::string("replaced")).unwrap();
            root.set_attribute(name, value).unwrap();
            dataset.set_attribute(name, value).unwrap();
        }
        for bad in ["a\0b".into(), bstr::BString::from(vec![0xff])] {
            assert_eq!(root.set_attribute("bad", &Attribute::string(bad)).unwrap_err().kind(), ErrorKind::Usage);
        }
    }
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let root = file.root().unwrap();
    assert_eq!(root.attributes().unwrap(), expected.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    for (name, value) in expected {
        let value = match value {
            Attribute::Array(Values::Bool(v)) => {
                Attribute::Array(Values::Short(v.into_iter().map(i16::from).collect()))
            }
            Attribute::Scalar(Values::Bool(v)) => {
                Attribute::Scalar(Values::Short(v.into_iter().map(i16::from).collect()))
            }
            other => other,
        };
        assert_eq!(root.attribute(&name).unwrap().as_ref(), Some(&value), "{name}");
        assert_eq!(root.dataset("d").unwrap().attribute(&name).unwrap(), Some(value), "{name}");
    }
    assert_eq!(root.attribute("absent").unwrap(), None);
}

#[test]
fn errors_say_where_and_what() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text.h5");
    std::fs::write(&path, "not HDF5 at all").unwrap();
    let error = File::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert!(error.to_string().contains("text.h5: the file is not an HDF5 file"), "{error}");
    assert_eq!(File::open(&dir.path().join("absent.h5")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(File::create(&dir.path().join("absent/x.h5")).unwrap_err().kind(), ErrorKind::NotFound);

    let file = File::create(&dir.path().join("x.h5")).unwrap();
    let root = file.root().unwrap();
    let group = root.create_group("MAIN").unwrap();
    assert_eq!(root.create_group("MAIN").unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(root.create_group("a/b").unwrap_err().kind(), ErrorKind::Usage);
    let error = group.dataset("DATA").unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, "dataset /MAIN/DATA: there is none"));
    let shape = Shape::from([2, 3]);
    for (chunk, appendable) in [(Some([3, 3]), false), (Some([0, 1]), false), (None, true)] {
        let spec = DatasetSpec { appendable, ..spec(DataType::Int, &shape, chunk.map(Shape::from)) };
        assert_eq!(group.create_dataset("DATA", &spec).unwrap_err().kind(), ErrorKind::Usage);
    }
    assert!(!group.has("DATA"));
    let data = group.create_dataset("DATA", &spec(DataType::Int, &shape, None)).unwrap();
    let error = data.read_region(&Region::whole(&shape), &mut Values::new(DataType::Float)).unwrap_err();
    assert_eq!(error.to_string(), "dataset /MAIN/DATA: float values where the dataset has int");
    assert!(data.write_region(&Region::whole(&shape), &Values::Int(vec![1])).is_err());
    assert!(data.set_extent(4).is_err());
    file.close().unwrap();
    // after the end of the file: errors, no more
    assert!(data.shape().is_err());
    assert!(group.links().is_err());
}

#[test]
fn without_elements() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(&dir.path().join("x.h5")).unwrap();
    let root = file.root().unwrap();
    for (name, shape) in [("rows", Shape::from([4, 0])), ("cells", Shape::from([0, 4]))] {
        let spec = DatasetSpec {
            compression: Compression::gzip(1),
            ..spec(DataType::Float, &shape, Some(Shape::from([1, 1])))
        };
        let dataset = root.create_dataset(name, &spec).unwrap();
        let mut out = Values::new(DataType::Float);
        dataset.read_region(&Region::whole(&shape), &mut out).unwrap();
        assert!(out.is_empty());
        // h5repack needs chunks, and the axis without extent may grow
        assert_eq!(dataset.index_kind().unwrap(), IndexKind::ExtensibleArray);
        assert!(dataset.filters().unwrap().is_empty());
        assert!(dataset.chunks_of_rows(u64::MAX).unwrap().is_empty());
    }
    let scalar = root.create_dataset("scalar", &spec(DataType::String, &Shape::scalar(), None)).unwrap();
    let text = Values::String(vec!["one".into()]);
    scalar.write_region(&Region::whole(&Shape::scalar()), &text).unwrap();
    let mut out = Values::new(DataType::String);
    scalar.read_region(&Region::whole(&Shape::scalar()), &mut out).unwrap();
    assert_eq!(out, text);
    let unwritten = root.create_dataset("s", &spec(DataType::String, &Shape::from([2]), None)).unwrap();
    unwritten.read_region(&Region::whole(&Shape::from([2])), &mut out).unwrap();
    assert_eq!(out, Values::String(vec!["one".into(), "".into(), "".into()]));
}

#[test]
fn scales_on_the_right_axes() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(&dir.path().join("x.h5")).unwrap();
    let main = file.root().unwrap().create_group("MAIN").unwrap();
    let row = main.create_dataset("row", &spec(DataType::Int64, &Shape::from([6]), None)).unwrap();
    row.make_scale("row").unwrap();
    let dim = main.create_dimension("dim_0", 5).unwrap();
    let data = main.create_dataset("DATA", &spec(DataType::Float, &Shape::from([5, 6]), None)).unwrap();
    data.attach_scale(0, &dim).unwrap();
    data.attach_scale(1, &row).unwrap();
    assert_eq!(data.attach_scale(2, &row).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(row.attribute("CLASS").unwrap(), Some(Attribute::string("DIMENSION_SCALE")));
    assert_eq!(row.attribute("NAME").unwrap(), Some(Attribute::string("row")));
    let name = Attribute::string("This is a netCDF dimension but not a netCDF variable.          5");
    assert_eq!(dim.attribute("NAME").unwrap(), Some(name));
    assert_eq!(dim.stored_bytes(), 0);
    let attributes = |name: &str| main.header(name).unwrap().attributes().unwrap();
    assert!(attributes("row").iter().all(|name| ["CLASS", "NAME", "REFERENCE_LIST"].contains(&name.as_str())));
    assert_eq!(attributes("DATA"), ["DIMENSION_LIST"]);
    assert_eq!(data.attribute("DIMENSION_LIST").unwrap_err().kind(), ErrorKind::Unsupported);
}

/// Places are known before any chunk is written, in row-major order; large ones are aligned.
#[test]
fn blocks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.h5");
    let file = File::create_aligned(&path).unwrap();
    let root = file.root().unwrap();
    let (small, large) = (Shape::from([7, 10, 50]), Shape::from([8, 100, 3000]));
    let make = |name: &str, shape: &Shape, chunk: [u64; 3]| {
        let spec = spec(DataType::Float, shape, Some(Shape::from(chunk)));
        root.create_allocated(name, &spec, Allocation::Block).unwrap()
    };
    for (name, shape, chunk) in
        [("a", &small, [3, 10, 8]), ("b", &large, [8, 33, 100]), ("c", &small, [7, 10, 50]), ("d", &large, [4, 100, 7])]
    {
        let dataset = make(name, shape, chunk);
        let address = dataset.block().unwrap().unwrap();
        let grid = crate::grid::Grid { shape: shape.clone(), chunk: Shape::from(chunk) };
        let (bytes, count) = (chunk.iter().product::<u64>() * 4, grid.counts().elements().unwrap());
        assert_eq!(dataset.index_kind().unwrap(), if count == 1 { IndexKind::Single } else { IndexKind::Implicit });
        assert!(bytes * count < ALIGNED_BYTES || address % (1 << 20) == 0, "{name} at {address}");
        let chunks = dataset.chunks_of_rows(u64::MAX).unwrap();
        assert_eq!(chunks.len() as u64, count);
        assert!(chunks.iter().all(|info| info.address == address + grid.number(&info.index) * bytes));
    }
    let plain = root.create_dataset("plain", &spec(DataType::Float, &small, Some(Shape::from([7, 10, 9])))).unwrap();
    assert_eq!(plain.block().unwrap(), None);
    let gzip = DatasetSpec { compression: Compression::gzip(1), ..spec(DataType::Float, &small, Some(small.clone())) };
    let error = root.create_allocated("gzip", &gzip, Allocation::Block).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// Headers of HDF5 1.8 have no checksums: extents are changed, which the block contradicts.
#[test]
fn extents_of_a_block_allocate_no_more_than_the_file_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.h5");
    let file = File::create_for(Bounds::Earliest, &path).unwrap();
    let root = file.root().unwrap();
    let data = root.create_dataset("x", &spec(DataType::Double, &Shape::from([4321]), None)).unwrap();
    data.write_region(&Region::whole(&Shape::from([4321])), &Values::Double(vec![1.5; 4321])).unwrap();
    drop((data, root));
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let extents = 4321u64.to_le_bytes();
    let places: Vec<usize> = (0..bytes.len() - 8).filter(|&at| bytes[at..at + 8] == extents).collect();
    assert_eq!(places.len(), 2, "the extent and the greatest one");
    let huge = Shape::from([1 << 40]);
    for at in places {
        bytes[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let root = File::open(&path).unwrap().root().unwrap();
    let data = root.dataset("x").unwrap();
    assert_eq!(data.shape().unwrap(), huge);
    let error = data.read_region(&Region::whole(&huge), &mut Values::new(DataType::Double)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let elements = root.any_elements("x", &Served::new(dir.path(), &|_| true)).unwrap();
    assert_eq!(elements.check_backed(8 << 40).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn nothing_is_allocated_that_the_file_does_not_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(&dir.path().join("x.h5")).unwrap();
    let shape = Shape::from([1 << 40]);
    let dataset = file.root().unwrap().create_dataset("x", &spec(DataType::Double, &shape, None)).unwrap();
    let error = dataset.read_region(&Region::whole(&shape), &mut Values::new(DataType::Double)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

/// A killed writer leaves a file that is shorter than its superblock says.
#[test]
fn a_file_that_grows_is_read_whatever_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("live.h5"), dir.path().join("copy.h5"));
    let file = File::create_for_live(&path).unwrap();
    let element = Element::Number(DataType::Double);
    let root = file.root().unwrap();
    root.create_live("x", &LiveSpec { element, cell: &Shape::scalar(), chunk_rows: 1000 }).unwrap();
    drop(root);
    let file = file.go_live().unwrap();
    let dataset = file.dataset("/x").unwrap();
    dataset.append(&1.5f64.to_le_bytes()).unwrap();
    file.flush().unwrap();
    // the rest of the chunk has its place and was not written
    std::fs::copy(&path, &copy).unwrap();
    let target = std::fs::File::options().write(true).open(&copy).unwrap();
    let end = target.metadata().unwrap().len();
    assert_eq!(Superblock::read(&FileSource::open(&copy).unwrap()).unwrap().end(), end);
    target.set_len(end - 7000).unwrap();
    let error = File::open(&copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert_eq!(LiveFile::open(&copy).unwrap_err().kind(), ErrorKind::Locked);
    let shared = File::open_shared(&copy).unwrap();
    let mut found = Values::new(DataType::Double);
    shared.root().unwrap().dataset("x").unwrap().read_region(&Region::whole(&Shape::from([1])), &mut found).unwrap();
    assert_eq!(found, Values::Double(vec![1.5]));
    // a closed one that is short is damaged
    drop((dataset, shared));
    file.close().unwrap();
    assert!(File::open_shared(&path).is_ok());
    let target = std::fs::File::options().write(true).open(&path).unwrap();
    target.set_len(end - 7000).unwrap();
    assert_eq!(File::open_shared(&path).unwrap_err().kind(), ErrorKind::Format);
}

#[test]
fn attribute_names_in_no_character_set() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("names.h5");
    let file = File::create_for(Bounds::Earliest, &path).unwrap();
    file.root().unwrap().set_attribute("attribute", &Attribute::string("text")).unwrap();
    file.close().unwrap();
    // the character set is the byte before the name; HDF5 knows 0 and 1
    let mut bytes = std::fs::read(&path).unwrap();
    let name = bytes.windows(10).position(|window| window == b"attribute\0").unwrap();
    assert_eq!(bytes[name - 1], 1);
    bytes[name - 1] = 0x7f;
    std::fs::write(&path, &bytes).unwrap();
    let names = File::open(&path).unwrap().root().unwrap().attributes();
    assert_eq!(names.unwrap(), ["attribute"]);
}

#[test]
fn writers_wait_for_programs_that_are_opening_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.h5");
    File::create_for_live(&path).unwrap().close().unwrap();
    for open in [
        |path: &Path| LiveFile::open(path).map(drop),
        |path: &Path| File::edit_live(path).map(drop),
        |path: &Path| File::edit(path, Bounds::V110).map(drop),
    ] {
        let reader = std::fs::File::open(&path).unwrap();
        reader.lock_shared().unwrap();
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| open(&path));
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(!opened.is_finished());
            reader.unlock().unwrap();
            opened.join().unwrap().unwrap();
        });
    }
    // but not for ever
    let reader = std::fs::File::open(&path).unwrap();
    reader.lock_shared().unwrap();
    assert_eq!(LiveFile::open(&path).unwrap_err().kind(), ErrorKind::Locked);
}

/// libhdf5 gets no second try at what the check refuses.
#[test]
fn strings_in_a_heap_of_another_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    let shape = Shape::from([2]);
    let spec = DatasetSpec {
        element: DataType::String,
        shape: &shape,
        chunk: None,
        appendable: false,
        compression: Compression::NONE,
    };
    let strings = Values::String(vec!["one".into(), "two".into()]);
    let dataset = file.root().unwrap().create_dataset("x", &spec).unwrap();
    dataset.write_region(&Region::whole(&shape), &strings).unwrap();
    drop(dataset);
    file.close().unwrap();
    let read = || {
        let mut found = Values::new(DataType::String);
        let dataset = File::open(&path)?.root()?.dataset("x")?;
        dataset.read_region(&Region::whole(&shape), &mut found).map(|()| found)
    };
    assert_eq!(read().unwrap(), strings);
    let mut bytes = std::fs::read(&path).unwrap();
    let heap = bytes.windows(4).position(|window| window == b"GCOL").unwrap();
    bytes[heap + 4] = 9;
    std::fs::write(&path, bytes).unwrap();
    let error = read().unwrap_err();
    assert!(error.to_string().contains("version 9 is not one of [1]"), "{error}");
}
