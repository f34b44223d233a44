//! What users have changed in a native HDF5 file. docs/layout.md, "Edits".

use super::{Source, coordinates};
use crate::error::Result;
use crate::native::MAIN_TABLE;

impl Source {
    /// What users have changed in the native HDF5 file since it was made, and what they have added to it that no table has, in
    /// sentences, for the tables with the numbers `is_chosen`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn edits(&self, is_chosen: &dyn Fn(usize) -> bool) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for (_, table) in self.tables.iter().enumerate().filter(|(number, _)| is_chosen(*number)) {
            let Ok(content) = table.content() else { continue };
            let is_main = table.name == MAIN_TABLE;
            let found = content.edits(&|| if is_main { coordinates(self) } else { Vec::new() })?.into_iter();
            notes.extend(found.map(|note| if is_main { note } else { format!("subtable {}: {note}", table.name) }));
        }
        Ok(notes)
    }
}
