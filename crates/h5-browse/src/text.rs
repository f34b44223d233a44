//! Writes numbers of datasets as text: JSON and CSV.

use std::io::Write as _;

use crate::number::{Form, Kind};

/// Evaluates `$with` for each number as `$number`; a complex number counts as two.
macro_rules! each {
    ($form:expr, $bytes:expr, $number:ident => $with:expr) => {{
        let (form, bytes): (Form, &[u8]) = ($form, $bytes);
        macro_rules! of {
            ($t:ty) => {{
                for part in bytes.chunks_exact(size_of::<$t>()) {
                    let part = part.try_into().unwrap_or_default();
                    let $number = if form.big_endian { <$t>::from_be_bytes(part) } else { <$t>::from_le_bytes(part) };
                    $with
                }
            }};
        }
        match (form.kind, form.part()) {
            (Kind::Bool, _) => {
                for &byte in bytes {
                    let $number = byte != 0;
                    $with
                }
            }
            (Kind::Int, 1) => of!(i8),
            (Kind::Int, 2) => of!(i16),
            (Kind::Int, 4) => of!(i32),
            (Kind::Int, _) => of!(i64),
            (Kind::UInt, 1) => of!(u8),
            (Kind::UInt, 2) => of!(u16),
            (Kind::UInt, 4) => of!(u32),
            (Kind::UInt, _) => of!(u64),
            (Kind::Float | Kind::Complex, 2) => {
                for part in bytes.chunks_exact(2) {
                    let bits = [part[0], part[1]];
                    let bits = if form.big_endian { u16::from_be_bytes(bits) } else { u16::from_le_bytes(bits) };
                    let $number = $crate::number::decode_half(bits);
                    $with
                }
            }
            (Kind::Float | Kind::Complex, 4) => of!(f32),
            (Kind::Float | Kind::Complex, 8) => of!(f64),
            (Kind::Float | Kind::Complex, _) => {
                for part in bytes.chunks_exact(16) {
                    let $number = $crate::number::decode_extended(part, form.big_endian);
                    $with
                }
            }
        }
    }};
}
pub(crate) use each;

pub(crate) trait Text: Copy {
    fn json(self, out: &mut Vec<u8>);
    /// 18 digits after the point, as C's `%.18e`.
    fn csv(self, out: &mut Vec<u8>);
    /// A 64-bit float, for statistics.
    fn value(self) -> f64;
    /// Called only for integer types.
    fn integer(self) -> i128;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Text for $t {
            fn json(self, out: &mut Vec<u8>) {
                out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }

            fn csv(self, out: &mut Vec<u8>) {
                scientific(self as f64, out);
            }

            fn value(self) -> f64 {
                self as f64
            }

            fn integer(self) -> i128 {
                self.into()
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Text for $t {
            fn json(self, out: &mut Vec<u8>) {
                if self.is_finite() {
                    out.extend_from_slice(zmij::Buffer::new().format_finite(self).as_bytes());
                } else {
                    out.extend_from_slice(b"null");
                }
            }

            fn csv(self, out: &mut Vec<u8>) {
                scientific(self.into(), out);
            }

            fn value(self) -> f64 {
                self.into()
            }

            fn integer(self) -> i128 {
                0
            }
        }
    )*};
}
floats!(f32 f64);

impl Text for bool {
    fn json(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }

    fn csv(self, out: &mut Vec<u8>) {
        scientific(f64::from(self), out);
    }

    fn value(self) -> f64 {
        f64::from(self)
    }

    fn integer(self) -> i128 {
        self.into()
    }
}

/// Largest number of bytes in JSON, with its comma.
pub(crate) fn longest(form: Form) -> u64 {
    match (form.kind, form.part()) {
        (Kind::Bool, _) => 6,
        (Kind::Int | Kind::UInt, size) => [5, 5, 7, 7, 12, 12, 12, 12].get(size).copied().unwrap_or(21),
        (Kind::Float, 2 | 4) => 17,
        (Kind::Float, _) => 26,
        (Kind::Complex, 4) => 2 * 17 + 2,
        (Kind::Complex, _) => 2 * 26 + 2,
    }
}

/// Commas between numbers, without a list around them; a complex number is a list of two.
pub(crate) fn push_json(form: Form, bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if form.kind == Kind::Complex {
        let mut is_real = true;
        each!(form, bytes, number => {
            if is_real {
                out.extend_from_slice(if out.len() > start { b",[" } else { b"[" });
                number.json(out);
                out.push(b',');
            } else {
                number.json(out);
                out.push(b']');
            }
            is_real = !is_real;
        });
        return;
    }
    each!(form, bytes, number => {
        if out.len() > start {
            out.push(b',');
        }
        number.json(out);
    });
}

