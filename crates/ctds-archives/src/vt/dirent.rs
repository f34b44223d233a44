//! Entries of directories in a vt archive (list of saved states of a directory, of cs.vt): a file,
//! directory or link each. Their binary form:
//!
//! ```text
//! bsuint type      0 file, 1 directory, 2 symbolic link, 3 hard link to the entry with the same UUID
//! bsuint flags     1 metadata, 2 name, 4 no block, 8 UUID, 16 earlier entry, 32 extension
//! [bsstring name] [bsstring metadata] [16 bytes UUID] [block] [block: earlier entry] [bsdata extension]
//! ```

use std::fmt::Write;

use ctds::error::{Error, Result, ResultExt};
use serde_json::{Map, Value};

use super::reference::BlockRef;
use super::wire::{Cursor, put_data, put_uint};

const META: u64 = 1;
const NAME: u64 = 2;
const NO_BLOCK: u64 = 4;
const UUID: u64 = 8;
const EARLIER: u64 = 16;
const EXTENDED: u64 = 32;

/// The discriminants are the numbers in the binary form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    Symlink,
    HardLink,
}

/// An entry of a directory, or the root directory itself, as the line of the archive has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dirent {
    pub(super) kind: EntryKind,
    /// Empty for a root without a name.
    pub(super) name: String,
    pub(super) meta: Meta,
    pub(super) uuid: Option<[u8; 16]>,
    /// The bytes of the file, or the encoded entries of the directory; `None` without data.
    pub(super) block: Option<BlockRef>,
    /// The encoded entry that the same file or directory had before its last change.
    pub(super) earlier: Option<BlockRef>,
}

/// Keys: `m` modification time, `a` access rights, `u` and `g` owner, `x` extended attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Meta {
    pub(super) fields: Map<String, Value>,
    /// Text of the encoded entry, or JSON made from the fields in a line of the archive.
    text: String,
}

impl EntryKind {
    pub(super) const ALL: [Self; 4] = [EntryKind::File, EntryKind::Directory, EntryKind::Symlink, EntryKind::HardLink];

    fn code(self) -> u64 {
        self as u64
    }
}

impl Dirent {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self> {
        let place = cursor.place();
        Self::decode_here(cursor).context(place)
    }

    fn decode_here(cursor: &mut Cursor<'_>) -> Result<Self> {
        let code = cursor.uint()?;
        let kind = EntryKind::ALL.into_iter().find(|kind| kind.code() == code);
        let kind =
            kind.ok_or_else(|| Error::format(format!("the type of a directory entry is {code}, expected 0 to 3")))?;
        let flags = cursor.uint()?;
        if flags & !(META | NAME | NO_BLOCK | UUID | EARLIER | EXTENDED) != 0 {
            return Err(Error::format(format!("the flags of a directory entry are {flags:#x}, expected 0 to 0x3f")));
        }
        let name = if flags & NAME != 0 { cursor.string()?.to_owned() } else { String::new() };
        let meta = if flags & META != 0 { Meta::parse(cursor.string()?)? } else { Meta::default() };
        let uuid = match flags & UUID {
            0 => None,
            _ => cursor.take(16)?.try_into().ok(),
        };
        let block = if flags & NO_BLOCK == 0 { Some(BlockRef::decode(cursor)?) } else { None };
        let earlier = if flags & EARLIER != 0 { Some(BlockRef::decode(cursor)?) } else { None };
        if flags & EXTENDED != 0 {
            cursor.data()?;
        }
        Ok(Dirent { kind, name, meta, uuid, block, earlier })
    }

    pub(super) fn decode_all(data: &[u8]) -> Result<Vec<Self>> {
        let mut cursor = Cursor::new(data, "directory");
        let mut entries = Vec::new();
        while !cursor.is_at_end() {
            entries.push(Self::decode(&mut cursor)?);
        }
        Ok(entries)
    }

    /// `block` is an encoded reference, `meta` JSON or `key:value;key:value`.
    pub(super) fn encode(out: &mut Vec<u8>, kind: EntryKind, name: &str, meta: &str, block: &[u8]) {
        put_uint(out, kind.code());
        put_uint(out, NAME | if meta.is_empty() { 0 } else { META });
        put_data(out, name.as_bytes());
        if !meta.is_empty() {
            put_data(out, meta.as_bytes());
        }
        out.extend_from_slice(block);
    }
}

