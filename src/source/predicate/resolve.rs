//! Prepares a condition for the rows of one table: finds its columns, and replaces names (of
//! fields, antennas …) and dates by numbers.

use bstr::{BString, ByteSlice};

use super::date;
use super::parse::{Choice, Condition, Order, Term};
use crate::error::{Context, Error, Result, ResultExt};
use crate::native::display_name;
use crate::schema::ColumnKind;
use crate::source::{Content, Source};
use crate::suggest::instead;
use crate::table::ColumnInfo;
use crate::value::{DataType, Values};

/// Names that are compared with an unknown one, to propose a similar one.
const COMPARED: usize = 1000;

/// Names of a subtable's rows; the first that exists is used.
const NAME_COLUMNS: [&str; 2] = ["NAME", "OBS_MODE"];

/// Names and dates are numbers, columns indices in [`Resolved::columns`].
#[derive(Debug, PartialEq)]
pub(super) enum Test {
    Any(Vec<Test>),
    All(Vec<Test>),
    Not(Box<Test>),
    Compare(Operand, Order, Operand),
    /// Second operand up to the third, exclusive (`Order::Less`) or inclusive (`LessEqual`).
    Between(Operand, Operand, Order, Operand),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Column(usize),
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(BString),
}

/// Only values of one class are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Bool,
    Number,
    Text,
}

pub(super) struct Resolved {
    pub(super) test: Test,
    pub(super) columns: Vec<usize>,
}

/// `Usage` if a column does not exist or is not comparable, or a name is unknown.
pub(super) fn resolve(condition: &Condition, source: &Source, table: usize) -> Result<Resolved> {
    let content = source.tables[table].content()?;
    let mut resolver = Resolver { source, table, content, columns: Vec::new() };
    let test = resolver.condition(condition)?;
    Ok(Resolved { test, columns: resolver.columns })
}

struct Resolver<'a> {
    source: &'a Source,
    table: usize,
    content: &'a Content,
    columns: Vec<usize>,
}

