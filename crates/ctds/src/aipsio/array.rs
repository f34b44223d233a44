//! Decodes the AipsIO objects `Array` and `IPosition`. formats/table.md 1.3, 1.4.

use super::Decoder;
use crate::error::Result;
use crate::value::{DataType, Shape, Values};

impl Decoder<'_> {
    /// Decodes the AipsIO object `IPosition`, a list of integers.
    ///
    /// | field  | v1       | v2       |
    /// |--------|----------|----------|
    /// | count  | u32      | u32      |
    /// | values | i32 each | i64 each |
    pub fn iposition(&mut self, field: &str) -> Result<Vec<i64>> {
        let version = self.start("IPosition", 1..=2)?;
        let count = u64::from(self.u32(field)?);
        self.check_count(field, count, if version == 1 { 4 } else { 8 })?;
        let values = (0..count)
            .map(|_| if version == 1 { Ok(i64::from(self.i32(field)?)) } else { self.i64(field) })
            .collect::<Result<_>>()?;
        self.end()?;
        Ok(values)
    }

    /// Extents of a shape, fastest axis first, from an `IPosition`; none may be negative.
    pub fn shape(&mut self, field: &str) -> Result<Shape> {
        let position = self.position();
        self.iposition(field)?
            .into_iter()
            .map(|extent| {
                u64::try_from(extent).map_err(|_| self.error_at(position, format!("{field}: extent {extent}")))
            })
            .collect()
    }

    /// Decodes an AipsIO object `Array`, or one with any name that starts with `Array<`: its shape
    /// and elements.
    ///
    /// | field  | type      | meaning                                     |
    /// |--------|-----------|---------------------------------------------|
    /// | axes   | u32       |                                             |
    /// | origin | i32 each  | before version 3 only; it precedes the shape |
    /// | shape  | u32 each  | fastest axis first                          |
    /// | count  | u32       | the product of the shape                    |
    /// | values |           | Bools packed                                |
    pub fn array(&mut self, data_type: DataType) -> Result<(Shape, Values)> {
        let start = self.position();
        let (name, version) = self.start_any()?;
        if name != "Array" && !name.starts_with(b"Array<") {
            return Err(self.error_at(start, format!("object {name:?} where an Array is expected")));
        }
        if !(1..=3).contains(&version) {
            return Err(self.error_at(start, format!("Array version {version}, known are 1 to 3")));
        }
        let axes = u64::from(self.u32("number of axes")?);
        self.check_count("number of axes", axes, 4)?;
        if version < 3 {
            self.skip("origin", axes * 4)?;
        }
        let shape: Shape = (0..axes).map(|_| Ok(u64::from(self.u32("shape")?))).collect::<Result<_>>()?;
        let count = u64::from(self.u32("number of elements")?);
        // an array without axes has no elements
        let expected = if axes == 0 { 0 } else { shape.elements()? };
        if count != expected {
            return Err(self.error(format!("{count} elements in an array of shape {shape}")));
        }
        let values = self.values("elements", data_type, count)?;
        self.end()?;
        Ok((shape, values))
    }
}
