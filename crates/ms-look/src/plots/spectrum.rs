//! Lines of amplitude and phase against frequency.

use super::drawing::{Drawing, Maker};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::frame::{Array, Numbers};
use crate::part::{Part, Row, Sum};
use crate::request::{Quantity, Request};
use crate::runs::starts_of;

/// Maximum number of frequency bins.
const MAX_CHANNELS: usize = 1 << 14;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "spectrum",
    quantities: &[Quantity::Amp, Quantity::Phase, Quantity::Real, Quantity::Imag],
    rows: Some(RowPlot {
        sums: of,
        title: "{quantity} against frequency",
        note: Words::average,
        empty: Drawing::empty_lines,
    }),
};

static NEWEST: SumsKind = SumsKind {
    newest: true,
    max_places: MAX_CHANNELS,
    ..SumsKind::of_data("newest spectrum", |part, _| Box::new(Spectrum::new(part, Some(f64::NEG_INFINITY))))
};

static ALL: SumsKind = SumsKind {
    max_places: MAX_CHANNELS,
    ..SumsKind::of_data("spectrum", |part, _| Box::new(Spectrum::new(part, None)))
};

fn of(request: &Request) -> &'static SumsKind {
    if request.time == (None, None) { &NEWEST } else { &ALL }
}

#[derive(Debug)]
struct Spectrum {
    /// An element for each frequency bin and correlation, the correlation fastest.
    sums: Vec<Sum>,
    /// TIME of the rows that are added, in seconds of MJD; `None`: all rows are.
    newest: Option<f64>,
}

impl Spectrum {
    fn new(part: &Part, newest: Option<f64>) -> Self {
        Spectrum { sums: vec![Sum::default(); part.places().max(1) * part.correlations.len().max(1)], newest }
    }
}

impl Sums for Spectrum {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        let (sums, time) = (&mut self.sums, row.key.time);
        if let Some(newest) = &mut self.newest {
            if time < *newest {
                return;
            }
            if time > *newest {
                *newest = time;
                sums.fill(Sum::default());
            }
        }
        let count = part.correlations.len();
        part.good(row, |place, correlation, value| sums[place * count + correlation].add(value));
    }

    fn wants(&self, time: f64) -> bool {
        self.newest.is_none_or(|newest| time >= newest)
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.sums[..])
    }

    fn draw(&self, maker: &Maker<'_>, part: &Part) -> Drawing {
        let (x, centres, places) = maker.channel_centres(part);
        let count = part.correlations.len();
        let sums: Vec<&[Sum]> =
            places.into_iter().map(|place| &self.sums[place * count..(place + 1) * count]).collect();
        let starts = starts_of(&centres);
        let mut drawing = maker.lines(x, centres, &sums, &starts);
        if maker.request.quantity == Quantity::Amp {
            let phase = |sum: &Sum| match sum.count {
                0 => f32::NAN,
                _ => sum.im.atan2(sum.re).to_degrees() as f32,
            };
            let shape = [maker.correlations().len(), sums.len()];
            let phases = maker.by_correlation(&sums, phase);
            drawing.arrays.push(Array::new("phase", shape, Numbers::F32(phases)));
        }
        drawing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accumulate::Accumulator;
    use crate::accumulate::tests::{add, sums};

    #[test]
    fn the_newest_integration_replaces_the_one_before() {
        let mut accumulator = Accumulator::new(&NEWEST, &[]);
        add(&mut accumulator, 4..6);
        assert!(!accumulator.wants(1.) && accumulator.wants(2.) && accumulator.wants(3.));
        add(&mut accumulator, 0..4);
        let Spectrum { sums: found, newest } = sums(&accumulator);
        assert_eq!(*newest, Some(2.));
        assert_eq!(found.iter().map(|sum| sum.re).collect::<Vec<_>>(), [90., 0., 94., 96., 98., 100.]);
    }
}
