//! TaQL's functions.

use super::evaluate::constant;
use super::node::{Kind, Map, Member, Node, Op, Property, Rearrangement, Reduction, Zip};
use super::style::Style;
use super::typing::{common, share_unit, stack};
use super::unit::Unit;
use crate::error::{Error, Result};
use crate::value::Values;

/// Width of the text of a number.
const MAX_WIDTH: i64 = 1000;

/// Speed of light in metres per second.
const LIGHT: f64 = 299_792_458.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Numbers,
    /// Integers are computed as floats.
    Floats,
    /// The same, but no complex numbers.
    RealFloats,
    Reals,
    Bools,
    Texts,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// That of its operand.
    Same,
    /// Double for complex numbers.
    Real,
    Kind(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measures {
    Nothing,
    Same,
    Square,
    Cube,
    Root,
    Angle,
    /// No unit; the operand is converted to radians.
    OfAngle,
}

type Mapped = (&'static [&'static str], Map, Takes, Gives, Measures);

const MAPS: &[Mapped] = &[
    (&["sin"], Map::Sin, Takes::Floats, Gives::Same, Measures::OfAngle),
    (&["cos"], Map::Cos, Takes::Floats, Gives::Same, Measures::OfAngle),
    (&["tan"], Map::Tan, Takes::RealFloats, Gives::Same, Measures::OfAngle),
    (&["asin"], Map::Asin, Takes::RealFloats, Gives::Same, Measures::Angle),
    (&["acos"], Map::Acos, Takes::RealFloats, Gives::Same, Measures::Angle),
    (&["atan"], Map::Atan, Takes::RealFloats, Gives::Same, Measures::Angle),
    (&["sinh"], Map::Sinh, Takes::Floats, Gives::Same, Measures::Nothing),
    (&["cosh"], Map::Cosh, Takes::Floats, Gives::Same, Measures::Nothing),
    (&["tanh"], Map::Tanh, Takes::RealFloats, Gives::Same, Measures::Nothing),
    (&["exp"], Map::Exp, Takes::Floats, Gives::Same, Measures::Nothing),
    (&["log", "ln"], Map::Log, Takes::RealFloats, Gives::Same, Measures::Nothing),
    (&["log10"], Map::Log10, Takes::RealFloats, Gives::Same, Measures::Nothing),
    (&["sqrt"], Map::Sqrt, Takes::RealFloats, Gives::Same, Measures::Root),
    (&["square", "sqr"], Map::Square, Takes::Numbers, Gives::Same, Measures::Square),
    (&["cube"], Map::Cube, Takes::Numbers, Gives::Same, Measures::Cube),
    (&["conj"], Map::Conj, Takes::Floats, Gives::Same, Measures::Same),
    (&["norm"], Map::Norm, Takes::Numbers, Gives::Real, Measures::Square),
    (&["abs", "amplitude", "ampl"], Map::Abs, Takes::Numbers, Gives::Real, Measures::Same),
    (&["arg", "phase"], Map::Arg, Takes::Floats, Gives::Real, Measures::Angle),
    (&["imag"], Map::Imag, Takes::Floats, Gives::Real, Measures::Same),
    (&["sign"], Map::Sign, Takes::Reals, Gives::Same, Measures::Nothing),
    (&["round"], Map::Round, Takes::Reals, Gives::Same, Measures::Same),
    (&["floor"], Map::Floor, Takes::Reals, Gives::Same, Measures::Same),
    (&["ceil"], Map::Ceil, Takes::Reals, Gives::Same, Measures::Same),
    (&["bool", "boolean"], Map::Bool, Takes::All, Gives::Kind(Kind::Bool), Measures::Nothing),
    (&["isnan"], Map::IsNan, Takes::Floats, Gives::Kind(Kind::Bool), Measures::Nothing),
    (&["isinf"], Map::IsInf, Takes::Floats, Gives::Kind(Kind::Bool), Measures::Nothing),
    (&["isfinite"], Map::IsFinite, Takes::Floats, Gives::Kind(Kind::Bool), Measures::Nothing),
    (&["upcase", "upper", "toupper", "to_upper"], Map::Upcase, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["downcase", "lower", "tolower", "to_lower"], Map::Downcase, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["capitalize"], Map::Capitalize, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["reversestring", "sreverse"], Map::ReverseText, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["trim"], Map::Trim, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["ltrim"], Map::TrimLeft, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["rtrim"], Map::TrimRight, Takes::Texts, Gives::Same, Measures::Nothing),
    (&["strlength", "len"], Map::Length, Takes::Texts, Gives::Kind(Kind::Int), Measures::Nothing),
];

