//! Arrays made of the elements of others: slices, transposed and reversed arrays, fewer axes.
//!
//! Each of them is a walk: for each axis of the result an extent and the distance of its elements
//! in the array.

use std::borrow::Cow;
use std::ops::Range;

use super::block::{Block, Shapes, different, elements};
use super::node::{Kind, Rearrangement, Reduction};
use super::reduce::{self, Extent};
use crate::error::{Error, Result};
use crate::value::{Element, Shape, Values, for_each_type};

/// Numbers that say for a row how its array is rearranged.
pub(super) type Arguments = Vec<Option<i64>>;

/// Positions in an array whose elements are another array's.
#[derive(Debug, Clone)]
struct Walk {
    start: i64,
    /// Extent of each axis, and the distance of its elements.
    axes: Vec<(u64, i64)>,
}

impl Walk {
    fn of(shape: &Shape) -> Self {
        let mut stride = 1i64;
        let axis = |&extent: &u64| {
            let axis = (extent, stride);
            stride = stride.saturating_mul(extent as i64);
            axis
        };
        Walk { start: 0, axes: shape.iter().map(axis).collect() }
    }

    fn shape(&self) -> Shape {
        self.axes.iter().map(|(extent, _)| *extent).collect()
    }

    /// `Limit` if the result has more elements than memory should hold.
    fn positions(&self) -> Result<Vec<usize>> {
        let count = elements(&self.shape())?;
        let mut positions = Vec::with_capacity(count);
        let mut at = vec![0; self.axes.len()];
        let mut position = self.start;
        for _ in 0..count {
            positions.push(position as usize);
            for (index, (extent, stride)) in at.iter_mut().zip(&self.axes) {
                *index += 1;
                position += stride;
                if *index < *extent {
                    break;
                }
                position -= stride * *extent as i64;
                *index = 0;
            }
        }
        Ok(positions)
    }
}

/// Shape of a cell of the result, and positions of its elements in the cell of the operand.
type Plan = (Shape, Vec<usize>);

/// Calls `plan` for each cell, but once for successive cells with equal arguments.
fn gather(
    block: &Block,
    rows: usize,
    arguments: impl Fn(usize) -> Arguments,
    plan: impl Fn(&Shape, &Arguments) -> Result<Plan>,
) -> Result<Block> {
    let mut shapes = Vec::with_capacity(rows);
    let mut positions = Vec::new();
    let mut last: Option<(Shape, Arguments, Plan)> = None;
    for row in 0..rows {
        let cell = block.cell_of(row);
        let Some(shape) = block.shape_if_defined(cell) else {
            shapes.push(None);
            continue;
        };
        let given = arguments(row);
        let (_, _, (found, inside)) = match last.take() {
            Some(known) if known.0 == shape && known.1 == given => last.insert(known),
            _ => {
                let planned = plan(&shape, &given)?;
                last.insert((shape, given, planned))
            }
        };
        let start = block.range(cell).start;
        positions.extend(inside.iter().map(|position| start + position));
        shapes.push(Some(found.clone()));
    }
    let values = for_each_type!(&block.values, v => picked(v, &positions));
    Ok(Block { shapes: Shapes::each(shapes)?, values })
}

fn picked<T: Element + Clone>(elements: &[T], positions: &[usize]) -> Values {
    T::values(positions.iter().map(|&position| elements[position].clone()).collect())
}

/// `Format` if an axis does not exist, or a filled array gets no elements.
pub(super) fn rearrange(
    rearrangement: Rearrangement,
    block: &Block,
    rows: usize,
    arguments: impl Fn(usize) -> Arguments,
) -> Result<Block> {
    match rearrangement {
        Rearrangement::Fill => gather(block, rows, arguments, fill),
        Rearrangement::Transpose { c_order } => {
            gather(block, rows, arguments, |shape, axes| transpose(shape, axes, c_order))
        }
        Rearrangement::Reverse { c_order } => gather(block, rows, arguments, |shape, axes| {
            let mut walk = Walk::of(shape);
            let all: Vec<usize> = (0..shape.len()).collect();
            let axes = if axes.is_empty() { all } else { existing_axes(axes, shape.len(), c_order)? };
            for axis in axes {
                let (extent, stride) = &mut walk.axes[axis];
                walk.start += *stride * (*extent as i64 - 1);
                *stride = -*stride;
            }
            Ok((shape.clone(), walk.positions()?))
        }),
        Rearrangement::Flatten => gather(block, rows, arguments, |shape, _| {
            let count = elements(shape)?;
            Ok((Shape::from([count as u64]), (0..count).collect()))
        }),
    }
}

