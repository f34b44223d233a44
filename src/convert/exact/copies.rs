//! Finds parts of original casacore files that the native HDF5 file (the converted table) contains
//! as the same bytes, so that a restored file can share them (reflink) and needs no disk space for
//! them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::recipe::{Encoding, Segment, Sources};
use crate::error::Result;
use crate::grid::ChunkStorage;
use crate::io::{ByteOrder, FileTarget, Raw, ReadAt};
use crate::output::clone::Sharer;

/// Parts that the HDF5 file may have as contiguous bytes; only equal bytes are shared.
pub(super) struct Copies<'a> {
    parts: Vec<Copy<'a>>,
    /// True until sharing fails once.
    can_share: AtomicBool,
}

struct Copy<'a> {
    /// Half-open range of the original file.
    bytes: Range<u64>,
    /// The native HDF5 file.
    file: &'a dyn ReadAt,
    /// Where in `file` the bytes may be.
    offset: u64,
}

impl<'a> Copies<'a> {
    pub(super) fn of_file(segments: &[Segment], sources: &'a Sources) -> Result<Self> {
        let mut parts = Vec::new();
        for segment in segments {
            let stream = sources.get(segment)?;
            let box_bytes = stream.box_bytes(segment.rows)?;
            if stream.encoding != Encoding::Bytes(ByteOrder::Little)
                || (segment.count > 1 && segment.stride != box_bytes)
            {
                continue;
            }
            if let Some(ChunkStorage::Block { file, offset, .. }) = stream.reader.storage() {
                let boxes = (segment.first / segment.rows).saturating_mul(stream.across.elements()?);
                let offset = offset.saturating_add(boxes.saturating_mul(box_bytes));
                let bytes = segment.offset..segment.offset + segment.count * box_bytes;
                parts.push(Copy { bytes, file, offset });
            }
        }
        Ok(Copies { parts, can_share: AtomicBool::new(true) })
    }

    /// Lets byte `offset` of `target` share bytes of the HDF5 file that equal `bytes`; if false,
    /// the caller has to write `bytes`.
    pub(super) fn share(&self, offset: u64, bytes: &[u8], target: &FileTarget, sharer: &Sharer<'_>) -> Result<bool> {
        if !self.can_share.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let end = offset + bytes.len() as u64;
        let part = self.parts.iter().find(|part| part.bytes.start <= offset && end <= part.bytes.end);
        let Some((part, at)) = part.map(|part| (part, part.offset + (offset - part.bytes.start))) else {
            return Ok(false);
        };
        let Some(raw) = part.file.raw(at).filter(|raw| raw.len >= bytes.len() as u64) else { return Ok(false) };
        if at.saturating_add(bytes.len() as u64) > part.file.len()? {
            return Ok(false);
        }
        let mut stored = vec![0; bytes.len()];
        part.file.read_at(at, &mut stored)?;
        if stored != bytes {
            return Ok(false);
        }
        let shared = sharer.share(Raw { len: bytes.len() as u64, ..raw }, target.file(), offset)?.is_ok();
        // another part may be at a better place, but that is rare, and comparing takes time
        if !shared {
            self.can_share.store(false, Ordering::Relaxed);
        }
        Ok(shared)
    }
}
