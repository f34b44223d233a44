//! Describes values that differ between two sources, for people.

use bstr::BStr;

use crate::grid::unravel;
use crate::schema::{ColumnKind, TableInfo};
use crate::table::ColumnInfo;
use crate::value::{DataType, Shape, Value, Values, for_each_type};

/// `1.5`, `1-2i`, `"text"`; `nothing` without such an element.
pub(super) fn element(values: &Values, element: usize) -> String {
    let shown = match values {
        Values::Complex(v) => v.get(element).map(ToString::to_string),
        Values::DComplex(v) => v.get(element).map(ToString::to_string),
        Values::Record(v) => v.get(element).map(|record| format!("a record of {} fields", record.fields.len())),
        _ => for_each_type!(values, v => v.get(element).map(|value| format!("{value:?}"))),
    };
    shown.unwrap_or_else(|| "nothing".to_owned())
}

/// `complex array`.
pub(super) fn cells(info: &ColumnInfo) -> String {
    let kind = match info.desc.kind {
        ColumnKind::Scalar => "scalar",
        ColumnKind::Array => "array",
    };
    format!("{} {kind}", info.data_type())
}

/// The first of type, subtype and readme that differs.
pub(super) fn infos(left: &TableInfo, right: &TableInfo) -> (String, String) {
    let parts = [
        ("type", &left.table_type, &right.table_type),
        ("subtype", &left.sub_type, &right.sub_type),
        ("readme", &left.readme, &right.readme),
    ];
    let differing = parts.into_iter().find(|(_, left, right)| left != right).unwrap_or(parts[0]);
    let (name, left, right) = differing;
    (format!("{name} {left:?}"), format!("{name} {right:?}"))
}

/// `FREQ[2] = 1.5` for arrays of one shape and type whose element `differing` differs, else
/// `VERSION = 5`, with types if they differ.
pub(super) fn keywords(name: &BStr, (left, right): (&Value, &Value), differing: Option<usize>) -> (String, String) {
    if let (Value::Array(shape, a), Value::Array(_, b)) = (left, right)
        && let Some(differing) = differing
    {
        let place = index_of(differing as u64, shape);
        return (
            format!("{name}{place:?} = {}", element(a, differing)),
            format!("{name}{place:?} = {}", element(b, differing)),
        );
    }
    let types = [data_type(left), data_type(right)];
    let typed = types[0] != types[1];
    let describe = |value: &Value| match value {
        Value::Scalar(values) if typed => format!("{name} = {} {}", values.data_type(), element(values, 0)),
        Value::Scalar(values) => format!("{name} = {}", element(values, 0)),
        Value::Array(shape, values) => format!("{name}: {} of shape {:?}", values.data_type(), shape.reversed()),
        Value::Record(record) => format!("{name}: a record of {} fields", record.fields.len()),
        Value::Table(table) => format!("{name}: subtable {table}"),
    };
    (describe(left), describe(right))
}

fn data_type(value: &Value) -> Option<DataType> {
    match value {
        Value::Scalar(values) | Value::Array(_, values) => Some(values.data_type()),
        Value::Record(_) | Value::Table(_) => None,
    }
}

/// Slowest axis first, of an element counted along the fastest; `shape` has the fastest first.
pub(super) fn index_of(element: u64, shape: &Shape) -> Vec<u64> {
    let mut index = unravel(element, shape);
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Complex32, Record};

    #[test]
    fn elements_as_people_write_them() {
        let complex = Values::Complex(vec![Complex32::new(1.0, -2.5)]);
        assert_eq!((element(&complex, 0), element(&complex, 1)), ("1-2.5i".to_owned(), "nothing".to_owned()));
        assert_eq!(element(&Values::Double(vec![2.0]), 0), "2.0");
        assert_eq!(element(&Values::String(vec!["a \"b\"".into()]), 0), r#""a \"b\"""#);
        assert_eq!(element(&Values::Record(vec![Record::default()]), 0), "a record of 0 fields");
    }

    #[test]
    fn keywords_that_differ() {
        let name = BStr::new("K");
        let (one, two) = (Value::Scalar(Values::Int(vec![1])), Value::Scalar(Values::Int(vec![2])));
        let double = Value::Scalar(Values::Double(vec![1.0]));
        let array = |last| Value::Array(Shape::from([3, 2]), Values::Int(vec![0, 0, 0, 0, 0, last]));
        let both = |left: &Value, right: &Value, at| {
            let (left, right) = keywords(name, (left, right), at);
            format!("{left} | {right}")
        };
        assert_eq!(both(&one, &two, None), "K = 1 | K = 2");
        assert_eq!(both(&one, &double, None), "K = int 1 | K = double 1.0");
        assert_eq!(both(&array(7), &array(8), Some(5)), "K[1, 2] = 7 | K[1, 2] = 8");
        assert_eq!(both(&array(7), &one, None), "K: int of shape [2, 3] | K = 1");
        assert_eq!(both(&Value::Record(Record::default()), &two, None), "K: a record of 0 fields | K = int 2");
        assert_eq!(both(&Value::Table("A".into()), &two, None), "K: subtable A | K = int 2");
    }

    #[test]
    fn infos_say_what_differs() {
        let info = |kind: &str, readme: &str| TableInfo {
            table_type: kind.into(),
            sub_type: "".into(),
            readme: readme.into(),
        };
        let (left, right) = infos(&info("Antenna", "a\n"), &info("Antenna", "b\n"));
        assert_eq!((left.as_str(), right.as_str()), ("readme \"a\\n\"", "readme \"b\\n\""));
        assert_eq!(infos(&info("A", ""), &info("B", "")).1, "type \"B\"");
    }
}
