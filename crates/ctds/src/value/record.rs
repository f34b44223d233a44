//! Casacore's records, as in keyword sets and record cells: ordered, named, nested values.

use bstr::{BStr, BString, ByteSlice};

use super::{DataType, Shape, Values};

/// The value of a field in a [`Record`]: a scalar, an array, a record or a reference to a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A scalar value: a buffer of one element.
    Scalar(Values),
    /// An array value: its shape (fastest axis first) and its elements, first axis fastest.
    Array(Shape, Values),
    /// A nested record as the value of a field.
    Record(Record),
    /// A reference to a subtable: its name as stored, usually relative to the table that holds the
    /// record.
    Table(BString),
}

/// A field of a [`Record`]: a named value and its comment.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name of the field of a record, unique within the record.
    pub name: BString,
    /// Comment on the field of a record, usually empty.
    pub comment: BString,
    /// Value that the field of the record has.
    pub value: Value,
}

/// An ordered set of named values: casacore's `Record` and `TableRecord`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// The fields of the record, in the order in which they were defined.
    pub fields: Vec<Field>,
}

impl Record {
    /// The value of the field `name` of the record; `None` if the record has no field of this name.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&Value> {
        let name = name.as_ref();
        self.fields.iter().find(|field| field.name == name).map(|field| &field.value)
    }

    /// Sets the field `name` of the record to `value`: replaces the field's value, or adds a field
    /// at the end if the record has none of this name.
    pub fn set(&mut self, name: impl Into<BString>, value: Value) {
        let name = name.into();
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => field.value = value,
            None => self.fields.push(Field { name, comment: BString::default(), value }),
        }
    }

    /// The string in the field `name` of the record; `None` if the field is missing or holds
    /// another type.
    pub fn string(&self, name: impl AsRef<[u8]>) -> Option<&BStr> {
        match self.get(name)? {
            Value::Scalar(Values::String(v)) => v.first().map(|string| string.as_bstr()),
            _ => None,
        }
    }

    /// The number in the field `name` of the record, a scalar of any integer type; `None` if the
    /// field is missing or holds something else.
    pub fn integer(&self, name: impl AsRef<[u8]>) -> Option<i64> {
        let Value::Scalar(values) = self.get(name)? else { return None };
        values.integers()?.first().copied()
    }

    /// The strings in the field `name` of the record, which is an array of strings; `None` if the
    /// field is missing or holds something else.
    pub fn strings(&self, name: impl AsRef<[u8]>) -> Option<&[BString]> {
        match self.get(name)? {
            Value::Array(_, Values::String(v)) => Some(v),
            _ => None,
        }
    }

    /// A scalar or an array of any integer type; empty for an empty array of whatever type. `None`
    /// for anything else.
    #[doc(hidden)]
    pub fn integers(&self, name: impl AsRef<[u8]>) -> Option<Vec<i64>> {
        let (Value::Scalar(values) | Value::Array(_, values)) = self.get(name)? else { return None };
        // an empty list has lost its element type: accept any
        if values.is_empty() { Some(Vec::new()) } else { values.integers() }
    }

    /// The record nested in the field `name` of this record; `None` if the field is missing or
    /// holds something else.
    pub fn record(&self, name: impl AsRef<[u8]>) -> Option<&Record> {
        match self.get(name)? {
            Value::Record(record) => Some(record),
            _ => None,
        }
    }
}

impl Value {
    /// Makes the value of a record field or keyword from a string.
    pub fn string(value: impl Into<BString>) -> Self {
        Value::Scalar(Values::String(vec![value.into()]))
    }

    /// The element type of a record field's value; `None` for a reference to a table.
    pub fn data_type(&self) -> Option<DataType> {
        match self {
            Value::Scalar(values) | Value::Array(_, values) => Some(values.data_type()),
            Value::Record(_) => Some(DataType::Record),
            Value::Table(_) => None,
        }
    }
}
