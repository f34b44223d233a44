//! Access to HDF5: files, groups, datasets, attributes, dimension scales. This module knows nothing
//! of casacore tables.
//!
//! Existing files are read by [`h5_read`]: see [`existing`]. This module alone talks to libhdf5,
//! which writes, through `hdf5` (hdf5-metno) and, where that has no safe call, [`sys`].
//!
//! - Shapes, regions and chunk indices are in casacore's order, first axis fastest and rows last.
//!   They are reversed here, at the edge, and nowhere else. `any.rs`, which shows files of any
//!   program, keeps HDF5's order.
//! - Whatever is created is reproducible (no time stamps), keeps the order of creation of links and
//!   attributes, and uses the file format of HDF5 1.10: superblock 3, the chunk indices of that
//!   version. With [`Bounds::Earliest`] it uses that of HDF5 1.8 and before, which keeps no order.
//! - Links are followed and datasets opened by [`Group`] alone, which refuses whatever leads to
//!   another file unless its [`Reach`] permits it.
//! - Links and attributes are listed in order of creation if the file records that, else by name.
//! - libhdf5 runs under one lock. To use several cores, filter chunks with [`Pipeline`] on your own
//!   threads and hand them over with [`Dataset::write_chunk`].

#![cfg_attr(
    not(feature = "libhdf5"),
    allow(dead_code, reason = "new files, which libhdf5 writes, are described here as well")
)]
#![cfg_attr(
    not(any(test, feature = "internals")),
    allow(dead_code, reason = "crates above show the objects of any file, and tables in memory")
)]

mod any;
mod any_chunks;
mod attribute;
mod byte_rows;
mod chunk_reader;
mod codec;
mod compression;
mod dataset;
mod datatype;
mod element;
mod elements;
mod elsewhere;
#[cfg(feature = "libhdf5")]
mod error;
mod existing;
mod file;
mod filter;
mod group;
mod header_block;
#[cfg(feature = "libhdf5")]
mod library;
#[cfg(not(feature = "libhdf5"))]
#[path = "absent.rs"]
mod library;
mod link;
mod live;
mod lock;
mod row_count;
mod scales;
mod signature;
mod steps;
mod stored_chunk;
mod stored_element;
mod stored_filter;
mod superblock;
#[cfg(feature = "libhdf5")]
mod sys;
mod virtual_dataset;
mod wide;

/// The version of libhdf5, where it is part of the build.
pub(crate) fn library_version() -> Option<String> {
    #[cfg(feature = "libhdf5")]
    return Some(library::version());
    #[cfg(not(feature = "libhdf5"))]
    None
}

/// HDF5's limit.
pub(crate) const MAX_AXES: usize = 32;

pub use any::{AnyAttribute, AnyDataset, AnyObject, Visitor};
#[cfg(any(test, feature = "internals"))]
pub use any::{AnyNamedType, Served, has_pointers};
pub(crate) use attribute::{Attribute, fits_header};
pub(crate) use byte_rows::{ByteFilters, ByteRows};
pub(crate) use chunk_reader::{ChunkReader, with_decoded};
pub(crate) use compression::Effort;
pub use compression::{Compression, Plugin};
pub(crate) use dataset::{Allocation, Dataset, DatasetSpec, Header, IndexKind, MAX_OLD_SCALED, Storage};
pub(crate) use element::ElementSpec;
pub(crate) use elsewhere::{Elsewhere, Reach};
pub use file::File;
pub(crate) use file::{ALIGNED_BYTES, Bounds};
pub(crate) use filter::{Filter, FilterScratch, Pipeline};
pub use group::Group;
pub(crate) use header_block::set_slowest_extent;
pub use link::Link;
pub(crate) use link::LinkKind;
pub(crate) use live::{Element, LiveDataset, LiveFile, LiveSpec};
pub(crate) use lock::{locked, retry_while_locked};
pub(crate) use scales::{Attachments, Scale};
pub(crate) use signature::{is_hdf5, superblock_version};
pub use steps::Steps;
pub(crate) use stored_chunk::ChunkInfo;
pub(crate) use stored_element::StoredElement;
pub(crate) use superblock::Superblock;
pub(crate) use virtual_dataset::{VirtualSource, VirtualSpec};
pub(crate) use wide::Wide;

use file::FileKind;
use stored_chunk::StoredChunk;
#[cfg(feature = "libhdf5")]
use stored_filter::StoredFilter;

#[cfg(test)]
mod tests;
