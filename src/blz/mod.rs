//! BLZ arrays and tables, their descendant bcolz, and bloscpack files, into HDF5. docs/formats/blz.md.
//!
//! | file            | purpose                                                          |
//! |-----------------|------------------------------------------------------------------|
//! | `arrays.rs`     | the arrays at a path                                             |
//! | `array.rs`      | an array: documents, and the chunks of its rows                  |
//! | `superchunk.rs` | a file of chunks                                                 |
//! | `chunk.rs`      | a Blosc chunk                                                    |
//! | `blosclz.rs`    | the codec that only Blosc has                                    |
//! | `shuffle.rs`    | bytes and bits of elements, put together                         |
//! | `checksum.rs`   | checksums of chunks                                              |
//! | `dtype.rs`      | element types                                                    |
//! | `json.rs`       | documents as Python writes them                                  |
//! | `to_hdf5.rs`    | datasets                                                         |
//!
//! ```no_run
//! use ctds_hdf5::blz::{Arrays, ToHdf5};
//!
//! let arrays = Arrays::open("array.blz")?;
//! for array in arrays.list()? {
//!     println!("{}: {} {:?}", array.name, array.dtype, array.shape);
//! }
//! ToHdf5::new(&arrays).write("out.h5")?;
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod array;
mod arrays;
mod blosclz;
mod checksum;
mod chunk;
mod dtype;
mod json;
#[cfg(any(test, feature = "internals"))]
mod samples;
mod shuffle;
mod superchunk;
#[cfg(test)]
mod tests;
mod to_hdf5;

pub use arrays::{ArrayInfo, Arrays};
#[cfg(any(test, feature = "internals"))]
pub(crate) use samples::{files as sample_files, read as read_file};
pub use to_hdf5::{ToHdf5, ToHdf5Summary};
