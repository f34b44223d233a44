//! Decodes the AipsIO objects `RecordDesc`, `Record` and `TableRecord`. formats/table.md 1.8, 1.9.

use bstr::BString;

use super::Decoder;
use crate::error::Result;
use crate::limits;
use crate::value::TABLE_CODE;
use crate::value::{DataType, Field, Record, Value};

const RECORD_CODE: i32 = 25;

/// Names and types of the fields of a record (the AipsIO object `RecordDesc`).
///
/// | field   | type             | present                                  |
/// |---------|------------------|------------------------------------------|
/// | count   | i32              |                                          |
/// | name    | string           | per field                                |
/// | code    | i32              | per field                                |
/// | shape   | `IPosition`      | arrays; `[-1]` when free                 |
/// | nested  | `RecordDesc`     | records                                  |
/// | table   | string           | tables                                   |
/// | comment | string           | from version 2                           |
struct Description(Vec<FieldDescription>);

struct FieldDescription {
    name: BString,
    comment: BString,
    kind: Kind,
}

enum Kind {
    Scalar(DataType),
    Array(DataType),
    Record(Description),
    Table,
}

impl Decoder<'_> {
    /// Decodes the object of a keyword set or record cell: `TableRecord`, `Record`, or a keyword
    /// set from before 1995.
    pub fn record(&mut self) -> Result<Record> {
        self.nested_record(0)
    }

    /// Decodes a `TableRecord` after the magic.
    pub fn root_record(&mut self) -> Result<Record> {
        let start = self.position();
        let magic = self.u32("magic")?;
        if magic != super::MAGIC {
            return Err(
                self.error_at(start, format!("{magic:#010x} where the AipsIO magic 0xbebebebe begins a TableRecord"))
            );
        }
        self.record()
    }

    fn nested_record(&mut self, depth: usize) -> Result<Record> {
        limits::depth(depth, "records")?;
        let start = self.position();
        let (name, version) = self.start_any()?;
        let record = match name.as_slice() {
            b"Record" | b"TableRecord" if version == 1 => {
                let description = self.description(depth)?;
                self.i32("record type")?;
                self.fields(&description, depth)?
            }
            b"ScalarKeywordSet" | b"ArrayKeywordSet" | b"TableKeywordSet" => self.keyword_set(&name, version)?,
            _ => {
                return Err(
                    self.error_at(start, format!("object {name:?} version {version} where a record is expected"))
                );
            }
        };
        self.end()?;
        Ok(record)
    }

    fn description(&mut self, depth: usize) -> Result<Description> {
        limits::depth(depth, "record descriptions")?;
        let version = self.start("RecordDesc", 1..=2)?;
        let count = self.i32("number of fields")?;
        let count = u64::try_from(count)
            .map_err(|_| self.error(format!("a record with {count} fields, expected 0 or more")))?;
        self.check_count("number of fields", count, 8)?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let name = self.string("field name")?;
            let code = self.i32("data type")?;
            let kind = if let Some(data_type) = DataType::from_array_code(code) {
                self.iposition("field shape")?;
                Kind::Array(data_type)
            } else if code == TABLE_CODE {
                self.string("table description")?;
                Kind::Table
            } else if code == RECORD_CODE {
                Kind::Record(self.description(depth + 1)?)
            } else if let Some(data_type) = DataType::from_code(code) {
                Kind::Scalar(data_type)
            } else {
                return Err(self.error(format!("field {name:?} has data type code {code}, which no record can hold")));
            };
            let comment = if version >= 2 { self.string("field comment")? } else { BString::default() };
            fields.push(FieldDescription { name, comment, kind });
        }
        self.end()?;
        Ok(Description(fields))
    }

    fn fields(&mut self, description: &Description, depth: usize) -> Result<Record> {
        let mut fields = Vec::with_capacity(description.0.len());
        for field in &description.0 {
            let value = match &field.kind {
                // a single Bool takes a byte, as one packed to bits does
                Kind::Scalar(data_type) => Value::Scalar(self.values("field", *data_type, 1)?),
                Kind::Array(data_type) => {
                    let (shape, values) = self.array(*data_type)?;
                    Value::Array(shape, values)
                }
                Kind::Table => Value::Table(self.string("table name")?),
                // an empty description stands for a record that describes itself
                Kind::Record(nested) if nested.0.is_empty() => Value::Record(self.nested_record(depth + 1)?),
                Kind::Record(nested) => Value::Record(self.fields(nested, depth + 1)?),
            };
            fields.push(Field { name: field.name.clone(), comment: field.comment.clone(), value });
        }
        Ok(Record { fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;
    use crate::io::ByteOrder;
    use crate::value::{Shape, Values};

    /// formats/table.md 1.12, written by casacore.
    const KEYWORDS: &str = "0000018e0000000b5461626c655265636f726400000001\
        000000b50000000a5265636f72644465736300000002\
        00000005\
        00000001420000000d\
        0000001d0000000949506f736974696f6e0000000100000001ffffffff\
        00000000\
        00000001530000000b00000000\
        000000014d00000012\
        0000001d0000000949506f736974696f6e0000000100000001ffffffff\
        00000000\
        000000015200000019\
        0000001a0000000a5265636f7264446573630000000200000000\
        00000000\
        000000035355420000000c0000000000000000\
        00000001\
        000000250000000b41727261793c766f69643e00000003\
        0000000100000009000000090d01\
        000000026869\
        0000003e0000000a41727261793c496e743e00000003\
        00000002000000030000000200000006\
        000000000000000100000002000000030000000400000005\
        0000004a0000000b5461626c655265636f726400000001\
        000000270000000a5265636f7264446573630000000200000001000000017800000008\
        00000000\
        000000013ff8000000000000\
        000000072e2f2e2f535542";

    #[test]
    fn keywords_written_by_casacore() {
        let bytes = hex::parse(KEYWORDS).unwrap();
        let mut d = Decoder::new(&bytes, 0, ByteOrder::Big, "keywords").unwrap();
        let record = d.record().unwrap();
        assert_eq!(d.position(), bytes.len() as u64);
        let names: Vec<_> = record.fields.iter().map(|field| field.name.to_string()).collect();
        assert_eq!(names, ["B", "S", "M", "R", "SUB"]);
        let bools = vec![true, false, true, true, false, false, false, false, true];
        assert_eq!(record.get("B"), Some(&Value::Array(Shape::from([9]), Values::Bool(bools))));
        assert_eq!(record.string("S").unwrap(), "hi");
        assert_eq!(record.get("M"), Some(&Value::Array(Shape::from([3, 2]), Values::Int(vec![0, 1, 2, 3, 4, 5]))));
        let nested = record.record("R").unwrap();
        assert_eq!(nested.get("x"), Some(&Value::Scalar(Values::Double(vec![1.5]))));
        assert_eq!(record.get("SUB"), Some(&Value::Table("././SUB".into())));

        let mut encoder = crate::aipsio::Encoder::new(ByteOrder::Big);
        encoder.record("TableRecord", &record).unwrap();
        assert_eq!(encoder.into_bytes(), bytes);
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let bytes = hex::parse(KEYWORDS).unwrap();
        for position in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] ^= flip;
                if let Ok(mut d) = Decoder::new(&damaged, 0, ByteOrder::Big, "keywords") {
                    let _ = d.record();
                }
            }
        }
    }
}
