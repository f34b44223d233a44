//! Copies the files of a table into a container.

use std::path::Path;

use super::file_set::{FileSet, Folder, SetFile};
use crate::container::ContainerMut;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{Raw, RawCopy, ReadAt, WriteAt};
use crate::output::clone::{Reflink, Sharer};
use crate::progress::Progress;

/// Bytes, rounded up to whole blocks of the container; few enough for the processor's cache.
pub(super) const PIECE_BYTES: usize = 1 << 18;

/// Length from which disk space is reserved first, unless the copy can share blocks.
const LARGE_BYTES: u64 = 1 << 20;

/// Larger blocks are copied in parts.
const MAX_BLOCK_BYTES: u64 = 4 << 20;

pub(super) struct Copier<'a> {
    progress: &'a dyn Progress,
    sharer: Sharer<'a>,
    directory: &'a Path,
    /// Path of the complete output.
    target: &'a Path,
    /// While the piece in one is written, the next one is read into the other.
    buffers: [Vec<u8>; 2],
}

impl<'a> Copier<'a> {
    pub(super) fn new(directory: &'a Path, target: &'a Path, progress: &'a dyn Progress) -> Self {
        let sharer = Sharer::new(Reflink::Auto, progress);
        Copier { progress, sharer, directory, target, buffers: Default::default() }
    }

    /// Fails with errors of the container that name the target, unless they name a file already.
    pub(super) fn commit(&self, container: &dyn ContainerMut) -> Result<()> {
        container.commit().map_err(|error| self.of_target(error))
    }

    fn of_target(&self, error: Error) -> Error {
        error.of_file(&Context::path(self.target))
    }

    /// Bytes shared so far by reflink (common blocks of the file system).
    pub(super) fn shared(&self) -> u64 {
        self.sharer.shared()
    }

    pub(super) fn copy(&mut self, folder: &Folder, file: &SetFile, target: &dyn ContainerMut) -> Result<()> {
        self.progress.go_on()?;
        if target.is_complete(&file.name)? {
            return self.advance(file.len, folder, file);
        }
        let (from, to) = (file.open()?, target.create(&file.name)?);
        // shared bytes need no space
        if file.len >= LARGE_BYTES && !self.sharer.can_share(&*from, self.directory) {
            to.reserve(file.len).context(Context::member(&file.name)).map_err(|error| self.of_target(error))?;
        }
        let mut at = 0;
        while at < file.len {
            let copied = copy_raw(&*from, &*to, at, file.len - at, &self.sharer);
            if copied == 0 {
                return self.copy_rest(folder, file, &*from, &*to, at, piece_bytes(target));
            }
            at += copied;
            self.advance(copied, folder, file)?;
        }
        Ok(())
    }

    /// Copies from offset `at` on; while one piece is written, the next one is read.
    fn copy_rest(
        &mut self,
        folder: &Folder,
        file: &SetFile,
        from: &dyn ReadAt,
        to: &dyn WriteAt,
        mut at: u64,
        piece_bytes: u64,
    ) -> Result<()> {
        let read = |start: u64, piece: &mut Vec<u8>| {
            piece.resize((file.len - start.min(file.len)).min(piece_bytes) as usize, 0);
            from.read_at(start, piece)
        };
        let member = || Context::member(&file.name);
        let [mut now, mut next] = std::mem::take(&mut self.buffers);
        read(at, &mut now).with_context(member)?;
        while !now.is_empty() {
            let end = at + now.len() as u64;
            let (written, read) = rayon::join(|| to.write_at(at, &now), || read(end, &mut next));
            written.with_context(member).map_err(|error| self.of_target(error))?;
            read.with_context(member)?;
            self.advance(now.len() as u64, folder, file)?;
            std::mem::swap(&mut now, &mut next);
            at = end;
        }
        self.buffers = [now, next];
        Ok(())
    }

    /// `Interrupted` if no more bytes are to be written.
    pub(super) fn advance(&self, bytes: u64, folder: &Folder, file: &SetFile) -> Result<()> {
        self.progress.advance(bytes, folder.name(), &file.name);
        self.progress.go_on()
    }
}

/// The operating system may share blocks; 0 if it cannot copy.
fn copy_raw(from: &dyn ReadAt, to: &dyn WriteAt, at: u64, count: u64, by: &dyn RawCopy) -> u64 {
    from.raw(at).map_or(0, |raw| to.copy_raw(at, Raw { len: raw.len.min(count).min(by.most_bytes()), ..raw }, by))
}

/// Bytes that a container in `directory` can share with the source.
pub(super) fn shareable(source: &FileSet, directory: &Path) -> u64 {
    let sharer = Sharer::new(Reflink::Auto, &());
    let is_shared =
        |file: &&SetFile| file.len >= LARGE_BYTES && file.open().is_ok_and(|from| sharer.can_share(&*from, directory));
    source.root.all().into_iter().flat_map(|folder| &folder.files).filter(is_shared).map(|file| file.len).sum()
}

/// Whole blocks of the container, so that no block is written in two parts.
fn piece_bytes(target: &dyn ContainerMut) -> u64 {
    let block = target.describe().block_bytes.filter(|&bytes| bytes <= MAX_BLOCK_BYTES);
    (PIECE_BYTES as u64).next_multiple_of(block.unwrap_or(1))
}
