//! Chunks in an extensible array, of datasets with one unlimited axis. HDF5 File Format
//! Specification 3.0, section VII.C.
//!
//! The header `EAHD` has the address of the index block `EAIB`, which has the first entries, the
//! addresses of the first data blocks `EADB`, and those of super blocks `EASB`, which have the
//! addresses of further data blocks. Groups of data blocks count from 0; group `n` has `2^(n / 2)`
//! data blocks, each of `2^((n + 1) / 2)` times the least number of entries. The addresses of the
//! first groups are in the index block, those of each later group in its super block.
//!
//! A data block with more entries than a page can have is paged: its head is followed by pages,
//! each with a checksum. Its super block has a bit for each page, set once the page was written.

use std::ops::Range;

use super::array::{client, decode, is_set, is_within, owner, pages};
use super::numbers::Numbers;
use super::{Entry, Visit};
use crate::bytes::Bytes;
use crate::error::{Error, Result};

const HEADER: &str = "extensible array";
const INDEX: &str = "index block of an extensible array";
const SUPER: &str = "super block of an extensible array";
const BLOCK: &str = "data block of an extensible array";
const PAGE: &str = "page of an extensible array";

pub(super) fn visit(visit: &mut Visit<'_, '_>, address: u64) -> Result<()> {
    let numbers = Numbers::new(visit.chunks)?;
    if numbers.all.is_some() {
        return Err(Error::damaged("chunks in an extensible array have no unlimited axis"));
    }
    let Some(array) = Array::read(visit, address)? else { return Ok(()) };
    let wanted = numbers.range(visit.window)?;
    let wanted = wanted.start..wanted.end.min(array.entries);
    array.index_block(visit, &numbers, &wanted)
}

struct Array {
    header: u64,
    index_block: u64,
    entry: Entry,
    entry_bytes: u64,
    /// Entries up to the last that was written.
    entries: u64,
    /// Bytes of the offsets of blocks.
    offset_bytes: usize,
    in_index_block: u64,
    /// Entries of the smallest data block; a power of 2.
    least: u64,
    page: u64,
    groups: u32,
    /// Groups whose data blocks are in the index block.
    direct_groups: u32,
    direct_blocks: u64,
}

/// Data blocks of one size.
struct Group {
    /// The first entry.
    start: u64,
    blocks: u64,
    entries: u64,
}

impl Array {
    /// `None` if nothing was written.
    fn read(visit: &Visit<'_, '_>, header: u64) -> Result<Option<Self>> {
        let (chunks, file) = (visit.chunks, visit.chunks.file);
        let sizes = file.sizes();
        let sealed = file.sealed(HEADER, header, (16 + 6 * sizes.length + sizes.address) as u64)?;
        let mut fields = file.bytes(HEADER, header, &sealed);
        fields.signature(b"EAHD")?;
        fields.version(&[0])?;
        client(&mut fields, chunks.has_filters)?;
        let entry_bytes = usize::from(fields.u8()?);
        let entry = Entry::new(chunks, HEADER, entry_bytes, 0)?;
        let max_bits = u32::from(fields.u8()?);
        let in_index_block = u64::from(fields.u8()?);
        let least = u64::from(fields.u8()?);
        let pointers = u64::from(fields.u8()?);
        let page_bits = u32::from(fields.u8()?);
        fields.skip(4 * sizes.length)?;
        let entries = fields.length()?;
        fields.skip(sizes.length)?;
        let index_block = fields.address()?;
        if !least.is_power_of_two() || !pointers.is_power_of_two() || max_bits > 64 {
            let shape = format!("blocks of {least} entries, {pointers} of them, indices of {max_bits} bits");
            return Err(fields.error(format!("an array cannot have {shape}")));
        }
        let direct_groups = 2 * pointers.ilog2();
        let groups = (max_bits + 1).checked_sub(least.ilog2()).filter(|&groups| groups >= direct_groups);
        let groups = groups.ok_or_else(|| fields.error(format!("indices of {max_bits} bits are too few")))?;
        let Some(index_block) = index_block else { return Ok(None) };
        Ok(Some(Array {
            header,
            index_block,
            entry,
            entry_bytes: entry_bytes as u64,
            entries,
            offset_bytes: max_bits.div_ceil(8) as usize,
            in_index_block,
            least,
            page: 1u64.checked_shl(page_bits).unwrap_or(u64::MAX),
            groups,
            direct_groups,
            direct_blocks: 2 * (pointers - 1),
        }))
    }

