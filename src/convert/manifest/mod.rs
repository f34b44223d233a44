//! References to the chunks of an unconverted table, or of a native HDF5 file: readers of Zarr open
//! them as arrays. docs/howto/share.md.
//!
//! | file            |                                                                              |
//! |-----------------|------------------------------------------------------------------------------|
//! | `builder.rs`    | [`ToManifest`], its steps in order                                           |
//! | `arrays.rs`     | the arrays of a source, and where the elements of each are                   |
//! | `tiles.rs`      | tiles of hypercubes in the files of a table                                  |
//! | `chunks.rs`     | chunks of datasets in an HDF5 file                                           |
//! | `inline.rs`     | elements that the manifest itself contains                                   |
//! | `left_out.rs`   | [`LeftOutColumn`]                                                            |
//! | `metadata.rs`   | documents of Zarr, version 2                                                 |
//! | `references.rs` | the JSON, written as a stream                                                |
//! | `files.rs`      | sizes and modification times of the files, [`CheckManifest`]                 |

mod arrays;
mod builder;
mod chunks;
mod files;
mod inline;
mod left_out;
mod metadata;
mod references;
mod tiles;

pub use builder::{ManifestSummary, ToManifest};
pub use files::{ChangedFile, CheckManifest, ManifestCheck};
pub use left_out::LeftOutColumn;
