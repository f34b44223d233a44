//! Global heaps: elements of variable length. HDF5 File Format Specification 3.0, section III.E.
//!
//! A collection `GCOL` has its size and objects: each has its number, a count of references, its
//! size and bytes up to a multiple of 8. Object 0 is free space, and its size counts its own head;
//! what is too short for a head is free as well. An element names an object by the address of its
//! collection and its number.

use std::collections::HashMap;
use std::ops::Range;

use crate::bytes::{Bytes, Sizes};
use crate::datatype::{Class, Datatype, Reference};
use crate::error::{Error, Result, Within};
use crate::file::File;

const STRUCTURE: &str = "global heap collection";

/// Bytes of collections that are kept.
const KEPT_BYTES: usize = 16 << 20;

/// Kind and flag of references in the encoding of HDF5 1.12.
pub(crate) const NEW_OBJECT: u8 = 2;
pub(crate) const EXTERNAL: u8 = 1;

/// Collections of a file that were read, so that the next object of one needs no reading.
#[derive(Debug)]
pub struct GlobalHeap {
    file: File,
    collections: HashMap<u64, Collection>,
    /// Bytes of `collections`.
    kept: usize,
}

#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    objects: Objects,
}

/// Places of objects in the bytes of a collection.
#[derive(Debug, Default, PartialEq)]
struct Objects {
    by_number: HashMap<u16, Range<usize>>,
    /// Where the first object is whose size cannot be. Those after it are not found, and the one
    /// before it is left out: what overwrote the head of the next object may have begun in it.
    damage: Option<usize>,
}

/// Place of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapId {
    /// Address of the collection.
    pub address: u64,
    /// Number of the object in it.
    pub number: u32,
}

impl GlobalHeap {
    /// The heap of a file, of which nothing is read yet.
    pub fn new(file: &File) -> Self {
        GlobalHeap { file: file.clone(), collections: HashMap::new(), kept: 0 }
    }

    /// The bytes of an object.
    ///
    /// # Errors
    /// `Damaged` if the collection has no such object; `Limit`; `Io`.
    pub fn object(&mut self, id: HeapId) -> Result<&[u8]> {
        let HeapId { address, number } = id;
        let collection = self.collection(address)?;
        let place = u16::try_from(number).ok().and_then(|number| collection.objects.by_number.get(&number));
        place.and_then(|place| collection.bytes.get(place.clone())).ok_or_else(|| {
            let place = format!("{STRUCTURE} at address {address}");
            Error::damaged(format!("the collection has no object {number}")).within(place)
        })
    }

    fn collection(&mut self, address: u64) -> Result<&Collection> {
        if !self.collections.contains_key(&address) {
            let collection = self.file.retried(|| Collection::read(&self.file, address))?;
            if self.kept.saturating_add(collection.bytes.len()) > KEPT_BYTES {
                self.collections.clear();
                self.kept = 0;
            }
            self.kept = self.kept.saturating_add(collection.bytes.len());
            self.collections.insert(address, collection);
        }
        let lost = || Error::damaged("the collection cannot be read");
        self.collections.get(&address).ok_or_else(lost)
    }

    /// Looks up everything in heaps to which elements lead. `bytes` has elements of `datatype` as
    /// the file has them.
    ///
    /// # Errors
    /// `Damaged` if an object is missing or too short, or its collection is not whole: that has an
    /// object whose size cannot be. `Io`.
    pub fn check(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        if !datatype.is_variable() {
            return Ok(());
        }
        let size = (datatype.size as usize).max(1);
        match &datatype.class {
            Class::VariableString(_) => {
                bytes.chunks_exact(size).try_for_each(|element| self.whole(element, 1).map(drop))
            }
            Class::Sequence(base) => bytes.chunks_exact(size).try_for_each(|element| {
                let parts = self.whole(element, base.size)?;
                if !base.is_variable() {
                    return Ok(());
                }
                let parts = parts.to_vec();
                self.check(base, &parts)
            }),
            Class::Array { base, .. } => self.check(base, bytes),
            Class::Compound(members) => bytes.chunks_exact(size).try_for_each(|element| {
                members.iter().try_for_each(|member| {
                    let part = element.get(member.offset as usize..);
                    let part = part.and_then(|part| part.get(..member.datatype.size as usize));
                    let beyond = || Error::damaged("a member is beyond its compound");
                    self.check(&member.datatype, part.ok_or_else(beyond)?)
                })
            }),
            Class::Reference(reference) => bytes.chunks_exact(size).try_for_each(|element| {
                let id = heap_id(*reference, self.file.bytes("reference", 0, element))?;
                self.check_collection(id)
            }),
            _ => Ok(()),
        }
    }

