//! Datatypes of elements. HDF5 File Format Specification 3.0, section IV.A.2.d.
//!
//! A type has its class and version in one byte, 24 bits of flags, its size in bytes, and
//! properties by class. Types within types follow in the properties. Versions differ in how names
//! are padded (to multiples of 8 before version 3), in the width of offsets of members, and in
//! arrays, which version 1 has in members of compounds only.

use std::fmt;

use crate::bytes::{Bytes, Sizes};
use crate::error::Result;

/// Most types within each other.
const MAX_DEPTH: u32 = 32;
const MAX_RANK: usize = 32;

/// Type of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datatype {
    /// Bytes of an element in the file, at least 1.
    pub size: u32,
    /// The class with its properties.
    pub class: Class,
}

/// Classes of types.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// An integer.
    Integer {
        /// Order of the bytes.
        order: ByteOrder,
        /// Two's complement.
        is_signed: bool,
        /// The bits that count.
        bits: Bits,
    },
    /// A floating-point number.
    Float(Float),
    /// A time, which no release of the HDF5 library interprets.
    Time {
        /// Order of the bytes.
        order: ByteOrder,
        /// Number of bits that count.
        precision: u16,
    },
    /// Text of a fixed number of bytes.
    String(Text),
    /// Bits without a numerical meaning.
    Bitfield {
        /// Order of the bytes.
        order: ByteOrder,
        /// The bits that count.
        bits: Bits,
    },
    /// Bytes that only a tag describes.
    Opaque {
        /// The tag, without padding.
        tag: Vec<u8>,
    },
    /// Members at offsets, in the order of the file.
    Compound(Vec<Member>),
    /// A reference to another part of the file.
    Reference(Reference),
    /// Numbers with names.
    Enum {
        /// Type of the values, as large as the enumeration.
        base: Box<Datatype>,
        /// Name and bytes of each value, in the order of the file.
        values: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A sequence of variable length in a global heap.
    Sequence(Box<Datatype>),
    /// Text of variable length in a global heap.
    VariableString(Text),
    /// An array of a fixed shape.
    Array {
        /// Type of the elements of the array.
        base: Box<Datatype>,
        /// Extents, slowest axis first.
        extents: Vec<u32>,
    },
    /// A complex number: two of the type, the real part first.
    Complex(Box<Datatype>),
}

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least byte first.
    Little,
    /// The greatest byte first.
    Big,
    /// Words of two bytes, the greatest word first, each with its least byte first.
    Vax,
}

/// Bits of an element that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// Number of the least bit.
    pub offset: u16,
    /// Number of bits.
    pub precision: u16,
}

/// Parts of a floating-point number; positions count from the least bit of the element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float {
    /// Order of the bytes.
    pub order: ByteOrder,
    /// The bits that count.
    pub bits: Bits,
    /// Position of the sign.
    pub sign: u8,
    /// The exponent.
    pub exponent: (u8, u8),
    /// Position and number of bits of the mantissa.
    pub mantissa: (u8, u8),
    /// Number that is subtracted from the exponent.
    pub bias: u32,
    /// How the mantissa's greatest bit is stored.
    pub normalization: Normalization,
}

/// How the greatest bit of a mantissa is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalization {
    /// Any bit.
    None,
    /// Stored, and always set but for zero.
    Set,
    /// Not stored, as in IEEE 754.
    Implied,
}

/// How text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Bytes after text that is shorter than its place.
    pub padding: Padding,
    /// The encoding.
    pub charset: Charset,
}

/// Bytes after text that is shorter than its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// A NUL, and then anything.
    NulTerminated,
    /// NULs up to the end.
    Nul,
    /// Spaces up to the end.
    Space,
}

/// Encoding of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// ASCII, as the file says; often another encoding.
    Ascii,
    /// UTF-8, as the file says.
    Utf8,
}

/// Member of a compound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name, which need not be UTF-8.
    pub name: Vec<u8>,
    /// Offset of its first byte in the compound.
    pub offset: u32,
    /// Its type.
    pub datatype: Datatype,
}

