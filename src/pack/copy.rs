//! Copies virtual files.

use super::plain::{Folder, PlainFile};
use crate::container::ContainerMut;
use crate::convert::Progress;
use crate::error::{Place, Result};

/// Bytes that are copied at a time; a multiple of the block sizes that containers usually have.
pub(super) const PIECE_BYTES: usize = 1 << 18;

/// Copies files one after the other.
pub(super) struct Copier<'a> {
    progress: &'a dyn Progress,
    buffer: Vec<u8>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Copier { progress, buffer: vec![0; PIECE_BYTES] }
    }

    /// Copies a file to one of the same name.
    pub(super) fn copy(&mut self, folder: &Folder, file: &PlainFile, target: &dyn ContainerMut) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut copy = || -> Result<()> {
            let (from, to) = (file.open()?, target.create(&file.name)?);
            let mut at = 0;
            while at < file.len {
                let piece = &mut buffer[..(file.len - at).min(PIECE_BYTES as u64) as usize];
                from.read_at(at, piece)?;
                to.write_at(at, piece)?;
                at += piece.len() as u64;
                self.advance(piece.len() as u64, folder, file);
            }
            Ok(())
        };
        let copied = copy().at(&file.name);
        self.buffer = buffer;
        copied
    }

    /// Another way was found to write `bytes` of a file.
    pub(super) fn advance(&self, bytes: u64, folder: &Folder, file: &PlainFile) {
        self.progress.advance(bytes, folder.name(), &file.name);
    }
}
