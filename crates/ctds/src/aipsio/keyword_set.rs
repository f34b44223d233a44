//! Decodes keywords as written before 1995: AipsIO objects `ScalarKeywordSet`, `ArrayKeywordSet`,
//! `TableKeywordSet`. formats/table.md 1.11.

use bstr::BString;

use super::Decoder;
use crate::error::Result;
use crate::value::{DataType, Field, Record, Value};

/// Stored order: all values of the first type, then all of the second, and so on.
const TYPES: [DataType; 8] = [
    DataType::Bool,
    DataType::Int,
    DataType::UInt,
    DataType::Float,
    DataType::Double,
    DataType::Complex,
    DataType::DComplex,
    DataType::String,
];

impl Decoder<'_> {
    /// The fields of the returned record are in the order of the set's list of names.
    ///
    /// | part | in |
    /// |-----------------------------------------------|-----------------------|
    /// | `Map<String,void>`: names, types, comments | all |
    /// | `Block` of i32, `Block` of string: exclusions | all |
    /// | 8 groups of (name, scalar) | all |
    /// | 8 groups of (name, `Array`) | all but Scalar… |
    /// | 1 group of (name, table name) | Table… only |
    /// | u32 number of nested sets, 0 | versions above 1 |
    pub(super) fn keyword_set(&mut self, class: &BString, version: u32) -> Result<Record> {
        let names = self.keyword_names()?;
        self.block_u32("excluded types")?;
        self.block_strings("excluded names")?;
        let mut found: Vec<(BString, Value)> = Vec::new();
        for data_type in TYPES {
            self.keyword_group(&mut found, |d| Ok(Value::Scalar(d.values("keyword", data_type, 1)?)))?;
        }
        if class != "ScalarKeywordSet" {
            for data_type in TYPES {
                self.keyword_group(&mut found, |d| d.array(data_type).map(|(shape, v)| Value::Array(shape, v)))?;
            }
        }
        if class == "TableKeywordSet" {
            self.keyword_group(&mut found, |d| Ok(Value::Table(d.string("table name")?)))?;
        }
        if version > 1 {
            let nested = self.u32("nested keyword sets")?;
            if nested != 0 {
                return Err(self.error(format!("{nested} nested keyword sets, which were never written")));
            }
        }
        // casacore's order is that of the map
        found.sort_by_key(|(name, _)| names.iter().position(|known| known == name).unwrap_or(usize::MAX));
        let fields = found.into_iter().map(|(name, value)| Field { name, comment: BString::default(), value });
        Ok(Record { fields: fields.collect() })
    }

    fn keyword_names(&mut self) -> Result<Vec<BString>> {
        let start = self.position();
        let (name, _) = self.start_any()?;
        if name != "Map<String,void>" {
            return Err(self.error_at(start, format!("object {name:?} where a Map<String,void> is expected")));
        }
        let count = u64::from(self.u32("number of keywords")?);
        self.i32("default type")?;
        self.string("default comment")?;
        self.check_count("number of keywords", count, 12)?;
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(self.string("keyword name")?);
            self.i32("keyword type")?;
            self.string("keyword comment")?;
        }
        self.end()?;
        Ok(names)
    }

    fn keyword_group(
        &mut self,
        found: &mut Vec<(BString, Value)>,
        mut value: impl FnMut(&mut Self) -> Result<Value>,
    ) -> Result<()> {
        let count = u64::from(self.u32("keywords of a type")?);
        self.check_count("keywords of a type", count, 5)?;
        for _ in 0..count {
            found.push((self.string("keyword name")?, value(self)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aipsio::Encoder;
    use crate::error::{ErrorKind, Fails};
    use crate::io::ByteOrder;

    #[test]
    fn sets_that_no_casacore_wrote() {
        let read = |map: &str, nested: u32| {
            let mut e = Encoder::new(ByteOrder::Big);
            e.start("ScalarKeywordSet", 2);
            e.start(map, 1);
            e.u32(0);
            e.i32(0);
            e.string("");
            e.end();
            e.block_u32(&[]);
            e.block([""; 0].iter(), |e, name| e.string(name));
            TYPES.iter().for_each(|_| e.u32(0));
            e.u32(nested);
            e.end();
            let bytes = e.into_bytes();
            Decoder::new(&bytes, 0, ByteOrder::Big, "keywords")?.record()
        };
        assert_eq!(read("Map<String,void>", 0).unwrap(), Record::default());
        read("Map<String,void>", 2).fails(ErrorKind::Format, "2 nested keyword sets, which were never written");
        read("Block", 0).fails(ErrorKind::Format, "object \"Block\" where a Map<String,void> is expected");
    }
}
