//! Events and amounts that the caller of a followed table's files is told.

/// Event that [`FollowFiles::run`](super::FollowFiles::run) reports while it keeps a MultiHDF5
/// container in step with the files of a table which another program is writing.
#[derive(Debug)]
#[non_exhaustive]
pub enum FilesEvent<'a> {
    /// The table could be opened; its files are copied from now on.
    Started {
        /// Whether a container of the same table exists; it stays as it is until the first commit,
        /// which takes its place.
        replaces: bool,
    },
    /// Changes of the table's files were committed: readers of the container see them.
    Committed(FilesCommit),
    /// A sentence for the user about the table or the container. Each is reported once.
    Note(&'a str),
}

/// Amounts that one commit has brought to a MultiHDF5 container, from [`FilesEvent::Committed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesCommit {
    /// Bytes by which files of the container have grown, in whole blocks.
    pub appended: u64,
    /// Bytes of blocks whose content had changed and that were stored again.
    pub replaced: u64,
    /// Whether a new HDF5 file has taken the place of the container: the first one, or because
    /// files were added, or because most blocks of the old one had been replaced.
    pub new_file: bool,
}

/// Summary of keeping a MultiHDF5 container in step with the files of a table, from
/// [`FollowFiles::run`](super::FollowFiles::run).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesFollowed {
    /// Number of files in the container, those of subtables included.
    pub files: usize,
    /// Sum of the lengths of these files in bytes.
    pub bytes: u64,
    /// Size of the container in bytes.
    pub stored_bytes: u64,
    /// Number of commits, each of which made changes of the table visible to readers.
    pub commits: u64,
    /// Bytes by which files have grown, in whole blocks, over all commits.
    pub appended: u64,
    /// Bytes of blocks whose content had changed and that were stored again, over all commits.
    pub replaced: u64,
    /// Number of HDF5 files that were written, of which each took the place of the one before; at
    /// least 1.
    pub generations: u64,
    /// Sentences for the user about the table or the container.
    pub notes: Vec<String>,
}
