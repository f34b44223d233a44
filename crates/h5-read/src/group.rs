//! Groups: names of objects. HDF5 File Format Specification 3.0, sections IV.A.2.c, g and r.
//!
//! A group of version 1 has a symbol table; others have link messages in their header or, if there
//! are many, a heap.

use crate::bytes::Bytes;
use crate::dense::{Dense, LINKS};
use crate::error::{Error, ErrorKind, Result, Within};
use crate::fractal_heap::Heap;
use crate::header::kind;
use crate::link::{Link, Target};
use crate::object::Object;
use crate::symbol_table::SymbolTable;
use crate::walk::Listing;

/// Most soft links on the way to an object, as in the HDF5 library.
const MAX_SOFT: usize = 16;

/// Most names on the way to an object.
const MAX_STEPS: usize = 4096;

/// A group.
#[derive(Debug, Clone)]
pub struct Group {
    object: Object,
}

impl Group {
    pub(crate) fn new(object: Object) -> Self {
        Group { object }
    }

    /// The group as an object: its address and attributes.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// All links, in the order in which they were made if the group keeps it, else by name.
    pub fn links(&self) -> Listing<Link> {
        let mut listing = Listing::new();
        if let Err(error) = self.collect(None, &mut listing) {
            listing.damage.push(error);
        }
        listing.items.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        let place = self.object.place();
        listing.damage = listing.damage.into_iter().map(|error| error.within(&place)).collect();
        listing
    }

    /// The link of a name, found without reading the others where the file has an index. If the
    /// index is damaged, the others are read.
    ///
    /// # Errors
    /// `Missing` if there is none; `Damaged` if that is not certain.
    pub fn link(&self, name: impl AsRef<[u8]>) -> Result<Link> {
        let name = name.as_ref();
        let mut found = Listing::new();
        if let Err(error) = self.collect(Some(name), &mut found) {
            found.damage.push(error);
        }
        if found.items.is_empty() && !found.damage.is_empty() {
            found.items = self.links().items.into_iter().filter(|link| link.name == name).collect();
        }
        if let Some(link) = found.items.into_iter().next() {
            return Ok(link);
        }
        let missing = || Error::new(ErrorKind::Missing, format!("the group has no link \"{}\"", name.escape_ascii()));
        Err(found.damage.into_iter().next().unwrap_or_else(missing).within(self.object.place()))
    }

    /// The object at a path, through soft links: `a/b` from this group, `/a/b` from the root.
    ///
    /// # Errors
    /// `Missing` if a link is missing or something on the way is not a group; `Unsupported` if a
    /// link leads to another file; `Limit` if the way has more than 16 soft links; those of
    /// [`File::object`](crate::File::object).
    pub fn find(&self, path: impl AsRef<[u8]>) -> Result<Object> {
        let path = path.as_ref();
        self.follow(path).within(|| format!("path \"{}\"", path.escape_ascii()))
    }

    fn follow(&self, path: &[u8]) -> Result<Object> {
        let mut at = self.start(path)?;
        let mut steps = steps(path);
        let (mut soft, mut count) = (0, 0);
        while let Some(name) = steps.pop() {
            count += 1;
            if count > MAX_STEPS {
                return Err(Error::limit(format!("the way has more than {MAX_STEPS} names")));
            }
            let group = at.group()?;
            match group.link(&name)?.target {
                Target::Object(address) => at = at.file.object(address)?,
                Target::Soft(target) => {
                    soft += 1;
                    if soft > MAX_SOFT {
                        return Err(Error::limit(format!("the way has more than {MAX_SOFT} soft links")));
                    }
                    at = group.start(&target)?;
                    steps.extend(self::steps(&target));
                }
                Target::External { file, path } => {
                    let (file, path) = (file.escape_ascii(), path.escape_ascii());
                    return Err(Error::unsupported(format!("the link leads to \"{path}\" in the file \"{file}\"")));
                }
                Target::User { kind, .. } => {
                    return Err(Error::unsupported(format!("the link is of an application's kind, {kind}")));
                }
            }
        }
        Ok(at)
    }

    fn start(&self, path: &[u8]) -> Result<Object> {
        if !path.starts_with(b"/") {
            return Ok(self.object.clone());
        }
        self.object.file.object(self.object.file.superblock().root)
    }

    fn collect(&self, wanted: Option<&[u8]>, listing: &mut Listing<Link>) -> Result<()> {
        let Object { file, header, .. } = &self.object;
        for mut message in header.messages(file).filter(|message| message.kind == kind::LINK) {
            match Link::decode(&mut message.data) {
                Ok(link) if wanted.is_none_or(|wanted| wanted == link.name) => listing.items.push(link),
                Ok(_) => {}
                Err(error) => listing.damage.push(error),
            }
        }
        if let Some(mut info) = self.object.only(kind::LINK_INFO, &mut listing.damage)
            && let Some(dense) = Dense::decode(&LINKS, &mut info.data)?
        {
            self.dense(dense, wanted, listing)?;
        }
        if let Some(mut table) = self.object.only(kind::SYMBOL_TABLE, &mut listing.damage) {
            let table = SymbolTable::decode(&mut table.data)?;
            table.links(file, wanted, &mut file.walk()?, &mut listing.damage, &mut listing.items);
        }
        Ok(())
    }

    fn dense(&self, dense: Dense, wanted: Option<&[u8]>, listing: &mut Listing<Link>) -> Result<()> {
        let file = &self.object.file;
        let Listing { items, damage } = listing;
        let mut each = |record: crate::dense::Record<'_>, heap: &mut Heap<'_>| {
            if let Some(object) = heap.object(record.id)? {
                let mut fields: Bytes<'_> = file.bytes("link", object.address, object.bytes);
                let link = Link::decode(&mut fields)?;
                if wanted.is_none_or(|wanted| wanted == link.name) {
                    items.push(link);
                }
            }
            Ok(())
        };
        match wanted {
            Some(wanted) => dense.find(file, &LINKS, wanted, damage, &mut each)?,
            None => dense.visit(file, &LINKS, damage, &mut each),
        }
        Ok(())
    }
}

/// Names of a path, the first last.
fn steps(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.rev().map(<[u8]>::to_vec).collect()
}
