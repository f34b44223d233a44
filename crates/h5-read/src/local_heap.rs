//! Local heaps: names of links in groups of version 1. HDF5 File Format Specification 3.0, section
//! III.D.
//!
//! A header `HEAP` has the place and size of a segment, in which names end with NUL.

use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::file::File;
use crate::walk::Walk;

const STRUCTURE: &str = "local heap";

#[derive(Debug)]
pub(crate) struct LocalHeap {
    address: u64,
    segment: Vec<u8>,
    /// Bytes of names that may still be copied: names do not overlap.
    left: usize,
}

impl LocalHeap {
    pub(crate) fn read(file: &File, address: u64, walk: &mut Walk) -> Result<Self> {
        let sizes = file.sizes();
        let bytes = (8 + 2 * sizes.length + sizes.address) as u64;
        walk.enter(STRUCTURE, address, bytes)?;
        let header = file.read(STRUCTURE, address, bytes)?;
        let mut fields = file.bytes(STRUCTURE, address, &header);
        fields.signature(b"HEAP")?;
        fields.version(&[0])?;
        fields.skip(3)?;
        let size = fields.length()?;
        let _free = fields.length()?;
        let start = fields.defined_address("the names")?;
        walk.enter(STRUCTURE, start, size)?;
        let segment = file.read(STRUCTURE, start, size)?;
        Ok(LocalHeap { address: start, left: segment.len(), segment })
    }

    pub(crate) fn text(&self, file: &File, offset: u64) -> Result<&[u8]> {
        let at = usize::try_from(offset).ok().filter(|&at| at < self.segment.len());
        let at = at.ok_or_else(|| {
            let bytes = self.segment.len();
            let message = format!("a name begins at byte {offset} of the heap, which has {bytes} bytes");
            Error::damaged(message).within(format_args!("{STRUCTURE} at address {}", self.address))
        })?;
        let mut fields: Bytes<'_> = file.bytes(STRUCTURE, self.address, &self.segment);
        fields.skip(at)?;
        fields.text()
    }

    pub(crate) fn copy(&mut self, file: &File, offset: u64) -> Result<Vec<u8>> {
        let text = self.text(file, offset)?.to_vec();
        match self.left.checked_sub(text.len()) {
            Some(left) => self.left = left,
            None => {
                let message = "names overlap: together they are larger than the heap";
                return Err(Error::damaged(message).within(format_args!("{STRUCTURE} at address {}", self.address)));
            }
        }
        Ok(text)
    }
}
