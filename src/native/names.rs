//! The names of groups and datasets in a native HDF5 file, each defined once.
//! docs/reference/layout.md.

use std::collections::{BTreeMap, BTreeSet};

/// Subtables are called `ANTENNA`, `A/B`.
pub(crate) const MAIN_TABLE: &str = ".";
/// Group of the main table, also its name in messages and arguments.
const MAIN: &str = "MAIN";
/// Group with the exact descriptions of tables and columns.
pub(crate) const CTDS: &str = "_ctds";
/// Group of a processing set of MSv4.
pub(crate) const PROCESSING_SET: &str = "msv4";
/// Marks the group of a processing set, as the schema has it.
pub(crate) const OF_PROCESSING_SET: (&str, &str) = ("type", "processing_set");
/// In [`CTDS`]: data that rebuild the original files.
pub(crate) const RESTORE: &str = "restore";
/// Usual group of quicklooks; `__2` is appended while the name is taken.
pub(crate) const QUICKLOOK: &str = "quicklook";
/// Marks a group with a quicklook, whatever its name.
pub(crate) const QUICKLOOK_VERSION: &str = "quicklook_version";
/// Dataset of a live table.
pub(crate) const COMMITTED_ROWS: &str = "committed_rows";
/// Scale of rows, except in nested subtables (`row__2` …).
pub(super) const ROW: &str = "row";
/// Prefix of scales of a hypercube's slowest axis: `position_0`, `position_1` …
pub(super) const POSITION: &str = "position";

/// `position_0`, `position_1` …
pub(crate) fn is_position(name: &str) -> bool {
    name.strip_prefix(POSITION).is_some_and(|number| number.starts_with('_'))
}

/// The name of a table for users: `MAIN` for the main table, whose name is otherwise `.`; unchanged
/// for subtables such as `ANTENNA`, `A/B`.
pub fn display_name(table: &str) -> &str {
    if table == MAIN_TABLE { MAIN } else { table }
}

/// `.` for `MAIN`, unchanged for `ANTENNA`, `A/B`: the inverse of [`display_name`].
pub(crate) fn source_name(name: &str) -> &str {
    if name == MAIN { MAIN_TABLE } else { name }
}

/// Splits `DATA`, `ANTENNA/NAME`, `A/B/COLUMN` into table (`.`, `ANTENNA`, `A/B`) and column.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    match name.rsplit_once('/') {
        Some((table, column)) => (source_name(table), column),
        None => (MAIN_TABLE, name),
    }
}

/// `.` or `MAIN` in a live file. Not for casacore tables, in which a subtable may be called `MAIN`.
pub(crate) fn is_main(name: &str) -> bool {
    source_name(name) == MAIN_TABLE
}

/// `/MAIN` for `.`, else `/` and the name; the actual path differs if the name was taken.
pub(crate) fn table_path(name: &str) -> String {
    format!("/{}", display_name(name))
}

/// The inverse of [`table_path`]: `.` for `/MAIN`, `A/B` for `/A/B`.
pub(crate) fn table_of_path(path: &str) -> &str {
    source_name(path.strip_prefix('/').unwrap_or(path))
}

/// `/_ctds/restore`.
pub(crate) fn restore_path() -> String {
    format!("/{CTDS}/{RESTORE}")
}

/// The part after the last slash; all of it without one.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Usual dataset of the defined cells of a dense column: `LINK__defined`.
pub(crate) fn defined_flags(link: &str) -> String {
    format!("{link}{DEFINED_FLAGS}")
}

/// `link` without the suffix `__defined`, if it has that.
pub(super) fn flags_of(link: &str) -> Option<&str> {
    link.strip_suffix(DEFINED_FLAGS)
}

const DEFINED_FLAGS: &str = "__defined";

/// `NAME__missing`, for the document of a column without cells in the file; no object has the name.
pub(crate) fn missing_link(name: &str) -> String {
    format!("{name}__missing")
}

