//! The golden file of formats/engines.md 3.5.3. Tables that casacore wrote are in
//! testdata/new_managers.

use super::*;
use crate::container::Memory;
use crate::error::Fails;
use crate::io::ByteOrder;
use crate::stman::samples::{self, Given, bytes, column};
use crate::value::Complex32;

const FILE: &str = "
    53697363 6f000000 02000000 00000000 00000000 02
    a000000000000000 4300000000000000
    63400587 18f00331 74810607 01810601 07060586 031c0c02 0e8d0c0c 02122061
    06060e1f b8a24626 98ea06b0 5c034414 42338200 505f0313 98666464 6204a981 d08d00";

const SHAPES: &str = "60000000 0e000000 63628000 4628cd02 a599a824 0e00";

/// Real and imaginary parts, in bits.
const CELLS: [[u32; 8]; 4] = [
    [0x3f800000, 0x40000000, 0x3fc00000, 0xc0100000, 0x40100000, 0x40200000, 0x40600000, 0],
    [0x3fa00000, 0x40000000, 0x3fe00000, 0xc0000000, 0x7fc00000, 0x40000000, 0x40800000, 0x800116c2],
    [0x3fc00000, 0x40000000, 0x40000000, 0xbfe00000, 0x40200000, 0x3fc00000, 0x40900000, 0x7f800000],
    [0x3fe00000, 0x40000000, 0x40100000, 0xbfc00000, 0x40280000, 0x3f800000, 0xc0a00000, 0],
];

fn open_sample(
    file: Vec<u8>,
    shapes: Option<Vec<u8>>,
    storage: Storage,
    shape: Option<&[u64]>,
) -> Result<Box<dyn Manager>> {
    let mut files = vec![("table.f0", file)];
    files.extend(shapes.map(|shapes| ("table.f0-shapes", shapes)));
    let files = Memory::new(files);
    let specs = [column("DATA", DataType::Complex, storage, shape)];
    let around = KEYS.iter().fold(Given::default(), |table, key| table.scalars(key, Values::Int(vec![0; 5])));
    let args = samples::args(&files, ByteOrder::Big, 5, &specs, &[]);
    open(&OpenArgs { table: &around, ..args })
}

fn bits(values: &Values) -> Vec<[u32; 2]> {
    let Values::Complex(values) = values else { panic!("{values:?}") };
    values.iter().map(|value| [value.re.to_bits(), value.im.to_bits()]).collect()
}

fn expected(rows: Range<usize>) -> Vec<[u32; 2]> {
    CELLS[rows].iter().flat_map(|cell| cell.as_chunks().0).copied().collect()
}

#[test]
fn written_by_casacore() {
    let manager = open_sample(bytes(FILE), Some(bytes(SHAPES)), Storage::Indirect, None).unwrap();
    let cells = manager.column(0);
    let values = samples::read_both_ways(cells, 5, DataType::Complex).unwrap();
    assert_eq!(bits(&values), expected(0..4));
    assert_eq!([cells.cell_shape(3).unwrap(), cells.cell_shape(4).unwrap()], [Some(Shape::from([1, 4])), None]);
    assert_eq!(cells.same_shape(&(1..4)), Some(Shape::from([1, 4])));
    assert_eq!(cells.same_shape(&(1..5)), None);
}

#[test]
fn in_any_order() {
    let manager = open_sample(bytes(FILE), Some(bytes(SHAPES)), Storage::Indirect, None).unwrap();
    let cells = manager.column(0);
    for rows in [3..4, 0..1, 0..1, 2..4, 1..3, 4..5] {
        let mut values = Values::new(DataType::Complex);
        cells.read_rows(rows.clone(), &mut values).unwrap();
        assert_eq!(bits(&values), expected(rows.start as usize..rows.end.min(4) as usize), "{rows:?}");
    }
    let region = Region { start: Shape::from([0, 2]), shape: Shape::from([1, 2]) };
    let mut part = Values::Complex(vec![Complex32::default()]);
    cells.read_cell(3, Some(&region), &mut part).unwrap();
    assert_eq!(bits(&part)[1..], expected(3..4)[2..]);
}

