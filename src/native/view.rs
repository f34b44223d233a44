//! Views as native files record them: a converted table that showed rows of another table, its
//! root, or of several tables one after the other. docs/reference/layout.md, "Exact values".

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use bstr::{BStr, BString};
use serde::{Deserialize, Serialize};

use super::json::JsonString;
use crate::table::{Table, TableKind};

/// A view, without the numbers of its rows in the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// The root, or all parts: paths as [`name_of`] gives them, or groups, with a slash, of tables
    /// that the file has itself.
    pub(crate) tables: Vec<BString>,
    pub(crate) kind: ViewKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Reference {
        /// Name here and in the root.
        columns: Vec<(BString, BString)>,
        /// Rows of the root when the view was written.
        root_rows: u64,
        ordered: bool,
    },
    Concatenation {
        /// Keywords whose tables are concatenated as well.
        subtables: Vec<BString>,
    },
}

const REFERENCE: &str = "reference";
const CONCATENATION: &str = "concatenation";

/// Member `view` of the document of a table.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ViewDocument {
    kind: String,
    tables: Vec<JsonString>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<(JsonString, JsonString)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_rows: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ordered: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subtables: Vec<JsonString>,
}

impl View {
    /// `None` for a table with cells of its own.
    pub(crate) fn of(table: &Table) -> Option<Self> {
        let name = |path: &PathBuf| name_of(path, table.path());
        match (table.kind(), table.reference()) {
            (TableKind::Reference { root }, Some(reference)) => {
                let (columns, root_rows, ordered) = (reference.columns.clone(), reference.root_rows, reference.ordered);
                Some(View { tables: vec![name(root)], kind: ViewKind::Reference { columns, root_rows, ordered } })
            }
            // a concatenation of the subtables of another one is stored nowhere
            (TableKind::Concatenation { parts }, _) if !parts.iter().any(|part| part == table.path()) => {
                let subtables = table.concatenated().to_vec();
                Some(View { tables: parts.iter().map(name).collect(), kind: ViewKind::Concatenation { subtables } })
            }
            _ => None,
        }
    }

    pub(crate) fn is_reference(&self) -> bool {
        matches!(self.kind, ViewKind::Reference { .. })
    }

    /// Kind of the view, in words for the user.
    pub(crate) fn kind_name(&self) -> &'static str {
        if self.is_reference() { "reference table" } else { CONCATENATION }
    }

    pub(super) fn document(&self) -> ViewDocument {
        let strings = |strings: &[BString]| strings.iter().map(JsonString::from).collect();
        let tables = strings(&self.tables);
        match &self.kind {
            ViewKind::Reference { columns, root_rows, ordered } => ViewDocument {
                kind: REFERENCE.to_owned(),
                tables,
                columns: columns.iter().map(|(name, of_root)| (name.into(), of_root.into())).collect(),
                root_rows: Some(*root_rows),
                ordered: *ordered,
                subtables: Vec::new(),
            },
            ViewKind::Concatenation { subtables } => ViewDocument {
                kind: CONCATENATION.to_owned(),
                tables,
                columns: Vec::new(),
                root_rows: None,
                ordered: false,
                subtables: strings(subtables),
            },
        }
    }
}

impl ViewDocument {
    /// `None` for a kind that this program does not know.
    pub(super) fn view(self) -> Option<View> {
        let strings = |strings: Vec<JsonString>| strings.into_iter().map(|string| string.0).collect();
        let kind = match (self.kind.as_str(), self.root_rows) {
            (REFERENCE, Some(root_rows)) if self.tables.len() == 1 => {
                let columns = self.columns.into_iter().map(|(name, of_root)| (name.0, of_root.0)).collect();
                ViewKind::Reference { columns, root_rows, ordered: self.ordered }
            }
            (CONCATENATION, _) => ViewKind::Concatenation { subtables: strings(self.subtables) },
            _ => return None,
        };
        Some(View { tables: strings(self.tables), kind })
    }
}

/// Path of a table that one at `from` refers to: relative to the directory with `from` if it is in
/// that, else only its last component.
fn name_of(path: &Path, from: &Path) -> BString {
    let below = from.parent().and_then(|directory| path.strip_prefix(directory).ok());
    let name = below.filter(|below| is_name(below)).or_else(|| path.file_name().map(Path::new));
    name.unwrap_or(Path::new("")).as_os_str().as_bytes().into()
}