fn fill(shape: &Shape, extents: &Arguments) -> Result<Plan> {
    let extent = |extent: &Option<i64>| {
        let extent = extent.unwrap_or_default();
        u64::try_from(extent).map_err(|_| Error::format(format!("an array has the extent {extent}")))
    };
    let filled: Shape = extents.iter().map(extent).collect::<Result<Vec<u64>>>()?.as_slice().into();
    let (given, wanted) = (elements(shape)?, elements(&filled)?);
    if given == 0 && wanted > 0 {
        return Err(Error::format("an array without elements cannot fill another one"));
    }
    Ok((filled, (0..wanted).map(|position| position % given).collect()))
}

/// Numbers of `axes` that an array of `count` axes has, fastest first; others are ignored.
fn existing_axes(axes: &Arguments, count: usize, c_order: bool) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for axis in axes.iter().flatten() {
        let axis = usize::try_from(*axis).map_err(|_| Error::format(format!("the axis {axis} does not exist")))?;
        let is_new = axis < count && !found.contains(&axis);
        found.extend(is_new.then_some(axis));
    }
    if c_order {
        found.iter_mut().for_each(|axis| *axis = count - 1 - *axis);
    }
    Ok(found)
}

fn transpose(shape: &Shape, axes: &Arguments, c_order: bool) -> Result<Plan> {
    let count = shape.len();
    let mut order: Vec<usize> = (0..count).rev().collect();
    if !axes.is_empty() {
        order = existing_axes(axes, count, false)?;
        let rest: Vec<usize> = (0..count).filter(|axis| !order.contains(axis)).collect();
        order.extend(rest);
        if c_order {
            order = order.iter().rev().map(|axis| count - 1 - axis).collect();
        }
    }
    let walk = Walk::of(shape);
    let walk = Walk { start: 0, axes: order.into_iter().map(|axis| walk.axes[axis]).collect() };
    Ok((walk.shape(), walk.positions()?))
}

/// `arguments` are start, end and step of each axis, by default first, last and 1; negative ones
/// count from the end. `Format` if a cell has another number of axes, or a range leaves it.
pub(super) fn slice(
    block: &Block,
    rows: usize,
    is_element: bool,
    arguments: impl Fn(usize) -> Arguments,
) -> Result<Block> {
    let sliced = gather(block, rows, arguments, |shape, ranges| {
        if ranges.len() != 3 * shape.len() {
            let message = format!("{} subscripts, the array has the shape {shape}", ranges.len() / 3);
            return Err(Error::format(message));
        }
        let mut walk = Walk::of(shape);
        for ((extent, stride), range) in walk.axes.iter_mut().zip(ranges.chunks_exact(3)) {
            let all = *extent as i64;
            let from_end = |index: i64| if index < 0 { index.saturating_add(all) } else { index };
            let start = from_end(range[0].unwrap_or(0));
            let end = from_end(range[1].unwrap_or(all - 1));
            let step = range[2].unwrap_or(1);
            if start < 0 || end < start || end >= all || step < 1 {
                let message = format!("elements {start} to {end} in steps of {step} leave an axis of {all}");
                return Err(Error::format(message));
            }
            walk.start += start * *stride;
            *extent = ((end - start) / step + 1) as u64;
            *stride = stride.saturating_mul(step);
        }
        Ok((walk.shape(), walk.positions()?))
    })?;
    match (is_element, &sliced.shapes) {
        (true, Shapes::Same(..)) => Ok(Block { shapes: Shapes::Scalars, ..sliced }),
        (true, _) => Err(Error::format("the array of which an element is taken is undefined")),
        _ => Ok(sliced),
    }
}

/// Arrays along a new last axis; `Format` if their shapes differ.
pub(super) fn stack(blocks: &[&Block], rows: usize, kind: Kind) -> Result<Block> {
    let mut shapes = Vec::with_capacity(rows);
    let mut values = empty(kind);
    for row in 0..rows {
        let cells: Vec<Option<Shape>> = blocks.iter().map(|block| block.shape_if_defined(block.cell_of(row))).collect();
        let Some(cells) = cells.into_iter().collect::<Option<Vec<Shape>>>() else {
            shapes.push(None);
            continue;
        };
        if let Some(pair) = cells.windows(2).find(|pair| pair[0] != pair[1]) {
            return Err(different(&pair[0], &pair[1]));
        }
        for block in blocks {
            values.extend_from(&block.values, block.range(block.cell_of(row)))?;
        }
        shapes.push(cells.first().map(|shape| shape.with_axis(blocks.len() as u64)));
    }
    Ok(Block { shapes: Shapes::each(shapes)?, values })
}

