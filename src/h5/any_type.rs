//! Element types of any HDF5 file, in the form in which libhdf5 puts the elements into memory.

/// How deep types may be nested in types.
pub(crate) const MAX_NESTED_TYPES: usize = 32;

/// The type of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyType {
    /// Bytes of an element in memory.
    pub(crate) size: usize,
    pub(crate) class: AnyClass,
}

/// The class of a type, with everything that its elements are decoded by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnyClass {
    Integer(IntegerLayout),
    Float(FloatLayout),
    Time,
    Text {
        /// 0 for ASCII, 1 for UTF-8.
        charset: i32,
        padding: Padding,
        /// An element is a pointer to a string.
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
        /// The names and the bytes of their values.
        members: Vec<(String, Vec<u8>)>,
    },
    /// An element is a length and a pointer to elements of this type.
    Sequence(Box<AnyType>),
    Array {
        /// Slowest axis first.
        extents: Vec<u64>,
        element: Box<AnyType>,
    },
    /// Two numbers of this type, the real part first.
    Complex(Box<AnyType>),
    /// A class that this version does not know.
    Unknown(i32),
}

/// A member of a compound type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyMember {
    pub(crate) name: String,
    /// Bytes from the start of the element.
    pub(crate) offset: usize,
    pub(crate) element: AnyType,
}

/// The bits of an integer, or of a bit field, in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntegerLayout {
    pub(crate) order: Order,
    pub(crate) signed: bool,
    /// Bits of the number.
    pub(crate) precision: usize,
    /// Bits of padding below it.
    pub(crate) shift: usize,
}

/// The bits of a floating-point number. Positions count from the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatLayout {
    pub(crate) order: Order,
    pub(crate) sign: usize,
    pub(crate) exponent: usize,
    pub(crate) exponent_bits: usize,
    pub(crate) mantissa: usize,
    pub(crate) mantissa_bits: usize,
    pub(crate) bias: u64,
    /// The highest bit of the mantissa is not stored, except for subnormal numbers.
    pub(crate) implied: bool,
}

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
    /// Another one, with HDF5's code of it.
    Other(i32),
}

impl Order {
    /// HDF5's code.
    pub(crate) fn code(self) -> i32 {
        match self {
            Order::Little => 0,
            Order::Big => 1,
            Order::Other(code) => code,
        }
    }
}

/// How strings of a fixed length are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// The string ends at the first NUL.
    Terminated,
    Nul,
    Space,
    /// Another one, with HDF5's code of it.
    Other(i32),
}

impl Padding {
    /// HDF5's code.
    pub(crate) fn code(self) -> i32 {
        match self {
            Padding::Terminated => 0,
            Padding::Nul => 1,
            Padding::Space => 2,
            Padding::Other(code) => code,
        }
    }

    /// The string without its padding.
    pub(crate) fn strip(self, bytes: &[u8]) -> &[u8] {
        let pad = if self == Padding::Space { b' ' } else { 0 };
        match self {
            Padding::Terminated => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
            _ => &bytes[..bytes.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1)],
        }
    }
}

/// What a reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Object,
    Region,
    /// A reference of HDF5 1.12 or newer, which is not decoded.
    Newer,
}

impl AnyType {
    /// Whether elements are, or contain, addresses in memory or in the file.
    pub(crate) fn has_pointers(&self) -> bool {
        match &self.class {
            AnyClass::Text { variable, .. } => *variable,
            AnyClass::Sequence(_) | AnyClass::Reference(_) => true,
            AnyClass::Compound(members) => members.iter().any(|member| member.element.has_pointers()),
            AnyClass::Array { element, .. } => element.has_pointers(),
            _ => false,
        }
    }

    /// Whether elements are, or contain, something that is not decoded.
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

/// Gets the elements one after the other, each taken apart into values of a fixed size and strings.
pub(crate) trait Visitor {
    /// A value of a fixed size: a number, a string with its padding, bytes.
    fn fixed(&mut self, element: &AnyType, bytes: &[u8]);
    /// A string of variable length.
    fn text(&mut self, text: &[u8]);
    fn reference(&mut self, kind: ReferenceKind, is_null: bool);
    /// Begins a compound, an array or a sequence, whose members or elements follow.
    fn begin(&mut self);
    fn end(&mut self);
}