/// Whether a path has only names, so that it leads below any directory to which it is relative.
fn is_name(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Where a table called `name` may be in `directory`: at this path, or by its last component alone.
/// `None` for a name that leads elsewhere.
pub(crate) fn places_of(name: &BStr, directory: &Path) -> Option<[PathBuf; 2]> {
    let name = Path::new(OsStr::from_bytes(name));
    let last = name.file_name().filter(|_| is_name(name))?;
    Some([directory.join(name), directory.join(last)])
}

/// The name of a table for [`places_of`], by the name that a keyword stores; `None` if that leads
/// to the table with the keyword, or to one above. docs/reference/formats/table.md 1.10.
pub(crate) fn name_of_stored(stored: &BStr) -> Option<&BStr> {
    let mut rest: &[u8] = stored;
    while let Some(after) = rest.strip_prefix(b"./") {
        rest = after;
    }
    let is_above = rest.ends_with(b"/.");
    let name = if rest.starts_with(b"/") { rest.rsplit(|&byte| byte == b'/').next()? } else { rest };
    (!is_above && !name.is_empty()).then_some(name.into())
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;
    use crate::native::json;

    #[test]
    fn names_lead_below_a_directory_only() {
        let name = |path: &str, from: &str| name_of(Path::new(path), Path::new(from)).to_string();
        assert_eq!(name("/d/base.tab", "/d/x.ref"), "base.tab");
        assert_eq!(name("/d/x.ref/SUB/a", "/d/x.ref"), "x.ref/SUB/a");
        assert_eq!(name("/d/p.tab", "/d/p.tab/inner"), "p.tab");
        assert_eq!(name("/else/far.tab", "/d/x.ref"), "far.tab");
        assert_eq!(name("/d/../far.tab", "/d/x.ref"), "far.tab");
        let places = |name: &str| places_of(name.into(), Path::new("/s"));
        let paths = |[whole, last]: [&str; 2]| Some([PathBuf::from(whole), PathBuf::from(last)]);
        assert_eq!(places("base.tab"), paths(["/s/base.tab", "/s/base.tab"]));
        assert_eq!(places("x.ref/a"), paths(["/s/x.ref/a", "/s/a"]));
        for name in ["", ".", "..", "../far.tab", "a/../b", "/etc/x.tab", "./a", "a/.."] {
            assert_eq!(places(name), None, "{name}");
        }
    }

    #[test]
    fn stored_names_of_other_tables() {
        let name = |stored: &str| name_of_stored(stored.into()).map(ToString::to_string);
        for (stored, expected) in [
            ("./orig.tab", Some("orig.tab")),
            ("././SUB", Some("SUB")),
            ("/else/far.tab", Some("far.tab")),
            ("far.tab", Some("far.tab")),
            ("inner/.", None),
            ("/", None),
            ("./", None),
            ("", None),
        ] {
            assert_eq!(name(stored).as_deref(), expected, "{stored}");
        }
        // places_of refuses the rest
        assert_eq!(places_of(name_of_stored("./../x".as_bytes().as_bstr()).unwrap(), Path::new("/s")), None);
    }

    #[test]
    fn views_are_read_as_they_were_written() {
        let reference = ViewKind::Reference {
            columns: vec![("DD".into(), b"D\xff".as_bstr().to_owned())],
            root_rows: u64::MAX,
            ordered: true,
        };
        let concatenation = ViewKind::Concatenation { subtables: vec!["SUB".into()] };
        for view in [
            View { tables: vec!["base.tab".into()], kind: reference },
            View { tables: vec!["1".into(), "2".into()], kind: concatenation },
        ] {
            let text = json::encode(&view.document()).unwrap();
            assert_eq!(json::decode::<ViewDocument>(text.as_bytes()).unwrap().view(), Some(view));
        }
        for text in [
            r#"{"kind": "reference", "tables": []}"#,
            r#"{"kind": "reference", "tables": ["a"]}"#,
            r#"{"kind": "reference", "tables": ["a", "b"], "root_rows": 3}"#,
            r#"{"kind": "join", "tables": ["a"]}"#,
        ] {
            assert_eq!(json::decode::<ViewDocument>(text.as_bytes()).unwrap().view(), None, "{text}");
        }
    }
}
