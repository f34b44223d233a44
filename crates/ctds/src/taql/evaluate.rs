//! Evaluates an expression in blocks of rows.
//!
//! An operation is applied to the cells of all rows before the next one. Where casacore skips an
//! operand in a row (`iif`, `&&` and `||` of scalars), it may be evaluated here if other rows need
//! it; should that fail, the caller evaluates the rows one by one.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use super::block::{Block, Shapes, map, widened, zip};
use super::elementwise;
use super::node::{Kind, Member, Node, Op, Property, Subscript};
use super::rearrange::{self, Arguments};
use super::set;
use super::style::Style;
use super::text;
use crate::error::{Error, Result};
use crate::value::{BString, Complex64, Shape, Values};

/// Elements in memory at a time for one row, of operands and results.
const ROW_ELEMENTS: usize = 1 << 24;

/// The same for several rows; beyond, the caller takes fewer.
const BLOCK_ELEMENTS: usize = 1 << 20;

/// Columns of an expression, by the order in which they were found.
pub(crate) trait Columns {
    fn shapes(&self, column: usize, rows: Range<u64>) -> Result<Shapes>;

    /// Defined cells, of any type but records.
    fn values(&self, column: usize, rows: Range<u64>) -> Result<Values>;
}

/// A cell per row, or one for all; `Format` for a row without value, `Limit` for too much memory.
pub(super) fn evaluate(node: &Node, columns: &dyn Columns, count: usize, rows: Range<u64>) -> Result<Rc<Block>> {
    let known = RefCell::new(vec![None; count]);
    Evaluation { columns, known, kept: Cell::new(0), elements: Cell::new(0), rows }.of(node)
}

/// Value of a constant expression; errors of [`evaluate`].
pub(super) fn constant(node: &Node) -> Result<Rc<Block>> {
    struct NoColumns;
    impl Columns for NoColumns {
        fn shapes(&self, _column: usize, _rows: Range<u64>) -> Result<Shapes> {
            Err(Error::usage("a constant has no columns"))
        }

        fn values(&self, _column: usize, _rows: Range<u64>) -> Result<Values> {
            Err(Error::usage("a constant has no columns"))
        }
    }
    evaluate(node, &NoColumns, 0, 0..1)
}

struct Evaluation<'a> {
    columns: &'a dyn Columns,
    known: RefCell<Vec<Option<Rc<Block>>>>,
    /// Elements in memory: of those columns, and of operands.
    kept: Cell<usize>,
    elements: Cell<usize>,
    rows: Range<u64>,
}

