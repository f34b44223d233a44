//! Converts BLZ arrays to HDF5: each array becomes a dataset, whose chunks have the same number of
//! rows as those of the array. The layout: docs/reference/layout.md, "Arrays".

use std::path::Path;

use blosc_arrays::Arrays;
use blosc_arrays::array::{Array, Stored};
use blosc_arrays::blosc::{self, BloscCodec, ChunkSettings};
use blosc_arrays::chunk_files::StoredChunk;
use blosc_arrays::json::Document;
use rayon::prelude::*;
use serde_json::Value as Json;

use super::element::element_of;
use super::from_hdf5::{ATTRIBUTES, COLUMNS, DTYPE, FORMAT, MARK, STORAGE, VERSION};
use crate::call::{Call, call_setters};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, Compression, Dataset, ElementSpec, FilterScratch, Group, Pipeline};
use crate::output::Output;
use crate::progress::{Phase, Progress};
use crate::value::{Shape, Values};

/// Chunks of an array up to this size in bytes may have more rows than the array, and those of the
/// dataset then as well; above it, a chunk of the dataset has at most the rows of the array.
const LARGE_CHUNK: u64 = 1 << 20;

/// Blosc level of chunks that do not fit, and are compressed again.
const LEVEL: u8 = 5;

/// Decoded bytes that are collected to be encoded on all threads.
const BATCH_BYTES: usize = 32 << 20;

/// Converts BLZ, bcolz or bloscpack arrays to datasets of an HDF5 file.
#[must_use = "`write` writes"]
pub struct ToHdf5<'a> {
    arrays: &'a Arrays,
    compression: Compression,
    keep: bool,
    call: Call<'a>,
}

/// Summary of the arrays that [`ToHdf5::write`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToHdf5Summary {
    /// Number of datasets that were written, one for each array.
    pub arrays: usize,
    /// Size in bytes of the elements of the datasets that were written, uncompressed.
    pub bytes: u64,
    /// Size in bytes of the HDF5 file that was written.
    pub file_bytes: u64,
}

impl<'a> ToHdf5<'a> {
    /// Prepares to convert all of `arrays` to HDF5.
    pub fn new(arrays: &'a Arrays) -> Self {
        ToHdf5 { arrays, compression: Compression::NONE, keep: false, call: Call::default() }
    }

