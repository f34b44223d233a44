//! Reads HDF5 files in safe Rust: every structure is checked, damage is named, nothing is trusted.
//!
//! # Map
//!
//! A [`File`] is a [`Storage`] and a [`Superblock`]. An [`Object`] is found by its address:
//! `header.rs` reads its messages, from which it is a [`Group`], a [`Dataset`] or a committed type;
//! `shared.rs` finds messages that objects share.
//!
//! - Links and attributes: `group.rs`, `link.rs` and `attribute.rs`; `symbol_table.rs` with
//!   `local_heap.rs` for old groups, `dense.rs` with `fractal_heap.rs` for large new ones.
//! - Datasets: `dataspace.rs`, `datatype.rs`, `fill.rs`, `filters/` and `layout.rs` decode
//!   messages, `chunks/` has the six indices of chunks, `region.rs` copies regions, `dataset.rs`
//!   reads elements; `global_heap.rs` has those of variable length, `value.rs` decodes single ones.
//! - Below: `btree1.rs` and `btree2.rs` walk trees, `bytes.rs` decodes the fields of a structure,
//!   `walk.rs` bounds what a walk along addresses may visit.
//!
//! Each file names the section of the format specification that it implements.
//!
//! Listings go around damage: a [`Listing`] has what is whole, and an [`Error`] for each part that
//! is not.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attribute;
mod btree1;
mod btree2;
mod bytes;
mod checksum;
mod chunks;
#[cfg(test)]
mod classes;
mod dataset;
mod dataspace;
mod datatype;
mod dense;
#[cfg(test)]
mod elements;
mod error;
mod file;
mod fill;
mod filters;
mod fractal_heap;
mod global_heap;
mod group;
mod header;
mod layout;
mod link;
mod local_heap;
mod mappings;
#[cfg(test)]
mod mutations;
mod object;
mod region;
mod shared;
mod storage;
mod superblock;
mod symbol_table;
#[cfg(test)]
mod testing;
mod value;
mod walk;
#[cfg(test)]
mod walks;

pub use attribute::Attribute;
pub use checksum::lookup3;
pub use chunks::Chunk;
pub use dataset::Dataset;
pub use dataspace::{Dataspace, SpaceKind};
pub use datatype::{Bits, ByteOrder, Charset, Class, Datatype, Float, Member, Normalization, Padding, Reference, Text};
pub use error::{Error, ErrorKind, Result};
pub use file::{File, Limits};
pub use fill::{AllocationTime, Fill, FillTime, FillValue};
pub use filters::{Filter, FilterError, Filters, NoFilters, Pipeline};
pub use global_heap::{GlobalHeap, HeapId};
pub use group::Group;
pub use layout::{ChunkIndex, Chunked, External, Layout};
pub use link::{Link, Target};
pub use mappings::{Mapping, Repeated, Selection};
pub use object::{Object, ObjectKind};
pub use storage::Storage;
pub use superblock::Superblock;
pub use value::{Value, Values};
pub use walk::Listing;

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
