//! Restorable files: restores the exact original directory, every file and every byte, from a
//! native HDF5 file (columns as datasets). docs/reference/restorable.md.
//!
//! ```text
//! while converting   files + Extent of every column ─► recipe, tried against the files ─► /_ctds/restore   [record]
//! later              /_ctds/restore + datasets ─► files, checked by their SHA-256                           [rebuild]
//! ```

mod append_buffer;
mod copies;
mod matching;
mod rebuild;
mod recipe;
mod record;
mod restore;
mod space;

pub(super) use record::record;
pub use restore::ToOriginalSummary;
pub(super) use restore::restore;
pub(super) use restore::{ChangedFile, changed_files};
pub use space::SpaceUsage;
