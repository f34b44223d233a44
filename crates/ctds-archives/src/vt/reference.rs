//! References to the data of a file or directory, and their binary form: the hash of a block, the
//! data themselves, or a rule that makes them. Spans are lengths in bytes.
//!
//! ```text
//! bsdata of:  bsuint flags    1 INDIRECT, 2 a type follows, 4 flags of the type follow
//!             bsuint span     bytes of data that the reference stands for
//!            [bsuint type]    0 hash, 1 repeated byte, 2 literal, 3 part of another block
//!            [bsuint type flags]
//!             hash:     bsuint kind of hash, the hash
//!             repeated: the byte
//!             literal:  `span` bytes; with INDIRECT all bytes that follow
//!             part:     bsuint offset, a reference
//! ```
//!
//! Bytes after these are for later versions and skipped. With INDIRECT the rest describes a block
//! whose data are references, one after the other; the data of those make up the data of this one.

use std::fmt;
use std::sync::Arc;

use ctds::error::{Error, Result, ResultExt};
use ctds::limits;

use super::hash::{BlockHash, HashKind};
use super::wire::{Cursor, put_data, put_uint};

const INDIRECT: u64 = 1;
const TYPED: u64 = 2;
const TYPE_FLAGS: u64 = 4;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockRef {
    /// A block. Without a `span` it has to be read to know its length.
    Hash {
        hash: BlockHash,
        span: Option<u64>,
    },
    Rle {
        octet: u8,
        span: u64,
    },
    Literal(Arc<[u8]>),
    /// A part of the data that another reference leads to, from byte `offset` on.
    Sub {
        block: Arc<BlockRef>,
        offset: u64,
        span: u64,
    },
    /// The joined data of a list of references; without a `span` the list has to be read.
    Indirect {
        block: Arc<BlockRef>,
        span: Option<u64>,
    },
}

impl BlockRef {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self> {
        Self::decode_at(cursor, 0)
    }

    fn decode_at(cursor: &mut Cursor<'_>, depth: usize) -> Result<Self> {
        limits::depth(depth, "block references")?;
        let place = cursor.place();
        let mut within = Cursor::new(cursor.data()?, "block reference");
        Self::decode_within(&mut within, depth).context(place)
    }

    fn decode_within(cursor: &mut Cursor<'_>, depth: usize) -> Result<Self> {
        let flags = cursor.uint()?;
        if flags & !(INDIRECT | TYPED | TYPE_FLAGS) != 0 {
            return Err(Error::format(format!("the flags of a block reference are {flags:#x}, expected 0 to 7")));
        }
        let span = cursor.uint()?;
        let kind = if flags & TYPED != 0 { cursor.uint()? } else { 0 };
        if flags & TYPE_FLAGS != 0 {
            cursor.uint()?;
        }
        let is_indirect = flags & INDIRECT != 0;
        let block = match kind {
            0 => {
                let kind = HashKind::of_code(cursor.uint()?)?;
                let hash = BlockHash::new(kind, cursor.take(kind.bytes() as u64)?)?;
                BlockRef::Hash { hash, span: (!is_indirect).then_some(span) }
            }
            1 => BlockRef::Rle { octet: cursor.take(1)?[0], span },
            2 if is_indirect => BlockRef::Literal(cursor.rest().into()),
            2 => BlockRef::Literal(cursor.take(span)?.into()),
            3 => {
                let offset = cursor.uint()?;
                let block = Arc::new(Self::decode_at(cursor, depth + 1)?);
                BlockRef::Sub { block, offset, span }
            }
            other => return Err(Error::format(format!("the block type is {other}, expected 0 to 3"))),
        };
        Ok(match is_indirect {
            true => BlockRef::Indirect { block: Arc::new(block), span: Some(span) },
            false => block,
        })
    }

    /// `is_indirect`: the joined data of the references in the block; `span` is that of the data.
    pub(super) fn encode_hash(out: &mut Vec<u8>, hash: &BlockHash, span: u64, is_indirect: bool) {
        let mut inner = Vec::with_capacity(40);
        put_uint(&mut inner, if is_indirect { INDIRECT } else { 0 });
        put_uint(&mut inner, span);
        put_uint(&mut inner, hash.kind().code());
        inner.extend_from_slice(hash.as_bytes());
        put_data(out, &inner);
    }

    pub(super) fn encode_literal(out: &mut Vec<u8>, data: &[u8]) {
        let mut inner = Vec::with_capacity(data.len() + 8);
        put_uint(&mut inner, TYPED);
        put_uint(&mut inner, data.len() as u64);
        put_uint(&mut inner, 2);
        inner.extend_from_slice(data);
        put_data(out, &inner);
    }

