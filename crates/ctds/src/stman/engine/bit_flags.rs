//! BitFlagsEngine computes a Bool column: true where a stored integer has one or more bits of a
//! mask. formats/engines.md 1.8.
//!
//! | keyword                        | type             | meaning                                               |
//! |--------------------------------|------------------|-------------------------------------------------------|
//! | `_BitFlagsEngine_ReadMask`     | uInt, Int        | bits that count                                       |
//! | `_BitFlagsEngine_ReadMaskKeys` | array of String  | instead: fields of the stored column's `FLAGSETS`     |

use std::ops::Range;

use super::base::{Coding, Mapping, Rows, STORED_COLUMN_PREFIX, open};
use super::scaling::{Number, number};
use crate::error::{Context, Error, Result, ResultExt};
use crate::stman::Kind;
use crate::value::{DataType, Record, Value, Values};

const PREFIX: &str = "_BitFlagsEngine_";
const TYPES: [DataType; 5] = [DataType::UChar, DataType::Short, DataType::UShort, DataType::Int, DataType::UInt];

pub(crate) static KIND: Kind = Kind::engine(
    &["BitFlagsEngine"],
    &[STORED_COLUMN_PREFIX, PREFIX],
    |args| {
        open("BitFlagsEngine", args, |mapping| {
            mapping.expect(DataType::Bool, &TYPES)?;
            Ok(BitFlags { mask: read_mask(mapping)? })
        })
    },
    Some(super::write::create),
);

#[derive(Debug)]
struct BitFlags {
    mask: u32,
}

/// Bits of the flags in `ReadMaskKeys`, by the stored column's `FLAGSETS` if any, else `ReadMask`.
fn read_mask(mapping: &Mapping<'_>) -> Result<u32> {
    let keys = match mapping.keywords.get(format!("{PREFIX}ReadMaskKeys")) {
        Some(Value::Array(_, Values::String(keys)) | Value::Scalar(Values::String(keys))) => keys.as_slice(),
        _ => &[],
    };
    if !keys.is_empty() {
        let stored = mapping.stored.spec.name.as_ref();
        let keywords = mapping.args.table.column_keywords(stored).with_context(|| Context::column(stored))?;
        if let Some(sets) = keywords.record("FLAGSETS") {
            let bits = |key| field(sets, key).and_then(i64::first_of).unwrap_or_default() as u32;
            return Ok(keys.iter().map(bits).fold(0, |mask, bits| mask | bits));
        }
    }
    // an Int in tables from 2009: the bits are what counts
    Ok(number::<i64>(mapping.keywords, &format!("{PREFIX}ReadMask"))? as u32)
}

fn field<'a>(record: &'a Record, name: &bstr::BString) -> Option<&'a Values> {
    record.fields.iter().find(|field| field.name == *name).and_then(|field| match &field.value {
        Value::Scalar(values) => Some(values),
        _ => None,
    })
}

impl Coding for BitFlags {
    type Row = ();

    fn rows(&self, _rows: Range<u64>) -> Result<Rows<()>> {
        Ok(Rows::Same(()))
    }

    fn decode(&self, _row: (), stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()> {
        let mask = self.mask;
        match (stored, out) {
            (Values::UChar(v), Values::Bool(out)) => out.extend(v[range].iter().map(|&bits| bits & mask as u8 != 0)),
            (Values::Short(v), Values::Bool(out)) => out.extend(v[range].iter().map(|&bits| bits & mask as i16 != 0)),
            (Values::UShort(v), Values::Bool(out)) => out.extend(v[range].iter().map(|&bits| bits & mask as u16 != 0)),
            (Values::Int(v), Values::Bool(out)) => out.extend(v[range].iter().map(|&bits| bits & mask as i32 != 0)),
            (Values::UInt(v), Values::Bool(out)) => out.extend(v[range].iter().map(|&bits| bits & mask != 0)),
            _ => {
                let message = "flags, which are stored in integers of up to 32 bits, are read into Bools";
                return Err(Error::usage(message));
            }
        }
        Ok(())
    }
}
