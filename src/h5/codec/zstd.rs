//! Zstandard (HDF5 filter 32015): each chunk is one frame of RFC 8878, which states the length of
//! its content.
//!
//! The filter has one parameter, the level. Other programs need a plugin for it.

use std::io;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::compress_bound;

use super::interface::{Codec, Decoder, Encoder, Levels};
use crate::error::{Error, Result};

/// A block of up to 128 KiB of one repeated byte takes 4 bytes.
const MAX_EXPANSION: u64 = (128 << 10) / 4;

#[derive(Debug)]
pub(super) struct Zstd;

impl Codec for Zstd {
    fn id(&self) -> i32 {
        32015
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    fn levels(&self) -> Option<Levels> {
        Some(Levels { range: 1..=22, default: 3 })
    }

    fn plugin(&self) -> Option<&'static str> {
        Some("hdf5plugin")
    }

    fn parameters(&self, level: u8) -> Vec<u32> {
        vec![level.into()]
    }

    fn level(&self, parameters: &[u32]) -> Option<u8> {
        parameters.first().and_then(|&level| u8::try_from(level).ok()).filter(|level| (1..=22).contains(level))
    }

    fn bound(&self, stored: u64) -> u64 {
        stored.saturating_mul(MAX_EXPANSION)
    }

    fn encoder(&self, level: u8) -> Option<Box<dyn Encoder>> {
        Some(Box::new(Compress { level, compressor: None }))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Decompress(None))
    }
}

struct Compress {
    level: u8,
    compressor: Option<Compressor<'static>>,
}

impl Encoder for Compress {
    fn encode(&mut self, bytes: &[u8], _plane: usize, out: &mut Vec<u8>) -> Result<()> {
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(self.level.into())?),
        };
        out.resize(compress_bound(bytes.len()), 0);
        let len = compressor.compress_to_buffer(bytes, &mut out[..])?;
        out.truncate(len);
        Ok(())
    }
}

struct Decompress(Option<Decompressor<'static>>);

impl Decoder for Decompress {
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        out.resize(limit, 0);
        let failed = |error: io::Error| {
            Error::format(format!("a chunk is not a Zstandard frame of at most {limit} bytes")).caused_by(error)
        };
        let len = decompressor.decompress_to_buffer(bytes, &mut out[..]).map_err(failed)?;
        out.truncate(len);
        Ok(())
    }
}
