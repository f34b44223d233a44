//! Restores original casacore files from a restorable native file.

use std::path::Path;

use bstr::ByteSlice;

use super::copies::Copies;
use super::rebuild::rebuild;
use super::recipe::{Archive, relative};
use crate::clone::{Reflink, Sharer};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::File;
use crate::io::{FileTarget, WriteAt};
use crate::output::{Output, directory_of};
use crate::pool::{Buffers, thread_pool};
use crate::progress::{Phase, Progress};
use crate::publishing::Publishing;
use crate::sha::Sha256;
use crate::source::Source;
use crate::source::stored_digests::changed_columns;

/// Summary of [`ToOriginal::write`](super::super::ToOriginal::write), which restores the original casacore files of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToOriginalSummary {
    /// Number of original casacore files that were restored.
    pub files: u64,
    /// Length of all restored files in bytes.
    pub bytes: u64,
    /// Number of restored bytes that are shared (reflink) with the native file and so take no space of their own.
    pub shared_bytes: u64,
}

/// Restores the original directory from the native file at `path` to `target`, where it appears when it is complete and the
/// SHA-256 of every file has been checked.
///
/// # Errors
/// `Usage` if the file is not restorable. `Format` if a file would not be what it was: because columns have changed since
/// the conversion, which are named, or because of damage. `Exists` if there is something at `target` that is not to be
/// replaced,
/// `NoSpace`, `Interrupted` if `progress` says so. Nothing is left at `target` then.
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
    // what files do not show
    let whole = |dataset: &str| recipe.whole.iter().any(|known| known == dataset);
    let (pool, buffers) = (thread_pool(threads)?, Buffers::default());
    let changed = pool.install(|| changed_columns(&source, &whole, progress))?;
    if !changed.is_empty() {
        return Err(Error::format(format!("changed since the conversion: {}", changed.join(", "))).context(place));
    }
    for directory in &recipe.directories {
        std::fs::create_dir(output.partial().join(inside(directory)?)).with_context(|| directory.to_string())?;
    }
    let syncing = output.sync_behind();
    let root = output.partial();
    let restorer =
        Restorer { source: &source, archive: &archive, root, pool: &pool, buffers: &buffers, sharer: &sharer };
    pool.install(|| (0..recipe.files.len()).try_for_each(|number| restorer.restore(number, progress).context(&place)))?;
    syncing.finish()?;
    progress.phase(Phase::Flushing);
    output.commit()?;
    Ok(ToOriginalSummary { files: recipe.files.len() as u64, bytes, shared_bytes: sharer.shared() })
}

/// Restores the original casacore files of a native file into a directory.
struct Restorer<'a> {
    source: &'a Source,
    archive: &'a Archive,
    root: &'a Path,
    pool: &'a rayon::ThreadPool,
    buffers: &'a Buffers,
    sharer: &'a Sharer<'a>,
}

impl Restorer<'_> {
    fn restore(&self, number: usize, progress: &dyn Progress) -> Result<()> {
        let file = &self.archive.recipe.files[number];
        let name = file.path.to_str_lossy();
        let advance = |bytes| {
            progress.advance(bytes, &name, "");
            progress.go_on()
        };
        let found = self.write(number, advance).with_context(|| name.to_string())?;
        if found == file.sha256 {
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

    /// Writes original casacore file `number` (its index in the recipe) below the target directory and returns its SHA-256.
    fn write(&self, number: usize, advance: impl Fn(u64) -> Result<()> + Sync) -> Result<Sha256> {
        let file = &self.archive.recipe.files[number];
        let path = if file.path.is_empty() { self.root.to_owned() } else { self.root.join(inside(&file.path)?) };
        let (segments, sources) = self.archive.file(number)?;
        let target = FileTarget::create(&path)?;
        // a file that grows with every write has its length written each time too
        target.set_len(file.len)?;
        let copies = Copies::of_file(&segments, &sources)?;
        rebuild(file.len, segments, &sources, (self.pool, self.buffers), |offset, bytes| {
            advance(bytes.len() as u64)?;
            if copies.share(offset, bytes, &target, self.sharer)? { Ok(()) } else { target.write_at(offset, bytes) }
        })
    }
}

/// Converts the path of an original file or directory, as the native file stores it, to one relative to the target
/// directory; fails if it would lead out of that directory.
fn inside(path: &[u8]) -> Result<std::path::PathBuf> {
    relative(path).ok_or_else(|| {
        Error::format(format!(
            "the path {:?} leaves the directory of the table, expected one inside it",
            path.as_bstr()
        ))
    })
}

/// Opens the recipes (rules by which original casacore files are rebuilt) of the native file at `path`; `None` if it has none.
fn open(path: &Path) -> Result<Option<Archive>> {
    let open = || -> Result<_> {
        let (file, source) = File::open_with_source(path)?;
        Archive::open(&file.root()?, source)
    };
    open().with_context(|| Context::path(path))
}

/// An original casacore file that would not be restored correctly from a native file: the SHA-256 stored there, and
/// that of the bytes to which the file would be rebuilt, or the error of rebuilding it.
pub(crate) struct ChangedFile {
    pub(crate) name: String,
    pub(crate) stored: Sha256,
    pub(crate) found: Result<Sha256>,
}

/// Rebuilds all original casacore files of the restorable file at `path` without writing them; returns their number, and the
/// files whose SHA-256 differs from the stored one. If the file is not restorable: 0 and an empty list.
pub(crate) fn changed_files(path: &Path, progress: &dyn Progress) -> Result<(u64, Vec<ChangedFile>)> {
    let Some(archive) = open(path)? else { return Ok((0, Vec::new())) };
    let (pool, buffers) = (thread_pool(0)?, Buffers::default());
    let mut changed = Vec::new();
    for (number, file) in archive.recipe.files.iter().enumerate() {
        let found = archive.file(number).and_then(|(segments, sources)| {
            rebuild(file.len, segments, &sources, (&pool, &buffers), |_, _| progress.go_on())
        });
        match found {
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Interrupted) || error.leads_elsewhere() => {
                return Err(error);
            }
            Ok(sha) if sha == file.sha256 => {}
            found => changed.push(ChangedFile { name: file.path.to_string(), stored: file.sha256, found }),
        }
    }
    Ok((archive.recipe.files.len() as u64, changed))
}
