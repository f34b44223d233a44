//! Computes rates in rows and bytes per second, averaged over seconds: a single look may fall between two commits.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use super::sample::Look;

/// Time over which rates are averaged; the time between two looks if that is longer.
const RATE_TIME: Duration = Duration::from_secs(5);

/// Looks that are less than this apart give no rate.
const SHORTEST: Duration = Duration::from_secs(1);

/// Rows and bytes per second, summed over all tables of a live file, as means over five seconds.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// Time, number of rows and number of bytes of recent looks, the newest last.
    looks: VecDeque<(SystemTime, u64, f64)>,
}

impl Rates {
    /// Adds a look; returns rows and bytes per second, or `None` until looks more than a second apart are known.
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
    use crate::look::sample::tests::look;

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
