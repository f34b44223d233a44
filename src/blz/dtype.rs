//! Element types, as numpy spells them.

use crate::error::{Error, Result};
use crate::h5::StoredElement;

/// The type of an element as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dtype {
    pub(super) kind: Kind,
    /// Bytes of a stored element.
    pub(super) size: usize,
    /// Whether numbers have their most significant byte first.
    big: bool,
}

/// What an element is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    UInt,
    Float,
    Complex,
    /// Bytes, padded with zeros.
    Bytes,
    /// Characters of 32 bits, padded with zeros.
    Text,
    /// Bytes without a meaning.
    Void,
    /// Integers that count a unit of time: `datetime64`, `timedelta64`.
    Time,
    /// Named fields, packed.
    Record(Vec<(String, Dtype)>),
    /// Elements of an array with these extents, slowest axis first.
    Array(Vec<u64>, Box<Dtype>),
}

fn unknown(text: &str) -> Error {
    Error::format(format!("the element type {text:?} is not known"))
}

/// Longest element.
const MOST_BYTES: usize = 1 << 24;

/// Deepest record in a record.
const MOST_DEPTH: usize = 16;

impl Dtype {
    /// Parses a type: `float64`, `<i4`, `[('a', '<i4'), ('b', '<f8', (2,))]`.
    ///
    /// # Errors
    /// `Format` if it is not known; `Unsupported` for Python objects, which are pickles.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.starts_with('[') {
            let mut literal = Literal { rest: text, depth: 0 };
            let found = literal.fields()?;
            return if literal.rest.trim().is_empty() { Ok(found) } else { Err(unknown(text)) };
        }
        // the repr of a string
        let text = text.trim_matches(['\'', '"']);
        Self::simple(text).ok_or_else(|| match text {
            "object" | "|O" | "O" | "|O8" | "|O4" => {
                Error::unsupported("elements are Python objects, stored as pickles, which are not read")
            }
            _ => unknown(text),
        })
    }

    fn simple(text: &str) -> Option<Self> {
        let made = |kind, size, big| (size <= MOST_BYTES).then_some(Dtype { kind, size, big });
        let (name, _unit) = text.split_once('[').unwrap_or((text, ""));
        let bits = |prefix: &str| name.strip_prefix(prefix)?.parse::<usize>().ok().filter(|bits| bits % 8 == 0);
        if name == "bool" {
            return made(Kind::Bool, 1, false);
        }
        for (prefix, kind, sizes) in [
            ("uint", Kind::UInt, &[1, 2, 4, 8][..]),
            ("int", Kind::Int, &[1, 2, 4, 8]),
            ("float", Kind::Float, &[2, 4, 8]),
            ("complex", Kind::Complex, &[8, 16]),
            ("datetime", Kind::Time, &[8]),
            ("timedelta", Kind::Time, &[8]),
        ] {
            if let Some(bits) = bits(prefix) {
                return if sizes.contains(&(bits / 8)) { made(kind, bits / 8, false) } else { None };
            }
        }
        let (order, rest) = match name.strip_prefix(['<', '>', '|', '=']) {
            Some(rest) => (name.as_bytes()[0], rest),
            None => (b'<', name),
        };
        let mut letters = rest.chars();
        let letter = letters.next()?;
        let count: usize = letters.as_str().parse().ok()?;
        let big = order == b'>';
        let number = |kind, sizes: &[usize]| if sizes.contains(&count) { made(kind, count, big) } else { None };
        match letter {
            'b' => number(Kind::Bool, &[1]),
            'i' => number(Kind::Int, &[1, 2, 4, 8]),
            'u' => number(Kind::UInt, &[1, 2, 4, 8]),
            'f' => number(Kind::Float, &[2, 4, 8]),
            'c' => number(Kind::Complex, &[8, 16]),
            'M' | 'm' => number(Kind::Time, &[8]),
            'S' | 'a' => made(Kind::Bytes, count, false),
            'U' => made(Kind::Text, count.checked_mul(4)?, big),
            'V' => made(Kind::Void, count, false),
            _ => None,
        }
    }

    /// The type of the elements in HDF5.
    ///
    /// # Errors
    /// `Unsupported` for elements without bytes.
    pub(super) fn element(&self) -> Result<StoredElement> {
        if self.size == 0 {
            return Err(Error::unsupported("elements of 0 bytes, which HDF5 does not have"));
        }
        Ok(match &self.kind {
            Kind::Bool => StoredElement::Bool,
            Kind::Int | Kind::Time => StoredElement::Int(self.size),
            Kind::UInt => StoredElement::UInt(self.size),
            Kind::Float => StoredElement::Float(self.size),
            Kind::Complex => StoredElement::Complex(self.size),
            Kind::Bytes => StoredElement::Bytes(self.size),
            Kind::Text => StoredElement::Text(self.size),
            Kind::Void => StoredElement::Opaque(self.size),
            Kind::Record(fields) => {
                let field = |(name, field): &(String, Dtype)| Ok((name.clone(), field.element()?));
                StoredElement::Record(fields.iter().map(field).collect::<Result<_>>()?)
            }
            Kind::Array(extents, inner) => StoredElement::Array(extents.clone(), Box::new(inner.element()?)),
        })
    }

    /// Whether the stored elements are those that HDF5 has, byte for byte.
    pub(super) fn is_plain(&self) -> bool {
        match &self.kind {
            Kind::Bool | Kind::Bytes | Kind::Void => true,
            Kind::Text => false,
            Kind::Record(fields) => fields.iter().all(|(_, field)| field.is_plain()),
            Kind::Array(_, inner) => inner.is_plain(),
            _ => !self.big || self.size == 1,
        }
    }

    /// Makes one stored element one of HDF5: little-endian, text as UTF-8 in the space that it had.
    ///
    /// # Errors
    /// `Format` if text is not Unicode.
    pub(super) fn convert(&self, element: &mut [u8]) -> Result<()> {
        match &self.kind {
            Kind::Bool | Kind::Bytes | Kind::Void => {}
            Kind::Text => self.convert_text(element)?,
            Kind::Record(fields) => {
                let mut rest = element;
                for (_, field) in fields {
                    let (own, next) = rest.split_at_mut(field.size);
                    field.convert(own)?;
                    rest = next;
                }
            }
            Kind::Array(_, inner) => element.chunks_exact_mut(inner.size).try_for_each(|part| inner.convert(part))?,
            Kind::Complex if self.big => element.chunks_exact_mut(self.size / 2).for_each(<[u8]>::reverse),
            _ if self.big => element.reverse(),
            _ => {}
        }
        Ok(())
    }

    fn convert_text(&self, element: &mut [u8]) -> Result<()> {
        let mut text = String::new();
        for unit in element.as_chunks().0 {
            let code = if self.big { u32::from_be_bytes(*unit) } else { u32::from_le_bytes(*unit) };
            text.push(
                char::from_u32(code).ok_or_else(|| Error::format(format!("{code:#x} is not a Unicode character")))?,
            );
        }
        let text = text.trim_end_matches('\0');
        element.fill(0);
        // at most four bytes for each character
        element[..text.len()].copy_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A Python literal of a record: a list of tuples.
struct Literal<'a> {
    rest: &'a str,
    depth: usize,
}

