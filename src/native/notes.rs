//! Notes about a table of a native HDF5 file that is opened: for the user, and about damage that is
//! gone around.

use crate::error::{Error, Result};
use crate::h5::Group;
use crate::output::Damage;

/// Document in `_ctds`, links and attributes of a table's group, or attributes of a column.
pub(crate) const DESCRIPTION: &str = "description";
pub(crate) const GROUP: &str = "group";
pub(crate) const ATTRIBUTES: &str = "attributes";

/// For the user: sentences, and objects that are left out.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Also about objects that are left out.
    pub(crate) texts: Vec<String>,
    /// Path from the root, and why the object is neither a column nor a subtable.
    pub(crate) left_out: Vec<(String, String)>,
    /// Damage that is gone around; `None` if it is an error.
    pub(crate) damage: Option<Vec<Damage>>,
}

impl Notes {
    pub(crate) fn salvaging() -> Self {
        Notes { damage: Some(Vec::new()), ..Notes::default() }
    }

    /// `None` for damage that is gone around.
    pub(crate) fn around<T>(&mut self, result: Result<T>, damage: impl FnOnce(&Error) -> Damage) -> Result<Option<T>> {
        match (result, &mut self.damage) {
            (Err(error), Some(gone_around)) if error.is_damage() => {
                gone_around.push(damage(&error));
                Ok(None)
            }
            (result, _) => result.map(Some),
        }
    }

    pub(crate) fn lost(&mut self, column: &str, error: &Error) {
        self.damage.iter_mut().for_each(|damage| damage.push(Damage::of_column("", column, None, error)));
    }

    /// Notes `found`, why a part of the table or of a column is missing.
    pub(crate) fn missing(&mut self, found: Option<Error>, column: Option<&str>, part: &str) {
        if let (Some(error), Some(damage)) = (found, &mut self.damage) {
            damage.push(Damage::of_part("", column, part, &error));
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.texts.push(text.into());
    }

    pub(crate) fn not_a_column(&mut self, group: &Group, link: &str, why: impl std::fmt::Display) {
        self.say(format!("{link} is not a column: {why}"));
        self.left_out.push((format!("{}/{link}", group.path().trim_end_matches('/')), why.to_string()));
    }

    pub(crate) fn not_a_subtable(&mut self, path: String, why: impl std::fmt::Display) {
        self.say(format!("{path} is not a subtable: {why}"));
        self.left_out.push((path, why.to_string()));
    }

    pub(crate) fn append(&mut self, mut other: Notes) {
        self.texts.append(&mut other.texts);
        self.left_out.append(&mut other.left_out);
        if let (Some(damage), Some(mut more)) = (&mut self.damage, other.damage) {
            damage.append(&mut more);
        }
    }
}
