//! Where the tables of a live file are, as its own documents say.

use std::collections::HashMap;

use bstr::ByteSlice;
use serde_json::Value as Json;

use crate::error::{Error, Result, ResultExt};
use crate::h5::{Group, LinkKind};
use crate::limits;
use crate::native::{self, FormKind};
use crate::table::ColumnInfo;

/// The dataset in the group of each live table that says how many of its rows are complete.
pub(crate) const COMMITTED: &str = "committed_rows";

/// A live table.
#[derive(Debug)]
pub(super) struct TableLayout {
    /// `MAIN`, `ANTENNA`, `A/B`.
    pub(super) name: String,
    /// Of its group.
    pub(super) path: String,
    /// The scale of the rows.
    pub(super) row: String,
    pub(super) columns: Vec<ColumnLayout>,
}

/// A column of a live table.
#[derive(Debug)]
pub(super) struct ColumnLayout {
    pub(super) info: ColumnInfo,
    /// Of its dataset or group.
    pub(super) path: String,
    /// If it is a group, the scale of the positions in each of its hypercubes.
    pub(super) positions: Option<Vec<String>>,
}

/// The live tables in a file, parents first.
///
/// # Errors
/// `Unsupported` if it has none.
pub(super) fn read(root: &Group) -> Result<Vec<TableLayout>> {
    let mut tables = Vec::new();
    if root.has("_ctds") {
        find(root, &root.group("_ctds")?, "", &mut tables, 0)?;
    }
    if tables.is_empty() {
        return Err(Error::unsupported("no live file of this program: no table has committed_rows"));
    }
    Ok(tables)
}

fn find(root: &Group, exact: &Group, path: &str, tables: &mut Vec<TableLayout>, depth: usize) -> Result<()> {
    limits::depth(depth, "groups")?;
    for (name, kind) in exact.links()? {
        if kind != LinkKind::Group {
            continue;
        }
        let (path, exact) = (format!("{path}/{name}"), exact.group(&name)?);
        let Some(document) = exact.attribute("table")? else { continue };
        let document = native::parse(&document).with_context(|| format!("_ctds attribute table of {path}"))?;
        if document.get("committed").and_then(Json::as_str) == Some(COMMITTED) {
            tables.push(table(root, &exact, &path, &document).with_context(|| format!("group {path}"))?);
        }
        find(root, &exact, &path, tables, depth + 1)?;
    }
    Ok(())
}

fn table(root: &Group, exact: &Group, path: &str, document: &Json) -> Result<TableLayout> {
    let group = root.group(&path[1..])?;
    let row = document.get("row").and_then(Json::as_str).unwrap_or("row").to_owned();
    let mut columns = Vec::new();
    for (info, form, _) in native::columns(exact, &mut HashMap::new())? {
        let positions = match form.kind {
            FormKind::Dense => None,
            FormKind::Cubes => {
                let links = group.group(&form.link)?.links()?.into_iter().map(|(name, _)| name);
                Some(links.filter(|name| name.starts_with("position_")).collect())
            }
            _ => return Err(Error::unsupported(format!("column {} has no form that grows", info.desc.name.as_bstr()))),
        };
        columns.push(ColumnLayout { info, path: format!("{path}/{}", form.link), positions });
    }
    Ok(TableLayout { name: path[1..].to_owned(), path: path.to_owned(), row, columns })
}
