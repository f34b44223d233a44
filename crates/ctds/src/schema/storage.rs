//! Rewrites `table.dat` for the same table with its managers' files moved into or out of a
//! container. formats/table.md 2.4.

use super::column_set::{ColumnSet, StorageOption};
use super::length::{LENGTH_OFFSET, add_to_length};
use super::{Body, TableDat};
use crate::aipsio::Encoder;
use crate::error::Result;
use crate::value::ByteOrder;

/// `table.dat` as casacore would have written it with another storage option; `None` keeps the
/// stored block size.
///
/// The version of the column set also changes: -3 in containers and for tables of more than 2³¹
/// rows, else -2. Tables without data of their own have no column set and stay as they are.
pub fn with_storage(bytes: &[u8], storage: StorageOption, block_bytes: Option<u32>) -> Result<Vec<u8>> {
    let Body::Plain(plain) = TableDat::decode(&bytes)?.body else { return Ok(bytes.to_vec()) };
    let set = &plain.1;
    let mut head = Encoder::new(ByteOrder::Big);
    ColumnSet::encode_head(&mut head, set.rows, storage, block_bytes.or(set.block_bytes));
    let head = head.into_bytes();
    let slice = |range: std::ops::Range<u64>| &bytes[range.start as usize..range.end as usize];
    let mut out = Vec::with_capacity(bytes.len() + head.len());
    out.extend_from_slice(slice(0..set.head.start));
    out.extend_from_slice(&head);
    // version 1 sorts the columns by name, the others do not
    let first = set.columns.iter().map(|column| column.bytes.start).min();
    let last = set.columns.iter().map(|column| column.bytes.end).max();
    let (first, last) = (first.unwrap_or(set.head.end), last.unwrap_or(set.head.end));
    out.extend_from_slice(slice(set.head.end..first));
    set.columns.iter().for_each(|column| out.extend_from_slice(slice(column.bytes.clone())));
    out.extend_from_slice(slice(last..bytes.len() as u64));
    add_to_length(&mut out, LENGTH_OFFSET, (head.len() as u64).wrapping_sub(set.head.end - set.head.start) as u32);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// formats/table.md 2.8: one Int column, one row.
    fn sample() -> Vec<u8> {
        let empty =
            b"\0\0\0\x35\0\0\0\x0bTableRecord\0\0\0\x01\0\0\0\x1a\0\0\0\x0aRecordDesc\0\0\0\x02\0\0\0\0\0\0\0\x01";
        let manager = b"\0\0\0\x0dStandardStMan";
        [
            b"\xbe\xbe\xbe\xbe\0\0\x01\xe3\0\0\0\x05Table\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\0\0\x0aPlainTable".as_slice(),
            b"\0\0\x01\x2c\0\0\0\x09TableDesc\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0",
            empty,
            empty,
            b"\0\0\0\x01\0\0\0\x01\0\0\0\x19ScalarColumnDesc<Int     \0\0\0\x01\0\0\0\x01X\0\0\0\0",
            manager,
            manager,
            b"\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0",
            empty,
            b"\0\0\0\x01\0\0\0\0",
            b"\xff\xff\xff\xfe\0\0\0\x01\0\0\0\x01\0\0\0\x01",
            manager,
            b"\0\0\0\0\0\0\0\x02\0\0\0\x01X\0\0\0\x01\0\0\0\0",
            b"\0\0\0\x56\xbe\xbe\xbe\xbe\0\0\0\x52\0\0\0\x03SSM\0\0\0\x02",
            manager,
            b"\0\0\0\x19\0\0\0\x05Block\0\0\0\x01\0\0\0\x01\0\0\0\0",
            b"\0\0\0\x19\0\0\0\x05Block\0\0\0\x01\0\0\0\x01\0\0\0\0",
        ]
        .concat()
    }

    fn storage(bytes: &[u8]) -> (StorageOption, Option<u32>) {
        let Body::Plain(plain) = TableDat::decode(&bytes).unwrap().body else { panic!("a plain table") };
        (plain.1.storage, plain.1.block_bytes)
    }

    #[test]
    fn into_a_container_and_back() {
        let plain = sample();
        let packed = with_storage(&plain, StorageOption::MultiHdf5, Some(4096)).unwrap();
        assert_eq!(packed.len(), plain.len() + 12);
        assert_eq!(packed[0x157..0x16b], *b"\xff\xff\xff\xfd\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\x10\0");
        assert_eq!(storage(&packed), (StorageOption::MultiHdf5, Some(4096)));
        let other = with_storage(&packed, StorageOption::MultiFile, Some(512)).unwrap();
        assert_eq!(storage(&other), (StorageOption::MultiFile, Some(512)));
        assert_eq!(with_storage(&other, StorageOption::SepFile, None).unwrap(), plain);
    }

    #[test]
    fn many_rows_need_version_3() {
        let packed = with_storage(&sample(), StorageOption::MultiFile, Some(512)).unwrap();
        let mut many = packed.clone();
        many[0x157 + 7] = 1;
        let plain = with_storage(&many, StorageOption::SepFile, None).unwrap();
        assert_eq!(plain.len(), many.len());
        assert_eq!(storage(&plain), (StorageOption::SepFile, Some(512)));
    }

    #[test]
    fn version_1_gets_the_order_of_the_description() {
        // version 1 is the number of rows, and its columns are sorted by name
        let plain = sample();
        let old = [&plain[..0x157], &1i32.to_be_bytes(), &plain[0x15f..]].concat();
        let mut old = old;
        old[4..8].copy_from_slice(&(0x1e3u32 - 4).to_be_bytes());
        assert_eq!(with_storage(&old, StorageOption::SepFile, None).unwrap(), plain);
        assert!(with_storage(&old[..old.len() - 1], StorageOption::SepFile, None).is_err());
    }
}
