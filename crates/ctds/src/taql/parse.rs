//! Parses a TaQL expression: turns its words into a tree.
//!
//! Precedence, from the weakest: `||`; `&&`; comparisons, of which one is allowed; `|`; `^`; `&`;
//! `+ -`; `* / // %`; the signs `- + ~`; `!`; `**`, which begins at the right; units and
//! subscripts.

use super::token::{Token, error_at, tokens};
use crate::error::Result;
use crate::limits::MAX_DEPTH;

/// Operations within each other, which bounds the recursion of all later steps.
const MAX_HEIGHT: usize = 100;

/// Bytes of an expression.
const MAX_LENGTH: usize = 1 << 14;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Bool(bool),
    Int(i64),
    Double(f64),
    Imaginary(f64),
    Text(String),
    /// Column or keyword.
    Name(String),
    Sign(Sign, Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Unit(Box<Expr>, String),
    Call(String, Vec<Element>),
    /// A set, or an array, of its elements.
    Set(Vec<Element>),
    Index(Box<Expr>, Vec<Subscript>),
    In(Box<Expr>, Box<Expr>),
    /// Equal to a pattern of SQL, the second expression.
    Like {
        text: Box<Expr>,
        pattern: Box<Expr>,
        ignores_case: bool,
    },
    /// Equal to a pattern of a shell.
    Matches {
        text: Box<Expr>,
        pattern: String,
        ignores_case: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Minus,
    Complement,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
    /// Division, and the largest integer below.
    DivideDown,
    Modulo,
    Power,
    BitAnd,
    BitXor,
    BitOr,
    And,
    Or,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Element {
    One(Expr),
    /// `start:end:step`; all are optional.
    Range([Option<Expr>; 3]),
    Interval(Option<Bound>, Option<Bound>),
    /// Centre and width.
    Around(Expr, Expr),
}

impl Element {
    /// The interval with its ends, which do not belong to one in a set.
    fn closed(self) -> Self {
        let closed = |end: Option<Bound>| end.map(|end| Bound { closed: true, ..end });
        match self {
            Element::Interval(start, end) => Element::Interval(closed(start), closed(end)),
            other => other,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bound {
    pub(super) value: Expr,
    /// Whether the value belongs to the interval.
    pub(super) closed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subscript {
    All,
    One(Expr),
    Range([Option<Expr>; 3]),
}

pub(super) fn parse(text: &str) -> Result<Expr> {
    if text.len() > MAX_LENGTH {
        return Err(error_at(text, MAX_LENGTH, format!("the expression has more than {MAX_LENGTH} bytes")));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, depth: 0 };
    let tree = parser.either()?;
    match parser.peek() {
        Token::End => Ok(tree.expr),
        _ => Err(parser.expected("an operator or the end")),
    }
}

/// Operators by their precedence, the weakest first; those of a line have the same.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("|", Operator::BitOr)],
    &[("^", Operator::BitXor)],
    &[("&", Operator::BitAnd)],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("/", Operator::Divide), ("//", Operator::DivideDown), ("%", Operator::Modulo)],
];

const COMPARISONS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    ("<=", Operator::LessEqual),
    (">", Operator::Greater),
    (">=", Operator::GreaterEqual),
];

/// Intervals between two values: whether the first and the second belong to it.
const INTERVALS: [(&str, bool, bool); 4] =
    [("<:<", false, false), ("<:=", false, true), ("=:<", true, false), ("=:=", true, true)];

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// Brackets and signs that are open.
    depth: usize,
}

/// An expression, and the number of operations within each other.
struct Tree {
    expr: Expr,
    height: usize,
}

impl From<Expr> for Tree {
    fn from(expr: Expr) -> Self {
        Tree { expr, height: 1 }
    }
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    /// Returns `End` again at the end.
    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn is_next(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = self.is_next(sign);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    fn expected(&self, what: &str) -> crate::Error {
        self.error(format!("found {}, expected {what}", self.peek()))
    }

    fn error(&self, message: String) -> crate::Error {
        error_at(self.text, self.tokens[self.next].0, message)
    }

    /// One operation more than the highest of its operands.
    fn above(&self, height: usize, expr: Expr) -> Result<Tree> {
        if height >= MAX_HEIGHT {
            return Err(self.error(format!("more than {MAX_HEIGHT} operations are within each other")));
        }
        Ok(Tree { expr, height: height + 1 })
    }

    fn binary(&self, operator: Operator, left: Tree, right: Tree) -> Result<Tree> {
        let height = left.height.max(right.height);
        self.above(height, Expr::Binary(operator, Box::new(left.expr), Box::new(right.expr)))
    }

    fn inside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} brackets and signs are within each other")));
        }
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    fn either(&mut self) -> Result<Tree> {
        let mut left = self.both()?;
        while self.takes("||") {
            let right = self.both()?;
            left = self.binary(Operator::Or, left, right)?;
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Tree> {
        let mut left = self.relation()?;
        while self.takes("&&") {
            let right = self.relation()?;
            left = self.binary(Operator::And, left, right)?;
        }
        Ok(left)
    }

    fn relation(&mut self) -> Result<Tree> {
        if self.is_next("exists") {
            return Err(self.error("the subquery after exists is not supported".to_owned()));
        }
        let left = self.sum(0)?;
        if let Token::Pattern { negated, ignores_case, pattern } = self.peek().clone() {
            self.take();
            let found = Expr::Matches { text: Box::new(left.expr), pattern, ignores_case };
            let found = self.above(left.height, found)?;
            return if negated { self.not(found) } else { Ok(found) };
        }
        if let Token::Sign(sign) = *self.peek()
            && let Some((_, operator)) = COMPARISONS.iter().find(|(spelling, _)| *spelling == sign)
        {
            self.take();
            let right = self.sum(0)?;
            return self.binary(*operator, left, right);
        }
        for (sign, negated) in [("~=", false), ("!~=", true)] {
            if self.takes(sign) {
                let right = self.sum(0)?;
                let height = left.height.max(right.height);
                let near = [left.expr, right.expr, Expr::Double(1e-5)].map(Element::One);
                let near = self.above(height, Expr::Call("near".to_owned(), near.into()))?;
                return if negated { self.not(near) } else { Ok(near) };
            }
        }
        let negated = self.takes("!");
        let member = match *self.peek() {
            Token::Sign("in") => {
                self.take();
                let (set, height) = self.set_after_in()?;
                self.above(left.height.max(height), Expr::In(Box::new(left.expr), Box::new(set)))?
            }
            Token::Sign("between") => {
                let (element, height) = self.element()?;
                let set = Expr::Set(vec![element.closed()]);
                self.above(left.height.max(height), Expr::In(Box::new(left.expr), Box::new(set)))?
            }
            Token::Sign("around") => {
                let (interval, height) = self.element()?;
                let set = Expr::Set(vec![interval]);
                self.above(left.height.max(height), Expr::In(Box::new(left.expr), Box::new(set)))?
            }
            Token::Sign(like @ ("like" | "ilike")) => {
                self.take();
                let pattern = self.sum(0)?;
                let height = left.height.max(pattern.height);
                let (text, pattern) = (Box::new(left.expr), Box::new(pattern.expr));
                self.above(height, Expr::Like { text, pattern, ignores_case: like == "ilike" })?
            }
            _ if negated => return Err(self.expected("'in', 'between', 'around' or 'like'")),
            _ => return Ok(left),
        };
        if negated { self.not(member) } else { Ok(member) }
    }

    fn not(&self, tree: Tree) -> Result<Tree> {
        self.above(tree.height, Expr::Sign(Sign::Not, Box::new(tree.expr)))
    }

    /// A single range is also a set.
    fn set_after_in(&mut self) -> Result<(Expr, usize)> {
        let (element, height) = self.element_of(|parser| parser.sum(0))?;
        Ok(match element {
            Element::One(expr) => (expr, height),
            range => (Expr::Set(vec![range]), height),
        })
    }

    /// Operators from `level` of [`LEVELS`] on.
    fn sum(&mut self, level: usize) -> Result<Tree> {
        let Some(operators) = LEVELS.get(level) else { return self.signed() };
        let mut left = self.sum(level + 1)?;
        while let Token::Sign(sign) = *self.peek()
            && let Some((_, operator)) = operators.iter().find(|(spelling, _)| *spelling == sign)
        {
            self.take();
            let right = self.sum(level + 1)?;
            left = self.binary(*operator, left, right)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Tree> {
        let sign = match *self.peek() {
            Token::Sign("-") => Some(Sign::Minus),
            Token::Sign("~") => Some(Sign::Complement),
            Token::Sign("!") => Some(Sign::Not),
            Token::Sign("+") => None,
            _ => return self.power(),
        };
        self.take();
        let tree = self.inside(Self::signed)?;
        match sign {
            Some(sign) => self.above(tree.height, Expr::Sign(sign, Box::new(tree.expr))),
            None => Ok(tree),
        }
    }

    fn power(&mut self) -> Result<Tree> {
        let base = self.with_unit()?;
        if !self.takes("**") {
            return Ok(base);
        }
        let exponent = self.inside(Self::signed)?;
        self.binary(Operator::Power, base, exponent)
    }

    fn with_unit(&mut self) -> Result<Tree> {
        let mut tree = self.primary()?;
        while self.is_next("[") {
            let (subscripts, height) = self.inside(Self::subscripts)?;
            tree = self.above(tree.height.max(height), Expr::Index(Box::new(tree.expr), subscripts))?;
        }
        while let Token::Name(unit) | Token::Text(unit) = self.peek().clone() {
            self.take();
            tree = self.above(tree.height, Expr::Unit(Box::new(tree.expr), unit))?;
        }
        Ok(tree)
    }

    fn primary(&mut self) -> Result<Tree> {
        match self.peek().clone() {
            Token::Sign("(" | "[") => return self.inside(Self::bracketed),
            Token::Name(name) if name.eq_ignore_ascii_case("select") || name.eq_ignore_ascii_case("calc") => {
                return Err(self.error(format!("the subquery {name} is not supported")));
            }
            Token::Name(name) => {
                self.take();
                if !self.is_next("(") {
                    return Ok(Expr::Name(name).into());
                }
                let (arguments, height) = self.inside(|parser| {
                    parser.take();
                    if parser.takes(")") { Ok((Vec::new(), 0)) } else { parser.elements(")") }
                })?;
                return self.above(height, Expr::Call(name, arguments));
            }
            _ => {}
        }
        let constant = match self.peek().clone() {
            Token::Text(text) => Expr::Text(text),
            Token::Int(value) => Expr::Int(value),
            Token::Double(value) => Expr::Double(value),
            Token::Imaginary(value) => Expr::Imaginary(value),
            Token::Quantity(value, unit) => Expr::Unit(Box::new(Expr::Double(value)), unit),
            Token::Sign("true") => Expr::Bool(true),
            Token::Sign("false") => Expr::Bool(false),
            _ => return Err(self.expected("a value")),
        };
        self.take();
        Ok(constant.into())
    }

    /// `(…)` with one expression is that expression, other brackets are sets.
    fn bracketed(&mut self) -> Result<Tree> {
        let close = if self.takes("[") { "]" } else { ")" };
        if close == ")" {
            self.take();
        }
        let (mut elements, height) = self.elements(close)?;
        if close == ")"
            && let [Element::One(_)] = elements[..]
            && let Some(Element::One(expr)) = elements.pop()
        {
            return Ok(Tree { expr, height });
        }
        self.above(height, Expr::Set(elements))
    }

    /// Up to and including the bracket `close`, and the greatest height.
    fn elements(&mut self, close: &str) -> Result<(Vec<Element>, usize)> {
        let (mut elements, mut most) = (Vec::new(), 0);
        loop {
            let (element, height) = self.element()?;
            elements.push(element);
            most = most.max(height);
            if self.takes(close) {
                return Ok((elements, most));
            }
            if !self.takes(",") {
                return Err(self.expected(&format!("',' or '{close}'")));
            }
        }
    }

    fn element(&mut self) -> Result<(Element, usize)> {
        self.element_of(Self::either)
    }

    /// `first` parses a value, or the start of a range.
    fn element_of(&mut self, first: impl FnOnce(&mut Self) -> Result<Tree>) -> Result<(Element, usize)> {
        let bound = |tree: Tree, closed: bool| Some(Bound { value: tree.expr, closed });
        match *self.peek() {
            Token::Sign("between" | "around") => {
                let is_between = self.takes("between");
                if !is_between {
                    self.take();
                }
                let start = self.sum(0)?;
                self.expect(if is_between { "&&" } else { "in" })?;
                let end = self.sum(0)?;
                let height = start.height.max(end.height);
                let element = match is_between {
                    true => Element::Interval(bound(start, false), bound(end, false)),
                    false => Element::Around(start.expr, end.expr),
                };
                return Ok((element, height));
            }
            Token::Sign("<" | "{") => return self.interval(),
            Token::Sign(sign @ (":<" | ":=")) => {
                self.take();
                let end = self.sum(0)?;
                let height = end.height;
                return Ok((Element::Interval(None, bound(end, sign == ":=")), height));
            }
            _ => {}
        }
        let start = if self.is_next(":") { None } else { Some(first(self)?) };
        if self.is_next(":") {
            let (range, height) = self.range(start)?;
            return Ok((Element::Range(range), height));
        }
        let Some(start) = start else { return Err(self.expected("a value")) };
        let height = start.height;
        let Token::Sign(sign) = *self.peek() else { return Ok((Element::One(start.expr), height)) };
        if let Some((_, left, right)) = INTERVALS.iter().find(|(spelling, ..)| *spelling == sign) {
            self.take();
            let end = self.sum(0)?;
            let height = height.max(end.height);
            return Ok((Element::Interval(bound(start, *left), bound(end, *right)), height));
        }
        match sign {
            "<:" | "=:" => {
                self.take();
                Ok((Element::Interval(bound(start, sign == "=:"), None), height))
            }
            "<:>" => {
                self.take();
                let width = self.sum(0)?;
                Ok((Element::Around(start.expr, width.expr), height.max(width.height)))
            }
            _ => Ok((Element::One(start.expr), height)),
        }
    }

    /// Brackets tell, as in `<1, 2}`, whether a value belongs; a value may be missing.
    fn interval(&mut self) -> Result<(Element, usize)> {
        let left_closed = self.take() == Token::Sign("{");
        let start = if self.is_next(",") { None } else { Some(self.sum(0)?) };
        self.expect(",")?;
        let end = if self.is_next(">") || self.is_next("}") { None } else { Some(self.sum(0)?) };
        let right_closed = self.takes("}");
        if !right_closed {
            self.expect(">")?;
        }
        let height = start.iter().chain(&end).map(|tree| tree.height).max().unwrap_or(0);
        let bound = |tree: Option<Tree>, closed| tree.map(|tree| Bound { value: tree.expr, closed });
        Ok((Element::Interval(bound(start, left_closed), bound(end, right_closed)), height))
    }

    /// The rest of a range, from the colon after its start.
    fn range(&mut self, start: Option<Tree>) -> Result<([Option<Expr>; 3], usize)> {
        let mut parts = [start, None, None];
        for part in &mut parts[1..] {
            if !self.takes(":") {
                break;
            }
            let is_missing = matches!(self.peek(), Token::Sign(":" | "," | "]" | ")") | Token::End);
            if !is_missing {
                *part = Some(self.sum(0)?);
            }
        }
        let height = parts.iter().flatten().map(|tree| tree.height).max().unwrap_or(0);
        Ok((parts.map(|part| part.map(|tree| tree.expr)), height))
    }

    fn subscripts(&mut self) -> Result<(Vec<Subscript>, usize)> {
        self.take();
        let (mut subscripts, mut most) = (Vec::new(), 0);
        loop {
            if self.is_next(",") || self.is_next("]") {
                subscripts.push(Subscript::All);
            } else {
                let start = if self.is_next(":") { None } else { Some(self.either()?) };
                let (subscript, height) = match start {
                    Some(tree) if !self.is_next(":") => (Subscript::One(tree.expr), tree.height),
                    start => {
                        let (range, height) = self.range(start)?;
                        (Subscript::Range(range), height)
                    }
                };
                subscripts.push(subscript);
                most = most.max(height);
            }
            if self.takes("]") {
                return Ok((subscripts, most));
            }
            if !self.takes(",") {
                return Err(self.expected("',' or ']'"));
            }
        }
    }
}
