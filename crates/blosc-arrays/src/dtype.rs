//! Element types of arrays: parses and prints them in numpy's spelling, and converts elements to
//! their neutral form and back: little-endian, text as UTF-8. Arrays of any byte order are compared
//! in this form; it is also the form of HDF5.

use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;

use crate::error::{Error, Result};

/// The type of an array element as it is stored, equivalent to a numpy dtype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dtype {
    pub kind: Kind,
    /// Size of an element of this type as stored, in bytes.
    pub size: usize,
    /// Whether numbers or characters are stored big-endian.
    big: bool,
}

/// Kind of an array element: number, string, record …
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    UInt,
    Float,
    Complex,
    /// A string of bytes of fixed length, padded with zeros: numpy's `S`.
    Bytes,
    /// A text of a fixed number of characters of 32 bits each, padded with zeros: numpy's `U`.
    Text,
    /// Bytes without a meaning, of fixed length: numpy's `V`.
    Void,
    /// Integers that count a unit of time; holds numpy's code of `datetime64` or `timedelta64` with
    /// the unit: `M8[D]`.
    Time(String),
    /// A record: names and types of its fields, which are stored without padding.
    Record(Vec<(String, Dtype)>),
    /// An array as an element: its extents, slowest axis first, and the type of its elements.
    Array(Vec<u64>, Box<Dtype>),
}

fn unknown(text: &str) -> Error {
    Error::format(format!("the element type {text:?} is not known"))
}

/// Largest element that is accepted, in bytes.
const MAX_BYTES: usize = 1 << 24;

/// Most levels of records within records that are accepted.
const MAX_DEPTH: usize = 16;

impl Dtype {
    fn simple(text: &str) -> Option<Self> {
        let made = |kind, size, big| (size <= MAX_BYTES).then_some(Dtype { kind, size, big });
        let unit = text.find('[').map_or("", |at| &text[at..]);
        let name = &text[..text.len() - unit.len()];
        let time = |letter: char| Kind::Time(format!("{letter}8{unit}"));
        let bits = |prefix: &str| name.strip_prefix(prefix)?.parse::<usize>().ok().filter(|bits| bits % 8 == 0);
        if name == "bool" {
            return made(Kind::Bool, 1, false);
        }
        for (prefix, kind, sizes) in [
            ("uint", Kind::UInt, &[1, 2, 4, 8][..]),
            ("int", Kind::Int, &[1, 2, 4, 8]),
            ("float", Kind::Float, &[2, 4, 8]),
            ("complex", Kind::Complex, &[8, 16]),
            ("datetime", time('M'), &[8]),
            ("timedelta", time('m'), &[8]),
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
            'M' | 'm' => number(time(letter), &[8]),
            'S' | 'a' => made(Kind::Bytes, count, false),
            'U' => made(Kind::Text, count.checked_mul(4)?, big),
            'V' => made(Kind::Void, count, false),
            _ => None,
        }
    }

    /// An element type whose numbers are little-endian.
    pub fn new(kind: Kind, size: usize) -> Self {
        Dtype { kind, size, big: false }
    }

    /// Checks that the elements, and those of fields, have bytes.
    ///
    /// # Errors
    /// `Unsupported` if not.
    pub fn check_bytes(&self) -> Result<()> {
        match &self.kind {
            _ if self.size == 0 => Err(Error::unsupported("the elements have 0 bytes, which HDF5 does not have")),
            Kind::Record(fields) => fields.iter().try_for_each(|(_, field)| field.check_bytes()),
            Kind::Array(_, inner) => inner.check_bytes(),
            _ => Ok(()),
        }
    }

    /// Whether elements of both types can be compared byte by byte in their neutral form.
    pub(crate) fn is_like(&self, other: &Self) -> Result<bool> {
        self.check_bytes()?;
        other.check_bytes()?;
        Ok(self.has_form_of(other))
    }

