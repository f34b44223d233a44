//! The sample of formats/stman.md 1.9, and its damaged forms.

use super::*;
use crate::container::Memory;
use crate::error::{ErrorKind, Fails};
use crate::stman::ColumnSpec;
use crate::stman::samples::{self, bytes, column};
use crate::value::{Shape, Values};

const FILE: &str = "
    bebebebe 46000000 0d000000 'StandardStMan' 03000000 00 a1000000
    03000000 02000000 00000000 ffffffff
    01000000 02000000 00000000 01000000
    7e000000 01000000 00*438
    01000000 02000000 ffffffff 00000000
    05
    'short' 000000 05000000
    01000000 00000000 0f000000
    00*12 00*12
    'abcd' 'xy' 0000 00000000 00*4
    01000000 0f000000 18000000 00*36
    00*8 1000000000000000 00*16
    00000000 00000027 0000006a ffffffff
    'a longer string'
    00000001 00000002 00000001
    00000001 'p' 00000003 'qrs' 00*106
    ffffffff ffffffff
    bebebebe 7a000000 08000000 'SSMIndex' 01000000
    01000000 04000000 06000000
    28000000 10000000 'SimpleOrderedMap' 01000000 00000000 00000000 01000000
    19000000 05000000 'Block' 01000000 01000000 02000000
    19000000 05000000 'Block' 01000000 01000000 00000000
    00*27";

const ARRAYS: &str = "
    00000000 2800000000000000 00000000
    01000000 02000000 000000000000f83f 0000000000000440";

const INFO: &str = "
    bebebebe 00000070 00000003 'SSM' 00000002 00000003 'SSM'
    0000002d 00000005 'Block' 00000001 00000006 00000000 00000010 00000011 00000041 00000051 00000081
    0000002d 00000005 'Block' 00000001 00000006 00*24";

fn columns() -> Vec<ColumnSpec> {
    let mut columns = vec![
        column("I", DataType::Int, Storage::Scalar, None),
        column("B", DataType::Bool, Storage::Scalar, None),
        column("S", DataType::String, Storage::Scalar, None),
        column("F", DataType::String, Storage::Scalar, None),
        column("V", DataType::String, Storage::Indirect, None),
        column("A", DataType::Double, Storage::Indirect, None),
    ];
    columns[3].max_length = 4;
    columns
}

fn open_sample(file: Vec<u8>, arrays: Vec<u8>, info: &[u8]) -> Result<Box<dyn Manager>> {
    let files = Memory::new([("table.f0", file), ("table.f0i", arrays)]);
    open(&samples::args(&files, ByteOrder::Little, 3, &columns(), info))
}

fn read(manager: &dyn Manager, index: usize) -> Result<Values> {
    samples::read_both_ways(manager.column(index), 3, columns()[index].data_type)
}

#[test]
fn written_by_casacore() {
    assert_eq!(bytes(FILE).len(), 995);
    let manager = open_sample(bytes(FILE), bytes(ARRAYS), &bytes(INFO)).unwrap();
    assert_eq!(manager.name(), "SSM");
    let strings = |strings: &[&str]| Values::String(strings.iter().map(|&string| string.into()).collect());
    let read = |index| read(&*manager, index).unwrap();
    assert_eq!(read(0), Values::Int(vec![1, 2, -1]));
    assert_eq!(read(1), Values::Bool(vec![true, false, true]));
    assert_eq!(read(2), strings(&["short", "a longer string", ""]));
    assert_eq!(read(3), strings(&["abcd", "xy", ""]));
    assert_eq!(read(4), strings(&["p", "qrs"]));
    assert_eq!(read(5), Values::Double(vec![1.5, 2.5]));
    let shape = |index: usize, row| manager.column(index).cell_shape(row).unwrap();
    assert_eq!([shape(4, 0), shape(4, 1)], [Some(Shape::from([2])), None]);
    assert_eq!([shape(5, 0), shape(5, 1)], [None, Some(Shape::from([2]))]);
}

/// A hint of 2^32 + 5 buckets; what follows it is as in `FILE`.
const HEADER_4: &str = "
    bebebebe 4a000000 0d000000 'StandardStMan' 04000000 00 a1000000
    03000000 0500000001000000 00000000 ffffffff
    01000000 02000000 00000000 01000000
    7e000000 01000000 00*434";