impl Evaluation<'_> {
    fn count(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    fn of(&self, node: &Node) -> Result<Rc<Block>> {
        if let Op::Column(column) = node.op {
            return self.column(column);
        }
        let before = self.elements.get();
        let block = self.computed(node)?;
        // operands are gone, the result remains
        self.elements.set(before);
        let elements = match &block.values {
            Values::String(texts) => texts.iter().map(|text| 1 + text.len() / size_of::<f64>()).sum(),
            values => values.len(),
        };
        self.hold(&self.elements, elements)?;
        Ok(block)
    }

    fn hold(&self, sum: &Cell<usize>, elements: usize) -> Result<()> {
        sum.set(sum.get().saturating_add(elements));
        let held = self.kept.get().saturating_add(self.elements.get());
        let most = if self.count() > 1 { BLOCK_ELEMENTS } else { ROW_ELEMENTS };
        if held > most {
            return Err(Error::limit(format!("an expression needs {held} elements in memory; the limit is {most}")));
        }
        Ok(())
    }

    fn computed(&self, node: &Node) -> Result<Rc<Block>> {
        let rows = self.count();
        Ok(Rc::new(match &node.op {
            Op::Constant(block) => block.clone(),
            Op::Column(column) => return self.column(*column),
            Op::RowNumber(origin) => {
                Block::scalars(self.rows.clone().map(|row| (row as i64).wrapping_add(*origin)).collect())
            }
            Op::Cast(operand) => cast(&*self.of(operand)?, node.kind),
            Op::Scale(factor, operand) => scaled(&*self.of(operand)?, *factor),
            Op::Map(function, operand) => elementwise::apply(*function, &*self.of(operand)?, operand.is_array),
            Op::Zip(function, left, right) => {
                elementwise::combine(*function, left.kind, &*self.of(left)?, &*self.of(right)?)?
            }
            Op::Logic { is_and, operands } => return self.logic(*is_and, operands),
            Op::Choose(operands) => return self.choose(operands),
            Op::Reduce(reduction, operand) => rearrange::reduce(*reduction, &*self.of(operand)?, node.kind)?,
            Op::ReduceAxes { reduction, operands, c_order } => {
                let (block, axes) = (self.of(&operands[0])?, self.of(&operands[1])?);
                rearrange::reduce_axes(*reduction, &block, rows, node.kind, *c_order, |row| numbers(&axes, row))?
            }
            Op::Rearrange(rearrangement, operand, arguments) => {
                let block = self.of(operand)?;
                let arguments = arguments.as_ref().map(|arguments| self.of(arguments)).transpose()?;
                let of_row = |row| arguments.as_ref().map_or_else(Vec::new, |block| numbers(block, row));
                rearrange::rearrange(*rearrangement, &block, rows, of_row)?
            }
            Op::Describe(property, operand) => self.describe(*property, operand)?,
            Op::Stack(members) => self.stack(members, node.kind)?,
            Op::Index { array, subscripts, style, is_element } => self.index(array, subscripts, *style, *is_element)?,
            Op::In(value, members) => self.is_in(value, members)?,
            Op::Substring(operands, length) => {
                let [text, start] = &**operands;
                let starts = zip(&*self.of(text)?, &*self.of(start)?, |text: &BString, start: &i64| {
                    Ok(text::substring(text, *start, None))
                })?;
                match length {
                    None => starts,
                    Some(length) => zip(&starts, &*self.of(length)?, |text: &BString, length: &i64| {
                        Ok(text::substring(text, 0, Some(*length)))
                    })?,
                }
            }
            Op::Replace(operands) => self.replace(operands)?,
            Op::Text { value, width, precision } => texts(&*self.of(value)?, *width, *precision),
            Op::Matches(pattern, text) => map(&*self.of(text)?, |text: &BString| pattern.matches(text)),
        }))
    }

    fn column(&self, column: usize) -> Result<Rc<Block>> {
        if let Some(block) = &self.known.borrow()[column] {
            return Ok(block.clone());
        }
        let shapes = self.columns.shapes(column, self.rows.clone())?;
        let elements = shapes.elements().unwrap_or(self.count());
        self.hold(&self.kept, elements)?;
        let values = widened(self.columns.values(column, self.rows.clone())?);
        if values.len() != elements {
            let (Range { start, end }, found) = (self.rows.clone(), values.len());
            return Err(Error::format(format!("rows {start}..{end} have {found} elements, expected {elements}")));
        }
        let block = Rc::new(Block { shapes, values });
        self.known.borrow_mut()[column] = Some(block.clone());
        Ok(block)
    }

    fn logic(&self, is_and: bool, operands: &[Node; 2]) -> Result<Rc<Block>> {
        let left = self.of(&operands[0])?;
        let is_scalar = !operands[0].is_array && !operands[1].is_array;
        if is_scalar && left.slice::<bool>().iter().all(|&value| value != is_and) {
            return Ok(left);
        }
        let right = self.of(&operands[1])?;
        let both = |a: &bool, b: &bool| Ok(if is_and { *a && *b } else { *a || *b });
        Ok(Rc::new(zip(&left, &right, both)?))
    }

    fn choose(&self, operands: &[Node; 3]) -> Result<Rc<Block>> {
        let [condition, yes, no] = operands;
        let chosen = self.of(condition)?;
        if !condition.is_array {
            let is_same = yes.is_array == no.is_array;
            let all = |wanted: bool| chosen.slice::<bool>().iter().all(|&value| value == wanted);
            if is_same && all(true) {
                return self.of(yes);
            }
            if is_same && all(false) {
                return self.of(no);
            }
        }
        let (yes, no) = (self.of(yes)?, self.of(no)?);
        elementwise::choose(&chosen, &yes, &no, self.count()).map(Rc::new)
    }

    fn describe(&self, property: Property, operand: &Node) -> Result<Block> {
        let block = self.of(operand)?;
        let shapes: Vec<Option<Shape>> = (0..block.cells()).map(|cell| block.shape_if_defined(cell)).collect();
        let count = |shape: &Option<Shape>, f: fn(&Shape) -> u64| shape.as_ref().map_or(0, f) as i64;
        Ok(match property {
            Property::IsDefined => Block::scalars(shapes.iter().map(Option::is_some).collect()),
            Property::Axes => {
                Block::scalars(shapes.iter().map(|shape| count(shape, |shape| shape.len() as u64)).collect())
            }
            Property::Elements => {
                let elements = |shape: &Option<Shape>| count(shape, |shape| shape.elements().unwrap_or(0));
                Block::scalars(shapes.iter().map(elements).collect())
            }
            Property::Shape { c_order } => {
                let mut extents = Vec::new();
                for shape in shapes.iter().flatten() {
                    let ordered = if c_order { shape.reversed() } else { shape.to_vec() };
                    extents.extend(ordered.iter().map(|&extent| extent as i64));
                }
                let axes = |shape: &Option<Shape>| Some(Shape::from([count(shape, |shape| shape.len() as u64) as u64]));
                Block { shapes: Shapes::each(shapes.iter().map(axes).collect())?, values: Values::Int64(extents) }
            }
        })
    }

    fn stack(&self, members: &[Member], kind: Kind) -> Result<Block> {
        if let [Member::One(first), ..] = members
            && first.is_array
        {
            let arrays = members.iter().map(|member| match member {
                Member::One(node) => self.of(node),
                _ => Err(Error::format("arrays and ranges are in one set, expected arrays only")),
            });
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let arrays: Vec<&Block> = arrays.iter().map(|block| &**block).collect();
            let rows = if arrays.iter().all(|block| block.cells() == 1) { 1 } else { self.count() };
            return rearrange::stack(&arrays, rows, kind);
        }
        let members = members.iter().map(|member| self.member(member)).collect::<Result<Vec<_>>>()?;
        set::vector(&members, self.count(), kind)
    }

    fn member(&self, member: &Member) -> Result<set::Member> {
        let of = |node: &Option<Node>| node.as_ref().map(|node| self.of(node)).transpose();
        Ok(match member {
            Member::One(node) => set::Member::One(self.of(node)?),
            Member::Range(parts, excludes_end) => {
                let [start, end, step] = &**parts;
                set::Member::Range([of(start)?, of(end)?, of(step)?], *excludes_end)
            }
            Member::Interval(ends, closed) => set::Member::Interval([of(&ends[0])?, of(&ends[1])?], *closed),
            Member::Around(pair) => set::Member::Around([self.of(&pair[0])?, self.of(&pair[1])?]),
        })
    }

    fn is_in(&self, value: &Node, members: &[Member]) -> Result<Block> {
        let members = members.iter().map(|member| self.member(member)).collect::<Result<Vec<_>>>()?;
        set::contains(&members, &*self.of(value)?, self.count())
    }

    fn index(&self, array: &Node, subscripts: &[Subscript], style: Style, is_element: bool) -> Result<Block> {
        let block = self.of(array)?;
        let of = |node: &Node| self.of(node).map(Some);
        let parts = subscripts.iter().map(|subscript| match subscript {
            Subscript::One(node) => Ok((of(node)?, None, None, true)),
            Subscript::Range(range) => {
                let [start, end, step] = range.each_ref().map(|part| part.as_ref().map_or(Ok(None), of));
                Ok((start?, end?, step?, false))
            }
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let of_row = |row: usize| {
            let number = |part: &Option<Rc<Block>>| part.as_ref().map(|block| block.slice::<i64>()[block.cell_of(row)]);
            // negative ones count from the end
            let from = |index: i64, first: i64| if index < 0 { index } else { index.wrapping_sub(first) };
            let beyond = i64::from(style.excludes_end);
            let range = parts.iter().flat_map(|(start, end, step, is_one)| {
                let start = number(start).map(|index| from(index, style.origin));
                let end = number(end).map(|index| from(index, style.origin).wrapping_sub(beyond));
                [start, if *is_one { start } else { end }, number(step)]
            });
            range.collect()
        };
        rearrange::slice(&block, self.count(), is_element, of_row)
    }

    fn replace(&self, operands: &[Node; 3]) -> Result<Block> {
        let [texts, old, new] = [self.of(&operands[0])?, self.of(&operands[1])?, self.of(&operands[2])?];
        let texts = texts.expanded(old.cells().max(new.cells()));
        let mut replaced = Vec::with_capacity(texts.values.len());
        for cell in 0..texts.cells() {
            let (old, new) = (&old.slice()[old.cell_of(cell)], &new.slice()[new.cell_of(cell)]);
            for text in &texts.slice()[texts.range(cell)] {
                replaced.push(text::replace(text, old, new)?);
            }
        }
        Ok(texts.with(replaced))
    }
}

/// Numbers of the vector that a row has; none of an undefined one.
fn numbers(block: &Block, row: usize) -> Arguments {
    let range = block.range(block.cell_of(row));
    block.slice::<i64>()[range].iter().copied().map(Some).collect()
}

/// Undefined cells become empty ones, as in casacore.
fn cast(block: &Block, kind: Kind) -> Block {
    let block = block.defined();
    match (&block.values, kind) {
        (Values::Int64(_), Kind::Double) => map(&block, |&value: &i64| value as f64),
        (Values::Int64(_), Kind::Complex) => map(&block, |&value: &i64| Complex64::from(value as f64)),
        (Values::Double(_), Kind::Complex) => map(&block, |&value: &f64| Complex64::from(value)),
        _ => block.into_owned(),
    }
}

fn scaled(block: &Block, factor: f64) -> Block {
    match &block.values {
        Values::DComplex(_) => map(block, |value: &Complex64| value.scale(factor)),
        _ => map(block, |value: &f64| factor * value),
    }
}

fn texts(block: &Block, width: usize, precision: usize) -> Block {
    let padded = |text: &str| BString::from(text::padded(text, width));
    match &block.values {
        Values::Bool(_) => map(block, |&value: &bool| padded(text::of_bool(value))),
        Values::Int64(_) => map(block, |value: &i64| padded(&value.to_string())),
        Values::Double(_) => map(block, |&value: &f64| padded(&text::of_double(value, precision))),
        Values::DComplex(_) => {
            map(block, |&value: &Complex64| BString::from(text::of_complex(value, width, precision)))
        }
        _ => map(block, |value: &BString| text::fitted(value, width)),
    }
}