    fn has_form_of(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Record(left), Kind::Record(right)) => {
                let mut fields = left.iter().zip(right);
                left.len() == right.len()
                    && fields.all(|(left, right)| left.0 == right.0 && left.1.has_form_of(&right.1))
            }
            (Kind::Array(left, inner), Kind::Array(right, other)) => left == right && inner.has_form_of(other),
            (Kind::Int | Kind::Time(_), Kind::Int | Kind::Time(_)) => self.size == other.size,
            (left, right) => left == right && self.size == other.size,
        }
    }

    /// Whether elements of this type are stored in their neutral form.
    pub fn is_plain(&self) -> bool {
        match &self.kind {
            Kind::Bool | Kind::Bytes | Kind::Void => true,
            Kind::Text => false,
            Kind::Record(fields) => fields.iter().all(|(_, field)| field.is_plain()),
            Kind::Array(_, inner) => inner.is_plain(),
            _ => !self.big || self.size == 1,
        }
    }

    /// numpy's code, `<f8`, or for a record the list of its fields, as Python shows it.
    pub(crate) fn code(&self) -> String {
        let order = match (&self.kind, self.size, self.big) {
            (Kind::Bool | Kind::Bytes | Kind::Void, _, _) | (Kind::Int | Kind::UInt, 1, _) => '|',
            (_, _, big) => {
                if big {
                    '>'
                } else {
                    '<'
                }
            }
        };
        let (letter, count) = match &self.kind {
            Kind::Bool => ('b', 1),
            Kind::Int => ('i', self.size),
            Kind::UInt => ('u', self.size),
            Kind::Float => ('f', self.size),
            Kind::Complex => ('c', self.size),
            Kind::Bytes => ('S', self.size),
            Kind::Text => ('U', self.size / 4),
            Kind::Void => ('V', self.size),
            Kind::Time(code) => return format!("{order}{code}"),
            Kind::Record(fields) => {
                let field = |(name, field): &(String, Dtype)| match &field.kind {
                    Kind::Array(extents, inner) => {
                        let extents: Vec<_> = extents.iter().map(u64::to_string).collect();
                        let comma = if extents.len() == 1 { "," } else { "" };
                        format!("('{name}', {}, ({}{comma}))", inner.literal(), extents.join(", "))
                    }
                    _ => format!("('{name}', {})", field.literal()),
                };
                return format!("[{}]", fields.iter().map(field).collect::<Vec<_>>().join(", "));
            }
            Kind::Array(_, inner) => return inner.code(),
        };
        format!("{order}{letter}{count}")
    }

    /// The code as a Python literal: a list of fields for a record, else a quoted string.
    pub(crate) fn literal(&self) -> String {
        if let Kind::Record(_) = self.kind { self.code() } else { format!("'{}'", self.code()) }
    }

    /// Value of Blosc's parameter `typesize`, in bytes: the size of an element, of one character of
    /// text, or 1 if an element has more than 255 bytes.
    pub fn typesize(&self) -> usize {
        match self.kind {
            Kind::Bytes => 1,
            Kind::Text => 4,
            _ if self.size > 255 => 1,
            _ => self.size,
        }
    }

    /// Converts a JSON value, such as `dflt` in the metadata of an array, to the bytes of an
    /// element by the rules of numpy; `None` if the type cannot hold it.
    fn of_value(&self, value: &Json) -> Option<Vec<u8>> {
        let named = || match value.as_str() {
            Some("NaN") => Some(f64::NAN),
            Some("Infinity") => Some(f64::INFINITY),
            Some("-Infinity") => Some(f64::NEG_INFINITY),
            _ => None,
        };
        let number = || value.as_f64().or_else(|| value.as_bool().map(f64::from)).or_else(named);
        let integer = || {
            value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).or_else(|| {
                // numpy cuts off the digits after the point
                number().filter(|number| number.is_finite()).map(|number| number.trunc() as i128)
            })
        };
        let float = |size: usize, number: f64| match size {
            2 => half(number).to_le_bytes().to_vec(),
            4 => (number as f32).to_le_bytes().to_vec(),
            _ => number.to_le_bytes().to_vec(),
        };
        let mut bytes = match &self.kind {
            Kind::Bool => vec![u8::from(number()? != 0.)],
            Kind::Int | Kind::UInt => {
                let (number, bits) = (integer()?, 8 * self.size as u32);
                let least = if self.kind == Kind::Int { -(1i128 << (bits - 1)) } else { 0 };
                let fits = (least..least + (1i128 << bits)).contains(&number);
                fits.then(|| number.to_le_bytes()[..self.size].to_vec())?
            }
            Kind::Time(_) if value.as_str() == Some("NaT") => i64::MIN.to_le_bytes().to_vec(),
            Kind::Time(_) => i64::try_from(integer()?).ok()?.to_le_bytes().to_vec(),
            Kind::Float => float(self.size, number()?),
            Kind::Complex => [float(self.size / 2, number()?), vec![0; self.size / 2]].concat(),
            Kind::Bytes => value.as_str()?.as_bytes().to_vec(),
            Kind::Text => value.as_str()?.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
            Kind::Void => return None,
            Kind::Record(fields) => {
                let values = value.as_array().filter(|values| values.len() == fields.len())?;
                let of_field = |((_, field), value): (&(String, Dtype), &Json)| field.of_value(value);
                return fields.iter().zip(values).map(of_field).collect::<Option<Vec<_>>>().map(|all| all.concat());
            }
            Kind::Array(extents, inner) => {
                let one = inner.of_value(uniform(value)?)?;
                return Some(one.repeat(extents.iter().product::<u64>() as usize));
            }
        };
        if bytes.len() > self.size {
            return None;
        }
        bytes.resize(self.size, 0);
        if self.big {
            self.swap(&mut bytes);
        }
        Some(bytes)
    }

    /// The bytes of the element that fills rows which were never written. `dflt` is its value in
    /// the array's JSON metadata, or a list for a whole row; `None` if the type cannot hold it, or
    /// the list has different values.
    pub fn fill(&self, dflt: &Json) -> Option<Vec<u8>> {
        match self.kind {
            Kind::Record(_) => self.of_value(dflt),
            _ => self.of_value(uniform(dflt)?),
        }
    }

    // inline: loops of ctds-hdf5 call the next three for each element

    /// Reverses in place the bytes of each number or character of an element that is not a record.
    #[inline]
    fn swap(&self, element: &mut [u8]) {
        let width = match self.kind {
            Kind::Complex => self.size / 2,
            Kind::Text => 4,
            _ => self.size,
        };
        element.chunks_exact_mut(width.max(1)).for_each(<[u8]>::reverse);
    }

    /// Converts one element in place from its neutral form to the stored one: the inverse of
    /// [`convert`](Self::convert).
    ///
    /// # Errors
    /// `Format` if text is not UTF-8 or has too many characters.
    #[inline]
    pub fn restore(&self, element: &mut [u8]) -> Result<()> {
        match &self.kind {
            Kind::Bool | Kind::Bytes | Kind::Void => {}
            Kind::Text => {
                let text = std::str::from_utf8(element).map_err(|_| Error::format("a string that is not UTF-8"))?;
                let units: Vec<u8> =
                    text.trim_end_matches('\0').chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
                if units.len() > element.len() {
                    return Err(Error::format(format!(
                        "a string is longer than {} characters, the length of its type",
                        self.size / 4
                    )));
                }
                element.fill(0);
                element[..units.len()].copy_from_slice(&units);
                if self.big {
                    self.swap(element);
                }
            }
            Kind::Record(fields) => {
                let mut rest = element;
                for (_, field) in fields {
                    let (own, next) = rest.split_at_mut(field.size);
                    field.restore(own)?;
                    rest = next;
                }
            }
            Kind::Array(_, inner) => element.chunks_exact_mut(inner.size).try_for_each(|part| inner.restore(part))?,
            _ if self.big => self.swap(element),
            _ => {}
        }
        Ok(())
    }

    /// Converts one stored element in place to its neutral form: little-endian, text as UTF-8
    /// padded with zeros to its old length.
    ///
    /// # Errors
    /// `Format` if text is not Unicode.
    #[inline]
    pub fn convert(&self, element: &mut [u8]) -> Result<()> {
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
            _ if self.big => self.swap(element),
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

/// The element type as Python prints it: `float64`, `|S7`, `>i4`.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8 * self.size;
        match &self.kind {
            Kind::Bool => f.write_str("bool"),
            _ if self.big => f.write_str(&self.code()),
            Kind::Int => write!(f, "int{bits}"),
            Kind::UInt => write!(f, "uint{bits}"),
            Kind::Float => write!(f, "float{bits}"),
            Kind::Complex => write!(f, "complex{bits}"),
            Kind::Time(code) => {
                let name = if code.starts_with('M') { "datetime64" } else { "timedelta64" };
                write!(f, "{name}{}", code.get(2..).unwrap_or(""))
            }
            _ => f.write_str(&self.code()),
        }
    }
}

