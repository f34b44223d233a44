//! Bins of limited number for the sums of plots: `Times` merges neighbouring times when they are
//! too many, `Map` is a two-dimensional histogram whose extents double when points lie outside.

pub(crate) trait Merge: Default + Clone {
    fn merge(&mut self, other: &Self);
}

#[derive(Debug)]
pub(crate) struct Times<T> {
    /// Maximum number of bins; even, so that all can be merged in pairs.
    capacity: usize,
    /// Sums in a bin: one for each frequency bin or for each correlation, or a single one.
    width: usize,
    /// Bins in ascending order, without overlap.
    lines: Vec<Line>,
    sums: Vec<T>,
    free: Vec<usize>,
    /// Index of the bin that was used last, which is tried first.
    recent: usize,
}

/// A time bin.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    first: f64,
    last: f64,
    /// The sums begin at index `slot` * `width` of `sums`.
    slot: usize,
}

impl<T: Merge> Times<T> {
    pub(crate) fn new(capacity: usize, width: usize) -> Self {
        let capacity = capacity.max(2) & !1;
        Times { capacity, width, lines: Vec::new(), sums: Vec::new(), free: Vec::new(), recent: 0 }
    }

    /// `time` is finite, in seconds of MJD. A bin is added if none contains it.
    pub(crate) fn at(&mut self, time: f64) -> &mut [T] {
        let holds = |line: &Line| line.first <= time && time <= line.last;
        if !self.lines.get(self.recent).is_some_and(holds) {
            self.recent = match self.lines.binary_search_by(|line| line.first.total_cmp(&time)) {
                Ok(found) => found,
                Err(next) if next > 0 && holds(&self.lines[next - 1]) => next - 1,
                Err(next) => self.insert(next, time),
            };
        }
        let start = self.lines[self.recent].slot * self.width;
        &mut self.sums[start..start + self.width]
    }

    fn insert(&mut self, mut next: usize, time: f64) -> usize {
        if self.lines.len() == self.capacity {
            self.halve();
            next = self.lines.partition_point(|line| line.first <= time);
            // a time that was between two lines may be in one now
            if next > 0 && time <= self.lines[next - 1].last {
                return next - 1;
            }
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.sums.resize(self.sums.len() + self.width, T::default());
            self.sums.len() / self.width.max(1) - 1
        });
        self.lines.insert(next, Line { first: time, last: time, slot });
        next
    }

    fn halve(&mut self) {
        for pair in 0..self.lines.len() / 2 {
            let (line, other) = (self.lines[2 * pair], self.lines[2 * pair + 1]);
            for number in 0..self.width {
                let sum = std::mem::take(&mut self.sums[other.slot * self.width + number]);
                self.sums[line.slot * self.width + number].merge(&sum);
            }
            self.free.push(other.slot);
            self.lines[pair] = Line { last: other.last, ..line };
        }
        self.lines.truncate(self.lines.len() / 2);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.lines.iter().map(|line| &self.sums[line.slot * self.width..][..self.width])
    }

    pub(crate) fn starts(&self) -> Vec<f64> {
        self.lines.iter().map(|line| line.first).collect()
    }

    /// First and last TIME of each bin, in seconds of MJD.
    pub(crate) fn spans(&self) -> Vec<(f64, f64)> {
        self.lines.iter().map(|line| (line.first, line.last)).collect()
    }

    /// For each bin its extent along a time axis, as its first TIME and the end: the first TIME of
    /// the next bin, or, before a gap, its last TIME and the usual step.
    pub(crate) fn extents(&self) -> Vec<(f64, f64)> {
        let steps: Vec<f64> = self.lines.windows(2).map(|pair| pair[1].first - pair[0].last).collect();
        let usual = median(&steps).unwrap_or(1.);
        let after = self.lines.iter().skip(1).map(|line| line.first).chain([f64::INFINITY]);
        let extent = |(line, next): (&Line, f64)| match next - line.last {
            step if step <= SMALL_GAP * usual => (line.first, next),
            _ => (line.first, line.last + usual),
        };
        self.lines.iter().zip(after).map(extent).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sums.len() * size_of::<T>()
    }
}

/// A cell before a step of more than this many usual ones ends in a gap.
const SMALL_GAP: f64 = 1.5;