#[test]
fn cache_size_of_version_4_has_64_bits() {
    let file = [bytes(HEADER_4), bytes(FILE)[512..].to_vec()].concat();
    let header = header::Header::decode(&file, ByteOrder::Little).unwrap();
    assert_eq!((header.buckets, header.cache, header.free, header.first_free), (3, 3, 0, -1));
    assert_eq!((header.first_index, header.last_heap, header.index_bytes, header.indices), (2, 1, 0x7e, 1));
    let [sample, old] = [bytes(FILE), file].map(|file| open_sample(file, bytes(ARRAYS), &bytes(INFO)).unwrap());
    for index in 0..6 {
        assert_eq!(read(&*old, index).unwrap(), read(&*sample, index).unwrap());
    }
    assert_eq!(old.parameters().integer("PERSCACHESIZE"), Some(3));
}

#[test]
fn rows_beyond_the_index_are_an_error() {
    let manager = open_sample(bytes(FILE), bytes(ARRAYS), &bytes(INFO)).unwrap();
    for index in 0..6 {
        let mut values = Values::new(columns()[index].data_type);
        let error = manager.column(index).read_rows(0..4, &mut values).unwrap_err();
        assert_eq!(
            error.to_string(),
            "table.f0 (StandardStMan): index at byte 834: row 3 is not stored: the index has rows 0 to 2"
        );
        let error = manager.column(index).read_cell(3, None, &mut values).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Format);
    }
}

#[test]
fn short_files_do_not_open() {
    let mut file = bytes(FILE);
    file.pop();
    let error = open_sample(file, bytes(ARRAYS), &bytes(INFO)).unwrap_err().to_string();
    assert!(error.starts_with("table.f0 (StandardStMan): the header announces 3 buckets"), "{error}");
}

#[test]
fn damage_is_an_error() {
    let [file, arrays, info] = [FILE, ARRAYS, INFO].map(bytes);
    let all = |manager: Box<dyn Manager>| (0..6).try_for_each(|index| read(&*manager, index).map(drop));
    samples::damage(&file, |file| all(open_sample(file, arrays.clone(), &info)?));
    samples::damage(&arrays, |arrays| all(open_sample(file.clone(), arrays, &info)?));
    samples::damage(&info, |info| all(open_sample(file.clone(), arrays.clone(), &info)?));
}

mod written {
    use super::*;
    use crate::aipsio::Encoder;
    use crate::container::Container;
    use crate::stman::samples::create_args;
    use crate::stman::{ManagerMut, model};
    use crate::value::Value;

    fn contents(files: &Memory, name: &str) -> Vec<u8> {
        crate::io::read_all(&*files.open(name).unwrap()).unwrap()
    }

    fn create(files: &Arc<Memory>, order: ByteOrder, columns: &[ColumnSpec], size: i32) -> Box<dyn ManagerMut> {
        let mut parameters = Record::default();
        parameters.set("BUCKETSIZE", Value::Scalar(Values::Int(vec![size])));
        let mut args = create_args(files, order, columns, &parameters);
        args.name = "SSM".into();
        write::create(&args).unwrap()
    }

    fn strings(strings: &[&str]) -> Values {
        Values::String(strings.iter().map(|&string| string.into()).collect())
    }

    fn fill(manager: &mut dyn ManagerMut) {
        manager.add_rows(3).unwrap();
        manager.write_rows(0, 0..3, &Values::Int(vec![1, 2, -1])).unwrap();
        manager.write_rows(1, 0..3, &Values::Bool(vec![true, false, true])).unwrap();
        manager.write_rows(2, 0..3, &strings(&["short", "a longer string", ""])).unwrap();
        manager.write_rows(3, 0..3, &strings(&["abcd", "xy", ""])).unwrap();
        manager.set_shape(4, 0, &Shape::from([2])).unwrap();
        manager.write_rows(4, 0..1, &strings(&["p", "qrs"])).unwrap();
        manager.set_shape(5, 1, &Shape::from([2])).unwrap();
        manager.write_cell(5, 1, None, &Values::Double(vec![1.5, 2.5])).unwrap();
    }

