//! For the tests of the managers: random edits of a manager, and what its reader must find
//! afterwards.

use std::sync::Arc;

use ctds_hdf5_testing::property;
use ctds_hdf5_testing::proptest::collection::vec;
use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::sample::{Index, select};

use super::TYPES;
use super::samples::{self, column, read_both_ways};
use super::{ColumnSpec, Kind, ManagerMut, Storage};
use crate::container::Memory;
use crate::grid::copy_box;
use crate::io::ByteOrder;
use crate::value::{BString, Complex32, Complex64, DataType, Record, Region, Shape, Value, Values};
use crate::{ErrorKind, Result};

const EDITS: usize = 150;

#[derive(Debug, Clone, Copy)]
enum Fill {
    Same(u64),
    Each(u64),
}

fn fill() -> impl Strategy<Value = Fill> {
    prop_oneof![(0..5u64).prop_map(Fill::Same), any::<u64>().prop_map(Fill::Each)]
}

impl Fill {
    fn number(self, at: usize) -> u64 {
        match self {
            Fill::Same(number) => number,
            Fill::Each(start) => (start.wrapping_add(at as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34,
        }
    }

    fn string(self, at: usize, longest: u64) -> BString {
        let number = self.number(at);
        let longest = if number % 10 == 9 { longest } else { longest.min(10) };
        vec![b'a' + (number % 3) as u8; (number / 10 % (longest + 1)) as usize].into()
    }

    fn values(self, data_type: DataType, count: usize, longest: u64) -> Values {
        let numbers = (0..count).map(|at| self.number(at));
        macro_rules! cast {
            ($to:ty) => {
                numbers.map(|number| number as $to).collect()
            };
        }
        match data_type {
            DataType::Bool => Values::Bool(numbers.map(|number| number % 2 == 1).collect()),
            DataType::UChar => Values::UChar(cast!(u8)),
            DataType::Short => Values::Short(cast!(i16)),
            DataType::UShort => Values::UShort(cast!(u16)),
            DataType::Int => Values::Int(cast!(i32)),
            DataType::UInt => Values::UInt(cast!(u32)),
            DataType::Int64 => Values::Int64(cast!(i64)),
            DataType::Float => Values::Float(cast!(f32)),
            DataType::Double => Values::Double(cast!(f64)),
            DataType::Complex => Values::Complex(numbers.map(|n| Complex32::new(n as f32, 1.)).collect()),
            DataType::DComplex => Values::DComplex(numbers.map(|n| Complex64::new(1., n as f64)).collect()),
            DataType::String => Values::String((0..count).map(|at| self.string(at, longest)).collect()),
            DataType::Record => unreachable!("records are arrays of bytes"),
        }
    }
}

/// More often with elements than without.
fn shape() -> impl Strategy<Value = Shape> {
    vec(prop_oneof![5 => 1..6u64, 1 => Just(0)], 1..=3).prop_map(Shape::from_iter)
}

fn spec() -> impl Strategy<Value = ColumnSpec> {
    let storage = prop_oneof![
        2 => Just(Some(Storage::Scalar)),
        1 => Just(Some(Storage::Direct)),
        1 => Just(Some(Storage::Indirect)),
        2 => Just(None),
    ];
    let max_length = prop_oneof![Just(0), 1..10u32];
    (select(&TYPES[..]), storage, shape(), max_length).prop_map(|(data_type, storage, shape, max_length)| {
        let is_text = data_type == DataType::String && storage == Some(Storage::Scalar);
        let mut spec = match storage {
            Some(storage) => column("C", data_type, storage, Some(&shape)),
            None => column("C", data_type, Storage::Indirect, None),
        };
        spec.max_length = if is_text { max_length } else { 0 };
        spec
    })
}

/// One thing that may happen to a manager, whatever is in it.
#[derive(Debug, Clone)]
enum Edit {
    AddRows(u64),
    RemoveRow(Index),
    AddColumn(ColumnSpec),
    RemoveColumn(Index),
    Check,
    Write(Write),
}

#[derive(Debug, Clone)]
struct Write {
    column: Index,
    first: Index,
    /// `None` for one row.
    count: Option<Index>,
    /// The shape of most cells that get one.
    shape: Shape,
    /// For each row in turn: whether a cell with a shape gets one, and another one than most.
    shapes: Vec<(bool, Option<Shape>)>,
    is_shape_only: bool,
    fill: Fill,
    /// Start and extent of the written part, for each axis in turn.
    part: Option<Vec<(Index, Index)>>,
}

fn write() -> impl Strategy<Value = Write> {
    let shapes = vec((prop::bool::weighted(0.67), prop::option::weighted(0.25, shape())), 1..20);
    let part = prop::option::of(vec(any::<(Index, Index)>(), 3));
    let parts = (
        any::<(Index, Index)>(),
        prop::option::of(any::<Index>()),
        (shape(), shapes),
        prop::bool::weighted(0.12),
        fill(),
        part,
    );
    parts.prop_map(|((column, first), count, (shape, shapes), is_shape_only, fill, part)| Write {
        column,
        first,
        count,
        shape,
        shapes,
        is_shape_only,
        fill,
        part,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        31 => write().prop_map(Edit::Write),
        3 => (0..60u64).prop_map(Edit::AddRows),
        3 => any::<Index>().prop_map(Edit::RemoveRow),
        1 => spec().prop_map(Edit::AddColumn),
        1 => any::<Index>().prop_map(Edit::RemoveColumn),
        1 => Just(Edit::Check),
    ]
}

struct Expected {
    spec: ColumnSpec,
    cells: Vec<Option<(Shape, Values)>>,
}

impl Expected {
    fn new(spec: ColumnSpec, rows: usize) -> Self {
        let empty = spec.shape.as_ref().map(|shape| zeros(spec.data_type, shape));
        Expected { spec, cells: vec![empty; rows] }
    }

    fn longest(&self) -> u64 {
        match self.spec.max_length {
            0 => 500,
            longest => longest.into(),
        }
    }
}

fn zeros(data_type: DataType, shape: &Shape) -> (Shape, Values) {
    let mut values = Values::new(data_type);
    values.extend_default(shape.elements().unwrap() as usize);
    (shape.clone(), values)
}

/// Makes managers, each with one of `parameters`, and compares the cells read with those written.
pub(super) fn random_edits(kind: &'static Kind, managers: u32, parameters: &[&[(&'static str, i32)]]) {
    let orders = select(&[ByteOrder::Big, ByteOrder::Little][..]);
    let parameters: Vec<Vec<(&'static str, i32)>> = parameters.iter().map(|set| set.to_vec()).collect();
    let strategy = (orders, select(parameters), vec(spec(), 1..=6), vec(edit(), EDITS));
    property(managers, strategy, |(order, parameters, specs, edits)| {
        try_edits(kind, order, &parameters, specs, &edits)
    });
}

fn try_edits(kind: &Kind, order: ByteOrder, parameters: &[(&str, i32)], mut specs: Vec<ColumnSpec>, edits: &[Edit]) {
    let mut record = Record::default();
    for &(name, value) in parameters {
        record.set(name, Value::Scalar(Values::Int(vec![value])));
    }
    let name = |spec: &mut ColumnSpec, number: usize| spec.name = format!("C{number}").into();
    specs.iter_mut().enumerate().for_each(|(number, spec)| name(spec, number));
    let files = Arc::new(Memory::default());
    let args = samples::create_args(&files, order, &specs, &record);
    let mut manager = (kind.create.unwrap())(&args).unwrap();
    let mut model: Vec<_> = specs.into_iter().map(|spec| Expected::new(spec, 0)).collect();
    let mut rows = 0;
    let mut made = model.len();
    for edit in edits {
        match edit {
            Edit::AddRows(count) => {
                manager.add_rows(*count).unwrap();
                rows += *count as usize;
                for column in &mut model {
                    let empty = column.spec.shape.as_ref().map(|shape| zeros(column.spec.data_type, shape));
                    column.cells.resize(rows, empty);
                }
            }
            Edit::RemoveRow(row) if rows > 0 => {
                let row = row.index(rows) as u64;
                if is_supported(manager.remove_row(row)) {
                    rows -= 1;
                    model.iter_mut().for_each(|column| drop(column.cells.remove(row as usize)));
                }
            }
            Edit::AddColumn(spec) => {
                let mut spec = spec.clone();
                name(&mut spec, made);
                if is_supported(manager.add_column(&spec)) {
                    made += 1;
                    model.push(Expected::new(spec, rows));
                }
            }
            Edit::RemoveColumn(column) if model.len() > 1 => {
                let column = column.index(model.len());
                if is_supported(manager.remove_column(column)) {
                    model.remove(column);
                }
            }
            Edit::Check => check(kind, &mut *manager, &files, order, &model, rows),
            Edit::Write(edit) if rows > 0 => {
                let column = edit.column.index(model.len());
                write_cells(edit, &mut *manager, column, &mut model[column]);
            }
            _ => {}
        }
    }
    check(kind, &mut *manager, &files, order, &model, rows);
}

/// Whether a manager has made an edit; it may refuse a kind of edit, but not fail.
fn is_supported(edit: Result<()>) -> bool {
    edit.inspect_err(|error| assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}")).is_ok()
}

fn write_cells(edit: &Write, manager: &mut dyn ManagerMut, number: usize, column: &mut Expected) {
    let rows = column.cells.len();
    let longest = column.longest();
    let data_type = column.spec.data_type;
    let first = edit.first.index(rows);
    let count = edit.count.as_ref().map_or(1, |count| 1 + count.index(rows - first));
    for (row, (is_set, other)) in (first..first + count).zip(edit.shapes.iter().cycle()) {
        let cell = &mut column.cells[row];
        let row = row as u64;
        assert_eq!(manager.cell_shape(number, row).unwrap().as_ref(), cell.as_ref().map(|cell| &cell.0));
        // cells that follow each other often have the same shape
        if column.spec.shape.is_none() && (cell.is_none() || *is_set) {
            let shape = other.as_ref().unwrap_or(&edit.shape);
            manager.set_shape(number, row, shape).unwrap();
            if cell.as_ref().is_none_or(|cell| cell.0 != *shape) {
                *cell = Some(zeros(data_type, shape));
            }
        }
    }
    if column.spec.shape.is_none() && edit.is_shape_only {
        return;
    }
    let cells = &mut column.cells[first..first + count];
    let first = first as u64;
    if count > 1 {
        let elements = cells.iter().flatten().map(|cell| cell.1.len()).sum();
        let values = edit.fill.values(data_type, elements, longest);
        manager.write_rows(number, first..first + count as u64, &values).unwrap();
        let mut done = 0;
        for (_, cell) in cells.iter_mut().flatten() {
            let end = done + cell.len();
            cell.clear();
            cell.extend_from(&values, done..end).unwrap();
            done = end;
        }
        return;
    }
    let (shape, cell) = cells[0].as_mut().unwrap();
    let Some(part) = &edit.part else {
        *cell = edit.fill.values(data_type, cell.len(), longest);
        manager.write_cell(number, first, None, cell).unwrap();
        return;
    };
    let below = |index: &Index, end: u64| index.index(end as usize) as u64;
    let starts = shape.iter().zip(part).map(|(&extent, (start, _))| below(start, extent + 1));
    let start: Shape = starts.collect();
    let extents = shape.iter().zip(start.iter()).zip(part);
    let extent: Shape = extents.map(|((&extent, &start), (_, end))| below(end, extent - start + 1)).collect();
    let region = Region { start, shape: extent };
    let part = edit.fill.values(data_type, region.shape.elements().unwrap() as usize, longest);
    manager.write_cell(number, first, Some(&region), &part).unwrap();
    let zero = vec![0; shape.len()];
    copy_box(&part, &region.shape, &zero, cell, 0, shape, &region.start, &region.shape);
}

fn check(kind: &Kind, manager: &mut dyn ManagerMut, files: &Memory, order: ByteOrder, model: &[Expected], rows: usize) {
    let info = manager.flush().unwrap();
    let specs: Vec<_> = model.iter().map(|column| column.spec.clone()).collect();
    let reader = (kind.open)(&samples::args(files, order, rows as u64, &specs, &info)).unwrap();
    assert_eq!(reader.name(), "Test");
    for (number, column) in model.iter().enumerate() {
        let data_type = column.spec.data_type;
        let mut all = Values::new(data_type);
        for (row, cell) in column.cells.iter().enumerate() {
            let row = row as u64;
            let shape = cell.as_ref().map(|cell| &cell.0);
            assert_eq!(reader.column(number).cell_shape(row).unwrap().as_ref(), shape, "{:?} {row}", column.spec);
            assert_eq!(manager.cell_shape(number, row).unwrap().as_ref(), shape);
            if let Some((_, values)) = cell {
                let mut read = Values::new(data_type);
                reader.column(number).read_cell(row, None, &mut read).unwrap();
                assert_eq!(&read, values, "{:?} {row}", column.spec);
                all.extend_from(values, 0..values.len()).unwrap();
            }
        }
        assert_eq!(read_both_ways(reader.column(number), rows as u64, data_type).unwrap(), all);
    }
}
