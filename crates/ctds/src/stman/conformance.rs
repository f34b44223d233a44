//! The promises of every manager that is written: the suite walks the registry, so that a new
//! manager is tested, or fails for want of a sample.

use std::sync::Arc;

use super::TYPES;
use super::samples::{self, column, create_args, read_both_ways};
use super::{ColumnSpec, KINDS, Kind, ManagerMut, OpenArgs, Storage};
use crate::ErrorKind;
use crate::container::{Container, ContainerMut, Memory};
use crate::io::{ByteOrder, read_all};
use crate::value::{DataType, Record, Region, Shape, Value, Values};

struct Sample {
    columns: Vec<ColumnSpec>,
    parameters: Record,
    private_keywords: Record,
    /// Rows that fill more than one bucket or tile, the last of them in part.
    many: u64,
    has_undefined_cells: bool,
    has_shapes: bool,
}

fn record(fields: &[(&str, Value)]) -> Record {
    let mut record = Record::default();
    fields.iter().for_each(|(name, value)| record.set(*name, value.clone()));
    record
}

fn integers(values: &[i32]) -> Value {
    Value::Array(Shape::from([values.len() as u64]), Values::Int(values.into()))
}

fn strings(names: &[&str]) -> Value {
    let names: Vec<_> = names.iter().map(|&name| name.into()).collect();
    Value::Array(Shape::from([names.len() as u64]), Values::String(names))
}

fn all_columns() -> Vec<ColumnSpec> {
    let mut columns = Vec::new();
    for data_type in TYPES {
        let name = |storage: &str| format!("{data_type}_{storage}");
        columns.push(column(&name("scalar"), data_type, Storage::Scalar, None));
        columns.push(column(&name("direct"), data_type, Storage::Direct, Some(&[3, 2])));
        columns.push(column(&name("fixed"), data_type, Storage::Indirect, Some(&[5])));
        columns.push(column(&name("free"), data_type, Storage::Indirect, None));
    }
    columns
}

/// The pixels are bits, bytes and more.
fn tiled_columns(shape: Option<&[u64]>) -> Vec<ColumnSpec> {
    let types = [DataType::Complex, DataType::Bool, DataType::Short];
    let column = |data_type: DataType| {
        let mut spec = column(&data_type.to_string(), data_type, Storage::Indirect, shape);
        spec.ndim = 2;
        spec
    };
    types.into_iter().map(column).collect()
}

/// `None` for a manager without cells of its own.
fn sample(kind: &Kind) -> Option<Sample> {
    let buckets = |size: i32| record(&[("BUCKETSIZE", Value::Scalar(Values::Int(vec![size])))]);
    let tiles = |tile: &[i32]| record(&[("DEFAULTTILESHAPE", integers(tile))]);
    let any = Sample {
        columns: all_columns(),
        parameters: Record::default(),
        private_keywords: Record::default(),
        many: 500,
        has_undefined_cells: true,
        has_shapes: true,
    };
    Some(match kind.names[0] {
        "StandardStMan" => Sample { parameters: buckets(2000), ..any },
        "IncrementalStMan" => Sample { parameters: buckets(9000), ..any },
        "StManAipsIO" => any,
        "TiledColumnStMan" => Sample {
            columns: tiled_columns(Some(&[3, 5])),
            parameters: tiles(&[2, 5, 8]),
            has_undefined_cells: false,
            ..any
        },
        "TiledShapeStMan" => Sample { columns: tiled_columns(None), parameters: tiles(&[2, 5, 8]), ..any },
        "TiledCellStMan" => Sample { columns: tiled_columns(None), parameters: tiles(&[2, 2]), ..any },
        "TiledDataStMan" => {
            let names: Vec<_> = tiled_columns(None).into_iter().map(|column| column.name).collect();
            let definition = record(&[
                ("ndim", Value::Scalar(Values::UInt(vec![3]))),
                ("data", Value::Array(Shape::from([names.len() as u64]), Values::String(names))),
                ("coord", strings(&[])),
                ("id", strings(&[])),
            ]);
            Sample {
                columns: tiled_columns(None),
                parameters: tiles(&[2, 5, 8]),
                private_keywords: record(&[("Hypercolumn_Test", Value::Record(definition))]),
                has_undefined_cells: false,
                // a shape that comes back later would be a hypercube of its own
                has_shapes: false,
                ..any
            }
        }
        _ if kind.engine.is_some() => return None,
        name => panic!("{name} is written, but has no sample here"),
    })
}

