//! Functions of all elements of an array: sums, means, medians …
//!
//! Floating-point sums add the elements one after the other, the first axis fastest, in double
//! precision, beginning with 0; casacore has the same order.

use num_complex::Complex64;

use super::complex;
use super::node::Reduction;
use crate::error::{Error, Result};

/// Largest number of elements whose median, if it is even, is the mean of the middle two.
const MEAN_MEDIAN: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Axes,
}

fn empty() -> Error {
    Error::format("an array without elements has neither minimum nor maximum")
}

pub(super) fn bools(reduction: Reduction, values: &[bool]) -> bool {
    match reduction {
        Reduction::All => values.iter().all(|&value| value),
        _ => values.contains(&true),
    }
}

pub(super) fn count(reduction: Reduction, values: &[bool]) -> i64 {
    let counted = reduction == Reduction::CountTrue;
    values.iter().filter(|&&value| value == counted).count() as i64
}

/// `Format` if an array without elements has no such value.
pub(super) fn ints(reduction: Reduction, values: &[i64]) -> Result<i64> {
    Ok(match reduction {
        Reduction::Min => *values.iter().min().ok_or_else(empty)?,
        Reduction::Max => *values.iter().max().ok_or_else(empty)?,
        Reduction::Product if values.is_empty() => 0,
        Reduction::Product => values.iter().fold(1, |product, &value| product.wrapping_mul(value)),
        Reduction::SumSquares => values.iter().fold(0, |sum: i64, &value| sum.wrapping_add(value.wrapping_mul(value))),
        _ => values.iter().fold(0, |sum: i64, &value| sum.wrapping_add(value)),
    })
}

/// Fails as [`ints`].
pub(super) fn doubles(reduction: Reduction, values: &[f64], extent: Extent) -> Result<f64> {
    let count = values.len() as f64;
    let sum = || values.iter().fold(0.0, |sum, value| sum + value);
    let squares = || values.iter().fold(0.0, |sum, value| sum + value * value);
    let variance = |less: usize| {
        if values.len() <= less {
            return 0.0;
        }
        let mean = sum() / count;
        values.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean)) / (count - less as f64)
    };
    Ok(match reduction {
        Reduction::Min => extreme(values, |value, least| value < least)?,
        Reduction::Max => extreme(values, |value, most| value > most)?,
        Reduction::Sum => sum(),
        Reduction::SumSquares => squares(),
        _ if values.is_empty() => 0.0,
        Reduction::Product => values.iter().fold(1.0, |product, value| product * value),
        Reduction::Mean => sum() / count,
        Reduction::Variance(less) => variance(less),
        Reduction::Stddev(less) => variance(less).sqrt(),
        Reduction::Avdev => {
            let mean = sum() / count;
            values.iter().fold(0.0, |sum, value| sum + (value - mean).abs()) / count
        }
        Reduction::Rms => (squares() / count).sqrt(),
        Reduction::Median => median(values, extent),
        Reduction::Fractile(part) => {
            if !(0.0..=1.0).contains(&part) {
                return Err(Error::format(format!("the fractile {part} is not between 0 and 1")));
            }
            nth(values, ((values.len() - 1) as f64 * f64::from(part) + 0.01) as usize)
        }
        Reduction::Any | Reduction::All | Reduction::CountTrue | Reduction::CountFalse => sum(),
    })
}

pub(super) fn complexes(reduction: Reduction, values: &[Complex64]) -> Complex64 {
    let plus = |sum: Complex64, value: Complex64| sum + value;
    let sum = || values.iter().copied().fold(Complex64::ZERO, plus);
    match reduction {
        Reduction::SumSquares => values.iter().map(|&value| complex::times(value, value)).fold(Complex64::ZERO, plus),
        _ if values.is_empty() => Complex64::ZERO,
        Reduction::Product => values[1..].iter().fold(values[0], |product, &value| complex::times(product, value)),
        Reduction::Mean => mean(values),
        _ => sum(),
    }
}

/// Variance, standard deviation and mean absolute deviation of complex numbers, which are real.
pub(super) fn deviation(reduction: Reduction, values: &[Complex64]) -> f64 {
    let variance = |less: usize| {
        if values.len() <= less {
            return 0.0;
        }
        let mean = mean(values);
        let squares = values.iter().fold(0.0, |sum, value| sum + complex::norm(value - mean));
        squares / (values.len() - less) as f64
    };
    match reduction {
        Reduction::Variance(less) => variance(less),
        Reduction::Stddev(less) => variance(less).sqrt(),
        _ if values.is_empty() => 0.0,
        _ => {
            let mean = mean(values);
            values.iter().fold(0.0, |sum, value| sum + complex::abs(value - mean)) / values.len() as f64
        }
    }
}

fn mean(values: &[Complex64]) -> Complex64 {
    let sum = values.iter().fold(Complex64::ZERO, |sum, value| sum + value);
    complex::over(sum, Complex64::new(values.len() as f64, 0.0))
}

/// The first of the values that no other one replaces; NaN replaces none.
fn extreme(values: &[f64], replaces: impl Fn(f64, f64) -> bool) -> Result<f64> {
    let (&first, rest) = values.split_first().ok_or_else(empty)?;
    Ok(rest.iter().fold(first, |found, &value| if replaces(value, found) { value } else { found }))
}

fn median(values: &[f64], extent: Extent) -> f64 {
    let middle = (values.len() - 1) / 2;
    let is_mean = values.len().is_multiple_of(2) && values.len() <= MEAN_MEDIAN && extent == Extent::Whole;
    if is_mean { 0.5 * (nth(values, middle) + nth(values, middle + 1)) } else { nth(values, middle) }
}

/// The element that `index` others precede in their order.
fn nth(values: &[f64], index: usize) -> f64 {
    let mut values = values.to_vec();
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}
