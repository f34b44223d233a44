//! Accumulates the visibilities or flags of a plot, row by row, into sums per bin, so that memory is bounded however many
//! rows the table has.

use super::bins::{MAP, Map, Merge, Times};
use super::selection::{Measure, RowKey, Selection, Sums};
use crate::value::Complex32;

/// Maximum number of time bins (rows of pixels) of a waterfall plot; if the data has more times, neighbouring ones are
/// merged.
const RASTER_TIMES: usize = 1024;
/// Maximum number of frequency bins (columns of pixels) of a waterfall plot; each combines one or more channels.
const RASTER_CHANNELS: usize = 512;
/// Maximum number of time bins of a plot against time; if the data has more times, neighbouring ones are merged.
const SERIES_TIMES: usize = 4096;
/// Maximum number of frequency bins of a plot against frequency or channel; each combines one or more channels.
const SPECTRUM_CHANNELS: usize = 1 << 14;
/// Antennas with this number or a higher one are left out of plots by antenna or by baseline.
const MAX_ANTENNAS: usize = 1024;
/// Number of bins per factor of two on the logarithmic amplitude axis of the plot of amplitude against uv distance.
pub(super) const OCTAVE: f64 = 8.;
/// Index of the bin that begins at amplitude 1, on the logarithmic amplitude axis of the plot of amplitude against uv
/// distance.
pub(super) const UNITY: usize = MAP / 2;
/// Speed of light in metres per second.
pub(super) const LIGHT: f64 = 299_792_458.;

/// Sum, maximum and number of the visibility amplitudes in one bin of a plot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Amplitude {
    pub(super) sum: f64,
    pub(super) max: f32,
    pub(super) count: u32,
}

/// Sum (real and imaginary part) and number of the complex visibilities in one bin of a plot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Vector {
    pub(super) re: f64,
    pub(super) im: f64,
    pub(super) count: u32,
}

/// Number of flagged visibilities, and of all visibilities, in one bin of a plot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Flags {
    pub(super) flagged: u64,
    pub(super) all: u64,
}

/// Sums of the amplitudes and of the complex visibilities in one bin of a plot, with their number and their extreme values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub(super) amplitude: f64,
    pub(super) re: f64,
    pub(super) im: f64,
    pub(super) count: u64,
    /// Smallest amplitude, real part and imaginary part in the bin; infinite if the bin is empty.
    pub(super) low: [f32; 3],
    /// Largest amplitude, real part and imaginary part in the bin; minus infinity if the bin is empty.
    pub(super) high: [f32; 3],
}

impl Default for Sum {
    fn default() -> Self {
        let (low, high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        Sum { amplitude: 0., re: 0., im: 0., count: 0, low, high }
    }
}

impl Merge for Amplitude {
    fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
    }
}

impl Merge for Vector {
    fn merge(&mut self, other: &Self) {
        self.re += other.re;
        self.im += other.im;
        self.count = self.count.saturating_add(other.count);
    }
}

impl Merge for Flags {
    fn merge(&mut self, other: &Self) {
        self.flagged += other.flagged;
        self.all += other.all;
    }
}

impl Merge for Sum {
    fn merge(&mut self, other: &Self) {
        self.amplitude += other.amplitude;
        self.re += other.re;
        self.im += other.im;
        self.count += other.count;
        for part in 0..3 {
            self.low[part] = self.low[part].min(other.low[part]);
            self.high[part] = self.high[part].max(other.high[part]);
        }
    }
}

impl Sum {
    fn add(&mut self, value: Complex32) {
        let amplitude = amplitude(value);
        self.amplitude += f64::from(amplitude);
        self.re += f64::from(value.re);
        self.im += f64::from(value.im);
        self.count += 1;
        for (part, number) in [amplitude, value.re, value.im].into_iter().enumerate() {
            self.low[part] = self.low[part].min(number);
            self.high[part] = self.high[part].max(number);
        }
    }
}

/// Amplitude (absolute value) of a finite complex number. Computed in 64 bits, where the squares of 32-bit numbers do
/// not overflow, and rounded once. The method `norm` is not used because it calls the C library for each value.
#[inline]
fn amplitude(value: Complex32) -> f32 {
    let (re, im) = (f64::from(value.re), f64::from(value.im));
    (re * re + im * im).sqrt() as f32
}

