//! Declares the tables of a live file (HDF5 that is read while it is written), and creates it.

use std::path::Path;

use super::commit_policy::CommitPolicy;
use super::create;
use super::declare::TableSpec;
use super::layout;
use super::not_followed::NotFollowed;
use super::writer::Writer;
use crate::error::{Context, Result, ResultExt};
use crate::output::{IfExists, Output, WriterLock};

/// Declarations of the tables of a live file that is to be created.
///
/// [`create`](Self::create) makes a [`Writer`] of it, which appends rows but never creates,
/// attaches or deletes a dataset: HDF5 readers that have the file open do not support that, and
/// libhdf5 does not refuse it.
#[derive(Debug, Default)]
pub struct Schema {
    tables: Vec<TableSpec>,
    if_exists: IfExists,
    policy: CommitPolicy,
    not_followed: NotFollowed,
}

impl Schema {
    /// Makes a schema without tables, for a live file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the declaration of a table; parents come before their subtables.
    #[must_use]
    pub fn table(mut self, table: TableSpec) -> Self {
        self.tables.push(table);
        self
    }

    /// Sets what happens if the file exists already; without it, [`create`](Self::create) fails.
    #[must_use]
    pub fn if_exists(mut self, if_exists: IfExists) -> Self {
        self.if_exists = if_exists;
        self
    }

    /// Sets when rows appended to the live file are committed, so that readers see them; by
    /// default, about once a second.
    #[must_use]
    pub fn commit(mut self, policy: CommitPolicy) -> Self {
        self.policy = policy;
        self
    }

    pub(super) fn not_followed(mut self, parts: NotFollowed) -> Self {
        self.not_followed = parts;
        self
    }

    /// Creates the live file at `path`, with all declared tables but without rows, and opens it for
    /// appending. The file gets its name only when it is complete.
    ///
    /// # Errors
    /// `Exists` if there is a file, unless [`if_exists`](Self::if_exists) says otherwise; `Locked`
    /// if another writer has the file; `Usage` if the tables cannot be as declared.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let lock = WriterLock::take(path)?;
        let output = Output::create(path, self.if_exists.into(), 0)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (layout, file) = create::create(output.partial(), &name, &self.tables)
            .and_then(|file| self.not_followed.write(&file.root()?).map(|()| file))
            .and_then(|file| Ok((layout::read(&file.root()?)?, file)))
            .with_context(|| Context::path(path))?;
        let mut writer = Writer::new(file.go_live()?, output.partial(), &layout, self.policy, lock)?;
        writer.begin()?;
        output.commit()?;
        writer.renamed(path);
        Ok(writer)
    }
}
