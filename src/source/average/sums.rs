//! Weighted sums of samples, from which the averaged samples (one for each correlation and averaged
//! channel) are computed.

use num_complex::{Complex32, Complex64};

use crate::value::Values;

/// Samples of a higher rank replace those of lower ranks in the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Rank {
    #[default]
    Nothing,
    /// Without a positive weight, flagged or not; each counts as one of weight 1.
    WithoutWeight,
    /// Flagged, of positive weight.
    Flagged,
    /// Not flagged, of positive weight.
    Good,
}

/// Weighted sums, indexed bin after bin, in it averaged channels, and correlations fastest.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) ranks: Vec<Rank>,
    weights: Vec<f64>,
    /// Real and imaginary parts; empty where only weights or flags are computed.
    values: Vec<(f64, f64)>,
}

impl Sums {
    pub(super) fn new(samples: usize, with_values: bool) -> Self {
        Sums {
            ranks: vec![Rank::Nothing; samples],
            weights: vec![0.0; samples],
            values: vec![(0.0, 0.0); if with_values { samples } else { 0 }],
        }
    }

    /// Keeps samples of the highest [`Rank`] only; the imaginary part of a real `value` is 0.
    pub(super) fn add(&mut self, to: usize, is_flagged: bool, weight: f64, value: (f64, f64)) {
        let (rank, weight) = match (is_flagged, weight > 0.0) {
            (_, false) => (Rank::WithoutWeight, 1.0),
            (true, true) => (Rank::Flagged, weight),
            (false, true) => (Rank::Good, weight),
        };
        if rank < self.ranks[to] {
            return;
        }
        let restart = rank > self.ranks[to];
        if restart {
            self.ranks[to] = rank;
            self.weights[to] = 0.0;
        }
        self.weights[to] += weight;
        if let Some(sum) = self.values.get_mut(to) {
            if restart {
                *sum = (0.0, 0.0);
            }
            sum.0 += weight * value.0;
            sum.1 += weight * value.1;
        }
    }

    /// No sample is unflagged and has a positive weight.
    pub(super) fn is_flagged(&self, number: usize) -> bool {
        self.ranks[number] != Rank::Good
    }

    /// Weight of the samples in the mean; 0 if none is positive.
    pub(super) fn weight(&self, number: usize) -> f64 {
        if self.ranks[number] > Rank::WithoutWeight { self.weights[number] } else { 0.0 }
    }

    pub(super) fn push_means(&self, out: &mut Values) {
        let means = self.values.iter().zip(&self.weights).map(|(sum, weight)| (sum.0 / weight, sum.1 / weight));
        match out {
            Values::Complex(out) => out.extend(means.map(|(re, im)| Complex32::new(re as f32, im as f32))),
            Values::DComplex(out) => out.extend(means.map(|(re, im)| Complex64::new(re, im))),
            Values::Float(out) => out.extend(means.map(|(mean, _)| mean as f32)),
            Values::Double(out) => out.extend(means.map(|(mean, _)| mean)),
            _ => {}
        }
    }
}

/// 1 / sqrt(weight); -1 if the weight is not positive, as in CASA.
pub(super) fn sigma(weight: f64) -> f32 {
    if weight > 0.0 { (1.0 / weight.sqrt()) as f32 } else { -1.0 }
}
