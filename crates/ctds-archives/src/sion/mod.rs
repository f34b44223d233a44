//! SION files, a container of SIONlib: streams of the tasks (processes) of a parallel program in
//! one file, or in a few. docs/reference/formats/sion.md.
//!
//! ```text
//!  0        data_start                                                  META2
//! ┌───────┬─┬──────────┬──────────┬────────┬──────────┬──────────┬─────┬───────┐
//! │ META1 │ │ task 0   │ task 1   │ task 2 │ task 0   │ task 1   │ …   │ META2 │
//! └───────┴─┴──────────┴──────────┴────────┴──────────┴──────────┴─────┴───────┘
//!            block 0: one chunk of each task  block 1
//! ```
//!
//! The virtual file `TASK<n>` is the stream of logical task `n`: the bytes written to its chunks,
//! in order. Files that this program packs have an index of names in task 0 (`names.rs`); their
//! virtual files have these names.
//!
//! | file         | purpose                                                                |
//! |--------------|------------------------------------------------------------------------|
//! | `header.rs`  | META1, both directions                                                 |
//! | `physical.rs`| one physical file that is read: META2, and where its chunks are        |
//! | `set.rs`     | the files of a set, and which task is where                            |
//! | `keys.rs`     | the key-value records in a stream                                        |
//! | `extents.rs` | the bytes of a stream as pieces of a file                              |
//! | `names.rs`   | the index of names in task 0                                           |
//! | `read.rs`    | a container that is read                                               |
//! | `write.rs`   | a container that is written                                            |

mod extents;
mod header;
mod keys;
mod names;
mod physical;
mod read;
mod set;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use ctds::error::Result;

use ctds::container::{Container, Format};

/// The container format of SION files.
pub static FORMAT: Format = Format {
    parts: set::parts,
    salvage: Some(|inside, name| {
        let (set, damage) = set::Set::salvage(inside, name)?;
        Ok((Arc::new(read::Sion::new(set)?), damage))
    }),
    create_for: Some(|path, files, options| Ok(Arc::new(write::SionMut::create(path, files, options)?))),
    ..Format::read_only("sion", is_sion, |inside, name| Ok(Arc::new(read::Sion::new(set::Set::open(inside, name)?)?)))
};

const MAGIC: [u8; 4] = *b"sion";

fn is_sion(inside: &dyn Container, name: &str) -> Result<bool> {
    let file = inside.open(name)?;
    let mut head = [0; 4];
    if file.len()? < head.len() as u64 {
        return Ok(false);
    }
    file.read_at(0, &mut head)?;
    Ok(head == MAGIC)
}
