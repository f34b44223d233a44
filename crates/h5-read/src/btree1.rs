//! B-trees of version 1, which index groups and chunks. HDF5 File Format Specification 3.0, section
//! III.A.1.
//!
//! A node is `TREE`, its kind and level, the number of its entries, addresses of its neighbours,
//! and keys and children in turn, with a key more than children. Children of level 0 are not nodes.

use crate::error::{Error, Result};
use crate::file::File;
use crate::walk::Walk;

const STRUCTURE: &str = "B-tree node";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    /// 0: groups; 1: chunks.
    pub(crate) kind: u8,
    pub(crate) key_bytes: usize,
}

/// Called with an entry of a leaf: the key before a child, the key after it, the child's address.
pub(crate) type Each<'a> = dyn FnMut(&[u8], &[u8], u64) -> Result<()> + 'a;

/// Whether what is sought can be in a child between two keys.
pub(crate) type Between<'a> = dyn Fn(&[u8], &[u8]) -> bool + 'a;

impl Tree {
    /// Only the children for which `between` is true. Nodes that cannot be read and errors of
    /// `each` are added to `damage`, and the walk goes on.
    pub(crate) fn find(
        self,
        file: &File,
        root: u64,
        walk: &mut Walk,
        damage: &mut Vec<Error>,
        between: &Between<'_>,
        each: &mut Each<'_>,
    ) {
        let mut visit = Visit { file, walk, damage, between, each };
        if let Err(error) = self.node(&mut visit, root, None) {
            visit.damage.push(error);
        }
    }

    fn node(self, visit: &mut Visit<'_>, address: u64, level: Option<u8>) -> Result<()> {
        let file = visit.file;
        let sizes = file.sizes();
        let head_bytes = 8 + 2 * sizes.address;
        let head = file.read(STRUCTURE, address, head_bytes as u64)?;
        let mut fields = file.bytes(STRUCTURE, address, &head);
        fields.signature(b"TREE")?;
        let (kind, own) = (fields.u8()?, fields.u8()?);
        if kind != self.kind {
            return Err(fields.error(format!("the node is of kind {kind}, expected {}", self.kind)));
        }
        if let Some(level) = level.filter(|&level| level != own) {
            return Err(fields.error(format!("the node has level {own}, expected {level}")));
        }
        if u32::from(own) > file.limits().depth {
            return Err(fields.error(format!("the tree has {own} levels; the limit is {}", file.limits().depth)));
        }
        let entries = usize::from(fields.u16()?);
        let bytes = entries * (self.key_bytes + sizes.address) + self.key_bytes;
        visit.walk.enter(STRUCTURE, address, (head_bytes + bytes) as u64)?;
        let start = address.saturating_add(head_bytes as u64);
        let body = file.read(STRUCTURE, start, bytes as u64)?;
        let mut fields = file.bytes(STRUCTURE, start, &body);
        let mut key = fields.take(self.key_bytes)?;
        for _ in 0..entries {
            let child = fields.defined_address("a child");
            let next = fields.take(self.key_bytes)?;
            if (visit.between)(key, next) {
                let visited = child.and_then(|child| match own {
                    0 => (visit.each)(key, next, child),
                    _ => self.node(visit, child, Some(own - 1)),
                });
                if let Err(error) = visited {
                    visit.damage.push(error);
                }
            }
            key = next;
        }
        Ok(())
    }
}

struct Visit<'a> {
    file: &'a File,
    walk: &'a mut Walk,
    damage: &'a mut Vec<Error>,
    between: &'a Between<'a>,
    each: &'a mut Each<'a>,
}
