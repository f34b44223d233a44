//! The header of a MultiFile: which blocks belong to which file. formats/table.md 5.2 and 5.3.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bstr::BString;

use super::crc::Crc;
use super::index::{Index, count};
use crate::aipsio::{Decoder, Encoder, MAGIC};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::{ByteOrder, ReadAt, past_end, read_array};

const PLACE: &str = "MultiFile header";
const OBJECT: &str = "MultiFile";
/// Offset of the AipsIO object.
const START_V1: u64 = 24;
const START_V2: u64 = 64;
const FIRST_LINK_AT: u64 = 8;
const CRC_AT: u64 = 28;
/// Block 0 must hold the fields of fixed size and the beginning of the AipsIO object.
pub(super) const MIN_BLOCK_BYTES: u64 = 128;
/// Of files that this program writes: casacore's integers must hold the size.
pub(super) const MAX_BLOCK_BYTES: u64 = 1 << 30;
const LINK_BYTES: u64 = 8;

/// Version 2, all numbers big endian. Bytes [0, B) of the header are in block 0; the others in
/// continuation blocks, of which each begins with the number of the next one (0: none) and holds B
/// - 8 bytes of the header:
///
/// | offset | type          | meaning                                                                   |
/// |--------|---------------|---------------------------------------------------------------------------|
/// | 0      | i64           | 0                                                                         |
/// | 8      | i64           | first continuation block, 0 for none                                      |
/// | 16     | i64           | how often the header was written                                          |
/// | 24     | i32           | 2                                                                         |
/// | 28     | u32           | CRC of the header with zeros here; 0 without checksums                    |
/// | 32     | i64           | size of the header H                                                      |
/// | 40     | i64           | block size B                                                              |
/// | 48     | i64           | number of blocks                                                          |
/// | 56     | u8            | 1 with checksums                                                          |
/// | 57     | u8, u8\[6\]   | 1 if the flags `nested` count, else 0, as casacore has it; 0              |
/// | 64     | AipsIO object | `MultiFile` 2: `Block` 1 of {name, i64 size, Bool nested}                 |
/// |        | packed index  | blocks of each file                                                       |
/// |        | packed index  | free blocks, descending                                                   |
/// |        | i64, u32\[\]  | CRC of each block                                                         |
/// |        | 2 × i64, i64\[\] | the two sets of continuation blocks                                    |
/// |        | 2 × u32       | how many blocks of each set are in use                                    |
///
/// Version 1: i64 H, i64 B, i64 counter; at byte 24 the AipsIO object `MultiFile` 1: i64 number of
/// blocks, `Block` 1 of {name, `Block` of i64 block numbers, i64 size}, `Block` of i64 free blocks.
/// Bytes [B, H) are in `<name>_hdrext`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) counter: u64,
    pub(super) block_bytes: u64,
    /// Whether the entries record which files are nested containers.
    pub(super) marked: bool,
    /// Block 0, continuation and free blocks included.
    pub(super) blocks: u64,
    /// A removed file leaves an unused slot, without a name and without blocks.
    pub(super) files: Vec<Entry>,
    pub(super) free: Index,
    /// Meaningless for block 0, continuation and free blocks; may be shorter than `blocks`.
    pub(super) checksums: Option<Vec<u32>>,
    /// Two sets of continuation blocks that commits use in turn; unused ones are included.
    pub(super) continuation: [Vec<u64>; 2],
    /// Blocks in use of each set: one holds bytes of this header, the other of an earlier one.
    pub(super) used: [u32; 2],
    /// The set that holds the bytes of this header after block 0; 0 if all fit there.
    pub(super) current: usize,
    /// Bytes of block 0 that the fields occupy.
    pub(super) extent: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) len: u64,
    /// Whether the file is a container; without a meaning unless `marked`.
    pub(super) nested: bool,
    pub(super) index: Index,
}

