//! Runs this program's codecs as filters of libhdf5, for datasets whose elements libhdf5 itself
//! reads or writes.

use std::cell::Cell;

use super::interface::Codec;
use crate::error::{Error, Result};

thread_local! {
    static LIMIT: Cell<Option<u64>> = const { Cell::new(None) };
}

const DEFAULT_LIMIT: u64 = 1 << 28;

/// Limits, until dropped, the bytes of a chunk that a codec decodes for libhdf5 on this thread:
/// libhdf5 does not tell the length, and the stored one cannot be trusted.
#[derive(Debug)]
pub(crate) struct ChunkLimit {
    before: Option<u64>,
}

impl ChunkLimit {
    /// `bytes` is the chunk's length; filters before the codec may have added some.
    pub(crate) fn new(bytes: u64) -> Self {
        let limit = bytes.saturating_add(bytes / 8).saturating_add(4096);
        ChunkLimit { before: LIMIT.replace(Some(limit)) }
    }
}

impl Drop for ChunkLimit {
    fn drop(&mut self) {
        LIMIT.set(self.before);
    }
}

/// `parameters` state the level; `Unsupported` to encode what the codec only reads.
pub(crate) fn run(codec: &dyn Codec, decode: bool, parameters: &[u32], bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if decode {
        let limit = LIMIT.get().unwrap_or(DEFAULT_LIMIT).min(codec.bound(bytes.len() as u64));
        codec.decoder().decode(bytes, usize::try_from(limit).unwrap_or(usize::MAX), &mut out)?;
    } else {
        let default = || codec.levels().map_or(0, |levels| levels.default);
        let encoder = codec.encoder(codec.level(parameters).unwrap_or_else(default));
        let mut encoder = encoder.ok_or_else(|| Error::unsupported(format!("{} is only read", codec.name())))?;
        encoder.encode(bytes, bytes.len(), &mut out)?;
    }
    Ok(out)
}
