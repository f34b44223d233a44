//! Creates the structure of a live file: all groups, datasets and attributes, before the first row.
//! docs/reference/layout.md, docs/reference/live.md.

use std::path::Path;

use bstr::{BStr, ByteSlice};

use super::declare::{CellShapes, ColumnSpec, TableSpec};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{Attribute, Dataset, Element, File, Group, LiveSpec};
use crate::native::{
    self, Attributes, AxisNames, COMMITTED_ROWS, CTDS, ColumnDocument, Coordinates, FormKind, LONG_NAME, MAIN_TABLE,
    Maker, Names, NewColumn, OF_VIEWERS, Part, SIGNALS, Scales, StoredForm, TableDocument, TreeDimensions, axis_roles,
    display_name, is_main, last_part, row_name, source_name, table_path, view,
};
use crate::value::{DataType, Record, Shape, Value};

/// Rows in a chunk of the dataset of row numbers.
const NUMBERS: u64 = 4096;

/// The file has no rows yet; `name`, its later name, is recorded in the root attribute `source`.
pub(super) fn create(path: &Path, name: &str, tables: &[TableSpec]) -> Result<File> {
    let file = File::create_for_live(path)?;
    let root = file.root()?;
    let exact = native::begin(&root, name)?;
    let mut structure = Structure { root, exact, names: Names::default(), dimensions: TreeDimensions::default() };
    structure.names.reserve_root();
    for table in tables {
        structure.table(table, tables).with_context(|| Context::table(&table.name))?;
    }
    Ok(file)
}

struct Structure {
    root: Group,
    exact: Group,
    names: Names,
    dimensions: TreeDimensions,
}

impl Structure {
    fn table(&mut self, table: &TableSpec, all: &[TableSpec]) -> Result<()> {
        let path = table_path(&table.name);
        check_name(table, all)?;
        let keywords = with_subtables(table, all);
        let (group, exact) = (native::open_path(&self.root, &path)?, native::open_path(&self.exact, &path)?);
        let main_prefix = if is_main(&table.name) { String::new() } else { format!("/{}", table.name) };
        let table_path_of = |stored: &BStr| format!("{main_prefix}/{}", last(stored));
        let table_name = |stored: &[u8]| last(stored.as_bstr());
        let attributes = Attributes::of_table(None, &table.info, &keywords, &table_path_of);
        attributes.write(|name, value| group.set_attribute(name, value))?;

        let row = row_name(&path);
        self.names.reserve_row(&path, &row);
        self.names.reserve(&path, &[COMMITTED_ROWS]);
        let name = source_name(&table.name);
        let mut document = TableDocument::new(name, &row, &table.info, &keywords, &table_name);
        document.committed = Some(COMMITTED_ROWS.to_owned());
        document.unnamed = !table.is_named;
        document.write(&exact)?;

        let links: Vec<String> = table
            .columns
            .iter()
            .map(|column| self.names.unique(&path, &column.info.desc.name.to_str_lossy()))
            .collect();
        let dimensions = self.dimensions.of_group(&path);
        let is_ms = is_main(&table.name) && table.info.table_type.starts_with(b"Measurement Set");
        let coordinates = Coordinates::new(is_ms, table.coordinates.clone());
        let names = &self.names;
        let taken = |name: &str| names.has(&path, name);
        let mut axes = AxisNames::new(dimensions, &coordinates, &taken);
        let mut scales = Scales::new(&group);

        let numbers = |element| LiveSpec { element, cell: &SCALAR, chunk_rows: NUMBERS };
        let row_scale = group.create_live(&row, &numbers(Element::Number(DataType::Int64)))?;
        row_scale.make_scale(&row)?;
        let committed =
            group.create_live(COMMITTED_ROWS, &LiveSpec { element: Element::Counter, cell: &SCALAR, chunk_rows: 1 })?;
        committed.set_attribute(LONG_NAME, &Attribute::string("rows that are complete in every column"))?;
        let only = axes.axes(&[1], &["committed"]);
        scales.attach_named(&committed, &only, &axes)?;
        for (position, (column, link)) in table.columns.iter().zip(&links).enumerate() {
            let desc = &column.info.desc;
            column.element().with_context(|| Context::column(&desc.name))?;
            let exact_name = (desc.name != *link).then_some(desc.name.as_bstr());
            let attributes = Attributes::of_column(exact_name, desc.comment.as_bstr(), &desc.keywords, &table_path_of);
            let cubes = if let CellShapes::Several(shapes) = &column.cells { shapes.len() } else { 0 };
            let roles = |axes: usize| column.roles(is_ms, axes);
            let new = NewColumn { attributes: &attributes, roles: &roles, cubes };
            let form = column.stored_form(link);
            form.create(&group, &new, &mut scales, &mut axes, &mut ColumnMaker { spec: column, row: &row_scale })
                .with_context(|| Context::column(&desc.name))?;
            ColumnDocument::new(&column.info, position, &form, &table_name).write(&exact)?;
        }
        if is_main(&table.name) && !attributes.iter().any(|taken| OF_VIEWERS.contains(&taken.name.as_str())) {
            table.draw(&group, &links, is_ms, &mut axes)?;
        }
        scales.finish()
    }
}

