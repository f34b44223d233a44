//! Decodes the symbols of DyscoStMan to visibilities and weights. formats/engines.md 2.5 and 2.6.

use num_complex::Complex32;

use super::dictionary::Dictionary;
use super::header::Normalization;

/// Which scale factors apply to the symbols of a data column, by the normalisation and the shape of cells.
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

/// The row, and its antennas, for which scale factors are selected.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowScale {
    /// Number of the row in its block, from 0.
    pub(super) row: usize,
    /// Both antennas of the row, each below the number in [`DataScale`]; only used where scales belong to antennas.
    pub(super) antennas: [u32; 2],
}

impl DataScale {
    /// Computes the scale factors of a row's values from `channel` (from 0) on, polarisations fastest; `factors` has one for
    /// each value.
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
        for polarisation in 0..polarisations {
            let of_row = match self.normalization {
                Normalization::AntennaFrequency => {
                    let of_antennas = &others[polarisation * self.antennas..][..self.antennas];
                    let [one, other] = of.antennas.map(|antenna| of_antennas[antenna as usize]);
                    one * other
                }
                _ => others[of.row * polarisations + polarisation],
            };
            for i in (polarisation..factors.len()).step_by(polarisations) {
                factors[i] = of_channels[i] * of_row;
            }
        }
    }
}

/// Decodes data symbols to complex values; they are real and imaginary parts in turn, and each value has its factor.
pub(super) fn data(dictionary: &Dictionary, symbols: &[u16], factors: &[f64], out: &mut [Complex32]) {
    let (symbols, _) = symbols.as_chunks::<2>();
    let scale = |symbol: u16, factor: f64| (f64::from(dictionary[usize::from(symbol)]) * factor) as f32;
    // which of two NaNs a product becomes is unspecified: casacore's is the first, so the sign is that of the dictionary
    if factors.iter().any(|factor| factor.is_nan()) {
        for ((value, pair), &factor) in out.iter_mut().zip(symbols).zip(factors) {
            let [re, im] = pair.map(|symbol| match dictionary[usize::from(symbol)] {
                entry if !entry.is_nan() && factor.is_nan() => factor as f32,
                entry if entry.is_nan() => entry,
                _ => scale(symbol, factor),
            });
            *value = Complex32::new(re, im);
        }
        return;
    }
    for ((value, pair), &factor) in out.iter_mut().zip(symbols).zip(factors) {
        *value = Complex32::new(scale(pair[0], factor), scale(pair[1], factor));
    }
}

/// Decodes symbols of `width` bits to weights, each of which applies to all `polarisations` of a channel; `maximum` is the
/// weight of the largest symbol.
pub(super) fn weights(maximum: f64, width: u8, symbols: &[u16], polarisations: usize, out: &mut [f32]) {
    let unit = maximum / f64::from((1u32 << width) - 1);
    for (values, &symbol) in out.chunks_exact_mut(polarisations).zip(symbols) {
        values.fill((f64::from(symbol) * unit) as f32);
    }
}
