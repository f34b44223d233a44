//! Changes the string heap of a StandardStMan. formats/stman.md 1.3.

use super::strings::{HEADER_BYTES, Header, INLINE_BYTES, Item};
use crate::error::{Error, Result};
use crate::stman::bucket::{BucketsMut, link};

/// A longer item begins in the next bucket if fewer bytes are free.
const WORTH_FILLING: u32 = 50;

/// The bucket to which strings are appended.
#[derive(Debug, Default)]
pub(super) struct Heap {
    pub(super) last: Option<u32>,
}

impl Heap {
    /// Overwrites `old` if `bytes` fit there, else appends; frees the rest of `old`.
    pub(super) fn replace(&mut self, buckets: &mut BucketsMut, old: Item, bytes: &[u8]) -> Result<Item> {
        let len_bytes = i32::try_from(bytes.len()).map_err(|_| {
            Error::limit(format!("the strings of a cell have {} bytes, the limit is 2^31 - 1", bytes.len()))
        })?;
        if len_bytes == 0 || len_bytes > old.len_bytes {
            self.remove(buckets, old)?;
            return if len_bytes == 0 { Ok(Item::ABSENT) } else { self.append(buckets, bytes) };
        }
        let (bucket, offset) = overwrite(buckets, old, bytes)?;
        let rest = Item { bucket, offset, len_bytes: old.len_bytes - len_bytes };
        self.remove(buckets, rest)?;
        Ok(Item { len_bytes, ..old })
    }

    /// Stores a string too long for a cell; an empty one only frees `old`, the cell's content.
    pub(super) fn replace_scalar(&mut self, buckets: &mut BucketsMut, old: Item, bytes: &[u8]) -> Result<Item> {
        let in_heap = old.len_bytes > INLINE_BYTES as i32;
        self.replace(buckets, if in_heap { old } else { Item::ABSENT }, bytes)
    }

    fn append(&mut self, buckets: &mut BucketsMut, bytes: &[u8]) -> Result<Item> {
        let capacity = capacity(buckets);
        let fresh = Header { used: 0, deleted: capacity, next: -1 };
        let room = |header: &Header| {
            let left = capacity - header.used;
            left >= WORTH_FILLING || bytes.len() <= left as usize
        };
        let last = match self.last {
            Some(last) => Some((last, Header::read(buckets.file(), buckets.offset(last))?)),
            None => None,
        };
        let (mut bucket, mut header) = match last.filter(|(_, header)| room(header)) {
            Some(last) => last,
            None => (buckets.take()?, fresh),
        };
        let item = Item { bucket, offset: header.used, len_bytes: bytes.len() as i32 };
        let mut rest = bytes;
        loop {
            let (part, behind) = rest.split_at(rest.len().min((capacity - header.used) as usize));
            let data = buckets.offset(bucket) + HEADER_BYTES + u64::from(header.used);
            buckets.file().write(data, part)?;
            header.used += part.len() as u32;
            header.deleted -= part.len() as u32;
            rest = behind;
            let next = if rest.is_empty() { None } else { Some(buckets.take()?) };
            header.next = link(next);
            buckets.file().write(buckets.offset(bucket), &header.encode())?;
            let Some(next) = next else { break };
            (bucket, header) = (next, fresh);
        }
        self.last = Some(bucket);
        Ok(item)
    }

    /// Frees the bytes of an item, and buckets that hold nothing else.
    pub(super) fn remove(&mut self, buckets: &mut BucketsMut, item: Item) -> Result<()> {
        let Item { mut bucket, mut offset, .. } = item;
        let mut left = item.len_bytes as u32;
        while left > 0 {
            let start = buckets.offset(bucket);
            let mut header = Header::read(buckets.file(), start)?;
            let part = left.min(header.used - offset);
            if offset + part == header.used {
                header.used = offset;
            }
            header.deleted += part;
            left -= part;
            let next = header.next;
            if left > 0 {
                header.next = -1;
            }
            if header.deleted == capacity(buckets) {
                buckets.give(bucket)?;
                self.last = self.last.filter(|&last| last != bucket);
            } else {
                buckets.file().write(start, &header.encode())?;
            }
            (bucket, offset) = (next as u32, 0);
        }
        Ok(())
    }
}

/// Overwrites the first bytes; returns the bucket with their end, and the offset there in its data.
fn overwrite(buckets: &BucketsMut, item: Item, bytes: &[u8]) -> Result<(u32, u32)> {
    let Item { mut bucket, mut offset, .. } = item;
    let mut rest = bytes;
    loop {
        let start = buckets.offset(bucket);
        let header = Header::read(buckets.file(), start)?;
        let (part, behind) = rest.split_at(rest.len().min((header.used - offset) as usize));
        buckets.file().write(start + HEADER_BYTES + u64::from(offset), part)?;
        offset += part.len() as u32;
        rest = behind;
        if rest.is_empty() {
            return Ok((bucket, offset));
        }
        (bucket, offset) = (header.next as u32, 0);
    }
}

fn capacity(buckets: &BucketsMut) -> u32 {
    buckets.bytes() - HEADER_BYTES as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::MemoryFile;
    use crate::stman::standard::strings::read_fixed;
    use crate::value::{Shape, Values};

    fn item(len: usize, byte: u8) -> Vec<u8> {
        [&(len as u32).to_be_bytes()[..], &vec![byte; len]].concat()
    }

    #[test]
    fn items_grow_shrink_and_go() {
        let mut buckets = BucketsMut::create(Arc::new(MemoryFile::default()), 128).unwrap();
        let mut heap = Heap::default();
        let mut items = [const { (Item::ABSENT, Vec::new()) }; 9];
        for step in 0..3000usize {
            let len = (step * 7919 + step / 5 * 31) % 400;
            let cell = &mut items[step * 5 % 9];
            let bytes = if len.is_multiple_of(11) { Vec::new() } else { item(len, step as u8) };
            cell.0 = heap.replace(&mut buckets, cell.0, &bytes).unwrap();
            cell.1 = bytes;
            for (place, bytes) in &items {
                assert_eq!(place.len_bytes as usize, bytes.len());
                let mut out = Values::new(crate::value::DataType::String);
                read_fixed(place, &buckets.buckets, &Shape::from([1]), None, &mut out).unwrap();
                assert_eq!(out, Values::String(vec![bytes.get(4..).unwrap_or_default().into()]));
            }
        }
        for (place, _) in items {
            heap.remove(&mut buckets, place).unwrap();
        }
        // nothing was lost on the way
        assert_eq!((buckets.free, heap.last), (buckets.buckets.count, None));
    }

    #[test]
    fn where_items_begin() {
        // 112 bytes of data in a bucket
        let mut buckets = BucketsMut::create(Arc::new(MemoryFile::default()), 128).unwrap();
        let mut heap = Heap::default();
        let mut append = |len| {
            let item = heap.replace(&mut buckets, Item::ABSENT, &vec![1; len]).unwrap();
            (item.bucket, item.offset)
        };
        // the second fits exactly, the fourth finds 49 bytes left, the last 62, which are worth
        // filling
        assert_eq!([70, 42, 63, 50, 80].map(&mut append), [(0, 0), (0, 70), (1, 0), (2, 0), (2, 50)]);
    }
}
