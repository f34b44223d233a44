//! Links and attributes of objects that have many: a fractal heap has them, B-trees of version 2
//! index them. HDF5 File Format Specification 3.0, sections III.A.2 (records of kinds 5, 6, 8 and
//! 9), IV.A.2.c and IV.A.2.v.
//!
//! | record | of                       | fields                                   |
//! |--------|--------------------------|------------------------------------------|
//! | 5      | links by name            | hash of the name, heap ID                |
//! | 6      | links by order           | creation order of 8 bytes, heap ID       |
//! | 8      | attributes by name       | heap ID, flags, creation order, hash     |
//! | 9      | attributes by order      | heap ID, flags, creation order           |

use std::collections::HashSet;
use std::ops::Range;

use crate::btree2::Tree;
use crate::bytes::Bytes;
use crate::checksum::{lookup3, u32_at};
use crate::error::{Error, Result};
use crate::file::File;
use crate::fractal_heap::Heap;

const HAS_ORDER: u8 = 1;
const HAS_ORDER_INDEX: u8 = 1 << 1;

/// The object is a shared message: its ID is of another heap.
const SHARED: u8 = 1 << 1;

/// Layout of the records of links or of attributes.
pub(crate) struct Kind {
    /// Plural, for errors.
    name: &'static str,
    by_name: u8,
    by_order: u8,
    /// Bytes of the greatest creation order in the info message.
    order_bytes: usize,
    /// Place of the heap ID in records by name and by order.
    id: (Range<usize>, Range<usize>),
    hash_at: usize,
    flags_at: Option<usize>,
    order_at: Option<usize>,
}

pub(crate) const LINKS: Kind = Kind {
    name: "links",
    by_name: 5,
    by_order: 6,
    order_bytes: 8,
    id: (4..11, 8..15),
    hash_at: 0,
    flags_at: None,
    order_at: None,
};

pub(crate) const ATTRIBUTES: Kind = Kind {
    name: "attributes",
    by_name: 8,
    by_order: 9,
    order_bytes: 2,
    id: (0..8, 0..8),
    hash_at: 13,
    flags_at: Some(8),
    order_at: Some(9),
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Dense {
    heap: u64,
    names: u64,
    orders: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) id: &'a [u8],
    /// The ID is of the heap of shared messages.
    pub(crate) is_shared: bool,
    /// Creation order, of attributes only.
    pub(crate) order: Option<u32>,
}

/// Called for each record; the heap is that of the object.
pub(crate) type Each<'a, 'f> = dyn FnMut(Record<'_>, &mut Heap<'f>) -> Result<()> + 'a;

impl Dense {
    /// Decodes a link info or an attribute info message; `None` if nothing is stored densely.
    pub(crate) fn decode(kind: &Kind, fields: &mut Bytes<'_>) -> Result<Option<Self>> {
        fields.version(&[0])?;
        let flags = fields.u8()?;
        if flags & HAS_ORDER != 0 {
            fields.skip(kind.order_bytes)?;
        }
        let heap = fields.address()?;
        let before = fields.clone();
        let names = fields.address()?;
        let orders = if flags & HAS_ORDER_INDEX == 0 { None } else { fields.address()? };
        let Some(heap) = heap else { return Ok(None) };
        let names = names.ok_or_else(|| before.error("the address of the index is undefined"))?;
        Ok(Some(Dense { heap, names, orders }))
    }

    /// Unordered; compares the numbers of records of both indices and of the heap's objects.
    pub(crate) fn visit<'f>(self, file: &'f File, kind: &Kind, damage: &mut Vec<Error>, each: &mut Each<'_, 'f>) {
        let mut found = Vec::new();
        if let Err(error) = self.read(file, kind, &mut found, each) {
            found.push(error);
        }
        damage.extend(found.into_iter().map(|error| error.within(format_args!("dense {}", kind.name))));
    }

    fn read<'f>(self, file: &'f File, kind: &Kind, damage: &mut Vec<Error>, each: &mut Each<'_, 'f>) -> Result<()> {
        let (mut heap, mut walk) = (Heap::read(file, self.heap)?, file.walk()?);
        let mut tree = |address, kind| Tree::read(file, address, kind).map_err(|error| damage.push(error)).ok();
        let names = tree(self.names, kind.by_name);
        let orders = self.orders.and_then(|address| tree(address, kind.by_order));
        if let (Some(names), Some(orders)) = (&names, &orders)
            && names.records != orders.records
        {
            let (names, orders) = (names.records, orders.records);
            damage.push(Error::damaged(format!("the index by name has {names} records, that by order {orders}")));
        }
        let (mut seen, mut in_heap) = (HashSet::new(), 0);
        if let Some(names) = names {
            names.visit(file, &mut walk, damage, &mut |record| {
                let record = kind.record(record, kind.id.0.clone())?;
                if !seen.insert(record.id.to_vec()) {
                    return Err(Error::damaged("two records have the same heap ID"));
                }
                in_heap += u64::from(!record.is_shared);
                each(record, &mut heap)
            });
        }
        let is_whole = damage.is_empty();
        if let Some(orders) = orders {
            orders.visit(file, &mut walk, damage, &mut |record| {
                let record = kind.record(record, kind.id.1.clone())?;
                if !seen.insert(record.id.to_vec()) {
                    return Ok(());
                }
                each(record, &mut heap)?;
                let lacking = || Err(Error::damaged("the index by name lacks a record of that by order"));
                if is_whole { lacking() } else { Ok(()) }
            });
        }
        heap.damage(damage);
        if damage.is_empty() && in_heap != heap.objects {
            return Err(Error::damaged(format!("the index has {in_heap} records, the heap {} objects", heap.objects)));
        }
        Ok(())
    }

    /// Calls `each` for the records whose name may be `name`: it has the same hash.
    pub(crate) fn find<'f>(
        self,
        file: &'f File,
        kind: &Kind,
        name: &[u8],
        damage: &mut Vec<Error>,
        each: &mut Each<'_, 'f>,
    ) -> Result<()> {
        let hash = lookup3(name);
        let mut heap = Heap::read(file, self.heap)?;
        let tree = Tree::read(file, self.names, kind.by_name)?;
        let compare = |record: &[u8]| u32_at(record, kind.hash_at).cmp(&hash);
        tree.find(file, &mut file.walk()?, damage, &compare, &mut |record| {
            each(kind.record(record, kind.id.0.clone())?, &mut heap)
        });
        heap.damage(damage);
        Ok(())
    }
}

impl Kind {
    fn record<'a>(&self, record: &'a [u8], id: Range<usize>) -> Result<Record<'a>> {
        let short = || Error::damaged(format!("a record of {} bytes in an index of {}", record.len(), self.name));
        let byte = |at: Option<usize>| at.map_or(Some(0), |at| record.get(at).copied()).ok_or_else(short);
        Ok(Record {
            id: record.get(id).ok_or_else(short)?,
            is_shared: byte(self.flags_at)? & SHARED != 0,
            order: self.order_at.map(|at| u32_at(record, at)),
        })
    }
}