/// One row of a MeasurementSet to be added to the sums of a plot. In its arrays the correlation varies fastest, then the
/// channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) key: RowKey,
    pub(super) flag_row: bool,
    /// UVW of the row in metres; NaN if the plot does not need it or the table does not have it.
    pub(super) uvw: [f64; 3],
    /// Visibilities of the row: the correlation varies fastest, then the channel. Empty if the plot does not need them.
    pub(super) data: &'a [Complex32],
    /// Flags of the row's visibilities; empty if the table has no FLAG, or its cell has another shape than that of the
    /// visibilities.
    pub(super) flags: &'a [bool],
    pub(super) correlations: usize,
    pub(super) channels: usize,
}

/// Selection within the cell of a row: which correlations and channels a plot uses, and how many channels share a bin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Number of correlations and number of channels in the cell (the visibilities) of each row.
    cell: (usize, usize),
    /// Indices of the selected correlations among those of a cell, from 0.
    pub(super) correlations: Vec<usize>,
    /// Range (half-open, from 0) of the selected channels of a cell.
    pub(super) channels: std::ops::Range<usize>,
    /// Number of neighbouring channels that are combined in one frequency bin of the plot.
    pub(super) each: usize,
}

impl Default for Part {
    /// An empty selection (no correlations, no channels), for use before the first row has shown the shape of the cells.
    fn default() -> Self {
        Part { cell: (0, 0), correlations: Vec::new(), channels: 0..0, each: 1 }
    }
}

impl Part {
    /// Number of frequency bins of the plot: the selected channels divided by the channels per bin, rounded up.
    pub(super) fn places(&self) -> usize {
        self.channels.len().div_ceil(self.each)
    }

    /// Calls `each` for every selected visibility of a row that is finite and not flagged, with its frequency bin, the index
    /// of its correlation in the selection, and its value. With `include_flagged`, flagged ones are passed as well.
    #[inline]
    fn good(&self, row: &Row<'_>, include_flagged: bool, mut each: impl FnMut(usize, usize, Complex32)) {
        if row.flag_row && !include_flagged {
            return;
        }
        let flags = if include_flagged { &[] } else { row.flags };
        for (place, channels) in self.chunks() {
            for channel in channels {
                let start = channel * self.cell.0;
                for (number, &correlation) in self.correlations.iter().enumerate() {
                    let at = start + correlation;
                    let value = row.data[at];
                    if flags.get(at) != Some(&true) && value.re.is_finite() && value.im.is_finite() {
                        each(place, number, value);
                    }
                }
            }
        }
    }

    /// Calls `each` for every selected visibility of a row, with its frequency bin and whether FLAG or FLAG_ROW flags it.
    fn flags(&self, row: &Row<'_>, mut each: impl FnMut(usize, bool)) {
        for (place, channels) in self.chunks() {
            for channel in channels {
                let start = channel * self.cell.0;
                for correlation in &self.correlations {
                    each(place, row.flag_row || row.flags.get(start + correlation) == Some(&true));
                }
            }
        }
    }

    /// Number of flagged visibilities and of all visibilities, among the selected ones of a row.
    fn all_flags(&self, row: &Row<'_>) -> Flags {
        let mut flagged = 0;
        self.flags(row, |_, is_flagged| flagged += u64::from(is_flagged));
        Flags { flagged, all: (self.channels.len() * self.correlations.len()) as u64 }
    }

    /// The frequency bins of the plot: the index of each, and the range (half-open) of the channels that it combines, which
    /// are counted from 0 in the cell.
    fn chunks(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let range = |place: usize| {
            let start = self.channels.start + place * self.each;
            (place, start..(start + self.each).min(self.channels.end))
        };
        (0..self.places()).map(range)
    }
}

