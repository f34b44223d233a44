//! Arrays into HDF5: a dataset with the same chunks for each. docs/layout.md, "Arrays".

use std::path::Path;

use rayon::prelude::*;
use serde_json::Value as Json;

use super::array::Array;
use super::arrays::Arrays;
use crate::call::{Call, call_setters};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, Compression, Dataset, ElementSpec, FilterScratch, Group, Pipeline};
use crate::output::Output;
use crate::progress::Progress;
use crate::value::{Shape, Values};

/// Root attribute with the version of the layout.
const MARK: &str = "ctds_arrays";

/// Version of the layout.
const VERSION: i64 = 1;

/// Chunks of more bytes than this have no more rows than the array.
const LARGE_CHUNK: u64 = 1 << 20;

/// Bytes of whole chunks that are filtered at a time.
const BATCH_BYTES: usize = 32 << 20;

/// Writes datasets of arrays.
#[must_use = "`write` writes"]
pub struct ToHdf5<'a> {
    arrays: &'a Arrays,
    compression: Compression,
    call: Call<'a>,
}

/// Summary of the arrays that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToHdf5Summary {
    /// Datasets.
    pub arrays: usize,
    /// Bytes of their elements.
    pub bytes: u64,
    /// Length in bytes of the file.
    pub file_bytes: u64,
}

impl<'a> ToHdf5<'a> {
    /// All of `arrays`.
    pub fn new(arrays: &'a Arrays) -> Self {
        ToHdf5 { arrays, compression: Compression::NONE, call: Call::default() }
    }

    /// Sets how chunks are compressed; without, not at all.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    call_setters!(target);

    /// Writes the file `target`, which appears under its name when it is whole.
    ///
    /// # Errors
    /// Those of reading the arrays; `Unsupported` for elements that HDF5 does not have; `Exists`, `NoSpace`, `Io`,
    /// `Interrupted`. The target is then as it was before.
    pub fn write(self, target: impl AsRef<Path>) -> Result<ToHdf5Summary> {
        self.call.run(|progress| {
            let bytes = self.arrays.bytes();
            progress.expect(bytes);
            // a shape may state any number of rows: only the chunks tell how many bytes there are
            let output = Output::create(target.as_ref(), self.call.publishing, 0)?;
            let file = h5::File::create(output.partial())?;
            self.write_all(&file.root()?, progress).context(self.arrays.place.clone())?;
            file.close()?;
            let file_bytes = output.bytes()?;
            output.commit()?;
            Ok(ToHdf5Summary { arrays: self.arrays.arrays.len(), bytes, file_bytes })
        })
    }

    fn write_all(&self, root: &Group, progress: &dyn Progress) -> Result<()> {
        root.set_attribute(MARK, &Attribute::Scalar(Values::Int64(vec![VERSION])))?;
        if let Some(columns) = &self.arrays.columns {
            let names = columns.iter().map(|name| name.as_str().into()).collect();
            root.set_attribute("columns", &Attribute::Array(Values::String(names)))?;
            set_attributes(&self.arrays.attributes, |name, value| root.set_attribute(name, value))?;
        }
        for array in &self.arrays.arrays {
            self.write_array(root, array, progress).with_context(|| Context::member(&array.name))?;
        }
        Ok(())
    }

    fn write_array(&self, root: &Group, array: &Array, progress: &dyn Progress) -> Result<()> {
        let (group, name) = match array.name.rsplit_once('/') {
            None => (root.clone(), array.name.as_str()),
            Some((groups, name)) => {
                let enter = |group: Group, name: &str| {
                    if group.has(name) { group.group(name) } else { group.create_group(name) }
                };
                (groups.split('/').try_fold(root.clone(), enter)?, name)
            }
        };
        let rows = array.shape[0];
        let is_large = array.chunk_rows.saturating_mul(array.row_bytes) > LARGE_CHUNK;
        let chunk_rows = if is_large { array.chunk_rows.min(rows.max(1)) } else { array.chunk_rows };
        let shape: Shape = array.shape.iter().rev().copied().collect();
        let with_rows = |rows: u64| array.shape[1..].iter().rev().map(|&extent| extent.max(1)).chain([rows]);
        let chunk: Shape = with_rows(chunk_rows).collect();
        let element = array.dtype.element()?;
        let spec = ElementSpec { element: &element, shape: &shape, chunk: &chunk, compression: self.compression };
        let dataset = group.create_elements(name, &spec)?;
        dataset.set_attribute("blz_dtype", &Attribute::string(array.dtype_text.as_str()))?;
        if !array.storage.is_null() {
            dataset.set_attribute("blz_storage_json", &Attribute::string(array.storage.to_string()))?;
        }
        if self.arrays.columns.is_none() || array.attributes != self.arrays.attributes {
            set_attributes(&array.attributes, |name, value| dataset.set_attribute(name, value))?;
        }
        let chunk_bytes = usize::try_from(chunk_rows * array.row_bytes).ok().filter(|&bytes| bytes < u32::MAX as usize);
        let chunk_bytes =
            chunk_bytes.ok_or_else(|| Error::unsupported("chunks of 4 GiB or more, which HDF5 does not have"))?;
        let pipeline = self.compression.pipeline(array.dtype.size);
        let mut chunks = Chunks { array, dataset: &dataset, pipeline, chunk_bytes, held: Vec::new(), written: 0 };
        array.read(progress, &mut |piece| chunks.take(piece))?;
        chunks.finish()
    }
}

