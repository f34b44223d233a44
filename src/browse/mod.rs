//! Browses any HDF5 file: describes its objects with their types and attributes, and returns the
//! values of numpy-style selections as JSON, bytes, npy, CSV and TIFF.
//!
//! The documents are those of h5grove 4.0, which the explorer H5Web asks for. Files may be written
//! to at the same time: of tables that this program appends to, only committed rows are shown; of
//! other SWMR files, everything up to their present extents.
//!
//! Other files that a file names (external links, sources of virtual datasets, external storage)
//! are opened only where the caller says that they are served.
//!
//! ```no_run
//! use std::path::Path;
//! use ctds_hdf5::browse::{Browser, DataOptions, Limits, LinkResolution};
//!
//! let limits = Limits::default();
//! let nothing_else = |_: &Path| false;
//! let browser = Browser::open(Path::new("my.h5"), &nothing_else, &limits)?;
//! println!("{}", browser.meta("/MAIN", LinkResolution::OnlyValid)?);
//! let data = browser.data("/MAIN/TIME", &DataOptions { selection: Some("0:10"), ..DataOptions::default() })?;
//! for piece in data.pieces {
//!     print!("{}", String::from_utf8_lossy(&piece?));
//! }
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod browser;
mod data;
mod entity;
mod json;
mod live;
mod nest;
mod number;
mod read;
mod resolve;
mod selection;
mod stats;
mod table;
mod text;
mod tiff;
mod types;

#[cfg(test)]
mod tests;

pub use browser::Browser;
pub use data::{Data, DataOptions, Dtype, Format, Pieces};
pub use resolve::LinkResolution;
pub use table::TableFile;

/// Largest piece of encoded values that [`Pieces`] returns at a time, in bytes.
pub const PIECE_BYTES: u64 = 1 << 20;

/// Limits on the size of one answer about an HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest answer with values as plain bytes, npy, TIFF or CSV, in bytes; a larger one is an
    /// error.
    pub binary_bytes: u64,
    /// Largest JSON answer, in bytes; a larger one is an error.
    pub json_bytes: u64,
    /// Maximum number of values in a JSON answer; a complex number counts as two. A larger answer
    /// is an error.
    pub json_numbers: u64,
    /// Maximum number of members of a group that one answer describes; a larger group is an error.
    pub children: u64,
    /// Maximum number of paths in a list of a group and the objects below it; a longer list is an
    /// error.
    pub paths: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            binary_bytes: 256 << 20,
            json_bytes: 64 << 20,
            json_numbers: 4_000_000,
            children: 20_000,
            paths: 100_000,
        }
    }
}
