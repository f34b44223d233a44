//! Opens one array of the formats BLZ, bcolz or bloscpack, and reads its elements. The array is a
//! directory with JSON documents and files of chunks, or a single file of chunks. The format:
//! docs/reference/formats/blz.md.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value as Json};

use crate::chunk_files::{BATCH_BYTES, BATCH_FILES, ChunkFiles, StoredChunk};
use crate::container::Container;
use crate::dtype::{Dtype, Kind};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::read_all;
use crate::json::Document;
use crate::limits;
use crate::progress::Progress;
use crate::superchunk::Superchunk;

/// Name of an array that is not the column of a table.
pub const ARRAY: &str = "array";

const MAX_AXES: usize = 32;

/// Largest array in Fortran order that is read, in bytes: it is transposed in memory.
const MAX_TRANSPOSED: u64 = 1 << 30;

/// An array of BLZ, bcolz or bloscpack, or one whose rows come from elsewhere.
#[derive(Debug)]
pub struct Array {
    /// Name of the array: that of a column of a table, [`ARRAY`] for an array on its own.
    pub name: String,
    pub dtype: Dtype,
    /// The element type of the array, spelled as in the array's JSON metadata: `float64`, `<i4`.
    pub dtype_text: String,
    /// Extents of the array, slowest axis first; it has at least one axis.
    pub shape: Vec<u64>,
    /// Number of rows in a chunk of the array, at least 1; a row is one index of the slowest axis.
    pub chunk_rows: u64,
    /// The JSON document `meta/storage` of the array, or the metadata of a single file of chunks;
    /// `None` if the array has neither.
    pub storage: Option<Document>,
    /// The attributes that the user gave the array, a JSON object; `None` if the array has no
    /// document of attributes.
    pub attributes: Option<Document>,
    /// Size of a row of the array in bytes, decoded.
    pub row_bytes: u64,
    /// Whether the chunks hold the elements with the first axis fastest.
    pub is_fortran: bool,
    pub stored: Stored,
}

/// A function that is called with consecutive chunks of an array, the offset in bytes of the first
/// one in the decoded array, and the number of decoded bytes from that offset to the end of the
/// array.
pub type EachBatch<'a> = dyn FnMut(&[StoredChunk], u64, u64) -> Result<()> + 'a;

