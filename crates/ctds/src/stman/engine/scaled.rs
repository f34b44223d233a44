//! ScaledArrayEngine and ScaledComplexData compute numbers as stored ones times a scale plus an
//! offset. formats/engines.md 1.2, 1.3.
//!
//! | keyword (after the prefix)    | type   | meaning                                |
//! |-------------------------------|--------|----------------------------------------|
//! | `Scale`, `Offset`             | V      | if fixed                               |
//! | `FixedScale`, `FixedOffset`   | Bool   | else there is a column                 |
//! | `ScaleName`, `OffsetName`     | String | scalar columns of type V               |
//!
//! `stored * scale + offset` is computed in the type that C computes it in, each operation rounded
//! by itself. A scale of 1 and an offset of 0 are left out, as casacore does: that shows in -0.0
//! and in the rounding.

use std::ops::Range;

use super::base::{Coding, Rows, STORED_COLUMN_PREFIX, open};
use super::scaling::{Number, Scaling};
use crate::error::{Error, Result};
use crate::stman::{Kind, Manager, OpenArgs};
use crate::value::{Complex32, Complex64, DataType, Values};

const ARRAY_PREFIX: &str = "_ScaledArrayEngine_";
const COMPLEX_PREFIX: &str = "_ScaledComplexData_";

pub(crate) static ARRAY: Kind =
    Kind::engine(&["ScaledArrayEngine"], &[STORED_COLUMN_PREFIX, ARRAY_PREFIX], open_array, Some(super::write::create));
pub(crate) static COMPLEX: Kind = Kind::engine(
    &["ScaledComplexData"],
    &[STORED_COLUMN_PREFIX, COMPLEX_PREFIX],
    open_complex,
    Some(super::write::create),
);

#[derive(Debug)]
struct Scaled<V>(Scaling<V>);

/// Computes complex numbers from pairs of real ones, each part with its own scale and offset.
#[derive(Debug)]
struct ScaledComplex<V>(Scaling<V>);

fn open_array(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let data_type = args.columns.first().map(|column| column.data_type);
    macro_rules! by_type {
        ($($variant:ident: $type:ty),*) => {
            match data_type {
                $(Some(DataType::$variant) => open_scaled::<$type>(args),)*
                // a type that cannot be scaled fails with the types of both columns
                _ => open_scaled::<f64>(args),
            }
        };
    }
    by_type!(UChar: u8, Short: i16, UShort: u16, Int: i32, UInt: u32, Int64: i64, Float: f32, Double: f64)
}

