//! Packs the files of tables into containers and unpacks them, byte for byte.
//! docs/reference/containers.md.
//!
//! | type             | does                                                                                       |
//! |------------------|--------------------------------------------------------------------------------------------|
//! | [`Pack`]         | puts the files of a table into containers, which casacore opens as it opens the table      |
//! | [`Unpack`]       | writes each file on its own again                                                          |
//! | [`CompareBytes`] | compares two tables file by file, whatever their containers                                |
//! | [`Check`]        | compares containers with their checksums                                                   |
//! | [`Listing`]      | lists what is in a directory or container, as it is stored                                 |
//! | [`FollowFiles`]  | keeps a container in step with a table that another program is writing                     |
//! | [`FinalizeFiles`]| makes an ordinary container of that one                                                    |
//!
//! A source is a table directory or a container; it is taken as the set of its files as they are
//! when each lies on its own, so any container becomes any other in one step.
//!
//! ```
//! use ctds_hdf5::pack::{CompareBytes, Pack, Unpack};
//! # use ctds_hdf5::{ColumnDesc, NewTable};
//! # let folder = tempfile::tempdir()?;
//! # let [my_ms, packed_ms, copy_ms] = ["my.ms", "packed.ms", "copy.ms"].map(|name| folder.path().join(name));
//! # NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?.close()?;
//!
//! Pack::new(&my_ms).checksums(true).write(&packed_ms)?;
//! Unpack::new(&packed_ms).write(&copy_ms)?;
//! assert!(CompareBytes::new(&my_ms, &copy_ms).run()?.differences.is_empty());
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod builders;
mod compare;
mod copy;
mod elsewhere;
mod file_set;
mod finalize;
mod follow;
mod format;
mod list;
mod special;
#[cfg(test)]
mod tests;
mod vt_store;
mod write;

pub use crate::container::{VtStore, serve_vt};
pub use crate::output::Damage;
pub use builders::{CompareBytes, Pack, Unpack};
pub use compare::{ByteComparison, ByteDifference};
pub use elsewhere::Elsewhere;
pub use finalize::{FinalizeFiles, FinalizedFiles};
pub use follow::{FilesCommit, FilesEvent, FilesFollowed, FollowFiles, is_followed};
pub use format::PackFormat;
pub use list::{Check, Contents, Listed, ListedFile, Listing, StoredFile, StoredFiles};
pub use vt_store::open_vt_store;
pub use write::PackSummary;
