//! For the tests of the managers: random edits of a manager, and what its reader must find afterwards.

use std::sync::Arc;

use super::samples::{self, column, read_both_ways};
use super::{ColumnSpec, Kind, ManagerMut, Storage};
use crate::ErrorKind;
use crate::container::Memory;
use crate::grid::copy_box;
use crate::io::ByteOrder;
use crate::value::{BString, Complex32, Complex64, DataType, Record, Region, Shape, Value, Values};

const EDITS: usize = 150;

const TYPES: [DataType; 12] = [
    DataType::Bool,
    DataType::UChar,
    DataType::Short,
    DataType::UShort,
    DataType::Int,
    DataType::UInt,
    DataType::Int64,
    DataType::Float,
    DataType::Double,
    DataType::Complex,
    DataType::DComplex,
    DataType::String,
];

/// Numbers that depend on the seed only.
struct Random(u64);

impl Random {
    /// Below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }

    fn string(&mut self, longest: u64) -> BString {
        // rarely long, often the same
        let longest = if self.below(10) == 0 { longest } else { longest.min(10) };
        let len = self.below(longest + 1);
        let byte = b'a' + self.below(3) as u8;
        vec![byte; len as usize].into()
    }

    fn values(&mut self, data_type: DataType, count: usize, longest: u64) -> Values {
        let alike = self.below(2) == 0;
        let same = self.below(5);
        let mut numbers: Vec<u64> = (0..count).map(|_| if alike { same } else { self.below(1 << 30) }).collect();
        macro_rules! cast {
            ($to:ty) => {
                numbers.drain(..).map(|number| number as $to).collect()
            };
        }
        match data_type {
            DataType::Bool => Values::Bool(numbers.iter().map(|number| number % 2 == 1).collect()),
            DataType::UChar => Values::UChar(cast!(u8)),
            DataType::Short => Values::Short(cast!(i16)),
            DataType::UShort => Values::UShort(cast!(u16)),
            DataType::Int => Values::Int(cast!(i32)),
            DataType::UInt => Values::UInt(cast!(u32)),
            DataType::Int64 => Values::Int64(cast!(i64)),
            DataType::Float => Values::Float(cast!(f32)),
            DataType::Double => Values::Double(cast!(f64)),
            DataType::Complex => Values::Complex(numbers.iter().map(|&n| Complex32::new(n as f32, 1.)).collect()),
            DataType::DComplex => Values::DComplex(numbers.iter().map(|&n| Complex64::new(1., n as f64)).collect()),
            DataType::String => Values::String((0..count).map(|_| self.string(longest)).collect()),
            DataType::Record => unreachable!("records are arrays of bytes"),
        }
    }

    fn shape(&mut self) -> Shape {
        // more often with elements than without
        (0..1 + self.below(3)).map(|_| (1 + self.below(6)) % 6).collect()
    }

    fn spec(&mut self, number: usize) -> ColumnSpec {
        let data_type = TYPES[self.below(12) as usize];
        let name = format!("C{number}");
        let shape = self.shape();
        match self.below(6) {
            0 | 1 => {
                let mut spec = column(&name, data_type, Storage::Scalar, None);
                if data_type == DataType::String && self.below(2) == 0 {
                    spec.max_length = 1 + self.below(9) as u32;
                }
                spec
            }
            2 => column(&name, data_type, Storage::Direct, Some(&shape)),
            3 => column(&name, data_type, Storage::Indirect, Some(&shape)),
            _ => column(&name, data_type, Storage::Indirect, None),
        }
    }
}

/// A column and its cells.
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

