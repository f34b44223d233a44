//! Wrong calls, damaged chunks, and links and datasets that lead nowhere.

use super::*;
use crate::error::ErrorKind::{Format, Limit, Locked, NotFound, Unsupported, Usage};
use crate::error::Fails;

/// A file that is open for writing, and its folder.
fn new_file() -> (tempfile::TempDir, File) {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(&folder.path().join("x.h5")).unwrap();
    (folder, file)
}

#[test]
fn attributes_and_names_outside_the_data_model_are_refused() {
    let (folder, file) = new_file();
    let root = file.root().unwrap();
    let two = Attribute::Scalar(Values::Int(vec![1, 2]));
    root.set_attribute("a", &two).fails(Usage, "a scalar attribute has one value, found 2");
    root.written().unwrap().raw().new_attr::<u64>().create("u64").unwrap().write_scalar(&u64::MAX).unwrap();
    root.attribute("u64").fails(Unsupported, "attribute u64: the attribute has a number of 2^63 or more");
    root.attribute("a\0b").fails(Usage, "the name \"a\\0b\" contains NUL");
    File::create(&folder.path().join("a\0b")).fails(Usage, "the path contains NUL");
}

#[test]
fn rows_that_a_dataset_lacks_are_refused() {
    let (_folder, file) = new_file();
    let root = file.root().unwrap();
    let scalar = root.create_dataset("scalar", &spec(DataType::Int, &Shape::scalar(), None)).unwrap();
    let data = root.create_dataset("data", &spec(DataType::Int, &Shape::from([2, 3]), None)).unwrap();
    let int = StoredElement::Int(4);
    scalar.read_rows(&int, 0..1, &mut Vec::new()).fails(Unsupported, "dataset /scalar: the dataset has no axes");
    scalar.set_extent(4).fails(Usage, "dataset /scalar: a scalar cannot grow");
    let says = "dataset /data: rows 2 to 9 are asked for, the dataset has 3";
    data.read_rows(&int, 2..9, &mut Vec::new()).fails(Usage, says);
    root.written().unwrap().raw().new_dataset::<i32>().shape(hdf5::Extents::Null).create("null").unwrap();
    root.dataset("null").unwrap().shape().fails(Unsupported, "dataset /null: the dataset has a null dataspace");
}

#[test]
fn elements_that_do_not_fit_are_refused() {
    let (_folder, file) = new_file();
    let root = file.root().unwrap();
    let rows = ByteRows { row_bytes: 0, rows: 3, appendable: false, filters: ByteFilters::default() };
    let says = "3 chunks of 0 bytes cannot be stored: a chunk has 1 to 2^32 - 1 bytes";
    root.create_byte_rows("b", &rows).fails(Usage, says);
    let (cell, chunk) = (Shape::from([2, 3]), Shape::from([2]));
    let elements = ElementSpec {
        element: &StoredElement::Int(4),
        shape: &cell,
        chunk: &chunk,
        compression: Compression::NONE,
        blosc: None,
        fill: None,
    };
    root.create_elements("e", &elements).fails(Usage, "chunks [2] do not fit a dataset of shape [2, 3]");
    let elements = ElementSpec { chunk: &cell, fill: Some(&[1]), ..elements };
    root.create_elements("e", &elements).fails(Usage, "the fill value has 1 bytes, expected 4");
    let elements = ElementSpec { element: &StoredElement::Int(3), fill: None, ..elements };
    root.create_elements("e", &elements).fails(Unsupported, "HDF5 has no elements Int(3)");
}

#[test]
fn paths_that_lead_to_other_objects_are_refused() {
    let (_folder, file) = new_file();
    let root = file.root().unwrap();
    for (name, target) in [("circle", "/circle"), ("nothing", "/none")] {
        root.written().unwrap().raw().link_soft(target, name).unwrap();
    }
    let says = "the path leads through more than 16 links, or through links in a circle";
    root.group("circle").fails(Format, says);
    let says = "soft link /nothing to /none: it is a soft link whose target is missing";
    root.dataset("nothing").fails(Format, says);
    root.dataset("absent").fails(NotFound, "dataset /absent: there is none");
    root.dataset("/").fails(Format, "the path leads to a group, expected a dataset");
}

