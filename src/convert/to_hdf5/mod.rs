//! Conversion of tables to HDF5 in three steps: a plan of the datasets, then the structure of the
//! file, then the data.

mod blocks;
mod budget;
mod column;
mod compression;
mod datasets;
mod described;
mod hdf5_version;
mod lanes;
mod layout_choice;
mod outline;
mod plan;
mod prediction;
mod processing_set;
mod profile;
mod quicklook;
mod set_writer;
mod stored;
mod structure;
#[cfg(any(test, feature = "internals"))]
mod unwritten;

pub(super) use blocks::Tiles;
pub use blocks::{ColumnSharing, Sharing};
pub use compression::Compress;
pub use hdf5_version::Hdf5Version;
pub use layout_choice::{ColumnForm, ReadStrategy};
pub use outline::{ColumnOutline, CoordinateOutline, DatasetOutline, Outline, TableOutline};
pub use plan::{ColumnPlan, MissingColumn, Schema, TablePlan};
pub(crate) use plan::{Plan, ToHdf5Options};
pub use prediction::Prediction;
pub use profile::Profile;
pub(super) use quicklook::write as write_quicklook;
#[cfg(any(test, feature = "internals"))]
pub use stored::Place;
pub(super) use stored::StoredColumn;
pub(super) use structure::{Held, Writer};
#[cfg(any(test, feature = "internals"))]
pub use unwritten::Unwritten;
