//! The kinds of plots: each has a file that says what it is called, how rows are added to its sums,
//! and how it is drawn from them.
//!
//! *To add one*: its file with a [`PlotKind`], and a variant of [`Kind`] with its lines in `ALL`
//! and `plot`.

pub(crate) mod antennas;
mod baselines;
mod drawing;
mod flag_antenna;
mod flag_channel;
mod flag_time;
mod kind;
mod make;
mod series;
mod spectrum;
mod uv;
mod uv_distance;
mod waterfall;
mod xy;

pub(crate) use drawing::with_ends;
pub(crate) use kind::{PlotKind, Sums, SumsKind};
pub(crate) use make::{Progress, frame};

/// The kinds of plots of a MeasurementSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Image of amplitude (or another quantity) by frequency and time.
    Waterfall,
    /// Plot of amplitude against time.
    AmpTime,
    /// Plot of phase against time.
    PhaseTime,
    /// Plot of amplitude and phase against frequency.
    Spectrum,
    /// Two-dimensional histogram: number of visibilities by uv distance and amplitude.
    AmpUvdist,
    /// Two-dimensional histogram: number of visibilities by uv distance and phase.
    PhaseUvdist,
    /// Two-dimensional histogram: number of points by u and v (uv coverage).
    Uv,
    /// Plot of the percentage of flagged visibilities by antenna.
    FlagAntenna,
    /// Plot of the percentage of flagged visibilities by channel.
    FlagChannel,
    /// Plot of the percentage of flagged visibilities by time.
    FlagTime,
    /// Image of amplitude by the two antennas of a baseline.
    Baselines,
    /// Plot of a quantity of the visibilities, or a number of each row, against another one: the
    /// parameters `x` and `y` name columns, or elevation, hour angle and such.
    Xy,
    /// Plot of the positions of the antennas, in metres east and north of the centre of the array.
    Antennas,
}

impl Kind {
    /// Every kind of plot, in the order in which the web page of `serve` lists them.
    pub const ALL: [Kind; 13] = [
        Kind::Waterfall,
        Kind::AmpTime,
        Kind::PhaseTime,
        Kind::Spectrum,
        Kind::AmpUvdist,
        Kind::PhaseUvdist,
        Kind::Uv,
        Kind::FlagAntenna,
        Kind::FlagChannel,
        Kind::FlagTime,
        Kind::Baselines,
        Kind::Xy,
        Kind::Antennas,
    ];

    pub(crate) fn plot(self) -> &'static PlotKind {
        match self {
            Kind::Waterfall => &waterfall::PLOT,
            Kind::AmpTime => &series::AMPLITUDE,
            Kind::PhaseTime => &series::PHASE,
            Kind::Spectrum => &spectrum::PLOT,
            Kind::AmpUvdist => &uv_distance::AMPLITUDE,
            Kind::PhaseUvdist => &uv_distance::PHASE,
            Kind::Uv => &uv::PLOT,
            Kind::FlagAntenna => &flag_antenna::PLOT,
            Kind::FlagChannel => &flag_channel::PLOT,
            Kind::FlagTime => &flag_time::PLOT,
            Kind::Baselines => &baselines::PLOT,
            Kind::Xy => &xy::PLOT,
            Kind::Antennas => &antennas::PLOT,
        }
    }

    /// Name of the kind of plot in requests: `amp_time`.
    pub fn name(self) -> &'static str {
        self.plot().name
    }
}
