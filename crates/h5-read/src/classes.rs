//! Tests: elements of every class of types in a small file that testdata/h5-read/make_values.py
//! made.

use crate::error::Result;
use crate::file::File;
use crate::filters::NoFilters;
use crate::value::{Value, Values};

const VALUES: &[u8] = include_bytes!("../../../testdata/h5-read/values.h5");

fn values(file: &File, name: &str) -> Result<Vec<Value>> {
    let dataset = file.root()?.find(name)?.dataset()?;
    let region: Vec<_> = dataset.space().extents.iter().map(|&extent| 0..extent).collect();
    Values::new(file).elements(dataset.datatype(), &dataset.read(&region, &NoFilters)?)
}

fn integers<const N: usize>(values: [i128; N]) -> Vec<Value> {
    values.map(Value::Integer).to_vec()
}

fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

fn colour(place: Option<usize>, value: i128) -> Value {
    Value::Enum { place, value: Box::new(Value::Integer(value)) }
}

#[test]
fn elements_are_those_that_were_written() {
    let file = File::open(VALUES).unwrap();
    let values = |name: &str| values(&file, name).unwrap();
    let floats = |values: [f64; 2]| values.map(Value::Float).to_vec();
    assert_eq!(values("numbers"), integers([0, 1, 2, 3, 4, 5]));
    assert_eq!(values("floats"), floats([1.5, f64::NEG_INFINITY]));
    assert_eq!(values("long"), floats([1.5, -2.25]));
    assert_eq!(values("vax"), floats([1.5, -2.25]));
    assert_eq!(values("complex"), [Value::Complex(1.5, -2.25)]);
    assert_eq!(values("texts"), [text("one"), text(""), text("zwölf")]);
    assert_eq!(values("fixed"), [text("one"), text("three")]);
    assert_eq!(values("sequences"), [Value::List(integers([1, 2, 3])), Value::List(vec![])]);
    assert_eq!(values("colours"), [colour(Some(0), 5), colour(Some(1), 0), colour(None, 1)]);
    assert_eq!(values("opaque"), [Value::Bytes(vec![1, 2])]);
    let pair = [Value::Integer(7), Value::List(floats([0.5, 1.0])), text("x")];
    assert_eq!(values("pairs"), [Value::Compound(pair.to_vec())]);
}

#[test]
fn references_of_both_encodings_name_their_object() {
    let file = File::open(VALUES).unwrap();
    let numbers = file.root().unwrap().find("numbers").unwrap().address();
    let reference = |object, rest: &[u8]| Value::Reference { object, rest: rest.to_vec() };
    assert_eq!(values(&file, "old references").unwrap(), [reference(Some(numbers), b""), reference(None, b"")]);
    let is_region = |value: &Value| matches!(value, Value::Reference { object, rest } if *object == Some(numbers) && rest.len() > 12);
    assert!(is_region(&values(&file, "regions").unwrap()[0]));
    let new = values(&file, "new references").unwrap();
    assert_eq!(new[0], reference(Some(numbers), b""));
    assert!(is_region(&new[1]), "{new:?}");
    assert_eq!(new[2], reference(Some(numbers), b"\x04\0unit"));
    assert_eq!(new[3], reference(None, b""));
}

#[test]
fn elements_of_changed_bytes_are_read_or_refused() {
    let names = ["texts", "sequences", "pairs", "regions", "new references", "colours"];
    let mut bytes = VALUES.to_vec();
    for at in 0..bytes.len() {
        let before = bytes[at];
        // long runs of free space are all the same
        if before == 0 && at % 16 != 0 {
            continue;
        }
        bytes[at] = before.wrapping_add(1 + (at % 255) as u8);
        if let Ok(file) = File::open(bytes.clone()) {
            for name in names {
                let _ = values(&file, name);
            }
        }
        bytes[at] = before;
    }
}
