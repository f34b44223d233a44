//! Facts about the objects of a native file (HDF5 in the layout of docs/layout.md), which `h5bridge lint` collects
//! first and then tests against its rules.

use crate::h5::{AnyType, IndexKind, Plugin};

/// Everything that the rules of `lint` examine in a file: its objects, links and attributes.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) file: FileFacts,
    pub(super) links: Vec<LinkFacts>,
    pub(super) datasets: Vec<DatasetFacts>,
    pub(super) attributes: Vec<AttributeFacts>,
    /// Tables and columns that cannot be read: for each the path of its group or dataset, and the reason.
    pub(super) unreadable: Vec<(String, String)>,
    /// Paths of the committed (named) types in the file.
    pub(super) types: Vec<String>,
    /// Number of groups in the file.
    pub(super) groups: u64,
    pub(super) group_paths: Vec<String>,
}

/// What the rules of `h5bridge lint` examine of the HDF5 file as a whole: the version of its superblock, and whether it
/// is marked as being written.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    /// Version of the file's superblock.
    pub(super) superblock: u8,
    /// Whether the file is marked as open for SWMR writing: a writer has it open, or exited without closing it.
    pub(super) is_live: bool,
}

/// What the rules of `h5bridge lint` examine of a soft, external or user-defined link in the HDF5 file: where it is and
/// whether it leads out of the file. Hard links are not recorded.
#[derive(Debug)]
pub(super) struct LinkFacts {
    pub(super) path: String,
    /// Kind and target in words of a link that leads out of the file; `None` for soft links, which do not.
    pub(super) elsewhere: Option<String>,
}

/// What the rules of `h5bridge lint` examine of a dataset in the HDF5 file: where it is, its element type and extents,
/// how its elements are stored and filtered, and its dimension scales.
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
    /// Where the elements of the dataset are, in words, if not in the dataset itself (external storage, virtual dataset); else
    /// `None`.
    pub(super) elsewhere: Option<String>,
    /// Number of dimension scales attached to each axis of the dataset, slowest axis first; empty if the dataset has no scales.
    pub(super) scales: Vec<usize>,
    /// Number of references to dimension scales that lead to none.
    pub(super) lost_scales: usize,
}

/// Kind of group that a dataset is in: that of a table or of a column (docs/layout.md), or another group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The dataset is a member of a table's group.
    Table,
    /// The dataset is a member of the group of a column.
    Column,
    /// The dataset is under `_ctds`, or in a group that is neither a table nor a column.
    Other,
}

/// What the rules of `h5bridge lint` examine of an attribute of a group, a dataset or a committed (named) type: its
/// extents and size.
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
