//! The names of groups and datasets in a native HDF5 file, each defined once. docs/layout.md.

use std::collections::{BTreeMap, BTreeSet};

/// The name of the main table in a MeasurementSet or other tree of tables, where subtables are called `ANTENNA`, `A/B`.
pub(crate) const MAIN_TABLE: &str = ".";
/// The name of the main table's group in a native HDF5 file, and of the main table in messages and arguments.
const MAIN: &str = "MAIN";
/// The name of the group, in the root of a native HDF5 file, that describes tables and columns exactly, as a conversion back
/// to casacore tables without loss needs it.
pub(crate) const CTDS: &str = "_ctds";
/// The name of the group in [`CTDS`] with the data that rebuild the original table files byte by byte.
pub(crate) const RESTORE: &str = "restore";
/// The usual name of the group with quicklooks in the root of a native HDF5 file: visibilities at reduced resolution in time
/// and frequency, for display. `__2` is appended while the name is taken.
pub(crate) const QUICKLOOK: &str = "quicklook";
/// The name of the attribute that marks a group as one with a quicklook (visibilities at reduced resolution), also if
/// the group is not called `quicklook`.
pub(crate) const QUICKLOOK_VERSION: &str = "quicklook_version";
/// The name of the dataset, in the group of a live table, that holds the number of committed (complete, readable) rows.
pub(crate) const COMMITTED_ROWS: &str = "committed_rows";
/// The name of the dimension scale of a table's rows, except in nested subtables (`row__2` …).
pub(super) const ROW: &str = "row";
/// Prefix of the names of dimension scales for the slowest axis of a hypercube's dataset, along which its cells follow
/// one another: `position_0`, `position_1` …
pub(super) const POSITION: &str = "position";

/// Whether `name` is that of a dimension scale for the positions of cells in a hypercube: `position_0`, `position_1` …
pub(crate) fn is_position(name: &str) -> bool {
    name.strip_prefix(POSITION).is_some_and(|number| number.starts_with('_'))
}

/// The name of a table for users: `MAIN` for the main table, whose name is otherwise `.`; unchanged for subtables such as
/// `ANTENNA`, `A/B`.
pub fn display_name(table: &str) -> &str {
    if table == MAIN_TABLE { MAIN } else { table }
}

/// The internal name of a table that a user names: `.` for `MAIN`, unchanged for `ANTENNA`, `A/B`. The inverse of
/// [`display_name`].
pub(crate) fn source_name(name: &str) -> &str {
    if name == MAIN { MAIN_TABLE } else { name }
}

/// Splits the name of a column, `DATA`, `ANTENNA/NAME`, `A/B/COLUMN`, into the name of the table (`.`, `ANTENNA`, `A/B`) and
/// that of the column.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    match name.rsplit_once('/') {
        Some((table, column)) => (source_name(table), column),
        None => (MAIN_TABLE, name),
    }
}

/// Whether `name` means the main table of a live file: `.` or `MAIN`. Not for casacore tables, in which a subtable may be
/// called `MAIN`.
pub(crate) fn is_main(name: &str) -> bool {
    source_name(name) == MAIN_TABLE
}

/// The usual path of a table's group in a native HDF5 file: `/MAIN` for `.`, else `/` and the name. The actual path differs if the
/// name was taken.
pub(crate) fn table_path(name: &str) -> String {
    format!("/{}", display_name(name))
}

/// The name of the table whose group is at `path`: `.` for `/MAIN`, `A/B` for `/A/B`. The inverse of [`table_path`].
pub(crate) fn table_of_path(path: &str) -> &str {
    source_name(path.strip_prefix('/').unwrap_or(path))
}

/// The path of the group with the data that rebuild the original table files byte by byte: `/_ctds/restore`.
pub(crate) fn restore_path() -> String {
    format!("/{CTDS}/{RESTORE}")
}