/// The second chunk of a cell begins with another correlation than the first.
#[test]
fn chunks_may_end_within_a_row() {
    let header = &bytes("53697363 6f000000 02000000 00000000 00000000 02")[..];
    // number of channels of each row; each has two correlations
    let channels = [3, 1, 4, 2, 3];
    let shapes: Vec<u64> = channels.iter().flat_map(|&channels| [2, 2, channels as u64]).collect();
    let shapes: Vec<u8> = shapes.into_iter().flat_map(u64::to_le_bytes).collect();
    // each row is of a baseline of its own, whose rows must have the same channels
    let around = KEYS.iter().fold(Given::default(), |table, key| table.scalars(key, Values::Int((0..5).collect())));
    let values: Vec<[u8; 5]> = (0..52u8).map(|i| [i * 4, i * 3, 0x80 ^ i, i % 2 * 128, i % 3]).collect();
    let chunk = |values: &[[u8; 5]]| {
        let planes: Vec<u8> = (0..5).flat_map(|byte| values.iter().map(move |value| value[byte])).collect();
        deflated::<8>(&planes)
    };
    let read = |chunks: &[&[[u8; 5]]]| {
        let file = [header, &chunks.iter().flat_map(|values| chunk(values)).collect::<Vec<_>>()].concat();
        let files = Memory::new([("table.f0", file), ("table.f0-shapes", deflated::<4>(&shapes))]);
        let specs = [column("DATA", DataType::Complex, Storage::Indirect, None)];
        let args = samples::args(&files, ByteOrder::Big, 5, &specs, &[]);
        let manager = open(&OpenArgs { table: &around, ..args }).unwrap();
        bits(&samples::read_both_ways(manager.column(0), 5, DataType::Complex).unwrap())
    };
    let whole = read(&[&values]);
    let mut end = 0;
    for len in channels.iter().flat_map(|channels| [2 * channels; 2]) {
        end += len;
        let (first, rest) = values.split_at(end);
        assert_eq!(read(&[first, rest]), whole, "{end} values in the first chunk");
    }
}

/// Rows without values are known without decoding those before them.
#[test]
fn shapes_end_where_the_values_end() {
    let shapes: Vec<u8> = [[2u64, 1, 4]; 6].concat().into_iter().flat_map(u64::to_le_bytes).collect();
    let manager = open_sample(bytes(FILE), Some(deflated::<4>(&shapes)), Storage::Indirect, None).unwrap();
    let cells = manager.column(0);
    assert_eq!(cells.same_shape(&(0..4)), Some(Shape::from([1, 4])));
    assert_eq!(cells.same_shape(&(0..5)), None);
    assert_eq!(cells.cell_shape(3).unwrap(), Some(Shape::from([1, 4])));
    let message = "table.f0 (SiscoStMan): row 4: the file ends before its 8 values";
    cells.cell_shape(4).fails(ErrorKind::Format, message);
    cells.read_rows(0..5, &mut Values::new(DataType::Complex)).fails(ErrorKind::Format, message);
}

#[test]
fn rows_before_a_damaged_one_stay_readable() {
    let header = &bytes("53697363 6f000000 02000000 00000000 00000000 ff")[..];
    let shape: &[u64] = &[1, 1];
    // a row of 2 values in each chunk, without prediction; the second one does not inflate
    let (good, mut bad) = (deflated::<8>(&[0; 8]), deflated::<8>(&[0; 8]));
    bad[16] = 0xff;
    let file = [header, &good, &bad, &good].concat();
    let manager = open_sample(file, None, Storage::Indirect, Some(shape)).unwrap();
    let cells = manager.column(0);
    let read = |rows| cells.read_rows(rows, &mut Values::new(DataType::Complex));
    let message = "table.f0 (SiscoStMan): the deflated bytes are damaged";
    for rows in [0..3, 1..2, 2..3] {
        let error = read(rows.clone()).unwrap_err();
        assert!(error.kind() == ErrorKind::Format && error.to_string().starts_with(message), "{rows:?}: {error}");
    }
    read(0..1).unwrap();
}

/// Correlations without channels are not counted one by one.
#[test]
fn cells_without_elements_have_no_items() {
    let shapes: Vec<u8> = [[2, 1, 4], [2, 1 << 62, 0], [2, 1, 4], [2, 1, 4], [2, 1, 4]]
        .concat()
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    let manager = open_sample(bytes(FILE), Some(deflated::<4>(&shapes)), Storage::Indirect, None).unwrap();
    let mut values = Values::new(DataType::Complex);
    manager.column(0).read_rows(0..5, &mut values).unwrap();
    assert_eq!(bits(&values), expected(0..4));
}

#[test]
fn cells_of_fixed_shape_need_no_shapes() {
    let shape: &[u64] = &[1, 4];
    for shapes in [None, Some(bytes(SHAPES))] {
        let manager = open_sample(bytes(FILE), shapes, Storage::Indirect, Some(shape)).unwrap();
        let values = samples::read_both_ways(manager.column(0), 5, DataType::Complex).unwrap();
        assert_eq!(bits(&values), expected(0..4));
    }
    let manager = open_sample(bytes(FILE), None, Storage::Direct, Some(shape)).unwrap();
    let error = manager.column(0).read_rows(0..5, &mut Values::new(DataType::Complex)).unwrap_err().to_string();
    assert_eq!(error, "table.f0 (SiscoStMan): row 4 was never written");
}

