//! Fractal heaps: links and attributes of objects that have many, and shared messages.
//! HDF5 File Format Specification 3.0, section III.G.
//!
//! Managed objects are in direct blocks, which a doubling table arranges: `width` blocks in each
//! row, blocks of rows 0 and 1 of the starting size, of each further row twice as large. Indirect
//! blocks hold the addresses of a table; rows whose blocks are larger than the largest direct block
//! hold indirect blocks. An object's ID has its offset in this space, in which the heads of direct
//! blocks count as well. Objects too large for a block are huge, each with a place of its own in
//! the file, which the ID or a B-tree has; tiny ones are in the ID.

use std::collections::HashMap;

use crate::btree2;
use crate::bytes::Bytes;
use crate::checksum;
use crate::error::{Error, Result, Within};
use crate::file::File;
use crate::filters::Pipeline;
use crate::walk::Walk;

const HEADER: &str = "fractal heap";
const DIRECT: &str = "direct block of a fractal heap";
const INDIRECT: &str = "indirect block of a fractal heap";
const HUGE: &str = "huge object of a fractal heap";
const ID: &str = "fractal heap ID";

const HAS_CHECKSUMS: u8 = 1 << 1;

const MANAGED: u8 = 0;
const HUGE_ID: u8 = 1;
const TINY: u8 = 2;

/// Kinds of B-trees of huge objects that the ID does not place.
const HUGE_TREE: u8 = 1;
const HUGE_FILTERED_TREE: u8 = 2;

const MASK_BYTES: usize = 4;

pub(crate) struct Heap<'f> {
    file: &'f File,
    address: u64,
    shape: Shape,
    pipeline: Pipeline,
    root: Option<Child>,
    /// 0: the root is a direct block.
    root_rows: u32,
    huge_tree: Option<u64>,
    /// Number of objects of all kinds.
    pub(crate) objects: u64,
    walk: Walk,
    /// Bytes of objects that may still be handed out: objects do not overlap.
    left: u64,
    /// Bytes that may still be decoded.
    decoded_left: u64,
    blocks: HashMap<u64, Block>,
    /// Huge objects by number; `None` until one is sought.
    huge: Option<HashMap<u64, Huge>>,
    /// The last object that is in no block.
    other: Vec<u8>,
}

/// Sizes in the doubling table and in IDs.
#[derive(Debug, Clone, Copy)]
struct Shape {
    id_bytes: usize,
    has_checksums: bool,
    has_filters: bool,
    width: u32,
    /// Bytes of the blocks of rows 0 and 1.
    first: u64,
    largest: u64,
    /// Bits of an offset in the heap.
    bits: u32,
    offset_bytes: usize,
    length_bytes: usize,
}

enum Block {
    Direct {
        bytes: Vec<u8>,
        head: usize,
    },
    Indirect(Vec<Option<Child>>),
    /// A block that cannot be read, and the number of objects sought in it.
    Lost(Option<Error>, u64),
}

/// A block as its parent names it.
#[derive(Debug, Clone, Copy)]
struct Child {
    address: u64,
    /// `None` of indirect blocks, and of all blocks of a heap without filters.
    stored: Option<Stored>,
}

#[derive(Debug, Clone, Copy)]
struct Stored {
    bytes: u64,
    /// Filters that were not applied.
    mask: u32,
}

#[derive(Debug, Clone, Copy)]
struct Huge {
    address: u64,
    bytes: u64,
    stored: Option<Stored>,
}

