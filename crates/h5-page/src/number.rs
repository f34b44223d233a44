//! Numbers: which HDF5 types are some, and their bytes in types of numpy and of JavaScript.

use h5_read::{ByteOrder, Class, Datatype, Float, Normalization, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    UInt,
    Float,
    /// Two floating-point numbers, real part first.
    Complex,
}

/// A number type of numpy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    /// Bytes: 1, 2, 4 or 8; 8 or 16 for complex numbers.
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
}

/// Elements of an HDF5 type, as numbers of a numpy type.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    pub(crate) form: Form,
    /// The bytes in the file are those of the numpy type.
    is_stored_so: bool,
    /// Bytes of an element.
    stride: usize,
    /// Offsets of the number, or of the two of a complex one, in an element.
    offsets: Vec<usize>,
    /// Type of these.
    part: Datatype,
}

impl Form {
    /// `<f4`.
    pub(crate) fn dtype(self) -> String {
        let letter = match self.kind {
            Kind::Bool => return "|b1".to_owned(),
            Kind::Int => 'i',
            Kind::UInt => 'u',
            Kind::Float => 'f',
            Kind::Complex => 'c',
        };
        let order = match (self.size, self.big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        format!("{order}{letter}{}", self.size)
    }

    fn part(self) -> usize {
        if self.kind == Kind::Complex { self.size / 2 } else { self.size }
    }

    /// The nearest type of JavaScript's typed arrays.
    pub(crate) fn safe(self) -> Self {
        let size = if self.kind == Kind::Float { self.size.max(4) } else { self.size };
        Form { size, big_endian: false, ..self }
    }
}

impl Number {
    /// `None` for a type that is not one of numbers.
    pub(crate) fn of(datatype: &Datatype) -> Option<Self> {
        let size = datatype.size as usize;
        let one =
            |(form, is_stored_so), part| Some(Number { form, is_stored_so, stride: size, offsets: vec![0], part });
        match &datatype.class {
            Class::Integer { .. } | Class::Bitfield { .. } => {
                let part = Datatype { class: integer_class(&datatype.class)?, ..*datatype };
                one(integer(&part)?, part)
            }
            Class::Float(layout) => one(float(layout, size)?, datatype.clone()),
            Class::Enum { values, .. } if size == 1 && is_bool(values) => {
                one((Form { kind: Kind::Bool, size: 1, big_endian: false }, true), datatype.clone())
            }
            Class::Enum { base, .. } => {
                Number::of(base).filter(|base| matches!(base.form.kind, Kind::Int | Kind::UInt))
            }
            Class::Complex(part) => complex(size, part, [0, part.size as usize]),
            Class::Compound(members) => match &members[..] {
                [r, i] if r.name == b"r" && i.name == b"i" && r.datatype == i.datatype => {
                    complex(size, &r.datatype, [r.offset as usize, i.offset as usize])
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `each` with each number in `bytes`; a complex one is two.
    pub(crate) fn each(&self, bytes: &[u8], mut each: impl FnMut(Value)) {
        let size = self.part.size as usize;
        for element in bytes.chunks_exact(self.stride.max(1)) {
            for &offset in &self.offsets {
                let number = element.get(offset..offset + size).and_then(|bytes| self.part.number(bytes));
                each(number.unwrap_or(Value::Float(f64::NAN)));
            }
        }
    }

    /// The bytes of elements as those of `to`, whose kind is the same.
    pub(crate) fn convert(&self, bytes: Vec<u8>, to: Form) -> Vec<u8> {
        if self.is_stored_so && self.form == to {
            return bytes;
        }
        let mut out = Vec::with_capacity(bytes.len() / self.stride.max(1) * to.size);
        self.each(&bytes, |number| {
            let start = out.len();
            match (number, to.part()) {
                (Value::Float(number), 4) => out.extend((number as f32).to_le_bytes()),
                (Value::Float(number), _) => out.extend(number.to_le_bytes()),
                (Value::Integer(number), size) => out.extend(&number.to_le_bytes()[..size]),
                (_, size) => out.resize(start + size, 0),
            }
            if to.big_endian {
                out[start..].reverse();
            }
        });
        out
    }

    /// Appends an element as JSON.
    pub(crate) fn push_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let is_complex = self.form.kind == Kind::Complex;
        let mut before: &[u8] = if is_complex { b"[" } else { b"" };
        self.each(element, |number| {
            out.extend_from_slice(before);
            before = b",";
            // memory can be written
            let _ = match number {
                Value::Integer(number) if self.form.kind == Kind::Bool => {
                    serde_json::to_writer(&mut *out, &(number != 0))
                }
                Value::Integer(number) => serde_json::to_writer(&mut *out, &number),
                Value::Float(number) if self.form.part() < 8 => serde_json::to_writer(&mut *out, &(number as f32)),
                Value::Float(number) => serde_json::to_writer(&mut *out, &number),
                _ => serde_json::to_writer(&mut *out, &()),
            };
        });
        if is_complex {
            out.push(b']');
        }
    }
}

/// FALSE and TRUE, as h5py writes Bools.
fn is_bool(values: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let has = |name: &[u8], value: u8| values.iter().any(|member| member.0 == name && member.1 == [value]);
    values.len() == 2 && has(b"FALSE", 0) && has(b"TRUE", 1)
}

/// Bits are unsigned integers.
fn integer_class(class: &Class) -> Option<Class> {
    match *class {
        Class::Integer { order, is_signed, bits } => Some(Class::Integer { order, is_signed, bits }),
        Class::Bitfield { order, bits } => Some(Class::Integer { order, is_signed: false, bits }),
        _ => None,
    }
}

/// Also whether the file's bytes are those of the form.
fn integer(datatype: &Datatype) -> Option<(Form, bool)> {
    let Class::Integer { order, is_signed, bits } = datatype.class else { return None };
    let size = datatype.size as usize;
    let kind = if is_signed { Kind::Int } else { Kind::UInt };
    let form = Form { kind, size, big_endian: is_big_endian(order, size)? };
    let is_whole = usize::from(bits.precision) == 8 * size && bits.offset == 0;
    matches!(size, 1 | 2 | 4 | 8).then_some((form, is_whole))
}

fn is_big_endian(order: ByteOrder, size: usize) -> Option<bool> {
    match order {
        ByteOrder::Little => Some(false),
        ByteOrder::Big => Some(true),
        ByteOrder::Vax => (size == 1).then_some(false),
    }
}

/// The type itself, or the smaller one of 4 and 8 bytes with all numbers of the layout; numbers
/// that need more lose digits.
fn float(layout: &Float, size: usize) -> Option<(Form, bool)> {
    let big_endian = is_big_endian(layout.order, size)?;
    let form = |size| Form { kind: Kind::Float, size, big_endian };
    if layout.is_ieee(size as u32) {
        return Some((form(size), true));
    }
    let is_explicit = layout.normalization != Normalization::Implied;
    let mantissa = layout.mantissa.1 - u8::from(is_explicit && layout.mantissa.1 > 0);
    let fits = Float::ieee(4, layout.order)
        .is_some_and(|single| layout.exponent.1 <= single.exponent.1 && mantissa <= single.mantissa.1);
    (size <= 16).then(|| (form(if fits { 4 } else { 8 }), false))
}

/// `None` for halves and other parts of which numpy has no complex numbers.
fn complex(stride: usize, part: &Datatype, offsets: [usize; 2]) -> Option<Number> {
    let Class::Float(layout) = &part.class else { return None };
    let (form, is_stored_so) = float(layout, part.size as usize)?;
    let is_packed = offsets == [0, form.size] && stride == 2 * form.size;
    (form.size >= 4).then(|| Number {
        form: Form { kind: Kind::Complex, size: 2 * form.size, ..form },
        is_stored_so: is_stored_so && is_packed,
        stride,
        offsets: offsets.to_vec(),
        part: part.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5_read::{Bits, Member};

    fn integer(size: u32, order: ByteOrder, is_signed: bool) -> Datatype {
        let bits = Bits { offset: 0, precision: 8 * size as u16 };
        Datatype { size, class: Class::Integer { order, is_signed, bits } }
    }

    fn float(size: u32, order: ByteOrder) -> Datatype {
        Datatype { size, class: Class::Float(Float::ieee(size, order).unwrap()) }
    }

    /// The type in the file, the elements as JSON, and the bytes of the safe type.
    fn converted(datatype: &Datatype, bytes: &[u8]) -> (String, String, Vec<u8>) {
        let number = Number::of(datatype).unwrap();
        let mut json = Vec::new();
        number.push_json(bytes, &mut json);
        let safe = number.convert(bytes.to_vec(), number.form.safe());
        (number.form.dtype(), String::from_utf8(json).unwrap(), safe)
    }

    #[test]
    fn numbers_of_each_kind() {
        let (little, big) = (ByteOrder::Little, ByteOrder::Big);
        let result = |dtype: &str, json: &str, safe: &[u8]| (dtype.to_owned(), json.to_owned(), safe.to_vec());
        assert_eq!(converted(&integer(2, big, true), &[0xff, 0xfe]), result(">i2", "-2", &[0xfe, 0xff]));
        assert_eq!(
            converted(&integer(8, little, false), &[0xff; 8]),
            result("<u8", "18446744073709551615", &[0xff; 8])
        );
        let single = 0.1f32;
        assert_eq!(converted(&float(4, big), &single.to_be_bytes()), result(">f4", "0.1", &single.to_le_bytes()));
        assert_eq!(converted(&float(2, little), &[0, 0x3c]), result("<f2", "1.0", &1f32.to_le_bytes()));
        assert_eq!(converted(&float(8, little), &f64::NAN.to_le_bytes()).1, "null");
        let named = |name: &[u8], value| (name.to_vec(), vec![value]);
        let values = vec![named(b"FALSE", 0), named(b"TRUE", 1)];
        let class = Class::Enum { base: Box::new(integer(1, little, true)), values };
        assert_eq!(converted(&Datatype { size: 1, class }, &[1]), result("|b1", "true", &[1]));
    }

    #[test]
    fn complex_numbers_with_gaps() {
        let member = |name: &[u8], offset| Member { name: name.to_vec(), offset, datatype: float(4, ByteOrder::Big) };
        let datatype = Datatype { size: 12, class: Class::Compound(vec![member(b"r", 0), member(b"i", 8)]) };
        let bytes: Vec<u8> = [1f32, 7., -2.5].iter().flat_map(|part| part.to_be_bytes()).collect();
        let safe: Vec<u8> = [1f32, -2.5].iter().flat_map(|part| part.to_le_bytes()).collect();
        assert_eq!(converted(&datatype, &bytes), (">c8".to_owned(), "[1.0,-2.5]".to_owned(), safe));
    }
}
