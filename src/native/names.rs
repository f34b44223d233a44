//! The names of groups, datasets and attributes in a native file. docs/layout.md.

use std::collections::{BTreeMap, BTreeSet};

/// The names taken in each group.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    /// Takes names that are not columns'.
    pub(crate) fn reserve(&mut self, group: &str, names: &[&str]) {
        self.0.entry(group.to_owned()).or_default().extend(names.iter().map(|&name| name.to_owned()));
    }

    /// Whether a column or group has the name.
    pub(crate) fn has(&self, group: &str, name: &str) -> bool {
        self.0.get(group).is_some_and(|taken| taken.contains(name))
    }

    /// Takes `wanted` in `group`, with `__2`, `__3` … if it is taken, and without what HDF5 cannot have in a name.
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

/// `wanted`, or with `__2`, `__3` … behind it if it is taken.
pub(crate) fn unique(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while taken(&name) {
        name = format!("{wanted}__{number}");
        number += 1;
    }
    name
}

/// `row`, but `row__2`, `row__3` … for subtables in their parents' groups: readers refuse a file in which a group has a
/// dimension of its parent's name and another length.
pub(crate) fn row_name(group: &str) -> String {
    match group.matches('/').count() {
        0 | 1 => "row".to_owned(),
        depth => format!("row__{depth}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
