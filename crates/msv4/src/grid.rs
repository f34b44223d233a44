//! Where the rows of a partition lie on its grid of times and baselines, as runs of rows: one for a
//! table whose grid is full and in order.
//!
//! A place of the grid is counted as `time * baselines + baseline`. While rows are added, times and
//! baselines have the numbers in which they were first met; [`GridBuilder::finish`] sorts both.

use std::collections::HashMap;
use std::ops::Range;

/// The grid of a partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Grid {
    /// The times, ascending, in seconds of MJD.
    pub times: Vec<f64>,
    /// ANTENNA1 and ANTENNA2 of each baseline, ascending, as they are stored.
    pub baselines: Vec<(i32, i32)>,
    /// Number of rows that have a place.
    pub rows: u64,
    /// Runs ordered by their first place; places and rows are consecutive in each.
    across: Vec<Run>,
    /// Runs ordered by baseline and time; times and rows are consecutive in each.
    along: Vec<Along>,
}

/// Rows that follow each other, at places of equal distance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedRun {
    /// Numbers of the rows.
    pub rows: Range<u64>,
    /// Place of the first row, `time * baselines + baseline`.
    pub place: u64,
    /// Distance between the places of two rows: 1, or the number of baselines.
    pub step: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    place: u64,
    row: u64,
    len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Along {
    baseline: u32,
    time: u32,
    row: u64,
    len: u32,
}

impl Grid {
    /// Number of places, with a row or without.
    pub fn places(&self) -> u64 {
        self.times.len() as u64 * self.baselines.len() as u64
    }

    /// Whether every place has a row, in the order of the table: the rows are a range.
    pub fn as_range(&self) -> Option<Range<u64>> {
        match (&self.across[..], &self.along[..]) {
            ([run], []) if run.len == self.places() => Some(run.row..run.row + run.len),
            _ => None,
        }
    }

    /// The row (from 0) of each place of some times and baselines, given by their numbers; -1 where
    /// there is none. Baselines are the faster axis.
    ///
    /// # Panics
    /// If a number is too large.
    pub fn rows_at(&self, times: &[usize], baselines: &[usize]) -> Vec<i64> {
        let width = self.baselines.len();
        let mut found = vec![-1; times.len() * baselines.len()];
        if width == 0 || baselines.is_empty() {
            return found;
        }
        let mut line = vec![-1; width];
        for (&time, out) in times.iter().zip(found.chunks_mut(baselines.len())) {
            assert!(time < self.times.len(), "time {time} of {}", self.times.len());
            let (start, end) = ((time * width) as u64, ((time + 1) * width) as u64);
            line.fill(-1);
            let first = self.across.partition_point(|run| run.place + run.len <= start);
            for run in self.across[first..].iter().take_while(|run| run.place < end) {
                let (from, to) = (run.place.max(start), (run.place + run.len).min(end));
                let rows = run.row + (from - run.place)..;
                for (place, row) in line[(from - start) as usize..(to - start) as usize].iter_mut().zip(rows) {
                    *place = row as i64;
                }
            }
            for (&baseline, out) in baselines.iter().zip(out) {
                *out = line[baseline];
            }
        }
        if !self.along.is_empty() {
            for (column, &baseline) in baselines.iter().enumerate() {
                for (line, &time) in times.iter().enumerate() {
                    if let Some(row) = self.row_along(baseline, time) {
                        found[line * baselines.len() + column] = row as i64;
                    }
                }
            }
        }
        found
    }

    fn row_along(&self, baseline: usize, time: usize) -> Option<u64> {
        let key = (baseline as u32, time as u32);
        let after = self.along.partition_point(|run| (run.baseline, run.time) <= key);
        let run = self.along[..after].last()?;
        let inside = (run.baseline == key.0).then(|| key.1 - run.time)?;
        (inside < run.len).then(|| run.row + u64::from(inside))
    }

    /// The rows of the grid with their places, run by run, in no order.
    pub fn placed_runs(&self) -> impl Iterator<Item = PlacedRun> + '_ {
        let width = self.baselines.len() as u64;
        let across =
            self.across.iter().map(|run| PlacedRun { rows: run.row..run.row + run.len, place: run.place, step: 1 });
        let along = self.along.iter().map(move |run| PlacedRun {
            rows: run.row..run.row + u64::from(run.len),
            place: u64::from(run.time) * width + u64::from(run.baseline),
            step: width,
        });
        across.chain(along)
    }

    /// The rows of the grid, a range for each run, in no order.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let across = self.across.iter().map(|run| run.row..run.row + run.len);
        across.chain(self.along.iter().map(|run| run.row..run.row + u64::from(run.len)))
    }
}

