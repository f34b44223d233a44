//! Sets of values, ranges and intervals: as arrays, and whether they contain a value.

use std::rc::Rc;

use super::block::{Block, Shapes, elements};
use super::elementwise::{is_near, truncated};
use super::node::Kind;
use super::rearrange::empty;
use crate::error::{Error, Result};
use crate::value::{BString, Complex64, Element, Shape, Values};

/// Relative difference of numbers that a range of floating-point numbers takes for equal.
const NEAR: f64 = 1e-13;

/// Member of a set in a block of rows. All blocks of a set have values of one type.
pub(super) enum Member {
    One(Rc<Block>),
    /// Start, end, step, and whether the end is excluded; by default from 0 to infinity.
    Range([Option<Rc<Block>>; 3], bool),
    Interval([Option<Rc<Block>>; 2], [bool; 2]),
    Around([Rc<Block>; 2]),
}

fn of_row<T: Element>(block: &Block, row: usize) -> &T {
    &block.slice::<T>()[block.cell_of(row)]
}

fn numbers<T: Element + Copy, const N: usize>(blocks: &[Option<Rc<Block>>; N], row: usize) -> [Option<T>; N] {
    std::array::from_fn(|part| blocks[part].as_ref().map(|block| *of_row(block, row)))
}

fn step<T: PartialEq + From<u8>>(step: Option<T>) -> Result<T> {
    let step = step.unwrap_or_else(|| T::from(1));
    if step == T::from(0) { Err(Error::format("the step of a range is 0")) } else { Ok(step) }
}

/// Scalars and ranges; `Format` for the step 0, `Limit` for more than memory should hold.
pub(super) fn vector(members: &[Member], rows: usize, kind: Kind) -> Result<Block> {
    let mut values = empty(kind);
    let mut shapes = Vec::with_capacity(rows);
    for row in 0..rows {
        let before = values.len();
        for member in members {
            match (member, &mut values) {
                (Member::One(block), values) => {
                    let cell = block.cell_of(row);
                    values.extend_from(&block.values, cell..cell + 1)?;
                }
                (Member::Range(parts, excludes_end), Values::Int64(out)) => {
                    int_range(numbers(parts, row), *excludes_end, out)?;
                }
                (Member::Range(parts, excludes_end), Values::Double(out)) => {
                    double_range(numbers(parts, row), *excludes_end, out)?;
                }
                _ => return Err(Error::unsupported("an interval is not an array")),
            }
        }
        shapes.push(Some(Shape::from([(values.len() - before) as u64])));
    }
    Ok(Block { shapes: Shapes::each(shapes)?, values })
}

fn int_range([start, end, by]: [Option<i64>; 3], excludes_end: bool, out: &mut Vec<i64>) -> Result<()> {
    let start = start.unwrap_or(0);
    let (end, by) = (end.unwrap_or(start), step(by)?);
    let distance = i128::from(end) - i128::from(start);
    let mut count = (1 + distance / i128::from(by)).max(0);
    if excludes_end && count > 0 && distance % i128::from(by) == 0 {
        count -= 1;
    }
    let count = elements(&Shape::from([u64::try_from(count).unwrap_or(u64::MAX)]))?;
    out.extend((0..count).map(|index| start.wrapping_add((index as i64).wrapping_mul(by))));
    Ok(())
}

fn double_range([start, end, by]: [Option<f64>; 3], excludes_end: bool, out: &mut Vec<f64>) -> Result<()> {
    let start = start.unwrap_or(0.0);
    let (end, by) = (end.unwrap_or(start), step(by)?);
    let mut count = truncated(1.0 + (end - start) / by + 1e-10).max(0);
    if excludes_end && count > 0 {
        let last = start + (count - 1) as f64 * by;
        if is_near(last, end, NEAR) || end == 0.0 && (last - end).abs() <= NEAR {
            count -= 1;
        }
    }
    let count = elements(&Shape::from([count as u64]))?;
    let mut value = start;
    for _ in 0..count {
        out.push(value);
        value += by;
    }
    Ok(())
}

