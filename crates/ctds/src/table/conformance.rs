//! The promises of every manager that is read, tried with the tables of testdata/: the suite fails
//! for a manager without one.

use std::collections::BTreeMap;

use ctds_hdf5_testing::{tables_below, testdata};

use super::read::{Rows, Wanted};
use super::{ColumnCells, Table};
use crate::ErrorKind;
use crate::stman::samples::read_both_ways;
use crate::stman::{self, read_part};
use crate::value::{ByteOrder, Element, Region, Shape, Values, for_each_type, swap_bytes, swap_width};

/// More rows take too long one by one.
const MAX_ROWS: u64 = 5000;

/// Managers that python-casacore cannot write: stman/ tests them with files and tables of our own.
const NOT_IN_TESTDATA: [&str; 4] =
    ["TiledDataStMan", "ScaledArrayEngine", "ScaledComplexData", "ForwardColumnIndexedRowEngine"];

#[test]
fn all_ways_to_read_agree() {
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    let (mut at_once, mut as_plain) = (0, 0);
    for path in tables_below(&testdata()) {
        let Ok(table) = Table::open(&path) else { continue };
        // rows that were removed: casacore leaves managers that state another number
        let may_be_damaged = path.components().any(|part| part.as_os_str() == "removed_rows_and_columns");
        let rows = table.rows();
        if rows > MAX_ROWS {
            continue;
        }
        for (index, info) in table.columns().iter().enumerate() {
            let place = format!("{}, {}", path.display(), info.desc.name);
            let read = table.cells(index);
            let read = read.and_then(|cells| Ok((cells, read_both_ways(cells, rows, info.spec().data_type)?)));
            let (cells, all) = match read {
                Ok(read) => read,
                Err(error) => {
                    let is_expected =
                        error.kind() == ErrorKind::Unsupported || may_be_damaged && error.kind() == ErrorKind::Format;
                    assert!(is_expected, "{place}: {error}");
                    continue;
                }
            };
            let read_at_once = for_each_type!(&all, elements => many_rows(cells, rows, elements, &place));
            at_once += read_at_once.0;
            as_plain += read_at_once.1;
            shapes_and_parts_agree(cells, rows, &all, &place);
            hypercubes_cover_rows(cells, rows, &place);
            let manager = info.manager.to_string();
            let name = manager.split('<').next().unwrap_or_default().trim().to_owned();
            *tried.entry(name).or_default() += 1;
        }
    }
    println!(
        "columns of each manager: {tried:?}; {at_once} stretches of rows read at once, {as_plain} as plain numbers"
    );
    assert!(at_once > 1000, "{at_once}");
    assert!(as_plain > 100, "{as_plain}");
    for name in stman::supported() {
        let is_in_testdata = tried.contains_key(name);
        assert!(is_in_testdata != NOT_IN_TESTDATA.contains(&name), "{name} is in testdata/: {is_in_testdata}");
    }
}

/// Reads shapes in each way, and parts of cells; `all`: the elements of all defined cells.
fn shapes_and_parts_agree(cells: &dyn ColumnCells, rows: u64, all: &Values, place: &str) {
    let shapes = cells.shapes(0..rows).unwrap();
    assert_eq!(shapes.len() as u64, rows, "{place}");
    let mut read = 0;
    for row in 0..rows {
        let shape = cells.cell_shape(row).unwrap();
        assert_eq!(shape, shapes[row as usize], "{place}, row {row}");
        let same = cells.same_shape(&(row..row + 1));
        assert!(same.is_none() || same == shape, "{place}, row {row}: {same:?} and {shape:?}");
        let Some(shape) = shape else { continue };
        let elements = shape.elements().unwrap() as usize;
        if !shape.is_empty() && elements > 0 {
            let start: Shape = shape.iter().map(|extent| extent / 2).collect();
            let region = Region { shape: shape.iter().map(|extent| extent.div_ceil(2)).collect(), start };
            let (mut part, mut expected) = (Values::new(all.data_type()), Values::new(all.data_type()));
            cells.read_cell(row, Some(&region), &mut part).unwrap();
            let whole = |out: &mut Values| out.extend_from(all, read..read + elements);
            read_part(Some(&region), &shape, &mut expected, whole).unwrap();
            assert!(same_bits(&part, &expected), "{place}, row {row}");
        }
        read += elements;
    }
    if let Some(shape) = cells.same_shape(&(0..rows)) {
        let is_same = |row| cells.cell_shape(row).unwrap().as_ref() == Some(&shape);
        assert!((0..rows).all(is_same), "{place}: not all cells are {shape}");
    }
}

