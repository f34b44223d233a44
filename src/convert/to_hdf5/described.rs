//! Attributes of the groups and datasets in a conversion plan, and names and values of their axes,
//! for the conversion and for outlines (descriptions of the file that are made without writing it).

use bstr::{BStr, ByteSlice};

use super::layout_choice::{ColumnForm, Growth, chunk_rows};
use super::plan::{ColumnPlan, MissingColumn, Plan, TablePlan};
use crate::error::{Error, Result};
use crate::h5::Attribute;
use crate::native::{
    Attributes, AxisNames, Coordinates, MAIN_TABLE, MOST_ROWS, NewColumn, OF_VIEWERS, Part, SIGNALS, TIME, axis_roles,
    last_part, stored_size, taql_of, text_attribute, unique, view,
};
use crate::schema::TableInfo;
use crate::source::{Content, Source, coordinates};
use crate::value::{DataType, Record, Shape};

/// Attributes of a group, and for each missing column the name of its expression's attribute.
pub(super) type TableAttributes = (Vec<(String, Attribute)>, Vec<Option<String>>);

#[derive(Clone, Copy)]
pub(super) struct Described<'a> {
    pub(super) source: &'a Source,
    pub(super) plan: &'a Plan,
}

impl<'a> Described<'a> {
    pub(super) fn content(self, table: &TablePlan) -> Result<&'a Content> {
        self.source.tables[table.source].content()
    }

    /// Virtual columns that are not converted have their TaQL expressions as attributes.
    pub(super) fn table_attributes(
        self,
        table: &TablePlan,
        info: &TableInfo,
        keywords: &Record,
    ) -> Result<TableAttributes> {
        let keyword = last_part(&table.name);
        let renamed = table.name != MAIN_TABLE && !table.group.ends_with(&format!("/{keyword}"));
        let exact_name = renamed.then(|| keyword.as_bytes().as_bstr());
        let table_path = |stored: &BStr| self.table_path(table, stored);
        let attributes = Attributes::of_table(exact_name, info, keywords, &table_path);
        let mut listed: Vec<(String, Attribute)> =
            attributes.iter().map(|attribute| (attribute.name.clone(), attribute.value.clone())).collect();
        let content = self.content(table)?;
        let mut show = |column: &MissingColumn| {
            // the expression that casacore would evaluate is shown to readers
            let expression = content.columns()[column.index].expression()?;
            let name = unique(&taql_of(&column.name), |name| listed.iter().any(|(other, _)| other == name));
            listed.push((name.clone(), text_attribute(expression)));
            Some(name)
        };
        let expressions = table.missing.iter().map(&mut show).collect();
        Ok((listed, expressions))
    }

    pub(super) fn column_attributes(
        self,
        table: &TablePlan,
        column: &ColumnPlan,
        comment: &BStr,
        keywords: &Record,
    ) -> Result<Attributes> {
        let info = &self.content(table)?.columns()[column.index];
        let exact_name = (column.link != column.name).then(|| info.desc.name.as_bstr());
        let table_path = |stored: &BStr| self.table_path(table, stored);
        Ok(Attributes::of_column(exact_name, comment, keywords, &table_path))
    }

    /// Attributes of the main table's group by which viewers draw a column: none if no column can
    /// be drawn, or if one of their names `is_taken` by another attribute of the group.
    pub(super) fn view(
        self,
        table: &TablePlan,
        names: &mut AxisNames<'_>,
        is_taken: impl Fn(&str) -> bool,
    ) -> Vec<(&'static str, Attribute)> {
        let column = |name: &str| table.columns.iter().find(|column| column.name == name);
        let drawn = SIGNALS.iter().find_map(|name| column(name).and_then(|column| Some((column, column.drawn()?))));
        let (Some((signal, cell)), MAIN_TABLE) = (drawn, table.name.as_str()) else { return Vec::new() };
        if OF_VIEWERS.iter().any(|name| is_taken(name)) {
            return Vec::new();
        }
        let roles = axis_roles(table.source == 0 && names.is_measurement_set(), &signal.name, cell.len());
        let axes = names.axes(&cell, &roles);
        let time = column(TIME).filter(|time| time.is_axis_of_rows()).map(|time| time.link.as_str());
        let of_cell = axes.iter().rev().map(|axis| names.scale_with_values(axis));
        view(&signal.link, std::iter::once(time).chain(of_cell)).into()
    }

    /// Axis values from the subtables; only of the main table of a MeasurementSet.
    pub(super) fn coordinates(self, table: &TablePlan) -> Coordinates {
        let Ok(content) = self.content(table) else { return Coordinates::default() };
        if table.source != 0 || !content.info().table_type.starts_with(b"Measurement Set") {
            return Coordinates::default();
        }
        Coordinates::new(true, coordinates(self.source))
    }

    /// `stored` itself if the subtable is not converted.
    fn table_path(self, table: &TablePlan, stored: &BStr) -> String {
        let found = self.source.find(table.source, stored);
        match found.and_then(|source| self.plan.tables.iter().find(|other| other.source == source)) {
            Some(other) => other.group.clone(),
            None => stored.to_str_lossy().into_owned(),
        }
    }
}

