//! Parses a condition on rows: turns its words into a tree.

use super::token::{Token, error_at, tokens};
use crate::error::Result;
use crate::limits::MAX_DEPTH;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Term, Order, Term),
    /// One of the values, or in one of the ranges.
    In(Term, Vec<Choice>),
    Flag(Term),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Term {
    Column(String),
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Choice {
    One(Term),
    /// `last` belongs to the range if `inclusive`.
    Range {
        first: Term,
        last: Term,
        inclusive: bool,
    },
}

/// `SCAN_NUMBER in 3..5 && !FLAG_ROW`.
pub(super) fn parse(text: &str) -> Result<Condition> {
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, depth: 0 };
    let condition = parser.any()?;
    match parser.peek() {
        Token::End => Ok(condition),
        _ => Err(parser.expected("'&&', '||' or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
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

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        if found {
            self.take();
        }
        found
    }

    fn expected(&self, what: &str) -> crate::Error {
        let (at, found) = &self.tokens[self.next];
        error_at(self.text, *at, format!("found {found}, expected {what}"))
    }

    fn any(&mut self) -> Result<Condition> {
        let mut all = vec![self.all()?];
        while self.takes("||") {
            all.push(self.all()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::Any(all) })
    }

    fn all(&mut self) -> Result<Condition> {
        let mut all = vec![self.not()?];
        while self.takes("&&") {
            all.push(self.not()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::All(all) })
    }

    fn not(&mut self) -> Result<Condition> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let (at, _) = self.tokens[self.next];
            return Err(error_at(self.text, at, format!("more than {MAX_DEPTH} conditions within each other")));
        }
        let condition = if self.takes("!") {
            Condition::Not(Box::new(self.not()?))
        } else if self.takes("(") {
            let inner = self.any()?;
            if !self.takes(")") {
                return Err(self.expected("')'"));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Result<Condition> {
        let left = self.term()?;
        if self.takes("in") {
            return Ok(Condition::In(left, self.choices()?));
        }
        if self.takes("!") {
            if self.takes("in") {
                return Ok(Condition::Not(Box::new(Condition::In(left, self.choices()?))));
            }
            return Err(self.expected("'in'"));
        }
        let order = match self.peek() {
            Token::Sign("==") => Order::Equal,
            Token::Sign("!=") => Order::Unequal,
            Token::Sign("<") => Order::Less,
            Token::Sign("<=") => Order::LessEqual,
            Token::Sign(">") => Order::Greater,
            Token::Sign(">=") => Order::GreaterEqual,
            _ if matches!(left, Term::Column(_)) => return Ok(Condition::Flag(left)),
            _ => return Err(self.expected("a comparison")),
        };
        self.take();
        Ok(Condition::Compare(left, order, self.term()?))
    }

    /// After `in`: a list in brackets, or a single range or value.
    fn choices(&mut self) -> Result<Vec<Choice>> {
        if !self.takes("[") {
            return Ok(vec![self.choice()?]);
        }
        let mut all = Vec::new();
        loop {
            all.push(self.choice()?);
            if self.takes("]") {
                return Ok(all);
            }
            if !self.takes(",") {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn choice(&mut self) -> Result<Choice> {
        let first = self.term()?;
        let inclusive = match self.peek() {
            Token::Sign("..") => false,
            Token::Sign("..=") => true,
            _ => return Ok(Choice::One(first)),
        };
        self.take();
        Ok(Choice::Range { first, last: self.term()?, inclusive })
    }

    fn term(&mut self) -> Result<Term> {
        let negative = match self.peek() {
            Token::Sign("-") => Some(true),
            Token::Sign("+") => Some(false),
            _ => None,
        };
        if let Some(negative) = negative {
            self.take();
            let term = match self.peek() {
                Token::Int(value) => Term::Int(if negative { -*value } else { *value }),
                Token::Float(value) => Term::Float(if negative { -*value } else { *value }),
                _ => return Err(self.expected("a number")),
            };
            self.take();
            return Ok(term);
        }
        let term = match self.peek() {
            Token::Name(name) => Term::Column(name.clone()),
            Token::Text(text) => Term::Text(text.clone()),
            Token::Int(value) => Term::Int(*value),
            Token::Float(value) => Term::Float(*value),
            Token::Sign("true") => Term::Bool(true),
            Token::Sign("false") => Term::Bool(false),
            _ => return Err(self.expected("a column, a number, or text in quotes")),
        };
        self.take();
        Ok(term)
    }
}
