//! Values of an expression in a block of rows.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits;
use crate::value::{Complex64, Element, Shape, Values};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    pub(crate) shapes: Shapes,
    /// Values of the types Bool, Int64, Double, DComplex or String.
    pub(crate) values: Values,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shapes {
    Scalars,
    /// Cells of one shape: their number, the shape and its elements.
    Same(usize, Shape, usize),
    /// Shape of each cell, and the end of its elements; undefined cells have neither.
    Each(Vec<(Option<Shape>, usize)>),
}

impl Shapes {
    /// `Limit` if a cell has more elements than memory should hold.
    pub(crate) fn same(cells: usize, shape: Shape) -> Result<Self> {
        let elements = elements(&shape)?;
        Ok(Shapes::Same(cells, shape, elements))
    }

    /// Elements of all cells; `None` for scalars.
    pub(super) fn elements(&self) -> Option<usize> {
        match self {
            Shapes::Scalars => None,
            Shapes::Same(cells, _, elements) => Some(cells.saturating_mul(*elements)),
            Shapes::Each(cells) => Some(cells.last().map_or(0, |(_, end)| *end)),
        }
    }

    /// `None` is an undefined cell. Fails as [`same`](Self::same).
    pub(crate) fn each(shapes: Vec<Option<Shape>>) -> Result<Self> {
        let mut end = 0;
        let mut cell = |shape: Option<Shape>| {
            end += shape.as_ref().map_or(Ok(0), elements)?;
            Ok((shape, end))
        };
        match shapes.first() {
            Some(Some(first)) if shapes.iter().all(|shape| shape.as_ref() == Some(first)) => {
                Self::same(shapes.len(), first.clone())
            }
            _ => Ok(Shapes::Each(shapes.into_iter().map(&mut cell).collect::<Result<_>>()?)),
        }
    }
}

/// `Limit` if that is more than memory should hold.
pub(super) fn elements(shape: &Shape) -> Result<usize> {
    let elements = shape.elements()?;
    limits::unbacked_cell(elements.saturating_mul(8))?;
    Ok(elements as usize)
}

impl Block {
    pub(crate) fn scalars<T: Element>(values: Vec<T>) -> Self {
        Block { shapes: Shapes::Scalars, values: T::values(values) }
    }

    pub(crate) fn cells(&self) -> usize {
        match &self.shapes {
            Shapes::Scalars => self.values.len(),
            Shapes::Same(cells, ..) => *cells,
            Shapes::Each(cells) => cells.len(),
        }
    }

    /// Index of the cell that has the values of `row`, counted from the first of the block.
    pub(super) fn cell_of(&self, row: usize) -> usize {
        if self.cells() == 1 { 0 } else { row }
    }

    /// Shape of a cell, without axes for a scalar; of an undefined one that of an empty vector.
    pub(crate) fn shape(&self, cell: usize) -> Shape {
        self.shape_if_defined(cell).unwrap_or_else(|| Shape::from([0]))
    }

    /// Elements of a cell; none of an undefined one.
    pub(super) fn range(&self, cell: usize) -> Range<usize> {
        match &self.shapes {
            Shapes::Scalars => cell..cell + 1,
            Shapes::Same(_, _, elements) => cell * elements..(cell + 1) * elements,
            Shapes::Each(cells) => cell.checked_sub(1).map_or(0, |before| cells[before].1)..cells[cell].1,
        }
    }

    /// `None` if the cell is undefined; without axes for a scalar.
    pub(super) fn shape_if_defined(&self, cell: usize) -> Option<Shape> {
        match &self.shapes {
            Shapes::Scalars => Some(Shape::scalar()),
            Shapes::Same(_, shape, _) => Some(shape.clone()),
            Shapes::Each(cells) => cells[cell].0.clone(),
        }
    }

    pub(super) fn slice<T: Element>(&self) -> &[T] {
        T::slice(&self.values).expect("compiling has compared the types")
    }

