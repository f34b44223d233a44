//! Two-dimensional histogram of points by u and v: the uv coverage.

use super::drawing::{Drawing, LIGHT, Maker, points};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::{MAP, Map};
use crate::frame::Axis;
use crate::part::{Part, Row};
use crate::request::Quantity;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "uv",
    quantities: &[Quantity::Amp],
    rows: Some(RowPlot {
        sums: |_| &SUMS,
        title: "uv coverage",
        note: |words: &Words| format!("points of {}, with conjugates", words.baselines),
        empty: Drawing::empty_image,
    }),
};

pub(super) static SUMS: SumsKind =
    SumsKind { needs_uvw: true, ..SumsKind::of_flags("uv", |_, _| Box::new(Coverage { map: Map::new(), reach: 1. })) };

#[derive(Debug)]
struct Coverage {
    /// Each row adds the points (u, v) and (-u, -v).
    map: Map,
    /// Both axes extend from minus this one to this one, in metres.
    reach: f64,
}

impl Sums for Coverage {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        let Coverage { map, reach } = self;
        let [u, v, _] = row.uvw;
        let flags = part.all_flags(row);
        let is_flagged = flags.flagged == flags.all && !part.include_flagged;
        if !u.is_finite() || !v.is_finite() || flags.all == 0 || is_flagged {
            return;
        }
        while u.abs().max(v.abs()) >= *reach {
            map.halve_to_centre();
            *reach *= 2.;
        }
        let place = |metres: f64| ((metres / *reach + 1.) * (MAP / 2) as f64) as usize;
        map.add(place(u), place(v));
        map.add(place(-u), place(-v));
    }

    fn bytes(&self) -> usize {
        Map::BYTES
    }

    fn draw(&self, maker: &Maker<'_>, _: &Part) -> Drawing {
        let (scale, unit) = scale(maker);
        let edge = |place: usize| (place as f64 / (MAP / 2) as f64 - 1.) * self.reach * scale;
        let edges: Vec<f64> = (0..=MAP).map(edge).collect();
        let raster = (0..MAP).flat_map(|line| self.map.line(line).to_vec()).collect();
        points(["u", "v"].map(|name| Axis::new(name, unit, "linear")), raster, edges.clone(), edges)
    }
}

/// Factor from metres to the unit, and its name: kλ at the centre frequency if requested, else m.
fn scale(maker: &Maker<'_>) -> (f64, &'static str) {
    match maker.window_frequencies().filter(|_| maker.request.kilowavelengths) {
        Some((frequencies, _)) => {
            let extreme = |extreme: fn(f64, f64) -> f64| frequencies.iter().copied().reduce(extreme).unwrap_or(0.);
            ((extreme(f64::min) + extreme(f64::max)) / 2. / LIGHT / 1e3, "kλ")
        }
        None => (1., "m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accumulate::Accumulator;
    use crate::accumulate::tests::{add, sums};

    #[test]
    fn uv_points_have_conjugates() {
        let mut accumulator = Accumulator::new(&SUMS, &[]);
        add(&mut accumulator, 0..100);
        let Coverage { map, reach } = sums(&accumulator);
        assert_eq!(*reach, 256.);
        let points: u32 = (0..MAP).map(|line| map.line(line).iter().sum::<u32>()).sum();
        assert_eq!(points, 200);
        // row 99: u 99, v -198, one metre a place
        assert_eq!([map.line(256 - 198)[256 + 99], map.line(256 + 198)[256 - 99]], [1, 1]);
    }
}
