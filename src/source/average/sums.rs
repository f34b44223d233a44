//! The sums that become averaged samples.

use num_complex::{Complex32, Complex64};

use crate::value::{DataType, Values};

/// What the sum of an averaged sample is made of; samples of a higher rank replace those of lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Rank {
    #[default]
    Nothing,
    /// Samples of weight 0, which count the same.
    WithoutWeight,
    /// Flagged samples.
    Flagged,
    /// Samples that are not flagged.
    Good,
}

/// The sums of some averaged samples.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) ranks: Vec<Rank>,
    weights: Vec<f64>,
    /// Sums of the values; none where only weights or flags are wanted.
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

    /// Adds a sample to the sum with number `to`.
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

    /// Whether an averaged sample is flagged.
    pub(super) fn is_flagged(&self, number: usize) -> bool {
        self.ranks[number] != Rank::Good
    }

    /// The weight of an averaged sample.
    pub(super) fn weight(&self, number: usize) -> f64 {
        if self.ranks[number] > Rank::WithoutWeight { self.weights[number] } else { 0.0 }
    }

    /// Appends the means of all sums.
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

/// Whether elements of a type have a mean.
pub(super) fn has_mean(data_type: DataType) -> bool {
    matches!(data_type, DataType::Complex | DataType::DComplex | DataType::Float | DataType::Double)
}

/// The standard deviation that a weight stands for; -1 without weight, as in CASA.
pub(super) fn sigma(weight: f64) -> f32 {
    if weight > 0.0 { (1.0 / weight.sqrt()) as f32 } else { -1.0 }
}
