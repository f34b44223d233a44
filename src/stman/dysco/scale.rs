//! Decodes the symbols (quantised values) of DyscoStMan to visibilities and weights. formats/engines.md 2.5 and 2.6.

use num_complex::Complex32;

use super::dictionary::Dictionary;
use super::header::Normalization;
use super::symbols::Decode;

/// Normalisation of a DyscoStMan data column, extents of its cells and number of antennas, from which the scale factor
/// of each value is found.
///
/// | normalization         | scales of a block, first axis fastest                           |
/// |-----------------------|-----------------------------------------------------------------|
/// | antenna and frequency | `[polarisations, channels]`, then `[antennas, polarisations]`   |
/// | row and frequency     | `[polarisations, channels]`, then `[polarisations, rows]`       |
/// | row                   | `[rows]`                                                        |
#[derive(Debug, Clone, Copy)]
pub(super) struct DataScale {
    pub(super) normalization: Normalization,
    pub(super) polarisations: usize,
    pub(super) channels: usize,
    pub(super) antennas: usize,
}

/// A row of a DyscoStMan column and its two antennas, by which the scale factors for its values are selected.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowScale {
    /// Number of the row, from 0, in its block of the DyscoStMan file.
    pub(super) row: usize,
    /// Both antennas of the row, each below the number of antennas of [`DataScale`]; only used if there is a scale factor for
    /// each antenna.
    pub(super) antennas: [u32; 2],
}

impl DataScale {
    /// Fills `factors` with the scale factors of a row's values, polarisations fastest, beginning with channel
    /// `channel` (from 0); `scales` are those that the row's block of the DyscoStMan file stores.
    ///
    /// The order of the products is the writer's: f64 products are not associative to the last bit.
    pub(super) fn factors(&self, scales: &[f64], of: RowScale, channel: usize, factors: &mut [f64]) {
        let polarisations = self.polarisations;
        if self.normalization == Normalization::Row {
            factors.fill(scales[of.row]);
            return;
        }
        let (of_channels, others) = scales.split_at(polarisations * self.channels);
        let of_channels = &of_channels[polarisations * channel..][..factors.len()];
        let of_row = |polarisation: usize| match self.normalization {
            Normalization::AntennaFrequency => {
                let of_antennas = &others[polarisation * self.antennas..][..self.antennas];
                let [one, other] = of.antennas.map(|antenna| of_antennas[antenna as usize]);
                one * other
            }
            _ => others[of.row * polarisations + polarisation],
        };
        match polarisations {
            2 => multiply::<2>(of_channels, std::array::from_fn(of_row), factors),
            4 => multiply::<4>(of_channels, std::array::from_fn(of_row), factors),
            _ => {
                for polarisation in 0..polarisations {
                    let of_row = of_row(polarisation);
                    for i in (polarisation..factors.len()).step_by(polarisations) {
                        factors[i] = of_channels[i] * of_row;
                    }
                }
            }
        }
    }
}

/// Multiplies the scale factors of channels, polarisations fastest, by those of a row, one for each polarisation; the
/// products are put into `factors`.
fn multiply<const POLARISATIONS: usize>(of_channels: &[f64], of_row: [f64; POLARISATIONS], factors: &mut [f64]) {
    let (of_channels, _) = of_channels.as_chunks::<POLARISATIONS>();
    let (factors, _) = factors.as_chunks_mut::<POLARISATIONS>();
    for (factors, of_channel) in factors.iter_mut().zip(of_channels) {
        *factors = std::array::from_fn(|i| of_channel[i] * of_row[i]);
    }
}

/// Decodes DyscoStMan's symbols to complex visibilities: real and imaginary part in turn, both times the scale factor of the
/// visibility.
pub(super) struct Visibilities<'a> {
    pub(super) dictionary: &'a Dictionary,
    pub(super) factors: &'a [f64],
    pub(super) out: &'a mut [Complex32],
}

impl Decode for Visibilities<'_> {
    fn decode(self, next: impl FnMut() -> [u16; 4]) {
        // which of two NaNs a product becomes is unspecified: casacore's is the first, so the sign is that of the dictionary;
        // all factors are looked at, since a loop without an early end is done in vectors
        match self.factors.iter().fold(false, |any, factor| any | factor.is_nan()) {
            true => self.decode_by(next, |entry, factor| match (entry.is_nan(), factor.is_nan()) {
                (true, _) => entry as f32,
                (_, true) => factor as f32,
                _ => (entry * factor) as f32,
            }),
            false => self.decode_by(next, |entry, factor| (entry * factor) as f32),
        }
    }
}

impl Visibilities<'_> {
    #[inline(always)]
    fn decode_by(self, mut next: impl FnMut() -> [u16; 4], product: impl Fn(f64, f64) -> f32) {
        let value = |[re, im]: [u16; 2], factor: f64| {
            let [re, im] = [re, im].map(|symbol| self.dictionary[usize::from(symbol)]);
            Complex32::new(product(re, factor), product(im, factor))
        };
        let (pairs, last) = self.out.as_chunks_mut::<2>();
        let (factors, last_factor) = self.factors.as_chunks::<2>();
        for (pair, factors) in pairs.iter_mut().zip(factors) {
            let [a, b, c, d] = next();
            *pair = [value([a, b], factors[0]), value([c, d], factors[1])];
        }
        if let ([last], [factor]) = (last, last_factor) {
            let [a, b, ..] = next();
            *last = value([a, b], *factor);
        }
    }
}

/// Decodes symbols of `width` bits of DyscoStMan to weights. Each weight is stored once and repeated for all
/// `polarisations` of its channel; `maximum` is the weight that the largest symbol stands for.
pub(super) struct Weights<'a> {
    pub(super) maximum: f64,
    pub(super) width: u8,
    pub(super) polarisations: usize,
    pub(super) out: &'a mut [f32],
}

impl Decode for Weights<'_> {
    fn decode(self, next: impl FnMut() -> [u16; 4]) {
        match self.polarisations {
            1 => self.decode_each::<1>(next),
            2 => self.decode_each::<2>(next),
            4 => self.decode_each::<4>(next),
            polarisations => self.decode_to(next, |out, weights: [f32; 4]| {
                out.chunks_mut(polarisations).zip(weights).for_each(|(out, weight)| out.fill(weight));
            }),
        }
    }
}

impl Weights<'_> {
    #[inline(always)]
    fn decode_each<const POLARISATIONS: usize>(self, next: impl FnMut() -> [u16; 4]) {
        self.decode_to(next, |out, weights| {
            let (out, _) = out.as_chunks_mut::<POLARISATIONS>();
            out.iter_mut().zip(weights).for_each(|(out, weight)| *out = [weight; POLARISATIONS]);
        });
    }

    /// Decodes the weights of four channels at a time, and calls `put` with the part of the output for these channels, and
    /// the four weights.
    #[inline(always)]
    fn decode_to(self, mut next: impl FnMut() -> [u16; 4], put: impl Fn(&mut [f32], [f32; 4])) {
        let unit = self.maximum / f64::from((1u32 << self.width) - 1);
        for out in self.out.chunks_mut(4 * self.polarisations) {
            put(out, next().map(|symbol| (f64::from(symbol) * unit) as f32));
        }
    }
}
