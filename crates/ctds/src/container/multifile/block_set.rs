//! Sets of block numbers of a MultiFile, stored as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of block numbers: half-open ranges that neither touch nor overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BlockSet {
    /// End of each range by its start.
    ranges: BTreeMap<u64, u64>,
}

impl BlockSet {
    pub(super) fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        while let Some((&known, &known_end)) = self.ranges.range(..=end).next_back()
            && known_end >= start
        {
            self.ranges.remove(&known);
            start = start.min(known);
            end = end.max(known_end);
        }
        self.ranges.insert(start, end);
    }

    pub(super) fn remove(&mut self, range: Range<u64>) {
        while !range.is_empty()
            && let Some((&known, &known_end)) = self.ranges.range(..range.end).next_back()
            && known_end > range.start
        {
            self.ranges.remove(&known);
            if known < range.start {
                self.ranges.insert(known, range.start);
            }
            if known_end > range.end {
                self.ranges.insert(range.end, known_end);
            }
        }
    }

    /// Whether the set has the start of `range`, and the longest part from there with that answer.
    pub(super) fn split(&self, range: Range<u64>) -> (bool, Range<u64>) {
        if let Some((_, &end)) = self.ranges.range(..=range.start).next_back()
            && end > range.start
        {
            return (true, range.start..range.end.min(end));
        }
        let end = self.ranges.range(range.clone()).next().map_or(range.end, |(&start, _)| start);
        (false, range.start..end)
    }

    /// Removes the lowest consecutive numbers, at most `count`.
    pub(super) fn take(&mut self, count: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ranges.first_key_value()?;
        let taken = start..end.min(start.saturating_add(count));
        self.remove(taken.clone());
        Some(taken)
    }

    /// Ascending.
    pub(super) fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    pub(super) fn len(&self) -> u64 {
        self.ranges().map(|range| range.end - range.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn behaves_as_a_set_of_numbers() {
        let (mut set, mut plain) = (BlockSet::default(), BTreeSet::new());
        let mut random = 1_u32;
        for _ in 0..3000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let start = u64::from(random >> 26);
            let range = start..start + u64::from(random >> 20 & 7);
            if random >> 19 & 1 == 0 {
                set.insert(range.clone());
                plain.extend(range.clone());
            } else {
                set.remove(range.clone());
                plain.retain(|number| !range.contains(number));
            }
            assert_eq!(set.ranges().flatten().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
            assert!(set.ranges().zip(set.ranges().skip(1)).all(|(left, right)| left.end < right.start));
            assert_eq!(set.len(), plain.len() as u64);
            let (inside, part) = set.split(start..start + 9);
            assert!(part.end > start && part.clone().all(|number| plain.contains(&number) == inside));
            assert!(part.end == start + 9 || plain.contains(&part.end) != inside);
        }
        let lowest = set.take(1).unwrap();
        assert_eq!(Some(&lowest.start), plain.first());
    }
}
