//! The sample of formats/stman.md 4.2, and its damaged forms.

use super::*;
use crate::container::Memory;
use crate::stman::samples::{self, bytes, column};
use crate::value::{Shape, Values};

const FILE: &str = "
    bebebebe 00000190 0000000b 'StManAipsIO' 00000002 00000004 'NAME'
    00000000 00000001 00000003 00000005
    00000005 00000000 0000000b 00000003 00000005
    00000035 00000011 'StManColumnAipsIO' 00000002 00000003
    00000003 00000003 00000001 00000002 00000003
    0000002a 00000011 'StManColumnAipsIO' 00000002 00000003 00000003 00000003 05
    00000039 00000011 'StManColumnAipsIO' 00000002 00000003 00000003 00000003
    00000001 'a' 00000000 00000003 'bcd'
    00000057 00000016 'StManColumnArrayAipsIO' 00000002
    00000035 00000011 'StManColumnAipsIO' 00000002 00000003 00000003 00000006
    0000 0001 0002 0003 0004 0005
    0000005e 00000019 'StManColumnIndArrayAipsIO' 00000002 00000005 00000000
    00000031 00000011 'StManColumnAipsIO' 00000002 00000003 00000003 00000000 00000010 00000000";

const ARRAYS: &str = "00000000 0000000000000020 00000000 00000001 00000002 00000007 fffffff8";

/// By the format, not by casacore: strings in two chunks and numbers in one of unknown length, each cell with its
/// number of elements; a column with an array file of its own and an offset of 64 bits.
const EARLY: &str = "
    bebebebe 00000170 0000000b 'StManAipsIO' 00000001
    00000000 00000001 00000002 00000003
    0000000b 00000003 00000005
    0000005f 00000016 'StManColumnArrayAipsIO' 00000002
    0000003d 00000011 'StManColumnAipsIO' 00000001 00000002
    00000001 00000001 00000001 'a' 00000001 00000001 00000003 'bcd'
    0000007c 00000016 'StManColumnArrayAipsIO' 00000001
    00000003 0000001d 00000009 'IPosition' 00000001 00000001 00000002
    00000002
    00000035 00000011 'StManColumnAipsIO' 00000001 00000002
    00000000 00000002 0001 0002 00000002 0003 0004
    00000062 00000019 'StManColumnIndArrayAipsIO' 00000001 00000005 00000003
    00000035 00000011 'StManColumnAipsIO' 00000002 00000002 00000002
    00000000 80000001 0000000000000010";

fn columns() -> Vec<ColumnSpec> {
    vec![
        column("I", DataType::Int, Storage::Scalar, None),
        column("B", DataType::Bool, Storage::Scalar, None),
        column("S", DataType::String, Storage::Scalar, None),
        column("D", DataType::Short, Storage::Direct, Some(&[2])),
        column("V", DataType::Int, Storage::Indirect, None),
    ]
}

fn open_sample(file: Vec<u8>, arrays: Vec<u8>, rows: u64) -> Result<Box<dyn Manager>> {
    let files = Memory::new([("table.f0", file), ("table.f0i", arrays)]);
    // the table's byte order does not matter
    open(&samples::args(&files, ByteOrder::Little, rows, &columns(), &[]))
}

fn read(manager: &dyn Manager, index: usize) -> Result<Values> {
    samples::read_both_ways(manager.column(index), 3, columns()[index].data_type)
}

#[test]
fn written_by_casacore() {
    let manager = open_sample(bytes(FILE), bytes(ARRAYS), 3).unwrap();
    assert_eq!(manager.name(), "NAME");
    let read = |index| read(&*manager, index).unwrap();
    assert_eq!(read(0), Values::Int(vec![1, 2, 3]));
    assert_eq!(read(1), Values::Bool(vec![true, false, true]));
    assert_eq!(read(2), Values::String(vec!["a".into(), "".into(), "bcd".into()]));
    assert_eq!(read(3), Values::Short(vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(read(4), Values::Int(vec![7, -8]));
    assert_eq!(manager.column(4).cell_shape(0).unwrap(), None);
    assert_eq!(manager.column(4).cell_shape(1).unwrap(), Some(Shape::from([2])));
}

#[test]
fn early_versions() {
    let files = Memory::new([("table.f0", bytes(EARLY)), ("table.f0i3", bytes(ARRAYS))]);
    let columns = [
        column("S", DataType::String, Storage::Direct, Some(&[1])),
        column("D", DataType::Short, Storage::Direct, Some(&[2])),
        column("V", DataType::Int, Storage::Indirect, None),
    ];
    let manager = open(&samples::args(&files, ByteOrder::Big, 2, &columns, &[])).unwrap();
    let read = |index: usize| samples::read_both_ways(manager.column(index), 2, columns[index].data_type).unwrap();
    assert_eq!(manager.name(), "");
    assert_eq!(read(0), Values::String(vec!["a".into(), "bcd".into()]));
    assert_eq!(read(1), Values::Short(vec![1, 2, 3, 4]));
    assert_eq!(read(2), Values::Int(vec![7, -8]));
}

#[test]
fn many_strings_are_found_from_the_nearest_known_one() {
    let strings: String = (0..1000).map(|i| format!("{:08x} {} ", i % 5, "61".repeat(i % 5))).collect();
    let length = 29 + 4 + 8 + bytes(&strings).len();
    let file = format!(
        "bebebebe {:08x} 0000000b 'StManAipsIO' 00000002 00000000 00000000 00000000 000003e8 00000001 0000000b
         {length:08x} 00000011 'StManColumnAipsIO' 00000002 000003e8 000003e8 000003e8 {strings}",
        length + 47
    );
    let files = Memory::new([("table.f0", bytes(&file))]);
    let columns = [column("S", DataType::String, Storage::Scalar, None)];
    let manager = open(&samples::args(&files, ByteOrder::Big, 1000, &columns, &[])).unwrap();
    let found = samples::read_both_ways(manager.column(0), 1000, DataType::String).unwrap();
    assert_eq!(found, Values::String((0..1000).map(|i| "a".repeat(i % 5).into()).collect()));
}

#[test]
fn another_number_of_rows_is_refused() {
    let error = open_sample(bytes(FILE), bytes(ARRAYS), 4).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Format);
    assert_eq!(error.to_string(), "table.f0 (StManAipsIO): StManAipsIO at byte 47: rows: 3, the table has 4");
}

#[test]
fn damage_is_an_error() {
    let [file, arrays] = [FILE, ARRAYS].map(bytes);
    let all = |manager: Box<dyn Manager>| (0..5).try_for_each(|index| read(&*manager, index).map(drop));
    samples::damage(&file, |file| all(open_sample(file, arrays.clone(), 3)?));
    samples::damage(&arrays, |arrays| all(open_sample(file.clone(), arrays, 3)?));
}
