//! Finds columns, keywords and functions of a parsed expression, and the types and units of all its
//! parts.

use super::block::{Block, Shapes, widened};
use super::evaluate::constant;
use super::function;
use super::node::{Kind, Map, Member, Node, Op, Subscript, Zip};
use super::parse::Subscript as Written;
use super::parse::{Bound, Element, Expr, Operator, Sign};
use super::pattern::Pattern;
use super::style::Style;
use super::typing::{common, share_unit, stack};
use super::unit::Unit;
use crate::error::{Error, Result};
use crate::value::{BString, Complex64, DataType, Record, Value};

#[derive(Debug, Clone)]
pub(crate) struct ColumnType {
    pub(crate) data_type: DataType,
    pub(crate) is_array: bool,
    /// Axes of all cells, if that is fixed.
    pub(crate) axes: Option<usize>,
}

pub(crate) trait Table {
    /// `None` if the table has no such column.
    fn column(&mut self, name: &str) -> Result<Option<ColumnType>>;

    /// Keywords of the table, or of a column; `Unsupported` if that does not exist.
    fn keywords(&self, column: Option<&str>) -> Result<&Record>;
}

pub(super) struct Compiler<'a> {
    pub(super) table: &'a mut dyn Table,
    pub(super) style: Style,
    pub(super) columns: Vec<(String, ColumnType)>,
}

