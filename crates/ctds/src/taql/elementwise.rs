//! Operators and functions that work element by element.

use num_complex::Complex64;

use super::block::{Block, Shapes, different, map, zip};
use super::complex;
use super::node::{Kind, Map, Zip};
use super::text;
use crate::error::{Error, Result};
use crate::value::{BString, Shape, Values};

/// Towards zero; numbers out of range and NaN give the least integer, as in processors.
pub(super) fn truncated(value: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&value) { value as i64 } else { i64::MIN }
}

/// `is_array`: casacore rounds numbers a little below a half of arrays in another way than scalars.
pub(super) fn apply(function: Map, block: &Block, is_array: bool) -> Block {
    match &block.values {
        Values::Bool(_) => of_bools(function, block),
        Values::Int64(_) => of_ints(function, block),
        Values::DComplex(_) => of_complexes(function, block),
        Values::String(_) => of_texts(function, block),
        _ => of_doubles(function, block, is_array),
    }
}

fn of_bools(function: Map, block: &Block) -> Block {
    match function {
        Map::Not => map(block, |value: &bool| !value),
        Map::Int => map(block, |&value: &bool| i64::from(value)),
        Map::Real => map(block, |&value: &bool| f64::from(u8::from(value))),
        _ => block.clone(),
    }
}

fn of_ints(function: Map, block: &Block) -> Block {
    match function {
        Map::Negative => map(block, |value: &i64| value.wrapping_neg()),
        Map::Complement => map(block, |value: &i64| !value),
        Map::Square | Map::Norm => map(block, |value: &i64| value.wrapping_mul(*value)),
        Map::Cube => map(block, |value: &i64| value.wrapping_mul(*value).wrapping_mul(*value)),
        Map::Abs => map(block, |value: &i64| value.wrapping_abs()),
        Map::Sign => map(block, |value: &i64| value.signum()),
        Map::Bool => map(block, |value: &i64| *value != 0),
        _ => block.clone(),
    }
}

fn of_doubles(function: Map, block: &Block, is_array: bool) -> Block {
    let bools = |f: fn(f64) -> bool| map(block, |value: &f64| f(*value));
    match function {
        Map::Int => return map(block, |value: &f64| truncated(*value)),
        Map::Bool => return bools(|value| value != 0.0),
        Map::IsNan => return bools(f64::is_nan),
        Map::IsInf => return bools(f64::is_infinite),
        Map::IsFinite => return bools(f64::is_finite),
        _ => {}
    }
    let f: fn(f64) -> f64 = match function {
        Map::Negative => |value| -value,
        Map::Sin => f64::sin,
        Map::Cos => f64::cos,
        Map::Tan => f64::tan,
        Map::Asin => f64::asin,
        Map::Acos => f64::acos,
        Map::Atan => f64::atan,
        Map::Sinh => f64::sinh,
        Map::Cosh => f64::cosh,
        Map::Tanh => f64::tanh,
        Map::Exp => f64::exp,
        Map::Log => f64::ln,
        Map::Log10 => f64::log10,
        Map::Sqrt => f64::sqrt,
        Map::Square | Map::Norm => |value| value * value,
        Map::Cube => |value| value * value * value,
        Map::Abs => f64::abs,
        Map::Arg => |value| if value >= 0.0 { 0.0 } else { std::f64::consts::PI },
        Map::Imag => |_| 0.0,
        Map::Sign => |value| f64::from(i8::from(value > 0.0) - i8::from(value < 0.0)),
        Map::Round if is_array => f64::round,
        Map::Round => |value| if value < 0.0 { (value - 0.5).ceil() } else { (value + 0.5).floor() },
        Map::Floor => f64::floor,
        Map::Ceil => f64::ceil,
        _ => |value| value,
    };
    map(block, |value: &f64| f(*value))
}

fn of_complexes(function: Map, block: &Block) -> Block {
    let bools = |f: fn(Complex64) -> bool| map(block, |value: &Complex64| f(*value));
    let doubles = |f: fn(Complex64) -> f64| map(block, |value: &Complex64| f(*value));
    let f: fn(Complex64) -> Complex64 = match function {
        Map::Bool => return bools(|value| value != Complex64::ZERO),
        Map::IsNan => return bools(|value| value.re.is_nan() || value.im.is_nan()),
        Map::IsInf => return bools(|value| value.re.is_infinite() || value.im.is_infinite()),
        Map::IsFinite => return bools(|value| value.re.is_finite() && value.im.is_finite()),
        Map::Norm => return doubles(complex::norm),
        Map::Abs => return doubles(complex::abs),
        Map::Arg => return doubles(complex::arg),
        Map::Real => return doubles(|value| value.re),
        Map::Imag => return doubles(|value| value.im),
        Map::Negative => |value| -value,
        Map::Square => |value| complex::times(value, value),
        Map::Cube => |value| complex::times(complex::times(value, value), value),
        Map::Conj => |value| value.conj(),
        Map::Exp => complex::exp,
        Map::Sin => complex::sin,
        Map::Cos => complex::cos,
        Map::Sinh => complex::sinh,
        Map::Cosh => complex::cosh,
        _ => |value| value,
    };
    map(block, |value: &Complex64| f(*value))
}

