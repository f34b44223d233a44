//! One chunk of Blosc 1: blocks of bytes that are shuffled, split and compressed. The bytes:
//! docs/reference/formats/blz.md, "A Blosc chunk".
//!
//! ```
//! use blosc_arrays::blosc::{BloscCodec, ChunkHeader, ChunkSettings, decode, encode};
//!
//! let elements: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
//! let settings = ChunkSettings { codec: BloscCodec::Lz4, level: 5, shuffle: true, typesize: 4 };
//! let mut chunk = Vec::new();
//! encode(&elements, &settings, &mut chunk)?;
//! assert!(chunk.len() < elements.len());
//!
//! let header = ChunkHeader::decode(chunk.first_chunk().expect("a chunk begins with its header"))?;
//! assert_eq!((header.codec(), header.bytes), ("lz4", 4000));
//! let mut decoded = Vec::new();
//! decode(&chunk, 1 << 20, &mut decoded)?;
//! assert_eq!(decoded, elements);
//! # Ok::<(), blosc_arrays::Error>(())
//! ```

mod blosclz;
mod chunk;
mod encode;
#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub mod samples;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "zlib"))]
pub(crate) use chunk::not_built;
pub use chunk::{ChunkHeader, HEADER_BYTES, check, decode};
pub use encode::{BloscCodec, ChunkSettings, encode};