/// Names; an `s` after the name means along axes.
type Reduced = (&'static [&'static str], Reduction, Takes, Gives, Measures);

const REDUCTIONS: &[Reduced] = &[
    (&["sum"], Reduction::Sum, Takes::Numbers, Gives::Same, Measures::Same),
    (&["product"], Reduction::Product, Takes::Numbers, Gives::Same, Measures::Nothing),
    (&["sumsqr", "sumsquare"], Reduction::SumSquares, Takes::Numbers, Gives::Same, Measures::Square),
    (&["min"], Reduction::Min, Takes::Reals, Gives::Same, Measures::Same),
    (&["max"], Reduction::Max, Takes::Reals, Gives::Same, Measures::Same),
    (&["mean", "avg"], Reduction::Mean, Takes::Floats, Gives::Same, Measures::Same),
    (&["variance"], Reduction::Variance(0), Takes::Floats, Gives::Real, Measures::Square),
    (&["samplevariance"], Reduction::Variance(1), Takes::Floats, Gives::Real, Measures::Square),
    (&["stddev"], Reduction::Stddev(0), Takes::Floats, Gives::Real, Measures::Same),
    (&["samplestddev"], Reduction::Stddev(1), Takes::Floats, Gives::Real, Measures::Same),
    (&["avdev"], Reduction::Avdev, Takes::Floats, Gives::Real, Measures::Same),
    (&["rms"], Reduction::Rms, Takes::RealFloats, Gives::Same, Measures::Same),
    (&["median"], Reduction::Median, Takes::RealFloats, Gives::Same, Measures::Same),
    (&["fractile"], Reduction::Fractile(0.0), Takes::RealFloats, Gives::Same, Measures::Same),
    (&["any"], Reduction::Any, Takes::Bools, Gives::Same, Measures::Nothing),
    (&["all"], Reduction::All, Takes::Bools, Gives::Same, Measures::Nothing),
    (&["ntrue"], Reduction::CountTrue, Takes::Bools, Gives::Kind(Kind::Int), Measures::Nothing),
    (&["nfalse"], Reduction::CountFalse, Takes::Bools, Gives::Kind(Kind::Int), Measures::Nothing),
];

impl Takes {
    /// The operand in the type in which the function computes.
    fn take(self, node: Node) -> Result<Node> {
        let kind = node.kind;
        let accepted = match self {
            Takes::Numbers | Takes::Floats => kind.is_number(),
            Takes::RealFloats | Takes::Reals => kind.is_real(),
            Takes::Bools => kind == Kind::Bool,
            Takes::Texts => kind == Kind::Text,
            Takes::All => true,
        };
        if !accepted {
            return Err(Error::unsupported(format!("{kind} values are not supported")));
        }
        let to_double = matches!(self, Takes::Floats | Takes::RealFloats) && kind == Kind::Int;
        Ok(if to_double { node.cast(Kind::Double) } else { node })
    }
}

impl Gives {
    fn kind(self, operand: Kind) -> Kind {
        match self {
            Gives::Same => operand,
            Gives::Real if operand == Kind::Complex => Kind::Double,
            Gives::Real => operand,
            Gives::Kind(kind) => kind,
        }
    }
}

impl Measures {
    fn unit(self, operand: &Unit) -> Result<Unit> {
        Ok(match self {
            Measures::Nothing | Measures::OfAngle => Unit::default(),
            Measures::Same => operand.clone(),
            Measures::Square => operand.times(operand),
            Measures::Cube => operand.times(operand).times(operand),
            Measures::Root => operand.root()?,
            Measures::Angle => Unit::new("rad"),
        })
    }
}

