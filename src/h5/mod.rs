//! Access to HDF5: files, groups, datasets, attributes, dimension scales. This module knows nothing
//! of casacore tables.
//!
//! The only place that talks to libhdf5, through `hdf5` (hdf5-metno) and, where that has no safe
//! call, [`sys`]; of files that exist, libhdf5 opens only what [`checked`] has found whole.
//!
//! - Shapes, regions and chunk indices are in casacore's order, first axis fastest and rows last.
//!   They are reversed here, at the edge, and nowhere else. `any.rs`, which shows files of any
//!   program, keeps HDF5's order.
//! - Whatever is created is reproducible (no time stamps), keeps the order of creation of links and
//!   attributes, and uses the file format of HDF5 1.10: superblock 3, the chunk indices of that
//!   version. With [`Bounds::Earliest`] it uses that of HDF5 1.8 and before, which keeps no order.
//! - Links are followed and datasets opened by [`Group`] alone, which refuses whatever leads to
//!   another file unless its [`Reach`] permits it.
//! - libhdf5 runs under one lock. To use several cores, filter chunks with [`Pipeline`] on your own
//!   threads and hand them over with [`Dataset::write_chunk`]; on the way back [`ChunkReader`] asks
//!   libhdf5 only where the chunks are.

mod any;
mod any_chunks;
mod any_type;
mod attribute;
mod byte_rows;
mod checked;
mod chunk_reader;
mod codec;
mod compression;
mod dataset;
mod datatype;
mod element;
mod elsewhere;
mod error;
mod file;
mod filter;
mod group;
mod live;
mod lock;
mod repair;
mod row_count;
mod scales;
mod signature;
mod stored_element;
mod stored_filter;
mod sys;
mod virtual_dataset;
mod wide;

/// HDF5's limit.
pub(crate) const MAX_AXES: usize = 32;

pub(crate) use any::{AnyAttribute, AnyDataset, AnyNamedType, AnyObject, Served};
pub(crate) use any_chunks::Steps;
pub(crate) use any_type::{AnyClass, AnyType, FloatLayout, IntegerLayout, Order, ReferenceKind, Visitor};
pub(crate) use attribute::{Attribute, STORED_STRING_BYTES, fits_header};
pub(crate) use byte_rows::{ByteFilters, ByteRows};
pub(crate) use chunk_reader::{ChunkReader, with_decoded};
pub(crate) use compression::Effort;
pub use compression::{Compression, Plugin};
pub(crate) use dataset::{Allocation, ChunkInfo, Dataset, DatasetSpec, Header, IndexKind, MAX_OLD_SCALED, Storage};
pub(crate) use element::ElementSpec;
pub(crate) use elsewhere::{Elsewhere, Reach};
pub(crate) use file::{ALIGNED_BYTES, Bounds, File};
pub(crate) use filter::{Filter, FilterScratch, Pipeline};
pub(crate) use group::{Group, LinkKind};
pub(crate) use live::{Element, LiveDataset, LiveFile, LiveSpec};
pub(crate) use lock::{locked, retry_while_locked};
pub(crate) use repair::Superblock;
pub(crate) use scales::{Attachments, Scale};
pub(crate) use signature::{is_hdf5, superblock_version};
pub(crate) use sys::Link;
pub(crate) use virtual_dataset::{VirtualSource, VirtualSpec};
pub(crate) use wide::Wide;

#[cfg(test)]
mod tests;
pub(crate) use stored_element::StoredElement;
