//! Runs of times: a line joins the points of one run, and none across a gap or to another field or
//! scan.

use crate::bins::{Merge, Times, median};
use crate::selection::RowKey;

/// A step that is more than this many times the median step is a gap.
const GAP: f64 = 5.;

/// Scan and field of the earliest row in each bin of [`Times`].
#[derive(Debug)]
pub(crate) struct Runs(Times<Earliest>);

/// TIME, scan and field; `None` before the first row.
#[derive(Debug, Clone, Copy, Default)]
struct Earliest(Option<(f64, i64, i64)>);

impl Earliest {
    /// Rows may come in any order: of those with one TIME the smallest scan and field count.
    fn take(&mut self, other: (f64, i64, i64)) {
        let is_earlier = |found: (f64, i64, i64)| {
            other.0.total_cmp(&found.0).then((other.1, other.2).cmp(&(found.1, found.2))).is_lt()
        };
        if self.0.is_none_or(is_earlier) {
            self.0 = Some(other);
        }
    }
}

impl Merge for Earliest {
    fn merge(&mut self, other: &Self) {
        other.0.into_iter().for_each(|found| self.take(found));
    }
}

impl Runs {
    /// `capacity` is that of the [`Times`] whose bins are joined.
    pub(crate) fn new(capacity: usize) -> Self {
        Runs(Times::new(capacity, 1))
    }

    pub(crate) fn add(&mut self, key: &RowKey) {
        self.0.at(key.time)[0].take((key.time, key.scan, key.field));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Marks the bins with which a run begins.
    pub(crate) fn starts(&self) -> Vec<bool> {
        let spans = self.0.spans();
        let steps: Vec<f64> = spans.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
        let keys: Vec<(i64, i64)> =
            self.0.iter().map(|found| found[0].0.map_or((0, 0), |(_, scan, field)| (scan, field))).collect();
        let mut starts = gaps(&steps);
        starts.iter_mut().zip(keys.windows(2)).for_each(|(start, pair)| *start |= pair[0] != pair[1]);
        std::iter::once(true).chain(starts).take(spans.len()).collect()
    }
}

fn gaps(steps: &[f64]) -> Vec<bool> {
    let usual = median(steps).unwrap_or(f64::INFINITY);
    steps.iter().map(|&step| step > GAP * usual).collect()
}

/// Marks those of the ascending places with which a run begins, after a gap.
pub(crate) fn starts_of(places: &[f64]) -> Vec<bool> {
    let steps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    std::iter::once(true).chain(gaps(&steps)).take(places.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_gaps_fields_and_scans_in_any_order_of_rows() {
        // TIME, scan, field
        let rows = [(0., 1, 0), (1., 1, 0), (2., 1, 1), (3., 2, 1), (4., 2, 1), (40., 2, 1), (41., 2, 1)];
        let wanted = [true, false, true, true, false, true, false];
        for order in [[0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [0, 4, 2, 6, 1, 5, 3]] {
            let mut runs = Runs::new(16);
            for (time, scan, field) in order.map(|number| rows[number]) {
                // a second array observes scan 7 at the same times
                for (scan, field) in [(7, 3), (scan, field)] {
                    runs.add(&RowKey { time, antenna1: 0, antenna2: 1, spw: 0, field, scan });
                }
            }
            assert_eq!(runs.starts(), wanted);
        }
        assert!(Runs::new(4).starts().is_empty());
        assert_eq!(starts_of(&[1., 2., 3., 9., 10.]), [true, false, false, true, false]);
    }
}