/// The rows of an array that are not in files of chunks: in memory, or in a file of another format.
pub trait Rows: fmt::Debug + Send + Sync {
    /// Calls `each` with the bytes of all rows, as [`Array::read`] does.
    ///
    /// # Errors
    /// Those of reading the rows; that of `each`; `Interrupted`.
    fn read(&self, progress: &dyn Progress, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

impl Rows for Vec<u8> {
    fn read(&self, progress: &dyn Progress, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.chunks(BATCH_BYTES as usize).try_for_each(|piece| {
            progress.go_on()?;
            each(piece)?;
            progress.advance(piece.len() as u64, ".", "");
            Ok(())
        })
    }
}

/// Where the elements of an array are stored.
#[derive(Debug)]
pub enum Stored {
    Files(ChunkFiles),
    Rows(Box<dyn Rows>),
    /// The array has no files of chunks: either it has no rows, or its files are missing, in which
    /// case reading it fails.
    Nowhere,
}

/// `None` if the document is missing.
pub(crate) fn document(inside: &dyn Container, name: &str) -> Result<Option<Document>> {
    match inside.open(name) {
        Ok(file) => {
            read_all(&*file).and_then(|bytes| Document::decode(&bytes)).context(Context::member(name)).map(Some)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn required(inside: &dyn Container, name: &str) -> Result<Document> {
    document(inside, name)?.ok_or_else(|| Error::format("the document is missing").context(Context::member(name)))
}

/// User attributes of an array or table; `None` without the document.
pub(crate) fn attributes(root: &dyn Container) -> Result<Option<Document>> {
    let meta = match root.enter("meta") {
        Ok(meta) => document(&*meta, "attributes").context(Context::member("meta"))?,
        Err(_) => None,
    };
    let found = document(root, "__attrs__")?.or(meta);
    match &found {
        Some(document) if document.members().is_none() => Err(Error::format("the attributes are not a JSON object")),
        _ => Ok(found),
    }
}

impl Array {
    /// One array called `name` or, if the fields of records have directories of their own, an array
    /// for each field; `Format` if a document is missing or damaged.
    pub(crate) fn open(root: &dyn Container, name: &str) -> Result<Vec<Self>> {
        let meta = root.enter("meta")?;
        let documents = || {
            let (storage, sizes) = (required(&*meta, "storage")?, required(&*meta, "sizes")?);
            Ok::<_, Error>((storage, sizes))
        };
        let (storage, sizes) = documents().context(Context::member("meta"))?;
        let text = storage.value.get("dtype").and_then(Json::as_str);
        let text = text.ok_or_else(|| Error::format("meta/storage has no dtype"))?;
        let dtype = text.parse::<Dtype>().context("meta/storage")?;
        let shape = extents(sizes.value.get("shape")).context("meta/sizes")?;
        let chunk_rows = chunk_rows(&storage.value);
        let chunk_rows = chunk_rows.ok_or_else(|| Error::format("meta/storage has no chunklen of 1 or more"))?;
        let data = match root.enter("data") {
            Ok(data) => Some(data),
            // an array without rows need not have it
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let files = data.as_ref().map_or(Ok(None), |data| ChunkFiles::in_folder(data.clone()))?;
        let has_files = files.is_some();
        let whole = Array {
            name: name.to_owned(),
            row_bytes: row_bytes(&dtype, &shape)?,
            dtype_text: text.to_owned(),
            dtype,
            shape,
            chunk_rows,
            attributes: attributes(root)?,
            is_fortran: false,
            stored: files.map_or(Stored::Nowhere, Stored::Files),
            storage: Some(storage),
        };
        if let Some(data) = data.filter(|_| !has_files)
            && matches!(whole.dtype.kind, Kind::Record(_))
            && !data.nested()?.is_empty()
        {
            let mut columns = Vec::new();
            whole.fields(&whole.dtype, data, "", 0, &mut columns)?;
            return Ok(columns);
        }
        Ok(vec![whole])
    }

    /// An array for each field of `dtype`; field `a` of a nested record `b` is called `b/a`.
    fn fields(
        &self,
        dtype: &Dtype,
        inside: Arc<dyn Container>,
        prefix: &str,
        depth: usize,
        out: &mut Vec<Self>,
    ) -> Result<()> {
        limits::depth(depth, "records")?;
        let Kind::Record(fields) = &dtype.kind else { return Ok(()) };
        for (field, dtype) in fields {
            crate::container::check_name(field)?;
            let data = inside.enter(field)?;
            let name = format!("{prefix}{field}");
            if matches!(dtype.kind, Kind::Record(_)) {
                self.fields(dtype, data, &format!("{name}/"), depth + 1, out)?;
                continue;
            }
            let (mut shape, mut element) = (self.shape[..1].to_vec(), dtype.clone());
            if let Kind::Array(extents, inner) = &dtype.kind {
                shape.extend(extents);
                element = (**inner).clone();
            }
            out.push(Array {
                name,
                row_bytes: row_bytes(&element, &shape)?,
                dtype_text: element.to_string(),
                dtype: element,
                shape,
                chunk_rows: self.chunk_rows,
                storage: self.storage.clone(),
                attributes: None,
                is_fortran: false,
                stored: ChunkFiles::in_folder(data)?.map_or(Stored::Nowhere, Stored::Files),
            });
        }
        Ok(())
    }

    /// Without metadata of a numpy array, the content is an array of bytes.
    pub(crate) fn of_file(inside: Arc<dyn Container>, file: &str) -> Result<Self> {
        let superchunk = Superchunk::open(inside.open(file)?)?;
        let value = superchunk.metadata.as_ref().map_or(&Json::Null, |metadata| &metadata.value);
        let is_array = value.get("container").and_then(Json::as_str) == Some("numpy");
        let (text, shape) = match value.get("dtype").and_then(Json::as_str).filter(|_| is_array) {
            Some(text) => (text.to_owned(), stored_extents(value.get("shape")).context("metadata")?),
            None => ("|u1".to_owned(), vec![superchunk.bytes()?]),
        };
        let dtype = text.parse::<Dtype>()?;
        let row_bytes = row_bytes(&dtype, &shape)?;
        let chunk = superchunk.first()?.map_or(0, |chunk| chunk.bytes());
        Ok(Array {
            name: ARRAY.to_owned(),
            dtype,
            dtype_text: text,
            chunk_rows: (chunk / row_bytes.max(1)).max(1),
            row_bytes,
            is_fortran: value.get("order").and_then(Json::as_str) == Some("F") && shape.len() > 1,
            shape,
            storage: superchunk.metadata,
            attributes: None,
            stored: Stored::Files(ChunkFiles::one(inside, file)),
        })
    }

    /// Last axis fastest; `Usage` unless the shape has 1 to 32 axes, and `bytes` fit it.
    pub(crate) fn of_bytes(dtype: &str, shape: &[u64], chunk_rows: u64, bytes: Vec<u8>) -> Result<Self> {
        if !(1..=MAX_AXES).contains(&shape.len()) {
            return Err(Error::usage(format!("an array has 1 to {MAX_AXES} axes, the shape has {}", shape.len())));
        }
        let (dtype_text, dtype) = (dtype.to_owned(), dtype.parse::<Dtype>()?);
        let array = Array {
            name: ARRAY.to_owned(),
            row_bytes: row_bytes(&dtype, shape)?,
            dtype,
            dtype_text,
            shape: shape.to_vec(),
            chunk_rows: chunk_rows.max(1),
            storage: None,
            attributes: None,
            is_fortran: false,
            stored: Stored::Nowhere,
        };
        let (expected, found) = (array.bytes()?, bytes.len());
        if expected != found as u64 {
            return Err(Error::usage(format!("the shape takes {expected} bytes, but {found} are given")));
        }
        Ok(Array { stored: Stored::Rows(Box::new(bytes)), ..array })
    }

    /// The user's attributes; empty without any.
    pub(crate) fn members(&self) -> Map<String, Json> {
        self.attributes.as_ref().and_then(Document::members).cloned().unwrap_or_default()
    }

    /// Size of all rows of the array in bytes, decoded.
    ///
    /// # Errors
    /// `Format` if they are more than any file has.
    pub fn bytes(&self) -> Result<u64> {
        let bytes = self.shape[0].checked_mul(self.row_bytes).filter(|&bytes| bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| {
            Error::format(format!("{} rows of {} bytes exceed 2^63 bytes", self.shape[0], self.row_bytes))
        })
    }

    /// Opens the first file of the array's chunks; `None` if the array has no files of chunks.
    pub fn first_file(&self) -> Result<Option<Superchunk>> {
        match &self.stored {
            Stored::Files(files) => files.first().map(Some),
            _ => Ok(None),
        }
    }

    /// Calls `each` with the bytes of all rows of the array, decoded, last axis fastest, in pieces
    /// of any length. Chunks are decoded on all threads.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged, or the files have fewer rows than stated; that of `each`;
    /// `Interrupted`.
    pub fn read(&self, progress: &dyn Progress, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let bytes = self.bytes()?;
        if !self.is_fortran {
            return self.read_stored(bytes, progress, each);
        }
        if bytes > MAX_TRANSPOSED {
            let message = format!("the array in Fortran order has {bytes} bytes; the limit is {MAX_TRANSPOSED}");
            return Err(Error::limit(message));
        }
        let mut stored = Vec::new();
        self.read_stored(bytes, progress, &mut |piece| {
            stored.extend_from_slice(piece);
            Ok(())
        })?;
        each(&transposed(&stored, &self.shape, self.dtype.size))
    }

    fn read_stored(
        &self,
        bytes: u64,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if let Stored::Rows(rows) = &self.stored {
            return rows.read(progress, each);
        }
        self.each_batch(bytes, progress, &mut |batch, _, rest| {
            let decoded: Vec<Result<Vec<u8>>> = batch.par_iter().map(StoredChunk::decoded).collect();
            let mut left = rest;
            for bytes in decoded {
                let mut bytes = bytes?;
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= bytes.len() as u64;
                each(&bytes)?;
            }
            Ok(())
        })
    }

    /// Calls `each` with batches of consecutive chunks, from the array's first chunk on, until all
    /// batches together hold at least `bytes` decoded bytes.
    ///
    /// # Errors
    /// `Format` if a header is damaged, or there are fewer bytes; that of `each`; `Interrupted`.
    pub fn each_batch(&self, bytes: u64, progress: &dyn Progress, each: &mut EachBatch<'_>) -> Result<()> {
        let Stored::Files(files) = &self.stored else {
            return if bytes == 0 { Ok(()) } else { Err(self.too_few(0, bytes, "data/__0.blp")) };
        };
        let (mut batch, mut start, mut found): (Vec<StoredChunk>, u64, u64) = (Vec::new(), 0, 0);
        let mut flush = |batch: &mut Vec<StoredChunk>, start: &mut u64, end: u64| -> Result<()> {
            progress.go_on()?;
            each(batch, *start, bytes - *start)?;
            batch.clear();
            progress.advance(end.min(bytes) - *start, ".", "");
            *start = end;
            progress.go_on()
        };
        let mut take = |chunk: StoredChunk| -> Result<bool> {
            // an array that became shorter keeps the files after its last row
            if found >= bytes {
                return Ok(false);
            }
            let len = chunk.place.bytes();
            if !batch.is_empty() && (found - start + len > BATCH_BYTES || batch.len() >= BATCH_FILES) {
                flush(&mut batch, &mut start, found)?;
            }
            batch.push(chunk);
            found += len;
            Ok(found < bytes)
        };
        let missing = if bytes == 0 { None } else { files.each(&mut take)? };
        if found < bytes {
            return Err(self.too_few(found, bytes, &missing.unwrap_or_default()));
        }
        if batch.is_empty() { Ok(()) } else { flush(&mut batch, &mut start, found) }
    }

    /// The error for an array whose shape needs `bytes` bytes while its chunks have only `found`.
    /// `missing` is the name of the next file of chunks, which does not exist, or empty.
    pub(crate) fn too_few(&self, found: u64, bytes: u64, missing: &str) -> Error {
        let message = match missing {
            "" => format!("the shape takes {bytes} bytes, but the chunks have {found}"),
            _ => format!("the shape takes {bytes} bytes, but the chunks have {found}: {missing} is missing"),
        };
        Error::format(message).context(Context::member(&self.name))
    }
}

/// Number of rows in a chunk: `chunklen` of an array's JSON document `meta/storage`; `None` if it
/// is missing or 0.
pub fn chunk_rows(storage: &Json) -> Option<u64> {
    storage.get("chunklen").and_then(Json::as_u64).filter(|&rows| rows > 0)
}

/// Slowest axis first; an error unless the list has 1 to 32 axes.
fn extents(shape: Option<&Json>) -> Result<Vec<u64>> {
    let list = shape.and_then(Json::as_array).filter(|list| (1..=MAX_AXES).contains(&list.len()));
    let extents = list.and_then(|list| list.iter().map(Json::as_u64).collect::<Option<Vec<_>>>());
    extents.ok_or_else(|| Error::format("the shape is not a list of 1 to 32 extents"))
}

/// As bloscpack stores them: an array without axes is one row of one element.
fn stored_extents(shape: Option<&Json>) -> Result<Vec<u64>> {
    match shape.and_then(Json::as_array) {
        Some(list) if list.is_empty() => Ok(vec![1]),
        _ => extents(shape),
    }
}

/// Size in bytes of one decoded row, which is one index of the slowest axis, of an array with this
/// element type and shape, slowest axis first; an error from 4 GiB on.
pub fn row_bytes(dtype: &Dtype, shape: &[u64]) -> Result<u64> {
    let bytes = shape[1..].iter().try_fold(dtype.size as u64, |bytes, &extent| bytes.checked_mul(extent));
    let bytes = bytes.filter(|&bytes| bytes <= u32::MAX.into());
    bytes.ok_or_else(|| Error::format(format!("rows of shape {:?} are longer than a chunk can be", &shape[1..])))
}

/// Reorders elements of `size` bytes in Fortran order so that the last axis is fastest.
fn transposed(stored: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let mut out = vec![0; stored.len()];
    let mut strides = vec![size; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1] as usize;
    }
    let mut index = vec![0u64; shape.len()];
    for target in out.chunks_exact_mut(size.max(1)) {
        let at: usize = index.iter().zip(&strides).map(|(&index, stride)| index as usize * stride).sum();
        target.copy_from_slice(&stored[at..at + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}
