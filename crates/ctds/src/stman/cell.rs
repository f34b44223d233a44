//! Helpers of storage managers for cells: parts of cells, undefined cells, cells that the file
//! stores no bytes of.

use bstr::BString;

use crate::error::{Error, Result};
use crate::grid::copy_box;
use crate::limits;
use crate::value::{DataType, Region, Shape, Values};

/// Appends to `out` the elements of a cell of `shape` that are in `region`, or all; `read` appends
/// the whole cell to its buffer.
pub fn read_part(
    region: Option<&Region>,
    shape: &Shape,
    out: &mut Values,
    read: impl FnOnce(&mut Values) -> Result<()>,
) -> Result<()> {
    let Some(region) = region else { return read(out) };
    region.check(shape)?;
    let mut whole = Values::new(out.data_type());
    read(&mut whole)?;
    let base = out.len();
    out.extend_default(region.shape.elements()? as usize);
    let zero = vec![0; shape.len()];
    copy_box(&whole, shape, &region.start, out, base, &region.shape, &zero, &region.shape);
    Ok(())
}

/// Overwrites `region` of `cell` with `values`; the caller has checked the region and the types.
pub fn write_part(region: &Region, shape: &Shape, cell: &mut Values, values: &Values) {
    let zero = vec![0; shape.len()];
    copy_box(values, &region.shape, &zero, cell, 0, shape, &region.start, &region.shape);
}

pub fn undefined(row: u64) -> Error {
    Error::not_found(format!("the cell in row {row} is undefined"))
}

pub fn memory_bytes(data_type: DataType, elements: u64) -> u64 {
    let size = if data_type.is_fixed_size() { data_type.size() } else { size_of::<BString>() };
    elements.saturating_mul(size as u64)
}

/// Appends zeros, `false` or empty strings for a cell that the file stores no bytes of.
pub fn extend_unbacked(shape: &Shape, out: &mut Values) -> Result<()> {
    let elements = shape.elements()?;
    limits::unbacked_cell(memory_bytes(out.data_type(), elements))?;
    out.extend_default(elements as usize);
    Ok(())
}