/// `strings.LINK`, in the table's group under [`CTDS`]; never the name of a table's group.
pub(super) fn raw_strings_group(link: &str) -> String {
    format!("{RAW_STRINGS}{link}")
}

const RAW_STRINGS: &str = "strings.";

/// Dataset in the group of a view under [`CTDS`]: numbers of its rows in the root.
pub(crate) const VIEW_ROWS: &str = "view.rows";

/// Names in use in each group, by its path.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    pub(crate) fn reserve_root(&mut self) {
        self.reserve("", &[MAIN, CTDS, PROCESSING_SET]);
    }

    /// A netCDF dimension `row` of an outer group would hide a column of this name.
    pub(crate) fn reserve_row(&mut self, group: &str, row: &str) {
        self.reserve(group, &[ROW, row]);
    }

    pub(crate) fn reserve(&mut self, group: &str, names: &[&str]) {
        self.0.entry(group.to_owned()).or_default().extend(names.iter().map(|&name| name.to_owned()));
    }

    pub(crate) fn has(&self, group: &str, name: &str) -> bool {
        self.0.get(group).is_some_and(|taken| taken.contains(name))
    }

    /// `wanted`, else `wanted__2`, `wanted__3` …; `_` replaces `/` and NUL.
    pub(crate) fn unique(&mut self, group: &str, wanted: &str) -> String {
        let taken = self.0.entry(group.to_owned()).or_default();
        let name = unique(&link_name(wanted), |name| taken.contains(name));
        taken.insert(name.clone());
        name
    }

    /// As [`unique`](Self::unique), but `_` precedes names in use in the same group below `_ctds`.
    pub(crate) fn unique_table(&mut self, group: &str, wanted: &str) -> String {
        let is_used = wanted.starts_with(RAW_STRINGS) || wanted == VIEW_ROWS || group.is_empty() && wanted == RESTORE;
        self.unique(group, &if is_used { format!("_{wanted}") } else { wanted.to_owned() })
    }
}

pub(super) fn link_name(wanted: &str) -> String {
    let name = wanted.replace(['/', '\0'], "_");
    match name.as_str() {
        "" | "." | ".." => format!("_{name}"),
        _ => name,
    }
}

/// The first of `wanted`, `wanted__2`, `wanted__3` … that is not taken.
pub(crate) fn unique(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while taken(&name) {
        name = format!("{wanted}__{number}");
        number += 1;
    }
    name
}

/// `row`, or `row__2` … for nested groups: xarray refuses a parent's name for another length.
pub(crate) fn row_name(group: &str) -> String {
    match group.matches('/').count() {
        0 | 1 => ROW.to_owned(),
        depth => format!("{ROW}__{depth}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_table_has_two_names() {
        assert_eq!([display_name("."), display_name("A/B")], ["MAIN", "A/B"]);
        assert_eq!([source_name("MAIN"), source_name("."), source_name("A/B")], [".", ".", "A/B"]);
        assert_eq!([table_path("."), table_path("A/B")], ["/MAIN", "/A/B"]);
        assert_eq!([table_of_path("/MAIN"), table_of_path("/A/B")], [".", "A/B"]);
        assert!(is_main(".") && is_main("MAIN") && !is_main("ANTENNA"));
    }

    #[test]
    fn names_stay_apart() {
        let mut names = Names::default();
        names.reserve("/MAIN", &["row"]);
        assert_eq!(names.unique("/MAIN", "row"), "row__2");
        assert_eq!(names.unique("/MAIN", "a/b"), "a_b");
        assert_eq!(names.unique("/MAIN", "a_b"), "a_b__2");
        assert_eq!(names.unique("/OTHER", "a_b"), "a_b");
        assert_eq!(names.unique("/OTHER", "."), "_.");
        assert_eq!(names.unique_table("/OTHER", "strings.A"), "_strings.A");
        assert_eq!(names.unique_table("/OTHER", "view.rows"), "_view.rows");
        assert_eq!([names.unique_table("", "restore"), names.unique_table("/A", "restore")], ["_restore", "restore"]);
    }
}
