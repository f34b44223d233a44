//! Computes how fast a file grows, in rows and bytes per second, as means over several seconds: in
//! a shorter time its writer may not have committed any rows. A poll checks the file for changes.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use crate::sample::Look;

/// Time over which the growth is averaged. If polls are further apart, the growth between the two
/// newest polls counts.
const RATE_TIME: Duration = Duration::from_secs(5);

/// Least time between two polls from which growth is computed.
const SHORTEST: Duration = Duration::from_secs(1);

/// Computes the rows and bytes per second by which all tables of a live file grow together, as
/// means over five seconds.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// Time, number of rows and number of bytes at recent polls, the newest last.
    looks: VecDeque<(SystemTime, u64, f64)>,
}

impl Rates {
    /// Adds the result of a poll; returns by how many rows and bytes per second the file grows, or
    /// `None` if no earlier poll is at least a second older.
    pub fn add(&mut self, look: &Look) -> Option<(f64, f64)> {
        let rows = look.all_rows();
        // another file, or a clock that was set
        if self.looks.back().is_some_and(|(then, before, _)| *before > rows || *then > look.taken) {
            self.looks.clear();
        }
        self.looks.push_back((look.taken, rows, look.bytes));
        let age = |then: SystemTime| look.taken.duration_since(then).unwrap_or_default();
        while self.looks.len() > 2 && age(self.looks[0].0) > RATE_TIME {
            self.looks.pop_front();
        }
        let (then, first_rows, first_bytes) = *self.looks.front()?;
        let seconds = age(then).as_secs_f64();
        let per_second = |amount: f64| amount.max(0.) / seconds;
        (age(then) >= SHORTEST).then(|| (per_second((rows - first_rows) as f64), per_second(look.bytes - first_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::look;

    #[test]
    fn means_over_five_seconds() {
        let mut rates = Rates::default();
        // 100 rows a second, committed each two seconds
        let found: Vec<_> = (0..10).map(|second| rates.add(&look(second as f64, second / 2 * 200))).collect();
        let rows = |rate: Option<(f64, f64)>| rate.map(|(rows, _)| rows);
        assert_eq!(rows(found[0]), None);
        assert_eq!(rows(found[1]), Some(0.));
        assert_eq!(rows(found[9]), Some(80.));
        assert_eq!(rows(found[8]), Some(120.));
        assert_eq!(rows(rates.add(&look(9.5, 0))), None, "rows that are fewer are those of another file");
        assert_eq!(rows(rates.add(&look(69.5, 600))), Some(10.), "looks that are further apart");
        assert_eq!(rates.looks.len(), 2);
    }
}
