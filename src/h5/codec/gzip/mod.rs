//! gzip, which HDF5 calls deflate (filter 1): each chunk is one zlib stream (RFC 1950). Part of
//! every libhdf5.
//!
//! The filter has one parameter, the level: 0 to 9.

mod codes;
mod encode;
mod estimate;
mod histogram;
mod runs;
mod stored;

use libdeflater::Decompressor;

use super::interface::{Codec, Decoder, Encoder, Levels};
use crate::error::{Error, Result};
use encode::Encode;

/// Limit of zlib.
const MAX_EXPANSION: u64 = 1032;

#[derive(Debug)]
pub(super) struct Gzip;

impl Codec for Gzip {
    fn id(&self) -> i32 {
        1
    }

    fn name(&self) -> &'static str {
        "gzip"
    }

    fn filter_name(&self) -> &'static str {
        "deflate"
    }

    fn levels(&self) -> Option<Levels> {
        Some(Levels { range: 1..=9, default: 4 })
    }

    fn plugin(&self) -> Option<&'static str> {
        None
    }

    fn parameters(&self, level: u8) -> Vec<u32> {
        vec![level.into()]
    }

    fn level(&self, parameters: &[u32]) -> Option<u8> {
        // 0 stores blocks without compression
        parameters.first().and_then(|&level| u8::try_from(level).ok()).filter(|level| *level <= 9)
    }

    fn bound(&self, stored: u64) -> u64 {
        stored.saturating_mul(MAX_EXPANSION)
    }

    fn encoder(&self, level: u8) -> Option<Box<dyn Encoder>> {
        Some(Box::new(Encode::new(level)))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Inflate(Decompressor::new()))
    }
}

struct Inflate(Decompressor);

impl Decoder for Inflate {
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        out.resize(limit, 0);
        let inflated = self.0.zlib_decompress(bytes, out);
        let failed = |error| Error::format(format!("a chunk does not inflate to {limit} bytes")).caused_by(error);
        out.truncate(inflated.map_err(failed)?);
        Ok(())
    }
}
