//! Facts about a native file that are read before the rules of `lint` are applied.

use crate::h5::{AnyType, IndexKind, Plugin};

/// Everything that the rules of `lint` examine in a file: its objects, links and attributes.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) file: FileFacts,
    pub(super) links: Vec<LinkFacts>,
    pub(super) datasets: Vec<DatasetFacts>,
    pub(super) attributes: Vec<AttributeFacts>,
    /// Tables and columns of the file that cannot be read: path and reason.
    pub(super) unreadable: Vec<(String, String)>,
    /// Paths of the committed (named) types in the file.
    pub(super) types: Vec<String>,
    /// Number of groups in the file.
    pub(super) groups: u64,
}

/// Facts about the HDF5 file as a whole.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    /// Version of the file's superblock.
    pub(super) superblock: u8,
    /// Whether the file is marked as open for writing by SWMR: a writer has it open, or was killed while it had.
    pub(super) is_live: bool,
}

/// Facts about a soft or external link in the file.
#[derive(Debug)]
pub(super) struct LinkFacts {
    pub(super) path: String,
    /// Kind and target of the link in words, if it leads out of the file; `None` if not.
    pub(super) elsewhere: Option<String>,
}

/// Facts about a dataset in the file.
#[derive(Debug)]
pub(super) struct DatasetFacts {
    pub(super) path: String,
    pub(super) place: Place,
    pub(super) is_scale: bool,
    pub(super) element: AnyType,
    pub(super) is_committed: bool,
    /// Extents of the dataset, slowest axis first; `None` for a null dataspace.
    pub(super) extents: Option<Vec<u64>>,
    pub(super) index: IndexKind,
    pub(super) plugins: Vec<Plugin>,
    /// Where the elements of the dataset are, if they are in other files; `None` if not.
    pub(super) elsewhere: Option<String>,
    /// Number of dimension scales that are attached to each axis of the dataset.
    pub(super) scales: Vec<usize>,
}

/// Place of a dataset in the native layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The dataset is a member of a table's group.
    Table,
    /// The dataset is a member of the group of a column.
    Column,
    /// The dataset is under `_ctds`, or in a group that is not a table.
    Other,
}

/// An attribute of a group, a dataset or a type.
#[derive(Debug)]
pub(super) struct AttributeFacts {
    /// Path of the object (group, dataset or type) that has the attribute.
    pub(super) path: String,
    pub(super) name: String,
    /// Extents of the attribute, slowest axis first; `None` for a null dataspace.
    pub(super) extents: Option<Vec<u64>>,
    /// Size of the attribute in the file in bytes, without the text of strings of variable length.
    pub(super) bytes: u64,
}
