//! The row map of a tiled manager: in which hypercube, and at which position in it, each row is.
//! formats/stman.md 6.1, 6.6, 6.7.

use std::ops::Range;

use super::header::CubeEntry;
use crate::aipsio::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::stman::RowRun;
use crate::value::Shape;

#[derive(Debug)]
pub(super) enum RowMap {
    Column,
    Cell,
    /// TiledShapeStMan and TiledDataStMan.
    Intervals(Vec<Interval>),
}

/// Consecutive rows at consecutive positions of a hypercube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) first_row: u64,
    pub(super) end_row: u64,
    /// `None` if the cells are undefined.
    pub(super) cube: Option<usize>,
    /// Position of the first row on the last axis.
    pub(super) position: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cube: usize,
    /// Position on each row axis, fastest first; no axes in TiledCellStMan.
    pub(super) at: Shape,
    /// Rows from here on that follow each other along the first row axis.
    pub(super) stretch: u64,
}

impl Interval {
    fn continues_with(&self, next: &Interval) -> bool {
        self.end_row == next.first_row
            && self.cube == next.cube
            && self.position.wrapping_add(self.end_row - self.first_row) == next.position
    }
}

impl RowMap {
    /// The end of a TiledShapeStMan header.
    ///
    /// | field | type | meaning |
    /// |--------|-------------|-----------------------------------------------------------|
    /// | count | u32 | |
    /// | rows | `Block` u32 | **last** row of each interval |
    /// | cubes | `Block` u32 | 0: undefined cells |
    /// | positions | `Block` u32 | of the **last** row; garbage where the cube is 0 |
    pub(super) fn decode_shape(d: &mut Decoder<'_>) -> Result<Self> {
        let count = d.u32("row map entries")? as usize;
        let last_rows = d.block_u32("row map")?;
        let cubes = d.block_u32("cube map")?;
        let positions = d.block_u32("position map")?;
        if last_rows.len() < count || cubes.len() < count || positions.len() < count {
            return Err(d.error(format!("row map of {count} entries with fewer values")));
        }
        let mut intervals = Vec::with_capacity(count);
        let mut first_row = 0;
        for i in 0..count {
            let end_row = u64::from(last_rows[i]) + 1;
            if end_row <= first_row {
                return Err(d.error(format!("row map entry {i}: last row {} after row {first_row}", last_rows[i])));
            }
            let cube = (cubes[i] != 0).then_some(cubes[i] as usize);
            let back = end_row - 1 - first_row;
            let position = match cube {
                Some(_) => u64::from(positions[i]).checked_sub(back).ok_or_else(|| {
                    d.error(format!("row map entry {i}: position {} for the last of {} rows", positions[i], back + 1))
                })?,
                None => 0,
            };
            intervals.push(Interval { first_row, end_row, cube, position });
            first_row = end_row;
        }
        Ok(RowMap::Intervals(intervals))
    }

    /// The end of a TiledDataStMan header.
    ///
    /// | field | v1 | v2 | meaning |
    /// |-----------|--------------------|-------------|----------------------------------------|
    /// | end | u32, u64 if wide | u64 | rows from here on are undefined |
    /// | used | u32 | | entries that count |
    /// | rows | `Block` u32 | `Block` u64 | **first** row of each interval |
    /// | cubes | `Block` u32 | `Block` u32 | |
    /// | positions | `Block` u32 | `Block` u32 | of the first row, on the last axis |
    ///
    /// Version 1 is wide with version 3 of `TiledStMan`, and in casacore 3.4.0 always: the name of
    /// the first `Block` is then 4 bytes further on.
    pub(super) fn decode_data(d: &mut Decoder<'_>, version: u32, header_version: u32) -> Result<Self> {
        let wide = version >= 2 || header_version == 3 || d.peek(20, b"Block");
        let end = d.uint("rows in hypercubes", wide)?;
        let used = if version == 1 { Some(d.u32("row map entries")? as usize) } else { None };
        let rows = d.block_uint("row map", version >= 2)?;
        let cubes = d.block_u32("cube map")?;
        let positions = d.block_u32("position map")?;
        let used = used.unwrap_or(rows.len());
        if rows.len() < used || cubes.len() < used || positions.len() < used {
            return Err(d.error(format!("row map of {used} entries with fewer values")));
        }
        let mut intervals = Vec::with_capacity(used);
        for i in 0..used {
            let end_row = if i + 1 < used { rows[i + 1] } else { end };
            if end_row < rows[i] {
                return Err(d.error(format!("row map entry {i}: first row {} after row {end_row}", rows[i])));
            }
            let (cube, position) = (Some(cubes[i] as usize), u64::from(positions[i]));
            intervals.push(Interval { first_row: rows[i], end_row, cube, position });
        }
        Ok(RowMap::Intervals(intervals))
    }