    /// The bytes of an element of variable length: of a sequence or of text. `element` is as the
    /// file has it, `size` the size of the parts.
    ///
    /// # Errors
    /// As [`object`](Self::object); `Damaged` if the object is too short.
    pub fn sequence(&mut self, element: &[u8], size: u32) -> Result<&[u8]> {
        let mut fields = self.file.bytes("element of variable length", 0, element);
        let count = u64::from(fields.u32()?);
        let Some(id) = HeapId::decode(&mut fields)?.filter(|_| count > 0) else { return Ok(&[]) };
        let object = self.object(id)?;
        let bytes = count * u64::from(size);
        let sequence = usize::try_from(bytes).ok().and_then(|bytes| object.get(..bytes));
        sequence.ok_or_else(|| {
            let (have, number) = (object.len(), id.number);
            Error::damaged(format!("object {number} has {have} bytes, the element has {bytes}"))
                .within(format_args!("{STRUCTURE} at address {}", id.address))
        })
    }

    /// As [`sequence`](Self::sequence), of a collection that is whole.
    fn whole(&mut self, element: &[u8], size: u32) -> Result<&[u8]> {
        let mut fields = self.file.bytes("element of variable length", 0, element);
        fields.skip(4)?;
        self.check_collection(HeapId::decode(&mut fields)?)?;
        self.sequence(element, size)
    }

    fn check_collection(&mut self, id: Option<HeapId>) -> Result<()> {
        if let Some(HeapId { address, .. }) = id
            && let Some(at) = self.collection(address)?.objects.damage
        {
            let message = format!("the object at byte {at} of the collection is longer than what is left");
            return Err(Error::damaged(message).within(format_args!("{STRUCTURE} at address {address}")));
        }
        Ok(())
    }
}

/// `None` without a heap object. References in the encoding of HDF5 1.12 have a kind, flags, and a
/// token, or the size and place of an object that has a token and more.
pub(crate) fn heap_id(reference: Reference, mut fields: Bytes<'_>) -> Result<Option<HeapId>> {
    match reference {
        Reference::Object => return Ok(None),
        Reference::Region => {}
        _ => {
            let (kind, flags) = (fields.u8()?, fields.u8()?);
            if kind == NEW_OBJECT && flags & EXTERNAL == 0 {
                return Ok(None);
            }
            fields.skip(4)?;
        }
    }
    HeapId::decode(&mut fields)
}

impl HeapId {
    /// `None` for an object that was never written.
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Option<Self>> {
        let address = fields.address()?;
        let number = fields.u32()?;
        Ok(address.filter(|&address| address != 0).map(|address| HeapId { address, number }))
    }
}

impl Collection {
    fn read(file: &File, address: u64) -> Result<Self> {
        let head_bytes = head_bytes(file.sizes());
        let head = file.read(STRUCTURE, address, head_bytes as u64)?;
        let mut fields = file.bytes(STRUCTURE, address, &head);
        fields.signature(b"GCOL")?;
        fields.version(&[1])?;
        fields.skip(3)?;
        let size = fields.length()?;
        if size < head_bytes as u64 {
            return Err(fields.error(format!("the collection has {size} bytes, less than its head")));
        }
        let bytes = file.read(STRUCTURE, address, size)?;
        let mut fields = file.bytes(STRUCTURE, address, &bytes);
        fields.skip(head_bytes)?;
        let objects = objects(&mut fields).within(|| format!("objects of the {STRUCTURE} at address {address}"))?;
        Ok(Collection { bytes, objects })
    }
}