/// Cuts the rows into chunks of the dataset.
struct Chunks<'a> {
    array: &'a Array,
    dataset: &'a Dataset,
    pipeline: Pipeline,
    /// Bytes of a chunk.
    chunk_bytes: usize,
    /// Bytes that are not written yet.
    held: Vec<u8>,
    /// Chunks that are.
    written: u64,
}

impl Chunks<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<()> {
        self.held.extend_from_slice(piece);
        if self.held.len() >= self.chunk_bytes.max(BATCH_BYTES) { self.write_whole() } else { Ok(()) }
    }

    /// Writes all whole chunks.
    fn write_whole(&mut self) -> Result<()> {
        if self.chunk_bytes == 0 {
            return Ok(());
        }
        let whole = self.held.len() / self.chunk_bytes * self.chunk_bytes;
        let (array, pipeline) = (self.array, &self.pipeline);
        let filter = |chunk: &mut [u8]| {
            if !array.dtype.is_plain() {
                chunk.chunks_exact_mut(array.dtype.size).try_for_each(|element| array.dtype.convert(element))?;
            }
            let mut out = Vec::new();
            if !pipeline.is_empty() {
                pipeline.encode(&mut FilterScratch::default(), chunk, &mut out)?;
            }
            Ok(out)
        };
        let filtered: Vec<Result<Vec<u8>>> =
            self.held[..whole].par_chunks_exact_mut(self.chunk_bytes).map(filter).collect();
        let plain = self.held[..whole].chunks_exact(self.chunk_bytes);
        for (filtered, plain) in filtered.into_iter().zip(plain) {
            let filtered = filtered?;
            let mut index = vec![0; self.array.shape.len()];
            index[self.array.shape.len() - 1] = self.written;
            let bytes = if self.pipeline.is_empty() { plain } else { &filtered };
            self.dataset.write_chunk(&index, bytes, 0)?;
            self.written += 1;
        }
        self.held.drain(..whole);
        Ok(())
    }

    /// Writes the last chunk, filled up with zeros.
    fn finish(mut self) -> Result<()> {
        self.write_whole()?;
        if self.held.is_empty() {
            return Ok(());
        }
        self.held.resize(self.chunk_bytes, 0);
        self.write_whole()
    }
}

/// Attributes of the user: numbers, strings, lists of numbers; all others as JSON text, with `_json` after their names.
fn set_attributes(
    attributes: &serde_json::Map<String, Json>,
    set: impl Fn(&str, &Attribute) -> Result<()>,
) -> Result<()> {
    for (name, value) in attributes {
        // what HDF5 cannot have as a name or a string
        if name.is_empty() || name.contains('\0') {
            return Err(Error::unsupported(format!("an attribute with the name {name:?}")));
        }
        match attribute(value) {
            Some(attribute) => set(name, &attribute)?,
            None => set(&format!("{name}_json"), &Attribute::string(value.to_string()))?,
        }
    }
    Ok(())
}

fn attribute(value: &Json) -> Option<Attribute> {
    match value {
        Json::Bool(value) => Some(Attribute::Scalar(Values::Bool(vec![*value]))),
        Json::String(text) if !text.contains('\0') => Some(Attribute::string(text.as_str())),
        Json::Number(number) => Some(match number.as_i64() {
            Some(value) => Attribute::Scalar(Values::Int64(vec![value])),
            None => Attribute::Scalar(Values::Double(vec![number.as_f64()?])),
        }),
        Json::Array(list) if !list.is_empty() => {
            if let Some(numbers) = list.iter().map(Json::as_i64).collect::<Option<Vec<_>>>() {
                return Some(Attribute::Array(Values::Int64(numbers)));
            }
            let numbers = list.iter().map(|value| value.is_number().then(|| value.as_f64())?).collect::<Option<_>>()?;
            Some(Attribute::Array(Values::Double(numbers)))
        }
        _ => None,
    }
}
