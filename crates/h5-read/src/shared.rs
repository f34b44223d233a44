//! Messages that an object does not have in its own header: committed types, and the shared
//! messages of a file. HDF5 File Format Specification 3.0, sections III.I (table), IV.A.2 (shared
//! message) and IV.A.2.p (table message).
//!
//! A reference has its version and kind and, by kind, the address of another object's header or an
//! ID in a fractal heap. The extension of the superblock names a table of up to 8 indices; each has
//! a heap for some kinds of messages.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::dataspace::Dataspace;
use crate::datatype::Datatype;
use crate::error::{Error, Result, Within};
use crate::file::File;
use crate::fractal_heap::Heap;
use crate::header::{Message, kind};
use crate::walk::Walk;

const STRUCTURE: &str = "shared message";
const TABLE: &str = "table of shared messages";

const IN_HEAP: u8 = 1;
/// Bytes of an ID in the heap of an index.
const ID_BYTES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reference {
    /// Address of an object's header.
    Header(u64),
    Heap([u8; ID_BYTES]),
}

struct Index<'f> {
    /// A bit for each kind of messages.
    kinds: u16,
    heap_address: u64,
    /// `None` until a message is sought.
    heap: Option<Heap<'f>>,
}

pub(crate) struct Shared<'f> {
    file: &'f File,
    walk: Walk,
    /// `None` until a message is sought.
    table: Option<Vec<Index<'f>>>,
    /// `None` if a type could not be read.
    types: HashMap<Reference, Option<Arc<Datatype>>>,
    spaces: HashMap<Reference, Option<Dataspace>>,
}