impl Compiler<'_> {
    pub(super) fn node(&mut self, expr: &Expr) -> Result<Node> {
        Ok(match expr {
            Expr::Bool(value) => Node::constant(Kind::Bool, *value),
            Expr::Int(value) => Node::constant(Kind::Int, *value),
            Expr::Double(value) => Node::constant(Kind::Double, *value),
            Expr::Imaginary(value) => Node::constant(Kind::Complex, Complex64::new(0.0, *value)),
            Expr::Text(text) => Node::constant(Kind::Text, BString::from(text.as_str())),
            Expr::Name(name) => self.name(name)?,
            Expr::Sign(sign, operand) => signed(*sign, self.node(operand)?)?,
            Expr::Binary(operator, left, right) => {
                let operands = [self.node(left)?, self.node(right)?];
                binary(*operator, operands)?
            }
            Expr::Unit(operand, unit) => {
                let operand = self.node(operand)?;
                if !operand.kind.is_number() {
                    return Err(Error::unsupported(format!("a value of type {} has the unit {unit}", operand.kind)));
                }
                operand.adapted(&Unit::new(unit))?
            }
            Expr::Call(name, arguments) => {
                let arguments = arguments.iter().map(|argument| match argument {
                    Element::One(expr) => self.node(expr),
                    _ => Err(Error::unsupported(format!("the function {name}: a range is not supported"))),
                });
                let arguments = arguments.collect::<Result<Vec<_>>>()?;
                self.call(name, arguments)?
            }
            Expr::Set(elements) => {
                let (members, kind, unit) = self.members(elements)?;
                let is_bounded = members.iter().all(is_bounded);
                if !is_bounded {
                    return Err(Error::unsupported("an interval is not an array"));
                }
                array(members, kind)?.in_unit(unit)
            }
            Expr::Index(array, subscripts) => self.index(array, subscripts)?,
            Expr::In(value, set) => {
                let value = self.node(value)?;
                self.is_in(value, set)?
            }
            Expr::Like { text, pattern, ignores_case } => {
                let (text, pattern) = (self.node(text)?, self.node(pattern)?);
                let is_text = pattern.kind == Kind::Text && !pattern.is_array && pattern.is_constant;
                if !is_text {
                    return Err(Error::unsupported("a pattern that is not a constant text is not supported"));
                }
                let pattern = constant(&pattern)?.slice::<BString>().first().cloned().unwrap_or_default();
                matches(text, Pattern::sql(&pattern, *ignores_case))?
            }
            Expr::Matches { text, pattern, ignores_case } => {
                let found = Pattern::shell(pattern.as_bytes(), *ignores_case);
                let found = found.ok_or_else(|| {
                    Error::unsupported(format!("the pattern {pattern}: brackets and braces are not supported"))
                })?;
                matches(self.node(text)?, found)?
            }
        })
    }

    /// Column or keyword.
    fn name(&mut self, name: &str) -> Result<Node> {
        if let Some((column, path)) = name.split_once("::") {
            let column = Some(column).filter(|column| !column.is_empty());
            return keyword(self.table.keywords(column)?, path);
        }
        if let Some(index) = self.columns.iter().position(|(known, _)| known == name) {
            return self.column(index);
        }
        match self.table.column(name)? {
            Some(column) => {
                self.columns.push((name.to_owned(), column));
                self.column(self.columns.len() - 1)
            }
            None if self.table.keywords(None)?.get(name).is_some() => keyword(self.table.keywords(None)?, name),
            None => Err(Error::unsupported(format!("{name} is neither a column nor a keyword"))),
        }
    }

    fn column(&self, index: usize) -> Result<Node> {
        let (name, column) = &self.columns[index];
        let kind = Kind::of(column.data_type);
        let kind = kind.ok_or_else(|| Error::unsupported(format!("the column {name} holds records")))?;
        let keywords = self.table.keywords(Some(name))?;
        let unit = match keywords.strings("QuantumUnits") {
            Some(units) => units.first().map(|unit| unit.to_string()),
            None => keywords.string("UNIT").map(|unit| unit.to_string()),
        };
        let unit = Unit::new(&unit.unwrap_or_default());
        Ok(Node::new(Op::Column(index), kind, column.is_array, false).in_unit(unit))
    }

    fn call(&self, name: &str, arguments: Vec<Node>) -> Result<Node> {
        // a fixed number of axes counts for undefined cells, too
        if name.eq_ignore_ascii_case("ndim")
            && let [Node { op: Op::Column(index), is_array: true, .. }] = arguments[..]
            && let Some(axes) = self.columns[index].1.axes
        {
            return Ok(Node::constant(Kind::Int, axes as i64));
        }
        function::call(name, arguments, self.style)
    }

    fn members(&mut self, elements: &[Element]) -> Result<(Vec<Member>, Kind, Unit)> {
        let mut members = elements.iter().map(|element| self.member(element)).collect::<Result<Vec<_>>>()?;
        let unit = share_unit(members.iter_mut().flat_map(Member::nodes))?;
        let mut found = None;
        for member in &mut members {
            let is_interval = matches!(member, Member::Interval(..) | Member::Around(..));
            for node in member.nodes() {
                // intervals of integers are those of floats
                let kind = if is_interval { node.kind.max(Kind::Double) } else { node.kind };
                found = Some(found.map_or(Ok(kind), |found| common(found, kind))?);
            }
        }
        let kind = found.ok_or_else(|| Error::unsupported("a set is empty"))?;
        for node in members.iter_mut().flat_map(Member::nodes) {
            *node = node.clone().cast(kind);
        }
        Ok((members, kind, unit))
    }

    fn member(&mut self, element: &Element) -> Result<Member> {
        let scalar = |node: Node, allowed: &[Kind]| match node.is_array || !allowed.contains(&node.kind) {
            true => Err(Error::unsupported(format!("a range begins or ends with {}", described(&node)))),
            false => Ok(node),
        };
        const REALS: [Kind; 2] = [Kind::Int, Kind::Double];
        Ok(match element {
            Element::One(expr) => Member::One(self.node(expr)?),
            Element::Range(parts) => {
                if parts[0].is_none() {
                    return Err(Error::unsupported("a range has no start"));
                }
                let mut part = |part: &Option<Expr>| -> Result<Option<Node>> {
                    part.as_ref().map(|expr| scalar(self.node(expr)?, &REALS)).transpose()
                };
                let parts = [part(&parts[0])?, part(&parts[1])?, part(&parts[2])?];
                Member::Range(Box::new(parts), self.style.excludes_end)
            }
            Element::Interval(start, end) => {
                let mut of = |bound: &Option<Bound>| -> Result<Option<Node>> {
                    let ends = [Kind::Int, Kind::Double, Kind::Text];
                    bound.as_ref().map(|bound| scalar(self.node(&bound.value)?, &ends)).transpose()
                };
                let closed = [start, end].map(|bound| bound.as_ref().is_some_and(|bound| bound.closed));
                Member::Interval(Box::new([of(start)?, of(end)?]), closed)
            }
            Element::Around(centre, width) => {
                let pair = [scalar(self.node(centre)?, &REALS)?, scalar(self.node(width)?, &REALS)?];
                Member::Around(Box::new(pair))
            }
        })
    }

    fn index(&mut self, array: &Expr, subscripts: &[Written]) -> Result<Node> {
        let array = self.node(array)?;
        if !array.is_array {
            return Err(Error::unsupported("a scalar has subscripts"));
        }
        let mut number = |expr: &Expr| {
            let node = self.node(expr)?;
            match (node.kind, node.is_array) {
                (Kind::Int, false) => Ok(node),
                (Kind::Bool, true) => Err(Error::unsupported("a mask as a subscript is not supported")),
                _ => Err(Error::unsupported(format!("a subscript is {}", described(&node)))),
            }
        };
        let subscript = |subscript: &Written| {
            Ok(match subscript {
                Written::All => Subscript::Range(Box::new([None, None, None])),
                Written::One(expr) => Subscript::One(number(expr)?),
                Written::Range(parts) => {
                    let mut part = |part: &Option<Expr>| part.as_ref().map(&mut number).transpose();
                    Subscript::Range(Box::new([part(&parts[0])?, part(&parts[1])?, part(&parts[2])?]))
                }
            })
        };
        let mut found = subscripts.iter().map(subscript).collect::<Result<Vec<_>>>()?;
        if self.style.c_order {
            found.reverse();
        }
        let is_element = found.iter().all(|subscript| matches!(subscript, Subscript::One(_)));
        let is_constant = array.is_constant
            && found.iter().all(|subscript| match subscript {
                Subscript::One(node) => node.is_constant,
                Subscript::Range(parts) => parts.iter().flatten().all(|node| node.is_constant),
            });
        let (kind, unit) = (array.kind, array.unit.clone());
        let op = Op::Index { array: Box::new(array), subscripts: found, style: self.style, is_element };
        Ok(Node::new(op, kind, !is_element, is_constant).in_unit(unit))
    }

    fn is_in(&mut self, value: Node, set: &Expr) -> Result<Node> {
        let (mut members, kind, unit) = match set {
            Expr::Set(elements) => self.members(elements)?,
            other => {
                let node = self.node(other)?;
                let (kind, unit) = (node.kind, node.unit.clone());
                (vec![Member::One(node)], kind, unit)
            }
        };
        if let [Member::One(node)] = &members[..]
            && !node.is_array
        {
            return binary(Operator::Equal, [value, node.clone()]);
        }
        let is_constant = members.iter_mut().flat_map(Member::nodes).all(|node| node.is_constant);
        let is_vector = members.iter().all(|member| !matches!(member, Member::One(node) if node.is_array));
        if is_constant && is_vector && members.iter().all(is_bounded) {
            // ranges become the numbers that an array of them has
            members = vec![Member::One(stack(members, kind).in_unit(unit.clone()))];
        }
        let found = [value.kind, kind];
        let is_real = found.iter().all(|kind| kind.is_real());
        if !(is_real || found[0] == found[1] && kind != Kind::Bool) {
            return Err(Error::unsupported(format!("{} is searched in a set of {}", found[0], found[1])));
        }
        let mut value = value;
        share_unit(std::iter::once(&mut value).chain(members.iter_mut().flat_map(Member::nodes)))?;
        let kind =
            value.kind.max(members.iter_mut().flat_map(Member::nodes).map(|node| node.kind).max().unwrap_or(kind));
        members.iter_mut().flat_map(Member::nodes).for_each(|node| *node = node.clone().cast(kind));
        let value = value.cast(kind);
        let (is_array, is_constant) = (value.is_array, is_constant && value.is_constant);
        Ok(Node::new(Op::In(Box::new(value), members), Kind::Bool, is_array, is_constant))
    }
}