/// `Unsupported`, with the name, if the function is unknown or cannot have these arguments.
pub(super) fn call(name: &str, arguments: Vec<Node>, style: Style) -> Result<Node> {
    let lower = name.to_ascii_lowercase();
    let found = known(&lower, arguments, style)
        .map_err(|error| Error::unsupported(format!("the function {name}: {}", error.message())))?;
    found.ok_or_else(|| Error::unsupported(format!("the function {name} is not supported")))
}

fn wrong_count(expected: &str, found: usize) -> Error {
    Error::unsupported(format!("{found} arguments are given, expected {expected}"))
}

fn exactly<const N: usize>(arguments: Vec<Node>) -> Result<[Node; N]> {
    <[Node; N]>::try_from(arguments).map_err(|arguments| wrong_count(&N.to_string(), arguments.len()))
}

/// `None` if the function is unknown.
fn known(name: &str, arguments: Vec<Node>, style: Style) -> Result<Option<Node>> {
    let count = arguments.len();
    if let Some(&(_, function, takes, gives, measures)) = MAPS.iter().find(|(names, ..)| names.contains(&name)) {
        let [operand] = exactly(arguments)?;
        return map(function, operand, takes, gives, measures).map(Some);
    }
    let is_pair = matches!(name, "min" | "max") && count != 1;
    let reduction = |name: &str| REDUCTIONS.iter().find(|(names, ..)| names.contains(&name));
    if let Some(reduced) = reduction(name).filter(|_| !is_pair) {
        return whole(reduced, arguments).map(Some);
    }
    if let Some(reduced) = name.strip_suffix('s').and_then(reduction) {
        return along(reduced, arguments, style).map(Some);
    }
    of_scalars(name, arguments, style)
}

fn of_scalars(name: &str, arguments: Vec<Node>, style: Style) -> Result<Option<Node>> {
    Ok(Some(match name {
        "pi" | "e" | "c" => {
            let [] = exactly(arguments)?;
            match name {
                "pi" => Node::constant(Kind::Double, std::f64::consts::PI),
                "e" => Node::constant(Kind::Double, std::f64::consts::E),
                _ => Node::constant(Kind::Double, LIGHT).in_unit(Unit::new("m/s")),
            }
        }
        "rownumber" | "rownr" | "rowid" => {
            let [] = exactly(arguments)?;
            let first = if name == "rowid" { 0 } else { style.origin };
            Node::new(Op::RowNumber(first), Kind::Int, false, false)
        }
        "real" => {
            let [operand] = exactly(arguments)?;
            match operand.kind {
                Kind::Bool => operand.map(Map::Real, Kind::Double),
                _ => map(Map::Real, operand, Takes::Floats, Gives::Real, Measures::Same)?,
            }
        }
        "int" | "integer" => {
            let [operand] = exactly(arguments)?;
            if operand.kind != Kind::Bool {
                Takes::Reals.take(operand.clone())?;
            }
            operand.map(Map::Int, Kind::Int)
        }
        "pow" => {
            let [base, exponent] = exactly(arguments)?;
            power(base, exponent)?
        }
        "atan2" => {
            let [y, x] = exactly(arguments)?;
            let (y, x) = (Takes::RealFloats.take(y)?, Takes::RealFloats.take(x)?);
            Node::zip(Zip::Atan2, y, x, Kind::Double).in_unit(Unit::new("rad"))
        }
        "fmod" => pair(Zip::Fmod, exactly(arguments)?, Takes::Reals)?,
        "min" => pair(Zip::Min, exactly(arguments)?, Takes::Numbers)?,
        "max" => pair(Zip::Max, exactly(arguments)?, Takes::Numbers)?,
        "complex" | "formcomplex" => {
            let mut operands: [Node; 2] = exactly(arguments)?;
            let unit = share_unit(operands.iter_mut())?;
            let [re, im] = operands;
            let (re, im) = (Takes::RealFloats.take(re)?, Takes::RealFloats.take(im)?);
            Node::zip(Zip::Complex, re, im, Kind::Complex).in_unit(unit)
        }
        "near" | "nearabs" => near(name == "near", arguments)?,
        "iif" => choose(exactly(arguments)?)?,
        "shape" | "ndim" | "nelements" | "count" | "isdefined" => {
            let [operand] = exactly(arguments)?;
            describe(name, operand, style)
        }
        "substr" | "substring" => substring(arguments)?,
        "replace" => replace(arguments)?,
        "string" | "str" => text(arguments)?,
        _ => return of_arrays(name, arguments, style),
    }))
}

