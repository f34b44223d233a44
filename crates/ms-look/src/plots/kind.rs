//! The parts of a kind of plot.

use std::any::Any;
use std::fmt;

use super::drawing::{Drawing, Maker};
use crate::frame::Axis;
use crate::part::{Part, Row};
use crate::request::{Quantity, Request};
use crate::selection::Correlations;

pub(crate) struct PlotKind {
    /// Name in requests.
    pub(crate) name: &'static str,
    /// Quantities that it can show, its default first.
    pub(crate) quantities: &'static [Quantity],
    /// How it is made of rows; `None`: it is made of the subtable ANTENNA.
    pub(crate) rows: Option<RowPlot>,
}

pub(crate) struct RowPlot {
    pub(crate) sums: fn(&Request) -> &'static SumsKind,
    /// Title; `{quantity}` stands for the plotted quantity, `{x}` and `{y}` for the axes.
    pub(super) title: &'static str,
    /// Text of the note, before the selected antennas, fields and spectral window.
    pub(super) note: fn(&Words) -> String,
    /// The plot before any row was read, with the axis of the plotted quantity.
    pub(super) empty: fn(Axis) -> Drawing,
}

/// The sums of rows. Plots with the same kind of sums and the same selection share them.
pub(crate) struct SumsKind {
    /// Differs from those of all other kinds of sums.
    pub(super) name: &'static str,
    /// Whether the values of visibilities are read; otherwise flags or UVW are enough.
    pub(crate) needs_data: bool,
    pub(crate) needs_uvw: bool,
    /// Whether only rows with the newest TIME are added.
    pub(crate) newest: bool,
    /// Whether field and scan of each row are read: lines end where another one begins.
    pub(crate) needs_runs: bool,
    pub(crate) correlations: Correlations,
    /// Maximum number of frequency bins; each combines one or more channels.
    pub(crate) max_places: usize,
    /// The numbers are the channel frequencies in Hz, if `needs_uvw` is set and they are known.
    pub(crate) begin: fn(&Part, &[f64]) -> Box<dyn Sums>,
}

impl SumsKind {
    /// Sums of visibilities of the parallel hands, for each channel.
    pub(super) const fn of_data(name: &'static str, begin: fn(&Part, &[f64]) -> Box<dyn Sums>) -> Self {
        SumsKind {
            name,
            needs_data: true,
            needs_uvw: false,
            newest: false,
            needs_runs: false,
            correlations: Correlations::ParallelHands,
            max_places: usize::MAX,
            begin,
        }
    }

    /// Sums of flags of all correlations, for each channel.
    pub(super) const fn of_flags(name: &'static str, begin: fn(&Part, &[f64]) -> Box<dyn Sums>) -> Self {
        SumsKind { needs_data: false, correlations: Correlations::All, ..SumsKind::of_data(name, begin) }
    }
}

impl PartialEq for SumsKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for SumsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The sums of a plot, of limited size.
pub(crate) trait Sums: Any + fmt::Debug + Send + Sync {
    fn add(&mut self, row: &Row<'_>, part: &Part);

    /// Whether rows with this TIME can contribute.
    fn wants(&self, _time: f64) -> bool {
        true
    }

    /// Rows that are left out, in words; empty without such rows.
    fn unshown(&self) -> String {
        String::new()
    }

    /// Bytes of memory that the sums occupy.
    fn bytes(&self) -> usize;

    fn draw(&self, maker: &Maker<'_>, part: &Part) -> Drawing;
}

/// Words for the note of a plot.
pub(super) struct Words {
    /// How several visibilities become one value: `mean of `, or nothing.
    pub(super) average: &'static str,
    pub(super) baselines: String,
    pub(super) correlations: String,
}

impl Words {
    pub(super) fn average(&self) -> String {
        format!("{}{}", self.average, self.baselines)
    }

    pub(super) fn average_of_correlations(&self) -> String {
        format!("{}{}, {}", self.average, self.baselines, self.correlations)
    }
}