fn of_texts(function: Map, block: &Block) -> Block {
    match function {
        Map::Length => map(block, |value: &BString| value.len() as i64),
        Map::Bool => map(block, is_true),
        _ => map(block, |value: &BString| text::map(function, value)),
    }
}

fn is_true(value: &BString) -> bool {
    let value = text::map(Map::Downcase, &text::map(Map::Trim, value));
    !["", "f", "false", "0", "-", "n", "no"].iter().any(|no| value == *no)
}

/// Both blocks have values of `kind`. `Format` for different shapes, or an integer divided by 0;
/// `Limit` if a text gets too long.
pub(super) fn combine(function: Zip, kind: Kind, left: &Block, right: &Block) -> Result<Block> {
    match kind {
        Kind::Bool => zip(left, right, |a: &bool, b: &bool| Ok((function == Zip::Equal) == (a == b))),
        Kind::Int => ints(function, left, right),
        Kind::Double => doubles(function, left, right),
        Kind::Complex => complexes(function, left, right),
        Kind::Text => texts(function, left, right),
    }
}

/// `None` if the function does not compare.
fn compares<T: PartialOrd>(function: Zip) -> Option<fn(&T, &T) -> bool> {
    Some(match function {
        Zip::Equal => |a, b| a == b,
        Zip::Unequal => |a, b| a != b,
        Zip::Less => |a, b| a < b,
        Zip::LessEqual => |a, b| a <= b,
        Zip::Greater => |a, b| a > b,
        Zip::GreaterEqual => |a, b| a >= b,
        _ => return None,
    })
}

fn ints(function: Zip, left: &Block, right: &Block) -> Result<Block> {
    if let Some(f) = compares::<i64>(function) {
        return zip(left, right, |a, b| Ok(f(a, b)));
    }
    let zip = |f: fn(i64, i64) -> Result<i64>| zip(left, right, |a: &i64, b: &i64| f(*a, *b));
    let divided = || Error::format("an integer is divided by 0, expected another divisor");
    match function {
        Zip::Plus => zip(|a, b| Ok(a.wrapping_add(b))),
        Zip::Minus => zip(|a, b| Ok(a.wrapping_sub(b))),
        Zip::Times => zip(|a, b| Ok(a.wrapping_mul(b))),
        Zip::BitAnd => zip(|a, b| Ok(a & b)),
        Zip::BitXor => zip(|a, b| Ok(a ^ b)),
        Zip::BitOr => zip(|a, b| Ok(a | b)),
        Zip::Min => zip(|a, b| Ok(a.min(b))),
        Zip::Max => zip(|a, b| Ok(a.max(b))),
        _ => super::block::zip(left, right, |&a: &i64, &b: &i64| {
            if b == 0 {
                return Err(divided());
            }
            let rest = a.wrapping_rem(b);
            // the remainder of % has the sign of the divisor, that of fmod the dividend's
            Ok(if function == Zip::Modulo && rest != 0 && (a < 0) != (b < 0) { rest + b } else { rest })
        }),
    }
}

fn doubles(function: Zip, left: &Block, right: &Block) -> Result<Block> {
    if let Some(f) = compares::<f64>(function) {
        return zip(left, right, |a, b| Ok(f(a, b)));
    }
    match function {
        Zip::Near(tolerance) => return zip(left, right, |a: &f64, b: &f64| Ok(is_near(*a, *b, tolerance))),
        Zip::NearAbs(tolerance) => return zip(left, right, |a: &f64, b: &f64| Ok((b - a).abs() <= tolerance)),
        Zip::Complex => return zip(left, right, |a: &f64, b: &f64| Ok(Complex64::new(*a, *b))),
        _ => {}
    }
    let f: fn(f64, f64) -> f64 = match function {
        Zip::Minus => |a, b| a - b,
        Zip::Times => |a, b| a * b,
        Zip::Divide => |a, b| a / b,
        Zip::Modulo => |a, b| {
            let rest = a % b;
            if rest != 0.0 && (a < 0.0) != (b < 0.0) { rest + b } else { rest }
        },
        Zip::Fmod => |a, b| a % b,
        Zip::Power => f64::powf,
        Zip::Atan2 => f64::atan2,
        Zip::Min => |a, b| if b < a { b } else { a },
        Zip::Max => |a, b| if a < b { b } else { a },
        _ => |a, b| a + b,
    };
    zip(left, right, |a: &f64, b: &f64| Ok(f(*a, *b)))
}

