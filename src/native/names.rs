//! The names of groups and datasets in a native file, each defined once. docs/layout.md.

use std::collections::{BTreeMap, BTreeSet};

/// The name of the main table in a source: `.`.
pub(crate) const MAIN_TABLE: &str = ".";
/// The name of the main table's group in a native file, by which users also call the table.
const MAIN: &str = "MAIN";
/// The group of a native file with exact descriptions, needed to convert it back without loss.
pub(crate) const CTDS: &str = "_ctds";
/// The group in [`CTDS`] with the recipes that rebuild the original files.
pub(crate) const RESTORE: &str = "restore";
/// The group with small versions of visibilities for a quick look, and the attribute by which it is recognised under any name.
pub(crate) const QUICKLOOK: &str = "quicklook";
pub(crate) const QUICKLOOK_VERSION: &str = "quicklook_version";
/// The dataset in the group of a live table that holds the number of committed rows.
pub(crate) const COMMITTED_ROWS: &str = "committed_rows";
/// The name of the dimension scale of a table's rows.
pub(super) const ROW: &str = "row";
/// Start of the name of the dimension scale of the positions in a hypercube; a number follows.
pub(super) const POSITION: &str = "position";

/// Whether `name` is that of the dimension scale of the positions in a growing hypercube.
pub(crate) fn is_position(name: &str) -> bool {
    name.strip_prefix(POSITION).is_some_and(|number| number.starts_with('_'))
}

/// The name of a table for users: `MAIN` for the main table, else the source's: `ANTENNA`, `A/B`.
pub fn display_name(table: &str) -> &str {
    if table == MAIN_TABLE { MAIN } else { table }
}

/// The name of a table in a source: `.` for the main table, `ANTENNA`, `A/B`. The inverse of [`display_name`].
pub(crate) fn source_name(name: &str) -> &str {
    if name == MAIN { MAIN_TABLE } else { name }
}

/// Splits the name of a column, `DATA`, `ANTENNA/NAME`, `A/B/COLUMN`, into the table as a source names it and the column.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    match name.rsplit_once('/') {
        Some((table, column)) => (source_name(table), column),
        None => (MAIN_TABLE, name),
    }
}

/// Whether a table of a live file is the main one, by either name. In a source, a subtable may also be called `MAIN`.
pub(crate) fn is_main(name: &str) -> bool {
    source_name(name) == MAIN_TABLE
}

/// The path of the group that a table gets in a native file unless another object has its name.
pub(crate) fn table_path(name: &str) -> String {
    format!("/{}", display_name(name))
}

/// The name in a source of the table whose group is at `path`. The inverse of [`table_path`].
pub(crate) fn table_of_path(path: &str) -> &str {
    source_name(path.strip_prefix('/').unwrap_or(path))
}

/// The path of the group with the recipes that rebuild original files, in [`CTDS`].
pub(crate) fn restore_path() -> String {
    format!("/{CTDS}/{RESTORE}")
}

/// The last part of a path in a file, or of the name of a table.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The name of the dataset that tells which cells of the dense column `link` are defined.
pub(crate) fn defined_flags(link: &str) -> String {
    format!("{link}{DEFINED_FLAGS}")
}

/// The column whose [`defined_flags`] the dataset `link` may be; `None` if its name is not of that form.
pub(super) fn flags_of(link: &str) -> Option<&str> {
    link.strip_suffix(DEFINED_FLAGS)
}

const DEFINED_FLAGS: &str = "__defined";

/// The name in [`CTDS`] of the column `name` that has no dataset of its own.
pub(crate) fn missing_link(name: &str) -> String {
    format!("{name}__missing")
}

/// The name of the group in [`CTDS`] with the strings that the dataset of the column `link` cannot hold.
pub(super) fn raw_strings_group(link: &str) -> String {
    format!("strings.{link}")
}

/// The names that are taken in each group of a native file, by the group's path.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    /// Marks the names as taken that every native file has in its root.
    pub(crate) fn reserve_root(&mut self) {
        self.reserve("", &[MAIN, CTDS]);
    }

    /// Marks the names of the dimension scales of rows as taken in `group`, that of its table and those of its parents: a
    /// dimension of the parent would hide a column of its name.
    pub(crate) fn reserve_row(&mut self, group: &str, row: &str) {
        self.reserve(group, &[ROW, row]);
    }

    /// Marks names as taken in `group` that are not those of columns.
    pub(crate) fn reserve(&mut self, group: &str, names: &[&str]) {
        self.0.entry(group.to_owned()).or_default().extend(names.iter().map(|&name| name.to_owned()));
    }

    /// Whether a column or group in `group` has this name.
    pub(crate) fn has(&self, group: &str, name: &str) -> bool {
        self.0.get(group).is_some_and(|taken| taken.contains(name))
    }

    /// Takes a free name in `group`: `wanted`, else `wanted__2`, `wanted__3` …, without the characters that HDF5 cannot have in
    /// a name.
    pub(crate) fn unique(&mut self, group: &str, wanted: &str) -> String {
        let taken = self.0.entry(group.to_owned()).or_default();
        let name = unique(&link_name(wanted), |name| taken.contains(name));
        taken.insert(name.clone());
        name
    }
}

pub(super) fn link_name(wanted: &str) -> String {
    let name = wanted.replace(['/', '\0'], "_");
    match name.as_str() {
        "" | "." | ".." => format!("_{name}"),
        _ => name,
    }
}

/// The first of the names `wanted`, `wanted__2`, `wanted__3` … that is not `taken`.
pub(crate) fn unique(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while taken(&name) {
        name = format!("{wanted}__{number}");
        number += 1;
    }
    name
}

/// The name of the dimension scale of a table's rows: `row`, but `row__2`, `row__3` … for subtables in their parents' groups,
/// since readers refuse a file in which a group has a dimension of its parent's name and another length.
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
    }
}