/// A chunk may be too large to be decoded as a whole, and strings have a heap of their own.
#[test]
fn elements_that_cannot_be_served_as_bytes_are_refused() {
    let (folder, file) = new_file();
    let root = file.root().unwrap();
    root.create_dataset("text", &spec(DataType::String, &Shape::from([2]), None)).unwrap();
    let large = Shape::from([300 << 20]);
    let spec = DatasetSpec { compression: Compression::gzip(1), ..spec(DataType::UChar, &large, Some(large.clone())) };
    root.create_dataset("large", &spec).unwrap();
    drop(root);
    file.close().unwrap();
    let root = File::open(&folder.path().join("x.h5")).unwrap().root().unwrap();
    let served = Served::new(folder.path(), &|_| true);
    let says = "large: a chunk with filters has 314572800 bytes; the limit is 268435456";
    root.any_elements("large", &served).fails(Limit, says);
    let strings = root.any_elements("text", &served).unwrap();
    let says = "elements of variable length, and references, have no bytes of their own";
    strings.read_bytes(&[Steps { start: 0, step: 1, count: 2 }]).fails(Unsupported, says);
}

#[test]
fn closed_files_are_opened_for_reading_unless_locked() {
    let (folder, file) = new_file();
    file.close().unwrap();
    let path = folder.path().join("x.h5");
    let root = File::open(&path).unwrap().root().unwrap();
    root.create_group("new").fails(Usage, "the file is open for reading");
    drop(root);
    let other = std::fs::File::open(&path).unwrap();
    other.lock().unwrap();
    File::open(&path).fails(Locked, "another program holds HDF5's lock on the file");
}

#[test]
fn wrong_calls_of_the_lowest_level_are_refused() {
    let (_folder, file) = new_file();
    let root = file.root().unwrap();
    let shape = Shape::from([2, 3]);
    let data = root.create_dataset("data", &spec(DataType::Int, &shape, Some(shape.clone()))).unwrap();
    let space = sys::dataspace(&[3, 2], false).unwrap();
    sys::select_steps(&space, &[0], &[1], &[1]).fails(Usage, "the selection has 1 axes, the dataspace 2");
    sys::number_type(DataType::String).fails(Usage, "string elements have no fixed size in HDF5");
    sys::stored_chunk(data.library().unwrap().raw(), &[0]).fails(Usage, "the dataset has no chunks with 1 axes");
    let memory = sys::memory(&[3, 2]).unwrap();
    let target = sys::Target::Dataset { dataset: data.library().unwrap().raw(), memory: &memory, file: &space };
    let int = sys::number_type(DataType::Int).unwrap();
    sys::read(&target, &int, &mut [0; 5]).fails(Usage, "a buffer of 5 bytes does not fit 6 HDF5 values");
    sys::read_strings(&target, &int, &mut Vec::new()).fails(Usage, "strings are asked for, HDF5 stores other elements");
    let strings = sys::Strings::new(&["a".into()]).unwrap();
    sys::write_strings(&target, sys::Charset::Utf8, &strings).fails(Usage, "1 strings were given, expected 6");
    let creation = hdf5::dataset::DatasetCreate::build().finish().unwrap();
    let text = sys::string_type(sys::Charset::Utf8).unwrap();
    sys::fill(&creation, &text).fails(Unsupported, "the fill value has a variable length");
    // arrays of arrays of arrays
    let mut nested = sys::number_type(DataType::Int).unwrap();
    for _ in 0..40 {
        nested = sys::array_type(&nested, &[1]).unwrap();
    }
    sys::describe(&nested).fails(Format, "more than 32 types are within each other");
    let access = hdf5::file::FileAccess::build().core_options(1 << 16, false).finish().unwrap();
    let create = hdf5::file::FileCreate::build().finish().unwrap();
    let memory = sys::create_memory_file(std::path::Path::new("in memory"), &create, &access).unwrap();
    sys::descriptor(&memory).fails(Unsupported, "a file in memory does not have a descriptor");
}