impl Resolver<'_> {
    fn condition(&mut self, condition: &Condition) -> Result<Test> {
        Ok(match condition {
            Condition::Any(list) => Test::Any(self.conditions(list)?),
            Condition::All(list) => Test::All(self.conditions(list)?),
            Condition::Not(inner) => Test::Not(Box::new(self.condition(inner)?)),
            Condition::Flag(term) => self.compare(term, Order::Equal, &Term::Bool(true))?,
            Condition::Compare(left, order, right) => self.compare(left, *order, right)?,
            Condition::In(left, choices) => {
                let choices = choices.iter().map(|choice| match choice {
                    Choice::One(term) => self.compare(left, Order::Equal, term),
                    Choice::Range { first, last, inclusive } => self.between(left, first, last, *inclusive),
                });
                Test::Any(choices.collect::<Result<_>>()?)
            }
        })
    }

    fn conditions(&mut self, list: &[Condition]) -> Result<Vec<Test>> {
        list.iter().map(|condition| self.condition(condition)).collect()
    }

    fn compare(&mut self, left: &Term, order: Order, right: &Term) -> Result<Test> {
        // a name may stand for several rows of a subtable
        for (column, text) in [(left, right), (right, left)] {
            if let (Term::Column(column), Term::Text(text)) = (column, text)
                && let Some(rows) = self.rows_named(column, text)?
            {
                let column = self.column(column)?.0;
                let each = |row| Test::Compare(column.clone(), Order::Equal, Operand::Int(row));
                let any = Test::Any(rows.into_iter().map(each).collect());
                return match order {
                    Order::Equal => Ok(any),
                    Order::Unequal => Ok(Test::Not(Box::new(any))),
                    _ => Err(Error::usage(format!("names such as {text:?} are compared by == and != only"))),
                };
            }
        }
        let (left, right) = self.operands(left, right)?;
        Ok(Test::Compare(left, order, right))
    }

    fn between(&mut self, value: &Term, first: &Term, last: &Term, inclusive: bool) -> Result<Test> {
        let (operand, first) = self.operands(value, first)?;
        let (_, last) = self.operands(value, last)?;
        Ok(Test::Between(operand, first, if inclusive { Order::LessEqual } else { Order::Less }, last))
    }

    /// Fails if the sides cannot be compared.
    fn operands(&mut self, left: &Term, right: &Term) -> Result<(Operand, Operand)> {
        let (a, of_left) = self.operand(left, right)?;
        let (b, of_right) = self.operand(right, left)?;
        if of_left != of_right {
            let words = |class| match class {
                Class::Bool => "true or false",
                Class::Number => "a number",
                Class::Text => "text",
            };
            return Err(Error::usage(format!(
                "{} is {}, {} is {}: they do not compare",
                display(left),
                words(of_left),
                display(right),
                words(of_right)
            )));
        }
        Ok((a, b))
    }

    fn operand(&mut self, term: &Term, other: &Term) -> Result<(Operand, Class)> {
        Ok(match term {
            Term::Column(name) => self.column(name)?,
            Term::Bool(value) => (Operand::Bool(*value), Class::Bool),
            Term::Int(value) => (Operand::Int(*value), Class::Number),
            Term::Float(value) => (Operand::Float(*value), Class::Number),
            Term::Text(text) => match other {
                Term::Column(name) => match self.date(name, text)? {
                    Some(value) => (Operand::Float(value), Class::Number),
                    None => (Operand::Text(text.as_str().into()), Class::Text),
                },
                _ => (Operand::Text(text.as_str().into()), Class::Text),
            },
        })
    }

    fn info(&self, name: &str) -> Result<(usize, &ColumnInfo)> {
        let found = self.content.columns().iter().enumerate().find(|(_, info)| info.desc.name == name);
        found.ok_or_else(|| {
            let scalars = self.content.columns().iter().filter(|info| info.desc.kind == ColumnKind::Scalar);
            let names = scalars.map(|info| info.desc.name.to_str_lossy());
            let table = display_name(&self.source.tables[self.table].name);
            Error::usage(format!("no scalar column {name} in {table}{}", instead(name, names)))
        })
    }

    fn column(&mut self, name: &str) -> Result<(Operand, Class)> {
        let (index, info) = self.info(name)?;
        if info.desc.kind != ColumnKind::Scalar {
            return Err(Error::usage(format!("the cells of column {name} are arrays: only scalars can be compared")));
        }
        let class = match info.data_type() {
            DataType::Bool => Class::Bool,
            DataType::String => Class::Text,
            DataType::Complex | DataType::DComplex | DataType::Record => {
                let found = info.data_type();
                return Err(Error::usage(format!("column {name} has values of type {found}, which do not compare")));
            }
            _ => Class::Number,
        };
        let known = self.columns.iter().position(|&column| column == index);
        let number = known.unwrap_or_else(|| {
            self.columns.push(index);
            self.columns.len() - 1
        });
        Ok((Operand::Column(number), class))
    }

    /// Unit of the column (s or d), which must be floating-point, otherwise `None`. Fails if the
    /// text is not a date, or the column has no such unit.
    fn date(&self, column: &str, text: &str) -> Result<Option<f64>> {
        let (_, info) = self.info(column)?;
        if !matches!(info.data_type(), DataType::Double | DataType::Float) {
            return Ok(None);
        }
        let seconds = date::seconds(text).ok_or_else(|| {
            Error::usage(format!("{text:?} is not a date, such as \"2014-04-22T10:30:00\", for column {column}"))
        })?;
        let unit = info.desc.keywords.strings("QuantumUnits").and_then(|units| units.first());
        match unit.map(|unit| unit.as_bytes()) {
            Some(b"s") => Ok(Some(seconds)),
            Some(b"d") => Ok(Some(seconds / date::DAY)),
            _ => Err(Error::usage(format!("column {column} has no unit of time (s or d) to compare a date with"))),
        }
    }

    /// Rows of a subtable such as FIELD for FIELD_ID; fails if none has the name.
    fn rows_named(&self, column: &str, name: &str) -> Result<Option<Vec<i64>>> {
        let (_, info) = self.info(column)?;
        let is_integer = matches!(
            info.data_type(),
            DataType::UChar | DataType::Short | DataType::UShort | DataType::Int | DataType::UInt | DataType::Int64
        );
        if !is_integer {
            return Ok(None);
        }
        let subtable = column.strip_suffix("_ID").unwrap_or(column).trim_end_matches(|c: char| c.is_ascii_digit());
        let unknown = || Error::usage(format!("column {column} holds numbers, and {name:?} is text"));
        let table = self.source.tables.iter().find(|table| table.name == subtable).ok_or_else(unknown)?;
        let content = table.content()?;
        let is_name = |info: &ColumnInfo, name: &str| {
            info.desc.name == name && info.desc.kind == ColumnKind::Scalar && info.data_type() == DataType::String
        };
        let find = |name: &&str| content.columns().iter().position(|info| is_name(info, name));
        let index = NAME_COLUMNS.iter().find_map(find).ok_or_else(unknown)?;
        let cells = content.cells(index)?;
        let (mut found, mut others) = (Vec::new(), Vec::<String>::new());
        for row in 0..content.rows() {
            let mut value = Values::String(Vec::new());
            if cells.cell_shape(row)?.is_some() {
                cells.read_cell(row, None, &mut value).with_context(|| Context::table(subtable))?;
            }
            let Values::String(value) = value else { continue };
            match value.first() {
                Some(value) if value == name => found.push(row as i64),
                Some(value) if others.len() < COMPARED => others.push(value.to_str_lossy().into_owned()),
                _ => {}
            }
        }
        if found.is_empty() {
            others.dedup();
            return Err(Error::usage(format!("{subtable} has no row named {name:?}{}", instead(name, &others))));
        }
        Ok(Some(found))
    }
}

fn display(term: &Term) -> String {
    match term {
        Term::Column(name) => format!("column {name}"),
        Term::Bool(value) => value.to_string(),
        Term::Int(value) => value.to_string(),
        Term::Float(value) => value.to_string(),
        Term::Text(text) => format!("{text:?}"),
    }
}
