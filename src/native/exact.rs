//! Converts elements to the type of their column without loss: a user may have made the dataset of
//! a column again in another type. docs/reference/layout.md, "Edits".

use crate::h5::Wide;
use crate::value::{Complex32, DataType, Values};

/// An element that the type of its column cannot hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Index among the converted elements.
    pub(super) index: usize,
    pub(super) value: String,
}

/// Whether the kinds agree; each value may still not fit.
pub(super) fn is_possible(wide: &Wide, wanted: DataType) -> bool {
    let is_complex = matches!(wanted, DataType::Complex | DataType::DComplex);
    is_complex == matches!(wide, Wide::Complex(_)) && wanted.is_fixed_size()
}

/// [`is_possible`] is true. Fails with the first misfit; a NaN fits every floating-point type.
pub(super) fn converted(wide: &Wide, wanted: DataType) -> Result<Values, Misfit> {
    match wide {
        Wide::Integer(v) => real(v, wanted),
        Wide::Real(v) => real(v, wanted),
        Wide::Complex(v) if wanted == DataType::DComplex => Ok(Values::DComplex(v.clone())),
        Wide::Complex(v) => each(v, |z| Some(Complex32::new(z.re.float()?, z.im.float()?))).map(Values::Complex),
    }
}

/// A real number of [`Wide`].
trait Number: Copy + ToString {
    fn integer(self) -> Option<i128>;
    fn float(self) -> Option<f32>;
    fn double(self) -> Option<f64>;
}

impl Number for i128 {
    fn integer(self) -> Option<i128> {
        Some(self)
    }

    fn float(self) -> Option<f32> {
        let float = self as f32;
        (float as i128 == self).then_some(float)
    }

    fn double(self) -> Option<f64> {
        let double = self as f64;
        (double as i128 == self).then_some(double)
    }
}

impl Number for f64 {
    fn integer(self) -> Option<i128> {
        let integer = self as i128;
        (integer as f64 == self).then_some(integer)
    }

    fn float(self) -> Option<f32> {
        let float = self as f32;
        (f64::from(float) == self || self.is_nan()).then_some(float)
    }

    fn double(self) -> Option<f64> {
        Some(self)
    }
}

fn real<N: Number>(numbers: &[N], wanted: DataType) -> Result<Values, Misfit> {
    fn narrow<N: Number, T: TryFrom<i128>>(numbers: &[N]) -> Result<Vec<T>, Misfit> {
        each(numbers, |number| number.integer().and_then(|integer| T::try_from(integer).ok()))
    }
    let bool = |number: N| number.integer().filter(|integer| matches!(integer, 0 | 1)).map(|integer| integer == 1);
    Ok(match wanted {
        DataType::Bool => Values::Bool(each(numbers, bool)?),
        DataType::UChar => Values::UChar(narrow(numbers)?),
        DataType::Short => Values::Short(narrow(numbers)?),
        DataType::UShort => Values::UShort(narrow(numbers)?),
        DataType::Int => Values::Int(narrow(numbers)?),
        DataType::UInt => Values::UInt(narrow(numbers)?),
        DataType::Int64 => Values::Int64(narrow(numbers)?),
        DataType::Float => Values::Float(each(numbers, N::float)?),
        DataType::Double => Values::Double(each(numbers, N::double)?),
        DataType::Complex | DataType::DComplex | DataType::String | DataType::Record => {
            unreachable!("is_possible was asked")
        }
    })
}

fn each<N: Copy + ToString, T>(numbers: &[N], convert: impl Fn(N) -> Option<T>) -> Result<Vec<T>, Misfit> {
    let convert =
        |(index, &number): (usize, &N)| convert(number).ok_or_else(|| Misfit { index, value: number.to_string() });
    numbers.iter().enumerate().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Complex64;

    #[test]
    fn values_that_fit_are_converted() {
        let bits = |wide: Wide, wanted| converted(&wide, wanted).unwrap();
        assert_eq!(bits(Wide::Integer(vec![0, 1]), DataType::Bool), Values::Bool(vec![false, true]));
        assert_eq!(bits(Wide::Real(vec![1., 0.]), DataType::Bool), Values::Bool(vec![true, false]));
        assert_eq!(bits(Wide::Integer(vec![-7]), DataType::Short), Values::Short(vec![-7]));
        assert_eq!(
            bits(Wide::Real(vec![0.5, f64::INFINITY]), DataType::Float),
            Values::Float(vec![0.5, f32::INFINITY])
        );
        assert!(matches!(bits(Wide::Real(vec![f64::NAN]), DataType::Float), Values::Float(v) if v[0].is_nan()));
        let complex = Wide::Complex(vec![Complex64::new(1., -2.)]);
        assert_eq!(bits(complex, DataType::Complex), Values::Complex(vec![Complex32::new(1., -2.)]));
    }

    #[test]
    fn the_first_value_that_does_not_fit_is_named() {
        let misfit = |wide: Wide, wanted| converted(&wide, wanted).unwrap_err();
        let at = |index, value: &str| Misfit { index, value: value.to_owned() };
        assert_eq!(misfit(Wide::Integer(vec![1, 2, 3]), DataType::Bool), at(1, "2"));
        assert_eq!(misfit(Wide::Integer(vec![1 << 40]), DataType::Int), at(0, "1099511627776"));
        assert_eq!(misfit(Wide::Integer(vec![1 << 60, (1 << 60) + 1]), DataType::Double), at(1, "1152921504606846977"));
        assert_eq!(misfit(Wide::Real(vec![0.5, 0.1]), DataType::Float), at(1, "0.1"));
        assert_eq!(misfit(Wide::Real(vec![1.5]), DataType::Int), at(0, "1.5"));
        assert_eq!(misfit(Wide::Real(vec![f64::NAN]), DataType::Int), at(0, "NaN"));
        assert_eq!(misfit(Wide::Real(vec![1e300]), DataType::Int64).index, 0);
    }

    #[test]
    fn only_kinds_that_are_alike_are_converted() {
        assert!(is_possible(&Wide::Integer(Vec::new()), DataType::Bool));
        assert!(!is_possible(&Wide::Real(Vec::new()), DataType::Complex));
        assert!(!is_possible(&Wide::Complex(Vec::new()), DataType::Float));
        assert!(!is_possible(&Wide::Integer(Vec::new()), DataType::String));
    }
}