    pub(crate) fn expanded(&self, rows: usize) -> Cow<'_, Block> {
        if rows <= 1 || self.cells() != 1 {
            return Cow::Borrowed(self);
        }
        let mut values = self.values.clone();
        values.repeat_last(self.values.len(), rows - 1);
        let shapes = match &self.shapes {
            Shapes::Scalars => Shapes::Scalars,
            Shapes::Same(_, shape, elements) => Shapes::Same(rows, shape.clone(), *elements),
            Shapes::Each(_) => Shapes::Each(vec![(None, 0); rows]),
        };
        Cow::Owned(Block { shapes, values })
    }

    /// Undefined cells become vectors without elements.
    pub(super) fn defined(&self) -> Cow<'_, Block> {
        let Shapes::Each(cells) = &self.shapes else { return Cow::Borrowed(self) };
        let defined = |(shape, end): &(Option<Shape>, usize)| (shape.clone().or(Some(Shape::from([0]))), *end);
        Cow::Owned(Block { shapes: Shapes::Each(cells.iter().map(defined).collect()), values: self.values.clone() })
    }

    /// The same cells with other values.
    pub(super) fn with<T: Element>(&self, values: Vec<T>) -> Block {
        Block { shapes: self.shapes.clone(), values: T::values(values) }
    }
}

pub(super) fn widened(values: Values) -> Values {
    match values {
        Values::Float(v) => Values::Double(v.into_iter().map(f64::from).collect()),
        Values::Complex(v) => {
            Values::DComplex(v.into_iter().map(|value| Complex64::new(value.re.into(), value.im.into())).collect())
        }
        Values::Int64(_) => values,
        other => other.integers().map_or(other, Values::Int64),
    }
}

pub(super) fn map<A: Element, R: Element>(block: &Block, f: impl Fn(&A) -> R) -> Block {
    block.with(block.slice::<A>().iter().map(f).collect())
}

/// Cells of equal shapes, or scalars in place of one; `Format` if two shapes differ.
pub(super) fn zip<A: Element, B: Element, R: Element>(
    left: &Block,
    right: &Block,
    f: impl Fn(&A, &B) -> Result<R>,
) -> Result<Block> {
    let (a, b) = (left.slice::<A>(), right.slice::<B>());
    let (is_scalar, other_is_scalar) = (left.shapes == Shapes::Scalars, right.shapes == Shapes::Scalars);
    if left.shapes == right.shapes && a.len() == b.len() {
        let values = a.iter().zip(b).map(|(a, b)| f(a, b)).collect::<Result<Vec<R>>>()?;
        return Ok(left.with(values));
    }
    if other_is_scalar && b.len() == 1 {
        return Ok(left.with(a.iter().map(|a| f(a, &b[0])).collect::<Result<Vec<R>>>()?));
    }
    if is_scalar && a.len() == 1 {
        return Ok(right.with(b.iter().map(|b| f(&a[0], b)).collect::<Result<Vec<R>>>()?));
    }
    let cells = left.cells().max(right.cells());
    let (mut shapes, mut values) = (Vec::with_capacity(cells), Vec::new());
    for row in 0..cells {
        let (one, other) = (left.cell_of(row), right.cell_of(row));
        let (a, b) = (&a[left.range(one)], &b[right.range(other)]);
        let (Some(shape), Some(other_shape)) = (left.shape_if_defined(one), right.shape_if_defined(other)) else {
            shapes.push(None);
            continue;
        };
        if is_scalar {
            b.iter().try_for_each(|b| f(&a[0], b).map(|value| values.push(value)))?;
            shapes.push(Some(other_shape));
            continue;
        }
        if other_is_scalar {
            a.iter().try_for_each(|a| f(a, &b[0]).map(|value| values.push(value)))?;
        } else if shape == other_shape {
            a.iter().zip(b).try_for_each(|(a, b)| f(a, b).map(|value| values.push(value)))?;
        } else {
            return Err(different(&shape, &other_shape));
        }
        shapes.push(Some(shape));
    }
    let shapes = if is_scalar && other_is_scalar { Shapes::Scalars } else { Shapes::each(shapes)? };
    Ok(Block { shapes, values: R::values(values) })
}

pub(super) fn different(shape: &Shape, other: &Shape) -> Error {
    Error::format(format!("an array has the shape {shape}, another one {other}"))
}
