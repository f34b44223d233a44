//! Line of the percentage of flagged visibilities by time.

use super::drawing::{Drawing, Maker, flag_line, time_axis};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::{Merge, Times};
use crate::part::{Flags, Part, Row};
use crate::request::Quantity;
use crate::runs::Runs;

/// Further times make neighbouring ones merge.
const MAX_TIMES: usize = 4096;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "flag_time",
    quantities: &[Quantity::Flagged],
    rows: Some(RowPlot {
        sums: |_| &SUMS,
        title: "Flagged, by time",
        note: Words::average_of_correlations,
        empty: Drawing::empty_lines,
    }),
};

pub(super) static SUMS: SumsKind = SumsKind {
    needs_runs: true,
    ..SumsKind::of_flags("flags by time", |_, _| {
        Box::new(FlagTimes { flags: Times::new(MAX_TIMES, 1), runs: Runs::new(MAX_TIMES) })
    })
};

#[derive(Debug)]
struct FlagTimes {
    flags: Times<Flags>,
    runs: Runs,
}

impl Sums for FlagTimes {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        self.runs.add(&row.key);
        self.flags.at(row.key.time)[0].merge(&part.all_flags(row));
    }

    fn bytes(&self) -> usize {
        self.flags.bytes() + self.runs.bytes()
    }

    fn draw(&self, _: &Maker<'_>, _: &Part) -> Drawing {
        let y = self.flags.iter().map(|flags| flags[0].percent()).collect();
        flag_line(time_axis(), self.flags.starts(), y, &self.runs.starts())
    }
}
