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

#[derive(Debug, Clone, Copy)]
pub(crate) struct SymbolTable {
    tree: u64,
    heap: u64,
}

impl SymbolTable {
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        Ok(SymbolTable { tree: fields.defined_address("the B-tree")?, heap: fields.defined_address("the heap")? })
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, file};
    use crate::walk::Listing;

    const TREE: u64 = START + 32 + 16;
    const NODE: u64 = TREE + 48;

    /// A heap with 16 bytes of names, a tree of one leaf, a node with an entry for each name: the
    /// offset of the name, and whether it is a soft link to the name at 4.
    fn group(names: &[u8; 16], entries: &[(u64, bool)]) -> Vec<u8> {
        let mut bytes = b"HEAP\0\0\0\0".to_vec();
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        bytes.extend(words(&[16, 1, START + 32]));
        bytes.extend(names);
        bytes.extend(b"TREE\0\0\x01\0");
        bytes.extend(words(&[u64::MAX, u64::MAX, 0, NODE, 8]));
        bytes.extend(b"SNOD\x01\0");
        bytes.extend((entries.len() as u16).to_le_bytes());
        for &(name, is_soft) in entries {
            bytes.extend(words(&[name, 800, if is_soft { 2 } else { 0 }, 4, 0]));
        }
        bytes
    }

    fn links(bytes: &[u8], wanted: Option<&[u8]>) -> (Vec<Link>, String) {
        let file = file(bytes);
        let mut found = Listing::new();
        let table = SymbolTable { tree: TREE, heap: START };
        table.links(&file, wanted, &mut file.walk().unwrap(), &mut found.damage, &mut found.items);
        (found.items, found.damage.iter().map(|error| format!("{}\n", error.message())).collect())
    }

    const NAMES: &[u8; 16] = b"\0\0\0\0b\0\0\0y\0\0\0no e";

    #[test]
    fn hard_and_soft_links() {
        let bytes = group(NAMES, &[(4, false), (8, true)]);
        let (found, damage) = links(&bytes, None);
        let targets: Vec<_> = found.iter().map(|link| (link.name.as_slice(), &link.target)).collect();
        let soft = Target::Soft(b"b".to_vec());
        assert_eq!(targets, [(&b"b"[..], &Target::Object(800)), (b"y", &soft)]);
        assert_eq!((damage.as_str(), links(&bytes, Some(b"y"))), ("", (found[1..].to_vec(), String::new())));
        // names greater than the last key are not in the leaf
        assert!(links(&bytes, Some(b"z")).0.is_empty());
    }

    #[test]
    fn wrong_names_are_damage_beside_the_others() {
        let bytes = group(NAMES, &[(4, false), (1, false), (12, false), (16, false), (u64::MAX, true), (8, false)]);
        let (found, damage) = links(&bytes, None);
        assert_eq!(found.len(), 2);
        let expected = [
            "the name of a link is empty",
            "text does not end with NUL",
            "a name begins at byte 16 of the heap, which has 16 bytes",
            "a name begins at byte 18446744073709551615 of the heap, which has 16 bytes",
        ];
        assert_eq!(damage.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_together_are_no_more_than_the_heap() {
        let (found, damage) = links(&group(b"\0long name 1234\0", &[(1, false); 9]), None);
        assert_eq!((found.len(), damage.lines().count()), (1, 8));
        assert!(damage.starts_with("names overlap: together they are larger than the heap\n"));
    }

    #[test]
    fn trees_that_contain_themselves_end() {
        let mut bytes = group(NAMES, &[(4, false)]);
        let (tree, child) = ((TREE - START) as usize, (TREE - START) as usize + 32);
        bytes[tree + 5] = 1;
        bytes[child..child + 8].copy_from_slice(&TREE.to_le_bytes());
        assert_eq!(links(&bytes, None).1, "the node has level 1, expected 0\n");
        bytes[tree + 5] = 0xff;
        assert_eq!(links(&bytes, None).1, "the tree has 255 levels; the limit is 32\n");
    }
}