impl FromStr for Dtype {
    type Err = Error;

    /// `float64`, `<i4`, `[('a', '<i4'), ('b', '<f8', (2,))]`; `Format` if unknown, `Unsupported`
    /// for Python objects, which are pickles.
    fn from_str(text: &str) -> Result<Self> {
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
}

/// The value common to all elements of nested lists, or that is not a list; `None` if they differ.
fn uniform(value: &Json) -> Option<&Json> {
    let Json::Array(list) = value else { return Some(value) };
    let mut values = list.iter().map(uniform);
    let first = values.next()??;
    values.all(|other| other == Some(first)).then_some(first)
}

/// Bits of the nearest IEEE 754 float of 16 bits; a tie goes to the even last bit.
fn half(number: f64) -> u16 {
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let size = number.abs();
    if size.is_nan() {
        return sign | 0x7e00;
    }
    // 2^-24 is the smallest; from 2^-14 on the step grows with the exponent
    let exponent = if size >= 2f64.powi(-14) { size.log2().floor().min(16.) as i32 } else { -14 };
    let steps = (size / 2f64.powi(exponent - 10)).round_ties_even();
    // steps are 1024 to 2048 for normal numbers: the carry goes into the exponent by itself
    let before = if size >= 2f64.powi(-14) { (exponent + 14) as u32 * 1024 } else { 0 };
    let bits = (steps as u32).saturating_add(before);
    sign | bits.min(0x7c00) as u16
}

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
        if self.depth > MAX_DEPTH {
            return Err(Error::limit(format!("records nested deeper than {MAX_DEPTH} levels")));
        }
        let mut fields: Vec<(String, Dtype)> = Vec::new();
        while !self.eat(']') {
            self.expect('(')?;
            let name = self.string()?;
            self.expect(',')?;
            self.rest = self.rest.trim_start();
            let mut dtype =
                if self.rest.starts_with('[') { self.fields()? } else { self.string()?.parse::<Dtype>()? };
            if self.eat(',') && !self.rest.trim_start().starts_with(')') {
                let extents = self.extents()?;
                let count = extents.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent as usize));
                let size = count.and_then(|count| count.checked_mul(dtype.size)).filter(|&size| size <= MAX_BYTES);
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

    /// Extents, slowest axis first: `(2,)`, `(2, 3)`, `2`
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
