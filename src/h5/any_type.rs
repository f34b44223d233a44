//! Describes the element types of any HDF5 file as libhdf5 lays out their elements in memory, so that this program can
//! decode the elements.

/// Deepest nesting of HDF5 types within types that is read.
pub(crate) const MAX_NESTED_TYPES: usize = 32;

/// An element type of any HDF5 file: the class and the size of its elements as libhdf5 puts them into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyType {
    /// Size of an element of this type in memory, in bytes.
    pub(crate) size: usize,
    pub(crate) class: AnyClass,
}

/// The class of an HDF5 element type (integer, string, compound …), with the properties that are needed to decode its
/// elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnyClass {
    Integer(IntegerLayout),
    Float(FloatLayout),
    Time,
    Text {
        /// HDF5's code of the character set of strings: 0 for ASCII, 1 for UTF-8.
        charset: i32,
        padding: Padding,
        /// Whether strings have a variable length: an element is then a pointer to its text.
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
        /// The name of each member of an enumeration, and the bytes of its value.
        members: Vec<(String, Vec<u8>)>,
    },
    /// A sequence of variable length: an element is a length and a pointer to values of the contained type.
    Sequence(Box<AnyType>),
    Array {
        /// Extents of an element that is an array, slowest axis first.
        extents: Vec<u64>,
        element: Box<AnyType>,
    },
    /// A complex number: two numbers of the contained type, the real part first.
    Complex(Box<AnyType>),
    /// A class of types that this version does not know; the value is HDF5's number of the class.
    Unknown(i32),
}

/// A member of a compound type: its name, offset and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyMember {
    pub(crate) name: String,
    /// Offset of the member from the start of the compound element, in bytes.
    pub(crate) offset: usize,
    pub(crate) element: AnyType,
}

/// Where the bits of an integer, or of a bit field, are in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntegerLayout {
    pub(crate) order: Order,
    pub(crate) signed: bool,
    /// Number of bits of the integer itself, without padding.
    pub(crate) precision: usize,
    /// Number of padding bits below the lowest bit of the integer.
    pub(crate) shift: usize,
}

/// Where the bits of a floating-point number are in its bytes. Bit positions count from 0, the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatLayout {
    pub(crate) order: Order,
    pub(crate) sign: usize,
    pub(crate) exponent: usize,
    pub(crate) exponent_bits: usize,
    pub(crate) mantissa: usize,
    pub(crate) mantissa_bits: usize,
    pub(crate) bias: u64,
    /// Whether the highest bit of a floating-point mantissa is 1 and not stored, except in subnormal numbers.
    pub(crate) implied: bool,
}

/// The byte order of a number in any HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
    /// A byte order other than big- and little-endian; the value is HDF5's code of it.
    Other(i32),
}

impl Order {
    /// HDF5's code of the byte order (`H5T_order_t`).
    pub(crate) fn code(self) -> i32 {
        match self {
            Order::Little => 0,
            Order::Big => 1,
            Order::Other(code) => code,
        }
    }
}

/// How strings of a fixed length are filled up in an HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// The string ends at its first NUL; the bytes after it have no meaning.
    Terminated,
    Nul,
    Space,
    /// Padding of strings that this program does not know; the value is HDF5's code of it (`H5T_str_t`).
    Other(i32),
}

impl Padding {
    /// HDF5's code of the kind of string padding (`H5T_str_t`).
    pub(crate) fn code(self) -> i32 {
        match self {
            Padding::Terminated => 0,
            Padding::Nul => 1,
            Padding::Space => 2,
            Padding::Other(code) => code,
        }
    }

    /// Removes the padding from the bytes of a string.
    pub(crate) fn strip(self, bytes: &[u8]) -> &[u8] {
        let pad = if self == Padding::Space { b' ' } else { 0 };
        match self {
            Padding::Terminated => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
            _ => &bytes[..bytes.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1)],
        }
    }
}

/// The kind of an HDF5 reference: to an object, to a region of a dataset, or of a newer form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Object,
    Region,
    /// A reference of HDF5 1.12 or newer, which is not decoded.
    Newer,
}

impl AnyType {
    /// Whether elements of the type are, or contain, addresses of values stored elsewhere: strings or sequences of
    /// variable length, or references.
    pub(crate) fn has_pointers(&self) -> bool {
        match &self.class {
            AnyClass::Text { variable, .. } => *variable,
            AnyClass::Sequence(_) | AnyClass::Reference(_) => true,
            AnyClass::Compound(members) => members.iter().any(|member| member.element.has_pointers()),
            AnyClass::Array { element, .. } => element.has_pointers(),
            _ => false,
        }
    }

    /// Whether elements of the type are, or contain, values that this program cannot decode: of an unknown class, or
    /// references of HDF5 1.12 or newer.
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

/// Receiver of the elements of a read, of any HDF5 type: each element is taken apart into values of a fixed size, strings and
/// references.
pub(crate) trait Visitor {
    /// Receives a value of a fixed size (a number, a string with its padding, opaque bytes), whose type is `element`.
    fn fixed(&mut self, element: &AnyType, bytes: &[u8]);
    /// Receives a string of variable length, as its bytes.
    fn text(&mut self, text: &[u8]);
    /// Receives a reference as its bytes, all of which are 0 if it leads nowhere. One to an object is the address of the
    /// object's header.
    fn reference(&mut self, kind: ReferenceKind, bytes: &[u8]);
    /// Receives the beginning of a compound, an array or a sequence, whose members or elements follow.
    fn begin(&mut self);
    fn end(&mut self);
}
