//! A set of rows of a table, stored with one bit for each row.

use std::ops::Range;

const WORD: u64 = u64::BITS as u64;
/// Words for which the number of chosen rows before is kept.
const GROUP: usize = 8;

/// Chosen rows in order; 1.125 bits of memory for each row of the table.
#[derive(Debug, Default)]
pub(crate) struct RowSet {
    words: Vec<u64>,
    /// Chosen rows before each group of [`GROUP`] words.
    before: Vec<u64>,
    count: u64,
    /// Rows pushed, chosen or not.
    rows: u64,
}

impl RowSet {
    pub(crate) fn push(&mut self, is_chosen: bool) {
        let bit = self.rows % WORD;
        if bit == 0 {
            if self.words.len().is_multiple_of(GROUP) {
                self.before.push(self.count);
            }
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(is_chosen) << bit;
        }
        self.count += u64::from(is_chosen);
        self.rows += 1;
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn row(&self, index: u64) -> Option<u64> {
        if index >= self.count {
            return None;
        }
        let group = self.before.partition_point(|&before| before <= index) - 1;
        let mut left = index - self.before[group];
        for (number, &word) in self.words.iter().enumerate().skip(group * GROUP) {
            let ones = u64::from(word.count_ones());
            if left < ones {
                let mut word = word;
                for _ in 0..left {
                    word &= word - 1;
                }
                return Some(number as u64 * WORD + u64::from(word.trailing_zeros()));
            }
            left -= ones;
        }
        None
    }

    /// Ranges of the table's rows for these indices.
    pub(crate) fn ranges(&self, indices: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut left = indices.end.min(self.count).saturating_sub(indices.start);
        let mut next = self.row(indices.start);
        std::iter::from_fn(move || {
            let start = next.filter(|_| left > 0)?;
            let end = self.end_of_range(start).min(start + left);
            left -= end - start;
            next = self.next_chosen(end);
            Some(start..end)
        })
    }

    /// First row from `start` on that is not chosen.
    fn end_of_range(&self, start: u64) -> u64 {
        let mut row = start;
        while let Some(word) = self.words.get((row / WORD) as usize) {
            let ones = u64::from((word >> (row % WORD)).trailing_ones());
            row += ones;
            if !row.is_multiple_of(WORD) || ones == 0 {
                break;
            }
        }
        row
    }

    fn next_chosen(&self, start: u64) -> Option<u64> {
        let first = (start / WORD) as usize;
        let mask = u64::MAX << (start % WORD);
        let words = self.words.get(first..)?.iter().enumerate();
        let mut masked = words.map(|(number, &word)| if number == 0 { (number, word & mask) } else { (number, word) });
        let (number, word) = masked.find(|(_, word)| *word != 0)?;
        Some((first + number) as u64 * WORD + u64::from(word.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `chosen` rows and `left_out` ones in turn.
    fn periodic(rows: u64, chosen: u64, left_out: u64) -> Vec<bool> {
        (0..rows).map(|row| row % (chosen + left_out) < chosen).collect()
    }

    #[test]
    fn rows_and_ranges_are_those_of_a_list() {
        let cases = [
            vec![],
            vec![true; 1],
            vec![true; 64],
            vec![true; 1025],
            vec![false; 1025],
            periodic(3000, 1, 1),
            periodic(3000, 1, 700),
            periodic(3000, 700, 1),
            periodic(3000, 63, 65),
            periodic(3000, 64, 64),
            periodic(3000, 512, 512),
            (0..3000u64).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 == 0).collect(),
        ];
        for chosen in cases {
            let mut set = RowSet::default();
            chosen.iter().for_each(|&is_chosen| set.push(is_chosen));
            let list: Vec<u64> = (0u64..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(row, _)| row).collect();
            assert_eq!(set.len(), list.len() as u64);
            for index in 0..=set.len() {
                assert_eq!(set.row(index), list.get(index as usize).copied());
            }
            let step = 1 + list.len() / 13;
            for start in (0..=list.len()).step_by(step) {
                for end in (start..=list.len()).step_by(step) {
                    let found: Vec<Range<u64>> = set.ranges(start as u64..end as u64).collect();
                    let rows: Vec<u64> = found.iter().cloned().flatten().collect();
                    assert_eq!(rows, list[start..end]);
                    assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "ranges that touch: {found:?}");
                }
            }
        }
    }
}
