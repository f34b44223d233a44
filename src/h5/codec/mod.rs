//! Codecs: the compression methods that this program reads and writes itself, each a filter of HDF5.
//!
//! To add one, write a file with an `impl Codec` and add it to [`CODECS`]. Everything else follows from this list: the
//! words of `--compress` and their help, writing and reading of chunks on all threads, registration with libhdf5, the names
//! that `info` shows, and the plugin that readers are told to install. The tests in `tests.rs` walk the list, too.
//!
//! The rest of the program holds a [`Compression`] and does not know which codec is in it.

mod callback;
mod compression;
mod gzip;
mod interface;
#[cfg(test)]
mod tests;

pub(crate) use callback::{ChunkLimit, run};
pub(crate) use compression::Effort;
pub use compression::{Compression, Plugin};
pub(crate) use interface::{Codec, Decoder, Encoder, Levels};

/// Every codec, in the order of the command line's help. The first is part of every libhdf5.
pub(crate) const CODECS: &[&dyn Codec] = &[&gzip::Gzip];

/// The codec of an HDF5 filter.
pub(crate) fn find(filter: i32) -> Option<&'static dyn Codec> {
    CODECS.iter().copied().find(|codec| codec.id() == filter)
}
