//! An expression with the types of its values, ready to be evaluated.

use std::fmt;

use super::block::Block;
use super::pattern::Pattern;
use super::style::Style;
use super::unit::Unit;
use crate::value::DataType;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Bool,
    Int,
    Double,
    Complex,
    Text,
}

impl Kind {
    /// `None` for records.
    pub(crate) fn of(data_type: DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Bool => Kind::Bool,
            DataType::Float | DataType::Double => Kind::Double,
            DataType::Complex | DataType::DComplex => Kind::Complex,
            DataType::String => Kind::Text,
            DataType::Record => return None,
            _ => Kind::Int,
        })
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Double | Kind::Complex)
    }

    pub(super) fn is_real(self) -> bool {
        matches!(self, Kind::Int | Kind::Double)
    }
}

/// TaQL's names.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bool => "Bool",
            Kind::Int => "Integer",
            Kind::Double => "Double",
            Kind::Complex => "Complex",
            Kind::Text => "String",
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) kind: Kind,
    pub(super) is_array: bool,
    /// Whether no column or row number is used.
    pub(super) is_constant: bool,
    pub(super) unit: Unit,
}

#[derive(Debug, Clone)]
pub(super) enum Op {
    /// One cell for all rows.
    Constant(Block),
    /// Index among the columns of the expression.
    Column(usize),
    /// The row, and the number that the first one has.
    RowNumber(i64),
    /// To the node's kind: Int to Double or Complex, Double to Complex.
    Cast(Box<Node>),
    /// Factor between units.
    Scale(f64, Box<Node>),
    Map(Map, Box<Node>),
    Zip(Zip, Box<Node>, Box<Node>),
    /// `&&`, or else `||`: the second is evaluated only if scalars need it.
    Logic {
        is_and: bool,
        operands: Box<[Node; 2]>,
    },
    /// Condition, value if it is true, value if not.
    Choose(Box<[Node; 3]>),
    Reduce(Reduction, Box<Node>),
    /// Along the axes that the second operand gives, from 0. `c_order`: the slowest is 0.
    ReduceAxes {
        reduction: Reduction,
        operands: Box<[Node; 2]>,
        c_order: bool,
    },
    Rearrange(Rearrangement, Box<Node>, Option<Box<Node>>),
    Describe(Property, Box<Node>),
    /// An array: vector of scalars and ranges, or arrays along a new last axis.
    Stack(Vec<Member>),
    /// Subscripts of the axes, the fastest first; `is_element` if each is one index.
    Index {
        array: Box<Node>,
        subscripts: Vec<Subscript>,
        style: Style,
        is_element: bool,
    },
    In(Box<Node>, Vec<Member>),
    Substring(Box<[Node; 2]>, Option<Box<Node>>),
    /// The text, the part that is replaced, and its replacement.
    Replace(Box<[Node; 3]>),
    /// Width and precision of the text of a value; 0 for the least and for 6 digits.
    Text {
        value: Box<Node>,
        width: usize,
        precision: usize,
    },
    Matches(Pattern, Box<Node>),
}

#[derive(Debug, Clone)]
pub(super) enum Subscript {
    One(Node),
    /// Start, end and step.
    Range(Box<[Option<Node>; 3]>),
}

#[derive(Debug, Clone)]
pub(super) enum Member {
    /// A scalar or an array.
    One(Node),
    /// `start:end:step`, and whether the end does not belong to it.
    Range(Box<[Option<Node>; 3]>, bool),
    /// Start and end, and whether each belongs to the interval.
    Interval(Box<[Option<Node>; 2]>, [bool; 2]),
    /// Centre and width.
    Around(Box<[Node; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Map {
    Negative,
    Complement,
    Not,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Exp,
    Log,
    Log10,
    Sqrt,
    Square,
    Cube,
    Conj,
    Norm,
    Abs,
    Arg,
    Real,
    Imag,
    Int,
    Bool,
    Sign,
    Round,
    Floor,
    Ceil,
    IsNan,
    IsInf,
    IsFinite,
    Upcase,
    Downcase,
    Capitalize,
    ReverseText,
    Trim,
    TrimLeft,
    TrimRight,
    Length,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Zip {
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    Power,
    BitAnd,
    BitXor,
    BitOr,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Min,
    Max,
    Atan2,
    Fmod,
    Complex,
    /// Relative tolerance.
    Near(f64),
    /// Absolute tolerance.
    NearAbs(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reduction {
    Sum,
    Product,
    SumSquares,
    Min,
    Max,
    Mean,
    /// The number by which the divisor is less than that of the elements.
    Variance(usize),
    Stddev(usize),
    /// Mean absolute deviation from the mean.
    Avdev,
    Rms,
    Median,
    /// The element that this part of the others is less than.
    Fractile(f32),
    Any,
    All,
    CountTrue,
    CountFalse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rearrangement {
    /// The second operand is the shape; elements of the first are repeated.
    Fill,
    /// The second operand gives each axis its old number, from 0; `c_order`: the slowest is 0.
    Transpose {
        c_order: bool,
    },
    /// The second operand gives the axes, from 0; all, if none. `c_order`: the slowest is 0.
    Reverse {
        c_order: bool,
    },
    Flatten,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Property {
    Shape { c_order: bool },
    Axes,
    Elements,
    IsDefined,
}
