//! Describes HDF5 types in JSON, in the form of the HDF5 server h5grove.

use serde_json::{Map, Value, json};

use super::number::{Number, decode_integer};
use crate::h5::{AnyClass, AnyType};

pub(super) fn describe(element: &AnyType) -> Value {
    let mut described = Map::new();
    let mut set = |name: &str, value: Value| {
        described.insert(name.to_owned(), value);
    };
    set("class", json!(class_code(element)));
    set("dtype", dtype(element));
    set("size", json!(element.size));
    match &element.class {
        AnyClass::Integer(layout) => {
            set("order", json!(layout.order.code()));
            set("sign", json!(i32::from(layout.signed)));
        }
        AnyClass::Float(layout) => set("order", json!(layout.order.code())),
        AnyClass::Bits(layout) => set("order", json!(layout.order.code())),
        AnyClass::Text { charset, padding, variable } => {
            set("cset", json!(charset));
            set("strpad", json!(padding.code()));
            set("vlen", json!(variable));
        }
        AnyClass::Opaque { tag } => set("tag", json!(tag)),
        AnyClass::Compound(members) => {
            let member = |name: &str, element: &AnyType| {
                let mut described = Map::new();
                described.insert("name".to_owned(), json!(name));
                if let Value::Object(of_type) = describe(element) {
                    described.extend(of_type);
                }
                Value::Object(described)
            };
            set("members", members.iter().map(|of| member(&of.name, &of.element)).collect());
        }
        AnyClass::Enum { base, members } => {
            let members: Map<_, _> =
                members.iter().map(|(name, value)| (name.clone(), enum_value(base, value))).collect();
            set("members", Value::Object(members));
            set("base", describe(base));
        }
        AnyClass::Sequence(base) | AnyClass::Complex(base) => set("base", describe(base)),
        AnyClass::Array { extents, element } => {
            set("dims", json!(extents));
            set("base", describe(element));
        }
        AnyClass::Time | AnyClass::Reference(_) | AnyClass::Unknown(_) => {}
    }
    Value::Object(described)
}

fn enum_value(base: &AnyType, value: &[u8]) -> Value {
    match &base.class {
        AnyClass::Integer(layout) => {
            let number = decode_integer(layout, value);
            i64::try_from(number).map_or_else(|_| json!(u64::try_from(number).ok()), |number| json!(number))
        }
        _ => Value::Null,
    }
}

/// `H5T_class_t`.
fn class_code(element: &AnyType) -> i32 {
    match element.class {
        AnyClass::Integer(_) => 0,
        AnyClass::Float(_) => 1,
        AnyClass::Time => 2,
        AnyClass::Text { .. } => 3,
        AnyClass::Bits(_) => 4,
        AnyClass::Opaque { .. } => 5,
        AnyClass::Compound(_) => 6,
        AnyClass::Reference(_) => 7,
        AnyClass::Enum { .. } => 8,
        AnyClass::Sequence(_) => 9,
        AnyClass::Array { .. } => 10,
        AnyClass::Complex(_) => 11,
        AnyClass::Unknown(code) => code,
    }
}

/// Numpy's name; of a compound a JSON object with the types of its members.
fn dtype(element: &AnyType) -> Value {
    if let Some(number) = Number::of(element) {
        return json!(number.form.dtype());
    }
    match &element.class {
        AnyClass::Text { variable: true, .. } | AnyClass::Sequence(_) | AnyClass::Reference(_) => json!("|O"),
        AnyClass::Text { .. } => json!(format!("|S{}", element.size)),
        AnyClass::Compound(members) => {
            Value::Object(members.iter().map(|member| (member.name.clone(), dtype(&member.element))).collect())
        }
        _ => json!(format!("|V{}", element.size)),
    }
}
