//! Marks: digests of a column's bytes up to positions at regular distances, which tell where a
//! column begins to differ. docs/reference/layout.md, "Digests".

use std::ops::Range;

use crate::hash::Hasher;
use crate::native::StoredMarks;

/// Smallest distance of marks; doubled each time that they become too many.
pub(super) const MARK_BYTES: usize = 256 << 10;
/// Every second mark is dropped at this number.
const MOST: usize = 512;

/// Digests of a column up to each multiple of `step` × `MARK_BYTES`.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    step: u64,
    /// Multiples of `MARK_BYTES` so far, those without a mark included.
    count: u64,
    list: Vec<Mark>,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { step: 1, count: 0, list: Vec::new() }
    }
}

#[derive(Debug, Clone)]
struct Mark {
    /// First four bytes of the hash up to here, big-endian.
    hash: u32,
    /// Rows digested in one step, of which one contains the last byte before the mark.
    rows: Range<u64>,
}

impl Marks {
    /// Adds a mark, if due, of all bytes that `hasher` has hashed; the last is in one of `rows`.
    pub(super) fn add(&mut self, hasher: &Hasher, rows: Range<u64>) {
        self.count += 1;
        if !self.count.is_multiple_of(self.step) {
            return;
        }
        let &[a, b, c, d, ..] = hasher.finish().as_bytes();
        self.list.push(Mark { hash: u32::from_be_bytes([a, b, c, d]), rows });
        if self.list.len() == MOST {
            self.thin(2);
        }
    }

    /// Keeps every `step`-th mark.
    fn thin(&mut self, step: usize) {
        self.list = self.list.split_off(0).into_iter().skip(step - 1).step_by(step).collect();
        self.step = self.step.saturating_mul(step as u64);
    }

    fn every(&self) -> u64 {
        self.step.saturating_mul(MARK_BYTES as u64)
    }

    /// `None` if the column is too short for a mark.
    pub(crate) fn stored(&self) -> Option<StoredMarks> {
        let digits: String = self.list.iter().map(|mark| format!("{:08x}", mark.hash)).collect();
        (!digits.is_empty()).then_some(StoredMarks { every: self.every(), digits })
    }

    /// Rows in which the column begins to differ, from the last mark on if no mark differs. `None`
    /// if `stored` is malformed, or neither distance of marks is a multiple of the other.
    pub(super) fn first_difference(&self, stored: &StoredMarks, rows: u64) -> Option<Range<u64>> {
        let mut found = self.clone();
        let mut then = stored.numbers()?;
        if stored.every > found.every() {
            found.thin(usize::try_from(exact(stored.every, found.every())?).ok()?);
        } else {
            let step = usize::try_from(exact(found.every(), stored.every)?).ok()?;
            then = then.into_iter().skip(step - 1).step_by(step).collect();
        }
        let same = found.list.iter().zip(&then).take_while(|(mark, then)| mark.hash == **then).count();
        let start = same.checked_sub(1).map_or(0, |last| found.list[last].rows.start);
        let end = found.list.get(same).map_or(rows, |mark| mark.rows.end);
        Some(start..end)
    }
}

/// The quotient, if it is a whole number of at least 1.
fn exact(large: u64, small: u64) -> Option<u64> {
    let quotient = large.checked_div(small)?;
    (quotient > 0 && large.is_multiple_of(small)).then_some(quotient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKind;

    /// `count` rows of half of `MARK_BYTES`, of which one may be other.
    fn marks(count: u64, other: Option<u64>) -> Marks {
        let mut marks = Marks::default();
        let mut hasher = Hasher::new(HashKind::Blake3);
        for row in 0..count {
            hasher.update(&[u8::from(other == Some(row))]);
            if row % 2 == 1 {
                marks.add(&hasher, row..row + 1);
            }
        }
        marks
    }

    #[test]
    fn the_first_rows_that_differ_are_found() {
        for count in [4, 5, 1000, 5000] {
            let stored = marks(count, None).stored().expect("long enough");
            let width = 2 * stored.every / MARK_BYTES as u64;
            assert!(stored.digits.len() / 8 < MOST);
            for row in [0, 1, 2, 3, count / 2, count - 1] {
                let found = marks(count, Some(row)).first_difference(&stored, count).expect("in step");
                assert!(found.contains(&row), "row {row} of {count} is not in {found:?}");
                assert!(found.end - found.start <= width + 1, "{found:?}");
            }
        }
    }

    #[test]
    fn marks_at_other_distances_are_compared_where_both_are() {
        let stored = marks(5000, None).stored().expect("long enough");
        let found = marks(600, Some(300)).first_difference(&stored, 600).expect("multiples");
        assert!(found.contains(&300) && found.end - found.start < 20, "{found:?}");
        let stored = marks(600, None).stored().expect("long enough");
        let found = marks(5000, Some(300)).first_difference(&stored, 5000).expect("multiples");
        assert!(found.contains(&300) && found.end - found.start < 20, "{found:?}");
    }

    #[test]
    fn stored_marks_that_make_no_sense_tell_nothing() {
        let found = marks(600, None);
        let least = MARK_BYTES as u64;
        for (every, digits) in [
            (0, "00000000"),
            (3, "00000000"),
            (least, "0000"),
            (least, "+0000000"),
            (least, "00ä0000"),
            (least + 1, ""),
        ] {
            let stored = StoredMarks { every, digits: digits.to_owned() };
            assert_eq!(found.first_difference(&stored, 600), None, "{stored:?}");
        }
    }
}
