//! Writes AipsIO streams (casacore's framing of typed, versioned objects): the inverse of
//! [`Decoder`](super::Decoder).

use bstr::BString;

use super::MAGIC;
use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::value::{DataType, Record, Shape, TABLE_CODE, Value, Values, bits};

/// Type code of a field that is itself a record, in `RecordDesc`.
const RECORD_CODE: i32 = 25;

/// Writes an AipsIO stream into memory. Every object that is started is ended before
/// [`into_bytes`](Self::into_bytes).
#[derive(Debug)]
pub struct Encoder {
    order: ByteOrder,
    bytes: Vec<u8>,
    /// Offsets of the length fields of the open objects, outermost first.
    open: Vec<usize>,
}

impl Encoder {
    pub fn new(order: ByteOrder) -> Self {
        Encoder { order, bytes: Vec::new(), open: Vec::new() }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        debug_assert!(self.open.is_empty(), "an object was not ended");
        self.bytes
    }

    /// Bytes that have been written.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Starts an object that is not inside another, with the magic before it.
    pub fn root(&mut self, name: &str, version: u32) {
        self.u32(MAGIC);
        self.start(name, version);
    }

    pub fn start(&mut self, name: &str, version: u32) {
        self.open.push(self.bytes.len());
        self.u32(0);
        self.string(name);
        self.u32(version);
    }

    /// Ends the innermost object; its length is stored modulo 4 GiB, as casacore does.
    pub fn end(&mut self) {
        let start = self.open.pop().expect("an object was started");
        let len = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&self.order.u32_bytes(len));
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes.extend(self.order.u32_bytes(value));
    }

    pub fn i32(&mut self, value: i32) {
        self.u32(value as u32);
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes.extend(self.order.u64_bytes(value));
    }

    pub fn i64(&mut self, value: i64) {
        self.u64(value as u64);
    }

    /// Encodes `value` as u64 if `wide`, else as u32, which the caller ensures to suffice.
    pub fn uint(&mut self, value: u64, wide: bool) {
        if wide { self.u64(value) } else { self.u32(value as u32) }
    }

    pub fn string(&mut self, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Encodes elements one after the other, without a count; Bools are packed to bits, strings
    /// have their own lengths.
    ///
    /// # Errors
    /// `Usage` for records, which have no plain form.
    pub fn values(&mut self, values: &Values) -> Result<()> {
        match values {
            Values::Bool(bools) => bits::pack(bools, &mut self.bytes),
            Values::String(strings) => strings.iter().for_each(|string| self.string(string)),
            Values::Record(_) => return Err(Error::usage("records have no plain form")),
            _ => values.extend_bytes(self.order, &mut self.bytes),
        }
        Ok(())
    }

    pub fn block<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut item: impl FnMut(&mut Self, T)) {
        self.start("Block", 1);
        self.u32(items.len() as u32);
        items.for_each(|value| item(self, value));
        self.end();
    }

    pub fn block_u32(&mut self, values: &[u32]) {
        self.block(values.iter(), |encoder, &value| encoder.u32(value));
    }

    /// Encodes a `Block` of u64 if `wide`, else of u32.
    pub fn block_uint(&mut self, values: &[u64], wide: bool) {
        self.block(values.iter(), |encoder, &value| encoder.uint(value, wide));
    }

    /// Encodes a `SimpleOrderedMap`; the entries are in ascending order of their keys.
    pub fn map_i32(&mut self, entries: &[(i32, i32)]) {
        self.start("SimpleOrderedMap", 1);
        self.i32(0);
        self.u32(entries.len() as u32);
        self.u32(1);
        for &(key, value) in entries {
            self.i32(key);
            self.i32(value);
        }
        self.end();
    }

    /// Encodes a `SimpleOrderedMap` of strings; the entries are in ascending order of their keys.
    pub fn map_strings(&mut self, entries: &[&(BString, BString)]) {
        self.start("SimpleOrderedMap", 1);
        self.string("");
        self.u32(entries.len() as u32);
        self.u32(1);
        for (key, value) in entries {
            self.string(key);
            self.string(value);
        }
        self.end();
    }

    /// Encodes an `IPosition`, in its older version 1 if the values fit in 32 bits.
    pub fn iposition(&mut self, values: &[i64]) {
        let wide = values.iter().any(|&value| value > i64::from(i32::MAX));
        self.start("IPosition", if wide { 2 } else { 1 });
        self.u32(values.len() as u32);
        for &value in values {
            if wide { self.i64(value) } else { self.i32(value as i32) }
        }
        self.end();
    }

    /// Encodes an `IPosition` that holds the extents of a shape, fastest axis first.
    pub fn shape(&mut self, shape: &Shape) {
        let extents: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        self.iposition(&extents);
    }

    /// Encodes an object `Array` of version 3.
    ///
    /// # Errors
    /// `Limit` for extents or counts beyond 32 bits, `Usage` for arrays of records.
    pub fn array(&mut self, name: &str, shape: &Shape, values: &Values) -> Result<()> {
        let narrow = |extent: u64| {
            u32::try_from(extent).map_err(|_| {
                Error::limit(format!(
                    "the array of shape {shape} is too large for a keyword or header, which counts in 32 bits"
                ))
            })
        };
        self.start(name, 3);
        self.u32(shape.len() as u32);
        for &extent in shape.iter() {
            self.u32(narrow(extent)?);
        }
        self.u32(narrow(values.len() as u64)?);
        self.values(values)?;
        self.end();
        Ok(())
    }

    /// Encodes a `TableRecord` at the start of a stream, after the magic, the form of a cell that
    /// holds a record. Fails as [`record`](Self::record).
    pub fn root_record(&mut self, record: &Record) -> Result<()> {
        self.u32(MAGIC);
        self.record("TableRecord", record)
    }

    /// Encodes an AipsIO object `Record` or `TableRecord`, marked as one whose fields may change.
    /// The description of a nested record is stored with the nested record, and left empty in the
    /// description of the outer one.
    ///
    /// | field       | type         |                       |
    /// |-------------|--------------|-----------------------|
    /// | description | `RecordDesc` | version 2             |
    /// | type        | i32          | 1: fields may change  |
    /// | values      |              | in that order         |
    ///
    /// # Errors
    /// `Unsupported` for types that casacore's records cannot hold; as [`array`](Self::array).
    pub fn record(&mut self, object: &str, record: &Record) -> Result<()> {
        self.start(object, 1);
        self.start("RecordDesc", 2);
        self.u32(record.fields.len() as u32);
        for field in &record.fields {
            self.string(&field.name);
            match &field.value {
                Value::Scalar(values) => self.i32(record_code(values.data_type())?),
                Value::Array(_, values) => {
                    record_code(values.data_type())?;
                    self.i32(values.data_type().array_code());
                    self.iposition(&[-1]);
                }
                Value::Record(_) => {
                    self.i32(RECORD_CODE);
                    self.start("RecordDesc", 2);
                    self.u32(0);
                    self.end();
                }
                Value::Table(_) => {
                    self.i32(TABLE_CODE);
                    self.string("");
                }
            }
            self.string(&field.comment);
        }
        self.end();
        self.i32(1);
        for field in &record.fields {
            match &field.value {
                // a single Bool takes a byte, as one packed to bits does
                Value::Scalar(values) => self.values(values)?,
                Value::Array(shape, values) => self.array(array_name(values.data_type()), shape, values)?,
                Value::Record(nested) => self.record(object, nested)?,
                Value::Table(name) => self.string(name),
            }
        }
        self.end();
        Ok(())
    }
}