impl Entry {
    /// Fails if a block of the file lies beyond the end of `container`: writers write whole blocks.
    pub(super) fn check_present(&self, container: &dyn ReadAt, block_bytes: u64) -> Result<()> {
        let there = container.len()?;
        match self.index.ranges().map(|range| range.end).max() {
            Some(end) if end * block_bytes > there => {
                let (block, at) = (end - 1, (end - 1) * block_bytes);
                let message = format!(
                    "block {block} of {block_bytes} bytes is at byte {at}, but the container has {there} bytes"
                );
                Err(Error::format(message).context(&self.name))
            }
            _ => Ok(()),
        }
    }
}

pub(super) struct Encoded {
    /// Bytes of block 0.
    pub(super) head: Vec<u8>,
    /// Numbers and bytes of the continuation blocks.
    pub(super) pieces: Vec<(u64, Vec<u8>)>,
    /// Version 1: the part that is in a file of its own.
    pub(super) rest: Vec<u8>,
}

/// Judges by the first bytes, of which 128 suffice.
pub(super) fn recognise(head: &[u8]) -> bool {
    let object = |start: u64| {
        let head = head.get(start as usize..)?;
        let framed =
            head.get(8..12)? == (OBJECT.len() as u32).to_be_bytes() && head[12..].starts_with(OBJECT.as_bytes());
        Some(head[..4] == MAGIC.to_be_bytes() && framed)
    };
    head.len() >= 8 && object(if head[..8] == [0; 8] { START_V2 } else { START_V1 }) == Some(true)
}

impl Header {
    pub(super) fn empty(block_bytes: u64, checksums: bool, marked: bool) -> Self {
        Header {
            version: 2,
            counter: 0,
            block_bytes,
            marked,
            blocks: 1,
            files: Vec::new(),
            free: Index::default(),
            checksums: checksums.then(Vec::new),
            continuation: [Vec::new(), Vec::new()],
            used: [0, 0],
            current: 0,
            extent: 0,
        }
    }

    /// `extension` opens the second file, in which a long header of version 1 continues.
    pub(super) fn read(file: &dyn ReadAt, extension: impl FnOnce() -> Result<Arc<dyn ReadAt>>) -> Result<Self> {
        let header = if u64::from_be_bytes(read_array(file, 0)?) == 0 {
            // version 1 has the size of its header there, which is never 0
            Self::read_v2(file)?
        } else {
            Self::read_v1(file, extension)?
        };
        header.check().context(PLACE)?;
        Ok(header)
    }

    fn read_v1(file: &dyn ReadAt, extension: impl FnOnce() -> Result<Arc<dyn ReadAt>>) -> Result<Self> {
        let mut d = decoder(file, 0)?;
        let len = d.u64("header size")?;
        let block_bytes = block_bytes(&mut d)?;
        let counter = d.u64("counter")?;
        let mut logical = Logical { file, block_bytes, len, rest: Rest::None };
        if len > block_bytes {
            let is_missing = |error: Error| match error.kind() {
                ErrorKind::NotFound => Error::format(format!(
                    "a header of {len} bytes continues in another file, which is missing: {error}"
                )),
                _ => error,
            };
            let extension =
                extension().map_err(is_missing).context("the rest of the header of a MultiFile version 1")?;
            let there = extension.len()?;
            if there < len - block_bytes {
                let message = format!("{} bytes of the header expected, but the file has {there}", len - block_bytes);
                return Err(Error::format(message).context("the rest of the header of a MultiFile version 1"));
            }
            logical.rest = Rest::File(extension);
        }
        let mut d = decoder(&logical, START_V1)?;
        d.root(OBJECT, 1..=1)?;
        let blocks = blocks(&mut d, block_bytes)?;
        d.start("Block", 1..=1)?;
        let mut files = Vec::new();
        for _ in 0..d.u32("number of files")? {
            let name = name(&mut d)?;
            let index = Index::decode_block(&mut d, "blocks of a file", blocks)?;
            files.push(Entry { name, len: d.u64("file size")?, nested: false, index });
        }
        d.end()?;
        let free = Index::decode_block(&mut d, "free blocks", blocks)?;
        d.end()?;
        let extent = d.position().min(block_bytes);
        let empty = Header::empty(block_bytes, false, false);
        Ok(Header { version: 1, counter, blocks, files, free, extent, ..empty })
    }

