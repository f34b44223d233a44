//! Element types of any HDF5 file, in the form in which libhdf5 puts the elements into memory.

/// Most levels of HDF5 types within types that are read.
pub(crate) const MAX_NESTED_TYPES: usize = 32;

/// An element type of any HDF5 file, in the form that its elements have in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyType {
    /// Size of an element of this type in memory, in bytes.
    pub(crate) size: usize,
    pub(crate) class: AnyClass,
}

/// The class of an HDF5 element type, with everything that its elements are decoded by.
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
    /// A sequence of variable length: an element is a length and a pointer to elements of this type.
    Sequence(Box<AnyType>),
    Array {
        /// Extents of an array that is an element, slowest axis first.
        extents: Vec<u64>,
        element: Box<AnyType>,
    },
    /// A complex number: two numbers of this type, the real part first.
    Complex(Box<AnyType>),
    /// A class of types that this version does not know, by HDF5's number.
    Unknown(i32),
}

/// A member of a compound type: its name, place and type.
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

/// Where the bits of a floating-point number are in its bytes. Positions count from the lowest bit, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatLayout {
    pub(crate) order: Order,
    pub(crate) sign: usize,
    pub(crate) exponent: usize,
    pub(crate) exponent_bits: usize,
    pub(crate) mantissa: usize,
    pub(crate) mantissa_bits: usize,
    pub(crate) bias: u64,
    /// Whether the highest bit of the mantissa is not stored, except for subnormal numbers.
    pub(crate) implied: bool,
}

/// The byte order of a number in any HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
    /// An order other than big- and little-endian, with HDF5's code of it.
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
    /// The string ends at the first NUL, and the bytes after it mean nothing.
    Terminated,
    Nul,
    Space,
    /// Padding that this version does not know, with HDF5's code of it.
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

/// The kind of object that an HDF5 reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Object,
    Region,
    /// A reference of HDF5 1.12 or newer, which is not decoded.
    Newer,
}

impl AnyType {
    /// Whether elements of the type are, or contain, addresses in memory or in the file.
    pub(crate) fn has_pointers(&self) -> bool {
        match &self.class {
            AnyClass::Text { variable, .. } => *variable,
            AnyClass::Sequence(_) | AnyClass::Reference(_) => true,
            AnyClass::Compound(members) => members.iter().any(|member| member.element.has_pointers()),
            AnyClass::Array { element, .. } => element.has_pointers(),
            _ => false,
        }
    }

    /// Whether elements of the type are, or contain, something that this program does not decode.
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

/// Receives elements of any type one after the other, each taken apart into values of a fixed size and strings.
pub(crate) trait Visitor {
    /// Receives a value of a fixed size: a number, a string with its padding, bytes.
    fn fixed(&mut self, element: &AnyType, bytes: &[u8]);
    /// Receives a string of variable length, as its bytes.
    fn text(&mut self, text: &[u8]);
    fn reference(&mut self, kind: ReferenceKind, is_null: bool);
    /// Receives the beginning of a compound, an array or a sequence, whose members or elements follow.
    fn begin(&mut self);
    fn end(&mut self);
}