fn described(node: &Node) -> String {
    let shape = if node.is_array { "an array" } else { "a scalar" };
    format!("{shape} of type {}", node.kind)
}

fn is_bounded(member: &Member) -> bool {
    match member {
        Member::One(_) => true,
        Member::Range(parts, _) => parts[1].is_some(),
        Member::Interval(..) | Member::Around(..) => false,
    }
}

fn array(members: Vec<Member>, kind: Kind) -> Result<Node> {
    let is_array = |member: &Member| matches!(member, Member::One(node) if node.is_array);
    let arrays = members.iter().filter(|member| is_array(member)).count();
    if arrays > 0 && arrays < members.len() {
        return Err(Error::unsupported("arrays and scalars are in one set"));
    }
    Ok(stack(members, kind))
}

fn matches(text: Node, pattern: Pattern) -> Result<Node> {
    if text.kind != Kind::Text {
        return Err(Error::unsupported(format!("a value of type {} is compared with a pattern", text.kind)));
    }
    let (is_array, is_constant) = (text.is_array, text.is_constant);
    Ok(Node::new(Op::Matches(pattern, Box::new(text)), Kind::Bool, is_array, is_constant))
}

fn signed(sign: Sign, operand: Node) -> Result<Node> {
    let kind = operand.kind;
    let (function, is_right) = match sign {
        Sign::Minus => (Map::Negative, kind.is_number()),
        Sign::Complement => (Map::Complement, kind == Kind::Int),
        Sign::Not => (Map::Not, kind == Kind::Bool),
    };
    if !is_right {
        return Err(Error::unsupported(format!("the sign of a value of type {kind} is changed")));
    }
    let unit = operand.unit.clone();
    Ok(operand.map(function, kind).in_unit(unit))
}

