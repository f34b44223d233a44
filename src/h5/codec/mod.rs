//! Codecs: the compression methods that this program reads and writes itself, each a filter of
//! HDF5.
//!
//! To add one, write a file with an `impl Codec` and add it to [`CODECS`]. Everything else follows
//! from this list: the words of `--compress` and their help, writing and reading of chunks on all
//! threads, registration with libhdf5, the names that `info` shows, and the plugin that readers are
//! told to install. The tests in `tests.rs` walk the list.
//!
//! The rest of the program holds a [`Compression`](super::Compression) and does not know which
//! codec is in it.

mod blosc;
#[cfg(feature = "libhdf5")]
mod callback;
mod gzip;
mod interface;
mod lz4;
mod lzf;
#[cfg(test)]
mod tests;
mod zstd;

#[cfg(feature = "libhdf5")]
pub(super) use callback::{ChunkLimit, run};
pub(crate) use interface::{Codec, Decoder, Encoder};

/// Ordered as in the command line's help. The first, [`portable`], is part of every libhdf5.
pub(super) const CODECS: &[&dyn Codec] = &[&gzip::Gzip, &zstd::Zstd, &lz4::Lz4, &lzf::Lzf, &blosc::Blosc];

/// Chunks are copied unchanged from arrays of other formats; data is never compressed with it.
pub(super) fn blosc() -> &'static dyn Codec {
    &blosc::Blosc
}

pub(super) fn portable() -> &'static dyn Codec {
    CODECS[0]
}

pub(super) fn find(filter: i32) -> Option<&'static dyn Codec> {
    CODECS.iter().copied().find(|codec| codec.id() == filter)
}