    pub(super) fn encode_shape(&self, e: &mut Encoder) {
        let intervals = self.intervals();
        e.u32(intervals.len() as u32);
        let block = |e: &mut Encoder, field: &dyn Fn(&Interval) -> u64| {
            e.block(intervals.iter(), |e, interval| e.u32(field(interval) as u32));
        };
        block(e, &|interval| interval.end_row - 1);
        block(e, &|interval| interval.cube.unwrap_or_default() as u64);
        block(e, &|interval| interval.position.wrapping_add(interval.end_row - 1 - interval.first_row));
    }

    /// Writes version 2.
    pub(super) fn encode_data(&self, e: &mut Encoder) {
        let intervals = self.intervals();
        e.u64(intervals.last().map_or(0, |last| last.end_row));
        e.block(intervals.iter(), |e, interval| e.u64(interval.first_row));
        e.block(intervals.iter(), |e, interval| e.u32(interval.cube.unwrap_or_default() as u32));
        e.block(intervals.iter(), |e, interval| e.u32(interval.position as u32));
    }

    /// Empty for TiledColumnStMan and TiledCellStMan.
    pub(super) fn intervals(&self) -> &[Interval] {
        match self {
            RowMap::Intervals(intervals) => intervals,
            RowMap::Column | RowMap::Cell => &[],
        }
    }

    pub(super) fn assign(&mut self, rows: Range<u64>, cube: usize, position: u64) {
        let RowMap::Intervals(intervals) = self else { return };
        let end = intervals.last().map_or(0, |last| last.end_row);
        let mut new = Interval { first_row: rows.start, end_row: rows.end, cube: Some(cube), position };
        if rows.start > end {
            // casacore puts the last of such rows at position 0, and leaves the others before it
            let position = 0u64.wrapping_sub(rows.start - end - 1);
            intervals.push(Interval { first_row: end, end_row: rows.start, cube: None, position });
        }
        // the intervals that `rows` overlaps; their parts outside `rows` are kept
        let from = intervals.partition_point(|interval| interval.end_row <= rows.start);
        let to = intervals.partition_point(|interval| interval.first_row < rows.end);
        let mut pieces = Vec::with_capacity(3);
        if let Some(first) = intervals[from..to].first().filter(|first| first.first_row < rows.start) {
            pieces.push(Interval { end_row: rows.start, ..first.clone() });
        }
        let after = intervals[from..to].last().filter(|last| last.end_row > rows.end).map(|last| Interval {
            first_row: rows.end,
            position: last.position.wrapping_add(rows.end - last.first_row),
            ..last.clone()
        });
        let mut from = from;
        if pieces.is_empty()
            && let Some(before) = from.checked_sub(1).map(|before| &intervals[before])
            && before.continues_with(&new)
        {
            new = Interval { end_row: new.end_row, ..before.clone() };
            from -= 1;
        }
        pieces.push(new);
        pieces.extend(after);
        intervals.splice(from..to, pieces);
    }

