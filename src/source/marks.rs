//! Marks: digests of a column's bytes up to positions at regular distances, which tell where a column begins to differ.
//! docs/layout.md, "Digests".

use std::ops::Range;

use sha2::{Digest as _, Sha256 as Hasher};

use crate::native::StoredMarks;

/// Smallest distance between two marks (digests of all bytes of a column before a position), in bytes of the column; it
/// is doubled each time that the marks become too many.
const LEAST: u64 = 256 << 10;
/// Number of marks (digests of a column's beginning) at which every second one is dropped, so that their distance
/// doubles.
const MOST: usize = 512;

/// The marks of a column: digests of its bytes up to each multiple of the distance `every`, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    every: u64,
    list: Vec<Mark>,
}

#[derive(Debug, Clone)]
struct Mark {
    /// The first four bytes of the SHA-256 of all bytes of the column from its beginning up to this mark (a position in
    /// its bytes), as a big-endian number.
    sha: u32,
    /// The rows (half-open, from 0) one of which contains the last byte before this mark, a position in the bytes of
    /// the column; they were digested in one step.
    rows: Range<u64>,
}

impl Marks {
    /// Makes an empty list of marks (digests of a column's beginning); also returns the number of bytes before the
    /// first mark.
    pub(super) fn new() -> (Self, u64) {
        (Marks { every: LEAST, list: Vec::new() }, LEAST)
    }

    /// Adds a mark, a digest by which one finds where a column begins to differ: that of all bytes which `sha` has
    /// hashed. The last of these bytes is in one of `rows` (half-open, from 0), which were hashed in one step. Returns
    /// the number of further bytes to hash before the next mark is added.
    pub(super) fn add(&mut self, sha: &Hasher, rows: Range<u64>) -> u64 {
        let [a, b, c, d, ..]: [u8; 32] = sha.clone().finalize().into();
        self.list.push(Mark { sha: u32::from_be_bytes([a, b, c, d]), rows });
        if self.list.len() == MOST {
            self.thin(2);
        }
        self.every
    }

    /// Keeps only every `step`-th mark (digest of the column's beginning), and multiplies the distance of marks by
    /// `step`.
    fn thin(&mut self, step: usize) {
        self.list = self.list.split_off(0).into_iter().skip(step - 1).step_by(step).collect();
        self.every = self.every.saturating_mul(step as u64);
    }

    /// The marks (digests of the column's beginning) in the form that a native HDF5 file stores; `None` if the column
    /// is too short for a mark.
    pub(crate) fn stored(&self) -> Option<StoredMarks> {
        let digits: String = self.list.iter().map(|mark| format!("{:08x}", mark.sha)).collect();
        (!digits.is_empty()).then_some(StoredMarks { every: self.every, sha256: digits })
    }

    /// Compares these marks (digests of the beginnings of a column) with marks `stored` earlier. Returns the range of rows
    /// (half-open, from 0) in which the column, now of `rows` rows, begins to differ; the rows from the last mark on if no mark
    /// differs. `None` if `stored` is malformed, or if the number of bytes from one mark to the next, here and in `stored`, is in
    /// neither case a multiple of the other.
    pub(super) fn first_difference(&self, stored: &StoredMarks, rows: u64) -> Option<Range<u64>> {
        let mut found = self.clone();
        let mut then = stored.numbers()?;
        if stored.every > found.every {
            found.thin(usize::try_from(exact(stored.every, found.every)?).ok()?);
        } else {
            let step = usize::try_from(exact(found.every, stored.every)?).ok()?;
            then = then.into_iter().skip(step - 1).step_by(step).collect();
        }
        let same = found.list.iter().zip(&then).take_while(|(mark, then)| mark.sha == **then).count();
        let start = same.checked_sub(1).map_or(0, |last| found.list[last].rows.start);
        let end = found.list.get(same).map_or(rows, |mark| mark.rows.end);
        Some(start..end)
    }
}

/// The quotient of `large` and `small` if it is a whole number of at least 1; otherwise `None`.
fn exact(large: u64, small: u64) -> Option<u64> {
    let quotient = large.checked_div(small)?;
    (quotient > 0 && large.is_multiple_of(small)).then_some(quotient)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of `count` rows of LEAST / 2 bytes, of which one may be other.
    fn marks(count: u64, other: Option<u64>) -> Marks {
        let (mut marks, mut left) = Marks::new();
        let mut sha = Hasher::new();
        for row in 0..count {
            sha.update([u8::from(other == Some(row))]);
            left -= LEAST / 2;
            if left == 0 {
                left = marks.add(&sha, row..row + 1);
            }
        }
        marks
    }

    #[test]
    fn the_first_rows_that_differ_are_found() {
        for count in [4, 5, 1000, 5000] {
            let stored = marks(count, None).stored().expect("long enough");
            let width = stored.every / (LEAST / 2);
            assert!(stored.sha256.len() / 8 < MOST);
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
        for (every, sha256) in [
            (0, "00000000"),
            (3, "00000000"),
            (LEAST, "0000"),
            (LEAST, "+0000000"),
            (LEAST, "00ä0000"),
            (LEAST + 1, ""),
        ] {
            let stored = StoredMarks { every, sha256: sha256.to_owned() };
            assert_eq!(found.first_difference(&stored, 600), None, "{stored:?}");
        }
    }
}