pub(super) fn empty(kind: Kind) -> Values {
    match kind {
        Kind::Bool => Values::Bool(Vec::new()),
        Kind::Int => Values::Int64(Vec::new()),
        Kind::Double => Values::Double(Vec::new()),
        Kind::Complex => Values::DComplex(Vec::new()),
        Kind::Text => Values::String(Vec::new()),
    }
}

/// `All` of an undefined cell is false. `Format` if elements are missing.
pub(super) fn reduce(reduction: Reduction, block: &Block, kind: Kind) -> Result<Block> {
    let mut values = empty(kind);
    for cell in 0..block.cells() {
        let is_undefined = reduction == Reduction::All && block.shape_if_defined(cell).is_none();
        let reduction = if is_undefined { Reduction::Any } else { reduction };
        add(&mut values, reduction, &block.values, &Lane::All(block.range(cell)))?;
    }
    Ok(Block { shapes: Shapes::Scalars, values })
}

/// Keeps the axes that `arguments` do not give. Fails as [`reduce`](fn@reduce), and with `Format`
/// for negative axes.
pub(super) fn reduce_axes(
    reduction: Reduction,
    block: &Block,
    rows: usize,
    kind: Kind,
    c_order: bool,
    arguments: impl Fn(usize) -> Arguments,
) -> Result<Block> {
    let (mut values, mut shapes, mut positions) = (empty(kind), Vec::new(), Vec::new());
    for row in 0..rows {
        let cell = block.cell_of(row);
        let Some(shape) = block.shape_if_defined(cell) else {
            shapes.push(None);
            continue;
        };
        let collapsed = existing_axes(&arguments(row), shape.len(), c_order)?;
        let walk = Walk::of(&shape);
        let part = |is_collapsed: bool| {
            let axes = (0..shape.len()).filter(|axis| collapsed.contains(axis) == is_collapsed);
            Walk { start: 0, axes: axes.map(|axis| walk.axes[axis]).collect() }
        };
        let (kept, inside, first) = (part(false), part(true).positions()?, block.range(cell).start);
        for start in kept.positions()? {
            positions.clear();
            positions.extend(inside.iter().map(|position| first + start + position));
            add(&mut values, reduction, &block.values, &Lane::Along(&positions))?;
        }
        let shape = kept.shape();
        shapes.push(Some(if shape.is_empty() { Shape::from([1]) } else { shape }));
    }
    Ok(Block { shapes: Shapes::each(shapes)?, values })
}

/// Elements that become one.
enum Lane<'a> {
    All(Range<usize>),
    Along(&'a [usize]),
}

impl Lane<'_> {
    fn of<'a, T: Clone>(&self, values: &'a [T]) -> Cow<'a, [T]> {
        match self {
            Lane::All(range) => Cow::Borrowed(&values[range.clone()]),
            Lane::Along(positions) => positions.iter().map(|&position| values[position].clone()).collect(),
        }
    }

    fn extent(&self) -> Extent {
        match self {
            Lane::All(_) => Extent::Whole,
            Lane::Along(_) => Extent::Axes,
        }
    }
}

fn add(out: &mut Values, reduction: Reduction, values: &Values, lane: &Lane<'_>) -> Result<()> {
    match (out, values) {
        (Values::Bool(out), Values::Bool(v)) => out.push(reduce::bools(reduction, &lane.of(v))),
        (Values::Int64(out), Values::Bool(v)) => out.push(reduce::count(reduction, &lane.of(v))),
        (Values::Int64(out), Values::Int64(v)) => out.push(reduce::ints(reduction, &lane.of(v))?),
        (Values::Double(out), Values::Double(v)) => out.push(reduce::doubles(reduction, &lane.of(v), lane.extent())?),
        (Values::Double(out), Values::DComplex(v)) => out.push(reduce::deviation(reduction, &lane.of(v))),
        (Values::DComplex(out), Values::DComplex(v)) => out.push(reduce::complexes(reduction, &lane.of(v))),
        _ => return Err(Error::unsupported("elements of this type are not reduced")),
    }
    Ok(())
}
