//! Line of the percentage of flagged visibilities by antenna.

use super::drawing::{Drawing, Maker, flag_line};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::Merge;
use crate::frame::Axis;
use crate::part::{Flags, Part, Row, antenna, slot, unshown};
use crate::request::Quantity;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "flag_antenna",
    quantities: &[Quantity::Flagged],
    rows: Some(RowPlot {
        sums: |_| &SUMS,
        title: "Flagged, by antenna",
        note: Words::average_of_correlations,
        empty: Drawing::empty_lines,
    }),
};

static SUMS: SumsKind = SumsKind::of_flags("flags by antenna", |_, _| Box::new(Antennas::default()));

#[derive(Debug, Default)]
struct Antennas {
    flags: Vec<Flags>,
    unshown: u64,
}

impl Sums for Antennas {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        let flags = part.all_flags(row);
        let mut numbers = vec![row.key.antenna1, row.key.antenna2];
        numbers.dedup();
        for number in numbers {
            match antenna(number) {
                Some(antenna) => slot(&mut self.flags, antenna).merge(&flags),
                None => self.unshown += 1,
            }
        }
    }

    fn unshown(&self) -> String {
        unshown(self.unshown)
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.flags[..])
    }

    fn draw(&self, maker: &Maker<'_>, _: &Part) -> Drawing {
        let count = self.flags.len().max(maker.known.antennas.len());
        let names = (0..count).map(|number| maker.known.antenna(number)).collect();
        let y = (0..count).map(|number| self.flags.get(number).map_or(f32::NAN, Flags::percent)).collect();
        let x = (0..count).map(|number| number as f64).collect();
        flag_line(Axis::named("antenna", names), x, y, &vec![true; count])
    }
}