#[test]
fn unknown_forms_are_refused() {
    let error = |at: usize, byte| {
        let mut file = bytes(FILE);
        file[at] = byte;
        open_sample(file, Some(bytes(SHAPES)), Storage::Indirect, None).unwrap_err()
    };
    assert_eq!(error(20, 4).to_string(), "table.f0 (SiscoStMan): prediction level 4 is not known");
    assert_eq!(error(8, 1).to_string(), "table.f0 (SiscoStMan): version 1 of the file, known is 2");
    assert_eq!(error(9, 0xc0).to_string(), "table.f0 (SiscoStMan): store mode 3, known are 0 to 2");
    assert_eq!(error(20, 4).kind(), ErrorKind::Unsupported);
    assert_eq!(error(0, b's').kind(), ErrorKind::Format);
}

#[test]
fn damage_is_an_error() {
    let read = |file, shapes, shape| {
        let manager = open_sample(file, shapes, Storage::Indirect, shape)?;
        samples::read_both_ways(manager.column(0), 5, DataType::Complex).map(drop)
    };
    samples::damage(&bytes(FILE), |file| read(file, Some(bytes(SHAPES)), None));
    samples::damage(&bytes(FILE), |file| read(file, None, Some(&[1, 4])));
    samples::damage(&bytes(SHAPES), |shapes| read(bytes(FILE), Some(shapes), None));
}

/// Inflated and deflated number of bytes, `N` bytes each, then the bytes.
fn deflated<const N: usize>(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() + 64];
    let config = zlib_rs::DeflateConfig { window_bits: -15, ..zlib_rs::DeflateConfig::default() };
    let (stored, ended) = zlib_rs::compress_slice(&mut out, bytes, config);
    assert_eq!(ended, zlib_rs::ReturnCode::Ok);
    let out = stored.to_vec();
    let len = out.len();
    [&(bytes.len() as u64).to_le_bytes()[..N], &(len as u64).to_le_bytes()[..N], &out].concat()
}

#[test]
fn files_that_contradict_themselves() {
    let mut other = bytes(FILE);
    other[0] = b'D';
    let open_fixed = |file, shape: &[u64]| open_sample(file, None, Storage::Direct, Some(shape));
    open_fixed(other, &[1, 4])
        .fails(ErrorKind::Format, "table.f0 (SiscoStMan): the file begins with \"Disco\\0\\0\\0\", not with `Sisco`");
    open_fixed(bytes(FILE), &[4]).fails(ErrorKind::Format, "cells of shape [4], 2 axes are expected");
    let shapes = deflated::<4>(&[2u64, 1].map(u64::to_le_bytes).concat());
    open_sample(bytes(FILE), Some(shapes), Storage::Indirect, None)
        .fails(ErrorKind::Format, "table.f0-shapes: row 0: the shape is cut off, expected two extents");

    let manager = open_fixed(bytes(FILE), &[1, 4]).unwrap();
    let mut out = Values::new(DataType::Int);
    manager.column(0).read_rows(0..1, &mut out).fails(ErrorKind::Usage, "visibilities are read into Complex");

    // a cell of 4 values in two chunks of 2 each, without prediction
    let header = &bytes("53697363 6f000000 02000000 00000000 00000000 ff")[..];
    let halves = [header, &deflated::<8>(&[0; 8]), &deflated::<8>(&[0; 8])].concat();
    let manager = open_fixed(halves, &[1, 2]).unwrap();
    let mut out = Values::new(DataType::Complex);
    manager
        .column(0)
        .read_rows(0..1, &mut out)
        .fails(ErrorKind::Format, "table.f0 (SiscoStMan): row 0: 4 values, of which chunk 0 has only 2");

    // the file has more cells than the table has rows
    let files = Memory::new([("table.f0", bytes(FILE))]);
    let specs = [column("DATA", DataType::Complex, Storage::Direct, Some(&[1, 4]))];
    let around = KEYS.iter().fold(Given::default(), |table, key| table.scalars(key, Values::Int(vec![0; 5])));
    let args = samples::args(&files, ByteOrder::Big, 2, &specs, &[]);
    let manager = open(&OpenArgs { table: &around, ..args }).unwrap();
    manager
        .column(0)
        .read_rows(0..3, &mut out)
        .fails(ErrorKind::Usage, "table.f0 (SiscoStMan): row 2 does not exist, the table has 2 rows");
}
