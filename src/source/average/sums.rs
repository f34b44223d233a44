//! The weighted sums from which averaged samples are computed.

use num_complex::{Complex32, Complex64};

use crate::value::Values;

/// Which samples the sum of an averaged sample is made of; those of a higher rank replace those of lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Rank {
    #[default]
    Nothing,
    /// The sum is made of samples of weight 0 only, which all count the same.
    WithoutWeight,
    /// The sum is made of flagged samples only.
    Flagged,
    /// The sum is made of the samples that are not flagged.
    Good,
}

/// The weighted sums of samples from which averaged samples are computed, by index.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) ranks: Vec<Rank>,
    weights: Vec<f64>,
    /// Sums of the values, real and imaginary part, for each averaged sample; empty where only weights or flags are computed.
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

    /// Adds a sample to the sum with index `to`; `value` has its real and imaginary part.
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

    /// Whether the averaged sample with this index is flagged: none of its samples was good.
    pub(super) fn is_flagged(&self, number: usize) -> bool {
        self.ranks[number] != Rank::Good
    }

    /// The weight of the averaged sample with this index: the sum of weights, 0 if none of its samples had a weight.
    pub(super) fn weight(&self, number: usize) -> f64 {
        if self.ranks[number] > Rank::WithoutWeight { self.weights[number] } else { 0.0 }
    }

    /// Appends the weighted mean of each sum to `out`.
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

/// The standard deviation that a weight stands for, 1 / sqrt(weight); -1 without weight, as in CASA.
pub(super) fn sigma(weight: f64) -> f32 {
    if weight > 0.0 { (1.0 / weight.sqrt()) as f32 } else { -1.0 }
}
