//! Elements that a manifest (JSON references to chunks in other files, for readers of Zarr)
//! contains itself: strings, because HDF5 stores them outside of a dataset's chunks, and numbers
//! that no file has in a form that Zarr can read.

use serde_json::json;

use super::metadata::{self, ArrayMetadata};
use super::references::References;
use crate::error::{Error, Result};
use crate::grid::{Grid, unravel};
use crate::h5::{Compression, FilterScratch, Pipeline};
use crate::progress::Progress;
use crate::value::{ByteOrder, DataType, Region, Shape, Values};

/// Level of gzip, 0 to 9.
const LEVEL: u8 = 6;

pub(super) struct InlineArray {
    grid: Grid,
    data_type: DataType,
}

impl InlineArray {
    pub(super) fn new(shape: Shape, chunk: Option<Shape>, data_type: DataType) -> Self {
        let chunk = chunk.unwrap_or_else(|| shape.clone());
        InlineArray { grid: Grid { shape, chunk }, data_type }
    }

    pub(super) fn metadata(&self) -> ArrayMetadata {
        let filters = match self.data_type {
            DataType::String => vec![metadata::strings(), json!({ "id": "zlib", "level": LEVEL })],
            data_type => metadata::gzip(data_type.size(), LEVEL),
        };
        let dtype = metadata::dtype(self.data_type, ByteOrder::Little);
        ArrayMetadata { shape: self.grid.shape.clone(), chunk: self.grid.chunk.clone(), dtype, filters }
    }

    /// `read` returns the elements of a box of the array.
    pub(super) fn write<W: std::io::Write>(
        &self,
        array: &str,
        out: &mut References<W>,
        progress: &dyn Progress,
        read: &mut dyn FnMut(&Region) -> Result<Values>,
    ) -> Result<()> {
        let counts = self.grid.counts();
        let (mut scratch, mut stored) = (FilterScratch::default(), Vec::new());
        for number in 0..counts.elements()? {
            progress.go_on()?;
            let index = unravel(number, &counts);
            let start: Shape = index.iter().zip(self.grid.chunk.iter()).map(|(index, chunk)| index * chunk).collect();
            let extents = start.iter().zip(self.grid.chunk.iter()).zip(self.grid.shape.iter());
            let shape: Shape = extents.map(|((start, &chunk), extent)| chunk.min(extent - start)).collect();
            let cells_are_whole = shape.len() < 2 || shape[..shape.len() - 1] == self.grid.chunk[..shape.len() - 1];
            if !cells_are_whole {
                return Err(Error::unsupported("a chunk that is a part of cells"));
            }
            let mut values = read(&Region { start, shape })?;
            // chunks of Zarr are whole
            values.extend_default((self.grid.chunk.elements()? as usize).saturating_sub(values.len()));
            let gzip = Compression::gzip(LEVEL);
            match &values {
                Values::String(strings) => {
                    let pipeline = Pipeline::new(gzip.filter().into_iter().collect());
                    pipeline.encode(&mut scratch, &joined(strings)?, &mut stored)?;
                }
                numbers => {
                    let bytes = numbers
                        .le_bytes()
                        .ok_or_else(|| Error::unsupported("a manifest cannot hold elements without a fixed size"))?;
                    gzip.pipeline(self.data_type.size()).encode(&mut scratch, &bytes, &mut stored)?;
                }
            }
            out.inline(array, &index, &stored)?;
        }
        Ok(())
    }
}

/// numcodecs' `vlen-utf8`: the count of strings, then length and bytes of each; numbers are u32,
/// little-endian.
fn joined(strings: &[bstr::BString]) -> Result<Vec<u8>> {
    let number = |len: usize| {
        let number = u32::try_from(len).map_err(|_| Error::unsupported("a manifest cannot hold 4 GiB of strings"))?;
        Ok::<_, Error>(number.to_le_bytes())
    };
    let mut bytes = number(strings.len())?.to_vec();
    for string in strings {
        bytes.extend(number(string.len())?);
        bytes.extend_from_slice(string);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_in_a_row() {
        let bytes = joined(&["ab".into(), "".into()]).unwrap();
        assert_eq!(bytes, [2, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0]);
    }
}
