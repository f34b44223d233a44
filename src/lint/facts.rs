//! Facts about the objects of a native file (HDF5 in the layout of docs/reference/layout.md), which
//! `h5bridge lint` collects first and then tests against its rules.

use crate::h5::{IndexKind, Plugin};

/// Everything that rules examine in a file.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) file: FileFacts,
    pub(super) links: Vec<LinkFacts>,
    pub(super) datasets: Vec<DatasetFacts>,
    pub(super) attributes: Vec<AttributeFacts>,
    /// Path of the group or dataset, and the reason.
    pub(super) unreadable: Vec<(String, String)>,
    /// Paths of committed (named) types.
    pub(super) types: Vec<String>,
    pub(super) groups: u64,
    pub(super) group_paths: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct FileFacts {
    pub(super) superblock: u8,
    /// Marked as open for SWMR writing: a writer has it open, or exited without closing it.
    pub(super) is_live: bool,
}

/// A soft, external or user-defined link.
#[derive(Debug)]
pub(super) struct LinkFacts {
    pub(super) path: String,
    /// Kind and target in words of a link that leads out of the file.
    pub(super) elsewhere: Option<String>,
}

#[derive(Debug)]
pub(super) struct DatasetFacts {
    pub(super) path: String,
    pub(super) place: Place,
    pub(super) is_scale: bool,
    pub(super) element: h5_read::Datatype,
    pub(super) is_committed: bool,
    /// Slowest axis first; `None` for a null dataspace.
    pub(super) extents: Option<Vec<u64>>,
    pub(super) index: IndexKind,
    pub(super) plugins: Vec<Plugin>,
    /// Where the elements are, in words, if not in the dataset itself (external storage, virtual
    /// dataset).
    pub(super) elsewhere: Option<String>,
    /// Dimension scales attached to each axis, slowest first; empty without any.
    pub(super) scales: Vec<usize>,
    /// References to dimension scales that lead to none.
    pub(super) lost_scales: usize,
}

/// Kind of group that a dataset is in, docs/reference/layout.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Table,
    Column,
    /// Under `_ctds`, or in a group that is neither a table nor a column.
    Other,
}

#[derive(Debug)]
pub(super) struct AttributeFacts {
    pub(super) path: String,
    pub(super) name: String,
    /// Slowest axis first; `None` for a null dataspace.
    pub(super) extents: Option<Vec<u64>>,
    /// Without the text of strings of variable length.
    pub(super) bytes: u64,
}