impl Literal<'_> {
    fn eat(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: char) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(unknown(self.rest)) }
    }

    /// `[('a', '<i4'), …]`
    fn fields(&mut self) -> Result<Dtype> {
        self.expect('[')?;
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(Error::limit(format!("records nested deeper than {MOST_DEPTH} levels")));
        }
        let mut fields: Vec<(String, Dtype)> = Vec::new();
        while !self.eat(']') {
            self.expect('(')?;
            let name = self.string()?;
            self.expect(',')?;
            self.rest = self.rest.trim_start();
            let mut dtype = if self.rest.starts_with('[') { self.fields()? } else { Dtype::parse(&self.string()?)? };
            if self.eat(',') && !self.rest.trim_start().starts_with(')') {
                let extents = self.extents()?;
                let count = extents.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent as usize));
                let size = count.and_then(|count| count.checked_mul(dtype.size)).filter(|&size| size <= MOST_BYTES);
                let size = size.ok_or_else(|| unknown(&name))?;
                dtype = Dtype { kind: Kind::Array(extents, Box::new(dtype)), size, big: false };
            }
            self.eat(',');
            self.expect(')')?;
            self.eat(',');
            if name.is_empty() || fields.iter().any(|(other, _)| *other == name) {
                return Err(Error::format(format!("a record with two fields {name:?}, or one without a name")));
            }
            fields.push((name, dtype));
        }
        self.depth -= 1;
        let size = fields.iter().map(|(_, field)| field.size).sum();
        Ok(Dtype { kind: Kind::Record(fields), size, big: false })
    }

    /// `'a'`, `u'a'`
    fn string(&mut self) -> Result<String> {
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix(['u', 'b']).unwrap_or(self.rest);
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or_else(|| unknown(self.rest))?;
        let (text, rest) = self.rest[1..].split_once(quote).ok_or_else(|| unknown(self.rest))?;
        if text.contains('\\') {
            return Err(unknown(text));
        }
        self.rest = rest;
        Ok(text.to_owned())
    }

    /// `(2,)`, `(2, 3)`, `2`
    fn extents(&mut self) -> Result<Vec<u64>> {
        let is_tuple = self.eat('(');
        let mut extents = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let extent: u64 = self.rest[..end].parse().map_err(|_| unknown(self.rest))?;
            if extent == 0 || extents.len() >= 32 {
                return Err(unknown(self.rest));
            }
            extents.push(extent);
            self.rest = self.rest[end..].strip_prefix('L').unwrap_or(&self.rest[end..]);
            if !is_tuple {
                return Ok(extents);
            }
            self.eat(',');
            if self.eat(')') {
                return Ok(extents);
            }
        }
    }
}
