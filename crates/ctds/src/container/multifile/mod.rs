//! MultiFile, a container of casacore: blocks of equal size in one file, and a header that records
//! which file each belongs to. formats/table.md 5.
//!
//! ```text
//!   block 0     1       2       3       4       5          [`Header`]    what is where: block 0 and continuation blocks
//!  ┌────────┬───────┬───────┬───────┬───────┬────────┐     [`Index`]     the blocks of one file, as runs
//!  │ header │ f0: 0 │ f0: 1 │ f1: 0 │ free  │ header │     [`Blocks`]    reads runs of blocks and checks them
//!  └────────┴───────┴───────┴───────┴───────┴────────┘     [`BlockSet`]  free blocks and the like
//! ```
//!
//! [`MultiFile`] reads versions 1 and 2, [`MultiFileMut`] writes version 2, and new containers also
//! as version 1. A file of a MultiFile can be a MultiFile *nested* in it. Archives mark those, so
//! that any file can be in them. Elsewhere nothing does, and they are known by their content: a
//! header that is valid in every number. A damaged one is listed as a file there; entering it says
//! what is wrong.

mod block_set;
mod blocks;
mod crc;
mod header;
mod index;
mod pending;
mod write;

#[cfg(test)]
mod crash;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{CasacoreStorage, Container, ContainerInfo, FileLayout, Format};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{FileTarget, Raw, ReadAt, past_end};
use crate::limits;
use blocks::Blocks;
use header::{Entry, Header, recognise};

pub use write::MultiFileMut;

pub static FORMAT: Format = Format {
    parts: |inside, name| {
        let extension = extension_name(name);
        let exists = inside.names()?.contains(&extension);
        Ok(if exists { vec![extension] } else { Vec::new() })
    },
    create: Some(|path, options| {
        if options.compression.is_some() {
            return Err(Error::usage("a MultiFile is not compressed"));
        }
        let file = Arc::new(FileTarget::create(path)?);
        Ok(Arc::new(MultiFileMut::create_with(file, options.block_bytes, options.checksums, options.archive)?))
    }),
    casacore: Some(CasacoreStorage { file_name: "table.mf", option: 0 }),
    ..Format::read_only("multifile", may_be_multi_file, |inside, name| Ok(Arc::new(MultiFile::open(inside, name)?)))
};

/// For writing only: [`FORMAT`] recognises and opens both versions.
pub static VERSION_1: Format = Format {
    create: Some(|path, options| {
        if options.archive {
            return Err(Error::usage(
                "a MultiFile of version 1 holds the files of one table, not everything in one file",
            ));
        }
        if options.checksums || options.compression.is_some() {
            return Err(Error::usage("a MultiFile of version 1 has neither checksums nor compression"));
        }
        Ok(Arc::new(MultiFileMut::create_version_1(path, options.block_bytes)?))
    }),
    casacore: FORMAT.casacore,
    ..Format::read_only("multifile1", |_, _| Ok(false), FORMAT.open)
};

fn may_be_multi_file(inside: &dyn Container, name: &str) -> Result<bool> {
    let file = inside.open(name)?;
    let mut head = vec![0; file.len()?.min(HEAD_BYTES) as usize];
    file.read_at(0, &mut head)?;
    Ok(recognise(&head))
}

const HEAD_BYTES: u64 = header::MIN_BLOCK_BYTES;

#[cfg(any(test, feature = "internals"))]
pub fn crc_of(bytes: &[u8]) -> u32 {
    crc::Crc::of(bytes)
}

const EXTENSION: &str = "_hdrext";

/// Second file of version 1, with the rest of a header that does not fit into block 0.
fn extension_name(name: &str) -> String {
    format!("{name}{EXTENSION}")
}

/// A MultiFile of casacore (`table.mf`) that is open for reading.
///
/// Its files are those of the moment at which it was opened.
///
/// ```no_run
/// # fn main() -> ctds::Result<()> {
/// use ctds::{Container, Directory, MultiFile};
///
/// let files = MultiFile::open(&Directory::new("observation.ms"), "table.mf")?;
/// for name in files.names()? {
///     println!("{name}: {} bytes in blocks {:?}", files.open(&name)?.len()?, files.layout(&name)?.block_numbers);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MultiFile {
    opened: Arc<Opened>,
    depth: usize,
}

#[derive(Debug)]
struct Opened {
    file: Arc<dyn ReadAt>,
    header: Header,
    /// Index in the header's list of files, by name, without removed files.
    slots: BTreeMap<String, usize>,
    /// One bit for each block, set once its bytes were compared with its CRC.
    checked: Vec<AtomicU64>,
}

impl MultiFile {
    /// Opens the file `name` of `inside` as a MultiFile of version 1 or 2.
    ///
    /// # Errors
    /// `Format` if it is not a MultiFile or its header is damaged; `NotFound` or `Io`.
    pub fn open(inside: &dyn Container, name: &str) -> Result<Self> {
        Self::open_at(inside, name, 0)
    }

    fn open_at(inside: &dyn Container, name: &str, depth: usize) -> Result<Self> {
        limits::depth(depth, "containers").context(Context::member(name))?;
        let file = inside.open(name)?;
        let header = read_header(file.as_ref(), inside, name)?;
        let slots = slots(&header);
        let bits = header.checksums.as_ref().map_or(0, |checksums| checksums.len().div_ceil(64));
        let checked = (0..bits).map(|_| AtomicU64::new(0)).collect();
        Ok(MultiFile { opened: Arc::new(Opened { file, header, slots, checked }), depth })
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        Ok(&self.opened.header.files[self.opened.slot(name)?])
    }
}

