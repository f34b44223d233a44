//! B-trees of version 2, which index links, attributes, shared messages and chunks.
//! HDF5 File Format Specification 3.0, section III.A.2.
//!
//! The header `BTHD` has the sizes and the root. Internal nodes `BTIN` and leaves `BTLF` have
//! records; an internal node has a child before, between and after its records, each with the
//! number of its records and, above the lowest internal level, of all records below it. These
//! numbers take as many bytes as the largest that a node of the size can have.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::file::File;
use crate::walk::Walk;

const HEADER: &str = "B-tree header";
const NODE: &str = "B-tree node";

/// Signature, version, kind and checksum of a node.
const NODE_BYTES: u64 = 10;

#[derive(Debug)]
pub(crate) struct Tree {
    kind: u8,
    node_bytes: u64,
    record_bytes: u64,
    root: Option<Child>,
    /// Records of the whole tree, as the header says.
    pub(crate) records: u64,
    /// Levels, leaves first.
    levels: Vec<Level>,
    /// Bytes in which a number of records in one node is stored.
    count_bytes: usize,
}

/// Capacity of the nodes of a level.
#[derive(Debug, Clone, Copy)]
struct Level {
    records: u64,
    /// Bytes in which the number of all records below a node of this level is stored.
    total_bytes: usize,
}

/// A node as its parent names it.
#[derive(Debug, Clone, Copy)]
struct Child {
    address: u64,
    records: u64,
    /// `None` if the parent does not say.
    total: Option<u64>,
}

impl Tree {
    pub(crate) fn read(file: &File, address: u64, kind: u8) -> Result<Self> {
        let sizes = file.sizes();
        let bytes = 16 + sizes.address + 2 + sizes.length + 4;
        let sealed = file.sealed(HEADER, address, bytes as u64)?;
        let mut fields = file.bytes(HEADER, address, &sealed);
        fields.signature(b"BTHD")?;
        fields.version(&[0])?;
        let found = fields.u8()?;
        if found != kind {
            return Err(fields.error(format!("the tree has records of kind {found}, expected {kind}")));
        }
        let node_bytes = u64::from(fields.u32()?);
        let record_bytes = u64::from(fields.u16()?);
        let depth = fields.u16()?;
        fields.skip(2)?;
        let root = fields.address()?;
        let in_root = u64::from(fields.u16()?);
        let records = fields.length()?;
        if u32::from(depth) > file.limits().depth {
            return Err(fields.error(format!("the tree has {depth} levels; the limit is {}", file.limits().depth)));
        }
        if record_bytes == 0 || node_bytes < NODE_BYTES + record_bytes {
            return Err(fields.error(format!("records of {record_bytes} bytes in nodes of {node_bytes}")));
        }
        let most = (node_bytes - NODE_BYTES) / record_bytes;
        let count_bytes = bytes_of(most);
        let mut levels = vec![Level { records: most, total_bytes: 0 }];
        let mut total = most;
        for _ in 0..depth {
            let below = levels[levels.len() - 1];
            let pointer = (sizes.address + count_bytes + below.total_bytes) as u64;
            let left = node_bytes.checked_sub(NODE_BYTES + pointer);
            let records = left.map_or(0, |left| left / (record_bytes + pointer));
            if records == 0 {
                return Err(fields.error(format!("nodes of {node_bytes} bytes have no room for records")));
            }
            // more than every number: it then takes 8 bytes
            total = (records + 1).saturating_mul(total).saturating_add(records);
            levels.push(Level { records, total_bytes: bytes_of(total) });
        }
        let root = root.map(|address| Child { address, records: in_root, total: Some(records) });
        if root.is_none() && records > 0 {
            return Err(fields.error(format!("the tree has {records} records, but no root")));
        }
        Ok(Tree { kind, node_bytes, record_bytes, root, records, levels, count_bytes })
    }

    pub(crate) fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Nodes that cannot be read, and records that `each` refuses, are `damage`; the walk goes on.
    pub(crate) fn visit(
        &self,
        file: &File,
        walk: &mut Walk,
        damage: &mut Vec<Error>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) {
        self.run(Visit { file, walk, damage, each, compare: None });
    }

