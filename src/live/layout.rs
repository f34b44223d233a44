//! Finds the groups and datasets of the tables and columns of a live file by its descriptions of
//! them (JSON under `_ctds`).

use std::collections::HashMap;

use bstr::ByteSlice;

use crate::error::{Error, Result, ResultExt};
use crate::h5::Group;
use crate::native::{
    COMMITTED_ROWS, DescribedColumn, DescribedTable, FormKind, Members, Notes, StoredForm, TableDocument,
    described_columns, described_tables, is_position, row_name,
};
use crate::table::ColumnInfo;

#[derive(Debug)]
pub(super) struct TableLayout {
    /// `MAIN`, `ANTENNA`, `A/B`.
    pub(super) name: String,
    pub(super) path: String,
    /// Dimension scale of the rows.
    pub(super) row: String,
    pub(super) columns: Vec<ColumnLayout>,
}

#[derive(Debug)]
pub(super) struct ColumnLayout {
    pub(super) info: ColumnInfo,
    form: StoredForm,
    table: String,
    /// Scales `position_0`, `position_1` … that number the cells of each hypercube; empty if all
    /// cells of the column have one shape.
    positions: Vec<String>,
}

/// `Dense` if all cells have one shape, else a dataset for each, and those that locate cells.
#[derive(Debug)]
pub(super) enum Growing<T> {
    Dense(T),
    Cubes { cubes: Vec<T>, row_cube: T, row_index: T },
}

impl ColumnLayout {
    pub(super) fn open<T>(&self, mut open: impl FnMut(&str) -> Result<T>) -> Result<Growing<T>> {
        match self.form.open(self.positions.len(), |path| open(&format!("{}/{path}", self.table)))? {
            Members::Dense { data, .. } => Ok(Growing::Dense(data)),
            Members::Cubes { cubes, row_cube, row_index } => Ok(Growing::Cubes { cubes, row_cube, row_index }),
            Members::Ragged { .. } => Err(does_not_grow(&self.info)),
        }
    }

    pub(super) fn open_positions<T>(&self, mut open: impl FnMut(&str) -> Result<T>) -> Result<Vec<T>> {
        let path = |name: &String| format!("{}/{}/{name}", self.table, self.form.link);
        self.positions.iter().map(|name| open(&path(name))).collect()
    }
}

/// Parents before their subtables; `Unsupported` without any.
pub(super) fn read(root: &Group) -> Result<Vec<TableLayout>> {
    let mut tables = Vec::new();
    for described in described_tables(root)? {
        let path = &described.path;
        let document = described.document().with_context(|| format!("group {path}"))?;
        if document.committed.as_deref() == Some(COMMITTED_ROWS) {
            tables.push(table(root, &described, document).with_context(|| format!("group {path}"))?);
        }
    }
    if tables.is_empty() {
        return Err(Error::unsupported("no live file of this program: no table has committed_rows"));
    }
    Ok(tables)
}

fn table(root: &Group, described: &DescribedTable, document: TableDocument) -> Result<TableLayout> {
    let path = &described.path;
    let group = root.group(&path[1..])?;
    let mut columns = Vec::new();
    let found = described_columns(described.exact()?, &mut HashMap::new(), &mut Notes::default())?;
    for DescribedColumn { info, form, .. } in found {
        let positions = match form.kind {
            FormKind::Dense => Vec::new(),
            FormKind::Cubes => {
                let links = group.group(&form.link)?.links()?.into_iter().map(|(name, _)| name);
                links.filter(|name| is_position(name)).collect()
            }
            FormKind::Ragged | FormKind::Record | FormKind::Missing => {
                return Err(does_not_grow(&info));
            }
        };
        columns.push(ColumnLayout { info, form, table: path.clone(), positions });
    }
    let row = if document.row.is_empty() { row_name(path) } else { document.row };
    Ok(TableLayout { name: path[1..].to_owned(), path: path.to_owned(), row, columns })
}

fn does_not_grow(info: &ColumnInfo) -> Error {
    Error::unsupported(format!("column {} has no form that grows", info.desc.name.as_bstr()))
}