    #[test]
    fn as_casacore_writes() {
        let files = Arc::new(Memory::default());
        let mut manager = create(&files, ByteOrder::Little, &columns(), -4);
        fill(&mut *manager);
        assert_eq!(manager.flush().unwrap(), bytes(INFO));
        let file = contents(&files, "table.f0");
        // the set shape of V took less than the array did, and was given up
        assert_eq!(file, bytes(FILE));
        assert_eq!(contents(&files, "table.f0i"), bytes(ARRAYS));
    }

    /// `file` with a header of another version.
    fn with_version(file: &[u8], order: ByteOrder, version: u32) -> Vec<u8> {
        let header = header::Header::decode(&file, order).unwrap();
        let mut e = Encoder::new(order);
        e.root("StandardStMan", version);
        if version >= 3 {
            e.bool(order == ByteOrder::Big);
        }
        e.u32(header.bucket_bytes);
        e.u32(header.buckets);
        e.uint(u64::from(header.cache), version >= 4);
        e.u32(header.free);
        e.i32(header.first_free);
        e.u32(header.index_buckets);
        e.i32(header.first_index);
        if version >= 2 {
            e.u32(header.index_offset);
        }
        e.i32(header.last_heap);
        e.u32(header.index_bytes);
        e.u32(header.indices);
        e.end();
        let mut bytes = e.into_bytes();
        bytes.resize(512, 0);
        [bytes, file[512..].to_vec()].concat()
    }

    #[test]
    fn headers_of_every_version() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let files = Arc::new(Memory::default());
            let mut manager = create(&files, order, &columns(), -4);
            fill(&mut *manager);
            let info = manager.flush().unwrap();
            let [file, arrays] = ["table.f0", "table.f0i"].map(|name| contents(&files, name));
            let open = |file: Vec<u8>| {
                let files = Memory::new([("table.f0", file), ("table.f0i", arrays.clone())]);
                let manager = open(&samples::args(&files, order, 3, &columns(), &info))?;
                (0..6).map(|index| read(&*manager, index)).collect::<Result<Vec<_>>>()
            };
            let written = open(file.clone()).unwrap();
            for version in 1..=5 {
                let found = open(with_version(&file, order, version));
                match version {
                    5 => found.fails(ErrorKind::Format, "StandardStMan version 5, known are 1 to 4"),
                    1 | 2 if order == ByteOrder::Little => {
                        found.fails(ErrorKind::Format, "big endian: true, but the table is little endian");
                    }
                    _ => assert_eq!(found.unwrap(), written, "version {version}"),
                }
            }
        }
    }

    #[test]
    fn holds_what_was_written() {
        let sizes = [0, -5, 130, 1000].map(|size| [("BUCKETSIZE", size)]);
        model::random_edits(&KIND, 40, &sizes.each_ref().map(|set| &set[..]));
    }
}

#[test]
fn calls_that_do_not_fit() {
    let manager = open_sample(bytes(FILE), bytes(ARRAYS), &bytes(INFO)).unwrap();
    // scalars, strings of fixed length, arrays of strings
    for column in [2, 3, 4] {
        let read = manager.column(column).read_rows(0..1, &mut Values::new(DataType::Int));
        read.fails(ErrorKind::Usage, "strings are read into strings");
    }
    let fewer = header::Info { name: "SSM".into(), offsets: vec![0; 5], sets: vec![0; 6] }.encode();
    open_sample(bytes(FILE), bytes(ARRAYS), &fewer)
        .fails(ErrorKind::Format, "5 columns described, the table has 6 in this manager");

    let (files, parameters, columns) = (Arc::new(Memory::default()), Record::default(), columns());
    let args = samples::create_args(&files, ByteOrder::Little, &columns, &parameters);
    let mut manager = crate::stman::create("StandardStMan".into(), &args).unwrap();
    manager.add_rows(1).unwrap();
    manager.write_rows(3, 0..1, &Values::String(vec!["a\0".into()])).fails(
        ErrorKind::Usage,
        "table.f0 (StandardStMan): column F, row 0: a string of 2 bytes, where up to 4 without NUL are stored",
    );
    for column in [4, 5] {
        manager
            .set_shape(column, 0, &Shape::from([1 << 31]))
            .fails(ErrorKind::Limit, "an array of shape [2147483648]: extents have 31 bits");
    }
}