    /// As [`visit`](Self::visit), of the records that `compare` finds `Equal` to what is sought.
    /// Records before it are `Less`. Only nodes that can have such records are read.
    pub(crate) fn find(
        &self,
        file: &File,
        walk: &mut Walk,
        damage: &mut Vec<Error>,
        compare: &Compare<'_>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) {
        self.run(Visit { file, walk, damage, each, compare: Some(compare) });
    }

    fn run(&self, mut visit: Visit<'_>) {
        let Some(root) = self.root else { return };
        if let Err(error) = self.node(&mut visit, root, self.levels.len() - 1) {
            visit.damage.push(error);
        }
    }

    /// Visits a node; returns the number of records in it and below it.
    fn node(&self, visit: &mut Visit<'_>, node: Child, level: usize) -> Result<u64> {
        let place =
            |message: String| Error::damaged(message).within(format_args!("{NODE} at address {}", node.address));
        if node.records > self.levels[level].records {
            let most = self.levels[level].records;
            return Err(place(format!("the node has {} records, at most {most} fit", node.records)));
        }
        let file = visit.file;
        visit.walk.enter(NODE, node.address, self.node_bytes)?;
        let below = level.checked_sub(1);
        let total_bytes = below.map_or(0, |below| self.levels[below].total_bytes);
        let pointer = (file.sizes().address + self.count_bytes + total_bytes) as u64;
        let pointers = if below.is_some() { (node.records + 1) * pointer } else { 0 };
        let bytes = NODE_BYTES + node.records * self.record_bytes + pointers;
        let sealed = file.sealed(NODE, node.address, bytes)?;
        let mut fields = file.bytes(NODE, node.address, &sealed);
        fields.signature(if below.is_some() { b"BTIN" } else { b"BTLF" })?;
        fields.version(&[0])?;
        let kind = fields.u8()?;
        if kind != self.kind {
            return Err(fields.error(format!("the node has records of kind {kind}, expected {}", self.kind)));
        }
        let records = fields.take((node.records * self.record_bytes) as usize)?;
        let mut records = records.chunks_exact(self.record_bytes as usize);
        let damage_before = visit.damage.len();
        let mut total = node.records;
        let mut before = Ordering::Less;
        for _ in 0..=node.records {
            let record = records.next();
            let after = record.map_or(Ordering::Greater, |record| visit.order(record));
            if let Some(below) = below {
                let address = fields.defined_address("a child")?;
                let count = fields.number(self.count_bytes)?;
                let all = if total_bytes == 0 { None } else { Some(fields.number(total_bytes)?) };
                let child = Child { address, records: count, total: all };
                if visit.compare.is_none() || before != Ordering::Greater && after != Ordering::Less {
                    match self.node(visit, child, below) {
                        Ok(count) => total = total.saturating_add(count),
                        Err(error) => visit.damage.push(error),
                    }
                }
            }
            if let Some(record) = record
                && after == Ordering::Equal
                && let Err(error) = (visit.each)(record)
            {
                visit.damage.push(error);
            }
            before = after;
        }
        match node.total {
            Some(expected) if expected != total && visit.compare.is_none() && visit.damage.len() == damage_before => {
                Err(place(format!("{total} records are in the node and below it, expected {expected}")))
            }
            _ => Ok(total),
        }
    }
}

/// Order of a record and the record that is sought.
type Compare<'a> = dyn Fn(&[u8]) -> Ordering + 'a;

struct Visit<'a> {
    file: &'a File,
    walk: &'a mut Walk,
    damage: &'a mut Vec<Error>,
    each: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    /// `None` if all records are sought.
    compare: Option<&'a Compare<'a>>,
}

impl Visit<'_> {
    fn order(&self, record: &[u8]) -> Ordering {
        self.compare.map_or(Ordering::Equal, |compare| compare(record))
    }
}

/// Bytes in which numbers up to `most` are stored.
fn bytes_of(most: u64) -> usize {
    (most.max(1).ilog2() / 8 + 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_bytes_of_the_largest() {
        assert_eq!([0, 1, 255, 256, 65535, 65536, u64::MAX].map(bytes_of), [1, 1, 1, 2, 2, 3, 8]);
    }
}
