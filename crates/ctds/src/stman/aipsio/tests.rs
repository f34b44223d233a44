//! The sample of formats/stman.md 4.2, and its damaged forms.

use super::*;
use crate::container::Memory;
use crate::error::{ErrorKind, Fails};
use crate::stman::samples::{self, bytes, column};
use crate::value::{Record, Shape, Values};

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

/// Made from the format, not by casacore: strings in two chunks, numbers in one of unknown length,
/// each cell with its count; a column with its own array file and an offset of 64 bits.
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

mod written {
    use std::sync::Arc;

    use super::*;
    use crate::container::Container;
    use crate::stman::{ManagerMut, model};
    use crate::value::{Record, Region};

    fn contents(files: &Memory, name: &str) -> Vec<u8> {
        crate::io::read_all(&*files.open(name).unwrap()).unwrap()
    }

    fn create(files: &Arc<Memory>, columns: &[ColumnSpec]) -> Box<dyn ManagerMut> {
        let parameters = Record::default();
        let mut args = samples::create_args(files, ByteOrder::Little, columns, &parameters);
        args.name = BStr::new("NAME");
        write::create(&args).unwrap()
    }

    #[test]
    fn as_casacore_writes() {
        let files = Arc::new(Memory::default());
        let mut manager = create(&files, &columns());
        manager.add_rows(3).unwrap();
        manager.write_rows(0, 0..3, &Values::Int(vec![1, 2, 3])).unwrap();
        manager.write_rows(1, 0..3, &Values::Bool(vec![true, false, true])).unwrap();
        manager.write_rows(2, 0..3, &Values::String(vec!["a".into(), "".into(), "bcd".into()])).unwrap();
        manager.write_rows(3, 0..3, &Values::Short(vec![0, 1, 2, 3, 4, 5])).unwrap();
        manager.set_shape(4, 1, &Shape::from([2])).unwrap();
        manager.write_cell(4, 1, None, &Values::Int(vec![7, -8])).unwrap();
        manager.flush().unwrap();
        assert_eq!(contents(&files, "table.f0"), bytes(FILE));
        assert_eq!(contents(&files, "table.f0i"), bytes(ARRAYS));
        assert_eq!(files.names().unwrap(), ["table.f0", "table.f0i"]);
    }

    #[test]
    fn holds_what_was_written() {
        model::random_edits(&KIND, 40, &[&[]]);
    }

    /// More than the buffers of stream, cells and texts hold.
    #[test]
    fn long_streams() {
        let rows = 300_000;
        let columns = [
            column("S", DataType::String, Storage::Scalar, None),
            column("B", DataType::Bool, Storage::Scalar, None),
            column("D", DataType::Double, Storage::Direct, Some(&[3])),
        ];
        let files = Arc::new(Memory::default());
        let mut manager = create(&files, &columns);
        let strings = Values::String((0..rows).map(|row| format!("{row}:{}", "x".repeat(row % 50)).into()).collect());
        let bools = Values::Bool((0..rows).map(|row| row % 7 == 0).collect());
        let doubles = Values::Double((0..3 * rows).map(|i| i as f64).collect());
        manager.add_rows(rows as u64).unwrap();
        for (column, values) in [&strings, &bools, &doubles].into_iter().enumerate() {
            manager.write_rows(column, 0..rows as u64, values).unwrap();
        }
        // also once the first row is gone and all others have moved
        for removed in 0..2 {
            if removed > 0 {
                manager.remove_row(0).unwrap();
            }
            manager.flush().unwrap();
            let left = (rows - removed) as u64;
            let reader = open(&samples::args(&*files, ByteOrder::Little, left, &columns, &[])).unwrap();
            for (column, values) in [&strings, &bools, &doubles].into_iter().enumerate() {
                let mut expected = Values::new(values.data_type());
                expected.extend_from(values, removed * values.len() / rows..values.len()).unwrap();
                let mut found = Values::new(values.data_type());
                reader.column(column).read_rows(0..left, &mut found).unwrap();
                assert!(found == expected, "column {column} without {removed} rows");
            }
        }
    }

    #[test]
    fn cells_that_do_not_fit_are_rejected() {
        let mut manager = create(&Arc::new(Memory::default()), &columns());
        assert_eq!(manager.add_rows(1 << 32).unwrap_err().kind(), crate::ErrorKind::Limit);
        manager.add_rows(2).unwrap();
        let text = |result: Result<()>| {
            let text = result.unwrap_err().to_string();
            text.strip_prefix("table.f0 (StManAipsIO): ").unwrap_or_else(|| panic!("no place: {text}")).to_owned()
        };
        let numbers = Values::Int(vec![1, 2]);
        assert_eq!(
            text(manager.write_cell(1, 0, None, &numbers)),
            "column B, row 0: the values have type int, expected boolean"
        );
        assert_eq!(text(manager.write_rows(0, 1..3, &numbers)), "column I, row 2: the table has 2 rows");
        assert_eq!(text(manager.write_rows(0, 0..1, &numbers)), "column I, row 0: 2 elements for 1 cells of shape []");
        assert_eq!(text(manager.write_cell(4, 1, None, &numbers)), "column V, row 1: the cell has no shape yet");
        let shape = Shape::from([3]);
        assert!(text(manager.set_shape(3, 0, &shape)).starts_with("column D, row 0: shape [3] for a column whose"));
        let region = Region { start: Shape::from([1]), shape: Shape::from([2]) };
        let shorts = Values::Short(vec![1, 2]);
        assert_eq!(manager.write_cell(3, 0, Some(&region), &shorts).unwrap_err().kind(), crate::ErrorKind::Usage);
    }
}

#[test]
fn calls_that_do_not_fit() {
    let manager = open_sample(bytes(FILE), bytes(ARRAYS), 3).unwrap();
    let mut out = Values::new(DataType::Int);
    manager.column(0).read_rows(3..4, &mut out).fails(ErrorKind::Format, "row 3 is not stored: the column has 3 rows");
    let text = manager.column(2).read_rows(0..1, &mut out);
    text.fails(ErrorKind::Usage, "strings are read into strings");
    let columns = [column("D", DataType::Double, Storage::Direct, Some(&[1 << 60]))];
    let (files, parameters) = (Arc::new(Memory::default()), Record::default());
    let args = samples::create_args(&files, ByteOrder::Big, &columns, &parameters);
    crate::stman::create("StManAipsIO".into(), &args)
        .fails(ErrorKind::Limit, "column D: cells of shape [1152921504606846976] are too large for the memory");
}
