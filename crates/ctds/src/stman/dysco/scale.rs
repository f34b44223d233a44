//! Decodes the symbols (quantised values) of DyscoStMan to visibilities and weights.
//! formats/engines.md 2.5 and 2.6.

use num_complex::Complex32;

use super::dictionary::Dictionary;
use super::header::Normalization;
use super::symbols::Decode;

/// | normalization | scales of a block, first axis fastest |
/// |-----------------------|-----------------------------------------------------------------|
/// | antenna and frequency | `[polarisations, channels]`, then `[antennas, polarisations]` |
/// | row and frequency | `[polarisations, channels]`, then `[polarisations, rows]` |
/// | row | `[rows]` |
#[derive(Debug, Clone, Copy)]
pub(super) struct DataScale {
    pub(super) normalization: Normalization,
    pub(super) polarisations: usize,
    pub(super) channels: usize,
    pub(super) antennas: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RowScale {
    /// Number in its block.
    pub(super) row: usize,
    /// Each below the number of antennas of [`DataScale`]; used for scale factors of antennas only.
    pub(super) antennas: [u32; 2],
}

impl DataScale {
    /// Factors from `channel` on; `scales` are those of the block, `product` is a buffer.
    pub(super) fn factors<'a>(
        &self,
        scales: &'a [f64],
        of: RowScale,
        channel: usize,
        product: &'a mut Vec<f64>,
    ) -> Factors<'a> {
        let polarisations = self.polarisations;
        if self.normalization == Normalization::Row {
            return Factors::Equal(scales[of.row]);
        }
        let (of_channels, others) = scales.split_at(polarisations * self.channels);
        let of_channels = &of_channels[polarisations * channel..];
        let of_row = |polarisation: usize| match self.normalization {
            Normalization::AntennaFrequency => {
                let of_antennas = &others[polarisation * self.antennas..][..self.antennas];
                let [one, other] = of.antennas.map(|antenna| of_antennas[antenna as usize]);
                one * other
            }
            _ => others[of.row * polarisations + polarisation],
        };
        if matches!(polarisations, 1 | 2 | 4) {
            return Factors::Products { of_channels, of_row: std::array::from_fn(|i| of_row(i % polarisations)) };
        }
        product.clear();
        product.extend(of_channels.iter().enumerate().map(|(i, of_channel)| of_channel * of_row(i % polarisations)));
        Factors::Products { of_channels: product, of_row: [1.0; 4] }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Factors<'a> {
    Equal(f64),
    /// Visibility i (polarisations fastest) has `of_channels[i] * of_row[i % 4]`. The order of the
    /// products is the writer's: f64 products are not associative to the last bit.
    Products {
        of_channels: &'a [f64],
        of_row: [f64; 4],
    },
}

impl Factors<'_> {
    fn of(&self, visibility: usize) -> f64 {
        match self {
            Factors::Equal(factor) => *factor,
            Factors::Products { of_channels, of_row } => of_channels[visibility] * of_row[visibility % 4],
        }
    }
}

/// Real and imaginary part in turn, both times the scale factor.
pub(super) struct Visibilities<'a> {
    pub(super) dictionary: &'a Dictionary,
    pub(super) factors: Factors<'a>,
    /// All stored factors are finite, and so their products: three f32 do not overflow f64.
    pub(super) finite: bool,
    pub(super) out: &'a mut [Complex32],
}

impl Decode for Visibilities<'_> {
    fn decode(self, next: impl FnMut() -> [u16; 8]) {
        // which of two NaNs a product becomes is unspecified: casacore's is the first, so the sign
        // is that of the dictionary
        match self.finite {
            true => self.decode_by(next, |entry, factor| (entry * factor) as f32),
            false => self.decode_by(next, |entry, factor| match (entry.is_nan(), factor.is_nan()) {
                (true, _) => entry as f32,
                (_, true) => factor as f32,
                _ => (entry * factor) as f32,
            }),
        }
    }
}

impl Visibilities<'_> {
    #[inline(always)]
    fn decode_by(self, mut next: impl FnMut() -> [u16; 8], product: impl Fn(f64, f64) -> f32) {
        let (fours, last) = self.out.as_chunks_mut::<4>();
        let mut four = |factors: [f64; 4]| {
            let entries = next().map(|symbol| self.dictionary[usize::from(symbol)]);
            let part = |i: usize| product(entries[i], factors[i / 2]);
            std::array::from_fn(|i| Complex32::new(part(2 * i), part(2 * i + 1)))
        };
        let last_factors =
            std::array::from_fn(|i| if i < last.len() { self.factors.of(4 * fours.len() + i) } else { 0. });
        match self.factors {
            Factors::Equal(factor) => fours.iter_mut().for_each(|out| *out = four([factor; 4])),
            Factors::Products { of_channels, of_row } => {
                for (out, of_channels) in fours.iter_mut().zip(of_channels.as_chunks::<4>().0) {
                    *out = four(std::array::from_fn(|i| of_channels[i] * of_row[i]));
                }
            }
        }
        if !last.is_empty() {
            last.copy_from_slice(&four(last_factors)[..last.len()]);
        }
    }
}

/// Each weight stands for all `polarisations`; `maximum` is that of the largest symbol.
pub(super) struct Weights<'a> {
    pub(super) maximum: f64,
    pub(super) width: u8,
    pub(super) polarisations: usize,
    pub(super) out: &'a mut [f32],
}

impl Decode for Weights<'_> {
    fn decode(self, next: impl FnMut() -> [u16; 8]) {
        match self.polarisations {
            1 => self.decode_each::<1>(next),
            2 => self.decode_each::<2>(next),
            4 => self.decode_each::<4>(next),
            polarisations => self.decode_to(next, |out, weights: [f32; 8]| {
                out.chunks_mut(polarisations).zip(weights).for_each(|(out, weight)| out.fill(weight));
            }),
        }
    }
}

impl Weights<'_> {
    #[inline(always)]
    fn decode_each<const POLARISATIONS: usize>(self, next: impl FnMut() -> [u16; 8]) {
        self.decode_to(next, |out, weights| {
            let (out, _) = out.as_chunks_mut::<POLARISATIONS>();
            out.iter_mut().zip(weights).for_each(|(out, weight)| *out = [weight; POLARISATIONS]);
        });
    }

    /// Decodes eight channels at a time; `put` gets their part of the output and the eight weights.
    #[inline(always)]
    fn decode_to(self, mut next: impl FnMut() -> [u16; 8], put: impl Fn(&mut [f32], [f32; 8])) {
        let unit = self.maximum / f64::from((1u32 << self.width) - 1);
        for out in self.out.chunks_mut(8 * self.polarisations) {
            put(out, next().map(|symbol| (f64::from(symbol) * unit) as f32));
        }
    }
}
