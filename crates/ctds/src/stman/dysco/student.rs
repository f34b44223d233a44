//! Quantiles of Student's t distribution, from which the values of the symbols of DyscoStMan are
//! computed. formats/engines.md 2.4.

use std::f64::consts::PI;

use super::normal;

/// Degrees of freedom from which on a short series from the normal quantile suffices.
const SERIES_FROM: f64 = 1000.0;
/// Newton steps per quantile; a few suffice from that of a neighbouring probability.
const STEPS: usize = 60;
/// Terms of the continued fraction, which needs about the square root of `nu`.
const TERMS: usize = 500;

pub(super) struct Student {
    nu: f64,
    /// Probability density at 0.
    peak: f64,
}

impl Student {
    /// `nu` must be positive: otherwise all quantiles are NaN.
    pub(super) fn new(nu: f64) -> Self {
        Student { nu, peak: gamma_ratio(nu / 2.0) / (nu * PI).sqrt() }
    }

    /// Quantiles for the probabilities `0.5 + q`; `q` ascends from 0 or more.
    pub(super) fn upper(&self, q: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut near = 0.0;
        let next = |q| {
            near = match q {
                _ if self.nu.is_nan() || self.nu <= 0.0 => f64::NAN,
                _ if self.nu >= SERIES_FROM => self.series(normal::quantile(0.5 + q)),
                ..0.25 => self.solve_centre(q, near),
                _ => self.solve_tail(0.5 - q, near),
            };
            near
        };
        q.map(next).collect()
    }

    /// Expansion of Cornish and Fisher from the normal quantile `z`.
    fn series(&self, z: f64) -> f64 {
        let (s, n) = (z * z, 1.0 / self.nu);
        let terms = [
            1.0,
            (s + 1.0) / 4.0,
            ((5.0 * s + 16.0) * s + 3.0) / 96.0,
            (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
            ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92_160.0,
        ];
        z * terms.iter().rev().fold(0.0, |sum, term| sum * n + term)
    }

    fn density(&self, t: f64) -> f64 {
        self.peak * (-0.5 * (self.nu + 1.0) * (t * t / self.nu).ln_1p()).exp()
    }

    /// Solves for t where the probability from 0 to t is `q`. Newton's method ascends from a lower
    /// bound, `near` or `q / peak`, because the probability is a concave function of t.
    fn solve_centre(&self, q: f64, near: f64) -> f64 {
        let mut t = near.max(q / self.peak);
        for _ in 0..STEPS {
            let step = (q - self.centre(t)) / self.density(t);
            t += step;
            if step.is_nan() || step.abs() <= t.abs() * 1e-16 {
                break;
            }
        }
        t
    }

    /// Solves for t with the probability `p` above it: Newton on logarithms from `near`, or 1 if 0.
    fn solve_tail(&self, p: f64, near: f64) -> f64 {
        let mut t = if near > 0.0 { near } else { 1.0 };
        for _ in 0..STEPS {
            let tail = self.tail(t);
            let step = (tail / p).ln() * tail / (self.density(t) * t);
            t *= step.clamp(-5.0, 5.0).exp();
            if step.is_nan() || step.abs() <= 1e-16 || !t.is_finite() {
                break;
            }
        }
        t
    }

    /// Probability from 0 to t.
    fn centre(&self, t: f64) -> f64 {
        let square = t * t;
        if square < 3.0 { self.beta_part(square, true) } else { 0.5 - self.beta_part(square, false) }
    }

    /// Probability above t.
    fn tail(&self, t: f64) -> f64 {
        let square = t * t;
        if square < 3.0 { 0.5 - self.beta_part(square, true) } else { self.beta_part(square, false) }
    }

    /// Half of the regularised incomplete beta function I_x(1/2, nu/2) for x = t²/(nu + t²) if
    /// `below`, else half of 1 minus it.
    fn beta_part(&self, square: f64, below: bool) -> f64 {
        let half = self.nu / 2.0;
        let sum = self.nu + square;
        // x^(1/2) (1-x)^(nu/2) / B(1/2, nu/2), halved; the density at t times t
        let front = self.density(square.sqrt()) * square.sqrt();
        match below {
            true => front / 0.5 * 0.5 * fraction(0.5, half, square / sum),
            false => front / half * 0.5 * fraction(half, 0.5, self.nu / sum),
        }
    }
}

/// Γ(a + 1/2) / Γ(a): an asymptotic series from 40 on, to which a recurrence leads smaller `a`.
fn gamma_ratio(mut a: f64) -> f64 {
    let mut ratio = 1.0;
    // NaN and what is not positive has no ratio
    while (0.0..40.0).contains(&a) {
        ratio *= a / (a + 0.5);
        a += 1.0;
    }
    let w = a - 0.25;
    let s = 1.0 / (w * w);
    ratio * w.sqrt() * (1.0 + s * (1.0 / 64.0 + s * (-19.0 / 8192.0 + s * 631.0 / 524_288.0)))
}

/// Continued fraction of the incomplete beta function, by Lentz's method; 1 for x = 0.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let keep = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / keep(1.0 + term * d);
            c = keep(1.0 + term / c);
            value *= c * d;
        }
        if value.is_nan() || (value - before).abs() <= value.abs() * 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        let q: Vec<f64> = (0..2000).map(|i| f64::from(i) / 4000.0).collect();
        // 1: tan(pi q); 2: 2 q sqrt(2 / (1 - 4 q²))
        for (nu, exact) in [
            (1.0, (|q| (PI * q).tan()) as fn(f64) -> f64),
            (2.0, |q| 2.0 * q * (2.0 / ((1.0 - 2.0 * q) * (1.0 + 2.0 * q))).sqrt()),
        ] {
            for (&q, t) in q.iter().zip(Student::new(nu).upper(q.iter().copied())) {
                assert!((t - exact(q)).abs() <= exact(q) * 1e-12, "nu {nu} q {q}: {t} {}", exact(q));
            }
        }
    }

    #[test]
    fn any_degrees_of_freedom_end() {
        for nu in [f64::NAN, f64::NEG_INFINITY, -1e300, -3.0, 0.0, 1e-300, 1e-3, 0.5, 999., 1e8, f64::INFINITY] {
            let values = Student::new(nu).upper((0..1000).map(|i| f64::from(i) / 2001.0));
            assert_eq!((values.len(), values[1].is_nan()), (1000, nu.is_nan() || nu <= 0.0));
        }
    }
}
