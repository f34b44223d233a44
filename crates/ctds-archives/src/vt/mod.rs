//! The format of vt (the Python package cs.vt): content-addressed stores of blocks, and archives
//! that record which blocks make up a tree of files. docs/reference/formats/vt.md.
//!
//! ```text
//!   my.vt                 archive: a line for each state of a tree           [`archive`] [`text`]
//!     └─ D{…block…}       root directory: data that are entries              [`dirent`] [`tree`]
//!          └─ reference   hash, literal, part, repetition, list of these     [`reference`] [`data`]
//!               └─ hash   name of a block                                    [`hash`]
//!   store/data/*.vtd      blocks, one after the other, zlib or plain         [`records`] [`store`] [`index`]
//!   store/data/…          or ordinary files, of which blocks are ranges      [`plain`]
//!   vt+unix:PATH          or a store that another program serves             [`remote`] [`client`]
//! ```
//!
//! `serve` is the other side: it answers for a store (`blocks`), such as one `on_disk`, whose
//! blocks are in a directory (`append`) or inside another file (`in_file`).
//!
//! An archive does not say where its store is: every directory beside the archive that has
//! `data/*.vtd` is one, and the directory of the archive itself. A store with ordinary files is a
//! Platonic store, as the original calls it.
//!
//! - An **archive** is a text file `.vt`: each line is a saved state, the root directory with a
//!   reference to its data.
//! - A **block** is a piece of data that a store has once, under its hash; its **record** in a data
//!   file, `.vtd`, is a header and the data.
//! - An **entry** is a file, directory or link: a name, metadata and a reference.

mod address;
mod append;
mod archive;
mod bare;
mod blocks;
mod check;
mod chunker;
mod client;
mod data;
mod dirent;
mod hash;
mod in_file;
mod index;
mod on_disk;
mod plain;
mod protocol;
mod records;
mod reference;
mod remote;
mod serve;
mod sink;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod update;
mod wire;
mod write;
mod zlib;

use std::sync::Arc;

use ctds::container::Format;
use ctds::error::{Context, Error, ResultExt};

use address::Address;
use bare::BareStore;
#[cfg(any(test, feature = "internals"))]
use dirent::{Dirent, EntryKind};
#[cfg(any(test, feature = "internals"))]
use reference::BlockRef;
use tree::Archive;

pub use address::split_address;
pub use blocks::Blocks;
pub use hash::{BlockHash, HashKind};
pub use in_file::DataInFile;
pub use on_disk::StoreOnDisk;
pub use protocol::HashRange;
pub use serve::serve_store;

pub(crate) use write::write_tree;

/// The container format of vt archives, which are text files.
pub static FORMAT: Format = Format {
    write_tree: Some(write_tree),
    ..Format::read_only("vt", tree::is_archive, |inside, name| Ok(Arc::new(Archive::open(inside, name)?)))
};

/// The container format of an archive of a store that another program serves. Its name is an
/// address ([`split_address`]), which is not the name of a file: nothing is recognised as it.
pub static REMOTE: Format = Format::read_only(
    "vt",
    |_, _| Ok(false),
    |_, name| match Address::parse(name) {
        Some(address) => Ok(Arc::new(Archive::of_address(&address).context(Context::path(name))?)),
        None => Err(Error::usage("an address begins with vt+unix: or vt+exec:")),
    },
);

/// The container format of a vt store without an archive, which would tell the files that its
/// blocks make up. It is a directory, recognised by its data files, `data/*.vtd`.
pub static STORE: Format = Format {
    is_directory: true,
    ..Format::read_only(bare::STORE_NAME, bare::is_store, |inside, name| Ok(Arc::new(BareStore::open(inside, name)?)))
};

/// Makes, for tests, a vt archive of `files`, with their bytes in the archive itself, and a data
/// file for its store. The first file is also a block in the data file, which the additional entry
/// `block` of the archive refers to.
#[cfg(any(test, feature = "internals"))]
pub fn archive_of(files: &[(String, Vec<u8>)]) -> [Vec<u8>; 2] {
    let (mut directory, mut data) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let mut block = Vec::new();
        BlockRef::encode_literal(&mut block, bytes);
        Dirent::encode(&mut directory, EntryKind::File, name, "a:o:rw-x;m:1.5", &block);
    }
    if let Some((_, bytes)) = files.first() {
        let mut block = Vec::new();
        BlockRef::encode_hash(&mut block, &hash::HashKind::Sha1.hash(bytes), bytes.len() as u64, false);
        Dirent::encode(&mut directory, EntryKind::File, "block", "", &block);
        data.push(0);
        wire::put_data(&mut data, bytes);
    }
    let root = BlockRef::Literal(directory.into());
    let line = format!("2020-01-01T00:00:00+00:00 1577836800.0 D{{{}:block:{root}}} comment\n", text::quote("a table"));
    [line.into_bytes(), data]
}