fn binary(operator: Operator, mut operands: [Node; 2]) -> Result<Node> {
    let zip = match operator {
        Operator::And | Operator::Or => return logic(operator == Operator::And, operands),
        Operator::Power => {
            let [base, exponent] = operands;
            return function::power(base, exponent);
        }
        Operator::DivideDown => {
            let quotient = binary(Operator::Divide, operands)?;
            return function::call("floor", vec![quotient], Style { origin: 1, excludes_end: false, c_order: false });
        }
        Operator::Plus => Zip::Plus,
        Operator::Minus => Zip::Minus,
        Operator::Times => Zip::Times,
        Operator::Divide => Zip::Divide,
        Operator::Modulo => Zip::Modulo,
        Operator::BitAnd => Zip::BitAnd,
        Operator::BitXor => Zip::BitXor,
        Operator::BitOr => Zip::BitOr,
        Operator::Equal => Zip::Equal,
        Operator::Unequal => Zip::Unequal,
        Operator::Less => Zip::Less,
        Operator::LessEqual => Zip::LessEqual,
        Operator::Greater => Zip::Greater,
        Operator::GreaterEqual => Zip::GreaterEqual,
    };
    let is_comparison =
        matches!(zip, Zip::Equal | Zip::Unequal | Zip::Less | Zip::LessEqual | Zip::Greater | Zip::GreaterEqual);
    let unit = match operator {
        Operator::Times => operands[0].unit.times(&operands[1].unit),
        Operator::Divide => quotient_unit(&mut operands)?,
        _ => share_unit(operands.iter_mut())?,
    };
    let [left, right] = operands;
    let kind = common(left.kind, right.kind)?;
    let kind = if operator == Operator::Divide && kind == Kind::Int { Kind::Double } else { kind };
    let is_right = match zip {
        Zip::Plus => kind != Kind::Bool,
        Zip::Modulo => kind.is_real(),
        Zip::BitAnd | Zip::BitXor | Zip::BitOr => kind == Kind::Int,
        Zip::Equal | Zip::Unequal => true,
        _ if is_comparison => kind != Kind::Bool,
        _ => kind.is_number(),
    };
    if !is_right {
        return Err(Error::unsupported(format!("values of type {kind} are combined by {operator:?}")));
    }
    let result = if is_comparison { Kind::Bool } else { kind };
    let node = Node::zip(zip, left.cast(kind), right.cast(kind), result);
    Ok(if is_comparison { node } else { node.in_unit(unit) })
}

fn logic(is_and: bool, operands: [Node; 2]) -> Result<Node> {
    if let Some(node) = operands.iter().find(|node| node.kind != Kind::Bool) {
        return Err(Error::unsupported(format!("a condition has the type {}", node.kind)));
    }
    let is_array = operands.iter().any(|node| node.is_array);
    let is_constant = operands.iter().all(|node| node.is_constant);
    Ok(Node::new(Op::Logic { is_and, operands: Box::new(operands) }, Kind::Bool, is_array, is_constant))
}

/// None if both operands measure the same; the second is then converted.
fn quotient_unit(operands: &mut [Node; 2]) -> Result<Unit> {
    let [left, right] = operands;
    if left.unit.is_none() || right.unit.is_none() {
        // casacore takes a division of seconds by 86400 for a conversion to days
        let is_day = || {
            let day = right.is_constant && right.kind.is_real() && !left.is_array && !right.is_array;
            day && constant(&right.clone().cast(Kind::Double)).is_ok_and(|day| *day.slice::<f64>() == [86_400.0])
        };
        let is_conversion = left.unit.name() == "s" && is_day();
        return Ok(if is_conversion { Unit::new("d") } else { left.unit.over(&right.unit) });
    }
    if left.unit.conforms(&right.unit) {
        share_unit(operands.iter_mut())?;
        return Ok(Unit::default());
    }
    Ok(left.unit.over(&right.unit))
}

/// Value of the keyword at `path`, names separated by dots.
fn keyword(record: &Record, path: &str) -> Result<Node> {
    let (outer, name) = path.rsplit_once('.').map_or((None, path), |(outer, name)| (Some(outer), name));
    let missing = || Error::unsupported(format!("the keyword {path} does not exist"));
    let record =
        outer.map_or(Some(record), |outer| outer.split('.').try_fold(record, |record, name| record.record(name)));
    let (shape, values) = match record.and_then(|record| record.get(name)).ok_or_else(missing)? {
        Value::Scalar(values) => (None, values),
        Value::Array(shape, values) => (Some(shape), values),
        Value::Record(_) => return Err(Error::unsupported(format!("the keyword {path} is a record"))),
        Value::Table(_) => return Err(Error::unsupported(format!("the keyword {path} is a table"))),
    };
    let kind = Kind::of(values.data_type());
    let kind = kind.ok_or_else(|| Error::unsupported(format!("the keyword {path} holds records")))?;
    let is_array = shape.is_some();
    let shapes = shape.map_or(Ok(Shapes::Scalars), |shape| Shapes::same(1, shape.clone()))?;
    Ok(Node::new(Op::Constant(Block { shapes, values: widened(values.clone()) }), kind, is_array, true))
}
