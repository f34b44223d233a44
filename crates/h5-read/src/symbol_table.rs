//! Groups of version 1: a B-tree of symbol table nodes, with names in a local heap.
//! HDF5 File Format Specification 3.0, sections III.B, III.C and IV.A.2.r.
//!
//! A node is `SNOD`, a version, the number of its entries, and entries sorted by name. An entry has
//! the offset of its name in the heap, the address of the object, and 16 bytes whose meaning a
//! number before them gives: for a soft link the offset of its target in the heap. Keys of the tree
//! are offsets of names: names of a child are greater than the key before it, and not greater than
//! the key after it.

use crate::btree1::Tree;
use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::file::File;
use crate::link::{Link, Target};
use crate::local_heap::LocalHeap;
use crate::walk::Walk;

const STRUCTURE: &str = "symbol table node";
const GROUPS: u8 = 0;
const SOFT: u32 = 2;

/// Where the links of a group are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SymbolTable {
    tree: u64,
    heap: u64,
}

impl SymbolTable {
    /// Decodes a symbol table message.
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        Ok(SymbolTable { tree: fields.defined_address("the B-tree")?, heap: fields.defined_address("the heap")? })
    }

    /// Adds all links to `links`, or the one of the name `wanted`.
    pub(crate) fn links(
        self,
        file: &File,
        wanted: Option<&[u8]>,
        walk: &mut Walk,
        damage: &mut Vec<Error>,
        links: &mut Vec<Link>,
    ) {
        let mut heap = match LocalHeap::read(file, self.heap, walk) {
            Ok(heap) => heap,
            Err(error) => return damage.push(error),
        };
        let mut nodes = Vec::new();
        let between = |before: &[u8], after: &[u8]| {
            let text = |key: &[u8]| heap.text(file, file.bytes(STRUCTURE, 0, key).length()?);
            match (wanted, text(before), text(after)) {
                (Some(wanted), Ok(before), Ok(after)) => before < wanted && wanted <= after,
                _ => true,
            }
        };
        let tree = Tree { kind: GROUPS, key_bytes: file.sizes().length };
        tree.find(file, self.tree, walk, damage, &between, &mut |_, _, child| {
            nodes.push(child);
            Ok(())
        });
        for node in nodes {
            if let Err(error) = read_node(file, node, &mut heap, wanted, walk, damage, links) {
                damage.push(error);
            }
        }
    }
}

fn read_node(
    file: &File,
    address: u64,
    heap: &mut LocalHeap,
    wanted: Option<&[u8]>,
    walk: &mut Walk,
    damage: &mut Vec<Error>,
    links: &mut Vec<Link>,
) -> Result<()> {
    let head = file.read(STRUCTURE, address, 8)?;
    let mut fields = file.bytes(STRUCTURE, address, &head);
    fields.signature(b"SNOD")?;
    fields.version(&[1])?;
    fields.skip(1)?;
    let count = usize::from(fields.u16()?);
    let sizes = file.sizes();
    let entry_bytes = sizes.length + sizes.address + 24;
    let bytes = count * entry_bytes;
    walk.enter(STRUCTURE, address, bytes as u64 + 8)?;
    let start = address.saturating_add(8);
    let entries = file.read(STRUCTURE, start, bytes as u64)?;
    for (number, entry) in entries.chunks_exact(entry_bytes).enumerate() {
        let mut fields = file.bytes(STRUCTURE, start.saturating_add((number * entry_bytes) as u64), entry);
        match read_entry(file, &mut fields, heap, wanted) {
            Ok(link) => links.extend(link),
            Err(error) => damage.push(error),
        }
    }
    Ok(())
}

/// `None` if it has another name.
fn read_entry(
    file: &File,
    fields: &mut Bytes<'_>,
    heap: &mut LocalHeap,
    wanted: Option<&[u8]>,
) -> Result<Option<Link>> {
    let offset = fields.length()?;
    let name = heap.text(file, offset)?;
    if wanted.is_some_and(|wanted| wanted != name) {
        return Ok(None);
    }
    if name.is_empty() {
        return Err(fields.error("the name of a link is empty"));
    }
    let name = heap.copy(file, offset)?;
    let before = fields.clone();
    let address = fields.address()?;
    let cache = fields.u32()?;
    fields.skip(4)?;
    let target = if cache == SOFT {
        Target::Soft(heap.copy(file, u64::from(fields.u32()?))?)
    } else {
        Target::Object(address.ok_or_else(|| before.error("the address of the object is undefined"))?)
    };
    Ok(Some(Link { name, is_utf8: false, order: None, target }))
}