fn of_arrays(name: &str, mut arguments: Vec<Node>, style: Style) -> Result<Option<Node>> {
    let count = arguments.len();
    Ok(Some(match name {
        "array" => {
            if count < 2 {
                return Err(wrong_count("2 or more", count));
            }
            let mut shape = numbers(arguments.split_off(1))?;
            if style.c_order {
                let reverse = Op::Rearrange(Rearrangement::Reverse { c_order: false }, Box::new(shape), None);
                shape = Node::new(reverse, Kind::Int, true, false);
            }
            let [values] = exactly(arguments)?;
            rearrange(Rearrangement::Fill, values, Some(shape))
        }
        "transpose" | "areverse" | "reversearray" => {
            if count == 0 {
                return Err(wrong_count("1 or more", count));
            }
            let axes = arguments.split_off(1);
            let axes = if axes.is_empty() { None } else { Some(from_zero(numbers(axes)?, style)) };
            let [array] = exactly(arguments)?;
            let c_order = style.c_order;
            let rearrangement = match name {
                "transpose" => Rearrangement::Transpose { c_order },
                _ => Rearrangement::Reverse { c_order },
            };
            rearrange(rearrangement, only_array(array)?, axes)
        }
        "flatten" | "arrayflatten" => {
            let [array] = exactly(arguments)?;
            rearrange(Rearrangement::Flatten, array, None)
        }
        _ => return Ok(None),
    }))
}

fn map(function: Map, operand: Node, takes: Takes, gives: Gives, measures: Measures) -> Result<Node> {
    let mut operand = takes.take(operand)?;
    if measures == Measures::OfAngle && !operand.unit.is_none() {
        operand = operand.adapted(&Unit::new("rad"))?;
    }
    let (unit, kind) = (measures.unit(&operand.unit)?, gives.kind(operand.kind));
    Ok(operand.map(function, kind).in_unit(unit))
}

pub(super) fn power(base: Node, exponent: Node) -> Result<Node> {
    let (base, exponent) = (Takes::RealFloats.take(base)?, Takes::RealFloats.take(exponent)?);
    Ok(Node::zip(Zip::Power, base, exponent, Kind::Double))
}

fn pair(function: Zip, mut operands: [Node; 2], takes: Takes) -> Result<Node> {
    let unit = share_unit(operands.iter_mut())?;
    let [left, right] = operands;
    let (left, right) = (takes.take(left)?, takes.take(right)?);
    let kind = common(left.kind, right.kind)?;
    let (left, right) = (left.cast(kind), right.cast(kind));
    // casacore gives arrays before scalars to min and max, which decides about NaN
    let is_swapped = matches!(function, Zip::Min | Zip::Max) && !left.is_array && right.is_array;
    let (left, right) = if is_swapped { (right, left) } else { (left, right) };
    Ok(Node::zip(function, left, right, kind).in_unit(unit))
}

fn near(is_relative: bool, mut arguments: Vec<Node>) -> Result<Node> {
    let count = arguments.len();
    if !(2..=3).contains(&count) {
        return Err(wrong_count("2 or 3", count));
    }
    let shared = if is_relative { 2 } else { count };
    share_unit(arguments[..shared].iter_mut())?;
    let kinds = arguments.iter().map(|node| node.kind);
    let kind = kinds.clone().max().filter(|_| kinds.clone().all(Kind::is_number));
    let kind = kind.ok_or_else(|| Error::unsupported("numbers are expected"))?;
    // integers are compared as complex numbers
    let kind = if kind == Kind::Double { Kind::Double } else { Kind::Complex };
    let tolerance = match arguments.get(2) {
        Some(tolerance) => real(tolerance, "tolerance")?,
        None => 1e-13,
    };
    arguments.truncate(2);
    let [left, right] = exactly(arguments)?;
    let function = if is_relative { Zip::Near(tolerance) } else { Zip::NearAbs(tolerance) };
    Ok(Node::zip(function, left.cast(kind), right.cast(kind), Kind::Bool))
}

