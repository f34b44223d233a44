//! The structure of a live file: everything that there will ever be, before the first row. docs/layout.md, docs/live.md.

use std::path::Path;

use bstr::{BStr, ByteSlice};

use super::declare::{CellShapes, ColumnSpec, TableSpec};
use super::layout::COMMITTED;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{Attribute, Dataset, Element, File, Group, LiveSpec};
use crate::native::{self, Attributes, Coordinates, Dimensions, Names, Scales, axis_roles, row_name};
use crate::value::{DataType, Record, Shape, Value};

/// Rows of a chunk of what a row has one number of.
const NUMBERS: u64 = 4096;

/// Creates all groups, datasets, attributes and scales of `tables`.
pub(super) fn create(path: &Path, name: &str, tables: &[TableSpec]) -> Result<File> {
    let file = File::create_for_live(path)?;
    let root = file.root()?;
    let exact = native::begin(&root, name)?;
    let mut structure = Structure { root, exact, names: Names::default(), dimensions: Vec::new() };
    structure.names.reserve("", &["MAIN", "_ctds"]);
    for table in tables {
        structure.table(table, tables).with_context(|| Context::table(&table.name))?;
    }
    Ok(file)
}

struct Structure {
    root: Group,
    exact: Group,
    names: Names,
    /// Below each group of the root.
    dimensions: Vec<(String, Dimensions)>,
}

/// `MAIN` is the main table of every file.
fn is_main(table: &TableSpec) -> bool {
    matches!(table.name.as_str(), "MAIN" | ".")
}

/// The path of the group of a table.
fn group_path(table: &TableSpec) -> String {
    if is_main(table) { "/MAIN".to_owned() } else { format!("/{}", table.name) }
}

impl Structure {
    fn table(&mut self, table: &TableSpec, all: &[TableSpec]) -> Result<()> {
        let path = group_path(table);
        check_name(table, all)?;
        let keywords = with_subtables(table, all);
        let (group, exact) = (native::open_path(&self.root, &path)?, native::open_path(&self.exact, &path)?);
        let main_prefix = if is_main(table) { String::new() } else { format!("/{}", table.name) };
        let table_path = |stored: &BStr| format!("{main_prefix}/{}", last(stored));
        let table_name = |stored: &[u8]| last(stored.as_bstr());
        let attributes = Attributes::of_table(None, &table.info, &keywords, &table_path);
        set_all(&attributes, |name, value| group.set_attribute(name, value))?;

        let row = row_name(&path);
        self.names.reserve(&path, &["row", &row, COMMITTED]);
        let name = if is_main(table) { "." } else { &table.name };
        let mut document = native::table_document(name, &row, &table.info, &keywords, &table_name);
        document["committed"] = COMMITTED.into();
        exact.set_attribute("table", &Attribute::string(document.to_string()))?;

        let links: Vec<String> = table
            .columns
            .iter()
            .map(|column| self.names.unique(&path, &column.info.desc.name.to_str_lossy()))
            .collect();
        let top = path.split('/').nth(1).unwrap_or_default();
        let known = match self.dimensions.iter().position(|(known, _)| known == top) {
            Some(known) => known,
            None => {
                self.dimensions.push((top.to_owned(), Dimensions::default()));
                self.dimensions.len() - 1
            }
        };
        let is_ms = is_main(table) && table.info.table_type.starts_with(b"Measurement Set");
        let coordinates = Coordinates::new(is_ms, table.coordinates.clone());
        let names = &self.names;
        let taken = |name: &str| names.has(&path, name);
        let mut scales = Scales::new(&group, &mut self.dimensions[known].1, &coordinates, &taken);

        let numbers = |element| LiveSpec { element, cell: &SCALAR, chunk_rows: NUMBERS };
        let row_scale = group.create_live(&row, &numbers(Element::Number(DataType::Int64)))?;
        row_scale.make_scale(&row)?;
        let committed =
            group.create_live(COMMITTED, &LiveSpec { element: Element::Counter, cell: &SCALAR, chunk_rows: 1 })?;
        committed.set_attribute("long_name", &Attribute::string("rows that are complete in every column"))?;
        scales.attach(&committed, &[1], &["committed"])?;
        for (position, (column, link)) in table.columns.iter().zip(&links).enumerate() {
            let form = Column { spec: column, link, is_ms, row: &row_scale }
                .create(&group, &mut scales, &table_path)
                .with_context(|| Context::column(&column.info.desc.name))?;
            let document = native::column_document(&column.info, position, link, form, &table_name);
            exact.set_attribute(&format!("column.{link}"), &Attribute::string(document.to_string()))?;
        }
        Ok(())
    }
}

