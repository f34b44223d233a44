//! The structure of a live file: everything that there will ever be, before the first row. docs/layout.md, docs/live.md.

use std::path::Path;

use bstr::{BStr, ByteSlice};

use super::declare::{CellShapes, ColumnSpec, TableSpec};
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Dataset, Element, File, Group, LiveSpec};
use crate::native::{
    self, Attributes, COMMITTED_ROWS, CTDS, ColumnDocument, Coordinates, Dimensions, FormKind, LONG_NAME, MAIN_TABLE,
    Names, Scales, StoredForm, TableDocument, axis_roles, display_name, is_main, last_part, row_name, source_name,
    table_path,
};
use crate::value::{DataType, Record, Shape, Value};

/// Rows of a chunk of what a row has one number of.
const NUMBERS: u64 = 4096;

/// Creates all groups, datasets, attributes and scales of `tables`.
pub(super) fn create(path: &Path, name: &str, tables: &[TableSpec]) -> Result<File> {
    let file = File::create_for_live(path)?;
    let root = file.root()?;
    let exact = native::begin(&root, name)?;
    let mut structure = Structure { root, exact, names: Names::default(), dimensions: Vec::new() };
    structure.names.reserve_root();
    for table in tables {
        structure.table(table, tables).with_context(|| format!("table {}", table.name))?;
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

impl Structure {
    fn table(&mut self, table: &TableSpec, all: &[TableSpec]) -> Result<()> {
        let path = table_path(&table.name);
        check_name(table, all)?;
        let keywords = with_subtables(table, all);
        let (group, exact) = (native::open_path(&self.root, &path)?, native::open_path(&self.exact, &path)?);
        let main_prefix = if is_main(&table.name) { String::new() } else { format!("/{}", table.name) };
        let table_path = |stored: &BStr| format!("{main_prefix}/{}", last(stored));
        let table_name = |stored: &[u8]| last(stored.as_bstr());
        let attributes = Attributes::of_table(None, &table.info, &keywords, &table_path);
        set_all(&attributes, |name, value| group.set_attribute(name, value))?;

        let row = row_name(&path);
        self.names.reserve_row(&path, &row);
        self.names.reserve(&path, &[COMMITTED_ROWS]);
        let name = source_name(&table.name);
        let mut document = TableDocument::new(name, &row, &table.info, &keywords, &table_name);
        document.committed = Some(COMMITTED_ROWS.to_owned());
        document.write(&exact)?;

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
        let is_ms = is_main(&table.name) && table.info.table_type.starts_with(b"Measurement Set");
        let coordinates = Coordinates::new(is_ms, table.coordinates.clone());
        let names = &self.names;
        let taken = |name: &str| names.has(&path, name);
        let mut scales = Scales::new(&group, &mut self.dimensions[known].1, &coordinates, &taken);

        let numbers = |element| LiveSpec { element, cell: &SCALAR, chunk_rows: NUMBERS };
        let row_scale = group.create_live(&row, &numbers(Element::Number(DataType::Int64)))?;
        row_scale.make_scale(&row)?;
        let committed =
            group.create_live(COMMITTED_ROWS, &LiveSpec { element: Element::Counter, cell: &SCALAR, chunk_rows: 1 })?;
        committed.set_attribute(LONG_NAME, &Attribute::string("rows that are complete in every column"))?;
        scales.attach(&committed, &[1], &["committed"])?;
        for (position, (column, link)) in table.columns.iter().zip(&links).enumerate() {
            let kind = Column { spec: column, link, is_ms, row: &row_scale }
                .create(&group, &mut scales, &table_path)
                .with_context(|| format!("column {}", column.info.desc.name))?;
            let form = StoredForm { kind, link: link.clone(), reason: String::new() };
            ColumnDocument::new(&column.info, position, &form, &table_name).write(&exact)?;
        }
        Ok(())
    }
}

static SCALAR: std::sync::LazyLock<Shape> = std::sync::LazyLock::new(Shape::scalar);

fn last(stored: &BStr) -> String {
    last_part(&stored.to_str_lossy()).to_owned()
}

fn set_all(attributes: &Attributes, set: impl Fn(&str, &Attribute) -> Result<()>) -> Result<()> {
    attributes.iter().try_for_each(|attribute| set(&attribute.name, &attribute.value))
}

/// The table whose keyword leads to a subtable: by its name in a source.
fn parent_of(name: &str) -> &str {
    name.rsplit_once('/').map_or(MAIN_TABLE, |(parent, _)| source_name(parent))
}

/// Names become paths as they are, so that a reader finds the table under its name.
fn check_name(table: &TableSpec, all: &[TableSpec]) -> Result<()> {
    let parent = parent_of(&table.name);
    let has_parent = is_main(&table.name) || all.iter().any(|other| source_name(&other.name) == parent);
    let unique = all.iter().filter(|other| source_name(&other.name) == source_name(&table.name)).count() == 1;
    let parts_fit = table.name.split('/').all(|part| !part.is_empty() && part != ".." && !part.contains('\0'));
    if !parts_fit || table.name.starts_with(CTDS) {
        Err(Error::usage("this cannot be the name of a table"))
    } else if !unique {
        Err(Error::usage("two tables have this name"))
    } else if !has_parent {
        Err(Error::usage(format!("its parent {} is not declared", display_name(parent))))
    } else {
        Ok(())
    }
}

/// The keywords with one for each subtable.
fn with_subtables(table: &TableSpec, all: &[TableSpec]) -> Record {
    let mut keywords = table.keywords.clone();
    for other in all.iter().filter(|other| !is_main(&other.name)) {
        let name = last_part(&other.name);
        if parent_of(&other.name) == source_name(&table.name) && keywords.get(name).is_none() {
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
    fn create(&self, group: &Group, scales: &mut Scales<'_>, table_path: &dyn Fn(&BStr) -> String) -> Result<FormKind> {
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
                Ok(FormKind::Dense)
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
                Ok(FormKind::Cubes)
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
