//! Reads and writes the lines of an archive, each a saved state of a directory. A line has that
//! directory as text: its name, its metadata, and a reference to the blocks of the store that have
//! its entries.
//!
//! ```text
//! D{"name":meta:M{a:"o:rwx-",m:1.5},block:B{hash:H{sha1:…},span:428}}     F{…}  SymLink{…}  Indirect{…}
//! H{kind:hex}   B{hash:H{…},span:N}   I{N:block}   LB{hex and [readable]}   RLE{span:N,octet:hh}
//! SubB{block:…,offset:N,span:N}   U{uuid}   M{key:value,…}
//! ```

use std::sync::Arc;

use ctds::error::{Context, Error, Result, ResultExt};
use ctds::limits;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::dirent::{Dirent, EntryKind, Meta};
use super::hash::{BlockHash, HashKind};
use super::reference::BlockRef;

pub(super) struct Text<'a> {
    text: &'a str,
    at: usize,
}

#[derive(Default)]
struct Members {
    hash: Option<BlockHash>,
    span: Option<u64>,
    offset: Option<u64>,
    octet: Option<u8>,
    block: Option<BlockRef>,
    earlier: Option<BlockRef>,
    meta: Option<Meta>,
    uuid: Option<[u8; 16]>,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Text { text, at: 0 }
    }

    /// After the root directory: the comment of the line.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn dirent(&mut self) -> Result<Dirent> {
        self.dirent_here().with_context(|| self.place())
    }

    fn dirent_here(&mut self) -> Result<Dirent> {
        let kind = match self.identifier()? {
            "F" => EntryKind::File,
            "D" => EntryKind::Directory,
            "SymLink" => EntryKind::Symlink,
            "Indirect" => EntryKind::HardLink,
            other => {
                return Err(Error::format(format!(
                    "the type of an entry is {other:?}, expected D, F, SymLink or Indirect"
                )));
            }
        };
        self.expect('{')?;
        let mut name = String::new();
        if matches!(self.peek(), Some('"' | '\'')) {
            name = self.quoted()?;
            // an entry may have nothing but a name
            if self.peek() != Some('}') {
                self.expect(':')?;
            }
        }
        let members = self.members(0)?;
        self.expect('}')?;
        let Members { block, earlier, meta, uuid, .. } = members;
        Ok(Dirent { kind, name, meta: meta.unwrap_or_default(), uuid, block, earlier })
    }

    fn block(&mut self, depth: usize) -> Result<BlockRef> {
        limits::depth(depth, "block references")?;
        let kind = self.identifier()?;
        self.expect('{')?;
        let missing = |what: &str| Error::format(format!("the block has no {what}"));
        let block = match kind {
            "B" | "IB" => {
                let members = self.members(depth)?;
                BlockRef::Hash { hash: members.hash.ok_or_else(|| missing("hash"))?, span: members.span }
            }
            "I" => {
                let mut span = None;
                if self.peek().is_some_and(|next| next.is_ascii_digit()) {
                    span = Some(self.number()?);
                    self.expect(':')?;
                }
                let block = match self.block(depth + 1)? {
                    // writers differ in the span that they give here
                    BlockRef::Hash { hash, .. } => BlockRef::Hash { hash, span: None },
                    other => other,
                };
                BlockRef::Indirect { block: Arc::new(block), span }
            }
            "LB" => BlockRef::Literal(self.literal()?.into()),
            "RLE" => {
                let members = self.members(depth)?;
                BlockRef::Rle {
                    octet: members.octet.ok_or_else(|| missing("octet"))?,
                    span: members.span.ok_or_else(|| missing("span"))?,
                }
            }
            "SubB" => {
                let members = self.members(depth)?;
                BlockRef::Sub {
                    block: Arc::new(members.block.ok_or_else(|| missing("block"))?),
                    offset: members.offset.ok_or_else(|| missing("offset"))?,
                    span: members.span.ok_or_else(|| missing("span"))?,
                }
            }
            other => {
                return Err(Error::format(format!("the type of a block is {other:?}, expected B, I, LB, RLE or SubB")));
            }
        };
        self.expect('}')?;
        Ok(block)
    }

    fn members(&mut self, depth: usize) -> Result<Members> {
        let mut members = Members::default();
        while self.peek() != Some('}') {
            let key = self.identifier()?;
            self.expect(':')?;
            match key {
                "hash" => members.hash = Some(self.hash()?),
                "span" => members.span = Some(self.number()?),
                "offset" => members.offset = Some(self.number()?),
                "octet" => members.octet = Some(self.hex_byte()?),
                "block" => members.block = Some(self.block(depth + 1)?),
                "prevblock" | "prev_dirent_blockref" => members.earlier = Some(self.block(depth + 1)?),
                "meta" => members.meta = Some(self.meta()?),
                "uuid" => members.uuid = Some(self.uuid()?),
                other => return Err(Error::format(format!("member {other:?} of a reference is unknown"))),
            }
            if self.peek() == Some(',') {
                self.at += 1;
            } else {
                break;
            }
        }
        Ok(members)
    }

    fn hash(&mut self) -> Result<BlockHash> {
        self.keyword("H")?;
        self.expect('{')?;
        let kind = HashKind::of_name(self.identifier()?)?;
        self.expect(':')?;
        let mut bytes = Vec::with_capacity(kind.bytes());
        while self.peek() != Some('}') {
            bytes.push(self.hex_byte()?);
        }
        self.expect('}')?;
        BlockHash::new(kind, &bytes)
    }

    fn meta(&mut self) -> Result<Meta> {
        if self.peek() == Some('{') {
            return Ok(Meta::of_fields(self.json()?));
        }
        if matches!(self.peek(), Some('"' | '\'')) {
            return Meta::parse(&self.quoted()?);
        }
        self.keyword("M")?;
        self.expect('{')?;
        let mut fields = Map::new();
        while self.peek() != Some('}') {
            let key = self.identifier()?.to_owned();
            self.expect(':')?;
            let value = match self.peek() {
                Some('"' | '\'') => self.quoted()?.into(),
                Some('{' | '[') => self.json()?,
                _ => self.word()?,
            };
            fields.insert(key, value);
            if self.peek() == Some(',') {
                self.at += 1;
            } else {
                break;
            }
        }
        self.expect('}')?;
        Ok(Meta::of_fields(fields))
    }

    /// A number, or a word of Python or JSON such as `True` or `null`.
    fn word(&mut self) -> Result<Value> {
        let rest = self.rest();
        let len = rest.find([',', '}']).unwrap_or(rest.len());
        let word = rest[..len].trim();
        self.at += len;
        match word {
            "True" | "true" => Ok(true.into()),
            "False" | "false" => Ok(false.into()),
            "None" | "null" => Ok(Value::Null),
            _ => word
                .parse::<f64>()
                .map(Value::from)
                .map_err(|_| Error::format(format!("{word:?} is not a number, True, False or None"))),
        }
    }

    fn json<T: DeserializeOwned + Default>(&mut self) -> Result<T> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter();
        let value = values.next().transpose();
        let value = value.map_err(|error| Error::format(format!("the text is not JSON: {error}")))?;
        self.at += values.byte_offset();
        // a bracket follows the JSON value
        Ok(value.unwrap_or_default())
    }

    fn uuid(&mut self) -> Result<[u8; 16]> {
        self.keyword("U")?;
        self.expect('{')?;
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            while self.peek() == Some('-') {
                self.at += 1;
            }
            *byte = self.hex_byte()?;
        }
        self.expect('}')?;
        Ok(bytes)
    }

    /// Parses a literal: pairs of hexadecimal digits, and runs of readable bytes in brackets.
    fn literal(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.peek() != Some('}') {
            if self.peek() != Some('[') {
                bytes.push(self.hex_byte()?);
                continue;
            }
            self.at += 1;
            let rest = self.rest();
            let len = rest.find(']').ok_or_else(|| Error::format("a bracket is not closed"))?;
            let run = &rest[..len];
            if !run.is_ascii() {
                return Err(Error::format("readable bytes that are not ASCII"));
            }
            bytes.extend_from_slice(run.as_bytes());
            self.at += len + 1;
        }
        Ok(bytes)
    }

    /// Parses a string in double or single quotes, with escapes.
    fn quoted(&mut self) -> Result<String> {
        let quote = self.next()?;
        // as UTF-16, in which two escapes may make up one character
        let mut units: Vec<u16> = Vec::new();
        loop {
            let next = match self.next()? {
                next if next == quote => break,
                '\\' => match self.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'a' => '\u{7}',
                    'v' => '\u{b}',
                    kind @ ('x' | 'u' | 'U') => {
                        let digits = match kind {
                            'x' => 2,
                            'u' => 4,
                            _ => 8,
                        };
                        let code = self.hex(digits)?;
                        if let Ok(unit) = u16::try_from(code) {
                            units.push(unit);
                            continue;
                        }
                        char::from_u32(code).ok_or_else(|| Error::format(format!("{code:#x} is not a character")))?
                    }
                    other => other,
                },
                other => other,
            };
            units.extend_from_slice(next.encode_utf16(&mut [0; 2]));
        }
        String::from_utf16(&units)
            .map_err(|_| Error::format("a string contains half of a character (a lone surrogate)"))
    }

    fn hex(&mut self, digits: usize) -> Result<u32> {
        let found = self.rest().get(..digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = found.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let value = value.ok_or_else(|| Error::format(format!("{digits} hexadecimal digits are expected")))?;
        self.at += digits;
        Ok(value)
    }

    fn hex_byte(&mut self) -> Result<u8> {
        Ok(self.hex(2)? as u8)
    }

    fn number(&mut self) -> Result<u64> {
        let rest = self.rest();
        let len = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..len].parse().map_err(|_| Error::format("a number of at most 64 bits is expected"))?;
        self.at += len;
        Ok(number)
    }

    fn identifier(&mut self) -> Result<&'a str> {
        let rest = self.rest();
        let len = rest.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(rest.len());
        if len == 0 {
            return Err(self.unexpected("a name"));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    fn keyword(&mut self, expected: &str) -> Result<()> {
        match self.identifier()? {
            found if found == expected => Ok(()),
            found => Err(Error::format(format!("found {found:?}, expected {expected:?}"))),
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Result<char> {
        let next = self.peek().ok_or_else(|| Error::format("the text ends in a string, expected its closing quote"))?;
        self.at += next.len_utf8();
        Ok(next)
    }

    fn expect(&mut self, expected: char) -> Result<()> {
        match self.peek() {
            Some(found) if found == expected => {
                self.at += found.len_utf8();
                Ok(())
            }
            _ => Err(self.unexpected(&format!("{expected:?}"))),
        }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found = self.peek().map_or("the end".to_owned(), |found| format!("{found:?}"));
        Error::format(format!("found {found}, expected {expected}"))
    }

    fn place(&self) -> Context {
        Context::offset("reference", self.at as u64)
    }
}

/// An entry as a line of an archive has it. `Unsupported` for metadata that have no such form.
pub(super) fn of_entry(entry: &Dirent) -> Result<String> {
    let kind = match entry.kind {
        EntryKind::File => "F",
        EntryKind::Directory => "D",
        EntryKind::Symlink => "SymLink",
        EntryKind::HardLink => "Indirect",
    };
    let name = if entry.name.is_empty() { String::new() } else { format!("{}:", quote(&entry.name)) };
    let mut members = Vec::new();
    if let Some(uuid) = &entry.uuid {
        let digits = ctds::hex::Hex(uuid).to_string();
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits[part].to_owned());
        members.push(format!("uuid:U{{{}}}", parts.join("-")));
    }
    if !entry.meta.fields.is_empty() {
        members.push(format!("meta:M{{{}}}", of_meta(&entry.meta)?));
    }
    members.extend(entry.block.iter().map(|block| format!("block:{block}")));
    members.extend(entry.earlier.iter().map(|block| format!("prevblock:{block}")));
    Ok(format!("{kind}{{{name}{}}}", members.join(",")))
}

/// `a:"o:rwx-",m:1.5`
fn of_meta(meta: &Meta) -> Result<String> {
    let mut members = Vec::new();
    for (key, value) in &meta.fields {
        if key.is_empty() || key.bytes().any(|byte| !byte.is_ascii_alphanumeric() && byte != b'_') {
            return Err(Error::unsupported(format!("metadata with the key {key:?}, which is not a name")));
        }
        // the binary form has the time as text
        let time = meta.modified().filter(|time| key == "m" && time.is_finite());
        let value = match (value, time) {
            (Value::Null, _) => continue,
            (Value::String(_), Some(time)) => format!("{time:?}"),
            (Value::Bool(is_set), _) => u8::from(*is_set).to_string(),
            (Value::String(text), None) => quote(text),
            (Value::Number(_) | Value::Object(_), _) => value.to_string(),
            (Value::Array(_), _) => {
                return Err(Error::unsupported(format!("metadata cannot have lists, as {key:?} is")));
            }
        };
        members.push(format!("{key}:{value}"));
    }
    Ok(members.join(","))
}

/// Quotes a name with escapes that every reader of the format knows.
pub(super) fn quote(name: &str) -> String {
    let mut quoted = String::from("\"");
    for next in name.chars() {
        match next {
            '"' | '\\' => quoted.extend(['\\', next]),
            ' '..='~' => quoted.push(next),
            _ => {
                let mut units = [0; 2];
                quoted.extend(next.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Dirent> {
        Text::new(text).dirent()
    }

    fn block(text: &str) -> BlockRef {
        parse(&format!("F{{\"f\":block:{text}}}")).unwrap().block.unwrap()
    }

    #[test]
    fn every_kind_of_block() {
        let hash = BlockHash::new(HashKind::Sha1, &[0xab; 20]).unwrap();
        let text = format!("H{{sha1:{}}}", "ab".repeat(20));
        assert_eq!(block(&format!("B{{hash:{text},span:7}}")), BlockRef::Hash { hash, span: Some(7) });
        assert_eq!(block(&format!("B{{hash:{text}}}")), BlockRef::Hash { hash, span: None });
        let indirect = |span| BlockRef::Indirect { block: Arc::new(BlockRef::Hash { hash, span: None }), span };
        assert_eq!(block(&format!("I{{900:B{{hash:{text},span:7}}}}")), indirect(Some(900)));
        assert_eq!(block(&format!("I{{IB{{hash:{text}}}}}")), indirect(None));
        assert_eq!(block("RLE{span:5,octet:41}"), BlockRef::Rle { octet: 0x41, span: 5 });
        assert_eq!(block("LB{[a}b]2021}"), BlockRef::Literal(b"a}b !"[..].into()));
        let sub = BlockRef::Sub { block: Arc::new(BlockRef::Rle { octet: 0, span: 9 }), offset: 2, span: 3 };
        assert_eq!(block("SubB{block:RLE{span:9,octet:00},offset:2,span:3}"), sub);
        // and back
        for text in ["RLE{span:5,octet:41}", "LB{6162}", "SubB{block:RLE{span:9,octet:00},offset:2,span:3}"] {
            assert_eq!(block(text).to_string(), text);
        }
    }

    #[test]
    fn names_and_metadata() {
        let entry =
            parse(r#"D{'a \"b\" \ud83d\ude00\xe9\U0001f600':meta:M{a:"o:rwx-",m:1.5,su:True,x:{"k":"v"}}} rest"#)
                .unwrap();
        assert_eq!(entry.name, "a \"b\" 😀é😀");
        assert_eq!((entry.meta.mode(), entry.meta.modified()), (0o4700, Some(1.5)));
        let uuid = parse("Indirect{\"h\":uuid:U{12345678-1234-5678-1234-567812345670}}").unwrap().uuid.unwrap();
        assert_eq!(uuid[..3], [0x12, 0x34, 0x56]);
        for name in ["plain", "a \"b\" \\ 😀é", "line\nbreak", ""] {
            assert_eq!(Text::new(&quote(name)).quoted().unwrap(), name);
        }
    }

    #[test]
    fn messages_name_the_wrong_part() {
        for (text, message) in [
            ("F{\"f\":block:Q{1}}", "\"Q\", expected B, I"),
            ("Q{}", "expected D, F"),
            ("D{\"f\":block:LB{[x}}", "bracket"),
            ("D{\"f\":block:LB{x}}", "hexadecimal"),
            ("D{\"f", "ends in a string"),
            ("D{\"\\ud83d\"}", "half of a character"),
            ("D{\"f\":block:RLE{span:99999999999999999999,octet:00}}", "64 bits"),
            ("D{\"f\":block:RLE{span:9}}", "has no octet"),
            ("D{\"f\":other:1}", "unknown"),
            ("D{\"f\":meta:M{a:xyz}}", "\"xyz\" is not a number, True, False or None"),
            ("D{\"f\":meta:{\"a\" 1}}", "the text is not JSON: expected `:` at line 1 column 6"),
            ("D{\"f\":block:LB{[\u{e9}]}}", "readable bytes that are not ASCII"),
            ("D{\"\\U00110000\"}", "0x110000 is not a character"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(message) && error.contexts().count() > 0, "{error}");
        }
        let nested = "SubB{offset:0,span:1,block:".repeat(100);
        assert_eq!(parse(&format!("F{{block:{nested}")).unwrap_err().kind(), ctds::ErrorKind::Limit);
    }
}