impl ColumnPlan {
    /// Shape of a cell, fastest axis first, if the column is one dataset of arrays of numbers.
    fn drawn(&self) -> Option<Shape> {
        let ColumnForm::Dense { shape, .. } = &self.form else { return None };
        let (cell, _) = shape.split_last()?;
        (self.data_type.is_fixed_size() && !cell.is_empty() && !shape.contains(&0)).then_some(cell)
    }

    fn is_axis_of_rows(&self) -> bool {
        let is_short = |shape: &Shape| matches!(shape[..], [rows] if rows <= MOST_ROWS);
        self.data_type == DataType::Double
            && matches!(&self.form, ColumnForm::Dense { shape, undefined: 0, .. } if is_short(shape))
    }

    pub(super) fn with_new<T>(
        &self,
        table: &TablePlan,
        attributes: &Attributes,
        names: &mut AxisNames<'_>,
        work: impl FnOnce(&NewColumn<'_>, &mut AxisNames<'_>) -> Result<T>,
    ) -> Result<T> {
        let is_ms = table.source == 0 && names.is_measurement_set();
        let roles = |axes: usize| axis_roles(is_ms, &self.name, axes);
        let cubes = if let ColumnForm::Cubes { cubes } = &self.form { cubes.len() } else { 0 };
        work(&NewColumn { attributes, roles: &roles, cubes }, names)
    }

    /// Shape and chunk shape, fastest axis first, for a table of `rows` rows.
    pub(super) fn extents(&self, part: Part, rows: u64, growth: Growth) -> Result<(Shape, Shape)> {
        let size = stored_size(part.element(self.data_type));
        let one = |len: u64| (Shape::from([len]), Shape::from([chunk_rows(size, len, Growth::None)]));
        Ok(match (part, &self.form) {
            (Part::Data, ColumnForm::Dense { shape, chunk, .. }) => (shape.clone(), chunk.clone()),
            (Part::Cube(number), ColumnForm::Cubes { cubes }) if number < cubes.len() => cubes[number].clone(),
            (Part::Values, ColumnForm::Ragged { elements, .. }) => one(*elements),
            (Part::Offset, _) => one(rows + 1),
            (Part::Shape, ColumnForm::Ragged { axes, .. }) => {
                let width = *axes as u64;
                (Shape::from([width, rows]), Shape::from([width, chunk_rows(size * width, rows, growth)]))
            }
            (Part::RowCube | Part::RowIndex | Part::Defined, _) => {
                (Shape::from([rows]), Shape::from([chunk_rows(size, rows, growth)]))
            }
            _ => return Err(Error::usage(format!("{part:?} does not belong to the form of the column"))),
        })
    }
}