/// What is added up for a plot, per bin: amplitudes, complex visibilities, flags or numbers of points. The variant
/// depends on the kind of plot.
#[derive(Debug)]
pub(super) enum State {
    Amplitudes(Times<Amplitude>),
    Vectors(Times<Vector>),
    Flagged(Times<Flags>),
    /// Sums of the complex visibilities and of their amplitudes per time bin and correlation, for plots against time.
    Series(Times<Sum>),
    /// Sums of the complex visibilities and of their amplitudes, for plots against frequency. `sums` has an element for
    /// each frequency bin and correlation, the correlation fastest. Only rows with TIME `newest` (seconds of MJD) are
    /// added, or all selected rows if `newest` is `None`.
    Spectrum {
        sums: Vec<Sum>,
        newest: Option<f64>,
    },
    /// Number of visibilities per bin of uv distance (columns) and of amplitude or phase (lines). uv distances are from 0 to
    /// `reach`, in kilowavelengths, or in metres if the frequencies are unknown.
    UvDistance {
        map: Map,
        reach: f64,
    },
    /// Number of points per bin of u and v, for plots of the uv coverage: each row adds the points (u, v) and (-u, -v).
    /// Both axes extend from -`reach` to `reach`, in metres.
    Uv {
        map: Map,
        reach: f64,
    },
    /// Number of flagged visibilities and number of all visibilities, for plots of flags: one element per antenna, or
    /// one per frequency bin.
    List(Vec<Flags>),
    /// Sums of the complex visibilities and of their amplitudes per baseline: those of the antennas numbered a and b
    /// (from 0, a <= b) are at index b (b + 1) / 2 + a.
    Pairs(Vec<Sum>),
    PairFlags(Vec<Flags>),
}

/// Adds the selected rows of a table to the sums of one plot.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) sums: Sums,
    /// Correlations and channels that the plot uses of each cell; `None` before the first row.
    pub(super) part: Option<Part>,
    pub(super) state: Option<State>,
    /// Frequency of each channel divided by the speed of light and by 1000: kilowavelengths per metre, to scale uv
    /// distances; empty if the frequencies are unknown or the plot does not show uv distances.
    inverse_wavelengths: Vec<f64>,
    /// Number of rows that were left out because their cells have another shape than those of the first row.
    pub(super) misfits: u64,
    /// Number of rows left out because an antenna number is negative, or 1024 or more. In plots by antenna, a row counts for
    /// each such antenna.
    pub(super) unshown: u64,
}

impl Accumulator {
    pub(super) fn new(sums: Sums, frequencies: &[f64]) -> Self {
        let inverse = |frequency: &f64| frequency / LIGHT / 1e3;
        let inverse_wavelengths = match sums {
            Sums::UvDistance | Sums::UvPhase => frequencies.iter().map(inverse).collect(),
            _ => Vec::new(),
        };
        Accumulator { sums, part: None, state: None, inverse_wavelengths, misfits: 0, unshown: 0 }
    }

    /// Whether rows with this TIME can contribute to the plot. False if only the newest integration
    /// is plotted, and a newer one is known.
    pub(super) fn wants(&self, time: f64) -> bool {
        match &self.state {
            Some(State::Spectrum { newest: Some(newest), .. }) => time >= *newest,
            _ => true,
        }
    }

    fn begin(&mut self, row: &Row<'_>, selection: &Selection, names: &[String]) {
        let channels = selection.channels(row.channels);
        let places = match self.sums {
            Sums::Raster(_) => RASTER_CHANNELS,
            Sums::Spectrum { .. } | Sums::FlagChannel => SPECTRUM_CHANNELS,
            _ => usize::MAX,
        };
        let part = Part {
            cell: (row.correlations, row.channels),
            correlations: selection.correlations(self.sums, names, row.correlations),
            each: channels.len().div_ceil(places).max(1),
            channels,
        };
        let places = part.places().max(1);
        let correlations = part.correlations.len().max(1);
        self.state = Some(match self.sums {
            Sums::Raster(Measure::Amplitude) => State::Amplitudes(Times::new(RASTER_TIMES, places)),
            Sums::Raster(Measure::Vector) => State::Vectors(Times::new(RASTER_TIMES, places)),
            Sums::Raster(Measure::Flags) => State::Flagged(Times::new(RASTER_TIMES, places)),
            Sums::FlagTime => State::Flagged(Times::new(SERIES_TIMES, 1)),
            Sums::Series => State::Series(Times::new(SERIES_TIMES, correlations)),
            Sums::Spectrum { newest } => State::Spectrum {
                sums: vec![Sum::default(); places * correlations],
                newest: newest.then_some(f64::NEG_INFINITY),
            },
            Sums::UvDistance | Sums::UvPhase => State::UvDistance { map: Map::new(), reach: 1. / 1024. },
            Sums::Uv => State::Uv { map: Map::new(), reach: 1. },
            Sums::FlagAntenna => State::List(Vec::new()),
            Sums::FlagChannel => State::List(vec![Flags::default(); places]),
            Sums::Pairs(Measure::Flags) => State::PairFlags(Vec::new()),
            Sums::Pairs(_) => State::Pairs(Vec::new()),
        });
        self.part = Some(part);
    }

