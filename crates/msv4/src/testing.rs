//! Tables for tests: made in a directory, and opened as those of a MeasurementSet.

use std::collections::HashMap;
use std::fs;

use ctds::value::{Element, Record, Shape, Value, Values};
use ctds::{Column, ColumnDesc, ColumnInfo, Error, NewTable, Result, Table};
use tempfile::TempDir;

use crate::dataset::{Attribute, Content, Dataset, Variable};
use crate::grid::GridBuilder;
use crate::measures::UNIX_EPOCH;
use crate::partition::{Part, Shared};
use crate::place::{Antennas, Place, Receptors};
use crate::tables::Tables;

pub(crate) struct Made {
    directory: TempDir,
    tables: HashMap<String, Table>,
}

/// A column and its cells: shape and elements of each row, `None` if it is undefined.
pub(crate) struct Filled {
    desc: ColumnDesc,
    cells: Vec<Option<(Shape, Values)>>,
}

pub(crate) fn scalars<T: Element>(name: &str, values: impl IntoIterator<Item = T>) -> Filled {
    let cells = values.into_iter().map(|value| Some((Shape::scalar(), T::values(vec![value])))).collect();
    Filled { desc: ColumnDesc::scalar::<T>(name), cells }
}

pub(crate) fn texts(name: &str, values: &[&str]) -> Filled {
    scalars(name, values.iter().map(|text| bstr::BString::from(*text)))
}

/// A column of arrays, first axis fastest.
pub(crate) fn arrays<T: Element, const N: usize>(name: &str, cells: Vec<Option<([u64; N], Vec<T>)>>) -> Filled {
    let cells = cells.into_iter().map(|cell| cell.map(|(shape, values)| (Shape::from(shape), T::values(values))));
    Filled { desc: ColumnDesc::array::<T>(name), cells: cells.collect() }
}

impl Filled {
    pub(crate) fn unit(mut self, unit: &str) -> Self {
        self.desc = self.desc.unit(unit);
        self
    }

    /// Sets the reference of the column's measure.
    pub(crate) fn reference(self, reference: &str) -> Self {
        self.measure(&[("Ref", Value::string(reference))])
    }

    pub(crate) fn measure(mut self, fields: &[(&str, Value)]) -> Self {
        let mut measure = Record::default();
        for (name, value) in fields {
            measure.set(*name, value.clone());
        }
        self.desc = self.desc.keyword("MEASINFO", Value::Record(measure));
        self
    }
}

impl Made {
    pub(crate) fn new() -> Self {
        Made { directory: TempDir::new().unwrap(), tables: HashMap::new() }
    }

    pub(crate) fn with(mut self, name: &str, columns: Vec<Filled>) -> Self {
        let path = self.directory.path().join(name);
        let rows = columns.first().map_or(0, |column| column.cells.len());
        let new = columns.iter().fold(NewTable::new(), |table, column| table.column(column.desc.clone()));
        let mut table = new.create(&path).unwrap();
        table.add_rows(rows as u64).unwrap();
        for Filled { desc, cells } in &columns {
            assert_eq!(cells.len(), rows, "{}", desc.name);
            let mut column = table.column(&desc.name).unwrap();
            for (row, cell) in (0..).zip(cells) {
                if let Some((shape, values)) = cell {
                    column.put_values(row..row + 1, shape, values).unwrap();
                }
            }
        }
        table.close().unwrap();
        self.tables.insert(name.to_owned(), Table::open(path).unwrap());
        self
    }

    /// Cuts the data files of a table.
    pub(crate) fn damaged(mut self, name: &str) -> Self {
        self.tables.remove(name);
        let path = self.directory.path().join(name);
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_string_lossy().starts_with("table.f") {
                fs::OpenOptions::new().write(true).open(entry.path()).unwrap().set_len(8).unwrap();
            }
        }
        self.tables.insert(name.to_owned(), Table::open(path).unwrap());
        self
    }
}

impl Tables for Made {
    fn rows(&self, table: &str) -> Option<u64> {
        self.tables.get(table).map(Table::rows)
    }

