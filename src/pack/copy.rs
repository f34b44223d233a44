//! Copies virtual files.

use super::plain::{Folder, PlainFile};
use crate::container::ContainerMut;
use crate::convert::Progress;
use crate::error::{Place, Result};
use crate::io::{Raw, ReadAt, WriteAt};

/// Bytes that are read and written at a time; few enough to stay in the processor's cache.
pub(super) const PIECE_BYTES: usize = 1 << 18;

/// Bytes that the system copies at a time.
const RAW_BYTES: u64 = 4 << 20;

/// Most bytes of a block that is copied as a whole.
const MOST_BLOCK_BYTES: u64 = 4 << 20;

/// Copies files one after the other.
pub(super) struct Copier<'a> {
    progress: &'a dyn Progress,
    /// For a piece.
    buffer: Vec<u8>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Copier { progress, buffer: Vec::new() }
    }

    /// Copies a file to one of the same name.
    pub(super) fn copy(&mut self, folder: &Folder, file: &PlainFile, target: &dyn ContainerMut) -> Result<()> {
        let (from, to) = (file.open()?, target.create(&file.name)?);
        to.reserve(file.len).at(&file.name)?;
        self.buffer.resize(piece_bytes(target).min(file.len) as usize, 0);
        let mut at = 0;
        while at < file.len {
            let copied = self.copy_piece(&*from, &*to, at, file.len - at).at(&file.name)?;
            at += copied;
            self.advance(copied, folder, file);
        }
        Ok(())
    }

    /// How many of `count` bytes were copied.
    fn copy_piece(&mut self, from: &dyn ReadAt, to: &dyn WriteAt, at: u64, count: u64) -> Result<u64> {
        if let Some(raw) = from.raw(at) {
            let copied = to.copy_raw(at, Raw { len: raw.len.min(count).min(RAW_BYTES), ..raw });
            if copied > 0 {
                return Ok(copied);
            }
        }
        let count = count.min(self.buffer.len() as u64) as usize;
        let piece = &mut self.buffer[..count];
        from.read_at(at, piece)?;
        to.write_at(at, piece)?;
        Ok(piece.len() as u64)
    }

    /// Says that `bytes` of a file were written.
    pub(super) fn advance(&self, bytes: u64, folder: &Folder, file: &PlainFile) {
        self.progress.advance(bytes, folder.name(), &file.name);
    }
}

/// Bytes that are read and written at a time: whole blocks, so that none has to be put together.
fn piece_bytes(target: &dyn ContainerMut) -> u64 {
    let block = target.describe().block_bytes.filter(|&bytes| bytes <= MOST_BLOCK_BYTES);
    (PIECE_BYTES as u64).next_multiple_of(block.unwrap_or(1))
}
