//! Scale and offset of an engine: fixed in keywords, or for each row in a scalar column.
//! formats/engines.md 1.1.

use std::ops::Range;

use super::base::{Mapping, Rows, other_column};
use crate::error::{Context, Error, Result, ResultExt};
use crate::stman::{OtherColumn, Storage};
use crate::value::{Complex32, Complex64, Element, Record, Value, Values};

#[derive(Debug)]
pub(super) struct Scaling<T> {
    scale: Source<T>,
    offset: Source<T>,
}

#[derive(Debug)]
enum Source<T> {
    Fixed(T),
    Column(OtherColumn),
}

impl<T: Number> Scaling<T> {
    /// Bool keywords `<prefix><fixed_scale>` and `<prefix><fixed_offset>` tell number from column.
    pub(super) fn open(mapping: &Mapping<'_>, prefix: &str, fixed_scale: &str, fixed_offset: &str) -> Result<Self> {
        let source = |what: &str, fixed: &str| {
            let is_fixed = flag(mapping.keywords, &format!("{prefix}{fixed}"))?;
            Source::open(mapping, &format!("{prefix}{what}"), is_fixed)
        };
        Ok(Scaling { scale: source("Scale", fixed_scale)?, offset: source("Offset", fixed_offset)? })
    }

    pub(super) fn rows(&self, rows: Range<u64>) -> Result<Rows<(T, T)>> {
        let offsets = |offset: &Source<T>| offset.read(rows.clone());
        Ok(match (&self.scale, &self.offset) {
            (&Source::Fixed(scale), &Source::Fixed(offset)) => Rows::Same((scale, offset)),
            (&Source::Fixed(scale), offset) => Rows::Each(offsets(offset)?.into_iter().map(|o| (scale, o)).collect()),
            (scale, &Source::Fixed(offset)) => {
                Rows::Each(scale.read(rows)?.into_iter().map(|scale| (scale, offset)).collect())
            }
            (scale, offset) => Rows::Each(scale.read(rows.clone())?.into_iter().zip(offset.read(rows)?).collect()),
        })
    }
}

impl<T: Number> Source<T> {
    /// The number in the keyword `key` if it is `fixed`, else the column that `<key>Name` names.
    fn open(mapping: &Mapping<'_>, key: &str, fixed: bool) -> Result<Self> {
        if fixed {
            return number(mapping.keywords, key).map(Source::Fixed);
        }
        let column = other_column(mapping.args, mapping.keywords, &format!("{key}Name"))?;
        if column.spec.storage != Storage::Scalar || column.spec.data_type != T::DATA_TYPE {
            return Err(Error::format(format!("{} scalars are expected", T::DATA_TYPE))
                .context(Context::column(&column.spec.name)));
        }
        mapping.parameter_reads.set(mapping.parameter_reads.get().saturating_add(column.reads()));
        Ok(Source::Column(column))
    }

    fn read(&self, rows: Range<u64>) -> Result<Vec<T>> {
        let count = (rows.end - rows.start) as usize;
        let column = match self {
            Source::Fixed(value) => return Ok(vec![*value; count]),
            Source::Column(column) => column,
        };
        let place = || Context::column(&column.spec.name);
        let mut values = Values::new(T::DATA_TYPE);
        column.cells().read_rows(rows, &mut values).with_context(place)?;
        T::of(values)
            .filter(|values| values.len() == count)
            .ok_or_else(|| Error::format(format!("{count} scalars are expected")).context(place()))
    }
}

pub(super) fn flag(keywords: &Record, key: &str) -> Result<bool> {
    match keywords.get(key) {
        Some(Value::Scalar(Values::Bool(value))) if value.len() == 1 => Ok(value[0]),
        _ => Err(Error::format(format!("the column keyword {key} is missing or not a Bool"))),
    }
}

pub(super) fn number<T: Number>(keywords: &Record, key: &str) -> Result<T> {
    match keywords.get(key) {
        Some(Value::Scalar(values)) => T::first_of(values),
        _ => None,
    }
    .ok_or_else(|| Error::format(format!("the column keyword {key} is missing or not a number")))
}

pub(super) trait Number: Element + Copy + std::fmt::Debug + Send + Sync {
    /// Converts as C does; `None` if that is not possible.
    fn convert(values: &Values, range: Range<usize>, out: &mut Vec<Self>) -> Option<()>;

    fn first_of(values: &Values) -> Option<Self> {
        let mut first = Vec::new();
        Self::convert(values, 0..values.len().min(1), &mut first)?;
        first.pop()
    }
}

macro_rules! real {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn convert(values: &Values, range: Range<usize>, out: &mut Vec<Self>) -> Option<()> {
                match values {
                    Values::UChar(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::Short(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::UShort(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::Int(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::UInt(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::Int64(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::Float(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    Values::Double(v) => out.extend(v[range].iter().map(|&v| v as $type)),
                    _ => return None,
                }
                Some(())
            }
        }
    )*};
}
real!(u8 i16 u16 i32 u32 i64 f32 f64);

macro_rules! complex {
    ($($type:ty, $part:ty;)*) => {$(
        impl Number for $type {
            fn convert(values: &Values, range: Range<usize>, out: &mut Vec<Self>) -> Option<()> {
                match values {
                    Values::Complex(v) => {
                        out.extend(v[range].iter().map(|v| Self::new(v.re as $part, v.im as $part)));
                    }
                    Values::DComplex(v) => {
                        out.extend(v[range].iter().map(|v| Self::new(v.re as $part, v.im as $part)));
                    }
                    real => {
                        let mut parts = Vec::new();
                        <$part>::convert(real, range, &mut parts)?;
                        out.extend(parts.into_iter().map(|re| Self::new(re, 0.)));
                    }
                }
                Some(())
            }
        }
    )*};
}
complex!(Complex32, f32; Complex64, f64;);