/// Lines of `columns` numbers, like numpy's `savetxt`; `column` counts those in the current line.
pub(crate) fn push_csv(form: Form, bytes: &[u8], columns: u64, column: &mut u64, out: &mut Vec<u8>) {
    let mut is_real = true;
    let is_complex = form.kind == Kind::Complex;
    each!(form, bytes, number => {
        if is_real && *column > 0 {
            out.push(b',');
        }
        if is_complex && is_real {
            out.extend_from_slice(b" (");
            number.csv(out);
            is_real = false;
            continue;
        }
        if is_complex {
            let start = out.len();
            number.csv(out);
            if out.get(start) != Some(&b'-') {
                out.insert(start, b'+');
            }
            out.extend_from_slice(b"j)");
            is_real = true;
        } else {
            number.csv(out);
        }
        *column += 1;
        if *column >= columns {
            out.push(b'\n');
            *column = 0;
        }
    });
}

/// Largest number of bytes in CSV, with its comma.
pub(crate) fn longest_csv(form: Form) -> u64 {
    if form.kind == Kind::Complex { 2 * 27 + 4 } else { 27 }
}

fn scientific(number: f64, out: &mut Vec<u8>) {
    if number.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if number.is_infinite() {
        return out.extend_from_slice(if number > 0. { b"inf" } else { b"-inf" });
    }
    let start = out.len();
    // writing to a vector cannot fail
    let _ = write!(out, "{number:.18e}");
    // the exponent has a sign and two digits at least
    let Some(e) = out[start..].iter().position(|&byte| byte == b'e') else { return };
    let mut digits = start + e + 1;
    if out[digits] == b'-' {
        digits += 1;
    } else {
        out.insert(digits, b'+');
        digits += 1;
    }
    if out.len() - digits < 2 {
        out.insert(digits, b'0');
    }
}

/// Bytes that are not UTF-8 become U+FFFD.
pub(crate) fn push_string(text: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    // strings can be written, and a vector takes everything
    let _ = serde_json::to_writer(&mut *out, &*text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(kind: Kind, size: usize, big_endian: bool) -> Form {
        Form { kind, size, big_endian }
    }

    fn json(form: Form, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        push_json(form, bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_in_json() {
        assert_eq!(json(form(Kind::Int, 1, false), &[1, 0xfe]), "1,-2");
        assert_eq!(json(form(Kind::UInt, 8, false), &[0xff; 8]), "18446744073709551615");
        assert_eq!(json(form(Kind::Int, 2, true), &[0xff, 0xfe, 0, 1]), "-2,1");
        assert_eq!(json(form(Kind::Float, 4, false), &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(json(form(Kind::Float, 2, false), &[0, 0x3c, 0, 0x7c]), "1.0,null");
        assert_eq!(json(form(Kind::Bool, 1, false), &[0, 1]), "false,true");
        let complex: Vec<u8> = [0.1f32, -2., f32::NAN, 4.].iter().flat_map(|part| part.to_le_bytes()).collect();
        assert_eq!(json(form(Kind::Complex, 8, false), &complex), "[0.1,-2.0],[null,4.0]");
    }

    #[test]
    fn no_number_is_longer_than_said() {
        for (form, bytes) in [
            (form(Kind::Int, 1, false), i8::MIN.to_le_bytes().to_vec()),
            (form(Kind::Int, 2, false), i16::MIN.to_le_bytes().to_vec()),
            (form(Kind::Int, 4, false), i32::MIN.to_le_bytes().to_vec()),
            (form(Kind::Int, 8, false), i64::MIN.to_le_bytes().to_vec()),
            (form(Kind::UInt, 8, false), u64::MAX.to_le_bytes().to_vec()),
            (form(Kind::Float, 4, false), (-1.1754944e-38f32).to_le_bytes().to_vec()),
            (form(Kind::Float, 8, false), (-2.2250738585072014e-308f64).to_le_bytes().to_vec()),
            (form(Kind::Float, 8, false), (-0.00012345678901234567f64).to_le_bytes().to_vec()),
        ] {
            assert!((json(form, &bytes).len() as u64) < longest(form), "{}", json(form, &bytes));
            let (mut out, mut column) = (Vec::new(), 0);
            push_csv(form, &bytes, 2, &mut column, &mut out);
            assert!((out.len() as u64) < longest_csv(form));
        }
    }

    #[test]
    fn csv_is_that_of_savetxt() {
        let (mut out, mut column) = (Vec::new(), 0);
        let bytes: Vec<u8> =
            [0.1f32, -1e30, f32::NAN, f32::NEG_INFINITY].iter().flat_map(|v| v.to_le_bytes()).collect();
        push_csv(form(Kind::Float, 4, false), &bytes, 2, &mut column, &mut out);
        push_csv(form(Kind::Complex, 8, false), &bytes, 1, &mut column, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "1.000000014901161194e-01,-1.000000015047466220e+30\nnan,-inf\n \
             (1.000000014901161194e-01-1.000000015047466220e+30j)\n (nan-infj)\n"
        );
    }
}