    /// Sets how the chunks of the datasets are compressed; by default they are not.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Keeps the stored Blosc chunks unchanged in the HDF5 datasets, with Blosc's HDF5 filter;
    /// those that do not fit the chunks of the dataset, such as the last one, are compressed again.
    /// The compression that was set is then ignored. Chunks are not decoded: if they have no
    /// checksum, only the presence of their blocks is checked.
    pub fn keep_chunks(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    call_setters!(target);

    /// Writes the arrays to the HDF5 file `target`, which appears under its name only when it is
    /// complete.
    ///
    /// # Errors
    /// Those of reading the arrays; `Unsupported` for elements that HDF5 does not have; `Exists`,
    /// `NoSpace`, `Io`, `Interrupted`. The target is then as it was before.
    pub fn write(self, target: impl AsRef<Path>) -> Result<ToHdf5Summary> {
        self.call.run(|progress| {
            let bytes = self.arrays.bytes();
            progress.expect(bytes);
            progress.phase(Phase::Writing);
            // a shape may state any number of rows: only the chunks tell how many bytes there are
            let output = Output::create(target.as_ref(), self.call.publishing, 0)?;
            let file = h5::File::create(output.partial())?;
            self.write_all(&file.root()?, progress).context(self.arrays.place.clone())?;
            file.close()?;
            let file_bytes = output.bytes()?;
            progress.phase(Phase::Flushing);
            output.commit()?;
            Ok(ToHdf5Summary { arrays: self.arrays.arrays.len(), bytes, file_bytes })
        })
    }

    fn write_all(&self, root: &Group, progress: &dyn Progress) -> Result<()> {
        root.set_attribute(MARK, &Attribute::Scalar(Values::Int64(vec![VERSION])))?;
        if let Some(format) = self.arrays.format {
            root.set_attribute(FORMAT, &Attribute::string(format.name()))?;
        }
        if let Some(columns) = &self.arrays.columns {
            let names = columns.iter().map(|name| name.as_str().into()).collect();
            root.set_attribute(COLUMNS, &Attribute::Array(Values::String(names)))?;
            set_attributes(self.arrays.attributes.as_ref(), |name, value| root.set_attribute(name, value))?;
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
        let element = element_of(&array.dtype)?;
        let chunk_bytes = usize::try_from(chunk_rows * array.row_bytes).ok().filter(|&bytes| bytes < u32::MAX as usize);
        let chunk_bytes =
            chunk_bytes.ok_or_else(|| Error::unsupported("chunks have 4 GiB or more, which HDF5 cannot store"))?;
        let mut blosc = None;
        if self.keep && chunk_bytes > 0 {
            blosc = Some(settings(array)?);
        }
        let parameters = blosc.map(|settings| filter_parameters(&settings, chunk_bytes));
        let storage = array.storage.as_ref().map(|storage| &storage.value);
        let fill = storage.and_then(|storage| storage.get("dflt")).and_then(|dflt| array.dtype.fill(dflt));
        let mut in_hdf5 = fill.clone().filter(|fill| fill.iter().any(|&byte| byte != 0));
        in_hdf5.as_mut().map_or(Ok(()), |fill| array.dtype.convert(fill))?;
        let spec = ElementSpec {
            element: &element,
            shape: &shape,
            chunk: &chunk,
            compression: self.compression,
            blosc: parameters.as_deref(),
            fill: in_hdf5.as_deref(),
        };
        let dataset = group.create_elements(name, &spec)?;
        dataset.set_attribute(DTYPE, &Attribute::string(array.dtype_text.as_str()))?;
        if let Some(storage) = &array.storage {
            dataset.set_attribute(STORAGE, &Attribute::string(storage.text.as_str()))?;
        }
        set_attributes(array.attributes.as_ref(), |name, value| dataset.set_attribute(name, value))?;
        let encoding = match blosc {
            Some(settings) => Encoding::Blosc(settings),
            None => Encoding::Pipeline(self.compression.pipeline(array.dtype.size)),
        };
        let fill = fill.filter(|_| in_hdf5.is_some()).unwrap_or_default();
        let mut chunks = Chunks { array, dataset: &dataset, encoding, chunk_bytes, fill, held: Vec::new(), written: 0 };
        if blosc.is_some() && matches!(array.stored, Stored::Files(_)) && !array.is_fortran && array.dtype.is_plain() {
            keep(array, &mut chunks, progress)?;
        } else {
            array.read(progress, &mut |piece| chunks.take(piece))?;
        }
        chunks.finish()
    }
}

/// Settings for chunks that are compressed again: codec and shuffle of the array's first chunk.
fn settings(array: &Array) -> Result<ChunkSettings> {
    let first = array.first_file()?.map(|file| file.first()).transpose()?.flatten();
    let header = first.as_ref().map(|first| first.header());
    let codec = header.map_or("lz4", |header| header.codec()).parse().unwrap_or(BloscCodec::Lz4);
    let shuffle = header.is_none_or(|header| header.shuffle() > 0);
    Ok(ChunkSettings { codec, level: LEVEL, shuffle, typesize: array.dtype.typesize() })
}

/// Parameters of Blosc's HDF5 filter: its revision 2, version 2 of Blosc chunks, size in bytes of
/// an element and of a chunk, level, shuffle (0 or 1) and number of the codec.
fn filter_parameters(settings: &ChunkSettings, chunk_bytes: usize) -> Vec<u32> {
    let shuffle = u32::from(settings.shuffle);
    vec![2, 2, settings.typesize().into(), chunk_bytes as u32, settings.level.into(), shuffle, settings.compressor()]
}

/// Stored chunks stay if they fill exactly one chunk of the dataset; others are encoded again.
fn keep(array: &Array, chunks: &mut Chunks<'_>, progress: &dyn Progress) -> Result<()> {
    let chunk_bytes = chunks.chunk_bytes as u64;
    array.each_batch(array.bytes()?, progress, &mut |batch, start, left| {
        let mut at = start;
        let places: Vec<(&StoredChunk, bool)> = batch
            .iter()
            .map(|chunk| {
                let bytes = chunk.place.bytes();
                let rest = left - (at - start);
                let fits = bytes == chunk_bytes && at.is_multiple_of(chunk_bytes) && rest >= bytes;
                at += bytes;
                (chunk, fits && chunk.place.header().compressor().is_some())
            })
            .collect();
        let get = |(chunk, kept): &(&StoredChunk, bool)| if *kept { chunk.stored() } else { chunk.decoded() };
        let read: Vec<Result<Vec<u8>>> = places.par_iter().map(get).collect();
        let mut left = left;
        for (bytes, (_, kept)) in read.into_iter().zip(places) {
            let mut bytes = bytes?;
            if kept {
                chunks.write_whole()?;
                chunks.write(&bytes)?;
                left -= chunk_bytes;
            } else {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= bytes.len() as u64;
                chunks.take(&bytes)?;
            }
        }
        Ok(())
    })
}

/// How the chunks of the dataset are encoded.
enum Encoding {
    Pipeline(Pipeline),
    Blosc(ChunkSettings),
}

/// Cuts the rows of an array into chunks of its dataset, and writes them.
struct Chunks<'a> {
    array: &'a Array,
    dataset: &'a Dataset,
    encoding: Encoding,
    chunk_bytes: usize,
    /// Element that fills the last chunk after the last row, in the array's form; empty for zeros.
    fill: Vec<u8>,
    /// Decoded bytes of rows that were received but not yet written.
    held: Vec<u8>,
    written: u64,
}

impl Chunks<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<()> {
        self.held.extend_from_slice(piece);
        if self.held.len() >= self.chunk_bytes.max(BATCH_BYTES) { self.write_whole() } else { Ok(()) }
    }