pub(crate) fn resolve<T>(
    file: &File,
    message: &Message<'_>,
    decode: impl FnOnce(&mut Bytes<'_>) -> Result<T>,
) -> Result<T> {
    let mut data = message.data.clone();
    if !message.is_shared {
        return decode(&mut data);
    }
    let reference = Reference::decode(&mut data)?;
    let (address, found) = Shared::new(file)?.bytes(message.kind, reference)?;
    decode(&mut file.bytes(STRUCTURE, address, &found))
}

impl<'f> Shared<'f> {
    pub(crate) fn new(file: &'f File) -> Result<Self> {
        let (types, spaces) = (HashMap::new(), HashMap::new());
        Ok(Shared { file, walk: file.walk()?, table: None, types, spaces })
    }

    pub(crate) fn datatype(&mut self, is_shared: bool, fields: &mut Bytes<'_>) -> Result<Arc<Datatype>> {
        if !is_shared {
            return Ok(Arc::new(Datatype::decode(fields)?));
        }
        let reference = Reference::decode(fields)?;
        if let Some(found) = self.types.get(&reference) {
            return found.clone().ok_or_else(|| fields.error("the shared datatype cannot be read"));
        }
        let found = self.decode(kind::DATATYPE, reference, Datatype::decode).map(Arc::new);
        self.types.insert(reference, found.as_ref().ok().cloned());
        found
    }

    pub(crate) fn dataspace(&mut self, is_shared: bool, fields: &mut Bytes<'_>) -> Result<Dataspace> {
        if !is_shared {
            return Dataspace::decode(fields);
        }
        let reference = Reference::decode(fields)?;
        if let Some(found) = self.spaces.get(&reference) {
            return found.clone().ok_or_else(|| fields.error("the shared dataspace cannot be read"));
        }
        let found = self.decode(kind::DATASPACE, reference, Dataspace::decode);
        self.spaces.insert(reference, found.as_ref().ok().cloned());
        found
    }

    /// The message to which a message of `kind` refers: its address and bytes.
    pub(crate) fn message(&mut self, kind: u16, fields: &mut Bytes<'_>) -> Result<(u64, Vec<u8>)> {
        let reference = Reference::decode(fields)?;
        self.bytes(kind, reference)
    }

    pub(crate) fn in_heap(&mut self, kind: u16, id: &[u8]) -> Result<(u64, Vec<u8>)> {
        let place = || format!("{STRUCTURE} of kind {kind}");
        let number = self.table()?.iter().position(|index| index.kinds >> bit(kind) & 1 != 0);
        let index = number.and_then(|number| self.table.as_mut()?.get_mut(number));
        let index = index.ok_or_else(|| Error::damaged("the file shares no messages of this kind").within(place()))?;
        let mut heap = match index.heap.take() {
            Some(heap) => heap,
            None => Heap::read(self.file, index.heap_address)?,
        };
        let found = heap.object(id).map(|found| found.map(|object| (object.address, object.bytes.to_vec())));
        let mut lost = Vec::new();
        if let Ok(None) = found {
            heap.damage(&mut lost);
        }
        index.heap = Some(heap);
        let missing = || lost.pop().unwrap_or_else(|| Error::damaged("the block that has it cannot be read"));
        found.and_then(|found| found.ok_or_else(missing)).within(place)
    }

    fn decode<T>(
        &mut self,
        kind: u16,
        reference: Reference,
        decode: impl FnOnce(&mut Bytes<'_>) -> Result<T>,
    ) -> Result<T> {
        let (address, found) = self.bytes(kind, reference)?;
        decode(&mut self.file.bytes(STRUCTURE, address, &found))
    }

    fn bytes(&mut self, kind: u16, reference: Reference) -> Result<(u64, Vec<u8>)> {
        let address = match reference {
            Reference::Heap(id) => return self.in_heap(kind, &id),
            Reference::Header(address) => address,
        };
        let header = self.file.header(address)?;
        self.walk.enter(STRUCTURE, address, header.bytes())?;
        let place = || format!("{STRUCTURE} in the object at address {address}");
        let missing = || Error::damaged(format!("the object has no message of kind {kind}")).within(place());
        let mut message = header.find(self.file, kind).ok_or_else(missing)?;
        if message.is_shared {
            return Err(message.data.error("the message is shared twice"));
        }
        let start = self.file.address(message.data.offset());
        Ok((start, message.data.rest().to_vec()))
    }

    fn table(&mut self) -> Result<&[Index<'f>]> {
        if self.table.is_none() {
            self.table = Some(read_table(self.file).within(|| TABLE)?);
        }
        Ok(self.table.as_deref().unwrap_or_default())
    }
}

impl Reference {
    fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        let version = fields.version(&[1, 2, 3])?;
        let before = fields.clone();
        let kind = fields.u8()?;
        if version == 1 {
            fields.skip(6 + fields.sizes().length)?;
        }
        // the kind has a meaning from version 3 on, but for heaps
        match kind {
            IN_HEAP if version > 1 => {
                let id = fields.take(ID_BYTES)?;
                Ok(Reference::Heap(id.try_into().map_err(|_| before.error("an ID of another length"))?))
            }
            0 | 2 => Ok(Reference::Header(fields.defined_address("a shared message")?)),
            _ if version < 3 => Ok(Reference::Header(fields.defined_address("a shared message")?)),
            kind => Err(before.unsupported(format!("a shared message of the unknown kind {kind}"))),
        }
    }
}

/// The bit of a kind of messages; both kinds of fill values have the same.
fn bit(kind: u16) -> u32 {
    u32::from(if kind == kind::OLD_FILL { kind::FILL } else { kind }).min(15)
}

fn read_table<'f>(file: &File) -> Result<Vec<Index<'f>>> {
    let missing = || Error::damaged("the file has no such table");
    let extension = file.header(file.superblock().extension.ok_or_else(missing)?)?;
    let mut message = extension.find(file, kind::SHARED_TABLE).ok_or_else(missing)?;
    message.data.version(&[0])?;
    let address = message.data.defined_address("the table")?;
    let count = usize::from(message.data.u8()?);
    let bytes = 8 + count * (14 + 2 * file.sizes().address);
    let sealed = file.sealed(TABLE, address, bytes as u64)?;
    let mut fields = file.bytes(TABLE, address, &sealed);
    fields.signature(b"SMTB")?;
    let mut indices = Vec::new();
    for _ in 0..count {
        // list or B-tree: neither is needed to find a message by its ID
        fields.version(&[0])?;
        fields.skip(1)?;
        let kinds = fields.u16()?;
        fields.skip(10)?;
        let _index = fields.address()?;
        if let Some(heap_address) = fields.address()? {
            indices.push(Index { kinds, heap_address, heap: None });
        }
    }
    Ok(indices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, file};

    /// A file with an object of version 1, whose datatype is `data`.
    fn object(data: &[u8], is_shared: bool) -> File {
        let mut bytes = vec![1, 0, 1, 0, 1, 0, 0, 0, 8 + data.len() as u8, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([3, 0, data.len() as u8, 0, if is_shared { 2 } else { 0 }, 0, 0, 0]);
        bytes.extend(data);
        file(&bytes)
    }

    const INTEGER: [u8; 16] = [0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0];

    fn reference(version: u8, kind: u8, address: u64) -> Vec<u8> {
        let mut bytes = vec![version, kind];
        bytes.extend(if version == 1 { vec![0; 14] } else { vec![] });
        bytes.extend(address.to_le_bytes());
        bytes
    }

    fn datatype(file: &File, reference: &[u8]) -> Result<Arc<Datatype>> {
        let mut shared = Shared::new(file)?;
        let found = shared.datatype(true, &mut file.bytes("test", 0, reference));
        // the second time from memory
        let again = shared.datatype(true, &mut file.bytes("test", 0, reference));
        assert_eq!(found.is_ok(), again.is_ok());
        found
    }

    #[test]
    fn committed_types_in_all_versions_of_references() {
        let file = object(&INTEGER, false);
        for (version, kind) in [(1, 0), (2, 0), (2, 7), (3, 2)] {
            assert_eq!(datatype(&file, &reference(version, kind, START)).unwrap().size, 4);
        }
    }

    #[test]
    fn wrong_references_are_refused() {
        let message = |file: &File, version, kind, address| {
            datatype(file, &reference(version, kind, address)).unwrap_err().message().to_owned()
        };
        let file = object(&INTEGER, false);
        assert_eq!(message(&file, 3, 2, u64::MAX), "the address of a shared message is undefined");
        assert_eq!(message(&file, 3, 9, START), "a shared message of the unknown kind 9");
        assert_eq!(message(&file, 4, 2, START), "version 4 is not one of [1, 2, 3]");
        assert_eq!(message(&file, 3, 1, 0), "the file has no such table");
        let myself = object(&reference(3, 2, START), true);
        assert_eq!(message(&myself, 3, 2, START), "the message is shared twice");
        let mut shared = Shared::new(&file).unwrap();
        let error = shared.dataspace(true, &mut file.bytes("test", 0, &reference(3, 2, START))).unwrap_err();
        assert_eq!(error.message(), "the object has no message of kind 1");
    }
}
