//! Describes the element types of any HDF5 file as libhdf5 lays out their elements in memory, so
//! that this program can decode the elements.

pub(crate) const MAX_NESTED_TYPES: usize = 32;

/// An element type, and the size of its elements as libhdf5 puts them into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyType {
    /// Bytes in memory.
    pub(crate) size: usize,
    pub(crate) class: AnyClass,
}

/// Class of a type, with the properties that decoding its elements needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnyClass {
    Integer(IntegerLayout),
    Float(FloatLayout),
    Time,
    Text {
        /// HDF5's code: 0 for ASCII, 1 for UTF-8.
        charset: i32,
        padding: Padding,
        /// An element is then a pointer to its text.
        variable: bool,
    },
    Bits(IntegerLayout),
    Opaque {
        tag: String,
    },
    Compound(Vec<AnyMember>),
    Reference(ReferenceKind),
    Enum {
        base: Box<AnyType>,
        /// Name and bytes of each value.
        members: Vec<(String, Vec<u8>)>,
    },
    /// An element is a length and a pointer to values of the contained type.
    Sequence(Box<AnyType>),
    Array {
        /// Slowest axis first.
        extents: Vec<u64>,
        element: Box<AnyType>,
    },
    /// Two numbers of the contained type, the real part first.
    Complex(Box<AnyType>),
    /// HDF5's number of a class that this version does not know.
    Unknown(i32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyMember {
    pub(crate) name: String,
    /// Bytes from the start of the element.
    pub(crate) offset: usize,
    pub(crate) element: AnyType,
}

/// Bits of an integer, or of a bit field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntegerLayout {
    pub(crate) order: Order,
    pub(crate) signed: bool,
    /// Bits without padding.
    pub(crate) precision: usize,
    /// Padding bits below the lowest one.
    pub(crate) shift: usize,
}

/// Bit positions count from 0, the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatLayout {
    pub(crate) order: Order,
    pub(crate) sign: usize,
    pub(crate) exponent: usize,
    pub(crate) exponent_bits: usize,
    pub(crate) mantissa: usize,
    pub(crate) mantissa_bits: usize,
    pub(crate) bias: u64,
    /// Whether the highest bit of the mantissa is 1 and not stored, except in subnormal numbers.
    pub(crate) implied: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
    /// HDF5's code of the order.
    Other(i32),
}

impl Order {
    /// `H5T_order_t`.
    pub(crate) fn code(self) -> i32 {
        match self {
            Order::Little => 0,
            Order::Big => 1,
            Order::Other(code) => code,
        }
    }
}

/// How strings of fixed length are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// Bytes after the first NUL have no meaning.
    Terminated,
    Nul,
    Space,
    /// `H5T_str_t` of an unknown padding.
    Other(i32),
}

impl Padding {
    /// `H5T_str_t`.
    pub(crate) fn code(self) -> i32 {
        match self {
            Padding::Terminated => 0,
            Padding::Nul => 1,
            Padding::Space => 2,
            Padding::Other(code) => code,
        }
    }

    pub(crate) fn strip(self, bytes: &[u8]) -> &[u8] {
        let pad = if self == Padding::Space { b' ' } else { 0 };
        match self {
            Padding::Terminated => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
            _ => &bytes[..bytes.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1)],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Object,
    Region,
    /// HDF5 1.12 or newer: not decoded.
    Newer,
}

impl AnyType {
    /// Whether elements contain addresses of values stored elsewhere: of variable length, or
    /// references.
    pub(crate) fn has_pointers(&self) -> bool {
        match &self.class {
            AnyClass::Text { variable, .. } => *variable,
            AnyClass::Sequence(_) | AnyClass::Reference(_) => true,
            AnyClass::Compound(members) => members.iter().any(|member| member.element.has_pointers()),
            AnyClass::Array { element, .. } => element.has_pointers(),
            _ => false,
        }
    }

    /// Whether elements contain values of an unknown class, or references of HDF5 1.12 or newer.
    pub(crate) fn is_opaque_to_us(&self) -> bool {
        match &self.class {
            AnyClass::Reference(kind) => *kind == ReferenceKind::Newer,
            AnyClass::Sequence(element) | AnyClass::Array { element, .. } => element.is_opaque_to_us(),
            AnyClass::Compound(members) => members.iter().any(|member| member.element.is_opaque_to_us()),
            AnyClass::Unknown(_) => true,
            _ => false,
        }
    }
}

/// Receives elements, each taken apart into values of a fixed size, strings and references.
pub(crate) trait Visitor {
    /// A number, a string with its padding, opaque bytes.
    fn fixed(&mut self, element: &AnyType, bytes: &[u8]);
    /// A string of variable length.
    fn text(&mut self, text: &[u8]);
    /// All bytes are 0 if it leads nowhere; one to an object is the address of its header.
    fn reference(&mut self, kind: ReferenceKind, bytes: &[u8]);
    /// Members of a compound, or elements of an array or a sequence follow.
    fn begin(&mut self);
    fn end(&mut self);
}
