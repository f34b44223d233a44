//! Lines of amplitude or phase against time.

use super::drawing::{Drawing, Maker, time_axis};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::Times;
use crate::part::{Part, Row, Sum};
use crate::request::Quantity;
use crate::runs::Runs;

/// Further times make neighbouring ones merge.
const MAX_TIMES: usize = 4096;

pub(super) static AMPLITUDE: PlotKind = PlotKind {
    name: "amp_time",
    quantities: &[Quantity::Amp, Quantity::Real, Quantity::Imag],
    rows: Some(AGAINST_TIME),
};

pub(super) static PHASE: PlotKind =
    PlotKind { name: "phase_time", quantities: &[Quantity::Phase], rows: Some(AGAINST_TIME) };

const AGAINST_TIME: RowPlot =
    RowPlot { sums: |_| &SUMS, title: "{quantity} against time", note: Words::average, empty: Drawing::empty_lines };

pub(super) static SUMS: SumsKind = SumsKind {
    needs_runs: true,
    ..SumsKind::of_data("series", |part, _| {
        let sums = Times::new(MAX_TIMES, part.correlations.len().max(1));
        Box::new(Series { sums, runs: Runs::new(MAX_TIMES) })
    })
};

#[derive(Debug)]
struct Series {
    sums: Times<Sum>,
    runs: Runs,
}

impl Sums for Series {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        self.runs.add(&row.key);
        let line = self.sums.at(row.key.time);
        part.good(row, |_, correlation, value| line[correlation].add(value));
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.runs.bytes()
    }

    fn draw(&self, maker: &Maker<'_>, _: &Part) -> Drawing {
        let sums: Vec<&[Sum]> = self.sums.iter().collect();
        maker.lines(time_axis(), self.sums.starts(), &sums, &self.runs.starts())
    }
}

#[cfg(test)]
mod tests {
    use ctds::value::Complex32;

    use super::*;
    use crate::accumulate::Accumulator;
    use crate::accumulate::tests::{add, selection, sums};
    use crate::selection::RowKey;

    #[test]
    fn flagged_and_infinite_cells_are_left_out() {
        let mut accumulator = Accumulator::new(&SUMS, &[]);
        add(&mut accumulator, 0..2);
        let data = [f32::NAN, 1., f32::INFINITY, 5., 7., 9.].map(|re| Complex32::new(re, 0.));
        let key = RowKey { time: 0., antenna1: 0, antenna2: 1, spw: 0, field: 0, scan: 0 };
        let row = Row {
            key,
            flag_row: false,
            uvw: [0.; 3],
            data: &data,
            flags: &[],
            correlations: 2,
            channels: 3,
            axes: [&[]; 2],
        };
        accumulator.add(&row, &selection(), &[]);
        accumulator.add(&Row { flag_row: true, ..row }, &selection(), &[]);
        accumulator.add(&Row { data: &data[..2], channels: 1, ..row }, &selection(), &[]);
        assert_eq!(accumulator.misfits, 1);
        let Series { sums: times, .. } = sums(&accumulator);
        let line: Vec<_> =
            times.iter().next().unwrap().iter().map(|sum| (sum.re, sum.count, sum.low[0], sum.high[0])).collect();
        assert_eq!(line, [(6. + 36. + 7., 7, 0., 14.), (8. + 28. + 15., 7, 1., 15.)]);
    }
}