/// Value of a constant argument, which the error calls `what`.
fn real(node: &Node, what: &str) -> Result<f64> {
    if !node.is_constant || node.is_array || !node.kind.is_real() {
        return Err(Error::unsupported(format!("a {what} that is not a constant number is not supported")));
    }
    match &constant(&node.clone().cast(Kind::Double))?.values {
        Values::Double(values) => Ok(values.first().copied().unwrap_or_default()),
        _ => Err(Error::unsupported(format!("the {what} is not a number"))),
    }
}

fn choose(operands: [Node; 3]) -> Result<Node> {
    let [condition, mut yes, mut no] = operands;
    if condition.kind != Kind::Bool {
        return Err(Error::unsupported(format!("the condition has the type {}", condition.kind)));
    }
    let unit = share_unit([&mut yes, &mut no].into_iter())?;
    let kind = common(yes.kind, no.kind)?;
    let operands = [condition, yes.cast(kind), no.cast(kind)];
    let is_array = operands.iter().any(|node| node.is_array);
    let is_constant = operands.iter().all(|node| node.is_constant);
    Ok(Node::new(Op::Choose(Box::new(operands)), kind, is_array, is_constant).in_unit(unit))
}

fn describe(name: &str, operand: Node, style: Style) -> Node {
    let is_constant = operand.is_constant;
    let (property, kind, is_array) = match name {
        "shape" => (Property::Shape { c_order: style.c_order }, Kind::Int, true),
        "ndim" => (Property::Axes, Kind::Int, false),
        "isdefined" => (Property::IsDefined, Kind::Bool, false),
        _ => (Property::Elements, Kind::Int, false),
    };
    Node::new(Op::Describe(property, Box::new(operand)), kind, is_array, is_constant)
}

fn rearrange(rearrangement: Rearrangement, array: Node, arguments: Option<Node>) -> Node {
    let is_constant = array.is_constant && arguments.as_ref().is_none_or(|node| node.is_constant);
    let (kind, unit) = (array.kind, array.unit.clone());
    let op = Op::Rearrange(rearrangement, Box::new(array), arguments.map(Box::new));
    Node::new(op, kind, true, is_constant).in_unit(unit)
}

fn only_array(node: Node) -> Result<Node> {
    if node.is_array { Ok(node) } else { Err(Error::unsupported("an array is expected")) }
}

/// Axes or extents: a vector, or some scalars.
fn numbers(arguments: Vec<Node>) -> Result<Node> {
    if let Some(node) = arguments.iter().find(|node| node.kind != Kind::Int) {
        return Err(Error::unsupported(format!("axes and extents are integers, found {}", node.kind)));
    }
    match <[Node; 1]>::try_from(arguments) {
        Ok([vector]) if vector.is_array => Ok(vector),
        Ok([scalar]) => Ok(stack(vec![Member::One(scalar)], Kind::Int)),
        Err(scalars) if scalars.iter().any(|node| node.is_array) => {
            Err(Error::unsupported("axes and extents are scalars or one vector"))
        }
        Err(scalars) => Ok(stack(scalars.into_iter().map(Member::One).collect(), Kind::Int)),
    }
}

/// Axes of a style counted from 0.
fn from_zero(axes: Node, style: Style) -> Node {
    let origin = Node::constant(Kind::Int, style.origin);
    Node::zip(Zip::Minus, axes, origin, Kind::Int)
}

fn whole(reduced: &Reduced, mut arguments: Vec<Node>) -> Result<Node> {
    let &(_, mut reduction, takes, gives, measures) = reduced;
    if let Reduction::Fractile(part) = &mut reduction {
        *part = fractile(&mut arguments)?;
    }
    let [operand] = exactly(arguments)?;
    let operand = takes.take(operand)?;
    let (kind, unit) = (gives.kind(operand.kind), measures.unit(&operand.unit)?);
    if operand.is_array {
        let is_constant = operand.is_constant;
        return Ok(Node::new(Op::Reduce(reduction, Box::new(operand)), kind, false, is_constant).in_unit(unit));
    }
    Ok(match reduction {
        Reduction::SumSquares => operand.map(Map::Square, kind),
        Reduction::Variance(_) | Reduction::Stddev(_) | Reduction::Avdev => Node::constant(Kind::Double, 0.0),
        Reduction::CountTrue => operand.map(Map::Int, kind),
        Reduction::CountFalse => operand.map(Map::Not, Kind::Bool).map(Map::Int, kind),
        _ => operand,
    }
    .in_unit(unit))
}