    /// Cubes must exist, and have positions for `rows` in TiledColumnStMan and TiledCellStMan.
    pub(super) fn check(&self, cubes: &[CubeEntry], rows: u64) -> Result<()> {
        let damaged = |message: String| Err(Error::format(message));
        match self {
            RowMap::Column => match cubes {
                [cube] if cube.shape.last().copied().unwrap_or_default() >= rows => Ok(()),
                [cube] => damaged(format!("a hypercube of shape {} for {rows} rows", cube.shape)),
                _ => damaged(format!("{} hypercubes where one is expected", cubes.len())),
            },
            RowMap::Cell if cubes.len() as u64 == rows => Ok(()),
            RowMap::Cell => damaged(format!("{} hypercubes for {rows} rows, expected one for each", cubes.len())),
            RowMap::Intervals(intervals) => {
                for interval in intervals {
                    if let Some(cube) = interval.cube
                        && cube >= cubes.len()
                    {
                        return damaged(format!("row {} in hypercube {cube} of {}", interval.first_row, cubes.len()));
                    }
                }
                Ok(())
            }
        }
    }

    /// `None` if the cells of the row are undefined.
    pub(super) fn locate(&self, row: u64, cubes: &[CubeEntry], cell_axes: usize) -> Result<Option<Place>> {
        let (cube, ahead, position, left) = match self {
            RowMap::Column => (0, row, 0, u64::MAX),
            RowMap::Cell => {
                let defined = cubes.get(row as usize).is_some_and(CubeEntry::is_defined);
                let place = Place { cube: row as usize, at: Shape::scalar(), stretch: 1 };
                return Ok(defined.then_some(place));
            }
            RowMap::Intervals(intervals) => {
                let next = intervals.partition_point(|interval| interval.first_row <= row);
                match next.checked_sub(1).map(|i| &intervals[i]) {
                    Some(&Interval { first_row, end_row, cube: Some(cube), position }) if row < end_row => {
                        (cube, row - first_row, position, end_row - row)
                    }
                    _ => return Ok(None),
                }
            }
        };
        let shape = &cubes[cube].shape;
        let Some(row_axes) = shape.get(cell_axes..).filter(|axes| !axes.is_empty()) else {
            return Err(Error::format(format!(
                "row {row} in hypercube {cube} of shape {shape}, which has no row axis"
            )));
        };
        let mut rest = ahead;
        let mut at = Shape::scalar();
        let (&last, inner) = row_axes.split_last().expect("there is a row axis");
        for &extent in inner {
            if extent == 0 {
                return Err(Error::format(format!(
                    "row {row} refers to hypercube {cube}, which has no cells: its shape is {shape}"
                )));
            }
            at = at.with_axis(rest % extent);
            rest /= extent;
        }
        let position = rest.checked_add(position).filter(|&position| position < last);
        let Some(position) = position else {
            return Err(Error::format(format!("row {row} is beyond hypercube {cube} of shape {shape}")));
        };
        at = at.with_axis(position);
        let stretch = left.min(row_axes[0] - at[0]);
        Ok(Some(Place { cube, at, stretch }))
    }

    /// `None` if a hypercube has several row axes, or rows are in more than `max_cubes` hypercubes.
    pub(super) fn runs(&self, cubes: &[CubeEntry], cell_axes: usize, max_cubes: usize) -> Option<Vec<RowRun>> {
        match self {
            RowMap::Cell => {
                if cubes.len() > max_cubes {
                    return None;
                }
                let defined = cubes.iter().enumerate().filter(|(_, cube)| cube.is_defined());
                Some(defined.map(|(i, _)| RowRun { rows: i as u64..i as u64 + 1, cube: i, position: 0 }).collect())
            }
            RowMap::Column => {
                let cube = cubes.first().filter(|cube| cube.shape.len() == cell_axes + 1)?;
                let rows = *cube.shape.last()?;
                Some(RowRun::of_all(rows))
            }
            RowMap::Intervals(intervals) => {
                let mut runs = Vec::new();
                let mut used = std::collections::BTreeSet::new();
                for interval in intervals {
                    let Some(cube) = interval.cube else { continue };
                    let rows = interval.first_row..interval.end_row;
                    let last = cubes[cube].shape.get(cell_axes).copied()?;
                    let inside = rows.end - rows.start <= last.saturating_sub(interval.position);
                    if cubes[cube].shape.len() != cell_axes + 1 || !inside {
                        return None;
                    }
                    used.insert(cube);
                    runs.push(RowRun { rows, cube, position: interval.position });
                }
                (used.len() <= max_cubes).then_some(runs)
            }
        }
    }
}