    fn columns(&self, table: &str) -> &[ColumnInfo] {
        self.tables.get(table).map_or(&[], Table::columns)
    }

    fn names(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).collect()
    }

    fn keywords(&self, table: &str) -> Option<&Record> {
        self.tables.get(table).map(Table::keywords)
    }

    fn column(&self, table: &str, column: &str) -> Result<Column<'_>> {
        self.tables.get(table).ok_or_else(|| Error::not_found(format!("no table {table}")))?.column(column)
    }
}

/// Antennas 1 and 3, named B and D, with two receptors; window 2 of channels at 10 and 20 Hz; times
/// from 100 to 110 s, 10 s apart.
pub(crate) fn part() -> Part {
    let mut grid = GridBuilder::default();
    grid.add(0, 100.0, (1, 3));
    grid.add(1, 110.0, (1, 3));
    Part {
        grid: grid.finish().unwrap(),
        shared: Shared { data_desc: 0, observation: 0, processor: 0, mode: None, ephemeris: -1 },
        fields: vec![0; 2],
        scans: vec![1; 2],
        interval: Some(10.0),
        split_by: Vec::new(),
        varying: Vec::new(),
    }
}

pub(crate) fn place<'a>(tables: &'a Made, part: &'a Part) -> Place<'a> {
    let strings = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
    Place {
        tables,
        part,
        path: "my_0".to_owned(),
        window: 2,
        correlations: strings(["XX", "YY"]),
        is_single_dish: false,
        antennas: Antennas {
            ids: vec![1, 3],
            names: strings(["B", "D"]),
            stations: strings(["PAD1", "PAD3"]),
            mounts: strings(["ALT-AZ", "ALT-AZ"]),
            positions: vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
            telescope: "T".to_owned(),
        },
        receptors: Receptors { count: 2, types: ["X", "Y", "X", "Y"].map(str::to_owned).to_vec(), angles: None },
        scale: "utc".to_owned(),
    }
}

pub(crate) fn read(tables: &Made, read: fn(&Place<'_>) -> crate::place::Found) -> Result<Option<Dataset>> {
    let part = part();
    read(&place(tables, &part))
}

pub(crate) fn error(tables: &Made, of: fn(&Place<'_>) -> crate::place::Found) -> String {
    read(tables, of).unwrap_err().to_string()
}

impl Dataset {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.variables.iter().map(|variable| variable.name.as_str()).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.coordinates.iter().any(|other| other.name == name) || self.names().contains(&name)
    }

    pub(crate) fn get(&self, name: &str) -> &Variable {
        let mut all = self.variables.iter().chain(&self.coordinates);
        all.find(|variable| variable.name == name).unwrap_or_else(|| panic!("no {name}"))
    }
}

impl Variable {
    pub(crate) fn values(&self) -> &Values {
        let Content::Values(values) = &self.content else { panic!("{} has no values", self.name) };
        values
    }

    /// Doubles, with -1 for NaN.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let Values::Double(values) = self.values() else { panic!("{} has no doubles", self.name) };
        values.iter().map(|value| if value.is_nan() { -1.0 } else { *value }).collect()
    }

    /// Times as seconds of MJD.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        self.numbers().iter().map(|time| time + UNIX_EPOCH).collect()
    }

    pub(crate) fn strings(&self) -> Vec<String> {
        let Values::String(values) = self.values() else { panic!("{} has no strings", self.name) };
        values.iter().map(ToString::to_string).collect()
    }

    /// Axes and their extents, such as `time 2, antenna_name 3`.
    pub(crate) fn shown_axes(&self) -> String {
        let axes = self.axes.iter().zip(&self.shape).map(|(axis, extent)| format!("{axis} {extent}"));
        axes.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn text(&self, attribute: &str) -> &str {
        match self.attributes.iter().find(|(name, _)| name == attribute) {
            Some((_, Attribute::Text(text))) => text,
            other => panic!("{}: {attribute} is {other:?}", self.name),
        }
    }
}