    fn read_v2(file: &dyn ReadAt) -> Result<Self> {
        let mut d = decoder(file, FIRST_LINK_AT)?;
        let first = d.u64("first continuation block")?;
        let counter = d.u64("counter")?;
        let version = d.u32("version")?;
        if version != 2 {
            return Err(d.error_at(24, format!("MultiFile version {version}, known are 1 and 2")));
        }
        let crc = d.u32("CRC")?;
        let len = d.u64("header size")?;
        let block_bytes = block_bytes(&mut d)?;
        let blocks = blocks(&mut d, block_bytes)?;
        let has_checksums = d.u8("whether there are CRCs")?;
        if has_checksums > 1 {
            return Err(d.error_at(56, format!("{has_checksums} where 1 says that there are CRCs, and 0 that not")));
        }
        let marked = d.u8("whether files that are containers are marked")? == 1;
        if len < START_V2 || len > file.len()? {
            return Err(d.error_at(32, format!("a header of {len} bytes in a file of {}", file.len()?)));
        }
        let chain = read_chain(file, first, len, block_bytes)?;
        let logical = Logical { file, block_bytes, len, rest: Rest::Blocks(&chain) };
        if has_checksums == 1 || crc != 0 {
            let found = logical.crc()?;
            if found != crc {
                return Err(d.error_at(CRC_AT, format!("CRC of the header: {crc:08x} stored, {found:08x} found")));
            }
        }

        let mut d = decoder(&logical, START_V2)?;
        d.root(OBJECT, 2..=2)?;
        d.start("Block", 1..=1)?;
        let mut files = Vec::new();
        for _ in 0..d.u32("number of files")? {
            let name = name(&mut d)?;
            let len = d.u64("file size")?;
            // casacore never sets it, not even for files that are MultiFiles
            let nested = d.bool("nested")?;
            files.push(Entry { name, len, nested, index: Index::default() });
        }
        d.end()?;
        d.end()?;
        for file in &mut files {
            file.index = Index::decode(&mut d, "blocks of a file", blocks)?;
        }
        let free = Index::decode(&mut d, "free blocks", blocks)?;
        let checksums = numbers(&mut d, "CRCs", 4, Decoder::u32)?;
        let mut continuation = [Vec::new(), Vec::new()];
        for set in &mut continuation {
            let start = d.position();
            *set = numbers(&mut d, "continuation blocks", 8, Decoder::u64)?;
            if let Some(block) = set.iter().find(|&&block| block == 0 || block >= blocks) {
                return Err(d.error_at(start, format!("continuation block {block} of {blocks}")));
            }
        }
        let used = [d.u32("used")?, d.u32("used")?];
        let current = usize::from(continuation[1].first().is_some_and(|&block| block == first));
        if !continuation[current].starts_with(&chain) {
            return Err(d.error("the header was read from other blocks than it lists as its own"));
        }
        let extent = d.position().min(block_bytes);
        let checksums = (has_checksums == 1).then_some(checksums);
        Ok(Header {
            version,
            counter,
            block_bytes,
            marked,
            blocks,
            files,
            free,
            checksums,
            continuation,
            used,
            current,
            extent,
        })
    }

