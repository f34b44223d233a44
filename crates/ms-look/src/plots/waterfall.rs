//! Image of a quantity by frequency and time.

use super::drawing::{Drawing, Maker, time_axis, with_ends};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::{Merge, Times};
use crate::frame::{Array, Numbers};
use crate::part::{Flags, Part, Row, Seen, amplitude};
use crate::request::{Measure, Quantity, Request, Statistic};

/// Further times make neighbouring ones merge.
const MAX_TIMES: usize = 1024;
const MAX_CHANNELS: usize = 512;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "waterfall",
    quantities: &[Quantity::Amp, Quantity::Phase, Quantity::Real, Quantity::Imag, Quantity::Flagged],
    rows: Some(RowPlot {
        sums: of,
        title: "{quantity}",
        note: Words::average_of_correlations,
        empty: Drawing::empty_image,
    }),
};

pub(super) static AMPLITUDES: SumsKind = SumsKind {
    max_places: MAX_CHANNELS,
    ..SumsKind::of_data("waterfall of amplitudes", |part, _| Box::new(Waterfall::<Amplitude>::new(part)))
};

pub(super) static VECTORS: SumsKind = SumsKind {
    max_places: MAX_CHANNELS,
    ..SumsKind::of_data("waterfall of vectors", |part, _| Box::new(Waterfall::<Vector>::new(part)))
};

static FLAGS: SumsKind = SumsKind {
    max_places: MAX_CHANNELS,
    ..SumsKind::of_flags("waterfall of flags", |part, _| Box::new(Waterfall::<Flags>::new(part)))
};

fn of(request: &Request) -> &'static SumsKind {
    match request.measure() {
        Measure::Amplitude => &AMPLITUDES,
        Measure::Vector => &VECTORS,
        Measure::Flags => &FLAGS,
    }
}

#[derive(Debug)]
struct Waterfall<T>(Times<T>);

trait Pixel: Merge + std::fmt::Debug + Send + Sync + 'static {
    fn add(line: &mut [Self], row: &Row<'_>, part: &Part);

    fn value(&self, maker: &Maker<'_>) -> f32;

    /// 1 if all visibilities of the pixel are left out as flagged, else 0.
    fn all_flagged(&self) -> u8;
}

impl<T: Merge> Waterfall<T> {
    fn new(part: &Part) -> Self {
        Waterfall(Times::new(MAX_TIMES, part.places().max(1)))
    }
}

impl<T: Pixel> Sums for Waterfall<T> {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        T::add(self.0.at(row.key.time), row, part);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn draw(&self, maker: &Maker<'_>, part: &Part) -> Drawing {
        let (x, edges, places) = maker.channel_edges(part);
        let is_empty = part.correlations.is_empty() || places.is_empty();
        if is_empty {
            return Drawing { x, y: time_axis(), ..Drawing::empty_image(maker.quantity_axis()) };
        }
        let width = places.len();
        let (mut raster, mut flagged, mut y) = (Vec::new(), Vec::new(), Vec::new());
        let mut end = None;
        for (sums, (start, next)) in self.0.iter().zip(self.0.extents()) {
            if end.is_some_and(|end| end < start) {
                // a line without values shows the gap
                y.extend(end);
                raster.resize(raster.len() + width, f32::NAN);
                flagged.resize(flagged.len() + width, 0);
            }
            y.push(start);
            raster.extend(places.iter().map(|&place| sums[place].value(maker)));
            flagged.extend(places.iter().map(|&place| sums[place].all_flagged()));
            end = Some(next);
        }
        y.extend(end);
        let shape = [y.len() - 1, width];
        let z = with_ends(maker.quantity_axis(), &raster);
        let arrays = vec![
            Array::new("raster", shape, Numbers::F32(raster)),
            Array::new("flagged", shape, Numbers::U8(flagged)),
            Array::new("x", [width + 1], Numbers::F64(edges)),
            Array::new("y", [y.len()], Numbers::F64(y)),
        ];
        Drawing { x, y: time_axis(), z: Some(z), series: None, arrays }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Amplitude {
    sum: f64,
    max: f32,
    count: u32,
    seen: Seen,
}

impl Merge for Amplitude {
    fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.seen.merge(&other.seen);
        self.count = self.count.saturating_add(other.count);
    }
}

impl Pixel for Amplitude {
    fn add(line: &mut [Self], row: &Row<'_>, part: &Part) {
        part.good(row, |place, _, value| {
            let (sum, amplitude) = (&mut line[place], amplitude(value));
            sum.sum += f64::from(amplitude);
            sum.max = sum.max.max(amplitude);
            sum.count = sum.count.saturating_add(1);
        });
        part.seen(row, |place, is_flagged| line[place].seen.add(is_flagged));
    }

    fn all_flagged(&self) -> u8 {
        self.seen.all_flagged()
    }

    fn value(&self, maker: &Maker<'_>) -> f32 {
        match maker.request.statistic {
            _ if self.count == 0 => f32::NAN,
            Statistic::Max => self.max,
            Statistic::Mean => (self.sum / f64::from(self.count)) as f32,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Vector {
    re: f64,
    im: f64,
    count: u32,
    seen: Seen,
}

impl Merge for Vector {
    fn merge(&mut self, other: &Self) {
        self.re += other.re;
        self.im += other.im;
        self.seen.merge(&other.seen);
        self.count = self.count.saturating_add(other.count);
    }
}

impl Pixel for Vector {
    fn add(line: &mut [Self], row: &Row<'_>, part: &Part) {
        part.good(row, |place, _, value| {
            let sum = &mut line[place];
            sum.re += f64::from(value.re);
            sum.im += f64::from(value.im);
            sum.count = sum.count.saturating_add(1);
        });
        part.seen(row, |place, is_flagged| line[place].seen.add(is_flagged));
    }

    fn all_flagged(&self) -> u8 {
        self.seen.all_flagged()
    }

    fn value(&self, maker: &Maker<'_>) -> f32 {
        maker.complex(self.re, self.im, u64::from(self.count))
    }
}

impl Pixel for Flags {
    fn add(line: &mut [Self], row: &Row<'_>, part: &Part) {
        part.flags(row, |place, flags| line[place].merge(&flags));
    }

    fn value(&self, _: &Maker<'_>) -> f32 {
        self.percent()
    }

    fn all_flagged(&self) -> u8 {
        0
    }
}

#[cfg(test)]
mod tests {
    use ctds::value::Complex32;

    use super::*;
    use crate::accumulate::Accumulator;
    use crate::accumulate::tests::{selection, sums};
    use crate::selection::RowKey;

    #[test]
    fn channels_share_places_when_there_are_too_many() {
        let data = vec![Complex32::new(1., 0.); 1030];
        let key = RowKey { time: 0., antenna1: 0, antenna2: 1, spw: 0, field: 0, scan: 0 };
        let row = Row {
            key,
            flag_row: false,
            uvw: [0.; 3],
            data: &data,
            flags: &[],
            correlations: 1,
            channels: 1030,
            axes: [&[]; 2],
        };
        let mut accumulator = Accumulator::new(&AMPLITUDES, &[]);
        accumulator.add(&row, &selection(), &[]);
        let Waterfall(times) = sums::<Waterfall<Amplitude>>(&accumulator);
        let counts: Vec<u32> = times.iter().next().unwrap().iter().map(|sum| sum.count).collect();
        assert_eq!((counts.len(), counts[0], counts[343]), (344, 3, 1));
        assert_eq!(counts.iter().sum::<u32>(), 1030);
    }
}
