//! Small files of formats/engines.md, appendix C. Tables that casacore wrote are in
//! testdata/new_managers.

use crate::container::Memory;
use crate::error::{Fails, Result};
use crate::io::ByteOrder;
use crate::stman::samples::{self, Given, bytes, column};
use crate::stman::{self, ColumnSpec, Manager, OpenArgs, Storage};
use crate::value::{Complex32, DataType, Region, Shape, Values};

const ANTENNA_PAIR_HEADER: &str = "
    43726266 00010000 1c000000 0800000000000000 1000000000000000
    416e745061697200";

fn open(type_name: &str, specs: &[ColumnSpec], file: Vec<u8>, around: &Given, rows: u64) -> Result<Box<dyn Manager>> {
    let files = Memory::new([("table.f0", file)]);
    // the files are little-endian in a big-endian table too
    let args = samples::args(&files, ByteOrder::Big, rows, specs, &[]);
    stman::open(type_name.into(), &OpenArgs { type_name: type_name.into(), table: around, ..args })
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn pairs_repeat_after_the_pattern() {
    let specs = ["ANTENNA1", "ANTENNA2"].map(|name| column(name, DataType::Int, Storage::Scalar, None));
    let around = Given::default();
    let file = |pattern: &str| {
        bytes(&format!("{ANTENNA_PAIR_HEADER} {pattern} 00000000 01000000 00000000 02000000 01000000 02000000"))
    };
    let read = |pattern: &str, rows| -> Result<Vec<Values>> {
        let manager = open("AntennaPairStMan", &specs, file(pattern), &around, rows)?;
        (0..2).map(|index| samples::read_both_ways(manager.column(index), rows, DataType::Int)).collect()
    };
    let ints = |values: &[i32]| Values::Int(values.to_vec());
    let repeated = read("0300000000000000", 5).unwrap();
    assert_eq!(repeated, [ints(&[0, 0, 1, 0, 0]), ints(&[1, 2, 2, 1, 2])]);
    // 0: a single time step, and rows beyond it were never written
    assert_eq!(read("0000000000000000", 3).unwrap(), [ints(&[0, 0, 1]), ints(&[1, 2, 2])]);
    let error = read("0000000000000000", 4).unwrap_err().to_string();
    assert_eq!(error, "table.f0 (AntennaPairStMan): the antennas of row 3 were never written: the file has 3 pairs");
    // as long as the table does not get there, a pattern need not be complete
    assert_eq!(read("0400000000000000", 3).unwrap()[1], ints(&[1, 2, 2]));
    assert!(read("0400000000000000", 4).is_err());
}

const UVW_HEADER: &str = "
    43726266 00010000 1c000000 1800000000000000 2000000000000000
    5576772d636f6c00 0300000000000000 0100000000000000 0300000000000000";

/// Three antennas of which 1 is the reference: positions of 0 and 2 in two time steps.
fn uvw_file(last: f64) -> Vec<u8> {
    let mut file = bytes(UVW_HEADER);
    file.extend(doubles(&[1., 2., 3., 10., 20., 30., 4., 5., 6., last, 50., 60.]));
    file
}

fn uvw_table() -> Given {
    let pairs = [(0, 1), (0, 2), (2, 1), (0, 1), (2, 0)];
    let antenna = |pick: fn((i32, i32)) -> i32| Values::Int(pairs.into_iter().map(pick).collect());
    Given::default().scalars("ANTENNA1", antenna(|pair| pair.0)).scalars("ANTENNA2", antenna(|pair| pair.1))
}

#[test]
fn uvw_is_the_difference_of_two_positions() {
    let read = |storage, last| {
        let specs = [column("UVW", DataType::Double, storage, Some(&[3]))];
        let manager = open("UvwStMan", &specs, uvw_file(last), &uvw_table(), 5)?;
        samples::read_both_ways(manager.column(0), 5, DataType::Double)
    };
    let first = [-1., -2., -3., 9., 18., 27., -10., -20., -30., -4., -5., -6.];
    let known = [&first[..], &[-36., -45., -54.]].concat();
    assert_eq!(read(Storage::Direct, 40.).unwrap(), Values::Double(known));
    // the largest number stands for a position that was never written
    assert_eq!(read(Storage::Indirect, f64::MAX).unwrap(), Values::Double(first.to_vec()));
    let error = read(Storage::Direct, f64::MAX).unwrap_err().to_string();
    assert_eq!(error, "table.f0 (UvwStMan): row 4: the file has no position for one of the antennas");

    let specs = [column("UVW", DataType::Double, Storage::Indirect, Some(&[3]))];
    let manager = open("UvwStMan", &specs, uvw_file(f64::MAX), &uvw_table(), 5).unwrap();
    assert_eq!(manager.column(0).same_shape(&(0..4)), Some(Shape::from([3])));
    assert_eq!(manager.column(0).same_shape(&(0..5)), None);
}

const STOKES_HEADER: &str = "43726266 00010000 1c000000 1900000000000000 0800000000000000 53746b49636f6c00";

#[test]
fn one_value_for_four_correlations() {
    let specs = [
        column("DATA", DataType::Complex, Storage::Direct, Some(&[4, 2])),
        column("WEIGHT", DataType::Float, Storage::Direct, Some(&[4, 2])),
        column("FLAG", DataType::Bool, Storage::Direct, Some(&[4, 2])),
    ];
    let mut file = bytes(STOKES_HEADER);
    file.extend([1f32, -1., 2., -2., 0.5, 0.25].iter().flat_map(|value| value.to_le_bytes()));
    file.push(0b10);
    let manager = open("StokesIStMan", &specs, file.clone(), &Given::default(), 2).unwrap();
    let read = |index: usize, data_type| samples::read_both_ways(manager.column(index), 2, data_type).unwrap();
    let z = Complex32::default();
    let (a, b) = (Complex32::new(1., -1.), Complex32::new(2., -2.));
    // the second row was never written
    assert_eq!(read(0, DataType::Complex), Values::Complex([vec![a, z, z, a, b, z, z, b], vec![z; 8]].concat()));
    let weights = [&[0.5f32, 0., 0., 0.5, 0.25, 0., 0., 0.25][..], &[0.; 8]].concat();
    assert_eq!(read(1, DataType::Float), Values::Float(weights));
    let flags = [vec![false; 4], vec![true; 4], vec![false; 8]].concat();
    assert_eq!(read(2, DataType::Bool), Values::Bool(flags));
    let region = Region { start: Shape::from([3, 0]), shape: Shape::from([1, 2]) };
    let mut part = Values::new(DataType::Complex);
    manager.column(0).read_cell(0, Some(&region), &mut part).unwrap();
    assert_eq!(part, Values::Complex(vec![a, b]));

    let two = [column("DATA", DataType::Complex, Storage::Direct, Some(&[2, 2]))];
    let error = open("StokesIStMan", &two, file.clone(), &Given::default(), 2).unwrap_err().to_string();
    assert_eq!(error, "table.f0 (StokesIStMan): column DATA: cells of fixed shape [4, channels] are expected");
    let error = open("StokesIStMan", &specs[..1], file, &Given::default(), 2).unwrap_err().to_string();
    assert_eq!(error, "table.f0 (StokesIStMan): rows of 25 bytes, 16 are expected");
}

#[test]
fn damage_is_an_error() {
    let pairs = ["ANTENNA1", "ANTENNA2"].map(|name| column(name, DataType::Int, Storage::Scalar, None));
    let file = bytes(&format!("{ANTENNA_PAIR_HEADER} 0200000000000000 00000000 01000000 00000000 02000000"));
    let read = |name: &str, specs: &[ColumnSpec], file| -> Result<()> {
        let manager = open(name, specs, file, &uvw_table(), 5)?;
        for (index, spec) in specs.iter().enumerate() {
            samples::read_both_ways(manager.column(index), 5, spec.data_type)?;
        }
        Ok(())
    };
    samples::damage(&file, |file| read("AntennaPairStMan", &pairs, file));
    for storage in [Storage::Direct, Storage::Indirect] {
        let uvw = [column("UVW", DataType::Double, storage, Some(&[3]))];
        samples::damage(&uvw_file(40.), |file| read("UvwStMan", &uvw, file));
    }
    let specs = [column("FLAG", DataType::Bool, Storage::Direct, Some(&[4, 200]))];
    let file = [bytes(STOKES_HEADER), vec![5; 100]].concat();
    samples::damage(&file, |file| read("StokesIStMan", &specs, file));
}

#[test]
fn the_header_is_checked() {
    let specs = ["ANTENNA1", "ANTENNA2"].map(|name| column(name, DataType::Int, Storage::Scalar, None));
    let error = |file: Vec<u8>| open("AntennaPairStMan", &specs, file, &Given::default(), 0).unwrap_err().to_string();
    let good = bytes(&format!("{ANTENNA_PAIR_HEADER} 0200000000000000"));
    let changed = |at: usize, byte| {
        let mut file = good.clone();
        file[at] = byte;
        error(file)
    };
    let place = "table.f0 (AntennaPairStMan): ";
    assert_eq!(changed(0, b'c'), format!("{place}the file begins with \"crbf\", not with `Crbf`"));
    assert_eq!(changed(5, 2), format!("{place}version 0x0200 of the file, known is 0x0100"));
    assert_eq!(changed(20, 8), format!("{place}headers of 28 and 8 bytes, 28 and 16 are expected"));
    assert!(changed(28, b'U').starts_with(&format!("{place}the manager's header begins with")));
    assert_eq!(error(Vec::new()), format!("{place}28 bytes expected at byte 0, but the file has 0 bytes"));
}

#[test]
fn columns_that_managers_cannot_have() {
    use crate::ErrorKind::{Format, Unsupported, Usage};

    let pairs = || bytes(&format!("{ANTENNA_PAIR_HEADER} 0000000000000000 00000000 01000000"));
    let stokes = || [bytes(STOKES_HEADER), vec![0; 25]].concat();
    let open_one = |name: &str, spec: ColumnSpec, file: Vec<u8>, around: &Given| open(name, &[spec], file, around, 1);
    let read = |name: &str, spec: ColumnSpec, file: Vec<u8>, around: &Given| {
        open_one(name, spec, file, around).unwrap().column(0).read_rows(0..1, &mut Values::new(DataType::String))
    };
    let nothing = Given::default();

    let name = "AntennaPairStMan";
    let antenna = |data_type| column("ANTENNA1", data_type, Storage::Scalar, None);
    let floats = open_one(name, antenna(DataType::Float), pairs(), &nothing);
    floats.fails(Format, "table.f0 (AntennaPairStMan): column ANTENNA1 does not have int scalars");
    let words = "antennas are read into Ints";
    read(name, antenna(DataType::Int), pairs(), &nothing).fails(Usage, words);
    let mut other = pairs();
    other[..4].copy_from_slice(b"Xrbf");
    let words = "table.f0 (AntennaPairStMan): the file begins with \"Xrbf\", not with `Crbf`";
    open_one(name, antenna(DataType::Int), other, &nothing).fails(Format, words);

    let name = "UvwStMan";
    let uvw = |extent: u64| column("UVW", DataType::Double, Storage::Indirect, Some(&[extent]));
    let words = "table.f0 (UvwStMan): column UVW is not of double arrays of shape [3]";
    open_one(name, uvw(2), uvw_file(40.), &uvw_table()).fails(Format, words);
    let words = "UVW is read into Doubles";
    read(name, uvw(3), uvw_file(40.), &uvw_table()).fails(Usage, words);
    let floats = Given::default().scalars("ANTENNA1", Values::Float(vec![0.]));
    let words = "table.f0 (UvwStMan): column ANTENNA1 does not hold int scalars, but float";
    open_one(name, uvw(3), uvw_file(40.), &floats).fails(Format, words);
    let scalar = |name: &str| column(name, DataType::Int, Storage::Scalar, None);
    let undefined = ["ANTENNA1", "ANTENNA2"]
        .into_iter()
        .fold(Given::default(), |table, name| table.column(scalar(name), Default::default(), vec![None]));
    let words = "column ANTENNA1 has 0 int scalars in 1 rows";
    read(name, uvw(3), uvw_file(40.), &undefined).fails(Usage, "UVW is read into Doubles");
    let manager = open_one(name, uvw(3), uvw_file(40.), &undefined).unwrap();
    manager.column(0).read_rows(0..1, &mut Values::new(DataType::Double)).fails(Format, words);

    let name = "StokesIStMan";
    let data = |data_type, channels| column("DATA", data_type, Storage::Direct, Some(&[4, channels]));
    let words = "table.f0 (StokesIStMan): column DATA: the cells have 2199023255552 channels, the limit is 2^40";
    open_one(name, data(DataType::Complex, 1 << 41), stokes(), &nothing).fails(Format, words);
    let words = "table.f0 (StokesIStMan): column DATA: int values, complex, float or boolean ones are expected";
    open_one(name, data(DataType::Int, 2), stokes(), &nothing).fails(Format, words);
    let specs = [data(DataType::Complex, 2), data(DataType::Float, 2), data(DataType::Bool, 2)];
    let manager = open(name, &specs, stokes(), &nothing, 1).unwrap();
    let words = "a complex column is read into string values";
    manager.column(0).read_rows(0..1, &mut Values::new(DataType::String)).fails(Usage, words);

    for (name, words) in [
        ("AsdmStMan", "AsdmStMan is a third-party manager: the ASDM that has the values is not read"),
        ("Adios2StMan", "Adios2StMan needs a third-party library: ADIOS2 files are not read"),
    ] {
        open_one(name, scalar("I"), Vec::new(), &nothing).fails(Unsupported, words);
    }
}
