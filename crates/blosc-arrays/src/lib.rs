//! Arrays in Blosc chunks, read and written: BLZ and its descendant bcolz, with their tables, and
//! bloscpack files.
//!
//! | to                                                | start with                            |
//! |---------------------------------------------------|---------------------------------------|
//! | list the arrays of a directory or file, read them | [`Arrays::open`]                      |
//! | verify their chunks, compare them                 | [`Arrays::check`], [`Arrays::compare`] |
//! | write them in another format, or from memory      | [`Writer`], [`Arrays::of_bytes`]      |
//! | encode or decode one chunk                        | [`blosc`]                             |
//!
//! Elements are bytes, of a numpy type that [`ArrayInfo::dtype`] names. An [`Error`] has a
//! [kind](Error::kind) to act upon and [contexts](Error::contexts) that lead to the file, array and
//! chunk.
//!
//! The codecs LZ4, BloscLZ (read only) and Snappy are pure Rust. The features `zlib` and `zstd` add
//! the codecs of these names, which are C; without them, a chunk in such a codec is an error of the
//! kind `Unsupported`. The feature `zlib` is also needed for bloscpack files whose metadata are
//! compressed.
//!
//! ```
//! use blosc_arrays::{ArrayFormat, Arrays, Writer};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("numbers.bcolz");
//! let numbers: Vec<u8> = (0..1000).flat_map(|number| f64::from(number).to_le_bytes()).collect();
//! let arrays = Arrays::of_bytes("float64", &[100, 10], 16, numbers.clone())?;
//! Writer::new(&arrays).format(ArrayFormat::Bcolz).write(&path, &())?;
//!
//! let arrays = Arrays::open(&path)?;
//! for array in arrays.list()? {
//!     assert_eq!((array.name.as_str(), array.dtype.as_str(), array.shape), ("array", "float64", vec![100, 10]));
//! }
//! let mut read = Vec::new();
//! arrays.read("array", &(), &mut |piece| {
//!     read.extend_from_slice(piece);
//!     Ok(())
//! })?;
//! assert_eq!(read, numbers);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

use ctds::{container, error, hex, io, limits, progress, suggest};

// Modules that are hidden from the documentation are those that ctds-hdf5 is made of, and change
// with it.
#[doc(hidden)]
pub mod array;
mod arrays;
pub mod blosc;
mod checksum;
#[doc(hidden)]
pub mod chunk_files;
mod compare;
#[doc(hidden)]
pub mod dtype;
mod format;
#[doc(hidden)]
pub mod json;
#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub mod samples;
#[doc(hidden)]
pub mod shuffle;
#[doc(hidden)]
pub mod superchunk;
#[cfg(test)]
mod tests;
mod write;

pub use arrays::{ArrayInfo, Arrays, ChunkEntry};
pub use compare::{ArrayComparison, ArrayDifference};
pub use ctds::{CancelToken, Cancellable, Context, Error, ErrorKind, Phase, Progress, Result};
pub use format::ArrayFormat;
pub use write::Writer;

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
