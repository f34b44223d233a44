//! Reads HDF5 files in safe Rust: every structure is checked, damage is named, nothing is trusted.
//!
//! # Map
//!
//! A [`File`] is a [`Storage`] and a [`Superblock`]. Objects are found by address: `header.rs` reads the messages of an
//! object, from which it is a group, a dataset or a committed type. `btree1.rs` and `btree2.rs` walk the two kinds of
//! trees that index links, attributes and chunks. `bytes.rs` decodes the fields of a structure; `walk.rs` bounds what a
//! walk along addresses may visit. Each file names the section of the format specification that it implements.
//!
//! Listings go around damage: a [`Listing`] has what is whole, and an [`Error`] for each part that is not.
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
mod link;
mod local_heap;
mod layout;
#[cfg(test)]
mod mutations;
mod object;
mod shared;
mod region;
mod storage;
mod superblock;
mod symbol_table;
#[cfg(test)]
mod testing;
mod value;
mod walk;
#[cfg(test)]
mod walks;

pub use chunks::Chunk;
pub use dataset::Dataset;
pub use dataspace::{Dataspace, SpaceKind};
pub use datatype::{
    Bits, ByteOrder, Charset, Class, Datatype, Float, Member, Normalization, Padding, Reference, Text,
};
pub use error::{Error, ErrorKind, Result};
pub use file::{File, Limits};
pub use fill::{AllocationTime, Fill, FillTime, FillValue};
pub use filters::{Filter, FilterError, Filters, NoFilters, Pipeline};
pub use global_heap::{GlobalHeap, HeapId};
pub use storage::Storage;
pub use superblock::Superblock;
pub use value::{Value, Values};
pub use walk::Listing;
pub use group::Group;
pub use layout::{ChunkIndex, Chunked, External, Layout};
pub use object::{Object, ObjectKind};
pub use link::{Link, Target};
pub use attribute::Attribute;