/// Complex numbers are ordered by their absolute values.
fn complexes(function: Zip, left: &Block, right: &Block) -> Result<Block> {
    let bools = |f: &dyn Fn(Complex64, Complex64) -> bool| zip(left, right, |a, b| Ok(f(*a, *b)));
    let by_norm = |f: fn(&f64, &f64) -> bool| bools(&|a, b| f(&complex::norm(a), &complex::norm(b)));
    match function {
        Zip::Equal => return bools(&|a, b| a == b),
        Zip::Unequal => return bools(&|a, b| a != b),
        Zip::Near(tolerance) => return bools(&|a, b| is_near_complex(a, b, tolerance)),
        Zip::NearAbs(tolerance) => return bools(&|a, b| complex::abs(b - a) <= tolerance),
        _ => {}
    }
    if let Some(f) = compares::<f64>(function) {
        return by_norm(f);
    }
    let f: fn(Complex64, Complex64) -> Complex64 = match function {
        Zip::Minus => |a, b| a - b,
        Zip::Times => complex::times,
        Zip::Divide => complex::over,
        Zip::Min => |a, b| if complex::norm(b) < complex::norm(a) { b } else { a },
        Zip::Max => |a, b| if complex::norm(a) < complex::norm(b) { b } else { a },
        _ => |a, b| a + b,
    };
    zip(left, right, |a: &Complex64, b: &Complex64| Ok(f(*a, *b)))
}

fn texts(function: Zip, left: &Block, right: &Block) -> Result<Block> {
    if let Some(f) = compares::<BString>(function) {
        return zip(left, right, |a, b| Ok(f(a, b)));
    }
    zip(left, right, |a: &BString, b: &BString| {
        crate::limits::repeated((a.len() + b.len()) as u64)?;
        Ok(BString::from([a.as_slice(), b].concat()))
    })
}

/// Whether the difference is at most this part of the larger number.
pub(super) fn is_near(a: f64, b: f64, tolerance: f64) -> bool {
    let least = (1.0 + tolerance) * f64::MIN_POSITIVE;
    if tolerance <= 0.0 || a == b {
        return a == b;
    }
    if a == 0.0 || b == 0.0 {
        return a.abs() <= least && b.abs() <= least;
    }
    (0.0 < a) == (0.0 < b) && (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn is_near_complex(a: Complex64, b: Complex64, tolerance: f64) -> bool {
    if tolerance <= 0.0 || a == b {
        return a == b;
    }
    let least = (1.0 + tolerance) * f64::MIN_POSITIVE;
    let (one, other) = (complex::abs(a), complex::abs(b));
    if one == 0.0 || other == 0.0 {
        return one <= least && other <= least;
    }
    complex::abs(a - b) <= tolerance * if one < other { other } else { one }
}

/// Scalars stand for all elements of an array. `Format` if the shapes of cells differ.
pub(super) fn choose(condition: &Block, yes: &Block, no: &Block, rows: usize) -> Result<Block> {
    let rows = if [condition, yes, no].iter().all(|block| block.cells() == 1) { 1 } else { rows };
    let is_scalar = |block: &Block| block.shapes == Shapes::Scalars;
    let conditions = condition.slice::<bool>();
    let mut shapes = Vec::with_capacity(rows);
    let mut values = Values::new(yes.values.data_type());
    for row in 0..rows {
        let cell = |block: &Block| block.cell_of(row);
        let arrays = if is_scalar(condition) { vec![yes, no] } else { vec![condition, yes, no] };
        let arrays: Vec<&Block> = arrays.into_iter().filter(|block| !is_scalar(block)).collect();
        let chosen = |element: usize| {
            let range = condition.range(cell(condition));
            conditions[if is_scalar(condition) { range.start } else { range.start + element }]
        };
        // a scalar condition takes one of the two as it is
        if is_scalar(condition) && arrays.len() == 2 {
            let taken = if chosen(0) { yes } else { no };
            values.extend_from(&taken.values, taken.range(cell(taken)))?;
            shapes.push(taken.shape_if_defined(cell(taken)));
            continue;
        }
        let found: Option<Vec<Shape>> = arrays.iter().map(|block| block.shape_if_defined(cell(block))).collect();
        let Some(found) = found else {
            shapes.push(None);
            continue;
        };
        if let Some(pair) = found.windows(2).find(|pair| pair[0] != pair[1]) {
            return Err(different(&pair[0], &pair[1]));
        }
        let shape = found.into_iter().next().unwrap_or_default();
        for element in 0..shape.elements()? as usize {
            let taken = if chosen(element) { yes } else { no };
            let start = taken.range(cell(taken)).start;
            let at = if is_scalar(taken) { start } else { start + element };
            values.extend_from(&taken.values, at..at + 1)?;
        }
        shapes.push(Some(shape));
    }
    let all_scalars = [condition, yes, no].into_iter().all(is_scalar);
    Ok(Block { shapes: if all_scalars { Shapes::Scalars } else { Shapes::each(shapes)? }, values })
}
