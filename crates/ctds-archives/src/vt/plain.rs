//! Reads blocks of Platonic stores of vt: these have no copies of blocks, which are byte ranges of
//! ordinary files.
//!
//! The original finds them through an LMDB index. Here a block is looked for where the reference to
//! it says that it is: at its position in the archived file, first in the files of the store that
//! have the length of that file, then in the others, which may have grown. The hash decides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ctds::container::Container;
use ctds::error::{Context, Error, Result, ResultExt};
use ctds::limits;

use super::hash::BlockHash;
use super::records::LARGEST_BLOCK;

const INDEX: &str = "index-";

/// Maximum number of files that are listed in the stores; more are an error.
const MAX_FILES: usize = 1 << 24;

/// Whether a directory without `.vtd` data files is a Platonic store.
pub(super) fn is_platonic(directory: &dyn Container) -> Result<bool> {
    let is_index = |name: &String| name.starts_with(INDEX);
    Ok(directory.nested()?.iter().any(is_index) || directory.names()?.iter().any(is_index))
}

/// Byte range of a block in an archived file.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFile {
    pub(super) start: u64,
    pub(super) span: u64,
    /// Length in bytes of the archived file.
    pub(super) total: u64,
}

#[derive(Debug, Default)]
pub(super) struct PlainFiles {
    /// Data directories of the stores, and their paths relative to the directory of the archive.
    directories: Vec<(String, Arc<dyn Container>)>,
    /// Listed on the first search for a block.
    files: OnceLock<Result<Vec<PlainFile>>>,
    /// Index in `files` of the file that had the last block, and often has the next one.
    last: AtomicUsize,
}

#[derive(Debug)]
struct PlainFile {
    path: String,
    directory: Arc<dyn Container>,
    name: String,
    len: u64,
}

impl PlainFiles {
    pub(super) fn new(directories: Vec<(String, Arc<dyn Container>)>) -> Self {
        PlainFiles { directories, ..PlainFiles::default() }
    }

    /// Tries files with the length in `place` first; `None` if no file has the block, `Limit` if
    /// too many files.
    pub(super) fn find(&self, hash: &BlockHash, place: InFile) -> Result<Option<Vec<u8>>> {
        let InFile { start, span, total } = place;
        let is_inside = start.checked_add(span).is_some_and(|end| end <= total);
        if self.directories.is_empty() || !is_inside || span > LARGEST_BLOCK as u64 {
            return Ok(None);
        }
        let files = self.files.get_or_init(|| self.list()).as_ref().map_err(Error::clone)?;
        let last = self.last.load(Ordering::Relaxed);
        let others = |same: bool| (0..files.len()).filter(move |&number| (files[number].len == total) == same);
        let numbers = [last].into_iter().chain(others(true)).chain(others(false));
        let mut block = vec![0; span as usize];
        for number in numbers {
            let Some(file) = files.get(number).filter(|file| file.len >= start + span) else { continue };
            let opened = file.directory.open(&file.name).context(Context::member(&file.path))?;
            opened.read_at(start, &mut block).context(Context::member(&file.path))?;
            if hash.kind().hash(&block) == *hash {
                self.last.store(number, Ordering::Relaxed);
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    fn list(&self) -> Result<Vec<PlainFile>> {
        let mut found = Vec::new();
        let mut pending: Vec<(String, Arc<dyn Container>, usize)> =
            self.directories.iter().map(|(path, directory)| (path.clone(), directory.clone(), 0)).collect();
        while let Some((path, directory, depth)) = pending.pop() {
            limits::depth(depth, "directories")?;
            for name in directory.names()? {
                let file = format!("{path}/{name}");
                let len = directory.open(&name)?.len().with_context(|| Context::member(&file))?;
                if found.len() == MAX_FILES {
                    return Err(Error::limit(format!("more than {MAX_FILES} files in the stores of an archive")));
                }
                found.push(PlainFile { path: file, directory: directory.clone(), name, len });
            }
            for name in directory.nested()? {
                pending.push((format!("{path}/{name}"), directory.enter(&name)?, depth + 1));
            }
        }
        Ok(found)
    }
}
