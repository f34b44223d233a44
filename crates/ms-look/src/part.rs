//! The part of a row that a plot uses, and sums of its visibilities and flags. Selections of
//! correlations and channels count from 0. Callbacks `each` get every selected visibility, with
//! its frequency bin first.

use std::ops::Range;

use ctds::value::Complex32;

use crate::bins::Merge;
use crate::selection::RowKey;

/// Antennas with this number or a higher one are left out of plots by antenna or by baseline.
const MAX_ANTENNAS: usize = 1024;

/// Axes of the arrays: correlation, which varies fastest, then channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) key: RowKey,
    pub(crate) flag_row: bool,
    /// Metres; NaN if the plot does not need it or the table does not have it.
    pub(crate) uvw: [f64; 3],
    /// Empty if the plot does not need them.
    pub(crate) data: &'a [Complex32],
    /// Empty if the table has no FLAG, or its cell has another shape than that of the visibilities.
    pub(crate) flags: &'a [bool],
    pub(crate) correlations: usize,
    pub(crate) channels: usize,
    /// Numbers on the x and the y axis of the plot `xy`.
    pub(crate) axes: [&'a [f64]; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Number of correlations and number of channels in the cell of each row.
    pub(crate) cell: (usize, usize),
    pub(crate) correlations: Vec<usize>,
    pub(crate) channels: Range<usize>,
    /// Neighbouring channels that are combined in one frequency bin.
    pub(crate) each: usize,
    pub(crate) include_flagged: bool,
}

impl Part {
    /// Number of frequency bins: the selected channels divided by the channels per bin, rounded up.
    pub(crate) fn places(&self) -> usize {
        self.channels.len().div_ceil(self.each)
    }

    /// Leaves out values that are flagged or not finite; numbers correlations as selected.
    #[inline]
    pub(crate) fn good(&self, row: &Row<'_>, mut each: impl FnMut(usize, usize, Complex32)) {
        if row.flag_row && !self.include_flagged {
            return;
        }
        let flags = if self.include_flagged { &[] } else { row.flags };
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

    /// Flagged by FLAG or by FLAG_ROW.
    pub(crate) fn flags(&self, row: &Row<'_>, mut each: impl FnMut(usize, Flags)) {
        for (place, channels) in self.chunks() {
            for channel in channels {
                let start = channel * self.cell.0;
                for correlation in &self.correlations {
                    let is_flagged = row.flag_row || row.flags.get(start + correlation) == Some(&true);
                    each(place, Flags { flagged: u64::from(is_flagged), all: 1 });
                }
            }
        }
    }

    /// `each` gets whether the visibility is left out as flagged.
    pub(crate) fn seen(&self, row: &Row<'_>, mut each: impl FnMut(usize, bool)) {
        self.flags(row, |place, flags| each(place, flags.flagged > 0 && !self.include_flagged));
    }

    pub(crate) fn all_flags(&self, row: &Row<'_>) -> Flags {
        let mut flagged = 0;
        self.flags(row, |_, flags| flagged += flags.flagged);
        Flags { flagged, all: (self.channels.len() * self.correlations.len()) as u64 }
    }

    /// The index of each frequency bin, and the range of the channels that it combines.
    fn chunks(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let range = |place: usize| {
            let start = self.channels.start + place * self.each;
            (place, start..(start + self.each).min(self.channels.end))
        };
        (0..self.places()).map(range)
    }
}

/// Number of flagged visibilities, and of all visibilities, in one bin.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flags {
    pub(crate) flagged: u64,
    pub(crate) all: u64,
}

impl Flags {
    /// NaN without visibilities.
    pub(crate) fn percent(&self) -> f32 {
        if self.all == 0 { f32::NAN } else { (100. * self.flagged as f64 / self.all as f64) as f32 }
    }
}

/// Whether a bin has visibilities that are left out as flagged, and others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Seen {
    flagged: bool,
    other: bool,
}

impl Seen {
    pub(crate) fn add(&mut self, is_flagged: bool) {
        self.flagged |= is_flagged;
        self.other |= !is_flagged;
    }

    /// 1 if all visibilities of the bin are flagged, else 0.
    pub(crate) fn all_flagged(self) -> u8 {
        u8::from(self.flagged && !self.other)
    }
}

impl Merge for Seen {
    fn merge(&mut self, other: &Self) {
        self.flagged |= other.flagged;
        self.other |= other.other;
    }
}

impl Merge for Flags {
    fn merge(&mut self, other: &Self) {
        self.flagged += other.flagged;
        self.all += other.all;
    }
}

/// Sums over one bin, of amplitudes and of complex visibilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum {
    pub(crate) amplitude: f64,
    pub(crate) re: f64,
    pub(crate) im: f64,
    pub(crate) count: u64,
    /// Smallest amplitude, real part and imaginary part; infinite if the bin is empty.
    pub(crate) low: [f32; 3],
    /// Largest amplitude, real part and imaginary part; minus infinity if the bin is empty.
    pub(crate) high: [f32; 3],
}

impl Default for Sum {
    fn default() -> Self {
        let (low, high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        Sum { amplitude: 0., re: 0., im: 0., count: 0, low, high }
    }
}

impl Sum {
    pub(crate) fn add(&mut self, value: Complex32) {
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

/// Computed in 64 bits, where the squares of 32-bit numbers do not overflow, and rounded once. The
/// method `norm` is not used because it calls the C library for each value.
#[inline]
pub(crate) fn amplitude(value: Complex32) -> f32 {
    let (re, im) = (f64::from(value.re), f64::from(value.im));
    (re * re + im * im).sqrt() as f32
}

/// `None` if the antenna is left out of plots by antenna.
pub(crate) fn antenna(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|&number| number < MAX_ANTENNAS)
}

/// Words for `rows` of antennas that are left out of plots by antenna.
pub(crate) fn unshown(rows: u64) -> String {
    match rows {
        0 => String::new(),
        rows => format!("{rows} rows of antennas beyond 1023"),
    }
}

/// Element `number` of a list; a list that is too short is extended with default elements.
pub(crate) fn slot<T: Default + Clone>(list: &mut Vec<T>, number: usize) -> &mut T {
    if list.len() <= number {
        list.resize(number + 1, T::default());
    }
    &mut list[number]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amplitudes_are_those_of_the_c_library() {
        let numbers = [0., -0., 1., 3., -4., 0.1, 1e-30, 1.5e-45, -7e37, f32::MIN_POSITIVE, f32::MAX / 2., 16777217.];
        for (re, im) in numbers.into_iter().flat_map(|re| numbers.map(|im| (re, im))) {
            let value = Complex32::new(re, im);
            assert_eq!(amplitude(value).to_bits(), value.norm().to_bits(), "{value}");
        }
    }
}