/// The lower one of two medians; `None` of an empty list.
pub(crate) fn median(list: &[f64]) -> Option<f64> {
    let mut sorted = list.to_vec();
    let at = sorted.len().checked_sub(1)? / 2;
    Some(*sorted.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// Bins along each of the two axes of a [`Map`].
pub(crate) const MAP: usize = 512;

/// Number of points in each bin.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    counts: Vec<u32>,
}

impl Map {
    pub(crate) const BYTES: usize = MAP * MAP * size_of::<u32>();

    pub(crate) fn new() -> Self {
        Map { counts: vec![0; MAP * MAP] }
    }

    pub(crate) fn add(&mut self, column: usize, line: usize) {
        let count = &mut self.counts[line.min(MAP - 1) * MAP + column.min(MAP - 1)];
        *count = count.saturating_add(1);
    }

    pub(crate) fn line(&self, line: usize) -> &[u32] {
        &self.counts[line * MAP..][..MAP]
    }

    /// Merges columns in pairs into the left half; the right half becomes empty.
    pub(crate) fn halve_columns(&mut self) {
        for line in self.counts.chunks_exact_mut(MAP) {
            for column in 0..MAP / 2 {
                line[column] = line[2 * column].saturating_add(line[2 * column + 1]);
            }
            line[MAP / 2..].fill(0);
        }
    }

    /// Merges squares of 2 x 2 bins into the central half of both axes; the rest becomes empty.
    pub(crate) fn halve_to_centre(&mut self) {
        let old = std::mem::replace(&mut self.counts, vec![0; MAP * MAP]);
        for (number, count) in old.into_iter().enumerate() {
            let (line, column) = (number / MAP, number % MAP);
            let new = &mut self.counts[(MAP / 4 + line / 2) * MAP + MAP / 4 + column / 2];
            *new = new.saturating_add(count);
        }
    }
}

/// Numbers below `count` in bit-reversed order: the first ones are already spread evenly.
pub(crate) fn spread(count: u64) -> impl Iterator<Item = u64> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = move |number: u64| if bits == 0 { 0 } else { number.reverse_bits() >> (64 - bits) };
    (0..count.next_power_of_two()).map(reversed).filter(move |&number| number < count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Default, PartialEq)]
    struct Sum(Vec<i64>);

    impl Merge for Sum {
        fn merge(&mut self, other: &Self) {
            self.0.extend(&other.0);
        }
    }

    /// Adds times in this order; the times in each line.
    fn lines(capacity: usize, times: impl Iterator<Item = i64>) -> (Vec<Vec<i64>>, Vec<(f64, f64)>) {
        let mut found = Times::<Sum>::new(capacity, 2);
        for time in times {
            found.at(time as f64)[1].0.push(time);
        }
        let sorted = |sums: &[Sum]| {
            assert_eq!(sums[0], Sum::default());
            let mut times = sums[1].0.clone();
            times.sort_unstable();
            times
        };
        (found.iter().map(sorted).collect(), found.extents())
    }

    #[test]
    fn times_have_own_bins_below_the_limit() {
        let (found, extents) = lines(4, [30, 10, 10, 40, 30, 20].into_iter());
        assert_eq!(found, [vec![10, 10], vec![20], vec![30, 30], vec![40]]);
        assert_eq!(extents, [(10., 20.), (20., 30.), (30., 40.), (40., 50.)], "the end by the usual step");
        assert_eq!(lines(4, [10, 20, 90].into_iter()).1, [(10., 20.), (20., 30.), (90., 100.)], "a gap");
        assert_eq!(lines(4, std::iter::empty()), (vec![], vec![]));
    }

    #[test]
    fn any_order_of_times_gives_disjoint_bins() {
        for count in [1u64, 7, 8, 9, 100, 1000] {
            for order in 0..3 {
                let times: Vec<i64> = match order {
                    0 => (0..count as i64).collect(),
                    1 => (0..count as i64).rev().collect(),
                    _ => spread(count).map(|time| time as i64).collect(),
                };
                let (found, extents) = lines(8, times.into_iter());
                assert!(found.len() <= 8 && found.len() >= 4.min(count as usize), "{count}: {found:?}");
                assert_eq!(found.concat(), (0..count as i64).collect::<Vec<_>>(), "in order, none twice");
                for (line, extent) in found.iter().zip(&extents) {
                    assert_eq!((line[0] as f64, (line[line.len() - 1] + 1) as f64), *extent);
                }
            }
        }
    }

    #[test]
    fn any_beginning_is_an_even_sample() {
        assert_eq!(spread(8).collect::<Vec<_>>(), [0, 4, 2, 6, 1, 5, 3, 7]);
        for count in [0, 1, 2, 3, 5, 100, 1000] {
            let mut all: Vec<u64> = spread(count).collect();
            let beginning: Vec<u64> = all.iter().copied().take(all.len() / 4).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            for quarter in 0..4 {
                let range = count * quarter / 4..count * (quarter + 1) / 4;
                let inside = beginning.iter().filter(|number| range.contains(number)).count();
                assert!(inside.abs_diff(beginning.len() / 4) <= 2, "{count}: {inside} of {}", beginning.len());
            }
        }
    }

    #[test]
    fn points_stay_where_they_are_when_extents_double() {
        let mut map = Map::new();
        map.add(0, 3);
        map.add(7, 3);
        map.add(511, 511);
        map.halve_columns();
        assert_eq!([map.line(3)[0], map.line(3)[3], map.line(511)[255]], [1; 3]);
        let mut map = Map::new();
        // from -256 to 256: a point at -256, -1 and 255
        [0, 255, 511].into_iter().for_each(|at| map.add(at, at));
        map.halve_to_centre();
        assert_eq!([128, 255, 383].map(|at| map.line(at)[at]), [1; 3]);
        assert_eq!(map.counts.iter().sum::<u32>(), 3);
    }
}