/// A grid to which rows are added in ascending order.
#[derive(Debug, Default)]
pub(crate) struct GridBuilder {
    times: HashMap<u64, u32>,
    baselines: HashMap<(i32, i32), u32>,
    /// Times in the order in which they were met.
    met_times: Vec<f64>,
    met_baselines: Vec<(i32, i32)>,
    last: Option<(u32, u32)>,
    rows: u64,
    runs: Vec<Met>,
}

/// Rows that follow each other, at one time or of one baseline.
#[derive(Debug, Clone, Copy)]
struct Met {
    time: u32,
    baseline: u32,
    row: u64,
    len: u32,
    is_along: bool,
}

impl GridBuilder {
    /// Adds a row, and returns the number of its time in the order in which times were met.
    pub(crate) fn add(&mut self, row: u64, time: f64, baseline: (i32, i32)) -> u32 {
        let place = (self.time(time), self.baseline(baseline));
        self.last = Some(place);
        self.rows += 1;
        if !self.runs.last_mut().is_some_and(|run| run.extend(place, row)) {
            self.runs.push(Met { time: place.0, baseline: place.1, row, len: 1, is_along: false });
        }
        place.0
    }

    /// The same time as that of the last row is most frequent.
    fn time(&mut self, time: f64) -> u32 {
        if let Some((last, _)) = self.last
            && self.met_times[last as usize].to_bits() == time.to_bits()
        {
            return last;
        }
        *self.times.entry(time.to_bits()).or_insert_with(|| {
            self.met_times.push(time);
            self.met_times.len() as u32 - 1
        })
    }

    /// Baselines come in the same order again and again.
    fn baseline(&mut self, baseline: (i32, i32)) -> u32 {
        if let Some((_, last)) = self.last {
            let count = self.met_baselines.len() as u32;
            for next in [if last + 1 < count { last + 1 } else { 0 }, last] {
                if self.met_baselines[next as usize] == baseline {
                    return next;
                }
            }
        }
        *self.baselines.entry(baseline).or_insert_with(|| {
            self.met_baselines.push(baseline);
            self.met_baselines.len() as u32 - 1
        })
    }

    /// The grid with sorted times and baselines; `None` if two rows have one place.
    pub(crate) fn finish(self) -> Option<Grid> {
        let times = ranks(&self.met_times, f64::total_cmp);
        let baselines = ranks(&self.met_baselines, Ord::cmp);
        let width = baselines.sorted.len() as u64;
        let (mut across, mut along): (Vec<Run>, Vec<Along>) = (Vec::new(), Vec::new());
        for run in &self.runs {
            let steps = (0..run.len).map(|step| {
                let (time, baseline) = if run.is_along { (step, 0) } else { (0, step) };
                let time = times.ranks[(run.time + time) as usize];
                (time, baselines.ranks[(run.baseline + baseline) as usize], run.row + u64::from(step))
            });
            if run.is_along {
                for (time, baseline, row) in steps {
                    match along.last_mut() {
                        Some(last)
                            if last.baseline == baseline
                                && last.time + last.len == time
                                && last.row + u64::from(last.len) == row =>
                        {
                            last.len += 1;
                        }
                        _ => along.push(Along { baseline, time, row, len: 1 }),
                    }
                }
            } else {
                for (time, baseline, row) in steps {
                    extend(&mut across, Run { place: u64::from(time) * width + u64::from(baseline), row, len: 1 });
                }
            }
        }
        across.sort_unstable_by_key(|run| run.place);
        let mut merged = Vec::new();
        across.into_iter().for_each(|run| extend(&mut merged, run));
        merged.shrink_to_fit();
        along.sort_unstable_by_key(|run| (run.baseline, run.time));
        let grid = Grid { times: times.sorted, baselines: baselines.sorted, rows: self.rows, across: merged, along };
        grid.is_unique().then_some(grid)
    }
}

impl Grid {
    fn is_unique(&self) -> bool {
        let width = self.baselines.len() as u64;
        self.across.windows(2).all(|pair| pair[0].place + pair[0].len <= pair[1].place)
            && self
                .along
                .windows(2)
                .all(|pair| pair[0].baseline != pair[1].baseline || pair[0].time + pair[0].len <= pair[1].time)
            && (self.along.is_empty()
                || self
                    .across
                    .iter()
                    .flat_map(|run| run.place..run.place + run.len)
                    .all(|place| self.row_along((place % width) as usize, (place / width) as usize).is_none()))
    }
}