#[test]
fn wrong_rows_of_live_datasets_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create_for_live(&folder.path().join("live.h5")).unwrap();
    let root = file.root().unwrap();
    let shape = Shape::from([2, 3]);
    let element = Element::Number(DataType::Int);
    root.create_live("rows", &LiveSpec { element, cell: &Shape::scalar(), chunk_rows: 10 }).unwrap();
    root.create_dataset("fixed", &spec(DataType::Int, &shape, None)).unwrap();
    let parts = DatasetSpec { appendable: true, ..spec(DataType::Int, &shape, Some(Shape::from([1, 3]))) };
    root.create_dataset("parts", &parts).unwrap();
    drop(root);
    let live = file.go_live().unwrap();
    live.dataset("/fixed").fails(Usage, "no rows can be appended: the first axis has a limit");
    live.dataset("/parts").fails(Usage, "rows can be appended to chunks of whole rows without filters only");
    let rows = live.dataset("/rows").unwrap();
    rows.append(&[0; 12]).unwrap();
    rows.write(2, &[0; 8])
        .fails(Usage, "8 bytes from row 2 on exceed the 3 rows of the dataset, or are not whole rows");
    rows.read(2, 2, &mut Vec::new()).fails(Usage, "2 rows from 2 on exceed the 3 rows of the dataset");
}

#[test]
fn chunks_that_are_damaged_or_cut_off() {
    let decode = |id: i32, bytes: &[u8]| codec::find(id).unwrap().decoder().decode(bytes, 100, &mut Vec::new());
    let (lz4, blosc) = (32004, 32001);
    decode(lz4, &[0; 5]).fails(Format, "the LZ4 chunk has no header");
    let no_blocks = [&7u64.to_be_bytes()[..], &0u32.to_be_bytes()].concat();
    decode(lz4, &no_blocks).fails(Format, "the LZ4 chunk is not empty but has blocks of 0 bytes");
    decode(blosc, &[0; 5]).fails(Format, "the chunk is shorter than the header of Blosc");
    let blosc = codec::find(blosc).unwrap();
    codec::run(blosc, false, &[], b"x").fails(Unsupported, "blosc is only read");
    let (mut scratch, mut out) = (FilterScratch::default(), Vec::new());
    let pipeline = Pipeline::new(vec![Filter::Codec { codec: blosc, level: 0 }]);
    pipeline.encode(&mut scratch, b"x", &mut out).fails(Unsupported, "blosc is not written, only read");
    let pipeline = Pipeline::new(vec![Filter::Fletcher32]);
    pipeline
        .decode(&mut scratch, 0, b"x", 1, &mut out)
        .fails(Format, "the chunk has 1 bytes, expected at least the 4 of its checksum");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.h5");
    let file = File::create(&path).unwrap();
    let shape = Shape::from([1000]);
    let data =
        file.root().unwrap().create_dataset("data", &spec(DataType::Int, &shape, Some(Shape::from([500])))).unwrap();
    data.write_region(&Region::whole(&shape), &Values::Int(vec![7; 1000])).unwrap();
    drop(data);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let data = file.root().unwrap().dataset("data").unwrap();
    let start = std::fs::read(&path).unwrap()[..1500].to_vec();
    ChunkReader::new(&data, Arc::new(start)).fails(Format, "dataset /data: chunk [0] ends past the end of the file");
}

/// Each virtual dataset has one source, in the same file.
struct Chain(fn(&str) -> String);

impl elsewhere::Objects for Chain {
    fn inside(&self, path: &str) -> crate::error::Result<(String, Option<Elsewhere>)> {
        Ok((path.to_owned(), Some(Elsewhere::Virtual(vec![(".".to_owned(), (self.0)(path))]))))
    }

    fn outside(&mut self, _: &std::path::Path, _: &str) -> crate::error::Result<()> {
        Ok(())
    }
}

#[test]
fn virtual_datasets_that_lead_on_and_on() {
    let check = |file: &str, source: &str, next: fn(&str) -> String| {
        let found = Elsewhere::Virtual(vec![(file.to_owned(), source.to_owned())]);
        elsewhere::check_elements(&Reach::File, "v", &found, &mut Chain(next))
    };
    check(".", "v0", |path| format!("{path}0"))
        .fails(Limit, "virtual datasets refer to virtual datasets: the limit is 8 levels");
    check(".", "w", |path| if path == "w" { "v".to_owned() } else { "w".to_owned() })
        .fails(Format, "virtual datasets refer to each other in a circle: v, w");
    for (file, place) in [(".", ".:d%b"), ("o.h5", "o.h5:d%b")] {
        let says = format!("virtual dataset over {place}: a pattern of names is not followed");
        check(file, "d%b", str::to_owned).fails(Unsupported, &says);
    }
    Reach::File.open(std::path::Path::new("o.h5")).fails(Usage, "no other files may be opened");
    Err::<(), _>(Elsewhere::UserDefined(70).refused())
        .fails(Unsupported, "user-defined link of class 70, which only the program that made it can follow");
}
