//! Line of the percentage of flagged visibilities by channel.

use super::drawing::{Drawing, Maker, flag_line};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::Merge;
use crate::part::{Flags, Part, Row};
use crate::request::Quantity;
use crate::runs::starts_of;

/// Maximum number of frequency bins.
const MAX_CHANNELS: usize = 1 << 14;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "flag_channel",
    quantities: &[Quantity::Flagged],
    rows: Some(RowPlot {
        sums: |_| &SUMS,
        title: "Flagged, by channel",
        note: Words::average_of_correlations,
        empty: Drawing::empty_lines,
    }),
};

static SUMS: SumsKind = SumsKind {
    max_places: MAX_CHANNELS,
    ..SumsKind::of_flags("flags by channel", |part, _| Box::new(Channels(vec![Flags::default(); part.places().max(1)])))
};

/// An element for each frequency bin.
#[derive(Debug)]
struct Channels(Vec<Flags>);

impl Sums for Channels {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        part.flags(row, |place, flags| self.0[place].merge(&flags));
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    fn draw(&self, maker: &Maker<'_>, part: &Part) -> Drawing {
        let (axis, x, places) = maker.channel_centres(part);
        let starts = starts_of(&x);
        flag_line(axis, x, places.into_iter().map(|place| self.0[place].percent()).collect(), &starts)
    }
}