impl Met {
    /// Adds the row of this place if it follows; the second row decides on the direction.
    fn extend(&mut self, (time, baseline): (u32, u32), row: u64) -> bool {
        let is_next = |first: u32, next: u32| first.checked_add(self.len) == Some(next);
        let is_across = time == self.time && is_next(self.baseline, baseline);
        let is_along = baseline == self.baseline && is_next(self.time, time);
        let is_added = row == self.row + u64::from(self.len)
            && match self.len {
                1 => is_across || is_along,
                _ if self.is_along => is_along,
                _ => is_across,
            };
        if is_added {
            self.is_along = is_along;
            self.len += 1;
        }
        is_added
    }
}

fn extend(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.place + last.len == run.place && last.row + last.len == run.row => last.len += run.len,
        _ => runs.push(run),
    }
}

struct Ranks<T> {
    sorted: Vec<T>,
    /// The place of each value in `sorted`.
    ranks: Vec<u32>,
}

fn ranks<T: Copy>(values: &[T], compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> Ranks<T> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|a, b| compare(&values[*a as usize], &values[*b as usize]));
    let mut ranks = vec![0; values.len()];
    for (rank, &number) in order.iter().enumerate() {
        ranks[number as usize] = rank as u32;
    }
    Ranks { sorted: order.iter().map(|&number| values[number as usize]).collect(), ranks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(rows: &[(f64, i32, i32)]) -> Option<Grid> {
        let mut grid = GridBuilder::default();
        for (row, &(time, first, second)) in rows.iter().enumerate() {
            grid.add(row as u64, time, (first, second));
        }
        grid.finish()
    }

    fn all(grid: &Grid) -> Vec<i64> {
        let times: Vec<_> = (0..grid.times.len()).collect();
        let baselines: Vec<_> = (0..grid.baselines.len()).collect();
        grid.rows_at(&times, &baselines)
    }

    #[test]
    fn a_full_grid_in_order_is_one_run() {
        let rows: Vec<_> = (0..30).map(|row| (f64::from(row / 3), 0, row % 3)).collect();
        let grid = built(&rows).unwrap();
        assert_eq!(grid.as_range(), Some(0..30));
        assert_eq!(all(&grid), (0..30).collect::<Vec<_>>());
        assert_eq!(grid.rows_at(&[9, 2], &[2, 0]), [29, 27, 8, 6]);
    }

    #[test]
    fn one_baseline_after_the_other_takes_a_run_each() {
        let rows: Vec<_> = (0..30).map(|row| (f64::from(row % 10), 0, row / 10)).collect();
        let grid = built(&rows).unwrap();
        assert_eq!(grid.runs().count(), 3);
        let runs: Vec<_> = grid.placed_runs().map(|run| (run.rows, run.place, run.step)).collect();
        assert_eq!(runs, [(0..10, 0, 3), (10..20, 1, 3), (20..30, 2, 3)]);
        assert_eq!(grid.rows_at(&[4], &[0, 1, 2]), [4, 14, 24]);
    }

    /// Any order of any rows: the places are those of a plain search.
    #[test]
    fn rows_are_found_where_they_were_put() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut repeated = 0;
        for case in 0..400 {
            let count = 1 + random(40);
            let rows: Vec<_> = (0..count)
                .map(|row| match case % 3 {
                    0 => (random(8) as f64, random(4) as i32, random(4) as i32),
                    1 => ((row / 5) as f64, (row % 5) as i32, random(2) as i32),
                    _ => ((row % 7) as f64, (row / 7) as i32, 0),
                })
                .collect();
            let mut unique = rows.clone();
            unique.sort_by(|a, b| a.partial_cmp(b).unwrap());
            unique.dedup();
            let Some(grid) = built(&rows) else {
                assert!(unique.len() < rows.len());
                repeated += 1;
                continue;
            };
            assert_eq!(unique.len(), rows.len());
            let found = all(&grid);
            assert_eq!(found.iter().filter(|row| **row >= 0).count(), rows.len());
            let placed = grid.placed_runs().flat_map(|run| run.rows.zip((run.place..).step_by(run.step as usize)));
            let mut placed: Vec<_> = placed.collect();
            placed.sort_unstable();
            assert!((0..rows.len() as u64).eq(placed.iter().map(|(row, _)| *row)));
            assert!(placed.iter().all(|(row, place)| found[*place as usize] == *row as i64));
            for (place, &row) in found.iter().enumerate().filter(|(_, row)| **row >= 0) {
                let (time, baseline) = (place / grid.baselines.len(), place % grid.baselines.len());
                let (first, second) = grid.baselines[baseline];
                assert_eq!((grid.times[time], first, second), rows[row as usize]);
            }
        }
        assert!(repeated > 20 && repeated < 380);
    }
}
