//! The sample of formats/stman.md 2.8, and its damaged forms.

use super::*;
use crate::container::{Container, Memory};
use crate::error::{ErrorKind, Fails};
use crate::stman::samples::{self, bytes, column};
use crate::stman::{ColumnSpec, ManagerMut};
use crate::value::{DataType, Shape, Value, Values};

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
    // only the column with arrays needs the file
    let manager = open_sample(bytes(FILE), ("table.f0i", bytes(ARRAYS)), &info).unwrap();
    for error in [manager.readable(3).unwrap_err(), read(&*manager, 3).unwrap_err()] {
        assert_eq!(error.to_string(), "table.f0i0: the file is missing");
    }
    assert!((0..3).all(|index| manager.readable(index).is_ok() && read(&*manager, index).is_ok()));
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
    let sizes = [0, 8000, 20000, 12000].map(|size| [("BUCKETSIZE", size)]);
    crate::stman::model::random_edits(&KIND, 40, &sizes.each_ref().map(|set| &set[..]));
}

fn create(files: &Arc<Memory>, columns: &[ColumnSpec], bucket_bytes: i32) -> Box<dyn ManagerMut> {
    let mut parameters = Record::default();
    parameters.set("BUCKETSIZE", Value::Scalar(Values::Int(vec![bucket_bytes])));
    write::create(&samples::create_args(files, ByteOrder::Little, columns, &parameters)).unwrap()
}

fn strings(range: std::ops::Range<u64>) -> Values {
    Values::String(range.map(|row| format!("{row:030}").into()).collect())
}

/// Arrays are counted once for each entry of a bucket; buckets that lose their rows are free.
#[test]
fn references_and_free_buckets_are_counted() {
    let columns = [
        column("S", DataType::String, Storage::Scalar, None),
        column("F", DataType::Int, Storage::Indirect, Some(&[2])),
        column("V", DataType::Int, Storage::Indirect, None),
    ];
    let files = Arc::new(Memory::default());
    let mut manager = create(&files, &columns, 300);
    manager.add_rows(60).unwrap();
    for row in [7, 30, 31, 50] {
        manager.write_cell(1, row, None, &Values::Int(vec![1, row as i32])).unwrap();
        manager.set_shape(2, row, &Shape::from([1])).unwrap();
        manager.write_cell(2, row, None, &Values::Int(vec![row as i32])).unwrap();
    }
    // many buckets, and the arrays of some rows are in two of them
    manager.write_rows(0, 0..60, &strings(0..60)).unwrap();
    (10..40).for_each(|_| manager.remove_row(10).unwrap());
    let info = manager.flush().unwrap();
    let file = files.open("table.f0").unwrap();
    let header = Header::decode(&file, ByteOrder::Little).unwrap();
    let buckets = Buckets::new(file, header.bucket_bytes, header.buckets).unwrap();
    let index = Index::read(&buckets, ByteOrder::Little).unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for &number in &index.buckets {
        let bytes = read_bytes(&buckets.file, buckets.offset(number, "").unwrap(), 300).unwrap();
        let bucket = Bucket::decode(bytes, ByteOrder::Little, 3).unwrap();
        for run in [1, 2].iter().flat_map(|&column| bucket.runs(column, 0)) {
            let &offset = run.unwrap().value.first_chunk().unwrap();
            *counts.entry(u64::from_le_bytes(offset)).or_insert(0) += 1;
        }
    }
    counts.remove(&0);
    assert!(counts.len() >= 3 && counts.values().any(|&count| count > 1), "{counts:?}");
    let arrays = files.open("table.f0i").unwrap();
    for (offset, count) in counts {
        assert_eq!(u32::from_le_bytes(crate::io::read_array(&arrays, offset).unwrap()), count, "at {offset}");
    }
    let mut free = Vec::new();
    let mut next = header.first_free;
    while let Ok(number) = u32::try_from(next) {
        free.push(number);
        next = i32::from_be_bytes(crate::io::read_array(&buckets.file, buckets.offset(number, "").unwrap()).unwrap());
    }
    assert!(free.len() >= 3 && free.len() == header.free as usize);
    let mut all = [free, index.buckets.clone()].concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..header.buckets));
    let reader = open(&samples::args(&*files, ByteOrder::Little, 30, &columns, &info)).unwrap();
    let read = |column: usize| samples::read_both_ways(reader.column(column), 30, columns[column].data_type).unwrap();
    let Values::String(kept) = strings(0..60) else { panic!("strings") };
    assert_eq!(read(0), Values::String([&kept[..10], &kept[40..]].concat()));
    assert_eq!(read(2), Values::Int(vec![7, 50]));
}

#[test]
fn zeros_are_shared_only_as_long_as_they_are_zeros() {
    let columns = [column("F", DataType::Int, Storage::Indirect, Some(&[2]))];
    let files = Arc::new(Memory::default());
    let mut manager = create(&files, &columns, 300);
    manager.add_rows(1).unwrap();
    manager.write_cell(0, 0, None, &Values::Int(vec![7, 8])).unwrap();
    manager.add_rows(1).unwrap();
    let info = manager.flush().unwrap();
    let reader = open(&samples::args(&*files, ByteOrder::Little, 2, &columns, &info)).unwrap();
    let found = samples::read_both_ways(reader.column(0), 2, DataType::Int).unwrap();
    assert_eq!(found, Values::Int(vec![7, 8, 0, 0]));
}

#[test]
fn a_value_that_fits_no_bucket_changes_nothing() {
    let columns = [column("S", DataType::String, Storage::Scalar, None)];
    let files = Arc::new(Memory::default());
    let mut manager = create(&files, &columns, 100);
    manager.add_rows(3).unwrap();
    manager.write_rows(0, 0..3, &strings(0..3)).unwrap();
    let long = Values::String(vec!["ab".into(), "x".repeat(77).into()]);
    let error = manager.write_rows(0, 0..2, &long).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit);
    assert!(error.to_string().contains("the values of row 1 take 101 bytes, but a bucket has 100"), "{error}");
    let info = manager.flush().unwrap();
    let reader = open(&samples::args(&*files, ByteOrder::Little, 3, &columns, &info)).unwrap();
    assert_eq!(samples::read_both_ways(reader.column(0), 3, DataType::String).unwrap(), strings(0..3));
}

#[test]
fn calls_and_buckets_that_do_not_fit() {
    let manager = open_sample(bytes(FILE), ("table.f0i", bytes(ARRAYS)), &bytes(INFO)).unwrap();
    let mut out = Values::new(DataType::Int);
    for column in [1, 2] {
        let read = manager.column(column).read_rows(4..5, &mut out);
        read.fails(ErrorKind::Usage, "strings are read into strings");
    }
    // the word that begins the only bucket
    let mut file = bytes(FILE);
    file[512] = 3;
    let manager = open_sample(file, ("table.f0i", bytes(ARRAYS)), &bytes(INFO)).unwrap();
    manager
        .column(0)
        .read_rows(0..1, &mut Values::new(DataType::Double))
        .fails(ErrorKind::Format, "its index part is at byte 3, expected 4 or more");
}
