//! MemoryStMan: casacore keeps its values in memory only, so a stored table has none of them:
//! scalars and arrays of fixed shape are read as zeros, other cells are undefined. formats/stman.md
//! 5.

use bstr::{BStr, BString, ByteSlice};

use super::{ColumnCells, ColumnSpec, Kind, Manager, OpenArgs, extend_unbacked, undefined};
use crate::error::Result;
use crate::value::{Region, Shape, Values};

pub(super) static KIND: Kind = Kind::new(&["MemoryStMan"], open);

#[derive(Debug)]
struct Memory {
    name: BString,
    columns: Vec<MemoryColumn>,
}

#[derive(Debug)]
struct MemoryColumn(ColumnSpec);

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let columns = args.columns.iter().cloned().map(MemoryColumn).collect();
    Ok(Box::new(Memory { name: "MemoryStMan".into(), columns }))
}

impl Manager for Memory {
    fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &self.columns[index]
    }
}

impl ColumnCells for MemoryColumn {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(self.0.shape.clone())
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let Some(shape) = &self.0.shape else { return Err(undefined(row)) };
        match region {
            Some(region) => region.check(shape).and_then(|()| extend_unbacked(&region.shape, out)),
            None => extend_unbacked(shape, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::stman::Storage;
    use crate::value::{DataType, Values};

    #[test]
    fn large_cells_are_read_in_parts_only() {
        let shape = Shape::from([1 << 28, 4]);
        let column = MemoryColumn(ColumnSpec {
            name: "X".into(),
            data_type: DataType::Double,
            storage: Storage::Direct,
            shape: Some(shape.clone()),
            ndim: 2,
            max_length: 0,
        });
        let mut out = Values::new(DataType::Double);
        assert_eq!(column.read_cell(0, None, &mut out).unwrap_err().kind(), ErrorKind::Limit);
        let part = |start| Region { start: Shape::from([start, 1]), shape: Shape::from([1000, 1]) };
        column.read_cell(0, Some(&part(1 << 20)), &mut out).unwrap();
        assert_eq!(out, Values::Double(vec![0.; 1000]));
        assert_eq!(column.read_cell(0, Some(&part(1 << 28)), &mut out).unwrap_err().kind(), ErrorKind::Usage);
    }
}
