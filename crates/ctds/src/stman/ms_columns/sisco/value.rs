//! Floats of SiscoStMan, and the predictors that compute one from others. formats/engines.md 3.5.2.
//!
//! All arithmetic on mantissas wraps, and operations are in the order in which casacore carries
//! them out: a prediction that differs in one bit spoils every value that follows. The usual cases
//! are free of branches, since visibilities are noise, and processors would guess half of them
//! wrong.

/// A float, `mantissa * 2^(exponent - 23)` with a sign. Mantissas need not be normalised. Signed
/// mantissas below are in units of an exponent given with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Value {
    mantissa: u32,
    /// Stored without prediction: -127 for zeros and subnormals, -128 for infinities and NaNs.
    pub(super) exponent: i8,
    negative: bool,
}

/// Largest exponent that is stored without prediction.
const SPECIAL: i8 = -127;

/// Mantissa bits that a prediction must not have: it is replaced by zero.
const EXCESS: u32 = 0xfe00_0000;

/// Mantissas below this can be weighted and added up without a result of 2^32 or more.
const SMALL: u64 = 1 << 27;

impl Value {
    /// The highest bit of the word is the sign.
    #[inline]
    pub(super) fn new(word: u32, exponent: i8) -> Self {
        Value { mantissa: word & 0x7fff_ffff, exponent, negative: word >> 31 != 0 }
    }

    #[inline]
    pub(super) fn is_special(self) -> bool {
        self.exponent <= SPECIAL
    }

    #[inline]
    pub(super) fn to_f32(self) -> f32 {
        let sign = u32::from(self.negative) << 31;
        let (mut mantissa, mut exponent) = (self.mantissa, self.exponent);
        if !self.is_special() {
            if mantissa == 0 {
                return f32::from_bits(sign);
            }
            // the highest bit that is set becomes bit 23
            let down = 8 - mantissa.leading_zeros() as i32;
            mantissa = if down > 0 { mantissa >> down } else { mantissa << -down };
            exponent = exponent.wrapping_add(down as i8);
        }
        let biased = u32::from(exponent.wrapping_add(127) as u8);
        f32::from_bits((mantissa & 0x7f_ffff) | biased << 23 | sign)
    }

    #[inline]
    fn signed(self) -> i64 {
        let sign = -i64::from(self.negative);
        (i64::from(self.mantissa) ^ sign) - sign
    }

    /// `other` has the same exponent. A sum of zero has the sign of this value.
    #[inline]
    pub(super) fn plus(self, other: i64) -> Self {
        let sum = self.signed() + other;
        let negative = if sum == 0 { self.negative } else { sum < 0 };
        Value { mantissa: sum.unsigned_abs() as u32, negative, ..self }
    }

    fn times(self, factor: i32) -> Self {
        let mantissa = self.mantissa.wrapping_mul(factor.unsigned_abs());
        Value { mantissa, negative: self.negative != (factor < 0), ..self }
    }

    /// Bits to the left for the same number with another exponent.
    fn up(self, exponent: i8) -> i32 {
        i32::from(self.exponent) - i32::from(exponent)
    }

    /// Shifts by -24 to 8; unspecified for other numbers.
    fn shifted(self, up: i32) -> u64 {
        u64::from(self.mantissa) << ((up + 32) & 63) >> 32
    }

    /// The same number with another exponent; `None` if that is smaller by 8 or more.
    fn matching(self, exponent: i8) -> Option<Self> {
        let up = self.up(exponent);
        let mantissa = if up < -24 { 0 } else { self.shifted(up) as u32 };
        (up < 8).then_some(Value { mantissa, exponent, ..self })
    }
}

