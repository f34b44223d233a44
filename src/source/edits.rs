//! Changes that users have made in a native HDF5 file. docs/reference/layout.md, "Edits".

use super::processing_set::SetChange;
use super::{Source, coordinates};
use crate::error::Result;
use crate::native::MAIN_TABLE;

impl Source {
    /// Sentences about edits of the native file, and additions that no table has.
    pub(crate) fn edits(&self, is_chosen: &dyn Fn(usize) -> bool) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for (_, table) in self.tables.iter().enumerate().filter(|(number, _)| is_chosen(*number)) {
            let Ok(content) = table.content() else { continue };
            let is_main = table.name == MAIN_TABLE;
            let found = match content.edits(&|| if is_main { coordinates(self) } else { Vec::new() }) {
                Err(error) if self.is_salvaged() && error.is_damage() => {
                    vec![format!("edits are looked for up to damage only: {error}")]
                }
                found => found?,
            };
            let found = found.into_iter();
            notes.extend(found.map(|note| if is_main { note } else { format!("subtable {}: {note}", table.name) }));
        }
        if is_chosen(0) {
            notes.extend(self.set_changes()?.iter().map(SetChange::note));
        }
        Ok(notes)
    }
}
