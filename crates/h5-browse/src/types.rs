//! Describes HDF5 types in JSON, in the form of the HDF5 server h5grove.

use h5_read::{ByteOrder, Class, Datatype, Padding, Reference, Text};
use serde_json::{Map, Value, json};

use crate::number::{Number, decode_integer};

pub(crate) fn describe(element: &Datatype) -> Value {
    let mut described = Map::new();
    let mut set = |name: &str, value: Value| {
        described.insert(name.to_owned(), value);
    };
    set("class", json!(class_code(element)));
    set("dtype", dtype(element));
    set("size", json!(memory_size(element)));
    match &element.class {
        Class::Integer { order, is_signed, .. } => {
            set("order", json!(order_code(*order)));
            set("sign", json!(i32::from(*is_signed)));
        }
        Class::Float(layout) => set("order", json!(order_code(layout.order))),
        Class::Bitfield { order, .. } => set("order", json!(order_code(*order))),
        Class::String(of) | Class::VariableString(of) => {
            let Text { padding, charset } = *of;
            set("cset", json!(i32::from(charset == h5_read::Charset::Utf8)));
            set("strpad", json!(padding_code(padding)));
            set("vlen", json!(matches!(element.class, Class::VariableString(_))));
        }
        Class::Opaque { tag } => set("tag", json!(String::from_utf8_lossy(tag))),
        Class::Compound(members) => {
            let member = |name: &[u8], element: &Datatype| {
                let mut described = Map::new();
                described.insert("name".to_owned(), json!(String::from_utf8_lossy(name)));
                if let Value::Object(of_type) = describe(element) {
                    described.extend(of_type);
                }
                Value::Object(described)
            };
            set("members", members.iter().map(|of| member(&of.name, &of.datatype)).collect());
        }
        Class::Enum { base, values } => {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let members: Map<_, _> = values.iter().map(|(of, value)| (name(of), enum_value(base, value))).collect();
            set("members", Value::Object(members));
            set("base", describe(base));
        }
        Class::Sequence(base) | Class::Complex(base) => set("base", describe(base)),
        Class::Array { extents, base } => {
            set("dims", json!(extents));
            set("base", describe(base));
        }
        _ => {}
    }
    Value::Object(described)
}

/// Size in libhdf5's memory, as h5py tells: with pointers to elements of variable length.
fn memory_size(element: &Datatype) -> u64 {
    match &element.class {
        Class::VariableString(_) => 8,
        Class::Sequence(_) => 16,
        Class::Reference(Reference::Object) => 8,
        Class::Reference(Reference::Region) => 12,
        Class::Reference(_) => 64,
        Class::Compound(members) => members.iter().fold(element.size(), |size, member| {
            (size + memory_size(&member.datatype)).saturating_sub(member.datatype.size())
        }),
        Class::Array { base, .. } => element.size() / base.size().max(1) * memory_size(base),
        _ => element.size(),
    }
}

/// `H5T_order_t`.
fn order_code(order: ByteOrder) -> i32 {
    match order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => 2,
    }
}

/// `H5T_str_t`.
fn padding_code(padding: Padding) -> i32 {
    match padding {
        Padding::NulTerminated => 0,
        Padding::Nul => 1,
        Padding::Space => 2,
    }
}

fn enum_value(base: &Datatype, value: &[u8]) -> Value {
    match &base.class {
        Class::Integer { .. } => {
            let number = decode_integer(base, value);
            i64::try_from(number).map_or_else(|_| json!(u64::try_from(number).ok()), |number| json!(number))
        }
        _ => Value::Null,
    }
}

/// `H5T_class_t`.
fn class_code(element: &Datatype) -> i32 {
    match element.class {
        Class::Integer { .. } => 0,
        Class::Float(_) => 1,
        Class::Time { .. } => 2,
        Class::String(_) | Class::VariableString(_) => 3,
        Class::Bitfield { .. } => 4,
        Class::Opaque { .. } => 5,
        Class::Compound(_) => 6,
        Class::Reference(_) => 7,
        Class::Enum { .. } => 8,
        Class::Sequence(_) => 9,
        Class::Array { .. } => 10,
        Class::Complex(_) => 11,
        _ => -1,
    }
}

/// Numpy's name; of a compound a JSON object with the types of its members.
fn dtype(element: &Datatype) -> Value {
    if let Some(number) = Number::of(element) {
        return json!(number.form.dtype());
    }
    match &element.class {
        Class::VariableString(_) | Class::Sequence(_) | Class::Reference(_) => json!("|O"),
        Class::String(_) => json!(format!("|S{}", element.size)),
        Class::Compound(members) => {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            Value::Object(members.iter().map(|member| (name(&member.name), dtype(&member.datatype))).collect())
        }
        _ => json!(format!("|V{}", memory_size(element))),
    }
}
