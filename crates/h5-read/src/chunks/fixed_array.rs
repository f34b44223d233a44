//! Chunks in a fixed array, of datasets without unlimited axes. HDF5 File Format Specification 3.0,
//! section VII.B.
//!
//! The header `FAHD` has the number of entries and the address of the only data block, `FADB`. A
//! block with more entries than a page can have is paged: its head has a bit for each page, set
//! once the page was written, and the pages follow, each with a checksum.

use std::ops::Range;

use super::array::{client, decode, is_set, is_within, owner, pages};
use super::numbers::Numbers;
use super::{Entry, Visit};
use crate::bytes::Bytes;
use crate::error::{Error, Result};

const HEADER: &str = "fixed array";
const BLOCK: &str = "data block of a fixed array";
const PAGE: &str = "page of a fixed array";

pub(super) fn visit(visit: &mut Visit<'_, '_>, address: u64) -> Result<()> {
    let (chunks, file) = (visit.chunks, visit.chunks.file);
    let numbers = Numbers::new(chunks)?;
    let sizes = file.sizes();
    let sealed = file.sealed(HEADER, address, (12 + sizes.address + sizes.length) as u64)?;
    let mut fields = file.bytes(HEADER, address, &sealed);
    fields.signature(b"FAHD")?;
    fields.version(&[0])?;
    client(&mut fields, chunks.has_filters)?;
    let entry_bytes = usize::from(fields.u8()?);
    let entry = Entry::new(chunks, HEADER, entry_bytes, 0)?;
    let page_bits = u32::from(fields.u8()?);
    let entries = fields.length()?;
    if numbers.all != Some(entries) {
        let chunks = numbers.all.map_or("without limit".to_owned(), |all| all.to_string());
        return Err(fields.error(format!("the array has {entries} entries, the dataset {chunks}")));
    }
    let Some(block) = fields.address()? else { return Ok(()) };
    let array = Array { header: address, block, entry, entry_bytes: entry_bytes as u64, entries };
    let wanted = numbers.range(visit.window)?;
    // one page for the whole is not a page
    match 1u64.checked_shl(page_bits).filter(|&page| page < entries) {
        None => {
            let bytes = array.head_bytes(visit)?.checked_add(array.bytes(entries)?);
            let sealed = file.sealed(BLOCK, block, bytes.ok_or_else(|| array.beyond())?)?;
            let mut fields = array.head(visit, &sealed)?;
            let found = decode(entry, array.entry_bytes, &mut fields, 0..entries, &wanted)?;
            visit.pass(&numbers, found.into_iter());
            Ok(())
        }
        Some(page) => array.pages(visit, &numbers, page, &wanted),
    }
}

struct Array {
    header: u64,
    block: u64,
    entry: Entry,
    entry_bytes: u64,
    entries: u64,
}

impl Array {
    fn beyond(&self) -> Error {
        Error::damaged(format!("an array of {} entries of {} bytes is too large", self.entries, self.entry_bytes))
    }

    fn bytes(&self, entries: u64) -> Result<u64> {
        entries.checked_mul(self.entry_bytes).ok_or_else(|| self.beyond())
    }

    /// Bytes of the head of the data block and its checksum, without the bits of pages.
    fn head_bytes(&self, visit: &Visit<'_, '_>) -> Result<u64> {
        Ok(10 + visit.chunks.file.sizes().address as u64)
    }

    fn head<'a>(&self, visit: &Visit<'_, '_>, sealed: &'a [u8]) -> Result<Bytes<'a>> {
        let mut fields = visit.chunks.file.bytes(BLOCK, self.block, sealed);
        fields.signature(b"FADB")?;
        fields.version(&[0])?;
        client(&mut fields, visit.chunks.has_filters)?;
        owner(&mut fields, self.header)?;
        Ok(fields)
    }

    fn pages(&self, visit: &mut Visit<'_, '_>, numbers: &Numbers, page: u64, wanted: &Range<u64>) -> Result<()> {
        let file = visit.chunks.file;
        let bits = self.entries.div_ceil(page).div_ceil(8);
        let head_bytes = self.head_bytes(visit)?.checked_add(bits).ok_or_else(|| self.beyond())?;
        let sealed = file.sealed(BLOCK, self.block, head_bytes)?;
        let mut fields = self.head(visit, &sealed)?;
        let written = fields.take(bits as usize)?;
        let page_bytes = self.bytes(page)?.checked_add(4).ok_or_else(|| self.beyond())?;
        let first = self.block.checked_add(head_bytes);
        for (number, range) in pages(self.entries, page, wanted) {
            if !is_set(written, number) {
                continue;
            }
            let address = number.checked_mul(page_bytes).zip(first).and_then(|(at, first)| at.checked_add(first));
            let address = address.ok_or_else(|| self.beyond())?;
            // all further pages are beyond the end as well
            is_within(visit, PAGE, address)?;
            let read = || -> Result<_> {
                let sealed = file.sealed(PAGE, address, self.bytes(range.end - range.start)? + 4)?;
                decode(self.entry, self.entry_bytes, &mut file.bytes(PAGE, address, &sealed), range, wanted)
            };
            match read() {
                Ok(found) => visit.pass(numbers, found.into_iter()),
                Err(error) => visit.note(Err(error)),
            }
        }
        Ok(())
    }
}