pub(crate) struct Object<'a> {
    pub(crate) address: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'f> Heap<'f> {
    pub(crate) fn read(file: &'f File, address: u64) -> Result<Self> {
        file.retried(|| Self::read_header(file, address))
    }

    fn read_header(file: &'f File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let plain = 22 + 3 * sizes.address + 12 * sizes.length;
        let start = file.read(HEADER, address, plain as u64)?;
        let mut fields = file.bytes(HEADER, address, &start);
        fields.signature(b"FRHP")?;
        fields.version(&[0])?;
        let id_bytes = usize::from(fields.u16()?);
        let filter_bytes = usize::from(fields.u16()?);
        let flags = fields.u8()?;
        let largest_managed = u64::from(fields.u32()?);
        let _next_huge = fields.length()?;
        let huge_tree = fields.address()?;
        let _free = fields.length()?;
        let _free_space = fields.address()?;
        fields.skip(3 * sizes.length)?;
        let managed = fields.length()?;
        let _huge_bytes = fields.length()?;
        let huge = fields.length()?;
        let _tiny_bytes = fields.length()?;
        let tiny = fields.length()?;
        let width = u32::from(fields.u16()?);
        let (first, largest) = (fields.length()?, fields.length()?);
        let bits = u32::from(fields.u16()?);
        let _start_rows = fields.u16()?;
        let root = fields.address()?;
        let root_rows = u32::from(fields.u16()?);
        let extra = if filter_bytes == 0 { 0 } else { sizes.length + MASK_BYTES + filter_bytes };
        let sealed = file.sealed(HEADER, address, (plain + extra + 4) as u64)?;
        let mut rest = file.bytes(HEADER, address, &sealed);
        rest.skip(plain)?;
        let (mut stored, mut pipeline) = (None, Pipeline::default());
        if filter_bytes > 0 {
            stored = Some(Stored { bytes: rest.length()?, mask: rest.u32()? }).filter(|_| root_rows == 0);
            pipeline = Pipeline::decode(&mut rest)?;
        }
        let shape = Shape {
            id_bytes,
            has_checksums: flags & HAS_CHECKSUMS != 0,
            has_filters: filter_bytes > 0,
            width,
            first,
            largest,
            bits,
            offset_bytes: bits.div_ceil(8) as usize,
            length_bytes: bytes_of(largest.min(largest_managed)),
        };
        shape.check(root_rows).map_err(|message| fields.error(message))?;
        Ok(Heap {
            file,
            address,
            shape,
            pipeline,
            root: root.map(|address| Child { address, stored }),
            root_rows,
            huge_tree,
            objects: managed.saturating_add(huge).saturating_add(tiny),
            walk: file.walk()?,
            left: file.len()?.saturating_add(if filter_bytes > 0 { file.limits().chunk_bytes } else { 0 }),
            decoded_left: file.limits().chunk_bytes,
            blocks: HashMap::new(),
            huge: None,
            other: Vec::new(),
        })
    }

    /// `None` if the block cannot be read: see [`damage`](Self::damage).
    pub(crate) fn object(&mut self, id: &[u8]) -> Result<Option<Object<'_>>> {
        let mut fields = self.file.bytes(ID, self.address, id);
        let head = fields.u8()?;
        if head >> 6 != 0 {
            return Err(fields.unsupported(format!("an ID of version {}", head >> 6)));
        }
        match head >> 4 & 3 {
            MANAGED => {
                let offset = fields.number(self.shape.offset_bytes)?;
                let bytes = fields.number(self.shape.length_bytes)?;
                self.managed(offset, bytes)
            }
            HUGE_ID => self.huge(&mut fields).map(Some),
            TINY => self.tiny(head, id).map(Some),
            kind => Err(fields.error(format!("an ID of the unknown kind {kind}"))),
        }
    }

    /// Takes the errors of blocks that could not be read.
    pub(crate) fn damage(&mut self, damage: &mut Vec<Error>) {
        let mut lost = Vec::new();
        for (&address, block) in &mut self.blocks {
            if let Block::Lost(error, objects) = block {
                lost.extend(error.take().map(|error| (address, error, *objects)));
            }
        }
        lost.sort_by_key(|&(address, ..)| address);
        for (_, error, objects) in lost {
            let s = if objects == 1 { "" } else { "s" };
            damage.push(error.within(format_args!("{objects} object{s} in the {HEADER} at {}", self.address)));
        }
    }

    fn spend(&mut self, bytes: u64) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return Err(self.error("objects overlap: together they are larger than the file")),
        }
        Ok(())
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::damaged(message).within(format_args!("{HEADER} at address {}", self.address))
    }

    fn managed(&mut self, offset: u64, bytes: u64) -> Result<Option<Object<'_>>> {
        if bytes == 0 {
            return Err(self.error("an object of 0 bytes"));
        }
        let Some((address, within)) = self.locate(offset)? else { return Ok(None) };
        self.spend(bytes)?;
        let place = || format!("an object of {bytes} bytes at byte {within} of the direct block at {address}");
        let Some(Block::Direct { bytes: block, head }) = self.blocks.get(&address) else {
            return Err(self.error(place()));
        };
        let range = usize::try_from(within).ok().filter(|within| within >= head).zip(usize::try_from(bytes).ok());
        let found = range.and_then(|(start, len)| block.get(start..start.checked_add(len)?));
        let bytes = found.ok_or_else(|| self.error(place()))?;
        Ok(Some(Object { address: address.saturating_add(within), bytes }))
    }

    /// Address of the direct block, and offset in it; `None` if a block on the way is lost.
    fn locate(&mut self, offset: u64) -> Result<Option<(u64, u64)>> {
        let mut block = self.root.ok_or_else(|| self.error("the heap has no blocks"))?;
        let mut rows = self.root_rows;
        let (mut start, mut within) = (0u64, offset);
        if rows == 0 {
            if offset >= self.shape.first {
                return Err(self.error(format!("an object begins at {offset}, after the last block")));
            }
            return Ok(self.direct(block, 0, self.shape.first).then_some((block.address, within)));
        }
        // rows are fewer at each step: see `Shape::rows_of`
        loop {
            let place = self.shape.place(within);
            if place.row >= rows {
                return Err(self.error(format!("an object begins at {offset}, after the last block")));
            }
            if !self.indirect(block.address, start, rows) {
                return Ok(None);
            }
            let child = match self.blocks.get(&block.address) {
                Some(Block::Indirect(children)) => children.get(place.entry).copied().flatten(),
                _ => None,
            };
            block =
                child.ok_or_else(|| self.error(format!("an object begins at {offset}, in a block without address")))?;
            start = start.saturating_add(place.start);
            within -= place.start;
            if place.row < self.shape.direct_rows() {
                return Ok(self.direct(block, start, place.bytes).then_some((block.address, within)));
            }
            rows = self.shape.rows_of(place.bytes);
        }
    }

    /// Reads a direct block, unless it was read before. False if it is lost.
    fn direct(&mut self, child: Child, start: u64, bytes: u64) -> bool {
        self.block(child.address, |heap| heap.read_direct(child, start, bytes))
    }

    fn indirect(&mut self, address: u64, start: u64, rows: u32) -> bool {
        self.block(address, |heap| heap.read_indirect(address, start, rows))
    }

    fn block(&mut self, address: u64, read: impl FnOnce(&mut Self) -> Result<Block>) -> bool {
        if !self.blocks.contains_key(&address) {
            let block = read(self).unwrap_or_else(|error| Block::Lost(Some(error), 0));
            self.blocks.insert(address, block);
        }
        match self.blocks.get_mut(&address) {
            Some(Block::Lost(_, objects)) => {
                *objects += 1;
                false
            }
            block => block.is_some(),
        }
    }

    fn read_direct(&mut self, child: Child, start: u64, bytes: u64) -> Result<Block> {
        let (file, has_checksums, address) = (self.file, self.shape.has_checksums, child.address);
        let head = 5 + file.sizes().address + self.shape.offset_bytes;
        self.walk.enter(DIRECT, address, child.stored.map_or(bytes, |stored| stored.bytes))?;
        self.spend_decoded(child.stored, bytes)?;
        let block = file.retried(|| {
            let mut block = self.decoded(DIRECT, address, bytes, child.stored)?;
            if has_checksums {
                check_direct(&mut block, head).within(|| format!("{DIRECT} at address {address}"))?;
            }
            Ok(block)
        })?;
        let mut fields = file.bytes(DIRECT, address, &block);
        fields.signature(b"FHDB")?;
        self.check_head(&mut fields, start)?;
        let head = head + if has_checksums { 4 } else { 0 };
        Ok(Block::Direct { bytes: block, head })
    }

    fn spend_decoded(&mut self, stored: Option<Stored>, bytes: u64) -> Result<()> {
        let most = self.file.limits().chunk_bytes;
        match self.decoded_left.checked_sub(if stored.is_some() { bytes } else { 0 }) {
            Some(left) => self.decoded_left = left,
            None => return Err(Error::limit(format!("more than {most} bytes of the heap are filtered"))),
        }
        Ok(())
    }

    fn decoded(&self, structure: &'static str, address: u64, bytes: u64, stored: Option<Stored>) -> Result<Vec<u8>> {
        let Some(stored) = stored else { return self.file.read(structure, address, bytes) };
        if bytes > self.file.limits().structure_bytes {
            return Err(Error::limit(format!("the block has {bytes} decoded bytes")).within(structure));
        }
        let mut data = self.file.read(structure, address, stored.bytes)?;
        let undone = self.pipeline.undo(self.file.filters(), stored.mask, bytes, &mut data);
        undone.within(|| format!("{structure} at address {address}"))?;
        Ok(data)
    }

    fn read_indirect(&mut self, address: u64, start: u64, rows: u32) -> Result<Block> {
        let sizes = self.file.sizes();
        let direct = u64::from(rows.min(self.shape.direct_rows())) * u64::from(self.shape.width);
        let all = u64::from(rows) * u64::from(self.shape.width);
        let extra = if self.shape.has_filters { sizes.length + MASK_BYTES } else { 0 };
        let head = 5 + sizes.address + self.shape.offset_bytes;
        let bytes = head as u64 + all * sizes.address as u64 + direct * extra as u64 + 4;
        self.walk.enter(INDIRECT, address, bytes)?;
        let block = self.file.sealed(INDIRECT, address, bytes)?;
        let mut fields = self.file.bytes(INDIRECT, address, &block);
        fields.signature(b"FHIB")?;
        self.check_head(&mut fields, start)?;
        let mut children = Vec::new();
        for number in 0..all {
            let address = fields.address()?;
            let is_stored = self.shape.has_filters && number < direct;
            let stored = if is_stored { Some(Stored { bytes: fields.length()?, mask: fields.u32()? }) } else { None };
            children.push(address.map(|address| Child { address, stored }));
        }
        Ok(Block::Indirect(children))
    }

    fn check_head(&self, fields: &mut Bytes<'_>, start: u64) -> Result<()> {
        fields.version(&[0])?;
        let heap = fields.address()?;
        if heap != Some(self.address) {
            let heap = heap.map_or("none".to_string(), |heap| heap.to_string());
            return Err(fields.error(format!("the block is of the heap at {heap}, expected {}", self.address)));
        }
        let found = fields.number(self.shape.offset_bytes)?;
        if found != start {
            return Err(fields.error(format!("the block begins at {found} of the heap, expected {start}")));
        }
        Ok(())
    }

    fn huge(&mut self, fields: &mut Bytes<'_>) -> Result<Object<'_>> {
        let sizes = self.file.sizes();
        let filtered = if self.shape.has_filters { MASK_BYTES + sizes.length } else { 0 };
        let place = if self.shape.id_bytes > sizes.address + sizes.length + filtered {
            Huge::decode(fields, self.shape.has_filters)?
        } else {
            let number = fields.number(self.shape.id_bytes.saturating_sub(1).min(8))?;
            let place = self.huge_objects()?.get(&number).copied();
            place.ok_or_else(|| fields.error(format!("huge object {number} is not in the heap's B-tree")))?
        };
        self.spend(place.bytes)?;
        self.spend_decoded(place.stored, place.bytes)?;
        self.other = self.decoded(HUGE, place.address, place.bytes, place.stored)?;
        Ok(Object { address: place.address, bytes: &self.other })
    }

    fn huge_objects(&mut self) -> Result<&HashMap<u64, Huge>> {
        if self.huge.is_none() {
            let address = self.huge_tree.ok_or_else(|| self.error("the heap has no huge objects"))?;
            let kind = if self.shape.has_filters { HUGE_FILTERED_TREE } else { HUGE_TREE };
            let (mut huge, mut damage) = (HashMap::new(), Vec::new());
            let (file, tree) = (self.file, btree2::Tree::read(self.file, address, kind)?);
            tree.visit(file, &mut self.walk, &mut damage, &mut |record| {
                let mut fields = file.bytes(HUGE, address, record);
                let place = Huge::decode(&mut fields, kind == HUGE_FILTERED_TREE)?;
                huge.insert(fields.length()?, place);
                Ok(())
            });
            if let (true, Some(error)) = (huge.is_empty(), damage.pop()) {
                return Err(error);
            }
            self.huge = Some(huge);
        }
        self.huge.as_ref().ok_or_else(|| Error::damaged("the heap has no huge objects"))
    }

    fn tiny(&mut self, head: u8, id: &[u8]) -> Result<Object<'_>> {
        // a length of more than 16 bytes takes the second byte as well
        let is_long = self.shape.id_bytes > 18;
        let (start, len) = match id.get(1) {
            Some(&second) if is_long => (2, (usize::from(head & 15) << 8 | usize::from(second)) + 1),
            _ => (1, usize::from(head & 15) + 1),
        };
        let bytes = id.get(start..start + len);
        self.other = bytes.ok_or_else(|| self.error(format!("a tiny object of {len} bytes in an ID")))?.to_vec();
        Ok(Object { address: self.address, bytes: &self.other })
    }
}

