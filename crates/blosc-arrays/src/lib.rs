//! Blosc chunks, read and written: the codec of arrays in the formats BLZ, bcolz and bloscpack.
//!
//! LZ4, BloscLZ (read only) and Snappy are pure Rust. The features `zlib` and `zstd` add the codecs of these names, which are C.
#![deny(missing_docs)]

use ctds::error;

pub mod blosc;
// Modules that are hidden from the documentation are those that ctds-hdf5 is made of, and change with it.
#[doc(hidden)]
pub mod shuffle;

pub use ctds::{Error, ErrorKind, Result};
