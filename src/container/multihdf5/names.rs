//! Names of groups, datasets and attributes in a MultiHDF5 file. formats/table.md 6.1, docs/containers.md.

/// The group that makes an HDF5 file, or a group in it, a container.
pub(super) const HEADER: &str = "__MultiHDF5_Header__";
/// The dataset with the bytes of a file, in the file's group.
pub(super) const DATA: &str = "FileData";
/// Holds the bytes of a file while they move to a dataset of another form.
pub(super) const NEXT_DATA: &str = "FileData.next";
/// Attribute of a file's group: the SHA-256 of the file's bytes in 64 hexadecimal digits. Only archives have it: casacore
/// would not keep it up to date.
pub(super) const SHA256: &str = "sha256";
/// The dataset with a row for each commit of a container that is appended to live.
pub(super) const COMMITS: &str = "__MultiHDF5_Commits__";