    /// Checks that no block has two owners, and that each file has the blocks its length needs.
    fn check(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for file in &self.files {
            let wanted = file.len.div_ceil(self.block_bytes);
            if file.len > i64::MAX as u64 || wanted != file.index.len() {
                let message = format!(
                    "a file of {} bytes in {} blocks of {} bytes, where {wanted} are expected",
                    file.len,
                    file.index.len(),
                    self.block_bytes
                );
                return Err(Error::format(message).context(format!("{:?}", file.name)));
            }
            if file.name.is_empty() && wanted > 0 {
                return Err(Error::format(format!("a removed file still has {wanted} blocks")));
            }
            if !file.name.is_empty() && !names.insert(&file.name) {
                return Err(Error::format(format!("two files are called {:?}", file.name)));
            }
        }
        let mut owned: Vec<(Range<u64>, &str)> = Vec::new();
        for file in &self.files {
            owned.extend(file.index.ranges().map(|range| (range, file.name.as_str())));
        }
        owned.extend(self.free.ranges().map(|range| (range, "free blocks")));
        owned.extend(self.continuation.iter().flatten().map(|&block| (block..block + 1, "the header")));
        owned.sort_by_key(|(range, _)| range.start);
        for pair in owned.windows(2) {
            let ((left, one), (right, other)) = (&pair[0], &pair[1]);
            if right.start < left.end {
                let message = format!("belongs to {one:?} and to {other:?}, expected one owner");
                let (block, at) = (right.start, right.start * self.block_bytes);
                return Err(Error::format(message).context(Context::offset(format!("block {block}"), at)));
            }
        }
        Ok(())
    }

    /// Whether each file is a nested container; `None` if the header does not record that.
    pub(super) fn marks(&self) -> BTreeMap<String, Option<bool>> {
        let named = self.files.iter().filter(|file| !file.name.is_empty());
        named.map(|file| (file.name.clone(), self.marked.then_some(file.nested))).collect()
    }

    pub(super) fn set_checksum(&mut self, block: u64, crc: u32) {
        let checksums = self.checksums.get_or_insert_default();
        checksums.resize(checksums.len().max(block as usize + 1), 0);
        checksums[block as usize] = crc;
    }

    /// Continuation blocks that the set `target` needs for this header, or has if that is more.
    pub(super) fn blocks_for(&self, target: usize) -> u64 {
        let body = self.body().len() as u64;
        let (mut count, other) = (self.continuation[target].len() as u64, self.continuation[1 - target].len() as u64);
        loop {
            let beyond = (body + 24 + 8 * (other + count)).saturating_sub(self.block_bytes);
            let wanted = beyond.div_ceil(self.block_bytes - LINK_BYTES);
            if wanted <= count {
                return count;
            }
            count = wanted;
        }
    }

    /// Version 1 as [`encode_v1`](Self::encode_v1), else version 2, with the bytes after block 0 in
    /// the set `target`, which must have enough blocks: the sets alternate, so that the last header
    /// stays whole. With checksums, zeros fill the blocks: every byte has a checksum, and casacore
    /// ignores them.
    pub(super) fn encode(&mut self, target: usize) -> Encoded {
        if self.version == 1 {
            let (head, rest) = self.encode_v1();
            return Encoded { head, pieces: Vec::new(), rest };
        }
        let mut bytes = self.body();
        let fields = bytes.len() as u64 + 24 + 8 * self.continuation.iter().map(|set| set.len() as u64).sum::<u64>();
        let room = self.block_bytes - LINK_BYTES;
        let pieces = fields.saturating_sub(self.block_bytes).div_ceil(room);
        self.used[target] = pieces as u32;
        self.current = if pieces > 0 { target } else { 0 };
        self.extent = fields.min(self.block_bytes);

        let mut e = Encoder::new(ByteOrder::Big);
        for set in &self.continuation {
            e.u64(set.len() as u64);
            set.iter().for_each(|&block| e.u64(block));
        }
        self.used.iter().for_each(|&used| e.u32(used));
        bytes.extend(e.into_bytes());
        let chain = &self.continuation[target][..pieces as usize];
        if self.checksums.is_some() {
            bytes.resize((self.block_bytes + pieces * room) as usize, 0);
        }
        let len = bytes.len() as u64;
        bytes[8..16].copy_from_slice(&chain.first().copied().unwrap_or(0).to_be_bytes());
        bytes[32..40].copy_from_slice(&len.to_be_bytes());
        if self.checksums.is_some() {
            let crc = Crc::of(&bytes);
            bytes[CRC_AT as usize..][..4].copy_from_slice(&crc.to_be_bytes());
        }

        let next = chain.iter().skip(1).copied().chain([0]);
        let rest = bytes.get(self.block_bytes as usize..).unwrap_or_default();
        let pieces = chain.iter().zip(next).zip(rest.chunks(room as usize)).map(|((&block, next), piece)| {
            let mut content = next.to_be_bytes().to_vec();
            content.extend_from_slice(piece);
            content.resize(self.block_bytes as usize, 0);
            (block, content)
        });
        let pieces = pieces.collect();
        bytes.truncate(self.extent as usize);
        Encoded { head: bytes, pieces, rest: Vec::new() }
    }

