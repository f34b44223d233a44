//! Restores the original casacore files of a table from a restorable file: a native HDF5 file, to
//! which the table was converted, with all that is needed to rebuild these files byte for byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use bstr::ByteSlice;

use super::copies::Copies;
use super::rebuild::{GoOn, for_files, rebuild};
use super::recipe::{Archive, relative};
use crate::call::pool::{Buffers, thread_pool};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::File;
use crate::hash::Hash;
use crate::io::{FileTarget, WriteAt};
use crate::output::Publishing;
use crate::output::clone::{Reflink, Sharer};
use crate::output::{Output, directory_of};
use crate::progress::{Phase, Progress};
use crate::source::Source;
use crate::source::stored_digests::changed_columns;
use crate::sync::LockUnpoisoned;

/// Summary of [`ToOriginal::write`](super::super::ToOriginal::write): the original casacore files
/// of a table that were restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToOriginalSummary {
    /// Number of original casacore files that were restored.
    pub files: u64,
    /// Length of all restored files in bytes.
    pub bytes: u64,
    /// Number of restored bytes that are shared (reflink) with the native HDF5 file and so take no
    /// space of their own.
    pub shared_bytes: u64,
}

/// Publishes when the hash of every file has been checked; after an error `target` is as before.
/// `Usage` if the HDF5 file lacks what is needed; `Format` if a file would differ from the
/// original: because of damage, or because of columns or tables, which are named, that have changed
/// since.
pub(crate) fn restore(
    path: &Path,
    target: &Path,
    publishing: Publishing,
    threads: usize,
    progress: &dyn Progress,
) -> Result<ToOriginalSummary> {
    let source = Source::open(path)?;
    let place = Context::path(path);
    let Some(archive) = open(path)? else {
        return Err(Error::usage("not restorable: it was made without --restorable").context(place));
    };
    let recipe = &archive.recipe;
    let bytes = recipe.files.iter().fold(0u64, |sum, file| sum.saturating_add(file.len));
    progress.expect(bytes);
    progress.phase(Phase::Writing);
    let create = if recipe.is_file() { Output::create } else { Output::create_directory };
    let sharer = Sharer::new(Reflink::Auto, progress);
    let needed = bytes.saturating_sub(archive.shareable(&sharer, directory_of(target))?);
    let output = create(target, publishing, needed)?;
    // columns that were edited in HDF5
    let whole = |dataset: &str| recipe.whole.iter().any(|known| known == dataset);
    let (pool, buffers) = (thread_pool(threads)?, Buffers::default());
    let changed = pool.install(|| changed_columns(&source, &whole, progress))?;
    if !changed.is_empty() {
        return Err(Error::format(format!("changed since the conversion: {}", changed.join(", "))).context(place));
    }
    for directory in &recipe.directories {
        std::fs::create_dir(output.partial().join(inside(directory)?)).with_context(|| directory.to_string())?;
    }
    let (root, write_behind) = (output.partial(), publishing.sync.is_behind());
    let restorer = Restorer {
        source: &source,
        archive: &archive,
        root,
        write_behind,
        pool: &pool,
        buffers: &buffers,
        sharer: &sharer,
    };
    for_files(&recipe.files, &pool, progress, |number, go_on| {
        restorer.restore(number, progress, go_on).context(&place)
    })?;
    progress.phase(Phase::Flushing);
    output.commit()?;
    Ok(ToOriginalSummary { files: recipe.files.len() as u64, bytes, shared_bytes: sharer.shared() })
}

/// Rebuilds files below `root`, or `root` itself if the table was a single file.
struct Restorer<'a> {
    source: &'a Source,
    archive: &'a Archive,
    root: &'a Path,
    /// Whether the system is asked early to write the files to the disk.
    write_behind: bool,
    pool: &'a rayon::ThreadPool,
    buffers: &'a Buffers,
    sharer: &'a Sharer<'a>,
}

impl Restorer<'_> {
    fn restore(&self, number: usize, progress: &dyn Progress, go_on: &GoOn<'_>) -> Result<()> {
        let file = &self.archive.recipe.files[number];
        let name = file.path.to_str_lossy();
        let advance = |bytes| {
            progress.advance(bytes, &name, "");
            go_on()
        };
        let found = self.write(number, advance).with_context(|| name.to_string())?;
        if found == file.hash {
            return Ok(());
        }
        let changed = changed_columns(self.source, &|_| false, progress)?;
        let why = if changed.is_empty() {
            "and no column has changed: the recipe is damaged".to_owned()
        } else {
            format!("changed since the conversion: {}", changed.join(", "))
        };
        Err(Error::format(format!("it would not be what it was, {why}")).context(name))
    }

    /// Returns the hash of the written file.
    fn write(&self, number: usize, advance: impl Fn(u64) -> Result<()> + Sync) -> Result<Hash> {
        let file = &self.archive.recipe.files[number];
        let path = if file.path.is_empty() { self.root.to_owned() } else { self.root.join(inside(&file.path)?) };
        let (segments, sources) = self.archive.file(number)?;
        let target = FileTarget::create(&path)?.write_behind(self.write_behind);
        // a file that grows with every write has its length written each time too
        target.set_len(file.len)?;
        let copies = Copies::of_file(&segments, &sources)?;
        rebuild(file.len, file.hash.kind(), segments, &sources, (self.pool, self.buffers), |offset, bytes| {
            advance(bytes.len() as u64)?;
            if copies.share(offset, bytes, &target, self.sharer)? { Ok(()) } else { target.write_at(offset, bytes) }
        })
    }
}

/// Fails if the path would lead out of the restored directory.
fn inside(path: &[u8]) -> Result<std::path::PathBuf> {
    relative(path).ok_or_else(|| {
        Error::format(format!(
            "the path {:?} leaves the directory of the table, expected one inside it",
            path.as_bstr()
        ))
    })
}

/// `None` if the HDF5 file has no recipes.
fn open(path: &Path) -> Result<Option<Archive>> {
    let open = || -> Result<_> {
        let (file, source) = File::open_with_source(path)?;
        Archive::open(&file.root()?, source)
    };
    open().with_context(|| Context::path(path))
}

/// A stored hash, and that of the rebuilt bytes or the error.
pub(crate) struct ChangedFile {
    pub(crate) name: String,
    pub(crate) stored: Hash,
    pub(crate) found: Result<Hash>,
}

/// Number of rebuilt files, 0 without recipes, and those with damage or another hash.
pub(crate) fn changed_files(path: &Path, progress: &dyn Progress) -> Result<(u64, Vec<ChangedFile>)> {
    let Some(archive) = open(path)? else { return Ok((0, Vec::new())) };
    let (pool, buffers) = (thread_pool(0)?, Buffers::default());
    let files = &archive.recipe.files;
    let changed = Mutex::new(BTreeMap::new());
    for_files(files, &pool, progress, |number, go_on| {
        let file = &files[number];
        let found = archive.file(number).and_then(|(segments, sources)| {
            rebuild(file.len, file.hash.kind(), segments, &sources, (&pool, &buffers), |_, _| go_on())
        });
        match found {
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Interrupted) || error.leads_elsewhere() => {
                return Err(error);
            }
            Ok(hash) if hash == file.hash => {}
            found => {
                let file = ChangedFile { name: file.path.to_string(), stored: file.hash, found };
                changed.lock_unpoisoned().insert(number, file);
            }
        }
        Ok(())
    })?;
    let changed = std::mem::take(&mut *changed.lock_unpoisoned());
    Ok((files.len() as u64, changed.into_values().collect()))
}