/// Undefined cells become empty ones, as in casacore. `Format` if a range has the step 0.
pub(super) fn contains(members: &[Member], block: &Block, rows: usize) -> Result<Block> {
    let is_same = |block: &Rc<Block>| block.cells() == 1;
    let is_constant = members.iter().all(|member| match member {
        Member::One(block) => is_same(block),
        Member::Range(parts, _) => parts.iter().flatten().all(is_same),
        Member::Interval(ends, _) => ends.iter().flatten().all(is_same),
        Member::Around(pair) => pair.iter().all(is_same),
    });
    let rows = if is_constant && block.cells() == 1 { 1 } else { rows };
    let block = block.defined();
    let block = block.expanded(rows);
    let mut found = vec![false; block.values.len()];
    for row in 0..rows {
        let range = block.range(row);
        let found = &mut found[range.clone()];
        for member in members {
            match &block.values {
                Values::Bool(v) => add_equal(member, row, &v[range.clone()], found),
                Values::Int64(v) => add_ints(member, row, &v[range.clone()], found)?,
                Values::Double(v) => add_doubles(member, row, &v[range.clone()], found)?,
                Values::DComplex(v) => add_equal::<Complex64>(member, row, &v[range.clone()], found),
                Values::String(v) => add_texts(member, row, &v[range.clone()], found),
                _ => {}
            }
        }
    }
    Ok(block.with(found))
}

fn add<T>(values: &[T], found: &mut [bool], is_in: impl Fn(&T) -> bool) {
    found.iter_mut().zip(values).for_each(|(found, value)| *found |= is_in(value));
}

fn add_equal<T: Element + PartialEq>(member: &Member, row: usize, values: &[T], found: &mut [bool]) {
    if let Member::One(block) = member {
        let members = &block.slice::<T>()[block.range(block.cell_of(row))];
        add(values, found, |value| members.contains(value));
    }
}

fn add_ints(member: &Member, row: usize, values: &[i64], found: &mut [bool]) -> Result<()> {
    let Member::Range(parts, excludes_end) = member else {
        add_equal(member, row, values, found);
        return Ok(());
    };
    let [start, end, by] = numbers::<i64, 3>(parts, row);
    let (start, by) = (start.unwrap_or(0), step(by)?);
    let last = end.map(|end| end.wrapping_sub(start).wrapping_sub(i64::from(*excludes_end)));
    add(values, found, |value| {
        let distance = value.wrapping_sub(start);
        let is_inside = match by > 0 {
            true => distance >= 0 && last.is_none_or(|last| distance <= last),
            false => distance <= 0 && last.is_none_or(|last| distance >= last),
        };
        is_inside && distance.wrapping_rem(by) == 0
    });
    Ok(())
}

fn add_doubles(member: &Member, row: usize, values: &[f64], found: &mut [bool]) -> Result<()> {
    match member {
        Member::One(_) => add_equal(member, row, values, found),
        Member::Range(parts, excludes_end) => {
            let [start, end, by] = numbers::<f64, 3>(parts, row);
            let (start, by) = (start.unwrap_or(0.0), step(by)?);
            let last = end.map(|end| end - start);
            add(values, found, |value| {
                let distance = value - start;
                let is_last = |last: f64| !excludes_end && distance == last;
                let is_inside = match by > 0.0 {
                    true => distance >= 0.0 && last.is_none_or(|last| distance < last || is_last(last)),
                    false => distance <= 0.0 && last.is_none_or(|last| distance > last || is_last(last)),
                };
                is_inside && is_near(distance, by * truncated(distance / by + 0.5) as f64, NEAR)
            });
        }
        Member::Interval(ends, closed) => {
            let [start, end] = numbers::<f64, 2>(ends, row);
            add(values, found, |value| is_between(value, start.as_ref(), end.as_ref(), *closed));
        }
        Member::Around(pair) => {
            let (centre, width) = (*of_row::<f64>(&pair[0], row), *of_row::<f64>(&pair[1], row));
            let (start, end) = match width == 0.0 {
                true => (f64::MIN, f64::MAX),
                false => (centre - width * 0.5, centre + width * 0.5),
            };
            add(values, found, |value| (start..=end).contains(value));
        }
    }
    Ok(())
}

fn add_texts(member: &Member, row: usize, values: &[BString], found: &mut [bool]) {
    let Member::Interval(ends, closed) = member else { return add_equal(member, row, values, found) };
    let [start, end] = std::array::from_fn(|end| ends[end].as_ref().map(|block| of_row::<BString>(block, row)));
    add(values, found, |value| is_between(value, start, end, *closed));
}

fn is_between<T: PartialOrd>(value: &T, start: Option<&T>, end: Option<&T>, closed: [bool; 2]) -> bool {
    start.is_none_or(|start| value > start || closed[0] && value == start)
        && end.is_none_or(|end| value < end || closed[1] && value == end)
}