impl Huge {
    fn decode(fields: &mut Bytes<'_>, has_filters: bool) -> Result<Self> {
        let (address, bytes) = (fields.defined_address("a huge object")?, fields.length()?);
        if !has_filters {
            return Ok(Huge { address, bytes, stored: None });
        }
        let mask = fields.u32()?;
        Ok(Huge { address, bytes: fields.length()?, stored: Some(Stored { bytes, mask }) })
    }
}

/// Where in a table an offset is.
struct Place {
    row: u32,
    /// Number of the block in the table.
    entry: usize,
    /// Offset of the block in the table.
    start: u64,
    bytes: u64,
}

impl Shape {
    fn check(&self, root_rows: u32) -> std::result::Result<(), String> {
        let is_power = self.width.is_power_of_two() && self.first.is_power_of_two() && self.largest.is_power_of_two();
        if !is_power || self.first > self.largest {
            let Shape { width, first, largest, .. } = self;
            return Err(format!("a table of {width} blocks in a row, of {first} to {largest} bytes"));
        }
        if self.bits > 64 || self.bits < self.row_bits() {
            return Err(format!("a heap of 2^{} bytes, whose rows have 2^{}", self.bits, self.row_bits()));
        }
        let most = self.bits - self.row_bits() + 1;
        if root_rows > most {
            return Err(format!("the table has {root_rows} rows, at most {most} are possible"));
        }
        Ok(())
    }

