//! Two-dimensional histograms of visibilities by uv distance and amplitude or phase.

use std::ops::Range;

use super::drawing::{Drawing, LIGHT, Maker, points};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::{MAP, Map};
use crate::frame::Axis;
use crate::part::{Part, Row, amplitude};
use crate::request::Quantity;
use crate::selection::Correlations;

/// Bins per factor of two on the logarithmic amplitude axis.
const OCTAVE: f64 = 8.;
/// Index of the bin that begins at amplitude 1.
const UNITY: usize = MAP / 2;

pub(super) static AMPLITUDE: PlotKind = PlotKind {
    name: "amp_uvdist",
    quantities: &[Quantity::Amp],
    rows: Some(RowPlot { sums: |_| &AMPLITUDES, title: "Amplitude against uv distance", ..PLOT }),
};

pub(super) static PHASE: PlotKind = PlotKind {
    name: "phase_uvdist",
    quantities: &[Quantity::Phase],
    rows: Some(RowPlot { sums: |_| &PHASES, title: "Phase against uv distance", ..PLOT }),
};

const PLOT: RowPlot = RowPlot {
    sums: |_| &AMPLITUDES,
    title: "",
    note: |words: &Words| format!("points of {}, {}", words.baselines, words.correlations),
    empty: Drawing::empty_image,
};

pub(super) static AMPLITUDES: SumsKind = SumsKind {
    needs_uvw: true,
    correlations: Correlations::FirstParallelHand,
    ..SumsKind::of_data("uv distance and amplitude", |_, hz| Box::new(UvDistance::new(false, hz)))
};

static PHASES: SumsKind =
    SumsKind { name: "uv distance and phase", begin: |_, hz| Box::new(UvDistance::new(true, hz)), ..AMPLITUDES };

#[derive(Debug)]
struct UvDistance {
    /// The columns are uv distances, the lines amplitudes or phases.
    map: Map,
    /// Largest uv distance, in kilowavelengths, or in metres if the frequencies are unknown.
    reach: f64,
    by_phase: bool,
    /// Kilowavelengths per metre for each channel; empty if the frequencies are unknown.
    per_metre: Vec<f64>,
}

impl UvDistance {
    fn new(by_phase: bool, frequencies: &[f64]) -> Self {
        let per_metre = frequencies.iter().map(|hz| hz / LIGHT / 1e3).collect();
        UvDistance { map: Map::new(), reach: 1. / 1024., by_phase, per_metre }
    }

    /// Shown lines and number of columns: all lines of phases, those of amplitudes with points.
    fn extent(&self) -> (Range<usize>, usize) {
        let is_shown = |&line: &usize| self.by_phase || self.map.line(line).iter().any(|&count| count > 0);
        let mut lines = (0..MAP).filter(is_shown);
        let lines = match (lines.next(), lines.next_back()) {
            (Some(first), last) => first..last.unwrap_or(first) + 1,
            (None, _) => UNITY..UNITY,
        };
        let columns = (0..MAP).rev().find(|&column| lines.clone().any(|line| self.map.line(line)[column] > 0));
        (lines, columns.map_or(0, |column| column + 1))
    }

    /// Lower end of a line on its axis: phase in degrees, or amplitude.
    fn edge(&self, line: usize) -> f64 {
        match self.by_phase {
            true => (line as f64 / MAP as f64 - 0.5) * 360.,
            false => ((line as f64 - UNITY as f64) / OCTAVE).exp2(),
        }
    }
}

impl Sums for UvDistance {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        let UvDistance { map, reach, by_phase, per_metre } = self;
        let metres = row.uvw[0].hypot(row.uvw[1]);
        let distance =
            |place: usize| per_metre.get(part.channels.start + place).map_or(metres, |factor| metres * factor);
        let farthest = (0..part.places()).map(distance).fold(0., f64::max);
        if !metres.is_finite() || !farthest.is_finite() {
            return;
        }
        while farthest >= *reach {
            map.halve_columns();
            *reach *= 2.;
        }
        part.good(row, |place, _, value| {
            let amplitude = f64::from(amplitude(value));
            if amplitude > 0. && amplitude.is_finite() {
                let line = match *by_phase {
                    true => (f64::from(value.im).atan2(f64::from(value.re)).to_degrees() / 360. + 0.5) * MAP as f64,
                    false => (amplitude.log2() * OCTAVE).floor() + UNITY as f64,
                };
                let column = distance(place) / *reach * MAP as f64;
                map.add(column as usize, line.max(0.) as usize);
            }
        });
    }

    fn bytes(&self) -> usize {
        Map::BYTES
    }

    fn draw(&self, maker: &Maker<'_>, _: &Part) -> Drawing {
        let (lines, columns) = self.extent();
        let raster = lines.clone().flat_map(|line| self.map.line(line)[..columns].to_vec()).collect();
        let x = (0..=columns).map(|column| self.reach * column as f64 / MAP as f64).collect();
        let y = (lines.start..=lines.end).map(|line| self.edge(line)).collect();
        let unit = if maker.window_frequencies().is_some() { "kλ" } else { "m" };
        let y_axis = match self.by_phase {
            true => Axis::new("phase", "deg", "linear"),
            false => Axis::new("amplitude", maker.unit(), "log"),
        };
        points([Axis::new("uv distance", unit, "linear"), y_axis], raster, x, y)
    }
}