fn along(reduced: &Reduced, mut arguments: Vec<Node>, style: Style) -> Result<Node> {
    let &(_, mut reduction, takes, gives, measures) = reduced;
    if let Reduction::Fractile(part) = &mut reduction {
        *part = fractile(&mut arguments)?;
    }
    if arguments.len() < 2 {
        return Err(wrong_count("an array and axes", arguments.len()));
    }
    let axes = from_zero(numbers(arguments.split_off(1))?, style);
    let [array] = exactly(arguments)?;
    let array = takes.take(only_array(array)?)?;
    let (kind, unit) = (gives.kind(array.kind), measures.unit(&array.unit)?);
    let is_constant = array.is_constant && axes.is_constant;
    let op = Op::ReduceAxes { reduction, operands: Box::new([array, axes]), c_order: style.c_order };
    Ok(Node::new(op, kind, true, is_constant).in_unit(unit))
}

/// Takes the second argument.
fn fractile(arguments: &mut Vec<Node>) -> Result<f32> {
    if arguments.len() < 2 {
        return Err(wrong_count("2 or more", arguments.len()));
    }
    Ok(real(&arguments.remove(1), "fractile")? as f32)
}

fn only_scalar(node: &Node, kind: Kind) -> Result<()> {
    if node.is_array || node.kind != kind {
        let found = if node.is_array { "an array" } else { "a scalar" };
        return Err(Error::unsupported(format!(
            "{found} of type {} is given, a scalar of type {kind} is expected",
            node.kind
        )));
    }
    Ok(())
}

fn substring(mut arguments: Vec<Node>) -> Result<Node> {
    let length = if arguments.len() == 3 { arguments.pop() } else { None };
    let operands: [Node; 2] = exactly(arguments)?;
    let text = Takes::Texts.take(operands[0].clone())?;
    operands[1..].iter().chain(&length).try_for_each(|node| only_scalar(node, Kind::Int))?;
    let is_constant = operands.iter().chain(&length).all(|node| node.is_constant);
    let op = Op::Substring(Box::new(operands), length.map(Box::new));
    Ok(Node::new(op, Kind::Text, text.is_array, is_constant))
}

fn replace(mut arguments: Vec<Node>) -> Result<Node> {
    if arguments.len() == 2 {
        arguments.push(Node::constant(Kind::Text, crate::value::BString::default()));
    }
    let operands: [Node; 3] = exactly(arguments)?;
    Takes::Texts.take(operands[0].clone())?;
    operands[1..].iter().try_for_each(|node| only_scalar(node, Kind::Text))?;
    let (is_array, is_constant) = (operands[0].is_array, operands.iter().all(|node| node.is_constant));
    Ok(Node::new(Op::Replace(Box::new(operands)), Kind::Text, is_array, is_constant))
}

/// The second argument is width and precision as in `10.3`.
fn text(mut arguments: Vec<Node>) -> Result<Node> {
    let format = if arguments.len() == 2 { arguments.pop() } else { None };
    let [value] = exactly(arguments)?;
    let (mut width, mut precision) = (0, 0);
    if let Some(format) = format {
        if format.kind == Kind::Text {
            return Err(Error::unsupported("a format is not supported"));
        }
        let number = real(&format, "width")? + 1e-10;
        width = number as i64;
        let mut digits = (number - width as f64) * 10.0;
        if digits - digits.trunc() > 1e-5 {
            digits *= 10.0;
        }
        precision = digits as i64;
    }
    if width > MAX_WIDTH {
        return Err(Error::unsupported(format!("the width {width} is more than {MAX_WIDTH}")));
    }
    let (is_array, is_constant) = (value.is_array, value.is_constant);
    let (width, precision) = (width.max(0) as usize, precision.max(0) as usize);
    Ok(Node::new(Op::Text { value: Box::new(value), width, precision }, Kind::Text, is_array, is_constant))
}