    /// Binary logarithm of the bytes of row 0.
    fn row_bits(&self) -> u32 {
        self.width.ilog2() + self.first.ilog2()
    }

    fn direct_rows(&self) -> u32 {
        self.largest.ilog2() - self.first.ilog2() + 2
    }

    /// Rows of an indirect block of `bytes` bytes: less than the row in which it is, plus 1.
    fn rows_of(&self, bytes: u64) -> u32 {
        (bytes.max(1).ilog2() + 1).saturating_sub(self.row_bits())
    }

    fn place(&self, offset: u64) -> Place {
        let row = (offset >> self.row_bits()).checked_ilog2().map_or(0, |bits| bits + 1);
        let bytes = self.first << row.saturating_sub(1);
        let row_start = if row == 0 { 0 } else { 1u64 << (self.row_bits() + row - 1) };
        let column = (offset - row_start) / bytes;
        let entry = u64::from(row) * u64::from(self.width) + column;
        Place { row, entry: entry as usize, start: row_start + column * bytes, bytes }
    }
}

/// The checksum follows the head, and counts as 0 in the bytes that it covers.
fn check_direct(block: &mut [u8], head: usize) -> Result<()> {
    let stored =
        block.get_mut(head..head + 4).ok_or_else(|| Error::damaged("the block is too short for a checksum"))?;
    let found: [u8; 4] = [stored[0], stored[1], stored[2], stored[3]];
    stored.fill(0);
    checksum::check(u32::from_le_bytes(found), block)
}