    /// `Unsupported` without a span, which the binary form needs, and for a list that is neither a
    /// block nor a literal.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let without_span = || Error::unsupported(format!("the reference {self} does not say how long its data are"));
        let mut inner = Vec::new();
        match self {
            BlockRef::Hash { hash, span } => {
                Self::encode_hash(out, hash, span.ok_or_else(without_span)?, false);
                return Ok(());
            }
            BlockRef::Literal(bytes) => {
                Self::encode_literal(out, bytes);
                return Ok(());
            }
            BlockRef::Rle { octet, span } => {
                [TYPED, *span, 1].into_iter().for_each(|number| put_uint(&mut inner, number));
                inner.push(*octet);
            }
            BlockRef::Sub { block, offset, span } => {
                [TYPED, *span, 3, *offset].into_iter().for_each(|number| put_uint(&mut inner, number));
                block.encode(&mut inner)?;
            }
            BlockRef::Indirect { block, span } => {
                let span = span.ok_or_else(without_span)?;
                match &**block {
                    BlockRef::Hash { hash, .. } => {
                        Self::encode_hash(out, hash, span, true);
                        return Ok(());
                    }
                    BlockRef::Literal(bytes) => {
                        [INDIRECT | TYPED, span, 2].into_iter().for_each(|number| put_uint(&mut inner, number));
                        inner.extend_from_slice(bytes);
                    }
                    other => {
                        return Err(Error::unsupported(format!("the list of references {other} has no binary form")));
                    }
                }
            }
        }
        put_data(out, &inner);
        Ok(())
    }

    /// `None` for a reference that holds or describes its data itself.
    pub(super) fn hash_kind(&self) -> Option<HashKind> {
        match self {
            BlockRef::Hash { hash, .. } => Some(hash.kind()),
            BlockRef::Sub { block, .. } | BlockRef::Indirect { block, .. } => block.hash_kind(),
            BlockRef::Rle { .. } | BlockRef::Literal(_) => None,
        }
    }
}

/// `B{hash:H{sha1:…},span:428}`; equal references have equal text.
impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockRef::Hash { hash, span: Some(span) } => write!(f, "B{{hash:H{{{hash}}},span:{span}}}"),
            BlockRef::Hash { hash, span: None } => write!(f, "B{{hash:H{{{hash}}}}}"),
            BlockRef::Rle { octet, span } => write!(f, "RLE{{span:{span},octet:{octet:02x}}}"),
            BlockRef::Literal(bytes) => write!(f, "LB{{{}}}", ctds::hex::Hex(bytes)),
            BlockRef::Sub { block, offset, span } => write!(f, "SubB{{block:{block},offset:{offset},span:{span}}}"),
            BlockRef::Indirect { block, span: Some(span) } => write!(f, "I{{{span}:{block}}}"),
            BlockRef::Indirect { block, span: None } => write!(f, "I{{{block}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Result<BlockRef> {
        BlockRef::decode(&mut Cursor::new(bytes, "test"))
    }

    #[test]
    fn references_round_trip() {
        let hash = HashKind::Sha1.hash(b"abc");
        let mut out = Vec::new();
        BlockRef::encode_hash(&mut out, &hash, 3, false);
        assert_eq!(decode(&out).unwrap(), BlockRef::Hash { hash, span: Some(3) });
        let mut out = Vec::new();
        BlockRef::encode_hash(&mut out, &hash, 900, true);
        let block = Arc::new(BlockRef::Hash { hash, span: None });
        assert_eq!(decode(&out).unwrap(), BlockRef::Indirect { block, span: Some(900) });
        let mut out = Vec::new();
        BlockRef::encode_literal(&mut out, b"xyz");
        assert_eq!(decode(&out).unwrap(), BlockRef::Literal(b"xyz"[..].into()));
        // bytes for later versions
        out[0] += 1;
        out.push(9);
        assert_eq!(decode(&out).unwrap(), BlockRef::Literal(b"xyz"[..].into()));
    }

    #[test]
    fn unknown_or_incomplete_references_are_refused() {
        for (bytes, message) in [
            (&[2, 8, 0][..], "reference are 0x8"),
            (&[3, 2, 1, 4], "block type is 4"),
            (&[3, 0, 1, 7], "hash type is 7"),
            (&[4, 2, 9, 2, 65], "9 bytes are expected, 1 follow"),
            (&[9, 0], "9 bytes are expected"),
            (&[], "the bytes end in an integer"),
        ] {
            let error = decode(bytes).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let mut out = Vec::new();
        BlockRef::encode_literal(&mut out, b"x");
        for _ in 0..60 {
            let inner = [&[2, 1, 3, 0][..], &out].concat();
            out = Vec::new();
            put_data(&mut out, &inner);
        }
        assert_eq!(decode(&out).unwrap_err().kind(), ctds::ErrorKind::Limit);
    }
}