    /// The bytes in block 0, and those of the second file.
    fn encode_v1(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut e = Encoder::new(ByteOrder::Big);
        e.u64(0);
        e.u64(self.block_bytes);
        e.u64(self.counter);
        e.root(OBJECT, 1);
        e.u64(self.blocks);
        e.start("Block", 1);
        e.u32(self.files.len() as u32);
        for file in &self.files {
            e.string(&file.name);
            file.index.encode_block(&mut e);
            e.u64(file.len);
        }
        e.end();
        self.free.encode_block(&mut e);
        e.end();
        let mut head = e.into_bytes();
        let len = head.len() as u64;
        head[..8].copy_from_slice(&len.to_be_bytes());
        self.extent = len.min(self.block_bytes);
        let rest = head.split_off(self.extent as usize);
        (head, rest)
    }

    /// The header with the CRCs of the blocks as its end; fields that depend on its place are zero.
    fn body(&self) -> Vec<u8> {
        let mut e = Encoder::new(ByteOrder::Big);
        e.u64(0);
        e.u64(0);
        e.u64(self.counter);
        e.u32(2);
        e.u32(0);
        e.u64(0);
        e.u64(self.block_bytes);
        e.u64(self.blocks);
        e.bool(self.checksums.is_some());
        e.bool(self.marked);
        e.bytes(&[0; 6]);
        e.root(OBJECT, 2);
        e.start("Block", 1);
        e.u32(self.files.len() as u32);
        for file in &self.files {
            e.string(&file.name);
            e.u64(file.len);
            e.bool(file.nested);
        }
        e.end();
        e.end();
        self.files.iter().for_each(|file| file.index.encode(&mut e));
        self.free.encode(&mut e);
        let checksums = self.checksums.as_deref().unwrap_or_default();
        e.u64(checksums.len() as u64);
        checksums.iter().for_each(|&crc| e.u32(crc));
        e.into_bytes()
    }
}

fn decoder(source: &dyn ReadAt, position: u64) -> Result<Decoder<'_>> {
    Decoder::new(source, position, ByteOrder::Big, PLACE)
}

fn block_bytes(d: &mut Decoder<'_>) -> Result<u64> {
    let start = d.position();
    let bytes = d.u64("block size")?;
    if bytes < MIN_BLOCK_BYTES || bytes > i64::MAX as u64 {
        return Err(d.error_at(start, format!("a block size of {bytes} bytes, at least {MIN_BLOCK_BYTES} expected")));
    }
    Ok(bytes)
}

/// Refuses a number with which offsets would exceed 2^63 - 1.
fn blocks(d: &mut Decoder<'_>, block_bytes: u64) -> Result<u64> {
    let start = d.position();
    let blocks = d.u64("number of blocks")?;
    if blocks == 0 || blocks.checked_mul(block_bytes).is_none_or(|bytes| bytes > i64::MAX as u64) {
        return Err(d.error_at(start, format!("{blocks} blocks of {block_bytes} bytes")));
    }
    Ok(blocks)
}

