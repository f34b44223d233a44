//! Reads regions (boxes of elements) that cross the chunks of an array.

use std::num::NonZero;

use super::{ChunkCache, ChunkRead, Grid};
use crate::error::Result;
use crate::value::{Region, Shape, Values};

/// A part is read alone if its chunk has at least this many times the elements of the part.
const SMALL_PART: u64 = 8;
/// Largest number of contiguous runs that are read alone; for more, the whole chunk is read.
const FEW_RUNS: usize = 8;

/// Reads the elements of `region`, a box that must lie within the array, and appends them to `out`,
/// first axis fastest.
///
/// Chunks come through `cache`, in which `grid_number` tells this grid from others. Of a chunk that
/// was not read lately a small part is read by itself: cells here and there do not cost a chunk
/// each.
pub fn read_region(
    from: &dyn ChunkRead,
    cache: &ChunkCache,
    grid_number: u64,
    region: &Region,
    out: &mut Values,
) -> Result<()> {
    let grid = from.grid();
    region.check(&grid.shape)?;
    let base = out.len();
    out.extend_default(region.shape.elements()? as usize);
    for_each_chunk(grid, region, |index, part| {
        let key = (grid_number, grid.number(index));
        let len = grid.chunk.elements()?;
        let is_small = part.extent.elements()?.saturating_mul(SMALL_PART) <= len;
        if is_small
            && !cache.expects(key, part.first_element(&grid.chunk), len)
            && read_part(from, key.1, part, &region.shape, out, base)?
        {
            return Ok(());
        }
        let chunk = cache.get(key, || {
            let mut values = Values::new(from.data_type());
            from.read_chunk(index, &mut values)?;
            Ok(values)
        })?;
        copy_box(&chunk, &grid.chunk, &part.in_chunk, out, base, &region.shape, &part.in_region, &part.extent);
        Ok(())
    })
}

