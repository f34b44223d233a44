//! Names of groups, datasets and attributes in a MultiHDF5 file. formats/table.md 6.1, docs/containers.md.

/// Name of the group that marks an HDF5 file, or a group in it, as a MultiHDF5 container.
pub(super) const HEADER: &str = "__MultiHDF5_Header__";
/// Name of the dataset with the bytes of a virtual file, in the file's group.
pub(super) const DATA: &str = "FileData";
/// Name of the dataset to which the bytes of a virtual file are copied before it replaces the file's dataset
/// `FileData`.
pub(super) const NEXT_DATA: &str = "FileData.next";
/// Name of the dataset with a row of file sizes for each commit of a container that other processes read while it grows.
pub(super) const COMMITS: &str = "__MultiHDF5_Commits__";