/// Makes a manager, changes it at random, and compares what is read with what was written.
pub(super) fn random_edits(kind: &Kind, seed: u64, parameters: &[(&str, i32)]) {
    let mut random = Random(seed);
    let order = [ByteOrder::Big, ByteOrder::Little][random.below(2) as usize];
    let mut record = Record::default();
    for &(name, value) in parameters {
        record.set(name, Value::Scalar(Values::Int(vec![value])));
    }
    let specs: Vec<_> = (0..1 + random.below(6)).map(|number| random.spec(number as usize)).collect();
    let files = Arc::new(Memory::default());
    let args = samples::create_args(&files, order, &specs, &record);
    let mut manager = (kind.create.unwrap())(&args).unwrap();
    let mut model: Vec<_> = specs.into_iter().map(|spec| Expected::new(spec, 0)).collect();
    let mut rows = 0;
    let mut made = model.len();
    for edit in 0..EDITS {
        match random.below(40) {
            0..3 => {
                let count = random.below(60);
                manager.add_rows(count).unwrap();
                rows += count as usize;
                for column in &mut model {
                    let empty = column.spec.shape.as_ref().map(|shape| zeros(column.spec.data_type, shape));
                    column.cells.resize(rows, empty);
                }
            }
            3..6 if rows > 0 => {
                let row = random.below(rows as u64);
                match manager.remove_row(row) {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
                    Ok(()) => {
                        rows -= 1;
                        model.iter_mut().for_each(|column| drop(column.cells.remove(row as usize)));
                    }
                }
            }
            6 => {
                let spec = random.spec(made);
                match manager.add_column(&spec) {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
                    Ok(()) => {
                        made += 1;
                        model.push(Expected::new(spec, rows));
                    }
                }
            }
            7 if model.len() > 1 => {
                let column = random.below(model.len() as u64) as usize;
                match manager.remove_column(column) {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
                    Ok(()) => drop(model.remove(column)),
                }
            }
            8 if edit % 3 == 0 => check(kind, &mut *manager, &files, order, &model, rows),
            _ if rows > 0 => {
                let column = random.below(model.len() as u64) as usize;
                write(&mut random, &mut *manager, column, &mut model[column]);
            }
            _ => {}
        }
    }
    check(kind, &mut *manager, &files, order, &model, rows);
}

/// Writes a few cells of a column: whole or in part, with another shape or the one they have.
fn write(random: &mut Random, manager: &mut dyn ManagerMut, number: usize, column: &mut Expected) {
    let rows = column.cells.len() as u64;
    let longest = column.longest();
    let data_type = column.spec.data_type;
    let first = random.below(rows);
    let many = random.below(2) == 0;
    let count = if many { 1 + random.below(rows - first) } else { 1 };
    let shape = random.shape();
    for row in first..first + count {
        let cell = &mut column.cells[row as usize];
        assert_eq!(manager.cell_shape(number, row).unwrap().as_ref(), cell.as_ref().map(|cell| &cell.0));
        // cells that follow each other often have the same shape
        if column.spec.shape.is_none() && (cell.is_none() || random.below(3) > 0) {
            let shape = if random.below(4) == 0 { random.shape() } else { shape.clone() };
            manager.set_shape(number, row, &shape).unwrap();
            if cell.as_ref().is_none_or(|cell| cell.0 != shape) {
                *cell = Some(zeros(data_type, &shape));
            }
        }
    }
    if column.spec.shape.is_none() && random.below(8) == 0 {
        return;
    }
    let cells = &mut column.cells[first as usize..(first + count) as usize];
    if count > 1 {
        let elements = cells.iter().flatten().map(|cell| cell.1.len()).sum();
        let values = random.values(data_type, elements, longest);
        manager.write_rows(number, first..first + count, &values).unwrap();
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
    if random.below(2) == 0 {
        *cell = random.values(data_type, cell.len(), longest);
        manager.write_cell(number, first, None, cell).unwrap();
        return;
    }
    let start: Shape = shape.iter().map(|&extent| random.below(extent + 1)).collect();
    let extent: Shape =
        shape.iter().zip(start.iter()).map(|(&extent, &start)| random.below(extent - start + 1)).collect();
    let region = Region { start, shape: extent };
    let part = random.values(data_type, region.shape.elements().unwrap() as usize, longest);
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