fn slots(header: &Header) -> BTreeMap<String, usize> {
    let named = header.files.iter().enumerate().filter(|(_, entry)| !entry.name.is_empty());
    named.map(|(slot, entry)| (entry.name.clone(), slot)).collect()
}

fn read_header(file: &dyn ReadAt, inside: &dyn Container, name: &str) -> Result<Header> {
    Header::read(file, || inside.open(&extension_name(name))).context(Context::member(name))
}

/// Names of the containers if `nested`, else of the others; a file whose mark is `None` is read.
fn select(inside: &dyn Container, marks: BTreeMap<String, Option<bool>>, nested: bool) -> Vec<String> {
    let wanted = |name: &str, mark: Option<bool>| mark.unwrap_or_else(|| looks_nested(inside, name)) == nested;
    marks.into_iter().filter(|(name, mark)| wanted(name, *mark)).map(|(name, _)| name).collect()
}

/// A file that cannot be read counts as an ordinary one, whose error comes when it is opened.
fn looks_nested(inside: &dyn Container, name: &str) -> bool {
    let Ok(file) = inside.open(name) else { return false };
    let mut head = [0; HEAD_BYTES as usize];
    file.len().is_ok_and(|len| len >= HEAD_BYTES)
        && file.read_at(0, &mut head).is_ok()
        && recognise(&head)
        && read_header(file.as_ref(), inside, name).is_ok()
}

fn describe(header: &Header) -> ContainerInfo {
    ContainerInfo {
        format: FORMAT.name,
        version: Some(header.version),
        block_bytes: Some(header.block_bytes),
        blocks: Some(header.blocks),
        free_blocks: Some(header.free.len()),
        changes: Some(header.counter),
        checksum: header.checksums.is_some().then_some("crc32"),
    }
}

fn layout(header: &Header, entry: &Entry) -> FileLayout {
    FileLayout {
        stored_bytes: entry.index.len() * header.block_bytes,
        block_bytes: Some(header.block_bytes),
        blocks: entry.index.len(),
        block_numbers: entry.index.ranges().collect(),
        checksum: header.checksums.is_some().then_some("crc32"),
        ..FileLayout::default()
    }
}

fn no_such_file(name: &str) -> Error {
    Error::not_found("the file does not exist").context(Context::member(name))
}

impl Container for MultiFile {
    fn names(&self) -> Result<Vec<String>> {
        Ok(select(self, self.opened.header.marks(), false))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let Opened { file, header, .. } = &*self.opened;
        let slot = self.opened.slot(name)?;
        header.files[slot].check_present(file, header.block_bytes)?;
        Ok(Arc::new(VirtualFile { opened: self.opened.clone(), slot }))
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(select(self, self.opened.header.marks(), true))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        if self.opened.header.marked && !self.entry(name)?.nested {
            return Err(Error::not_found("it is a file, not a container").context(Context::member(name)));
        }
        Ok(Arc::new(MultiFile::open_at(self, name, self.depth + 1)?))
    }

    fn describe(&self) -> ContainerInfo {
        describe(&self.opened.header)
    }

    /// Whether there are CRCs: opening has then verified that of the header.
    fn check(&self) -> Result<bool> {
        Ok(self.opened.header.checksums.is_some())
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        Ok(layout(&self.opened.header, self.entry(name)?))
    }
}

impl Opened {
    fn slot(&self, name: &str) -> Result<usize> {
        self.slots.get(name).copied().ok_or_else(|| no_such_file(name))
    }

    fn bit(&self, block: u64) -> Option<(&AtomicU64, u64)> {
        Some((self.checked.get((block / 64) as usize)?, 1 << (block % 64)))
    }
}

#[derive(Debug)]
struct VirtualFile {
    opened: Arc<Opened>,
    slot: usize,
}

impl ReadAt for VirtualFile {
    fn len(&self) -> Result<u64> {
        Ok(self.opened.header.files[self.slot].len)
    }

    fn raw(&self, offset: u64) -> Option<Raw<'_>> {
        let Opened { file, header, .. } = &*self.opened;
        let entry = &header.files[self.slot];
        if header.checksums.is_some() || offset >= entry.len {
            return None;
        }
        let (blocks, within) = (entry.index.find(offset / header.block_bytes)?, offset % header.block_bytes);
        let raw = file.raw(blocks.start * header.block_bytes + within)?;
        let room = (blocks.end - blocks.start) * header.block_bytes - within;
        Some(Raw { len: raw.len.min(room).min(entry.len - offset), ..raw })
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let Opened { file, header, .. } = &*self.opened;
        let entry = &header.files[self.slot];
        let blocks = Blocks { file, block_bytes: header.block_bytes, checksums: header.checksums.as_deref() };
        let known = |block| self.opened.bit(block).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0);
        let checked = |block| {
            if let Some((word, bit)) = self.opened.bit(block) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        };
        entry
            .runs(header.block_bytes, offset, out, |block, within, part| {
                blocks.read(block, within, part, known, checked)
            })
            .with_context(|| Context::member(&entry.name))
    }
}

impl Entry {
    /// Calls `read` for each part of `out`, with the first block, the offset in it, and the part.
    fn runs(
        &self,
        block_bytes: u64,
        mut offset: u64,
        mut out: &mut [u8],
        mut read: impl FnMut(u64, u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let past_end = || past_end(offset, out.len() as u64, self.len);
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return Err(past_end());
        }
        while !out.is_empty() {
            let blocks = self.index.find(offset / block_bytes).expect("the index was compared with the length");
            let within = offset % block_bytes;
            let room = ((blocks.end - blocks.start) * block_bytes - within).min(out.len() as u64);
            let (part, rest) = out.split_at_mut(room as usize);
            read(blocks.start, within, part)?;
            offset += room;
            out = rest;
        }
        Ok(())
    }
}
