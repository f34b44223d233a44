//! Floats of SiscoStMan, and the predictors that compute one from others. formats/engines.md 3.5.2.
//!
//! All arithmetic on mantissas wraps, and operations are in the order in which casacore carries them out: a prediction
//! that differs in one bit spoils every value that follows.

/// A float of SiscoStMan: its magnitude is `mantissa * 2^(exponent - 23)`, and its sign is a field of its own.
/// Mantissas need not be normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Value {
    mantissa: u32,
    exponent: i8,
    negative: bool,
}

/// Exponents that mark values of SiscoStMan stored without prediction: -128 for infinities and NaNs, -127 for zeros and
/// subnormal numbers.
const SPECIAL: [i8; 2] = [-128, -127];

/// Mask of the mantissa bits (25 and up) that a predicted value must not have: a prediction with one of them is replaced
/// by zero.
const EXCESS: u32 = 0xfe00_0000;

impl Value {
    /// Makes a value from the mantissa word and the exponent in the SiscoStMan file; the highest bit of the word is the
    /// sign.
    pub(super) fn new(word: u32, exponent: i8) -> Self {
        Value { mantissa: word & 0x7fff_ffff, exponent, negative: word >> 31 != 0 }
    }

    fn zero(exponent: i8) -> Self {
        Value { mantissa: 0, exponent, negative: false }
    }

    pub(super) fn exponent(self) -> i8 {
        self.exponent
    }

    pub(super) fn is_special(self) -> bool {
        SPECIAL.contains(&self.exponent)
    }

    fn is_usable(self) -> bool {
        !self.is_special()
    }

    pub(super) fn to_f32(self) -> f32 {
        let sign = u32::from(self.negative) << 31;
        let (mut mantissa, mut exponent) = (self.mantissa, self.exponent);
        if self.is_usable() {
            if mantissa == 0 {
                return f32::from_bits(sign);
            }
            while mantissa >= 1 << 24 {
                mantissa >>= 1;
                exponent = exponent.wrapping_add(1);
            }
            while mantissa < 1 << 23 {
                mantissa <<= 1;
                exponent = exponent.wrapping_sub(1);
            }
        }
        let biased = u32::from(exponent.wrapping_add(127) as u8);
        f32::from_bits((mantissa & 0x7f_ffff) | biased << 23 | sign)
    }

    /// The sum of two values that have the same exponent, which the result keeps.
    pub(super) fn plus(self, other: Self) -> Self {
        let (mantissa, negative) = if self.negative == other.negative {
            (self.mantissa.wrapping_add(other.mantissa), self.negative)
        } else if self.mantissa >= other.mantissa {
            (self.mantissa - other.mantissa, self.negative)
        } else {
            (other.mantissa - self.mantissa, !self.negative)
        };
        Value { mantissa, negative, ..self }
    }

    fn minus(self, other: Self) -> Self {
        self.plus(Value { negative: !other.negative, ..other })
    }

    fn times(self, factor: u32) -> Self {
        Value { mantissa: self.mantissa.wrapping_mul(factor), ..self }
    }

    fn over(self, divisor: u32) -> Self {
        Value { mantissa: self.mantissa / divisor, ..self }
    }

    /// The same number expressed with another exponent, its mantissa shifted by the difference; `None` if `exponent` is
    /// smaller by 8 or more.
    fn matching(self, exponent: i8) -> Option<Self> {
        let up = i32::from(self.exponent) - i32::from(exponent);
        let mantissa = match up {
            8.. => return None,
            0..8 => self.mantissa << up,
            -24..0 => self.mantissa >> -up,
            _ => 0,
        };
        Some(Value { mantissa, exponent, ..self })
    }

    /// The predicted value itself, or zero if its mantissa is too large (2^25 or more).
    fn capped(self) -> Self {
        if self.mantissa & EXCESS != 0 { Value::zero(self.exponent) } else { self }
    }
}

/// A method by which SiscoStMan predicts a value from those of lower channels or of earlier rows; the file stores the
/// difference between value and prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    /// Predicts that a value equals the most recent earlier value.
    Last,
    /// Predicts by the line through the last two values.
    Linear,
    /// Predicts the mean of the last two values.
    Mean,
    /// Predicts by the parabola through the last three values.
    Quadratic,
    /// Predicts by the line that fits the last three values best.
    LinearFit,
    /// Predicts by the cubic through the last four values.
    Cubic,
    /// Predicts by the parabola that fits the last four values best.
    QuadraticFit,
}

