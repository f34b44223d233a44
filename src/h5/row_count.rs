//! The number of rows in the header of a dataset, which a live file counts up without libhdf5. HDF5
//! File Format Specification 3.0, sections IV.A.1.b (object header, version 2) and IV.A.2.b
//! (dataspace message, version 2).
//!
//! | bytes        | field                                                                                        |
//! |--------------|----------------------------------------------------------------------------------------------|
//! | 4            | signature `OHDR`                                                                             |
//! | 1            | version, 2                                                                                   |
//! | 1            | flags: bits 0 and 1, log2 of the size of the next field but two; 2, messages have an order; 4 and 5, the next two |
//! | 0 or 16      | times (flag 5)                                                                               |
//! | 0 or 4       | limits for attributes (flag 4)                                                               |
//! | 1, 2, 4 or 8 | bytes of the messages                                                                        |
//! | …            | messages: type (1 byte), bytes (2), flags (1), their order (0 or 2), and what they say       |
//! | 4            | checksum of all before                                                                       |
//!
//! A dataspace has 4 bytes (version, number of axes, flags, type), and 8 for each extent, slowest
//! axis first.

use std::fs;
use std::os::unix::fs::FileExt;

use h5_read::lookup3;

use crate::error::Result;

/// A killed process writes a header within one page whole or not at all; libhdf5 changes others.
const PAGE: u64 = 4096;
/// Headers of live files have about 300 bytes.
const MAX_BYTES: u64 = 1024;
/// Message with the extents.
const DATASPACE: u8 = 1;

/// The header as it is in the file, and where its number of rows is.
#[derive(Debug)]
pub(super) struct RowCount {
    address: u64,
    /// Checksum included.
    header: Vec<u8>,
    /// Offset of the extent along the first axis.
    at: usize,
}

impl RowCount {
    /// `None` unless the header is intact, has these extents, slowest first, and can be changed.
    pub(super) fn read(file: &fs::File, address: u64, extents: &[u64]) -> Result<Option<Self>> {
        let mut header = vec![0; MAX_BYTES.min(PAGE - address % PAGE) as usize];
        let mut len = 0;
        while len < header.len() {
            match file.read_at(&mut header[len..], address + len as u64)? {
                0 => break,
                read => len += read,
            }
        }
        header.truncate(len);
        Ok(find(&header, extents).map(|(at, len)| {
            header.truncate(len);
            header.shrink_to_fit();
            RowCount { address, header, at }
        }))
    }

    pub(super) fn rows(&self) -> u64 {
        u64_at(&self.header, self.at).unwrap_or_default()
    }

    pub(super) fn write(&mut self, file: &fs::File, rows: u64) -> Result<()> {
        self.header[self.at..self.at + 8].copy_from_slice(&rows.to_le_bytes());
        let end = self.header.len() - 4;
        let checksum = lookup3(&self.header[..end]);
        self.header[end..].copy_from_slice(&checksum.to_le_bytes());
        Ok(file.write_all_at(&self.header, self.address)?)
    }
}

/// Offset of the first extent, and size of the header.
fn find(header: &[u8], extents: &[u64]) -> Option<(usize, usize)> {
    if !header.starts_with(b"OHDR\x02") {
        return None;
    }
    let flags = *header.get(5)?;
    let mut at = 6 + if flags & 1 << 5 == 0 { 0 } else { 16 } + if flags & 1 << 4 == 0 { 0 } else { 4 };
    let size_bytes = 1 << (flags & 3);
    let mut size = [0; 8];
    size[..size_bytes].copy_from_slice(header.get(at..at + size_bytes)?);
    at += size_bytes;
    let end = at.checked_add(usize::try_from(u64::from_le_bytes(size)).ok()?)?;
    let messages = header.get(..end)?;
    if header.get(end..end.checked_add(4)?)? != lookup3(messages).to_le_bytes() {
        return None;
    }
    let head = if flags & 1 << 2 == 0 { 4 } else { 6 };
    let mut expected = vec![2, extents.len() as u8, 1, 1];
    expected.extend(extents.iter().flat_map(|extent| extent.to_le_bytes()));
    while at + head <= end {
        let bytes = usize::from(u16::from_le_bytes([messages[at + 1], messages[at + 2]]));
        let message = messages.get(at + head..at + head + bytes)?;
        // followed by the largest extents
        if messages[at] == DATASPACE && bytes == 4 + 16 * extents.len() && message.starts_with(&expected) {
            return Some((at + head + 4, end + 4));
        }
        at += head + bytes;
    }
    None
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h5::{Element, File, LiveSpec};
    use crate::value::{DataType, Shape};

    /// Cells of 2 x 3 elements without rows, and the offset of the header.
    fn file(directory: &tempfile::TempDir) -> (std::path::PathBuf, u64) {
        let path = directory.path().join("live.h5");
        let file = File::create_for_live(&path).unwrap();
        let (element, cell) = (Element::Number(DataType::Int), Shape::from([3, 2]));
        file.root().unwrap().create_live("x", &LiveSpec { element, cell: &cell, chunk_rows: 4 }).unwrap();
        let root = file.root().unwrap();
        let address = root.dataset("x").unwrap().library().unwrap().address().unwrap();
        drop(root);
        file.close().unwrap();
        (path, address)
    }

    #[test]
    fn libhdf5_reads_the_rows_that_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let (path, address) = file(&directory);
        let bytes = fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut count = RowCount::read(&bytes, address, &[0, 2, 3]).unwrap().unwrap();
        assert_eq!(count.rows(), 0);
        count.write(&bytes, 7).unwrap();
        assert_eq!(count.rows(), 7);
        let found = File::open(&path).unwrap().root().unwrap().dataset("x").unwrap().shape().unwrap();
        assert_eq!(found, Shape::from([3, 2, 7]));
        assert_eq!(RowCount::read(&bytes, address, &[7, 2, 3]).unwrap().unwrap().header, count.header);
    }

    /// libhdf5 changes every other header.
    #[test]
    fn other_headers_are_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, address) = file(&directory);
        let bytes = fs::File::options().read(true).write(true).open(&path).unwrap();
        let read = |address, extents: &[u64]| RowCount::read(&bytes, address, extents).unwrap();
        for extents in [&[1, 2, 3][..], &[0, 3, 2], &[0, 2], &[0, 2, 3, 1], &[]] {
            assert!(read(address, extents).is_none(), "{extents:?}");
        }
        let end = bytes.metadata().unwrap().len();
        for address in [0, address - 8, address + 8, end - 6, end, end + 5000, 1 << 40] {
            assert!(read(address, &[0, 2, 3]).is_none(), "{address}");
        }
        let header = read(address, &[0, 2, 3]).unwrap().header;
        for at in 0..header.len() {
            let mut changed = header.clone();
            changed[at] ^= 1 << (at % 8);
            bytes.write_all_at(&changed, address).unwrap();
            assert!(read(address, &[0, 2, 3]).is_none(), "byte {at}");
            assert!(find(&header[..at], &[0, 2, 3]).is_none(), "{at} bytes");
        }
    }
}
