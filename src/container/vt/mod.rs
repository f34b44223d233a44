//! vt: content-addressed stores of blocks, and archives that say which blocks make up a tree of files. docs/formats/vt.md.
//!
//! ```text
//!   my.vt                 archive: a line for each state of a tree           [`archive`] [`text`]
//!     └─ D{…block…}       root directory: data that are entries              [`dirent`] [`tree`]
//!          └─ reference   hash, literal, part, repetition, list of these     [`reference`] [`data`]
//!               └─ hash   name of a block                                    [`hash`]
//!   store/data/*.vtd      blocks, one after the other, zlib or plain         [`records`] [`store`] [`index`]
//! ```
//!
//! An archive does not say where its store is: every directory beside the archive that has `data/*.vtd` is one, and the
//! directory of the archive itself.

mod archive;
mod chunker;
mod data;
mod dirent;
mod hash;
mod index;
mod records;
mod reference;
mod store;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod wire;
mod write;

use std::sync::Arc;

use super::Format;
use tree::{Archive, BareStore};

pub(crate) static FORMAT: Format = Format {
    write_tree: Some(write::write_tree),
    ..Format::read_only("vt", tree::is_archive, |inside, name| Ok(Arc::new(Archive::open(inside, name)?)))
};

/// A store as a directory: it is known by its data files.
pub(crate) static STORE: Format = Format {
    is_directory: true,
    ..Format::read_only(tree::STORE_NAME, tree::is_store, |inside, name| Ok(Arc::new(BareStore::open(inside, name)?)))
};
