//! Converts arrays that are stored in chunks compressed by Blosc to HDF5 and back: arrays and tables of BLZ and of its
//! descendant bcolz, and bloscpack files. The formats: docs/formats/blz.md.
//!
//! | file             | purpose                                                          |
//! |------------------|------------------------------------------------------------------|
//! | `arrays.rs`      | the arrays at a path                                             |
//! | `array.rs`       | an array: documents, and the chunks of its rows                  |
//! | `chunk_files.rs` | the files that have the chunks of an array                       |
//! | `superchunk.rs`  | a file of chunks                                                 |
//! | `checksum.rs`    | checksums of chunks                                              |
//! | `from_hdf5.rs`   | arrays that are datasets of HDF5                                 |
//! | `rows.rs`        | their rows                                                       |
//! | `dtype.rs`       | element types                                                    |
//! | `json.rs`        | documents as Python writes them                                  |
//! | `format.rs`      | the names of the formats                                         |
//! | `to_hdf5.rs`     | datasets are written                                             |
//! | `export.rs`      | the other formats are written                                    |
//! | `compare.rs`     | arrays are compared                                              |
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
mod checksum;
mod chunk_files;
mod compare;
mod dtype;
mod export;
mod format;
mod from_hdf5;
mod json;
mod rows;
#[cfg(any(test, feature = "internals"))]
mod samples;
mod superchunk;
#[cfg(test)]
mod tests;
mod to_hdf5;

pub use arrays::{ArrayInfo, Arrays, ChunkEntry};
pub use compare::{ArrayComparison, ArrayDifference};
pub use export::{Export, ExportSummary};
pub use format::ArrayFormat;
#[cfg(any(test, feature = "internals"))]
pub(crate) use samples::{files as sample_files, read as read_file};
pub use to_hdf5::{ToHdf5, ToHdf5Summary};