impl Dirent {
    /// Fails for a reference that has no binary form.
    pub(super) fn encode_whole(&self, out: &mut Vec<u8>) -> Result<()> {
        let meta = self.meta.stored();
        let flags = [
            (!self.name.is_empty(), NAME),
            (meta.is_some(), META),
            (self.uuid.is_some(), UUID),
            (self.block.is_none(), NO_BLOCK),
            (self.earlier.is_some(), EARLIER),
        ];
        put_uint(out, self.kind.code());
        put_uint(out, flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        if !self.name.is_empty() {
            put_data(out, self.name.as_bytes());
        }
        if let Some(meta) = meta {
            put_data(out, meta.as_bytes());
        }
        out.extend(self.uuid.iter().flatten());
        self.block.iter().chain(&self.earlier).try_for_each(|block| block.encode(out))
    }
}

impl Meta {
    /// Parses JSON or `key:value;key:value`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text.starts_with('{') {
            let parsed = serde_json::from_str(text);
            let fields = parsed.map_err(|error| Error::format(format!("metadata that are not JSON: {error}")))?;
            return Ok(Meta { fields, text: text.to_owned() });
        }
        let mut fields = Map::new();
        for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let Some((key, value)) = field.split_once(':') else {
                return Err(Error::format(format!("the metadata field {field:?} has no colon")));
            };
            fields.insert(key.to_owned(), value.into());
        }
        Ok(Meta { fields, text: text.to_owned() })
    }

    pub(super) fn of_fields(fields: Map<String, Value>) -> Self {
        Meta { text: Value::Object(fields.clone()).to_string(), fields }
    }

    /// The metadata as text, JSON or `key:value;key:value`; `None` without any.
    pub(super) fn stored(&self) -> Option<&str> {
        (!self.fields.is_empty()).then_some(&self.text)
    }

    /// `a:access;m:seconds`; `modified` is in seconds and nanoseconds since 1970.
    pub(super) fn compact(modified: Option<(i64, u32)>, mode: Option<u32>) -> String {
        let mut text = String::new();
        if let Some(mode) = mode {
            let access = |shift: u32| {
                let bits = mode >> shift;
                let pick = |wanted: bool| {
                    let names = [(4, 'r'), (2, 'w'), (1, 'x')].into_iter();
                    names.filter(|(bit, _)| (bits & bit != 0) == wanted).map(|(_, name)| name).collect::<String>()
                };
                format!("{}-{}", pick(true), pick(false))
            };
            // writing to a string cannot fail
            let _ = write!(text, "a:o:{},g:{},*:{}", access(6), access(3), access(0));
        }
        if let Some((seconds, nanoseconds)) = modified {
            let separator = if text.is_empty() { "" } else { ";" };
            let _ = write!(text, "{separator}m:{seconds}.{:06}", nanoseconds / 1000);
        }
        text
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    /// Modification time in seconds since 1970.
    pub(super) fn modified(&self) -> Option<f64> {
        match self.fields.get("m")? {
            Value::String(text) => text.parse().ok(),
            other => other.as_f64(),
        }
    }

    /// Permissions that the access list grants, with the set-user-ID and set-group-ID bits.
    pub(super) fn mode(&self) -> u32 {
        let bits = |allowed: &str| {
            allowed.chars().fold(0, |bits, name| {
                bits | match name {
                    'r' => 4,
                    'w' => 2,
                    'x' => 1,
                    _ => 0,
                }
            })
        };
        let mut mode = 0;
        for rule in self.text("a").unwrap_or_default().split(',') {
            let Some((who, access)) = rule.split_once(':') else { continue };
            let shift = match who {
                "o" => 6,
                "g" => 3,
                "*" => 0,
                _ => continue,
            };
            mode |= bits(access.split('-').next().unwrap_or_default()) << shift;
        }
        let is_set = |key: &str| match self.fields.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(set)) => *set,
            Some(value) => value.as_str() != Some("False"),
        };
        mode | if is_set("su") { 0o4000 } else { 0 } | if is_set("sg") { 0o2000 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_have_two_forms() {
        let short = Meta::parse("a:o:rw-x,g:r-wx,*:r-wx;m:1500000000.250000;u:root").unwrap();
        let json = Meta::parse(r#"{"a": "o:rw-x,g:r-wx,*:r-wx", "m": 1500000000.25, "u": "root"}"#).unwrap();
        for meta in [&short, &json] {
            assert_eq!((meta.mode(), meta.modified(), meta.text("u")), (0o644, Some(1_500_000_000.25), Some("root")));
        }
        assert!(Meta::parse("nothing").is_err() && Meta::parse("{").is_err());
        let text = Meta::compact(Some((1_500_000_000, 250_000_000)), Some(0o100644));
        assert_eq!(text, "a:o:rw-x,g:r-wx,*:r-wx;m:1500000000.250000");
    }

    #[test]
    fn entries_round_trip() {
        let mut out = Vec::new();
        let mut block = Vec::new();
        BlockRef::encode_literal(&mut block, b"bytes");
        Dirent::encode(&mut out, EntryKind::File, "a", "m:1.5", &block);
        Dirent::encode(&mut out, EntryKind::Directory, "ä b", "", &block);
        let entries = Dirent::decode_all(&out).unwrap();
        assert_eq!(entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a", "ä b"]);
        assert_eq!(entries[0].meta.modified(), Some(1.5));
        assert!(entries.iter().all(|entry| entry.block == Some(BlockRef::Literal(b"bytes"[..].into()))));
        for len in 1..out.len() {
            assert!(
                Dirent::decode_all(&out[..len]).is_ok_and(|found| found.len() == 1)
                    || Dirent::decode_all(&out[..len]).is_err()
            );
        }
    }

    #[test]
    fn unknown_kinds_and_flags_are_refused() {
        for (bytes, message) in
            [(&[4, 4][..], "entry is 4"), (&[0, 0x44], "entry are 0x44"), (&[0, 6, 9, 1], "9 bytes")]
        {
            let error = Dirent::decode_all(bytes).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
