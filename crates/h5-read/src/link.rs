//! Links: what a name in a group leads to. HDF5 File Format Specification 3.0, section IV.A.2.g.
//!
//! A message has its version, flags, the kind (a hard link if absent), the creation order, the
//! character set, the name and the target. The flags say which of these are present, and the bytes
//! of the name's length.

use crate::bytes::Bytes;
use crate::error::Result;

const NAME_LENGTH: u8 = 3;
const HAS_ORDER: u8 = 1 << 2;
const HAS_KIND: u8 = 1 << 3;
const HAS_CHARSET: u8 = 1 << 4;
const FLAGS: u8 = NAME_LENGTH | HAS_ORDER | HAS_KIND | HAS_CHARSET;

const HARD: u8 = 0;
const SOFT: u8 = 1;
const EXTERNAL: u8 = 64;
/// Kinds from here on belong to applications; `EXTERNAL` is one of them.
const FIRST_OF_USERS: u8 = 64;

/// A name in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// As stored: UTF-8 in most files, whatever `is_utf8` says.
    pub name: Vec<u8>,
    /// The link says that its name is UTF-8, not ASCII.
    pub is_utf8: bool,
    /// Position in the order in which links were made, in groups that keep it.
    pub order: Option<u64>,
    /// Target of the name.
    pub target: Target,
}

/// Target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// An object of the same file: the address of its header.
    Object(u64),
    /// A path in the same file, which may not exist; relative to the group unless it begins with
    /// `/`.
    Soft(Vec<u8>),
    /// An object of another file, which this crate names only.
    External {
        /// Name of the file.
        file: Vec<u8>,
        /// Path of the object in it.
        path: Vec<u8>,
    },
    /// A link of an application's own kind.
    User {
        /// 65 to 255.
        kind: u8,
        /// Bytes of the application.
        data: Vec<u8>,
    },
}

impl Link {
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        fields.version(&[1])?;
        let flags = fields.u8()?;
        if flags & !FLAGS != 0 {
            return Err(fields.unsupported(format!("a link with the unknown flags {:#04x}", flags & !FLAGS)));
        }
        let kind = if flags & HAS_KIND == 0 { HARD } else { fields.u8()? };
        let order = if flags & HAS_ORDER == 0 { None } else { Some(fields.u64()?) };
        let is_utf8 = flags & HAS_CHARSET != 0 && fields.u8()? != 0;
        let length = fields.number(1 << (flags & NAME_LENGTH))?;
        let name = fields.take(usize::try_from(length).unwrap_or(usize::MAX))?.to_vec();
        if name.is_empty() {
            return Err(fields.error("the name of a link is empty"));
        }
        let target = target(fields, kind)?;
        Ok(Link { name, is_utf8, order, target })
    }
}

fn target(fields: &mut Bytes<'_>, kind: u8) -> Result<Target> {
    if kind == HARD {
        return Ok(Target::Object(fields.defined_address("the object")?));
    }
    if kind != SOFT && kind < FIRST_OF_USERS {
        return Err(fields.unsupported(format!("a link of the unknown kind {kind}")));
    }
    let length = usize::from(fields.u16()?);
    match kind {
        SOFT => Ok(Target::Soft(fields.take(length)?.to_vec())),
        EXTERNAL => {
            if length == 0 {
                return Err(fields.error("an external link without a target"));
            }
            fields.version(&[0])?;
            let before = fields.position();
            let (file, path) = (fields.text()?.to_vec(), fields.text()?.to_vec());
            if fields.position() - before + 1 > length {
                return Err(fields.error(format!("an external link ends after its {length} bytes")));
            }
            Ok(Target::External { file, path })
        }
        kind => Ok(Target::User { kind, data: fields.take(length)?.to_vec() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Sizes;

    fn decode(bytes: &[u8]) -> Result<Link> {
        Link::decode(&mut Bytes::new("message", 0, bytes, Sizes { address: 8, length: 8 }))
    }

    #[test]
    fn hard_link_with_order_and_charset() {
        let link = decode(b"\x01\x14\x07\0\0\0\0\0\0\0\x01\x02ab\x60\x03\0\0\0\0\0\0").unwrap();
        assert_eq!((link.name.as_slice(), link.is_utf8, link.order), (&b"ab"[..], true, Some(7)));
        assert_eq!(link.target, Target::Object(0x360));
    }

    #[test]
    fn soft_external_and_user_links() {
        let target = |bytes: &[u8]| decode(bytes).unwrap().target;
        assert_eq!(target(b"\x01\x08\x01\x01a\x03\0/xy"), Target::Soft(b"/xy".to_vec()));
        let external = Target::External { file: b"f.h5".to_vec(), path: b"/d".to_vec() };
        assert_eq!(target(b"\x01\x08\x40\x01a\x09\0\0f.h5\0/d\0"), external);
        assert_eq!(target(b"\x01\x08\x41\x01a\x02\0hi"), Target::User { kind: 65, data: b"hi".to_vec() });
    }

    #[test]
    fn lengths_beyond_the_message_and_unknown_kinds() {
        let error = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert!(error(b"\x01\x03\xff\xff\xff\xff\xff\xff\xff\xffa").contains("bytes are expected, 1 remain"));
        assert!(error(b"\x01\x08\x07\x01a\x02\0hi").contains("the unknown kind 7"));
        assert!(error(b"\x01\x08\x40\x01a\x03\0\0f.h5\0/d\0").contains("ends after its 3 bytes"));
        assert!(error(b"\x01\x00\x00").contains("empty"));
        assert!(error(b"\x02\x00").contains("version 2"));
    }
}