fn written() -> impl Iterator<Item = (&'static Kind, Option<Sample>)> {
    KINDS.iter().filter(|kind| kind.create.is_some()).map(|kind| (*kind, sample(kind)))
}

/// `None` for a cell that stays undefined.
fn shape_of(spec: &ColumnSpec, sample: &Sample, row: u64) -> Option<Shape> {
    match &spec.shape {
        Some(shape) => Some(shape.clone()),
        None if sample.has_undefined_cells && row % 7 == 2 => None,
        None if sample.has_shapes && row % 50 >= 25 => Some(Shape::from([4, 3])),
        None => Some(Shape::from([3, 5])),
    }
}

/// Elements tell row and place, and repeat every few rows, as an incremental manager's do.
fn cell(spec: &ColumnSpec, shape: &Shape, row: u64) -> Values {
    let numbers = (0..shape.elements().unwrap()).map(|at| row / 3 * 31 + at * 7 + 1);
    macro_rules! cast {
        ($($variant:ident: $to:ty),*) => {
            match spec.data_type {
                $(DataType::$variant => Values::$variant(numbers.map(|number| number as $to).collect()),)*
                DataType::Bool => Values::Bool(numbers.map(|number| number % 3 == 1).collect()),
                DataType::Complex => Values::Complex(numbers.map(|n| num_complex::Complex::new(n as f32, -1.)).collect()),
                DataType::DComplex => Values::DComplex(numbers.map(|n| num_complex::Complex::new(n as f64, -1.)).collect()),
                DataType::String => Values::String(numbers.map(|n| "x".repeat(n as usize % 40).into()).collect()),
                DataType::Record => unreachable!("records are arrays of bytes"),
            }
        };
    }
    cast!(UChar: u8, Short: i16, UShort: u16, Int: i32, UInt: u32, Int64: i64, Float: f32, Double: f64)
}

struct Made {
    files: Arc<Memory>,
    manager: Box<dyn ManagerMut>,
    info: Vec<u8>,
}

fn make(kind: &Kind, sample: &Sample, order: ByteOrder, rows: u64, at_once: bool) -> Made {
    let files = Arc::new(Memory::default());
    let args = create_args(&files, order, &sample.columns, &sample.parameters);
    let args = super::CreateArgs { private_keywords: &sample.private_keywords, ..args };
    let mut manager = (kind.create.unwrap())(&args).unwrap();
    // in two steps, the second of which goes on in a bucket or tile that is begun
    manager.add_rows(rows / 3).unwrap();
    manager.add_rows(rows - rows / 3).unwrap();
    for row in 0..rows {
        for (number, spec) in sample.columns.iter().enumerate() {
            if let (None, Some(shape)) = (&spec.shape, shape_of(spec, sample, row)) {
                manager.set_shape(number, row, &shape).unwrap();
            }
        }
    }
    for (number, spec) in sample.columns.iter().enumerate() {
        let mut start = 0;
        while start < rows {
            let is_same = |row: &u64| shape_of(spec, sample, *row) == shape_of(spec, sample, start);
            let end = if at_once { (start..rows).take_while(is_same).last().unwrap() + 1 } else { start + 1 };
            let shape = shape_of(spec, sample, start);
            if let Some(shape) = shape {
                let mut values = Values::new(spec.data_type);
                for row in start..end {
                    let cell = cell(spec, &shape, row);
                    values.extend_from(&cell, 0..cell.len()).unwrap();
                }
                match at_once {
                    true => manager.write_rows(number, start..end, &values).unwrap(),
                    false => manager.write_cell(number, start, None, &values).unwrap(),
                }
            }
            start = end;
        }
    }
    let info = manager.flush().unwrap();
    Made { files, manager, info }
}

fn open_args<'a>(
    sample: &'a Sample,
    files: &'a dyn Container,
    order: ByteOrder,
    rows: u64,
    info: &'a [u8],
) -> OpenArgs<'a> {
    let args = samples::args(files, order, rows, &sample.columns, info);
    OpenArgs { private_keywords: &sample.private_keywords, ..args }
}

