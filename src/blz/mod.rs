//! Converts arrays in Blosc chunks (BLZ, bcolz and bloscpack, of the crate `blosc-arrays`) to HDF5
//! and back.
//!
//! | file             | purpose                                                          |
//! |------------------|------------------------------------------------------------------|
//! | `arrays.rs`      | the arrays at a path, datasets of HDF5 among them                |
//! | `from_hdf5.rs`   | arrays that are datasets of HDF5                                 |
//! | `rows.rs`        | their rows                                                       |
//! | `element.rs`     | element types of arrays and of HDF5                              |
//! | `to_hdf5.rs`     | datasets are written                                             |
//! | `export.rs`      | the other formats are written                                    |
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

mod arrays;
mod element;
mod export;
mod from_hdf5;
mod rows;
#[cfg(test)]
mod tests;
mod to_hdf5;

pub use arrays::Arrays;
pub use blosc_arrays::{ArrayComparison, ArrayDifference, ArrayFormat, ArrayInfo, ChunkEntry};
pub use export::{Export, ExportSummary};
pub use to_hdf5::{ToHdf5, ToHdf5Summary};