/// Bytes before the objects of a collection, or before an object's data: up to a length, aligned.
fn head_bytes(sizes: Sizes) -> usize {
    (8 + sizes.length).next_multiple_of(8)
}

/// Finds the objects in the bytes of a collection, whose head was read.
fn objects(fields: &mut Bytes<'_>) -> Result<Objects> {
    let head_bytes = head_bytes(fields.sizes());
    let (mut objects, mut before) = (Objects::default(), 0);
    while fields.remaining() >= head_bytes {
        let head = fields.position();
        let number = fields.u16()?;
        fields.skip(6)?;
        let size = fields.length()?;
        fields.align()?;
        let start = fields.position();
        // free space counts its head
        let size = if number == 0 { size.checked_sub(head_bytes as u64) } else { Some(size) };
        let size = size.and_then(|size| usize::try_from(size).ok()).filter(|&size| size <= fields.remaining());
        let Some(size) = size else {
            objects.damage = Some(head);
            objects.by_number.remove(&before);
            break;
        };
        fields.skip(size)?;
        before = number;
        if number != 0 {
            objects.by_number.insert(number, start..start + size);
            // the last object may end where the collection does
            let padding = size.next_multiple_of(8) - size;
            fields.skip(padding.min(fields.remaining()))?;
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { address: 8, length: 8 };

    fn object(number: u16, size: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.extend([1, 0, 0, 0, 0, 0]);
        bytes.extend(size.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn heads_are_aligned_for_short_lengths() {
        let bytes = b"\x01\0\x01\0\0\0\0\0\x03\0\0\0\0\0\0\0abc\0\0\0\0\0";
        let mut fields = Bytes::new(STRUCTURE, 0, bytes, Sizes { address: 4, length: 4 });
        assert_eq!(objects(&mut fields).unwrap().by_number, HashMap::from([(1, 16..19)]));
    }

    fn found(bytes: &[u8]) -> (HashMap<u16, Range<usize>>, Option<usize>) {
        let found = objects(&mut Bytes::new(STRUCTURE, 0, bytes, SIZES)).unwrap();
        (found.by_number, found.damage)
    }

    #[test]
    fn objects_are_found_around_free_space() {
        let bytes =
            [object(1, 3, b"abc\0\0\0\0\0"), object(0, 24, &[0; 8]), object(7, 8, b"12345678"), object(0, 21, &[0; 5])];
        assert_eq!(found(&bytes.concat()), (HashMap::from([(1, 16..19), (7, 64..72)]), None));
    }

    #[test]
    fn sizes_that_cannot_be_end_the_search() {
        for size in [0, 15, 1 << 20, u64::MAX] {
            let whole = [object(1, 8, b"12345678"), object(3, 8, b"1234\0\0\0\0")].concat();
            let bytes = [&whole[..], &object(0, size, &[0; 8]), &object(2, 0, b"")].concat();
            assert_eq!(found(&bytes), (HashMap::from([(1, 16..24)]), Some(48)), "{size}");
        }
        for size in [9, u64::MAX] {
            assert_eq!(found(&object(1, size, b"12345678")), (HashMap::new(), Some(0)));
        }
        // a zeroed page
        assert_eq!(found(&[0; 4096]), (HashMap::new(), Some(0)));
    }

    #[test]
    fn any_changed_byte_ends() {
        let bytes = [object(1, 3, b"abc\0\0\0\0\0"), object(0, 24, &[0; 8]), object(7, 8, b"12345678")].concat();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                found(&changed);
            }
            found(&bytes[..at]);
        }
    }
}