/// Kinds of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// Address of an object.
    Object,
    /// A region of a dataset, in a global heap.
    Region,
    /// An object, in the encoding of HDF5 1.12.
    StandardObject,
    /// A region of a dataset, in the encoding of HDF5 1.12.
    StandardRegion,
    /// An attribute, in the encoding of HDF5 1.12.
    StandardAttribute,
}

impl Datatype {
    /// The type in a message that was encoded for a file of 64-bit addresses.
    ///
    /// # Errors
    /// `Damaged` if it is not as the format demands; `Unsupported` for unknown classes and
    /// versions.
    pub fn from_message(message: &[u8]) -> Result<Self> {
        Self::decode(&mut Bytes::new("datatype", 0, message, Sizes { address: 8, length: 8 }))
    }

    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        Self::nested(fields, MAX_DEPTH)
    }

    /// Bytes of an element in the file.
    pub fn size(&self) -> u64 {
        u64::from(self.size)
    }

    /// Whether elements have parts in a global heap: sequences, text of variable length, references
    /// to regions.
    pub fn is_variable(&self) -> bool {
        match &self.class {
            Class::Sequence(_) | Class::VariableString(_) => true,
            Class::Reference(reference) => *reference != Reference::Object,
            Class::Compound(members) => members.iter().any(|member| member.datatype.is_variable()),
            Class::Array { base, .. } => base.is_variable(),
            _ => false,
        }
    }

    fn nested(fields: &mut Bytes<'_>, depth: u32) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(fields.error(format!("more than {MAX_DEPTH} types are within each other")));
        };
        let first = fields.u8()?;
        let (class, version) = (first & 0x0f, first >> 4);
        if !(1..=5).contains(&version) {
            return Err(fields.unsupported(format!("version {version} of a datatype")));
        }
        let mut head = Head { version, flags: fields.number(3)? as u32, size: fields.u32()?, depth };
        if head.size == 0 {
            return Err(fields.error("elements of the datatype have 0 bytes"));
        }
        let class = match class {
            0 => head.integer(fields)?,
            1 => Class::Float(head.float(fields)?),
            2 => Class::Time { order: head.order(), precision: fields.u16()? },
            3 => Class::String(text(fields, head.flags)?),
            4 => Class::Bitfield { order: head.order(), bits: head.bits(fields)? },
            5 => Class::Opaque { tag: trimmed(fields.take((head.flags & 0xff) as usize)?).to_vec() },
            6 => head.compound(fields)?,
            7 => Class::Reference(reference(fields, head.flags)?),
            8 => head.enumeration(fields)?,
            9 => head.variable(fields)?,
            10 => head.array(fields)?,
            11 => head.complex(fields)?,
            class => return Err(fields.unsupported(format!("the datatype class {class}"))),
        };
        Ok(Datatype { size: head.size, class })
    }

    /// Members of version 1 have an array's shape beside the type of its elements.
    fn array_of(self, extents: Vec<u32>, fields: &Bytes<'_>) -> Result<Self> {
        let size = extents.iter().try_fold(self.size, |size, &extent| size.checked_mul(extent));
        match size {
            Some(size) if size > 0 => Ok(Datatype { size, class: Class::Array { base: Box::new(self), extents } }),
            _ => Err(fields.error(format!("an array of {extents:?} elements of {} bytes", self.size))),
        }
    }
}

/// Fields of all classes, and the number of types that may still be within.
struct Head {
    version: u8,
    flags: u32,
    size: u32,
    depth: u32,
}

