//! StokesIStMan stores one value for the four correlations of a channel. formats/engines.md 3.4.
//!
//! [`RowFile`] with tag `StkIcol` and no numbers. Row `r` is row `r` of the table: for each of the
//! manager's columns, in the order of the table description, one value for each channel. Bools are
//! packed, each column from a byte of its own. Values never written are zero.
//!
//! | cells `[4, channels]` of | from a value `v` |
//! |--------------------------|------------------|
//! | Complex, Float           | v, 0, 0, v       |
//! | Bool                     | v, v, v, v       |

use std::ops::Range;
use std::sync::Arc;

use bstr::BStr;

use super::row_file::RowFile;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::ByteOrder;
use crate::stman::{ColumnCells, ColumnSpec, Kind, Manager, OpenArgs, Storage, extend_unbacked, read_part};
use crate::value::bits::packed_len;
use crate::value::{DataType, Region, Shape, Values};

pub(crate) static KIND: Kind = Kind::new(&["StokesIStMan"], open);

const CORRELATIONS: u64 = 4;

const STEP_BYTES: u64 = 1 << 20;

#[derive(Debug)]
struct StokesI {
    columns: Vec<StokesColumn>,
}

#[derive(Debug)]
struct StokesColumn {
    file: Arc<RowFile>,
    data_type: DataType,
    shape: Shape,
    /// Bytes of the column in each row of the file.
    bytes: Range<u64>,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let file = Arc::new(RowFile::open(args, KIND.names[0], b"StkIcol\0", 0)?);
    let mut columns = Vec::new();
    let mut stride = 0;
    for spec in args.columns {
        let (shape, len) = layout(spec).with_context(|| Context::column(&spec.name)).context(&file.place)?;
        let bytes = stride..stride + len;
        stride = bytes.end;
        columns.push(StokesColumn { file: file.clone(), data_type: spec.data_type, shape, bytes });
    }
    file.expect_stride(stride)?;
    Ok(Box::new(StokesI { columns }))
}

/// Shape of a cell, fastest axis first, and its bytes in the file.
fn layout(spec: &ColumnSpec) -> Result<(Shape, u64)> {
    let channels = match spec.shape.as_deref() {
        Some(&[CORRELATIONS, channels]) if spec.storage != Storage::Scalar => channels,
        _ => return Err(Error::format("cells of fixed shape [4, channels] are expected")),
    };
    let bytes = match spec.data_type {
        // far from overflowing the sum over all columns
        _ if channels > 1 << 40 => {
            return Err(Error::format(format!("the cells have {channels} channels, the limit is 2^40")));
        }
        DataType::Complex => channels * 8,
        DataType::Float => channels * 4,
        DataType::Bool => packed_len(channels),
        other => return Err(Error::format(format!("{other} values, complex, float or boolean ones are expected"))),
    };
    Ok((Shape::from([CORRELATIONS, channels]), bytes))
}

impl Manager for StokesI {
    fn name(&self) -> &BStr {
        // the file does not have the name from creation
        BStr::new("")
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &self.columns[index]
    }
}

impl StokesColumn {
    /// Decodes whole rows of the file; `values` is scratch memory.
    fn extend(&self, rows: &[u8], values: &mut Values, out: &mut Values) -> Result<()> {
        let bytes = self.bytes.start as usize..self.bytes.end as usize;
        values.clear();
        for row in rows.chunks_exact(self.file.stride as usize) {
            match values {
                Values::Bool(_) => values.extend_from_bits(&row[bytes.clone()], 0, self.shape[1] as usize),
                _ => values.extend_from_bytes(&row[bytes.clone()], ByteOrder::Little),
            }
        }
        match (values, out) {
            (Values::Complex(values), Values::Complex(out)) => expand(values, diagonal, out),
            (Values::Float(values), Values::Float(out)) => expand(values, diagonal, out),
            (Values::Bool(values), Values::Bool(out)) => expand(values, |v| [v; 4], out),
            (_, out) => {
                return Err(Error::usage(format!(
                    "a {} column is read into {} values",
                    self.data_type,
                    out.data_type()
                )));
            }
        }
        Ok(())
    }

    fn read(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut row = rows.start;
        let mut values = Values::new(self.data_type);
        while row < rows.end.min(self.file.rows) {
            // a stride of 0 is that of a file without rows
            let count = (STEP_BYTES / self.file.stride).clamp(1, rows.end.min(self.file.rows) - row);
            self.extend(&self.file.read(row, count)?, &mut values, out)?;
            row += count;
        }
        for _ in row..rows.end {
            extend_unbacked(&self.shape, out)?;
        }
        Ok(())
    }
}

fn diagonal<T: Copy + Default>(value: T) -> [T; 4] {
    [value, T::default(), T::default(), value]
}

fn expand<T: Copy>(values: &[T], cell: impl Fn(T) -> [T; 4], out: &mut Vec<T>) {
    out.reserve(values.len() * CORRELATIONS as usize);
    out.extend(values.iter().flat_map(|&value| cell(value)));
}

impl ColumnCells for StokesColumn {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(self.shape.clone()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        read_part(region, &self.shape, out, |out| self.read_rows(row..row + 1, out))
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.read(rows, out).context(&self.file.place)
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        Some(self.shape.clone())
    }
}
