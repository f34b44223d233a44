//! HDF5: files, groups, datasets, attributes, dimension scales. Knows nothing of tables.
//!
//! The only place that talks to libhdf5, through `hdf5` (hdf5-metno) and, where that has no safe call, [`sys`].
//!
//! - Shapes, regions and chunk indices are in casacore's order, first axis fastest and rows last. They are reversed
//!   here, at the edge, and nowhere else.
//! - Whatever is created is reproducible (no time stamps), keeps the order of creation of links and attributes, and
//!   uses the file format of HDF5 1.10: superblock 3, the chunk indices of that version.
//! - libhdf5 runs under one lock. To use several cores, filter chunks with [`Pipeline`] on your own threads and
//!   hand them over with [`Dataset::write_chunk`]; on the way back [`ChunkReader`] asks libhdf5 only where the chunks are.

mod attribute;
mod chunk_reader;
mod dataset;
mod datatype;
mod error;
mod file;
mod filter;
mod group;
mod live;
mod repair;
mod sys;

pub(crate) use attribute::Attribute;
pub(crate) use chunk_reader::ChunkReader;
pub(crate) use dataset::{ChunkInfo, Dataset, DatasetSpec};
pub(crate) use file::File;
pub(crate) use filter::{Coder, Deflate, Pipeline, Stage};
pub(crate) use group::{Group, LinkKind};
pub(crate) use live::{Element, LiveDataset, LiveFile, LiveSpec};
pub(crate) use repair::Superblock;

#[cfg(test)]
pub(crate) use dataset::IndexKind;
#[cfg(test)]
mod tests;
