//! Blosc (HDF5 filter 32001): each HDF5 chunk is one chunk of Blosc 1, whose header states how it
//! is compressed and shuffled. This program only decodes Blosc, and copies the chunks of arrays in
//! the formats BLZ, bcolz and bloscpack as they are.

use super::interface::{Codec, Decoder, Encoder};
use crate::blosc;
use crate::error::{Error, Result};

/// Expansion by zstd, the largest of all methods of Blosc.
const MAX_EXPANSION: u64 = 1 << 15;

#[derive(Debug)]
pub(super) struct Blosc;

impl Codec for Blosc {
    fn id(&self) -> i32 {
        32001
    }

    fn name(&self) -> &'static str {
        "blosc"
    }

    fn plugin(&self) -> Option<&'static str> {
        Some("hdf5plugin")
    }

    fn bound(&self, stored: u64) -> u64 {
        stored.saturating_mul(MAX_EXPANSION)
    }

    fn encoder(&self, _level: u8) -> Option<Box<dyn Encoder>> {
        None
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Chunks)
    }
}

struct Chunks;

impl Decoder for Chunks {
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        match blosc::ChunkHeader::decode(
            bytes.first_chunk().ok_or_else(|| Error::format("the chunk is shorter than the header of Blosc"))?,
        )?
        .bytes
        {
            len if len as usize <= limit => out.reserve_exact(len as usize),
            _ => {}
        }
        blosc::decode(bytes, limit as u64, out)
    }
}