fn open_scaled<V: Real>(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>>
where
    Scaled<V>: Coding,
{
    open(ARRAY.names[0], args, |mapping| {
        mapping.expect(V::DATA_TYPE, &REAL)?;
        Ok(Scaled::<V>(Scaling::open(mapping, ARRAY_PREFIX, "FixedScale", "FixedOffset")?))
    })
}

fn open_complex(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    match args.columns.first().map(|column| column.data_type) {
        Some(DataType::Complex) => open_pairs::<Complex32>(args),
        _ => open_pairs::<Complex64>(args),
    }
}

fn open_pairs<V: Number>(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>>
where
    ScaledComplex<V>: Coding,
{
    open(COMPLEX.names[0], args, |mapping| {
        mapping.expect(V::DATA_TYPE, &REAL)?;
        Ok(ScaledComplex::<V>(Scaling::open(mapping, COMPLEX_PREFIX, "FixedScale", "FixedOffset")?))
    })
}

const REAL: [DataType; 8] = [
    DataType::UChar,
    DataType::Short,
    DataType::UShort,
    DataType::Int,
    DataType::UInt,
    DataType::Int64,
    DataType::Float,
    DataType::Double,
];

trait Real: Number + PartialEq {
    const ZERO: Self;
    const ONE: Self;
}

/// Type in which C++ computes with `Self` and `S`, by the usual arithmetic conversions.
trait With<S>: Real {
    type Common: Arithmetic;
    fn widen(self) -> Self::Common;
    fn widen_stored(stored: S) -> Self::Common;
    fn narrow(common: Self::Common) -> Self;
}

/// Arithmetic of compiled C++: integers wrap on overflow.
trait Arithmetic: Copy {
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
}

macro_rules! real {
    ($($type:ty)*) => {$(
        impl Real for $type {
            const ZERO: Self = 0 as $type;
            const ONE: Self = 1 as $type;
        }
    )*};
}
real!(u8 i16 u16 i32 u32 i64 f32 f64);

macro_rules! arithmetic {
    ($($type:ty, $times:expr, $plus:expr;)*) => {$(
        impl Arithmetic for $type {
            fn times(self, other: Self) -> Self {
                $times(self, other)
            }
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    )*};
}
arithmetic! {
    i32, i32::wrapping_mul, i32::wrapping_add;
    u32, u32::wrapping_mul, u32::wrapping_add;
    i64, i64::wrapping_mul, i64::wrapping_add;
    f32, std::ops::Mul::mul, std::ops::Add::add;
    f64, std::ops::Mul::mul, std::ops::Add::add;
}

/// Lists of computed type, stored type and the type in which they are combined.
macro_rules! common {
    ($($virtual_type:ty: $($stored:ty => $common:ty),*;)*) => {$($(
        impl With<$stored> for $virtual_type {
            type Common = $common;
            fn widen(self) -> $common {
                self as $common
            }
            fn widen_stored(stored: $stored) -> $common {
                stored as $common
            }
            fn narrow(common: $common) -> Self {
                common as $virtual_type
            }
        }
    )*)*};
}
common! {
    u8: u8 => i32, i16 => i32, u16 => i32, i32 => i32, u32 => u32, i64 => i64, f32 => f32, f64 => f64;
    i16: u8 => i32, i16 => i32, u16 => i32, i32 => i32, u32 => u32, i64 => i64, f32 => f32, f64 => f64;
    u16: u8 => i32, i16 => i32, u16 => i32, i32 => i32, u32 => u32, i64 => i64, f32 => f32, f64 => f64;
    i32: u8 => i32, i16 => i32, u16 => i32, i32 => i32, u32 => u32, i64 => i64, f32 => f32, f64 => f64;
    u32: u8 => u32, i16 => u32, u16 => u32, i32 => u32, u32 => u32, i64 => i64, f32 => f32, f64 => f64;
    i64: u8 => i64, i16 => i64, u16 => i64, i32 => i64, u32 => i64, i64 => i64, f32 => f32, f64 => f64;
    f32: u8 => f32, i16 => f32, u16 => f32, i32 => f32, u32 => f32, i64 => f32, f32 => f32, f64 => f64;
    f64: u8 => f64, i16 => f64, u16 => f64, i32 => f64, u32 => f64, i64 => f64, f32 => f64, f64 => f64;
}

/// Casacore skips a scale of 1 and an offset of 0.
#[derive(Debug, Clone, Copy)]
enum Steps {
    Neither,
    Scale,
    Offset,
    Both,
}

impl Steps {
    fn new(scale_is_one: bool, offset_is_zero: bool) -> Self {
        match (scale_is_one, offset_is_zero) {
            (true, true) => Steps::Neither,
            (false, true) => Steps::Scale,
            (true, false) => Steps::Offset,
            (false, false) => Steps::Both,
        }
    }

    #[inline]
    fn apply<C: Arithmetic>(self, stored: C, scale: C, offset: C) -> C {
        match self {
            Steps::Neither => stored,
            Steps::Scale => stored.times(scale),
            Steps::Offset => stored.plus(offset),
            Steps::Both => stored.times(scale).plus(offset),
        }
    }
}

fn scale_into<S: Copy, V: With<S>>(stored: &[S], (scale, offset): (V, V), out: &mut Vec<V>) {
    let steps = Steps::new(scale == V::ONE, offset == V::ZERO);
    let (scale, offset) = (scale.widen(), offset.widen());
    out.extend(stored.iter().map(|&stored| V::narrow(steps.apply(V::widen_stored(stored), scale, offset))));
}

fn wrong_buffer(stored: &Values, out: DataType) -> Error {
    Error::usage(format!("{out} elements are read from a column of {} elements", stored.data_type()))
}

macro_rules! for_each_real {
    ($stored:expr, $v:ident => $body:expr, $other:expr) => {
        match $stored {
            Values::UChar($v) => $body,
            Values::Short($v) => $body,
            Values::UShort($v) => $body,
            Values::Int($v) => $body,
            Values::UInt($v) => $body,
            Values::Int64($v) => $body,
            Values::Float($v) => $body,
            Values::Double($v) => $body,
            _ => return $other,
        }
    };
}

macro_rules! scaled {
    ($($type:ty: $variant:ident),*) => {$(
        impl Coding for Scaled<$type> {
            type Row = ($type, $type);

            fn rows(&self, rows: Range<u64>) -> Result<Rows<Self::Row>> {
                self.0.rows(rows)
            }

            fn decode(&self, row: Self::Row, stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()> {
                let Values::$variant(out) = out else { return Err(wrong_buffer(stored, out.data_type())) };
                for_each_real!(
                    stored, v => scale_into(&v[range], row, out), Err(wrong_buffer(stored, DataType::$variant))
                );
                Ok(())
            }
        }
    )*};
}
scaled!(u8: UChar, i16: Short, u16: UShort, i32: Int, u32: UInt, i64: Int64, f32: Float, f64: Double);

macro_rules! scaled_complex {
    ($($type:ty, $part:ty: $variant:ident),*) => {$(
        impl Coding for ScaledComplex<$type> {
            type Row = ($type, $type);
            const STORED: usize = 2;

            fn rows(&self, rows: Range<u64>) -> Result<Rows<Self::Row>> {
                self.0.rows(rows)
            }

            fn decode(
                &self,
                (scale, offset): Self::Row,
                stored: &Values,
                range: Range<usize>,
                out: &mut Values,
            ) -> Result<()> {
                let Values::$variant(out) = out else { return Err(wrong_buffer(stored, out.data_type())) };
                // a complex 1 would be (1, 0), but both parts are scaled
                let steps = Steps::new(scale == <$type>::new(1., 1.), offset == <$type>::new(0., 0.));
                for_each_real!(
                    stored,
                    v => out.extend(v[range].as_chunks().0.iter().map(|&[re, im]| {
                        <$type>::new(
                            scaled_part(steps, re, scale.re, offset.re),
                            scaled_part(steps, im, scale.im, offset.im),
                        )
                    })),
                    Err(wrong_buffer(stored, DataType::$variant))
                );
                Ok(())
            }
        }
    )*};
}
scaled_complex!(Complex32, f32: Complex, Complex64, f64: DComplex);

#[inline]
fn scaled_part<S, V: With<S>>(steps: Steps, stored: S, scale: V, offset: V) -> V {
    V::narrow(steps.apply(V::widen_stored(stored), scale.widen(), offset.widen()))
}