impl Predictor {
    /// Predicts a value with the exponent `exponent`, which must not be -127 or -128 (zeros, subnormal numbers,
    /// infinities, NaNs). `past` contains the earlier values, most recent first, as many as the predictor needs.
    pub(super) fn predict(self, past: &[Value], exponent: i8) -> Value {
        match (self, past) {
            (Predictor::Last, [p1, ..]) => last(*p1, exponent),
            (Predictor::Linear, [p1, p2, ..]) => linear(*p2, *p1, exponent),
            (Predictor::Mean, [p1, p2, ..]) => of_two(*p2, *p1, exponent, |p2, p1| p1.plus(p2).over(2)),
            (Predictor::Quadratic, [p1, p2, p3, ..]) => quadratic(*p3, *p2, *p1, exponent),
            (Predictor::LinearFit, [p1, p2, p3, ..]) => {
                of_three(*p3, *p2, *p1, exponent, |p3, p2, p1| p1.times(4).plus(p2).minus(p3.times(2)).over(3))
            }
            (Predictor::Cubic, [p1, p2, p3, p4, ..]) => of_four([*p4, *p3, *p2, *p1], exponent, |[p4, p3, p2, p1]| {
                p1.times(4).minus(p2.times(6)).plus(p3.times(4)).minus(p4)
            }),
            (Predictor::QuadraticFit, [p1, p2, p3, p4, ..]) => {
                of_four([*p4, *p3, *p2, *p1], exponent, |[p4, p3, p2, p1]| {
                    p1.times(9).minus(p2.times(3)).minus(p3.times(5)).plus(p4.times(3)).over(4)
                })
            }
            _ => unreachable!("the table of levels asks for no more values than there are"),
        }
    }
}

fn last(p1: Value, exponent: i8) -> Value {
    if p1.is_special() {
        return Value::zero(exponent);
    }
    let up = i32::from(p1.exponent) - i32::from(exponent);
    match up {
        0 => p1,
        2.. => Value::zero(exponent),
        1 => Value { mantissa: p1.mantissa << 1, exponent, ..p1 }.capped(),
        -24..0 => Value { mantissa: p1.mantissa >> -up, exponent, ..p1 },
        _ => Value::zero(exponent),
    }
}

fn of_two(p2: Value, p1: Value, exponent: i8, combine: impl Fn(Value, Value) -> Value) -> Value {
    if p1.is_special() {
        return last(p2, exponent);
    }
    if p2.is_special() {
        return last(p1, exponent);
    }
    match (p2.matching(exponent), p1.matching(exponent)) {
        (Some(p2), Some(p1)) => combine(p2, p1).capped(),
        _ => Value::zero(exponent),
    }
}

fn linear(p2: Value, p1: Value, exponent: i8) -> Value {
    of_two(p2, p1, exponent, |p2, p1| p1.times(2).minus(p2))
}

fn of_three(p3: Value, p2: Value, p1: Value, exponent: i8, combine: impl Fn(Value, Value, Value) -> Value) -> Value {
    if p1.is_special() {
        return last(p2, exponent);
    }
    if p2.is_special() {
        return last(p1, exponent);
    }
    if p3.is_special() {
        return linear(p2, p1, exponent);
    }
    let Some(m3) = p3.matching(exponent) else { return linear(p2, p1, exponent) };
    let Some(m2) = p2.matching(exponent) else { return last(p1, exponent) };
    let Some(m1) = p1.matching(exponent) else { return last(p2, exponent) };
    combine(m3, m2, m1).capped()
}

fn quadratic(p3: Value, p2: Value, p1: Value, exponent: i8) -> Value {
    of_three(p3, p2, p1, exponent, |p3, p2, p1| p1.times(3).minus(p2.times(3)).plus(p3))
}

fn of_four([p4, p3, p2, p1]: [Value; 4], exponent: i8, combine: impl Fn([Value; 4]) -> Value) -> Value {
    if p1.is_special() {
        return last(p2, exponent);
    }
    if p2.is_special() {
        return last(p1, exponent);
    }
    if p3.is_special() {
        return linear(p2, p1, exponent);
    }
    if p4.is_special() {
        return quadratic(p3, p2, p1, exponent);
    }
    let Some(m4) = p4.matching(exponent) else { return quadratic(p3, p2, p1, exponent) };
    let Some(m3) = p3.matching(exponent) else { return linear(p2, p1, exponent) };
    let Some(m2) = p2.matching(exponent) else { return last(p1, exponent) };
    let Some(m1) = p1.matching(exponent) else { return last(p2, exponent) };
    combine([m4, m3, m2, m1]).capped()
}

/// The predictors that a prediction level of SiscoStMan uses, along the channels of a row and along the rows of a
/// baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// Predictors from lower channels of the same row, by the number of lower channels that exist: 1, 2, 3, and 4 or
    /// more.
    pub(super) frequency: [Predictor; 4],
    /// Predictors from earlier rows of the baseline, by the number of earlier rows that exist: 1, 2, 3, and 4 or more.
    pub(super) time: [Predictor; 4],
}

impl Level {
    /// The prediction level with this number, as stored in the SiscoStMan file; `None` if the number is not a known
    /// level.
    pub(super) fn new(number: i8) -> Option<Self> {
        use Predictor::{Cubic, Last, Linear, LinearFit, Mean, Quadratic, QuadraticFit};
        let level = |frequency, time| Some(Level { frequency, time });
        let same = |predictors| level(predictors, predictors);
        match number {
            0 => same([Last; 4]),
            1 => same([Last, Linear, Linear, Linear]),
            2 => same([Last, Linear, Quadratic, Quadratic]),
            3 => same([Last, Linear, Quadratic, Cubic]),
            10 => same([Last, Mean, Mean, Mean]),
            11 => same([Last, Linear, LinearFit, LinearFit]),
            12 => same([Last, Linear, Quadratic, QuadraticFit]),
            21 => level([Last, Linear, Quadratic, Quadratic], [Last, Linear, Linear, Linear]),
            _ => None,
        }
    }
}
