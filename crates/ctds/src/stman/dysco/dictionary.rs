//! Dictionaries of DyscoStMan: the value of each symbol (quantised value) of data columns, before
//! it is multiplied by a scale factor. formats/engines.md 2.4.

use super::header::Distribution;
use super::normal;
use super::student::Student;

/// Values before scaling, by symbol, always 65536: f32s kept as f64, since multiplied as f64.
pub(super) type Dictionary = [f64; 1 << 16];

/// Symbols up to 2^bits - 2 are quantiles of `distribution`, ascending; the last one is NaN.
/// Computed as f64 and rounded once. The writer's √3 has passed through an f32.
pub(super) fn dictionary(distribution: Distribution, bits: u32) -> Box<Dictionary> {
    let count = (1usize << bits) - 1;
    let q = count as f64;
    let probability = |i: usize| (i as f64 + 0.5) / q;
    let sqrt3 = f64::from(3f64.sqrt() as f32);
    let mut values = vec![f64::NAN; 1 << 16];
    let mut fill = |value: &dyn Fn(usize) -> f64| {
        for (i, to) in values[..count].iter_mut().enumerate() {
            *to = f64::from(value(i) as f32);
        }
    };
    match distribution {
        Distribution::Gaussian => fill(&|i| sqrt3 * normal::quantile(probability(i))),
        Distribution::Uniform => fill(&|i| sqrt3 * (-1.0 + 2.0 * (i as f64 + 0.5) / q)),
        Distribution::TruncatedGaussian { truncation } => {
            let inside = normal::erf(truncation / std::f64::consts::SQRT_2);
            let below = 0.5 * (1.0 - inside);
            fill(&|i| normal::quantile(probability(i) * inside + below));
        }
        Distribution::StudentT { nu } => {
            // symmetric: only the upper half is solved for
            let centre = count / 2;
            let upper = Student::new(nu).upper((centre..count).map(|i| probability(i) - 0.5));
            fill(&|i| if i < centre { -upper[centre - i] } else { upper[i - centre] });
        }
    }
    match values.into_boxed_slice().try_into() {
        Ok(dictionary) => dictionary,
        Err(_) => unreachable!("it was made of this length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values of 2.4.
    #[test]
    fn values_of_4_bits() {
        let cases = [
            (
                Distribution::TruncatedGaussian { truncation: 2.5 },
                [-1.7608839, -1.2537429, -0.9509832, -0.7171358, -0.51726997, -0.33629933, -0.16578954, 0.],
            ),
            (
                Distribution::Gaussian,
                [-3.1764333, -2.2197125, -1.6756233, -1.2607828, -0.9082883, -0.59010077, -0.29080093, 0.],
            ),
            (
                Distribution::Uniform,
                [-1.6165807, -1.3856406, -1.1547005, -0.9237604, -0.6928203, -0.4618802, -0.2309401, 0.],
            ),
            (
                Distribution::StudentT { nu: 3. },
                [-2.821301, -1.6377443, -1.1504756, -0.8315431, -0.58438975, -0.3739102, -0.1827222, 0.],
            ),
        ];
        for (distribution, lower) in cases {
            let values = dictionary(distribution, 4).map(|value| value as f32);
            assert_eq!(values[..8], lower as [f32; 8], "{distribution:?}");
            let upper: Vec<f32> = values[7..15].iter().rev().map(|value| -value).collect();
            assert_eq!(upper, lower, "{distribution:?}");
            assert!(values[15].is_nan());
        }
        let values = dictionary(Distribution::TruncatedGaussian { truncation: 2.5 }, 10).map(|value| value as f32);
        let some = [values[0], values[1], values[100], values[512]];
        assert_eq!(some, [-2.4733658, -2.4248323, -1.2633592, 0.0024198436]);
        assert_eq!(values[1023].to_bits(), 0x7fc0_0000);
    }

    #[test]
    fn odd_parameters_give_something() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e-300, 1e300] {
            for distribution in
                [Distribution::StudentT { nu: odd }, Distribution::TruncatedGaussian { truncation: odd }]
            {
                assert!(dictionary(distribution, 8)[255].is_nan());
            }
        }
    }
}
