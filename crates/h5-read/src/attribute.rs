//! Attributes: small named values of an object. HDF5 File Format Specification 3.0, sections
//! IV.A.2.m and v.
//!
//! A message has its version, flags, the bytes of the name, of the datatype and of the dataspace,
//! then these three and the elements. Version 1 pads each to a multiple of 8; version 3 has the
//! character set of the name.

use std::sync::Arc;

use crate::bytes::Bytes;
use crate::dataspace::Dataspace;
use crate::datatype::Datatype;
use crate::dense::{self, ATTRIBUTES, Dense};
use crate::error::{Error, ErrorKind, Result, Within};
use crate::fractal_heap::Heap;
use crate::header::{Message, kind};
use crate::object::Object;
use crate::shared::Shared;
use crate::walk::Listing;

const STRUCTURE: &str = "attribute";

/// Creation order of attributes in objects that do not keep it.
const NO_ORDER: u32 = 0xffff;

const SHARED_TYPE: u8 = 1;
const SHARED_SPACE: u8 = 1 << 1;

/// An attribute of an object.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// As stored: UTF-8 in most files, whatever `is_utf8` says.
    pub name: Vec<u8>,
    /// The attribute says that its name is UTF-8, not ASCII.
    pub is_utf8: bool,
    /// Position in the order in which attributes were made, in objects that keep it.
    pub order: Option<u32>,
    /// Type of the elements.
    pub datatype: Arc<Datatype>,
    /// Extents.
    pub space: Dataspace,
    /// The elements as stored, as many bytes as the type and the extents say.
    pub data: Vec<u8>,
}

impl Object {
    /// All attributes, in the order in which they were made if the object keeps it, else by name.
    pub fn attributes(&self) -> Listing<Attribute> {
        let mut listing = Listing::new();
        if let Err(error) = self.collect(None, &mut listing) {
            listing.damage.push(error);
        }
        listing.items.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        let place = self.place();
        listing.damage = listing.damage.into_iter().map(|error| error.within(&place)).collect();
        listing
    }

    /// The attribute of a name, found without reading the others where the file has an index. If
    /// the index is damaged, the others are read.
    ///
    /// # Errors
    /// `Missing` if there is none; `Damaged` if that is not certain.
    pub fn attribute(&self, name: impl AsRef<[u8]>) -> Result<Attribute> {
        let name = name.as_ref();
        let mut found = Listing::new();
        if let Err(error) = self.collect(Some(name), &mut found) {
            found.damage.push(error);
        }
        if found.items.is_empty() && !found.damage.is_empty() {
            found.items = self.attributes().items.into_iter().filter(|attribute| attribute.name == name).collect();
        }
        if let Some(attribute) = found.items.into_iter().next() {
            return Ok(attribute);
        }
        let missing = || {
            let message = format!("the object has no attribute \"{}\"", name.escape_ascii());
            Error::new(ErrorKind::Missing, message)
        };
        Err(found.damage.into_iter().next().unwrap_or_else(missing).within(self.place()))
    }

    fn collect(&self, wanted: Option<&[u8]>, listing: &mut Listing<Attribute>) -> Result<()> {
        let Object { file, header, .. } = self;
        let mut shared = Shared::new(file)?;
        for message in header.messages(file).filter(|message| message.kind == kind::ATTRIBUTE) {
            match compact(message, &mut shared, self, wanted) {
                Ok(attribute) => listing.items.extend(attribute),
                Err(error) => listing.damage.push(error),
            }
        }
        let Some(mut info) = self.only(kind::ATTRIBUTE_INFO, &mut listing.damage) else { return Ok(()) };
        let Some(dense) = Dense::decode(&ATTRIBUTES, &mut info.data)? else { return Ok(()) };
        let Listing { items, damage } = listing;
        let mut each = |record: dense::Record<'_>, heap: &mut Heap<'_>| {
            let copy;
            let (address, bytes) = if record.is_shared {
                copy = shared.in_heap(kind::ATTRIBUTE, record.id)?;
                (copy.0, copy.1.as_slice())
            } else {
                let Some(object) = heap.object(record.id)? else { return Ok(()) };
                (object.address, object.bytes)
            };
            let mut fields = file.bytes(STRUCTURE, address, bytes);
            items.extend(Attribute::decode(&mut fields, &mut shared, record.order, wanted)?);
            Ok(())
        };
        match wanted {
            Some(wanted) => dense.find(file, &ATTRIBUTES, wanted, damage, &mut each),
            None => {
                dense.visit(file, &ATTRIBUTES, damage, &mut each);
                Ok(())
            }
        }
    }
}

/// An attribute in the header of its object; `None` if it has another name.
fn compact(
    mut message: Message<'_>,
    shared: &mut Shared<'_>,
    object: &Object,
    wanted: Option<&[u8]>,
) -> Result<Option<Attribute>> {
    let order = message.order.map(u32::from);
    if !message.is_shared {
        return Attribute::decode(&mut message.data, shared, order, wanted);
    }
    let (address, bytes) = shared.message(kind::ATTRIBUTE, &mut message.data)?;
    Attribute::decode(&mut object.file.bytes(STRUCTURE, address, &bytes), shared, order, wanted)
}

impl Attribute {
    /// `None` if it has another name than `wanted`.
    fn decode(
        fields: &mut Bytes<'_>,
        shared: &mut Shared<'_>,
        order: Option<u32>,
        wanted: Option<&[u8]>,
    ) -> Result<Option<Self>> {
        let order = order.filter(|&order| order != NO_ORDER);
        let version = fields.version(&[1, 2, 3])?;
        let before = fields.clone();
        let flags = match fields.u8()? {
            _ if version == 1 => 0,
            flags if flags & !(SHARED_TYPE | SHARED_SPACE) != 0 => {
                return Err(before.unsupported(format!("an attribute with the unknown flags {flags:#04x}")));
            }
            flags => flags,
        };
        let [name, datatype, space] = [fields.u16()?, fields.u16()?, fields.u16()?].map(usize::from);
        let is_utf8 = version == 3 && fields.u8()? != 0;
        let name = part(fields, name, version)?.rest();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if wanted.is_some_and(|wanted| wanted != name) {
            return Ok(None);
        }
        let mut rest = || {
            let datatype = shared.datatype(flags & SHARED_TYPE != 0, &mut part(fields, datatype, version)?)?;
            let space = shared.dataspace(flags & SHARED_SPACE != 0, &mut part(fields, space, version)?)?;
            let bytes = space.elements().and_then(|elements| elements.checked_mul(datatype.size()));
            let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
            let data = fields.take(bytes)?.to_vec();
            Ok(Attribute { name: name.to_vec(), is_utf8, order, datatype, space, data })
        };
        rest().map(Some).within(|| format!("attribute \"{}\"", name.escape_ascii()))
    }
}

/// The next `len` bytes, which version 1 pads.
fn part<'a>(fields: &mut Bytes<'a>, len: usize, version: u8) -> Result<Bytes<'a>> {
    let start = fields.offset();
    let part = Bytes::new(STRUCTURE, start, fields.take(len)?, fields.sizes());
    if version == 1 {
        fields.align()?;
    }
    Ok(part)
}
