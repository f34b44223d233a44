//! What is known of a file before a rule sees it.

use crate::h5::{AnyType, IndexKind, Plugin};

/// Everything that rules look at.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) file: FileFacts,
    pub(super) links: Vec<LinkFacts>,
    pub(super) datasets: Vec<DatasetFacts>,
    pub(super) attributes: Vec<AttributeFacts>,
    /// Tables and columns that cannot be read, by path, with the reason.
    pub(super) unreadable: Vec<(String, String)>,
    /// Paths of committed types.
    pub(super) types: Vec<String>,
    /// Number of groups.
    pub(super) groups: u64,
}

/// The file as a whole.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    /// Version of the superblock.
    pub(super) superblock: u8,
    /// A writer has the file open for concurrent readers, or was killed when it had.
    pub(super) is_live: bool,
}

/// A link that is not hard.
#[derive(Debug)]
pub(super) struct LinkFacts {
    pub(super) path: String,
    /// Kind and target in words, if it leads out of the file.
    pub(super) elsewhere: Option<String>,
}

/// A dataset.
#[derive(Debug)]
pub(super) struct DatasetFacts {
    pub(super) path: String,
    pub(super) place: Place,
    pub(super) is_scale: bool,
    pub(super) element: AnyType,
    pub(super) is_committed: bool,
    /// Slowest axis first; `None` for a null dataspace.
    pub(super) extents: Option<Vec<u64>>,
    pub(super) index: IndexKind,
    pub(super) plugins: Vec<Plugin>,
    /// Where the elements are, if they are in other files.
    pub(super) elsewhere: Option<String>,
    /// Number of dimension scales of each axis.
    pub(super) scales: Vec<usize>,
}

/// Where a dataset is in the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A member of a table's group.
    Table,
    /// A member of the group of a column.
    Column,
    /// Under `_ctds`, or in a group that is not a table.
    Other,
}

/// An attribute of a group, a dataset or a type.
#[derive(Debug)]
pub(super) struct AttributeFacts {
    /// Path of its owner.
    pub(super) path: String,
    pub(super) name: String,
    /// Slowest axis first; `None` for a null dataspace.
    pub(super) extents: Option<Vec<u64>>,
    /// Bytes in the file, without the text of strings.
    pub(super) bytes: u64,
}