impl Head {
    fn order(&self) -> ByteOrder {
        if self.flags & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big }
    }

    fn bits(&self, fields: &mut Bytes<'_>) -> Result<Bits> {
        let bits = Bits { offset: fields.u16()?, precision: fields.u16()? };
        let end = u64::from(bits.offset) + u64::from(bits.precision);
        if bits.precision == 0 || end > 8 * u64::from(self.size) {
            let Bits { offset, precision } = bits;
            return Err(
                fields.error(format!("{precision} bits from bit {offset} on are expected in {} bytes", self.size))
            );
        }
        Ok(bits)
    }

    fn integer(&self, fields: &mut Bytes<'_>) -> Result<Class> {
        Ok(Class::Integer { order: self.order(), is_signed: self.flags & 1 << 3 != 0, bits: self.bits(fields)? })
    }

    fn float(&self, fields: &mut Bytes<'_>) -> Result<Float> {
        let order = match (self.flags >> 6 & 1, self.flags & 1) {
            (0, _) => self.order(),
            (_, 1) => ByteOrder::Vax,
            _ => return Err(fields.unsupported("the order of the bytes of a number is unknown")),
        };
        let normalization = match self.flags >> 4 & 3 {
            0 => Normalization::None,
            1 => Normalization::Set,
            2 => Normalization::Implied,
            _ => return Err(fields.unsupported("the normalization of a number is unknown")),
        };
        let bits = self.bits(fields)?;
        let exponent = (fields.u8()?, fields.u8()?);
        let mantissa = (fields.u8()?, fields.u8()?);
        let float = Float {
            order,
            bits,
            sign: (self.flags >> 8) as u8,
            exponent,
            mantissa,
            bias: fields.u32()?,
            normalization,
        };
        let end = |(at, len): (u8, u8)| u64::from(at) + u64::from(len);
        let most = u64::from(bits.offset) + u64::from(bits.precision);
        if [end(exponent), end(mantissa), end((float.sign, 1))].into_iter().any(|end| end > most) {
            return Err(fields.error("parts of a floating-point number are beyond its bits"));
        }
        Ok(float)
    }

    fn within(&self, fields: &mut Bytes<'_>) -> Result<Datatype> {
        Datatype::nested(fields, self.depth)
    }

    /// A name; before version 3, up to a multiple of 8 bytes.
    fn name(&self, fields: &mut Bytes<'_>) -> Result<Vec<u8>> {
        let name = fields.text()?;
        if self.version < 3 {
            let bytes = name.len() + 1;
            fields.skip(bytes.next_multiple_of(8) - bytes)?;
        }
        Ok(name.to_vec())
    }

    fn compound(&self, fields: &mut Bytes<'_>) -> Result<Class> {
        let count = self.flags & 0xffff;
        // each member has more bytes than this: a count that lies reserves little
        let mut members = Vec::with_capacity((count as usize).min(fields.remaining() / 8));
        for _ in 0..count {
            members.push(self.member(fields)?);
        }
        Ok(Class::Compound(members))
    }

    fn member(&self, fields: &mut Bytes<'_>) -> Result<Member> {
        let name = self.name(fields)?;
        let offset = match self.version {
            1 | 2 => fields.u32()?,
            _ => fields.number((self.size.ilog2() / 8 + 1) as usize)? as u32,
        };
        let mut extents = Vec::new();
        if self.version == 1 {
            let rank = usize::from(fields.u8()?);
            // gap, permutation, gap
            fields.skip(11)?;
            let all = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
            let used = all.get(..rank).ok_or_else(|| fields.error(format!("a member has {rank} axes, at most 4")))?;
            extents.extend_from_slice(used);
        }
        let mut datatype = self.within(fields)?;
        if !extents.is_empty() {
            datatype = datatype.array_of(extents, fields)?;
        }
        if u64::from(offset) + datatype.size() > u64::from(self.size) {
            let (name, size) = (name.escape_ascii(), datatype.size);
            let all = self.size;
            return Err(fields.error(format!("the member \"{name}\" has {size} bytes at byte {offset} of {all}")));
        }
        Ok(Member { name, offset, datatype })
    }

    fn enumeration(&self, fields: &mut Bytes<'_>) -> Result<Class> {
        let count = (self.flags & 0xffff) as usize;
        let base = self.within(fields)?;
        if base.size != self.size {
            return Err(fields.error(format!("values of {} bytes in an enumeration of {}", base.size, self.size)));
        }
        let mut names = Vec::with_capacity(count.min(fields.remaining()));
        for _ in 0..count {
            names.push(self.name(fields)?);
        }
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            values.push((name, fields.take(self.size as usize)?.to_vec()));
        }
        Ok(Class::Enum { base: Box::new(base), values })
    }

    fn variable(&mut self, fields: &mut Bytes<'_>) -> Result<Class> {
        let bytes = 8 + fields.sizes().address;
        if self.size as usize != bytes {
            return Err(fields.error(format!("a type of variable length has {} bytes, expected {bytes}", self.size)));
        }
        let base = self.within(fields)?;
        match self.flags & 0x0f {
            0 => Ok(Class::Sequence(Box::new(base))),
            1 => Ok(Class::VariableString(text(fields, self.flags >> 4)?)),
            kind => Err(fields.unsupported(format!("a type of variable length of the unknown kind {kind}"))),
        }
    }

    fn array(&self, fields: &mut Bytes<'_>) -> Result<Class> {
        if self.version == 1 {
            return Err(fields.error("an array of version 1"));
        }
        let rank = usize::from(fields.u8()?);
        if rank > MAX_RANK {
            return Err(fields.error(format!("an array has {rank} axes, at most {MAX_RANK} are possible")));
        }
        if self.version == 2 {
            fields.skip(3)?;
        }
        let extents = (0..rank).map(|_| fields.u32()).collect::<Result<Vec<_>>>()?;
        if self.version == 2 {
            // a permutation that was never used
            fields.skip(4 * rank)?;
        }
        let whole = self.within(fields)?.array_of(extents, fields)?;
        if whole.size != self.size {
            return Err(fields.error(format!("an array of {} bytes, expected {}", self.size, whole.size)));
        }
        Ok(whole.class)
    }

    fn complex(&self, fields: &mut Bytes<'_>) -> Result<Class> {
        let (is_homogeneous, form) = (self.flags & 1 != 0, self.flags >> 1 & 3);
        if !is_homogeneous || form != 0 {
            return Err(fields.unsupported("a complex number that is not two numbers of one type"));
        }
        let base = self.within(fields)?;
        if !matches!(base.class, Class::Float(_)) || base.size.checked_mul(2) != Some(self.size) {
            return Err(fields.error(format!("a complex number of {} bytes, its parts of {}", self.size, base.size)));
        }
        Ok(Class::Complex(Box::new(base)))
    }
}

