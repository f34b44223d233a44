//! Names of groups, datasets and attributes in a MultiHDF5 file. formats/table.md 6.1,
//! docs/reference/containers.md.

/// The group that marks an HDF5 file, or a group in it, as a container.
pub(in crate::container) const HEADER: &str = "__MultiHDF5_Header__";
/// The dataset with the bytes of a virtual file, in the file's group.
pub(super) const DATA: &str = "FileData";
/// The dataset to which the bytes of a virtual file are copied before it replaces [`DATA`].
pub(super) const NEXT_DATA: &str = "FileData.next";
/// The dataset with a row of file sizes for each commit of a live container.
pub(super) const COMMITS: &str = "__MultiHDF5_Commits__";
/// The dataset with the versions of blocks in a live container whose files are also changed.
pub(super) const BLOCKS: &str = "__MultiHDF5_Blocks__";