/// The part after the last slash of a path in a file or of the name of a table; all of it without a slash.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The usual name of the dataset that tells which cells of a dense column (cells of one shape, in one dataset) are
/// defined: `LINK__defined`, where `link` is the name of the column's dataset.
pub(crate) fn defined_flags(link: &str) -> String {
    format!("{link}{DEFINED_FLAGS}")
}

/// Name of the column's dataset to which a dataset `link` belongs if it tells which cells are defined: `link` without
/// the suffix `__defined`; `None` for names without this suffix.
pub(super) fn flags_of(link: &str) -> Option<&str> {
    link.strip_suffix(DEFINED_FLAGS)
}

const DEFINED_FLAGS: &str = "__defined";

/// `NAME__missing`: stands for the name of a column's dataset or group if the native HDF5 file (columns as datasets)
/// lacks the column's cells. No such object is made; only the JSON document that describes the column, the attribute
/// `column.NAME__missing` of the table's group below `/_ctds` ([`CTDS`]), uses the name.
pub(crate) fn missing_link(name: &str) -> String {
    format!("{name}__missing")
}

/// The name of the group, in the table's group under `_ctds` ([`CTDS`]), with the exact strings of a column that HDF5
/// strings cannot hold: `strings.LINK`, where `link` is the name of the column's dataset or group. No table's group has such
/// a name, see [`Names::unique_table`].
pub(super) fn raw_strings_group(link: &str) -> String {
    format!("{RAW_STRINGS}{link}")
}

const RAW_STRINGS: &str = "strings.";

/// The names in use in each group of a native HDF5 file that is being created, by the group's path; keeps names unique.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    /// Marks `MAIN` and `_ctds`, which every native HDF5 file has in its root, as taken there.
    pub(crate) fn reserve_root(&mut self) {
        self.reserve("", &[MAIN, CTDS]);
    }

    /// Marks two names as taken in `group`: the argument `row`, the table's own dimension scale of rows, and the
    /// constant name `row`, because a netCDF dimension `row` of an outer group would hide a column of this name.
    pub(crate) fn reserve_row(&mut self, group: &str, row: &str) {
        self.reserve(group, &[ROW, row]);
    }

    /// Marks names as taken in `group`, so that no column gets them.
    pub(crate) fn reserve(&mut self, group: &str, names: &[&str]) {
        self.0.entry(group.to_owned()).or_default().extend(names.iter().map(|&name| name.to_owned()));
    }

    /// Whether `name` is taken in `group`, by an object or as a reserved name.
    pub(crate) fn has(&self, group: &str, name: &str) -> bool {
        self.0.get(group).is_some_and(|taken| taken.contains(name))
    }

    /// Chooses a free name in `group`, marks it as taken and returns it: `wanted`, else `wanted__2`, `wanted__3` …; `_`
    /// replaces `/` and NUL.
    pub(crate) fn unique(&mut self, group: &str, wanted: &str) -> String {
        let taken = self.0.entry(group.to_owned()).or_default();
        let name = unique(&link_name(wanted), |name| taken.contains(name));
        taken.insert(name.clone());
        name
    }

    /// Chooses a free name for the group of a table in `group`, as [`unique`](Self::unique) does. The table has a group of
    /// the same name below `_ctds`, so that it gets none of the names that are used there: `_` precedes them.
    pub(crate) fn unique_table(&mut self, group: &str, wanted: &str) -> String {
        let is_used = wanted.starts_with(RAW_STRINGS) || group.is_empty() && wanted == RESTORE;
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

/// The first of the names `wanted`, `wanted__2`, `wanted__3` … for which `taken` returns false.
pub(crate) fn unique(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while taken(&name) {
        name = format!("{wanted}__{number}");
        number += 1;
    }
    name
}

/// The name of the dimension scale of rows for the table in the group at path `group`: `row`, or `row__2`, `row__3` …
/// for nested groups, because xarray refuses a file in which a group and its parent have dimensions of one name and
/// different lengths.
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
        assert_eq!([names.unique_table("", "restore"), names.unique_table("/A", "restore")], ["_restore", "restore"]);
    }
}