fn text(fields: &Bytes<'_>, flags: u32) -> Result<Text> {
    let padding = match flags & 0x0f {
        0 => Padding::NulTerminated,
        1 => Padding::Nul,
        2 => Padding::Space,
        padding => return Err(fields.unsupported(format!("text with the unknown padding {padding}"))),
    };
    let charset = match flags >> 4 & 0x0f {
        0 => Charset::Ascii,
        1 => Charset::Utf8,
        charset => return Err(fields.unsupported(format!("text in the unknown encoding {charset}"))),
    };
    Ok(Text { padding, charset })
}

fn reference(fields: &Bytes<'_>, flags: u32) -> Result<Reference> {
    match flags & 0x0f {
        0 => Ok(Reference::Object),
        1 => Ok(Reference::Region),
        2 => Ok(Reference::StandardObject),
        3 => Ok(Reference::StandardRegion),
        4 => Ok(Reference::StandardAttribute),
        kind => Err(fields.unsupported(format!("a reference of the unknown kind {kind}"))),
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

impl Text {
    /// The text in `bytes`, without padding.
    pub fn trim(self, bytes: &[u8]) -> &[u8] {
        match self.padding {
            Padding::NulTerminated => trimmed(bytes),
            Padding::Nul => &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)],
            Padding::Space => &bytes[..bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)],
        }
    }
}

impl Float {
    /// The number of IEEE 754 of 2, 4 or 8 bytes; `None` for other sizes.
    pub fn ieee(size: u32, order: ByteOrder) -> Option<Self> {
        let (sign, exponent, mantissa, bias) = match size {
            2 => (15, (10, 5), (0, 10), 15),
            4 => (31, (23, 8), (0, 23), 127),
            8 => (63, (52, 11), (0, 52), 1023),
            _ => return None,
        };
        let bits = Bits { offset: 0, precision: (8 * size) as u16 };
        Some(Float { order, bits, sign, exponent, mantissa, bias, normalization: Normalization::Implied })
    }

    /// Whether it is a number of IEEE 754 of as many bytes, in whatever order.
    pub fn is_ieee(&self, size: u32) -> bool {
        self.order != ByteOrder::Vax && Self::ieee(size, self.order).as_ref() == Some(self)
    }
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ByteOrder::Little => "little-endian",
            ByteOrder::Big => "big-endian",
            ByteOrder::Vax => "VAX order",
        })
    }
}
