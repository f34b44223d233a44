//! Object headers: the messages that describe a group, a dataset or a committed type.
//! HDF5 File Format Specification 3.0, section IV.A.
//!
//! Version 1 is a prefix of 16 bytes and a block of messages; version 2 begins with `OHDR`, its
//! further blocks with `OCHK`, and each block ends with a checksum. A message of kind
//! [`CONTINUATION`] names a further block.

use crate::bytes::Bytes;
use crate::error::{Error, Result, Within};
use crate::file::File;
use crate::walk::Walk;

pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const FILTERS: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const SHARED_TABLE: u16 = 0x0f;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    pub(crate) const REFERENCE_COUNT: u16 = 0x16;
    pub(crate) const CACHE_IMAGE: u16 = 0x18;
}

const STRUCTURE: &str = "object header";
const BLOCK: &str = "block of an object header";

/// Message that says where the data of this message is.
const SHARED: u8 = 1 << 1;
/// Readers that do not know the kind of the message must not open the object.
const MUST_BE_KNOWN: u8 = 1 << 7;

const KNOWN: std::ops::RangeInclusive<u16> = 0..=0x18;

#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) address: u64,
    /// Number of hard links to the object.
    pub(crate) links: u32,
    blocks: Vec<Block>,
    messages: Vec<Found>,
    pub(crate) damage: Vec<Error>,
}

#[derive(Debug)]
struct Block {
    address: u64,
    bytes: Vec<u8>,
}

/// Place of a message in `Header::blocks`.
#[derive(Debug)]
struct Found {
    kind: u16,
    flags: u8,
    order: Option<u16>,
    block: usize,
    at: usize,
    len: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    /// Creation order, of attributes in a header that tracks it.
    pub(crate) order: Option<u16>,
    /// The data are elsewhere: see `shared.rs`.
    pub(crate) is_shared: bool,
    pub(crate) data: Bytes<'a>,
}