static SCALAR: std::sync::LazyLock<Shape> = std::sync::LazyLock::new(Shape::scalar);

fn last(stored: &BStr) -> String {
    last_part(&stored.to_str_lossy()).to_owned()
}

/// `A` for `A/B`, `MAIN` for `ANTENNA`.
fn parent_of(name: &str) -> &str {
    name.rsplit_once('/').map_or(MAIN_TABLE, |(parent, _)| source_name(parent))
}

/// Names are HDF5 paths as they are: valid, unique, and with a parent declared in `all`.
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

/// Adds a keyword for each subtable in `all` that has none yet.
fn with_subtables(table: &TableSpec, all: &[TableSpec]) -> Record {
    let mut keywords = table.keywords.clone();
    for other in all.iter().filter(|other| !is_main(&other.name) && other.is_named) {
        let name = last_part(&other.name);
        if parent_of(&other.name) == source_name(&table.name) && keywords.get(name).is_none() {
            keywords.set(name, Value::Table(name.into()));
        }
    }
    keywords
}

impl TableSpec {
    /// Sets the attributes by which viewers draw a column; `links` are the names of the datasets.
    /// The axis of rows has no values: a dataset with these may be shorter than the one that is
    /// drawn, while rows are appended.
    fn draw(&self, group: &Group, links: &[String], is_ms: bool, names: &mut AxisNames<'_>) -> Result<()> {
        let column = |name: &str| self.columns.iter().zip(links).find(|(column, _)| column.info.desc.name == name);
        let drawn = SIGNALS.iter().find_map(|name| column(name).and_then(|found| Some((found, found.0.drawn()?))));
        let Some(((column, link), cell)) = drawn else { return Ok(()) };
        let axes = names.axes(cell, &column.roles(is_ms, cell.len()));
        let of_cell = axes.iter().rev().map(|axis| names.scale_with_values(axis));
        let view = view(link, std::iter::once(None).chain(of_cell));
        view.iter().try_for_each(|(name, value)| group.set_attribute(name, value))
    }
}

impl ColumnSpec {
    /// Shape of a cell, fastest axis first, if the column is one dataset of arrays of numbers.
    fn drawn(&self) -> Option<&Shape> {
        let CellShapes::One(cell) = &self.cells else { return None };
        (self.info.data_type().is_fixed_size() && !cell.is_empty() && !cell.contains(&0)).then_some(cell)
    }

    /// One dataset if all cells have one shape, otherwise a group named `link` with one for each.
    fn stored_form(&self, link: &str) -> StoredForm {
        let kind = match &self.cells {
            CellShapes::One(_) => FormKind::Dense,
            CellShapes::Several(_) => FormKind::Cubes,
        };
        StoredForm::new(kind, link)
    }

    /// Declared (`corr`, `chan` …), else by the MeasurementSet standard, or `dim`; fastest first.
    fn roles(&self, is_ms: bool, axes: usize) -> Vec<&str> {
        if self.axes.len() == axes {
            self.axes.iter().map(String::as_str).collect()
        } else {
            axis_roles(is_ms, &self.info.desc.name.to_str_lossy(), axes)
        }
    }
}

struct ColumnMaker<'a> {
    spec: &'a ColumnSpec,
    row: &'a Dataset,
}

impl Maker for ColumnMaker<'_> {
    const GROWS: bool = true;
    type Made = Dataset;

    fn shape(&self, part: Part) -> Result<Shape> {
        match (part, &self.spec.cells) {
            (Part::Data, CellShapes::One(cell)) => Ok(cell.with_axis(0)),
            (Part::Cube(number), CellShapes::Several(shapes)) if number < shapes.len() => {
                Ok(shapes[number].with_axis(0))
            }
            _ => Ok(Shape::from([0])),
        }
    }

    fn make(&mut self, group: &Group, name: &str, part: Part) -> Result<Dataset> {
        let of_column = |cell| -> Result<_> {
            Ok(LiveSpec { element: self.spec.element()?, cell, chunk_rows: self.spec.chunk_rows_of(cell) })
        };
        let spec = match (part, &self.spec.cells) {
            (Part::Data, CellShapes::One(cell)) => of_column(cell)?,
            (Part::Cube(number), CellShapes::Several(shapes)) if number < shapes.len() => of_column(&shapes[number])?,
            (Part::Position | Part::RowCube | Part::RowIndex, _) => {
                let element = Element::Number(part.element(self.spec.info.data_type()));
                LiveSpec { element, cell: &SCALAR, chunk_rows: self.spec.chunk_rows_of(&SCALAR) }
            }
            _ => return Err(Error::usage(format!("the form of the column has no dataset {}", part.name()))),
        };
        group.create_live(name, &spec)
    }

    fn dataset<'a>(&'a self, made: &'a Dataset) -> &'a Dataset {
        made
    }

    fn row(&self) -> &Dataset {
        self.row
    }
}