fn name(d: &mut Decoder<'_>) -> Result<String> {
    let start = d.position();
    let name: BString = d.string("file name")?;
    String::from_utf8(name.into()).map_err(|_| d.error_at(start, "the name of a file is not UTF-8"))
}

/// Reads a list: the number of items, then the items of `bytes` bytes each.
fn numbers<'a, T>(
    d: &mut Decoder<'a>,
    what: &str,
    bytes: u64,
    read: fn(&mut Decoder<'a>, &str) -> Result<T>,
) -> Result<Vec<T>> {
    (0..count(d, what, bytes)?).map(|_| read(d, what)).collect()
}

/// Continuation blocks of a header of `len` bytes, from `first` on, by their links.
fn read_chain(file: &dyn ReadAt, first: u64, len: u64, block_bytes: u64) -> Result<Vec<u64>> {
    let wanted = len.saturating_sub(block_bytes).div_ceil(block_bytes - LINK_BYTES);
    let file_len = file.len()?;
    let mut chain = Vec::new();
    let (mut next, mut link_at) = (first, FIRST_LINK_AT);
    while (chain.len() as u64) < wanted {
        if next == 0 || next >= file_len / block_bytes {
            let message = format!(
                "the continuation of the header is broken: found block {next} of {block_bytes} bytes after {} of {wanted} \
                 blocks, in a file of {file_len} bytes",
                chain.len()
            );
            return Err(Error::format(message).context(Context::offset(PLACE, link_at)));
        }
        chain.push(next);
        link_at = next * block_bytes;
        next = u64::from_be_bytes(read_array(file, link_at)?);
    }
    match chain.last() {
        // a chain that comes back to itself has no last block
        Some(last) if next != 0 => {
            let message = format!("after the last of {wanted} continuation blocks, {last}, comes block {next}");
            Err(Error::format(message).context(Context::offset(PLACE, link_at)))
        }
        _ => Ok(chain),
    }
}

/// The bytes of a header as one contiguous file, without the links.
#[derive(Debug)]
struct Logical<'a> {
    file: &'a dyn ReadAt,
    block_bytes: u64,
    len: u64,
    rest: Rest<'a>,
}

#[derive(Debug)]
enum Rest<'a> {
    None,
    File(Arc<dyn ReadAt>),
    Blocks(&'a [u64]),
}

impl Logical<'_> {
    /// CRC of the header, with zeros in place of the CRC itself.
    fn crc(&self) -> Result<u32> {
        let mut crc = Crc::new();
        let mut part = [0; 1 << 14];
        let mut position = 0;
        while position < self.len {
            let count = (self.len - position).min(part.len() as u64);
            let part = &mut part[..count as usize];
            self.read_at(position, part)?;
            if position == 0 {
                part[CRC_AT as usize..][..4].fill(0);
            }
            crc.update(part);
            position += count;
        }
        Ok(crc.finish())
    }
}

impl ReadAt for Logical<'_> {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, mut offset: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let (file, at, room): (&dyn ReadAt, u64, u64) = match (offset.checked_sub(self.block_bytes), &self.rest) {
                (None, _) => (self.file, offset, self.block_bytes - offset),
                (Some(behind), Rest::File(file)) => (file, behind, u64::MAX),
                (Some(behind), Rest::Blocks(chain)) => {
                    let room = self.block_bytes - LINK_BYTES;
                    let (piece, within) = (behind / room, behind % room);
                    let block =
                        chain.get(piece as usize).ok_or_else(|| past_end(offset, out.len() as u64, self.len))?;
                    (self.file, block * self.block_bytes + LINK_BYTES + within, room - within)
                }
                (Some(_), Rest::None) => return Err(past_end(offset, out.len() as u64, self.block_bytes)),
            };
            let (part, others) = out.split_at_mut(room.min(out.len() as u64) as usize);
            file.read_at(at, part)?;
            offset += part.len() as u64;
            out = others;
        }
        Ok(())
    }
}
