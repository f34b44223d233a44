//! Reads and writes Blosc 1 chunks: blocks of bytes that are shuffled, split and compressed. docs/formats/blz.md, "A Blosc
//! chunk".

mod blosclz;
mod chunk;
mod encode;
#[cfg(any(test, feature = "internals"))]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub(crate) use chunk::{ChunkHeader, HEADER_BYTES, check, decode};
pub(crate) use encode::{BloscCodec, ChunkSettings, encode};