/// The runs of a tiling ascend, and leave out undefined cells only.
fn hypercubes_cover_rows(cells: &dyn ColumnCells, rows: u64, place: &str) {
    let Some(tiling) = cells.tiling(64) else { return };
    let mut end = 0;
    let is_undefined = |row| cells.cell_shape(row).unwrap().is_none();
    for run in &tiling.runs {
        assert!(end <= run.rows.start && run.rows.start < run.rows.end, "{place}: {run:?}");
        assert!(run.cube < tiling.cubes.len() && run.rows.end <= rows, "{place}: {run:?}");
        assert!((end..run.rows.start).all(is_undefined), "{place}: rows before {run:?}");
        end = run.rows.end;
    }
    assert!((end..rows).all(is_undefined), "{place}: rows from {end} on");
}

/// Counts stretches of rows with one shape, and those read as plain numbers, whole and in part.
fn many_rows<T: Element>(cells: &dyn ColumnCells, rows: u64, all: &[T], place: &str) -> (usize, usize) {
    const MAX_STRETCHES: usize = 16;
    let shapes: Vec<_> = (0..rows).map(|row| cells.cell_shape(row).unwrap()).collect();
    let (mut first, mut row, mut stretches, mut found_plain) = (0, 0, 0, 0);
    for stretch in shapes.chunk_by(|a, b| a == b) {
        let rows = row..row + stretch.len() as u64;
        row = rows.end;
        let Some(cell) = &stretch[0] else { continue };
        let len = cell.elements().unwrap() as usize;
        let elements = &all[first..first + len * stretch.len()];
        first += elements.len();
        stretches += 1;
        if stretches > MAX_STRETCHES {
            continue;
        }
        let whole = Wanted { cells, rows: Rows::Range(rows.clone()), cell, region: None };
        let mut found = T::zeros(elements.len()).unwrap();
        whole.read(&mut found).unwrap();
        let values = |elements: &[T]| T::values(elements.to_vec());
        assert!(same_bits(&values(&found), &values(elements)), "{place}, rows {rows:?}");
        assert_eq!(whole.read(&mut T::zeros(elements.len() + 1).unwrap()).unwrap_err().kind(), ErrorKind::Usage);
        // plain numbers, where the column has a way of its own: the last row first, then all, then
        // every second
        let runs = [rows.end - 1..rows.end, rows.clone()];
        let runs = || runs.iter().cloned().chain(rows.clone().step_by(2).map(|row| row..row + 1));
        let places = runs().flatten().map(|row| (row - rows.start) as usize * len);
        let expected: Vec<T> = places.flat_map(|at| elements[at..at + len].to_vec()).collect();
        let mut found = T::zeros(expected.len()).unwrap();
        if let Some(bytes) = T::bytes_mut(&mut found)
            && let Some(order) = cells.read_plain(&mut runs(), bytes)
        {
            if order != ByteOrder::NATIVE {
                swap_bytes(bytes, swap_width(T::DATA_TYPE));
            }
            assert!(same_bits(&values(&found), &values(&expected)), "{place}, rows {rows:?} as plain numbers");
            found_plain += 1;
        }
        // a list of rows: the last one first, then every third
        let list: Vec<u64> = [rows.end - 1].into_iter().chain(rows.clone().step_by(3)).collect();
        let places = list.iter().map(|row| (row - rows.start) as usize * len);
        let expected: Vec<T> = places.flat_map(|at| elements[at..at + len].to_vec()).collect();
        let mut found = T::zeros(expected.len()).unwrap();
        Wanted { cells, rows: Rows::List(&list), cell, region: None }.read(&mut found).unwrap();
        assert!(same_bits(&values(&found), &values(&expected)), "{place}, rows {list:?}");
        if cell.is_empty() || len == 0 {
            continue;
        }
        let start: Shape = cell.iter().map(|extent| extent / 2).collect();
        let region = Region { shape: cell.iter().map(|extent| extent.div_ceil(2)).collect(), start };
        let mut expected = Values::new(T::DATA_TYPE);
        for cell_elements in elements.chunks(len) {
            let one = values(cell_elements);
            read_part(Some(&region), cell, &mut expected, |out: &mut Values| out.extend_from(&one, 0..len)).unwrap();
        }
        let mut found = T::zeros(expected.len()).unwrap();
        Wanted { cells, rows: Rows::Range(rows.clone()), cell, region: Some(&region) }.read(&mut found).unwrap();
        assert!(same_bits(&values(&found), &expected), "{place}, rows {rows:?}, {region:?}");
    }
    (stretches, found_plain)
}

fn same_bits(a: &Values, b: &Values) -> bool {
    match (a.le_bytes(), b.le_bytes()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
