//! Where the tables of a live file are, as its own documents say.

use std::collections::HashMap;

use bstr::ByteSlice;

use crate::error::{Error, Result, ResultExt};
use crate::h5::Group;
use crate::native::{
    COMMITTED_ROWS, DescribedColumn, DescribedTable, FormKind, Members, StoredForm, TableDocument, described_columns,
    described_tables, is_position, row_name,
};
use crate::table::ColumnInfo;

/// A live table.
#[derive(Debug)]
pub(super) struct TableLayout {
    /// `MAIN`, `ANTENNA`, `A/B`.
    pub(super) name: String,
    /// Path of the group of the table.
    pub(super) path: String,
    /// The scale of the rows.
    pub(super) row: String,
    pub(super) columns: Vec<ColumnLayout>,
}

/// A column of a live table.
#[derive(Debug)]
pub(super) struct ColumnLayout {
    pub(super) info: ColumnInfo,
    form: StoredForm,
    /// The path of the group of the table.
    table: String,
    /// Names of the scales of the positions in the hypercubes of the column.
    positions: Vec<String>,
}

impl ColumnLayout {
    /// Opens the datasets of the column: `open` gets the path of each, from the root.
    pub(super) fn open<T>(&self, mut open: impl FnMut(&str) -> Result<T>) -> Result<Members<T>> {
        self.form.open(self.positions.len(), None, |path| open(&format!("{}/{path}", self.table)))
    }

    /// Opens the scales of the positions in the hypercubes of the column.
    pub(super) fn open_positions<T>(&self, mut open: impl FnMut(&str) -> Result<T>) -> Result<Vec<T>> {
        let path = |name: &String| format!("{}/{}/{name}", self.table, self.form.link);
        self.positions.iter().map(|name| open(&path(name))).collect()
    }
}

/// The live tables in a file, parents first.
///
/// # Errors
/// `Unsupported` if it has none.
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
    for DescribedColumn { info, form, .. } in described_columns(&described.exact, &mut HashMap::new())? {
        let positions = match form.kind {
            FormKind::Dense => Vec::new(),
            FormKind::Cubes => {
                let links = group.group(&form.link)?.links()?.into_iter().map(|(name, _)| name);
                links.filter(|name| is_position(name)).collect()
            }
            FormKind::Ragged | FormKind::Record | FormKind::Missing => {
                return Err(Error::unsupported(format!("column {} has no form that grows", info.desc.name.as_bstr())));
            }
        };
        columns.push(ColumnLayout { info, form, table: path.clone(), positions });
    }
    let row = if document.row.is_empty() { row_name(path) } else { document.row };
    Ok(TableLayout { name: path[1..].to_owned(), path: path.to_owned(), row, columns })
}