impl Header {
    /// Damage after the first block is in `damage`; `Damaged` if that block cannot be read;
    /// `Unsupported` for an unknown version or message.
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let mut walk = file.walk()?;
        let (mut header, version, plain) = file.retried(|| Self::first(file, address))?;
        walk.enter(STRUCTURE, address, header.blocks[0].bytes.len() as u64)?;
        let count = plain.count;
        header.scan(file, version, plain)?;
        let mut next = 0;
        // continuations are found while further blocks are scanned
        while let Some(found) = header.messages.get(next) {
            if found.kind == kind::CONTINUATION {
                let message = header.message(file, next);
                if let Err(error) = header.follow(file, &mut walk, version, plain, message_target(message.data.clone()))
                {
                    header.damage.push(error);
                }
            }
            next += 1;
        }
        if let Some(count) = count.filter(|&count| count != header.messages.len()) {
            let found = header.messages.len();
            header.damage.push(
                Error::damaged(format!("{found} messages were found, expected {count}"))
                    .within(format_args!("{STRUCTURE} at address {address}")),
            );
        }
        Ok(header)
    }

    fn first(file: &File, address: u64) -> Result<(Self, u8, Plain)> {
        let prefix = file.read(STRUCTURE, address, 16)?;
        let mut fields = file.bytes(STRUCTURE, address, &prefix);
        let header = |links, start, bytes| Header {
            address,
            links,
            blocks: vec![Block { address: start, bytes }],
            messages: Vec::new(),
            damage: Vec::new(),
        };
        if !prefix.starts_with(b"OHDR") {
            if prefix.first() == Some(&0) {
                return Err(fields.error("the object has no header here"));
            }
            fields.version(&[1])?;
            fields.skip(1)?;
            let count = usize::from(fields.u16()?);
            let links = fields.u32()?;
            let bytes = u64::from(fields.u32()?);
            let block = file.read(STRUCTURE, address + 16, bytes)?;
            return Ok((header(links, address + 16, block), 1, Plain { count: Some(count), has_order: false }));
        }
        fields.skip(4)?;
        fields.version(&[2])?;
        let flags = fields.u8()?;
        let optional = if flags & 1 << 5 == 0 { 0 } else { 16 } + if flags & 1 << 4 == 0 { 0 } else { 4 };
        let size_bytes = 1 << (flags & 3);
        let at = 6 + optional + size_bytes;
        let start = file.read(STRUCTURE, address, at)?;
        let mut fields = file.bytes(STRUCTURE, address, &start);
        fields.skip(6 + optional as usize)?;
        let size = fields.number(size_bytes as usize)?;
        let all = size.checked_add(at + 4).ok_or_else(|| fields.error(format!("{size} bytes of messages")))?;
        let mut sealed = file.sealed(STRUCTURE, address, all)?;
        sealed.truncate(sealed.len() - 4);
        let bytes = sealed.split_off(at as usize);
        Ok((header(1, address + at, bytes), 2, Plain { count: None, has_order: flags & 1 << 2 != 0 }))
    }

    fn follow(
        &mut self,
        file: &File,
        walk: &mut Walk,
        version: u8,
        plain: Plain,
        target: Result<(u64, u64)>,
    ) -> Result<()> {
        let (address, bytes) = target?;
        walk.enter(BLOCK, address, bytes)?;
        let block = if version == 1 {
            Block { address, bytes: file.read(BLOCK, address, bytes)? }
        } else {
            let mut sealed = file.sealed(BLOCK, address, bytes)?;
            file.bytes(BLOCK, address, &sealed).signature(b"OCHK")?;
            sealed.truncate(sealed.len().saturating_sub(4));
            Block { address: address + 4, bytes: sealed.split_off(4.min(sealed.len())) }
        };
        self.blocks.push(block);
        self.scan(file, version, plain)
    }

    /// Finds the messages in the last block.
    fn scan(&mut self, file: &File, version: u8, plain: Plain) -> Result<()> {
        let number = self.blocks.len() - 1;
        let block = &self.blocks[number];
        let mut fields = file.bytes(BLOCK, block.address, &block.bytes);
        let head = match version {
            1 => 8,
            _ if plain.has_order => 6,
            _ => 4,
        };
        // bytes too few for a head are a gap
        while fields.remaining() >= head {
            let (kind, len, flags) = if version == 1 {
                let (kind, len, flags) = (fields.u16()?, fields.u16()?, fields.u8()?);
                fields.skip(3)?;
                (kind, len, flags)
            } else {
                (u16::from(fields.u8()?), fields.u16()?, fields.u8()?)
            };
            let order = if version == 2 && plain.has_order { Some(fields.u16()?) } else { None };
            if flags & MUST_BE_KNOWN != 0 && !KNOWN.contains(&kind) {
                return Err(
                    fields.unsupported(format!("a message of the unknown kind {kind}, which readers must know"))
                );
            }
            let at = fields.position();
            fields.skip(usize::from(len))?;
            self.messages.push(Found { kind, flags, order, block: number, at, len: usize::from(len) });
        }
        Ok(())
    }

    fn message<'a>(&'a self, file: &File, number: usize) -> Message<'a> {
        let found = &self.messages[number];
        let block = &self.blocks[found.block];
        let data = &block.bytes[found.at..found.at + found.len];
        Message {
            kind: found.kind,
            order: found.order,
            is_shared: found.flags & SHARED != 0,
            data: file.bytes("message", block.address + found.at as u64, data),
        }
    }

    /// All messages, in the order of the file.
    pub(crate) fn messages<'a>(&'a self, file: &'a File) -> impl Iterator<Item = Message<'a>> {
        (0..self.messages.len()).map(|number| self.message(file, number))
    }

    pub(crate) fn find<'a>(&'a self, file: &'a File, kind: u16) -> Option<Message<'a>> {
        self.messages(file).find(|message| message.kind == kind)
    }

    /// Bytes of all blocks that were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes.len() as u64).sum()
    }

    /// `Damaged` if the message that holds the number of hard links is too short.
    pub(crate) fn link_count(&self, file: &File) -> Result<u32> {
        let Some(mut message) = self.find(file, kind::REFERENCE_COUNT) else { return Ok(self.links) };
        message.data.version(&[0])?;
        message.data.u32()
    }
}

/// Properties of a header that hold for all of its blocks.
#[derive(Debug, Clone, Copy)]
struct Plain {
    /// Number of all messages; only version 1 has it.
    count: Option<usize>,
    has_order: bool,
}

/// Address and bytes of a further block.
fn message_target(mut data: Bytes<'_>) -> Result<(u64, u64)> {
    Ok((data.defined_address("a further block")?, data.length()?))
}

/// Opens the header of an object, with its place in errors.
pub(crate) fn open(file: &File, address: u64) -> Result<Header> {
    Header::read(file, address).within(|| format!("object at address {address}"))
}