static SCALAR: std::sync::LazyLock<Shape> = std::sync::LazyLock::new(Shape::scalar);

fn last(stored: &BStr) -> String {
    let stored = stored.to_str_lossy();
    stored.rsplit('/').next().unwrap_or_default().to_owned()
}

fn set_all(attributes: &Attributes, set: impl Fn(&str, &Attribute) -> Result<()>) -> Result<()> {
    attributes.iter().try_for_each(|attribute| set(&attribute.name, &attribute.value))
}

/// Names become paths as they are, so that a reader finds the table under its name.
fn check_name(table: &TableSpec, all: &[TableSpec]) -> Result<()> {
    let parent = match table.name.rsplit_once('/') {
        Some((parent, _)) => parent,
        None => "MAIN",
    };
    let has_parent =
        is_main(table) || all.iter().any(|other| other.name == parent || parent == "MAIN" && is_main(other));
    let unique = all.iter().filter(|other| group_path(other) == group_path(table)).count() == 1;
    let parts_fit = table.name.split('/').all(|part| !part.is_empty() && part != ".." && !part.contains('\0'));
    match () {
        () if !parts_fit || table.name.starts_with("_ctds") => Err(Error::usage("this cannot be the name of a table")),
        () if !unique => Err(Error::usage("two tables have this name")),
        () if !has_parent => Err(Error::usage(format!("its parent {parent} is not declared"))),
        () => Ok(()),
    }
}

/// The keywords with one for each subtable.
fn with_subtables(table: &TableSpec, all: &[TableSpec]) -> Record {
    let mut keywords = table.keywords.clone();
    for other in all.iter().filter(|other| !is_main(other)) {
        let (parent, name) = other.name.rsplit_once('/').unwrap_or(("MAIN", &other.name));
        let is_parent = parent == table.name || parent == "MAIN" && is_main(table);
        if is_parent && keywords.get(name).is_none() {
            keywords.set(name, Value::Table(name.into()));
        }
    }
    keywords
}

/// A column that is being created.
struct Column<'a> {
    spec: &'a ColumnSpec,
    link: &'a str,
    is_ms: bool,
    row: &'a Dataset,
}

impl Column<'_> {
    /// Creates the datasets; returns the form of the cells.
    fn create(
        &self,
        group: &Group,
        scales: &mut Scales<'_>,
        table_path: &dyn Fn(&BStr) -> String,
    ) -> Result<&'static str> {
        let desc = &self.spec.info.desc;
        let exact_name = (desc.name != self.link).then_some(desc.name.as_bstr());
        let attributes = Attributes::of_column(exact_name, desc.comment.as_bstr(), &desc.keywords, table_path);
        let element = self.spec.element()?;
        match &self.spec.cells {
            CellShapes::One(cell) => {
                let data = group.create_live(self.link, &self.live(element, cell))?;
                set_all(&attributes, |name, value| data.set_attribute(name, value))?;
                scales.attach(&data, cell, &self.roles(cell.len()))?;
                data.attach_scale(cell.len(), self.row)?;
                Ok("dense")
            }
            CellShapes::Several(shapes) => {
                let group = group.create_group(self.link)?;
                set_all(&attributes, |name, value| group.set_attribute(name, value))?;
                let mut local = scales.within(&group);
                let number = Element::Number(DataType::Int64);
                for (index, cell) in shapes.iter().enumerate() {
                    let cube = group.create_live(&format!("cube{index}"), &self.live(element, cell))?;
                    local.attach(&cube, cell, &self.roles(cell.len()))?;
                    let name = local.fresh("position");
                    let position = group.create_live(&name, &self.live(number, &SCALAR))?;
                    position.make_scale(&name)?;
                    cube.attach_scale(cell.len(), &position)?;
                }
                for (name, data_type) in [("row_cube", DataType::Int), ("row_index", DataType::Int64)] {
                    let map = group.create_live(name, &self.live(Element::Number(data_type), &SCALAR))?;
                    map.attach_scale(0, self.row)?;
                }
                Ok("cubes")
            }
        }
    }

    fn live<'a>(&self, element: Element, cell: &'a Shape) -> LiveSpec<'a> {
        LiveSpec { element, cell, chunk_rows: self.spec.chunk_rows_of(cell) }
    }

    fn roles(&self, axes: usize) -> Vec<&str> {
        match self.spec.axes.len() == axes {
            true => self.spec.axes.iter().map(String::as_str).collect(),
            false => axis_roles(self.is_ms, &self.spec.info.desc.name.to_str_lossy(), axes),
        }
    }
}
