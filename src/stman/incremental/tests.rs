//! The sample of formats/stman.md 2.8, and its damaged forms.

use super::*;
use crate::container::Memory;
use crate::stman::ColumnSpec;
use crate::stman::samples::{self, bytes, column};
use crate::value::{DataType, Shape, Values};

const FILE: &str = "
    bebebebe 35000000 10000000 'IncrementalStMan' 05000000 00
    00010000 01000000 01000000 01000000 00000000 ffffffff 00*455
    41000000
    0000000000002440 0000000000000000 0000000000003440
    07000000 'obs' 07000000 'cal'
    0f000000 02000000 'RR' 01000000 'L'
    1000000000000000
    02000000 00000000 03000000 00000000 10000000
    02000000 00000000 02000000 18000000 1f000000
    01000000 00000000 26000000
    02000000 00000000 04000000 08000000 35000000 00*119
    bebebebe 4e000000 08000000 'ISMIndex' 01000000 01000000
    1d000000 05000000 'Block' 01000000 02000000 00000000 06000000
    19000000 05000000 'Block' 01000000 01000000 00000000";

/// The same with 64-bit rows and version 2 of the index: 2^33 rows, T changes in row 2^32 + 3.
const LARGE: &str = "
    bebebebe 35000000 10000000 'IncrementalStMan' 05000000 00
    00010000 01000000 01000000 01000000 00000000 ffffffff 00*455
    14000080
    0000000000002440 0000000000003440
    02000000 0000000000000000 0300000001000000 00000000 08000000 00*208
    bebebebe 56000000 08000000 'ISMIndex' 02000000 01000000
    25000000 05000000 'Block' 01000000 02000000 0000000000000000 0000000002000000
    19000000 05000000 'Block' 01000000 01000000 00000000";

const ARRAYS: &str = "
    01000000 2400000000000000 00000000
    01000000 01000000 02000000 0000803f 00000040";

const INFO: &str = "bebebebe 0000001a 00000003 'ISM' 00000003 00000007 'ISMData'";

fn columns() -> Vec<ColumnSpec> {
    vec![
        column("T", DataType::Double, Storage::Scalar, None),
        column("N", DataType::String, Storage::Scalar, None),
        column("D", DataType::String, Storage::Direct, Some(&[2])),
        column("V", DataType::Float, Storage::Indirect, None),
    ]
}

fn open_sample(file: Vec<u8>, arrays: (&str, Vec<u8>), info: &[u8]) -> Result<Box<dyn Manager>> {
    let files = Memory::new([("table.f0", file), arrays]);
    open(&samples::args(&files, ByteOrder::Little, 6, &columns(), info))
}

fn read(manager: &dyn Manager, index: usize) -> Result<Values> {
    samples::read_both_ways(manager.column(index), 6, columns()[index].data_type)
}

#[test]
fn written_by_casacore() {
    let manager = open_sample(bytes(FILE), ("table.f0i", bytes(ARRAYS)), &bytes(INFO)).unwrap();
    assert_eq!(manager.name(), "ISMData");
    let strings = |strings: &[&str]| Values::String(strings.iter().map(|&string| string.into()).collect());
    let read = |index| read(&*manager, index).unwrap();
    assert_eq!(read(0), Values::Double(vec![10., 10., 10., 20., 20., 20.]));
    assert_eq!(read(1), strings(&["obs", "obs", "cal", "cal", "cal", "cal"]));
    assert_eq!(read(2), strings(&["RR", "L"].repeat(6)));
    assert_eq!(read(3), Values::Float(vec![1., 2., 1., 2.]));
    assert_eq!(manager.column(3).cell_shape(3).unwrap(), None);
    assert_eq!(manager.column(3).cell_shape(4).unwrap(), Some(Shape::from([2])));
}

#[test]
fn runs_start_anywhere() {
    let manager = open_sample(bytes(FILE), ("table.f0i", bytes(ARRAYS)), &bytes(INFO)).unwrap();
    let all = [10., 10., 10., 20., 20., 20.];
    for start in 0..6 {
        for end in start..=6 {
            let mut values = Values::new(DataType::Double);
            manager.column(0).read_rows(start..end, &mut values).unwrap();
            assert_eq!(values, Values::Double(all[start as usize..end as usize].to_vec()));
        }
    }
    let error = manager.column(0).read_cell(6, None, &mut Values::new(DataType::Double)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "table.f0 (IncrementalStMan): ISMIndex at byte 768: row 6 is not stored: the index has 6 rows"
    );
    assert_eq!(error.kind(), crate::ErrorKind::Format);
}

#[test]
fn more_rows_than_32_bits_count() {
    let files = Memory::new([("table.f0", bytes(LARGE))]);
    let manager = open(&samples::args(&files, ByteOrder::Little, 1 << 33, &columns()[..1], &bytes(INFO))).unwrap();
    let mut values = Values::new(DataType::Double);
    manager.column(0).read_rows((1 << 32) + 1..(1 << 32) + 5, &mut values).unwrap();
    manager.column(0).read_cell((1 << 33) - 1, None, &mut values).unwrap();
    assert_eq!(values, Values::Double(vec![10., 10., 20., 20., 20.]));
}

#[test]
fn early_versions_have_a_file_per_indirect_column() {
    let mut info = bytes(INFO);
    info[18] = 2;
    let manager = open_sample(bytes(FILE), ("table.f0i0", bytes(ARRAYS)), &info).unwrap();
    assert_eq!(read(&*manager, 3).unwrap(), Values::Float(vec![1., 2., 1., 2.]));
    let error = open_sample(bytes(FILE), ("table.f0i", bytes(ARRAYS)), &info).unwrap_err();
    assert_eq!(error.to_string(), "table.f0i0: the file is missing");
}

#[test]
fn damage_is_an_error() {
    let [file, arrays, info] = [FILE, ARRAYS, INFO].map(bytes);
    let all = |manager: Box<dyn Manager>| (0..4).try_for_each(|index| read(&*manager, index).map(drop));
    samples::damage(&file, |file| all(open_sample(file, ("table.f0i", arrays.clone()), &info)?));
    samples::damage(&arrays, |arrays| all(open_sample(file.clone(), ("table.f0i", arrays), &info)?));
    samples::damage(&info, |info| all(open_sample(file.clone(), ("table.f0i", arrays.clone()), &info)?));
}

#[test]
fn holds_what_was_written() {
    for seed in 0..40 {
        crate::stman::model::random_edits(&KIND, seed, &[("BUCKETSIZE", [0, 8000, 20000, 12000][seed as usize % 4])]);
    }
}
