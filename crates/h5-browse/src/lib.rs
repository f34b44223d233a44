//! Any HDF5 file as JSON, npy, CSV and TIFF, also while another process appends to it: objects with
//! their types and attributes, values of selections, statistics.
//!
//! The documents are those of [h5grove](https://silx-kit.github.io/h5grove/) 4.0, for which the
//! viewer H5Web asks. HTTP is left to the caller.
//!
//! | request of h5grove | method                  | answer                                           |
//! |--------------------|-------------------------|--------------------------------------------------|
//! | `paths`            | [`Browser::paths`]      | paths of a group and all objects below it        |
//! | `meta`             | [`Browser::meta`]       | an object: kind, attributes, type, shape, members |
//! | `attr`             | [`Browser::attributes`] | values of attributes                             |
//! | `data`             | [`Browser::data`]       | values of a dataset, in a [`Format`]             |
//! | `stats`            | [`Browser::stats`]      | minimum, maximum, mean, standard deviation       |
//!
//! ```
//! use std::path::Path;
//! use h5_browse::{Browser, DataOptions, Limits, LinkResolution};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("my.h5");
//! # let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/demo/demo.ms");
//! # ctds_hdf5::convert::ToHdf5::new(demo).write(&path)?;
//! let limits = Limits::default();
//! let is_served = |_other: &Path| false;
//! let browser = Browser::open(&path, &is_served, &limits)?;
//! println!("{}", browser.meta("/MAIN", LinkResolution::OnlyValid)?);
//!
//! let options = DataOptions { selection: Some("0:3"), ..DataOptions::default() };
//! let data = browser.data("/MAIN/ANTENNA1", &options)?;
//! assert_eq!(data.content_type, "application/json");
//! let pieces: Vec<Vec<u8>> = data.pieces.collect::<Result<_, _>>()?;
//! assert_eq!(pieces.concat(), b"[0,0,0]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Of live files of [ctds-hdf5](https://crates.io/crates/ctds-hdf5) only committed rows are shown;
//! of other SWMR files, everything up to their present extents. A casacore table is shown as the
//! HDF5 file to which it would be converted: [`TableFile`].
//!
//! Other files that a file names (external links, sources of virtual datasets, external storage)
//! are opened only where the caller says that they are served.
//!
//! # Map
//!
//! A [`Browser`] (`browser.rs`) resolves paths link by link (`resolve.rs`) in open files, and
//! describes the objects that it finds (`entity.rs`) with their types (`types.rs`). The values of a
//! selection (`selection.rs`) are read block by block (`read.rs`), those of a [`TableFile`] from
//! the cells of the table (`table.rs`). `number.rs` says which types are numbers and converts them
//! to numpy's.
//!
//! Values become an answer in pieces ([`Pieces`], `data.rs`): numbers as bytes with a header of npy
//! or TIFF (`tiff.rs`), or as text (`text.rs`); elements of all other types as JSON (`json.rs`). In
//! JSON, `nest.rs` writes the brackets around both. `stats.rs` adds numbers up instead.
#![deny(missing_docs)]

mod browser;
mod data;
mod entity;
mod json;
mod limits;
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
pub use ctds::{Context, Error, ErrorKind, Result};
pub use data::{Data, DataOptions, Dtype, Format, PIECE_BYTES, Pieces};
pub use limits::Limits;
pub use resolve::LinkResolution;
pub use table::TableFile;

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