/// Reads the common elements of chunk `number` (first axis fastest) and a region of shape `region`,
/// which begins at index `base` of `out`. `false` for too many reads, or if storage forbids it.
fn read_part(
    from: &dyn ChunkRead,
    number: u64,
    part: &Part,
    region: &Shape,
    out: &mut Values,
    base: usize,
) -> Result<bool> {
    let mut runs = Vec::new();
    for_each_run(&from.grid().chunk, &part.in_chunk, region, &part.in_region, &part.extent, |at, to, run| {
        if runs.len() <= FEW_RUNS {
            runs.push((at, to, run));
        }
    });
    if runs.len() > FEW_RUNS {
        return Ok(false);
    }
    for (at, to, run) in runs {
        if !from.read_elements(number, at as u64, out, base + to..base + to + run)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The box of elements that a chunk and a region have in common.
#[derive(Debug)]
pub struct Part {
    /// Start of the box of elements that a chunk and a region have in common, as an index in the
    /// chunk, first axis fastest.
    pub in_chunk: Shape,
    /// Start of the box of elements that a chunk and a region have in common, as an index in the
    /// region, first axis fastest.
    pub in_region: Shape,
    pub extent: Shape,
}

impl Part {
    /// First common element, as a number in the chunk of shape `chunk`, first axis fastest.
    fn first_element(&self, chunk: &Shape) -> u64 {
        steps(chunk, &self.in_chunk).1 as u64
    }
}

/// Calls `each` for every chunk that `region`, a box of elements within the array, touches: with
/// the index of the chunk (in chunks on each axis, from 0, first axis fastest), and the part of the
/// chunk that is in the region.
pub fn for_each_chunk(grid: &Grid, region: &Region, mut each: impl FnMut(&[u64], &Part) -> Result<()>) -> Result<()> {
    region.check(&grid.shape)?;
    if region.shape.contains(&0) {
        return Ok(());
    }
    let axes = grid.shape.len();
    let end = |axis: usize| region.start[axis] + region.shape[axis];
    let first: Shape = (0..axes).map(|axis| region.start[axis] / grid.chunk[axis]).collect();
    let last: Shape = (0..axes).map(|axis| (end(axis) - 1) / grid.chunk[axis]).collect();
    let mut index = first.to_vec();
    loop {
        let chunk_start = |axis: usize| index[axis] * grid.chunk[axis];
        let begin: Shape = (0..axes).map(|axis| chunk_start(axis).max(region.start[axis])).collect();
        let part = Part {
            in_chunk: (0..axes).map(|axis| begin[axis] - chunk_start(axis)).collect(),
            in_region: (0..axes).map(|axis| begin[axis] - region.start[axis]).collect(),
            extent: (0..axes).map(|axis| (chunk_start(axis) + grid.chunk[axis]).min(end(axis)) - begin[axis]).collect(),
        };
        each(&index, &part)?;
        // next chunk of the box, first axis fastest
        let more = (0..axes).any(|axis| {
            index[axis] += 1;
            if index[axis] <= last[axis] {
                return true;
            }
            index[axis] = first[axis];
            false
        });
        if !more {
            return Ok(());
        }
    }
}

/// Copies a box of `extent` elements along each axis from one array to another of the same type.
/// Each array is given by its shape and the index (from 0) at which the box starts, first axis
/// fastest. The target array begins at element `base` of its buffer.
#[allow(clippy::too_many_arguments, reason = "two arrays, two places, one extent")]
pub fn copy_box(
    from: &Values,
    from_shape: &[u64],
    from_start: &[u64],
    to: &mut Values,
    base: usize,
    to_shape: &[u64],
    to_start: &[u64],
    extent: &[u64],
) {
    macro_rules! same {
        ($($variant:ident)*) => {
            match (from, to) {
                $((Values::$variant(from), Values::$variant(to)) => {
                    copy_elements(from, from_shape, from_start, &mut to[base..], to_shape, to_start, extent);
                })*
                _ => unreachable!("a box is copied between arrays of one type"),
            }
        };
    }
    same!(Bool UChar Short UShort Int UInt Int64 Float Double Complex DComplex String Record);
}

/// Copies a box of `extent` elements along each axis from one array to another. Each array is given
/// by its shape and the index (from 0) at which the box starts, first axis fastest.
pub fn copy_elements<T: Clone>(
    from: &[T],
    from_shape: &[u64],
    from_start: &[u64],
    to: &mut [T],
    to_shape: &[u64],
    to_start: &[u64],
    extent: &[u64],
) {
    for_each_row(from_shape, from_start, to_shape, to_start, extent, |row| match row.elements {
        // the length of short runs is known to the compiler: no call for each
        1 => row.copy::<T, 1>(from, to),
        2 => row.copy::<T, 2>(from, to),
        4 => row.copy::<T, 4>(from, to),
        len => row.each(|source, target| to[target..target + len].clone_from_slice(&from[source..source + len])),
    });
}

/// Runs along one axis of a copied box, contiguous and at equal distances in both arrays.
struct Row {
    source: usize,
    target: usize,
    /// Elements from the start of a run to that of the next, in the source.
    from_step: usize,
    to_step: usize,
    runs: usize,
    elements: usize,
}

impl Row {
    fn each(&self, mut run: impl FnMut(usize, usize)) {
        for number in 0..self.runs {
            run(self.source + number * self.from_step, self.target + number * self.to_step);
        }
    }

    /// Copies runs of `N` elements: a constant, so that short runs do not need a function call.
    fn copy<T: Clone, const N: usize>(&self, from: &[T], to: &mut [T]) {
        if let (Some(from_step), Some(to_step)) = (NonZero::new(self.from_step), NonZero::new(self.to_step)) {
            let from = from[self.source..].chunks(from_step.get());
            let to = to[self.target..].chunks_mut(to_step.get());
            for (from, to) in from.zip(to).take(self.runs) {
                if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
                    to.clone_from(from);
                }
            }
        } else {
            self.each(|source, target| to[target..target + N].clone_from_slice(&from[source..source + N]));
        }
    }
}

/// Calls `run(from, to, elements)` for every stretch of a box of elements that is contiguous in
/// both arrays: with the number of its first element in either array, counted first axis fastest,
/// and its number of elements. Each array is given by its shape and the index at which the box
/// starts, first axis fastest.
pub fn for_each_run(
    from_shape: &[u64],
    from_start: &[u64],
    to_shape: &[u64],
    to_start: &[u64],
    extent: &[u64],
    mut run: impl FnMut(usize, usize, usize),
) {
    for_each_row(from_shape, from_start, to_shape, to_start, extent, |row| {
        row.each(|source, target| run(source, target, row.elements));
    });
}

fn for_each_row(
    from_shape: &[u64],
    from_start: &[u64],
    to_shape: &[u64],
    to_start: &[u64],
    extent: &[u64],
    mut each: impl FnMut(Row),
) {
    if extent.contains(&0) {
        return;
    }
    // leading axes that the box spans in both arrays join into one run
    let mut joined = 0;
    let mut elements = 1;
    while joined < extent.len() {
        elements *= extent[joined];
        joined += 1;
        if extent[joined - 1] != from_shape[joined - 1] || extent[joined - 1] != to_shape[joined - 1] {
            break;
        }
    }
    let (from_steps, mut source) = steps(from_shape, from_start);
    let (to_steps, mut target) = steps(to_shape, to_start);
    // the first axis that does not join is a loop of its own: its steps stay in registers
    let (runs, from_step, to_step) = match extent.get(joined) {
        Some(&runs) => (runs as usize, from_steps[joined], to_steps[joined]),
        None => (1, 0, 0),
    };
    let mut left = extent.to_vec();
    loop {
        each(Row { source, target, from_step, to_step, runs, elements: elements as usize });
        let mut axis = joined + 1;
        loop {
            let Some(left) = left.get_mut(axis) else { return };
            *left -= 1;
            if *left > 0 {
                break;
            }
            // back to the start of this axis, and one on along the next
            *left = extent[axis];
            source -= from_steps[axis] * (extent[axis] - 1) as usize;
            target -= to_steps[axis] * (extent[axis] - 1) as usize;
            axis += 1;
        }
        source += from_steps[axis];
        target += to_steps[axis];
    }
}

/// Distances in elements along each axis, and number of the element `start`; first axis fastest.
fn steps(shape: &[u64], start: &[u64]) -> (Vec<usize>, usize) {
    let (mut step, mut first) = (1, 0);
    let mut steps = Vec::with_capacity(shape.len());
    for (&extent, &at) in shape.iter().zip(start) {
        steps.push(step);
        first += at as usize * step;
        step *= extent as usize;
    }
    (steps, first)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::io::ByteOrder;
    use crate::value::DataType;

    #[test]
    fn boxes_of_any_shape_are_copied() {
        let from_shape = [5, 4, 3];
        let from: Vec<u32> = (0..60).collect();
        // runs of one to five elements, whole axes, single positions
        for (start, to_shape, to_start, extent) in [
            ([1, 0, 0], [1, 4, 3], [0, 0, 0], [1, 4, 3]),
            ([1, 1, 1], [3, 2, 4], [1, 0, 2], [2, 2, 2]),
            ([0, 1, 0], [4, 3, 3], [0, 0, 0], [4, 3, 3]),
            ([2, 0, 1], [3, 4, 2], [0, 0, 0], [3, 4, 2]),
            ([0, 0, 0], [5, 4, 3], [0, 0, 0], [5, 4, 3]),
            ([4, 3, 2], [1, 1, 1], [0, 0, 0], [1, 1, 1]),
            ([0, 0, 0], [5, 2, 2], [0, 1, 1], [5, 1, 1]),
            ([3, 2, 0], [2, 2, 3], [0, 0, 0], [2, 2, 3]),
            ([0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]),
        ] {
            let len = to_shape.iter().product::<u64>() as usize;
            let mut expected = vec![u32::MAX; len];
            for z in 0..extent[2] {
                for y in 0..extent[1] {
                    for x in 0..extent[0] {
                        let at = |shape: [u64; 3], start: [u64; 3]| {
                            (x + start[0] + shape[0] * (y + start[1] + shape[1] * (z + start[2]))) as usize
                        };
                        expected[at(to_shape, to_start)] = from[at(from_shape, start)];
                    }
                }
            }
            let mut to = vec![u32::MAX; len];
            copy_elements(&from, &from_shape, &start, &mut to, &to_shape, &to_start, &extent);
            assert_eq!(to, expected, "{start:?} {to_shape:?} {to_start:?} {extent:?}");
        }
    }

    /// Element at `[x, y, z]` is `x + 10 y + 100 z`, chunk by chunk; padding is -1.
    struct Numbers(Grid);

    impl ChunkRead for Numbers {
        fn grid(&self) -> &Grid {
            &self.0
        }
        fn data_type(&self) -> DataType {
            DataType::Int
        }
        fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()> {
            let Values::Int(out) = out else { panic!() };
            let c = &self.0.chunk;
            for z in 0..c[2] {
                for y in 0..c[1] {
                    for x in 0..c[0] {
                        let at = [index[0] * c[0] + x, index[1] * c[1] + y, index[2] * c[2] + z];
                        let inside = (0..3).all(|axis| at[axis] < self.0.shape[axis]);
                        out.push(if inside { (at[0] + 10 * at[1] + 100 * at[2]) as i32 } else { -1 });
                    }
                }
            }
            Ok(())
        }
        fn raw_order(&self) -> Option<ByteOrder> {
            None
        }
        fn storage(&self) -> crate::grid::ChunkStorage<'_> {
            crate::grid::ChunkStorage::Encoded
        }
        fn read_raw(&self, _: u64, _: &mut [u8]) -> Result<()> {
            unreachable!()
        }
        fn read_elements(&self, number: u64, first: u64, out: &mut Values, to: Range<usize>) -> Result<bool> {
            let mut chunk = Values::new(DataType::Int);
            self.read_chunk(&crate::grid::unravel(number, &self.0.counts()), &mut chunk)?;
            let (Values::Int(chunk), Values::Int(out)) = (chunk, out) else { panic!() };
            out[to.clone()].copy_from_slice(&chunk[first as usize..][..to.len()]);
            Ok(true)
        }
    }

    #[test]
    fn every_region_of_a_small_grid() {
        let shape = Shape::from([5, 4, 3]);
        let numbers = Numbers(Grid { shape: shape.clone(), chunk: Shape::from([2, 3, 2]) });
        let cache = ChunkCache::new(1 << 10);
        let ranges = |extent: u64| (0..extent).flat_map(move |a| (a..=extent).map(move |b| (a, b - a)));
        for (x, nx) in ranges(5) {
            for (y, ny) in ranges(4) {
                for (z, nz) in ranges(3) {
                    let region = Region { start: Shape::from([x, y, z]), shape: Shape::from([nx, ny, nz]) };
                    let mut out = Values::Int(vec![7]);
                    read_region(&numbers, &cache, 0, &region, &mut out).unwrap();
                    let mut expected = vec![7];
                    for k in z..z + nz {
                        for j in y..y + ny {
                            expected.extend((x..x + nx).map(|i| (i + 10 * j + 100 * k) as i32));
                        }
                    }
                    assert_eq!(out, Values::Int(expected));
                }
            }
        }
        assert!(
            read_region(
                &numbers,
                &cache,
                0,
                &Region { start: Shape::from([0, 0, 2]), shape: Shape::from([5, 4, 2]) },
                &mut Values::Int(vec![])
            )
            .is_err()
        );
    }
}