    /// Keeps the rows of the last, incomplete chunk.
    fn write_whole(&mut self) -> Result<()> {
        if self.chunk_bytes == 0 {
            return Ok(());
        }
        let whole = self.held.len() / self.chunk_bytes * self.chunk_bytes;
        let (array, encoding) = (self.array, &self.encoding);
        let filter = |chunk: &mut [u8]| {
            if !array.dtype.is_plain() {
                chunk.chunks_exact_mut(array.dtype.size).try_for_each(|element| array.dtype.convert(element))?;
            }
            let mut out = Vec::new();
            match encoding {
                Encoding::Pipeline(pipeline) if pipeline.is_empty() => {}
                Encoding::Pipeline(pipeline) => pipeline.encode(&mut FilterScratch::default(), chunk, &mut out)?,
                Encoding::Blosc(settings) => blosc::encode(chunk, settings, &mut out)?,
            }
            Ok(out)
        };
        let filtered: Vec<Result<Vec<u8>>> =
            self.held[..whole].par_chunks_exact_mut(self.chunk_bytes).map(filter).collect();
        let held = std::mem::take(&mut self.held);
        for (filtered, plain) in filtered.into_iter().zip(held[..whole].chunks_exact(self.chunk_bytes)) {
            let filtered = filtered?;
            self.write(if filtered.is_empty() { plain } else { &filtered })?;
        }
        self.held = held;
        self.held.drain(..whole);
        Ok(())
    }

    fn write(&mut self, stored: &[u8]) -> Result<()> {
        let mut index = vec![0; self.array.shape.len()];
        index[self.array.shape.len() - 1] = self.written;
        self.dataset.write_chunk(&index, stored, 0)?;
        self.written += 1;
        Ok(())
    }

    /// Writes the last chunk, filled up with the fill value.
    fn finish(mut self) -> Result<()> {
        self.write_whole()?;
        if self.held.is_empty() {
            return Ok(());
        }
        while self.held.len() < self.chunk_bytes && !self.fill.is_empty() {
            self.held.extend_from_slice(&self.fill);
        }
        self.held.resize(self.chunk_bytes, 0);
        self.write_whole()
    }
}

/// A Bool, number, string or list of numbers as such, any other value as JSON text with `_json`
/// after the name; and the whole document, for the conversion back.
fn set_attributes(document: Option<&Document>, set: impl Fn(&str, &Attribute) -> Result<()>) -> Result<()> {
    let Some(document) = document else { return Ok(()) };
    for (name, value) in document.members().into_iter().flatten() {
        // HDF5 has no empty names, and no names or strings with NUL
        if name.is_empty() || name.contains('\0') {
            return Err(Error::unsupported(format!("HDF5 cannot have an attribute with the name {name:?}")));
        }
        match attribute(value) {
            Some(attribute) => set(name, &attribute)?,
            None => set(&format!("{name}_json"), &Attribute::string(value.to_string()))?,
        }
    }
    set(ATTRIBUTES, &Attribute::string(document.text.as_str()))
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