/// Bytes in which numbers up to `most` are stored.
fn bytes_of(most: u64) -> usize {
    (most.max(1).ilog2() / 8 + 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, file, seal};

    const SHAPE: Shape = Shape {
        id_bytes: 8,
        has_checksums: false,
        has_filters: false,
        width: 4,
        first: 512,
        largest: 65536,
        bits: 40,
        offset_bytes: 5,
        length_bytes: 2,
    };

    /// A header with a direct block of 64 bytes after it, of which objects begin at byte 18.
    fn heap(id_bytes: u16, table: [u64; 4], root_rows: u16) -> Vec<u8> {
        let [width, first, largest, bits] = table;
        let mut bytes = b"FRHP\0".to_vec();
        bytes.extend(id_bytes.to_le_bytes());
        bytes.extend([0, 0, 0, 200, 0, 0, 0]);
        let undefined = u64::MAX;
        let block = START + 146;
        for word in [0, undefined, 0, undefined, 64, 64, 0, 2, 0, 0, 0, 0] {
            bytes.extend(u64::to_le_bytes(word));
        }
        bytes.extend((width as u16).to_le_bytes());
        bytes.extend(first.to_le_bytes());
        bytes.extend(largest.to_le_bytes());
        bytes.extend((bits as u16).to_le_bytes());
        bytes.extend(0u16.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(root_rows.to_le_bytes());
        let mut bytes = seal(bytes);
        bytes.extend(b"FHDB\0");
        bytes.extend(START.to_le_bytes());
        bytes.extend([0; 5]);
        bytes.extend(0..46);
        bytes
    }

    const TABLE: [u64; 4] = [4, 64, 128, 40];

    fn object(bytes: &[u8], id: &[u8]) -> Result<Option<(u64, Vec<u8>)>> {
        let file = file(bytes);
        let mut heap = Heap::read(&file, START)?;
        let found = heap.object(id)?.map(|found| (found.address, found.bytes.to_vec()));
        Ok(found)
    }

    fn message(bytes: &[u8], id: &[u8]) -> String {
        object(bytes, id).unwrap_err().message().to_owned()
    }

    #[test]
    fn places_in_a_doubling_table() {
        let place = |offset| {
            let place = SHAPE.place(offset);
            (place.row, place.entry, place.start, place.bytes)
        };
        assert_eq!(place(0), (0, 0, 0, 512));
        assert_eq!(place(2047), (0, 3, 1536, 512));
        assert_eq!(place(2048), (1, 4, 2048, 512));
        assert_eq!(place(4096), (2, 8, 4096, 1024));
        assert_eq!(place(3 << 20), (11, 46, 3 << 20, 512 << 10));
        assert_eq!(place(u64::MAX).0, 53);
        assert_eq!((SHAPE.direct_rows(), SHAPE.rows_of(128 << 10), SHAPE.rows_of(256 << 10)), (9, 7, 8));
        let one = Shape { width: 1, first: 1, largest: 1 << 63, bits: 64, ..SHAPE };
        assert_eq!((one.check(65), one.place(u64::MAX).row, one.direct_rows()), (Ok(()), 64, 65));
    }

    #[test]
    fn managed_and_tiny_objects() {
        let bytes = heap(8, TABLE, 0);
        let block = START + 146;
        // the length has a byte, since blocks have at most 128
        assert_eq!(object(&bytes, &[0, 20, 0, 0, 0, 0, 3, 0]).unwrap(), Some((block + 20, vec![2, 3, 4])));
        assert_eq!(object(&bytes, &[0x23, 9, 8, 7, 6, 5, 4, 3]).unwrap(), Some((START, vec![9, 8, 7, 6])));
        let mut long = vec![0x21, 3];
        long.extend(vec![5; 300]);
        assert_eq!(object(&heap(302, TABLE, 0), &long).unwrap().unwrap().1, [5; 260]);
    }

    #[test]
    fn wrong_ids_are_refused() {
        let bytes = heap(8, TABLE, 0);
        let place = "of the direct block at 242";
        assert_eq!(message(&bytes, &[0, 17, 0, 0, 0, 0, 3]), format!("an object of 3 bytes at byte 17 {place}"));
        assert_eq!(message(&bytes, &[0, 63, 0, 0, 0, 0, 2]), format!("an object of 2 bytes at byte 63 {place}"));
        assert_eq!(message(&bytes, &[0, 64, 0, 0, 0, 0, 2]), "an object begins at 64, after the last block");
        assert_eq!(message(&bytes, &[0, 20, 0, 0, 0, 0, 0]), "an object of 0 bytes");
        assert_eq!(message(&bytes, &[0x10, 1, 0, 0, 0, 0, 0, 0]), "the heap has no huge objects");
        assert_eq!(message(&bytes, &[0x30]), "an ID of the unknown kind 3");
        assert_eq!(message(&bytes, &[0x40]), "an ID of version 1");
        assert_eq!(message(&bytes, &[0x2f, 1]), "a tiny object of 16 bytes in an ID");
        assert_eq!(message(&bytes, &[]), "1 bytes are expected, 0 remain");
    }

    #[test]
    fn wrong_tables_are_refused() {
        let message = |table, rows| message(&heap(8, table, rows), &[0]);
        assert_eq!(message([3, 64, 128, 40], 0), "a table of 3 blocks in a row, of 64 to 128 bytes");
        assert_eq!(message([4, 64, 0, 40], 0), "a table of 4 blocks in a row, of 64 to 0 bytes");
        assert_eq!(message([4, 128, 64, 40], 0), "a table of 4 blocks in a row, of 128 to 64 bytes");
        assert_eq!(message([4, 64, 128, 65], 0), "a heap of 2^65 bytes, whose rows have 2^8");
        assert_eq!(message([4, 64, 128, 7], 0), "a heap of 2^7 bytes, whose rows have 2^8");
        assert_eq!(message(TABLE, 34), "the table has 34 rows, at most 33 are possible");
    }

    #[test]
    fn objects_together_are_no_more_than_the_file() {
        let bytes = heap(8, TABLE, 0);
        let file = file(&bytes);
        let mut heap = Heap::read(&file, START).unwrap();
        let most = (START as usize + bytes.len()) / 40;
        for _ in 0..most {
            assert_eq!(heap.object(&[0, 20, 0, 0, 0, 0, 40]).unwrap().unwrap().bytes.len(), 40);
        }
        let error = heap.object(&[0, 20, 0, 0, 0, 0, 40]).err().unwrap();
        assert_eq!(error.message(), "objects overlap: together they are larger than the file");
    }

    #[test]
    fn lost_block_counts_the_objects_sought_in_it() {
        let mut bytes = heap(8, TABLE, 0);
        bytes[146] = b'X';
        let file = file(&bytes);
        let mut heap = Heap::read(&file, START).unwrap();
        for _ in 0..3 {
            assert!(heap.object(&[0, 20, 0, 0, 0, 0, 4]).unwrap().is_none());
        }
        let mut damage = Vec::new();
        heap.damage(&mut damage);
        let [error] = damage.as_slice() else { panic!("{damage:?}") };
        assert!(error.to_string().starts_with("3 objects in the fractal heap at 96: "), "{error}");
    }
}