#[test]
fn written_cells_are_read_back() {
    let mut tried = 0;
    for (kind, sample) in written() {
        let Some(sample) = sample else { continue };
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for rows in [0, 1, sample.many] {
                for at_once in [true, false] {
                    let name = format!("{}, {order:?} endian, {rows} rows", kind.names[0]);
                    let made = make(kind, &sample, order, rows, at_once);
                    let reader = (kind.open)(&open_args(&sample, &*made.files, order, rows, &made.info)).expect(&name);
                    for (number, spec) in sample.columns.iter().enumerate() {
                        let mut expected = Values::new(spec.data_type);
                        for row in 0..rows {
                            let shape = shape_of(spec, &sample, row);
                            let place = format!("{name}, {}, row {row}", spec.name);
                            assert_eq!(reader.column(number).cell_shape(row).unwrap(), shape, "{place}");
                            assert_eq!(made.manager.cell_shape(number, row).unwrap(), shape, "{place}, writer");
                            if let Some(shape) = shape {
                                let cell = cell(spec, &shape, row);
                                expected.extend_from(&cell, 0..cell.len()).unwrap();
                            }
                        }
                        let found = read_both_ways(reader.column(number), rows, spec.data_type).expect(&name);
                        assert!(found == expected, "{name}, {}", spec.name);
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 7 * 12, "{tried} tables of a manager");
}

/// Files are the same after many rows at once and after cell by cell.
#[test]
fn the_way_of_writing_does_not_matter() {
    for (kind, sample) in written() {
        let Some(sample) = sample else { continue };
        // where cells lie in buckets or in other files by the order in which they are written
        if matches!(kind.names[0], "StandardStMan" | "IncrementalStMan" | "StManAipsIO") {
            continue;
        }
        let made = [true, false].map(|at_once| make(kind, &sample, ByteOrder::Little, sample.many, at_once));
        let [a, b] = made.map(|made| {
            let read = |name: &String| read_all(&*made.files.open(name).unwrap()).unwrap();
            made.files.names().unwrap().iter().map(|name| (name.clone(), read(name))).collect::<Vec<_>>()
        });
        assert!(a == b, "{}", kind.names[0]);
    }
}

#[test]
fn parts_of_cells_are_parts() {
    for (kind, sample) in written() {
        let Some(sample) = sample else { continue };
        let rows = 4;
        let Made { files, info, .. } = make(kind, &sample, ByteOrder::Big, rows, true);
        let reader = (kind.open)(&open_args(&sample, &*files, ByteOrder::Big, rows, &info)).unwrap();
        for (number, spec) in sample.columns.iter().enumerate() {
            for row in 0..rows {
                let Some(shape) = shape_of(spec, &sample, row).filter(|shape| !shape.is_empty()) else { continue };
                // all but the first of each axis
                let start: Shape = shape.iter().map(|_| 1).collect();
                let region = Region { start, shape: shape.iter().map(|extent| extent - 1).collect() };
                let (mut part, mut expected) = (Values::new(spec.data_type), Values::new(spec.data_type));
                reader.column(number).read_cell(row, Some(&region), &mut part).unwrap();
                let whole = cell(spec, &shape, row);
                super::read_part(Some(&region), &shape, &mut expected, |out| out.extend_from(&whole, 0..whole.len()))
                    .unwrap();
                assert!(part == expected, "{} {} row {row}", kind.names[0], spec.name);
                let outside = Region { start: region.start.clone(), shape };
                let error = reader.column(number).read_cell(row, Some(&outside), &mut part).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Usage | ErrorKind::Format), "{error:?}");
            }
        }
    }
}

/// The error after any cut names file and manager, and is one that damage leads to.
#[test]
fn errors_of_the_file_name_the_manager() {
    for (kind, sample) in written() {
        let Some(sample) = sample else { continue };
        let rows = 60;
        let Made { files, info, .. } = make(kind, &sample, ByteOrder::Big, rows, true);
        let mut failures = 0;
        for name in files.names().unwrap() {
            let whole = read_all(&*files.open(&name).unwrap()).unwrap();
            for len in [0, 3, 40, whole.len() / 2, whole.len().saturating_sub(1)] {
                let damaged = copy_of(&files);
                damaged.create(&name).unwrap().write_at(0, &whole[..len.min(whole.len())]).unwrap();
                let read = || {
                    let reader = (kind.open)(&open_args(&sample, &damaged, ByteOrder::Big, rows, &info))?;
                    (0..sample.columns.len()).try_for_each(|number| {
                        read_both_ways(reader.column(number), rows, sample.columns[number].data_type).map(drop)
                    })
                };
                let Err(error) = read() else { continue };
                failures += 1;
                let text = error.to_string();
                assert_eq!(error.kind(), ErrorKind::Format, "{name}, {len} bytes: {text}");
                let first = error.contexts().next().map(|context| context.to_string()).unwrap_or_default();
                let names_it = first.starts_with("table.f0") && text.contains(&format!("({})", kind.names[0]));
                assert!(names_it || first == name, "{name}, {len} bytes: {text}");
            }
            let damaged = copy_of(&files);
            damaged.remove(&name).unwrap();
            let Err(error) = (kind.open)(&open_args(&sample, &damaged, ByteOrder::Big, rows, &info)) else { continue };
            assert_eq!(error.kind(), ErrorKind::Format, "{error}");
            assert!(error.to_string().contains(&name), "without {name}: {error}");
        }
        assert!(failures >= 3, "{}: {failures} failures", kind.names[0]);
    }
}

fn copy_of(files: &Memory) -> Memory {
    let copy = Memory::default();
    for name in files.names().unwrap() {
        let bytes = read_all(&*files.open(&name).unwrap()).unwrap();
        copy.create(&name).unwrap().write_at(0, &bytes).unwrap();
    }
    copy
}

#[test]
fn wrong_calls_are_refused() {
    for (kind, sample) in written() {
        let Some(sample) = sample else { continue };
        let Made { mut manager, .. } = make(kind, &sample, ByteOrder::Little, 3, true);
        let last = sample.columns.len() - 1;
        let wrong: [(&str, crate::Result<()>); 4] = [
            ("a row too far", manager.write_cell(0, 3, None, &cell(&sample.columns[0], &Shape::from([1]), 0))),
            ("rows too far", manager.write_rows(last, 2..4, &Values::new(sample.columns[last].data_type))),
            ("another type", manager.write_rows(0, 0..1, &Values::Record(vec![]))),
            ("the shape of a row too far", manager.cell_shape(0, 9).map(drop)),
        ];
        for (what, result) in wrong {
            let error = result.expect_err(&format!("{}: {what}", kind.names[0]));
            let text = error.to_string();
            assert!(text.contains(&format!("table.f0 ({})", kind.names[0])), "{what}: {text}");
        }
    }
}

/// Engines of written tables compute what others store.
#[test]
fn engines_take_no_cells() {
    let mut tried = 0;
    for (kind, sample) in written() {
        if sample.is_some() {
            continue;
        }
        let (files, parameters) = (Arc::new(Memory::default()), Record::default());
        let columns = [column("V", DataType::Float, Storage::Indirect, None)];
        let mut manager = (kind.create.unwrap())(&create_args(&files, ByteOrder::Big, &columns, &parameters)).unwrap();
        manager.add_rows(2).unwrap();
        let error = manager.write_rows(0, 0..1, &Values::Float(vec![1.])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{}: {error}", kind.names[0]);
        assert!(manager.flush().unwrap().is_empty() && files.names().unwrap().is_empty());
        tried += 1;
    }
    assert!(tried >= 7, "{tried} engines");
}

#[test]
fn names_are_found_and_are_unique() {
    let mut names: Vec<&str> = super::supported().collect();
    for name in &names {
        assert!(
            super::find((*name).into()).is_ok() && super::find(format!("{name}<float,Int>").as_str().into()).is_ok()
        );
    }
    for name in super::written() {
        let is_refused = super::REFUSED.iter().any(|kind| kind.names.contains(&name));
        assert!(names.contains(&name) != is_refused, "{name} is written; read: {}", !is_refused);
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(super::find("NoStMan".into()).map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
}