    /// Adds a selected row to the sums of the plot; `names` are the names of its correlations (XX …).
    pub(super) fn add(&mut self, row: &Row<'_>, selection: &Selection, names: &[String]) {
        if self.part.is_none() {
            self.begin(row, selection, names);
        }
        let (Some(part), Some(state)) = (&self.part, &mut self.state) else { return };
        if part.cell != (row.correlations, row.channels) {
            self.misfits += 1;
            return;
        }
        let (include, time) = (selection.include_flagged, row.key.time);
        match state {
            State::Amplitudes(times) => {
                let line = times.at(time);
                part.good(row, include, |place, _, value| {
                    let (sum, amplitude) = (&mut line[place], amplitude(value));
                    sum.sum += f64::from(amplitude);
                    sum.max = sum.max.max(amplitude);
                    sum.count = sum.count.saturating_add(1);
                });
            }
            State::Vectors(times) => {
                let line = times.at(time);
                part.good(row, include, |place, _, value| {
                    let sum = &mut line[place];
                    sum.re += f64::from(value.re);
                    sum.im += f64::from(value.im);
                    sum.count = sum.count.saturating_add(1);
                });
            }
            State::Flagged(times) => {
                let line = times.at(time);
                let by_channel = line.len() > 1;
                part.flags(row, |place, flagged| {
                    let sum = &mut line[if by_channel { place } else { 0 }];
                    sum.merge(&Flags { flagged: u64::from(flagged), all: 1 });
                });
            }
            State::Series(times) => {
                let line = times.at(time);
                part.good(row, include, |_, correlation, value| line[correlation].add(value));
            }
            State::Spectrum { sums, newest } => {
                if let Some(newest) = newest {
                    if time < *newest {
                        return;
                    }
                    if time > *newest {
                        *newest = time;
                        sums.fill(Sum::default());
                    }
                }
                let count = part.correlations.len();
                part.good(row, include, |place, correlation, value| sums[place * count + correlation].add(value));
            }
            State::UvDistance { map, reach } => {
                let metres = row.uvw[0].hypot(row.uvw[1]);
                let distance = |place: usize| {
                    let channel = part.channels.start + place;
                    self.inverse_wavelengths.get(channel).map_or(metres, |inverse| metres * inverse)
                };
                let farthest = (0..part.places()).map(distance).fold(0., f64::max);
                if !metres.is_finite() || !farthest.is_finite() {
                    return;
                }
                while farthest >= *reach {
                    map.halve_columns();
                    *reach *= 2.;
                }
                let by_phase = self.sums == Sums::UvPhase;
                part.good(row, include, |place, _, value| {
                    let amplitude = f64::from(amplitude(value));
                    if amplitude > 0. && amplitude.is_finite() {
                        let line = match by_phase {
                            true => {
                                (f64::from(value.im).atan2(f64::from(value.re)).to_degrees() / 360. + 0.5) * MAP as f64
                            }
                            false => (amplitude.log2() * OCTAVE).floor() + UNITY as f64,
                        };
                        let column = distance(place) / *reach * MAP as f64;
                        map.add(column as usize, line.max(0.) as usize);
                    }
                });
            }
            State::Uv { map, reach } => {
                let [u, v, _] = row.uvw;
                let flags = part.all_flags(row);
                if !u.is_finite() || !v.is_finite() || flags.all == 0 || flags.flagged == flags.all && !include {
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
            State::List(list) if self.sums == Sums::FlagChannel => {
                part.flags(row, |place, flagged| list[place].merge(&Flags { flagged: u64::from(flagged), all: 1 }));
            }
            State::List(list) => {
                let flags = part.all_flags(row);
                let mut antennas = vec![row.key.antenna1, row.key.antenna2];
                antennas.dedup();
                for antenna in antennas {
                    match usize::try_from(antenna).ok().filter(|&antenna| antenna < MAX_ANTENNAS) {
                        Some(antenna) => slot(list, antenna).merge(&flags),
                        None => self.unshown += 1,
                    }
                }
            }
            State::Pairs(list) => match pair(&row.key) {
                Some(pair) => {
                    let sum = slot(list, pair);
                    part.good(row, include, |_, _, value| sum.add(value));
                }
                None => self.unshown += 1,
            },
            State::PairFlags(list) => match pair(&row.key) {
                Some(pair) => slot(list, pair).merge(&part.all_flags(row)),
                None => self.unshown += 1,
            },
        }
    }

    /// Bytes of memory that the sums of the plot occupy.
    pub(super) fn bytes(&self) -> usize {
        match &self.state {
            None => 0,
            Some(State::Amplitudes(times)) => times.bytes(),
            Some(State::Vectors(times)) => times.bytes(),
            Some(State::Flagged(times)) => times.bytes(),
            Some(State::Series(times)) => times.bytes(),
            Some(State::Spectrum { sums, .. } | State::Pairs(sums)) => size_of_val(&sums[..]),
            Some(State::UvDistance { .. } | State::Uv { .. }) => MAP * MAP * size_of::<u32>(),
            Some(State::List(sums) | State::PairFlags(sums)) => size_of_val(&sums[..]),
        }
    }
}

/// Mutable reference to element `number` of a list; a list that is too short is extended with default elements.
fn slot<T: Default + Clone>(list: &mut Vec<T>, number: usize) -> &mut T {
    if list.len() <= number {
        list.resize(number + 1, T::default());
    }
    &mut list[number]
}

/// Index of a row's baseline in [`State::Pairs`]; `None` if an antenna number is negative, or 1024 or more.
fn pair(key: &RowKey) -> Option<usize> {
    let antenna = |number: i64| usize::try_from(number).ok().filter(|&number| number < MAX_ANTENNAS);
    let (first, second) = (antenna(key.antenna1)?, antenna(key.antenna2)?);
    let (low, high) = (first.min(second), first.max(second));
    Some(high * (high + 1) / 2 + low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::selection::Baselines;

    fn selection() -> Selection {
        Selection {
            column: "DATA".into(),
            spw: None,
            fields: vec![],
            scans: vec![],
            corr: None,
            baselines: Baselines::All,
            antennas: vec![],
            time: (None, None),
            chan: (None, None),
            include_flagged: false,
        }
    }

    /// Rows of two correlations and three channels: the value of element `i` of row `r` is 10 r + i.
    fn add(accumulator: &mut Accumulator, selection: &Selection, rows: std::ops::Range<usize>) {
        for row in rows {
            let data: Vec<Complex32> = (0..6).map(|i| Complex32::new((10 * row + i) as f32, 0.)).collect();
            let flags: Vec<bool> = (0..6).map(|i| i == 1).collect();
            let key =
                RowKey { time: (row / 2) as f64, antenna1: 0, antenna2: row as i64 % 3, spw: 0, field: 0, scan: 0 };
            let uvw = [row as f64, -2. * row as f64, 0.];
            let row = Row { key, flag_row: false, uvw, data: &data, flags: &flags, correlations: 2, channels: 3 };
            accumulator.add(&row, selection, &[]);
        }
    }

    #[test]
    fn amplitudes_are_those_of_the_c_library() {
        let numbers = [0., -0., 1., 3., -4., 0.1, 1e-30, 1.5e-45, -7e37, f32::MIN_POSITIVE, f32::MAX / 2., 16777217.];
        for (re, im) in numbers.into_iter().flat_map(|re| numbers.map(|im| (re, im))) {
            let value = Complex32::new(re, im);
            assert_eq!(amplitude(value).to_bits(), value.norm().to_bits(), "{value}");
        }
    }

    #[test]
    fn flagged_and_infinite_cells_are_left_out() {
        let mut sums = Accumulator::new(Sums::Series, &[]);
        add(&mut sums, &selection(), 0..2);
        let data = [f32::NAN, 1., f32::INFINITY, 5., 7., 9.].map(|re| Complex32::new(re, 0.));
        let key = RowKey { time: 0., antenna1: 0, antenna2: 1, spw: 0, field: 0, scan: 0 };
        let row = Row { key, flag_row: false, uvw: [0.; 3], data: &data, flags: &[], correlations: 2, channels: 3 };
        sums.add(&row, &selection(), &[]);
        sums.add(&Row { flag_row: true, ..row }, &selection(), &[]);
        sums.add(&Row { data: &data[..2], channels: 1, ..row }, &selection(), &[]);
        assert_eq!(sums.misfits, 1);
        let Some(State::Series(times)) = &sums.state else { panic!() };
        let line: Vec<_> =
            times.iter().next().unwrap().iter().map(|sum| (sum.re, sum.count, sum.low[0], sum.high[0])).collect();
        assert_eq!(line, [(6. + 36. + 7., 7, 0., 14.), (8. + 28. + 15., 7, 1., 15.)]);
    }

    #[test]
    fn the_newest_integration_replaces_the_one_before() {
        let mut sums = Accumulator::new(Sums::Spectrum { newest: true }, &[]);
        add(&mut sums, &selection(), 4..6);
        assert!(!sums.wants(1.) && sums.wants(2.) && sums.wants(3.));
        add(&mut sums, &selection(), 0..4);
        let Some(State::Spectrum { sums: found, newest: Some(2.) }) = &sums.state else { panic!() };
        assert_eq!(found.iter().map(|sum| sum.re).collect::<Vec<_>>(), [90., 0., 94., 96., 98., 100.]);
    }

    #[test]
    fn channels_share_places_when_there_are_too_many() {
        let data = vec![Complex32::new(1., 0.); 1030];
        let key = RowKey { time: 0., antenna1: 0, antenna2: 1, spw: 0, field: 0, scan: 0 };
        let row = Row { key, flag_row: false, uvw: [0.; 3], data: &data, flags: &[], correlations: 1, channels: 1030 };
        let mut sums = Accumulator::new(Sums::Raster(Measure::Amplitude), &[]);
        sums.add(&row, &selection(), &[]);
        let Some(State::Amplitudes(times)) = &sums.state else { panic!() };
        let counts: Vec<u32> = times.iter().next().unwrap().iter().map(|sum| sum.count).collect();
        assert_eq!((counts.len(), counts[0], counts[343]), (344, 3, 1));
        assert_eq!(counts.iter().sum::<u32>(), 1030);
    }

    #[test]
    fn uv_points_have_conjugates() {
        let mut sums = Accumulator::new(Sums::Uv, &[]);
        add(&mut sums, &selection(), 0..100);
        let Some(State::Uv { map, reach }) = &sums.state else { panic!() };
        assert_eq!(*reach, 256.);
        let points: u32 = (0..MAP).map(|line| map.line(line).iter().sum::<u32>()).sum();
        assert_eq!(points, 200);
        // row 99: u 99, v -198, one metre a place
        assert_eq!([map.line(256 - 198)[256 + 99], map.line(256 + 198)[256 - 99]], [1, 1]);
    }

    #[test]
    fn sums_have_a_fixed_size() {
        for sums in [
            Sums::Raster(Measure::Vector),
            Sums::Raster(Measure::Amplitude),
            Sums::Series,
            Sums::UvDistance,
            Sums::Uv,
            Sums::FlagTime,
        ] {
            let mut accumulator = Accumulator::new(sums, &[]);
            let data = vec![Complex32::new(1., 1.); 600];
            for time in 0..6000 {
                let key = RowKey { time: time.into(), antenna1: 0, antenna2: 1, spw: 0, field: 0, scan: 0 };
                let row =
                    Row { key, flag_row: false, uvw: [0.; 3], data: &data, flags: &[], correlations: 1, channels: 600 };
                accumulator.add(&row, &selection(), &[]);
            }
            assert!(accumulator.bytes() <= 12 << 20, "{sums:?}: {}", accumulator.bytes());
        }
    }
}