fn record_code(data_type: DataType) -> Result<i32> {
    match data_type {
        DataType::UShort | DataType::Record => {
            Err(Error::unsupported(format!("casacore's records cannot hold {data_type}")))
        }
        _ => Ok(data_type.code()),
    }
}

/// Object name such as `Array<float>`, of casacore before 2000. formats/table.md 1.3.
fn array_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::UChar => "Array<uChar>",
        DataType::Short => "Array<short>",
        DataType::Int => "Array<Int>",
        DataType::UInt => "Array<uInt>",
        DataType::Int64 => "Array<Int64>",
        DataType::Float => "Array<float>",
        DataType::Double => "Array<double>",
        DataType::String => "Array<String>",
        _ => "Array<void>",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aipsio::Decoder;
    use crate::error::{ErrorKind, Fails};

    #[test]
    fn comments_of_fields_are_written() {
        let mut record = Record::default();
        record.set("K", Value::string("x"));
        record.fields[0].comment = "why".into();
        let mut encoder = Encoder::new(ByteOrder::Big);
        encoder.record("TableRecord", &record).unwrap();
        let bytes = encoder.into_bytes();
        assert_eq!(Decoder::new(&bytes, 0, ByteOrder::Big, "record").unwrap().record().unwrap(), record);
    }

    #[test]
    fn values_that_streams_cannot_hold() {
        let mut encoder = Encoder::new(ByteOrder::Big);
        encoder.values(&Values::Record(Vec::new())).fails(ErrorKind::Usage, "records have no plain form");
        let mut keyword = |value| {
            let mut record = Record::default();
            record.set("K", value);
            encoder.record("TableRecord", &record)
        };
        let short = Value::Scalar(Values::UShort(vec![1]));
        keyword(short).fails(ErrorKind::Unsupported, "casacore's records cannot hold ushort");
        keyword(Value::Array(Shape::from([0, 1 << 32]), Values::Int(Vec::new()))).fails(
            ErrorKind::Limit,
            "the array of shape [0, 4294967296] is too large for a keyword or header, which counts in 32 bits",
        );
    }
}
