//! Image of a quantity by the two antennas of a baseline.
//!
//! Sums are in a list by baseline: those of the antennas a and b, numbered from 0, a <= b, are at
//! index b (b + 1) / 2 + a.

use super::drawing::{Drawing, Maker, with_ends};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::Merge;
use crate::frame::{Array, Axis, Numbers};
use crate::part::{Flags, Part, Row, Seen, Sum, antenna, slot, unshown};
use crate::request::{Measure, Quantity, Request};
use crate::selection::RowKey;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "baselines",
    quantities: &[Quantity::Amp, Quantity::Phase, Quantity::Real, Quantity::Imag, Quantity::Flagged],
    rows: Some(RowPlot {
        sums: of,
        title: "{quantity}, by baseline",
        note: Words::average_of_correlations,
        empty: Drawing::empty_image,
    }),
};

static VISIBILITIES: SumsKind =
    SumsKind::of_data("visibilities by baseline", |_, _| Box::new(Pairs::<Pair>::default()));

static FLAGS: SumsKind = SumsKind::of_flags("flags by baseline", |_, _| Box::new(Pairs::<Flags>::default()));

fn of(request: &Request) -> &'static SumsKind {
    if request.measure() == Measure::Flags { &FLAGS } else { &VISIBILITIES }
}

#[derive(Debug, Default)]
struct Pairs<T> {
    list: Vec<T>,
    unshown: u64,
}

trait Cell: Default + Clone + std::fmt::Debug + Send + Sync + 'static {
    fn add(&mut self, row: &Row<'_>, part: &Part);

    fn value(&self, maker: &Maker<'_>) -> f32;

    /// 1 if all visibilities of the baseline are left out as flagged, else 0.
    fn all_flagged(&self) -> u8;
}

#[derive(Debug, Clone, Default)]
struct Pair {
    sum: Sum,
    seen: Seen,
}

impl<T: Cell> Sums for Pairs<T> {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        match pair(&row.key) {
            Some(pair) => slot(&mut self.list, pair).add(row, part),
            None => self.unshown += 1,
        }
    }

    fn unshown(&self) -> String {
        unshown(self.unshown)
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.list[..])
    }

    fn draw(&self, maker: &Maker<'_>, _: &Part) -> Drawing {
        let seen = (0..).find(|&antenna| index(0, antenna) >= self.list.len()).unwrap_or(0);
        let count = seen.max(maker.known.antennas.len().min(1024));
        let cells = || (0..count).flat_map(|y| (0..count).map(move |x| self.list.get(index(y, x))));
        let raster: Vec<f32> = cells().map(|cell| cell.map_or(f32::NAN, |cell| cell.value(maker))).collect();
        let flagged = cells().map(|cell| cell.map_or(0, Cell::all_flagged)).collect();
        let edges: Vec<f64> = (0..=count).map(|antenna| antenna as f64 - 0.5).collect();
        let names: Vec<String> = (0..count).map(|antenna| maker.known.antenna(antenna)).collect();
        Drawing {
            x: Axis::named("antenna", names.clone()),
            y: Axis::named("antenna", names),
            z: Some(with_ends(maker.quantity_axis(), &raster)),
            series: None,
            arrays: vec![
                Array::new("raster", [count, count], Numbers::F32(raster)),
                Array::new("flagged", [count, count], Numbers::U8(flagged)),
                Array::new("x", [count + 1], Numbers::F64(edges.clone())),
                Array::new("y", [count + 1], Numbers::F64(edges)),
            ],
        }
    }
}

impl Cell for Pair {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        part.good(row, |_, _, value| self.sum.add(value));
        part.seen(row, |_, is_flagged| self.seen.add(is_flagged));
    }

    fn value(&self, maker: &Maker<'_>) -> f32 {
        maker.value(&self.sum)
    }

    fn all_flagged(&self) -> u8 {
        self.seen.all_flagged()
    }
}

impl Cell for Flags {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        self.merge(&part.all_flags(row));
    }

    fn value(&self, _: &Maker<'_>) -> f32 {
        self.percent()
    }

    fn all_flagged(&self) -> u8 {
        0
    }
}

fn index(first: usize, second: usize) -> usize {
    let (low, high) = (first.min(second), first.max(second));
    high * (high + 1) / 2 + low
}

/// `None` if an antenna number is negative, or 1024 or more.
fn pair(key: &RowKey) -> Option<usize> {
    Some(index(antenna(key.antenna1)?, antenna(key.antenna2)?))
}