/// Zero if the prediction is 2^25 or more.
fn capped(prediction: i64) -> i64 {
    if prediction.unsigned_abs() as u32 & EXCESS != 0 { 0 } else { prediction }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Predictor {
    /// Earlier values used, 1 to 4.
    values: usize,
    /// Most recent first.
    weights: [i32; 4],
    divisor: u32,
}

impl Predictor {
    const LAST: Self = Self::new(1, [1, 0, 0, 0], 1);
    const LINEAR: Self = Self::new(2, [2, -1, 0, 0], 1);
    const MEAN: Self = Self::new(2, [1, 1, 0, 0], 2);
    const QUADRATIC: Self = Self::new(3, [3, -3, 1, 0], 1);
    /// The line that fits the last three values best.
    const LINEAR_FIT: Self = Self::new(3, [4, 1, -2, 0], 3);
    const CUBIC: Self = Self::new(4, [4, -6, 4, -1], 1);
    /// The parabola that fits the last four values best.
    const QUADRATIC_FIT: Self = Self::new(4, [9, -3, -5, 3], 4);

    const fn new(values: usize, weights: [i32; 4], divisor: u32) -> Self {
        Predictor { values, weights, divisor }
    }

    /// Signed mantissa for `exponent`, which is not -127 or -128; `past` has the most recent first.
    #[inline]
    pub(super) fn predict(&self, past: &[Value; 4], exponent: i8) -> i64 {
        match self.values {
            1 => last(past[0], exponent),
            2 => self.predict_from::<2>(past, exponent),
            3 => self.predict_from::<3>(past, exponent),
            _ => self.predict_from::<4>(past, exponent),
        }
    }

    #[inline]
    fn predict_from<const VALUES: usize>(&self, past: &[Value; 4], exponent: i8) -> i64 {
        let (mut simple, mut sum) = (true, 0);
        for (value, weight) in past[..VALUES].iter().zip(self.weights) {
            let up = value.up(exponent);
            let mantissa = value.shifted(up);
            simple &= !value.is_special() & (-24..8).contains(&up) & (mantissa < SMALL);
            sum += i64::from(weight) * Value { mantissa: mantissa as u32, ..*value }.signed();
        }
        match simple {
            true if self.divisor == 1 => capped(sum),
            true => capped(sum / i64::from(self.divisor)),
            false => self.predict_by_steps(past, exponent),
        }
    }

    /// As [`predict`](Self::predict), also with special values and mantissas out of range.
    #[cold]
    fn predict_by_steps(&self, past: &[Value; 4], exponent: i8) -> i64 {
        let [p1, p2, p3, p4] = *past;
        if p1.is_special() {
            return last(p2, exponent);
        }
        if p2.is_special() {
            return last(p1, exponent);
        }
        if self.values > 2 && p3.is_special() {
            return Self::LINEAR.predict(past, exponent);
        }
        if self.values > 3 && p4.is_special() {
            return Self::QUADRATIC.predict(past, exponent);
        }
        let matching = past.map(|value| value.matching(exponent));
        match matching {
            [.., None] if self.values > 3 => return Self::QUADRATIC.predict(past, exponent),
            [_, _, None, _] if self.values > 2 => return Self::LINEAR.predict(past, exponent),
            [None, ..] | [_, None, ..] if self.values == 2 => return 0,
            [_, None, ..] => return last(p1, exponent),
            [None, ..] => return last(p2, exponent),
            _ => {}
        }
        let mut terms = matching
            .into_iter()
            .flatten()
            .zip(self.weights)
            .take(self.values)
            .map(|(value, weight)| value.times(weight));
        let first = terms.next().unwrap_or_default();
        let sum = terms.fold(first, |sum, term| sum.plus(term.signed()));
        capped(Value { mantissa: sum.mantissa / self.divisor, ..sum }.signed())
    }
}

/// 0 if `p1` is zero, subnormal, infinite or NaN, or its mantissa in this unit is out of range.
fn last(p1: Value, exponent: i8) -> i64 {
    let up = p1.up(exponent);
    let mantissa = p1.shifted(up) as u32;
    let none = p1.is_special() | !(-24..=1).contains(&up) | (up == 1 && mantissa & EXCESS != 0);
    Value { mantissa: if none { 0 } else { mantissa }, ..p1 }.signed()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// By the number of values before: 1, 2, 3, and 4 or more.
    pub(super) frequency: [Predictor; 4],
    pub(super) time: [Predictor; 4],
}

impl Level {
    /// `None` for an unknown level.
    pub(super) fn new(number: i8) -> Option<Self> {
        const LAST: Predictor = Predictor::LAST;
        const LINEAR: Predictor = Predictor::LINEAR;
        const QUADRATIC: Predictor = Predictor::QUADRATIC;
        let level = |frequency, time| Some(Level { frequency, time });
        let same = |predictors| level(predictors, predictors);
        match number {
            0 => same([LAST; 4]),
            1 => same([LAST, LINEAR, LINEAR, LINEAR]),
            2 => same([LAST, LINEAR, QUADRATIC, QUADRATIC]),
            3 => same([LAST, LINEAR, QUADRATIC, Predictor::CUBIC]),
            10 => same([LAST, Predictor::MEAN, Predictor::MEAN, Predictor::MEAN]),
            11 => same([LAST, LINEAR, Predictor::LINEAR_FIT, Predictor::LINEAR_FIT]),
            12 => same([LAST, LINEAR, QUADRATIC, Predictor::QUADRATIC_FIT]),
            21 => level([LAST, LINEAR, QUADRATIC, QUADRATIC], [LAST, LINEAR, LINEAR, LINEAR]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in each run.
    fn numbers() -> impl FnMut(u32) -> u32 {
        let mut state = 88_172_645_463_325_252u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32 % below
        }
    }

    #[test]
    fn predictions_without_branches_equal_those_by_steps() {
        let mut number = numbers();
        let mut simple = [0; 2];
        for _ in 0..20_000 {
            let exponent = number(12) as i8 - 6;
            let past: [Value; 4] = std::array::from_fn(|_| {
                let near = exponent + number(8) as i8 - 5;
                let far = exponent + number(40) as i8 - 28;
                let exponent = [near, near, near, near, near, near, near, far, -127, -128][number(10) as usize];
                Value::new(number(u32::MAX) >> [0, 6, 7, 8, 8, 9, 31][number(7) as usize], exponent)
            });
            for number in [0, 1, 2, 3, 10, 11, 12, 21] {
                let Level { frequency, time } = Level::new(number).unwrap();
                for predictor in frequency.iter().chain(&time).filter(|predictor| predictor.values > 1) {
                    let found = predictor.predict(&past, exponent);
                    assert_eq!(found, predictor.predict_by_steps(&past, exponent), "{predictor:?} {past:?} {exponent}");
                    simple[usize::from(found == 0)] += 1;
                }
            }
        }
        assert!(simple[0] > 100_000, "most predictions were zero: {simple:?}");
    }

    #[test]
    fn sums_keep_the_sign_of_the_first_term_where_they_are_zero() {
        let value = |word: u32| Value::new(word, 3);
        assert_eq!(value(5).plus(-7), value(0x8000_0002));
        assert_eq!(value(0x8000_0005).plus(7), value(2));
        assert_eq!(value(0x8000_0005).plus(5), value(0x8000_0000));
        assert_eq!(value(5).plus(-5), value(0));
        assert_eq!(value(0x8000_0000).plus(0), value(0x8000_0000));
        // a sum of 2^32 wraps
        let most = value(0x7fff_ffff).plus(0x7fff_ffff);
        assert_eq!(most.plus(3), Value { mantissa: 1, ..most });
    }

    #[test]
    fn mantissas_are_normalised() {
        let float = |mantissa, exponent| Value { mantissa, exponent, negative: true }.to_f32();
        assert_eq!(
            [float(3 << 22, 0), float(3, 22), float(u32::MAX, -8), float(0, 5)],
            [-1.5, -1.5, -1.999_999_9, -0.0]
        );
        assert!(float(0, 5).is_sign_negative());
        // zeros and subnormal numbers, infinities and NaNs: as they are
        assert_eq!([float(3, -127), float(0, -128)], [-f32::from_bits(3), f32::NEG_INFINITY]);
    }
}