    /// `None` if its entries are beyond all numbers.
    fn group(&self, number: u32) -> Option<Group> {
        let before = self.least.checked_mul(1u64.checked_shl(number)? - 1)?;
        let entries = self.least.checked_mul(1u64.checked_shl(number.div_ceil(2))?)?;
        Some(Group { start: self.in_index_block.checked_add(before)?, blocks: 1 << (number / 2), entries })
    }

    fn head<'a>(
        &self,
        visit: &Visit<'_, '_>,
        structure: &'static str,
        signature: &[u8; 4],
        at: u64,
        sealed: &'a [u8],
    ) -> Result<Bytes<'a>> {
        let mut fields = visit.chunks.file.bytes(structure, at, sealed);
        fields.signature(signature)?;
        fields.version(&[0])?;
        client(&mut fields, visit.chunks.has_filters)?;
        owner(&mut fields, self.header)?;
        Ok(fields)
    }

    fn index_block(&self, visit: &mut Visit<'_, '_>, numbers: &Numbers, wanted: &Range<u64>) -> Result<()> {
        let file = visit.chunks.file;
        let address_bytes = file.sizes().address as u64;
        let super_blocks = u64::from(self.groups - self.direct_groups);
        let pointers = (self.direct_blocks + super_blocks) * address_bytes;
        let bytes = 10 + address_bytes + self.in_index_block * self.entry_bytes + pointers;
        visit.walk.enter(INDEX, self.index_block, bytes)?;
        let sealed = file.sealed(INDEX, self.index_block, bytes)?;
        let mut fields = self.head(visit, INDEX, b"EAIB", self.index_block, &sealed)?;
        let mut entries = fields.clone();
        visit.pass(
            numbers,
            decode(self.entry, self.entry_bytes, &mut entries, 0..self.in_index_block, wanted)?.into_iter(),
        );
        fields.skip((self.in_index_block * self.entry_bytes) as usize)?;
        for number in 0..self.groups {
            let Some(group) = self.group(number) else { break };
            if number < self.direct_groups {
                for block in 0..group.blocks {
                    let address = fields.address()?;
                    let (start, end) = group.range(block);
                    if let Some(address) = address.filter(|_| start < wanted.end && end > wanted.start) {
                        let read = self.data_block(visit, numbers, wanted, address, start..end, None);
                        visit.note(read);
                    }
                }
            } else {
                let address = fields.address()?;
                let (start, end) = (group.start, group.range(group.blocks - 1).1);
                if let Some(address) = address.filter(|_| start < wanted.end && end > wanted.start) {
                    let read = self.super_block(visit, numbers, wanted, address, &group);
                    visit.note(read);
                }
            }
        }
        Ok(())
    }

    fn super_block(
        &self,
        visit: &mut Visit<'_, '_>,
        numbers: &Numbers,
        wanted: &Range<u64>,
        at: u64,
        group: &Group,
    ) -> Result<()> {
        let file = visit.chunks.file;
        let address_bytes = file.sizes().address as u64;
        let pages = if group.entries > self.page { group.entries / self.page } else { 0 };
        let bit_bytes = pages.div_ceil(8).checked_mul(group.blocks);
        let pointers = group.blocks.checked_mul(address_bytes);
        let bytes = bit_bytes.zip(pointers).and_then(|(bits, pointers)| bits.checked_add(pointers));
        let bytes = bytes.and_then(|bytes| bytes.checked_add(10 + address_bytes + self.offset_bytes as u64));
        let bytes = bytes.ok_or_else(|| Error::damaged(format!("{SUPER} at address {at} is beyond every file")))?;
        visit.walk.enter(SUPER, at, bytes)?;
        let sealed = file.sealed(SUPER, at, bytes)?;
        let mut fields = self.head(visit, SUPER, b"EASB", at, &sealed)?;
        fields.skip(self.offset_bytes)?;
        let written = fields.take(bit_bytes.unwrap_or_default() as usize)?;
        let first = wanted.start.saturating_sub(group.start) / group.entries;
        fields.skip((first * address_bytes) as usize)?;
        for block in first..group.blocks {
            let (start, end) = group.range(block);
            if start >= wanted.end {
                break;
            }
            if let Some(address) = fields.address()? {
                let bits = (pages > 0).then_some((written, block * pages));
                let read = self.data_block(visit, numbers, wanted, address, start..end, bits);
                visit.note(read);
            }
        }
        Ok(())
    }

    /// `bits` are those of the pages of a paged block, and the number of the first.
    fn data_block(
        &self,
        visit: &mut Visit<'_, '_>,
        numbers: &Numbers,
        wanted: &Range<u64>,
        at: u64,
        range: Range<u64>,
        bits: Option<(&[u8], u64)>,
    ) -> Result<()> {
        let file = visit.chunks.file;
        let head_bytes = 10 + (file.sizes().address + self.offset_bytes) as u64;
        let beyond = || Error::damaged(format!("{BLOCK} at address {at} is beyond every file"));
        let entries = range.end - range.start;
        let Some((bits, first_bit)) = bits else {
            let bytes = entries.checked_mul(self.entry_bytes).and_then(|bytes| bytes.checked_add(head_bytes));
            let bytes = bytes.ok_or_else(beyond)?;
            visit.walk.enter(BLOCK, at, bytes)?;
            let sealed = file.sealed(BLOCK, at, bytes)?;
            let mut fields = self.head(visit, BLOCK, b"EADB", at, &sealed)?;
            fields.skip(self.offset_bytes)?;
            let found = decode(self.entry, self.entry_bytes, &mut fields, range, wanted)?;
            visit.pass(numbers, found.into_iter());
            return Ok(());
        };
        visit.walk.enter(BLOCK, at, head_bytes)?;
        let sealed = file.sealed(BLOCK, at, head_bytes)?;
        self.head(visit, BLOCK, b"EADB", at, &sealed)?;
        let page_bytes = self.page.checked_mul(self.entry_bytes).and_then(|bytes| bytes.checked_add(4));
        let page_bytes = page_bytes.ok_or_else(beyond)?;
        let inside = wanted.start.saturating_sub(range.start)..wanted.end.saturating_sub(range.start);
        for (number, entries) in pages(entries, self.page, &inside) {
            if !is_set(bits, first_bit + number) {
                continue;
            }
            let address = number.checked_mul(page_bytes).and_then(|page| at.checked_add(head_bytes)?.checked_add(page));
            let address = address.ok_or_else(beyond)?;
            // all further pages are beyond the end as well
            is_within(visit, PAGE, address)?;
            let read = || -> Result<_> {
                let sealed = file.sealed(PAGE, address, page_bytes)?;
                let numbers = range.start + entries.start..range.start + entries.end;
                decode(self.entry, self.entry_bytes, &mut file.bytes(PAGE, address, &sealed), numbers, wanted)
            };
            match visit.walk.enter(PAGE, address, page_bytes).and_then(|()| read()) {
                Ok(found) => visit.pass(numbers, found.into_iter()),
                Err(error) => visit.note(Err(error)),
            }
        }
        Ok(())
    }
}

impl Group {
    /// The first entry of a block, and that after its last.
    fn range(&self, block: u64) -> (u64, u64) {
        let start = self.start.saturating_add(block.saturating_mul(self.entries));
        (start, start.saturating_add(self.entries))
    }
}
