//! Arrays: a directory with files of chunks and two documents, or a single file of chunks. docs/formats/blz.md.

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value as Json};

use super::dtype::{Dtype, Kind};
use super::json;
use super::superchunk::Superchunk;
use crate::container::Container;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::read_all;
use crate::limits;
use crate::progress::Progress;

/// Name of the dataset of an array that is not the column of a table.
pub(super) const ARRAY: &str = "array";

/// Decoded bytes that are held at a time, but for a single chunk that is larger.
const BATCH_BYTES: u64 = 32 << 20;

/// Longest array in Fortran order, which is transposed in memory.
const MOST_TRANSPOSED: u64 = 1 << 30;

/// An array.
#[derive(Debug)]
pub(super) struct Array {
    /// Path of the dataset: the name of a column, `array` for an array on its own.
    pub(super) name: String,
    pub(super) dtype: Dtype,
    /// The element type as it is spelled.
    pub(super) dtype_text: String,
    /// Extents, slowest axis first, of which there is at least one.
    pub(super) shape: Vec<u64>,
    /// Rows of a chunk, at least 1.
    pub(super) chunk_rows: u64,
    /// `meta/storage`, or the metadata of a single file.
    pub(super) storage: Json,
    /// Attributes of the user.
    pub(super) attributes: Map<String, Json>,
    /// Bytes of a row.
    pub(super) row_bytes: u64,
    /// Whether the chunks hold the first axis fastest.
    is_fortran: bool,
    data: Option<Arc<dyn Container>>,
    /// The files of chunks with their numbers, in order.
    files: Vec<(u64, String)>,
    /// Number of the first file.
    first: u64,
}

/// The document `name` of a directory; `None` if it is missing.
pub(super) fn document(inside: &dyn Container, name: &str) -> Result<Option<Json>> {
    match inside.open(name) {
        Ok(file) => read_all(&*file).and_then(|bytes| json::decode(&bytes)).context(Context::member(name)).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The document `name` of a directory, which is an error if it is missing.
fn required(inside: &dyn Container, name: &str) -> Result<Json> {
    document(inside, name)?.ok_or_else(|| Error::format("the document is missing").context(Context::member(name)))
}

/// The attributes of the user of an array or table.
pub(super) fn attributes(root: &dyn Container) -> Result<Map<String, Json>> {
    let meta = match root.enter("meta") {
        Ok(meta) => document(&*meta, "attributes").context(Context::member("meta"))?,
        Err(_) => None,
    };
    match document(root, "__attrs__")?.or(meta) {
        Some(Json::Object(attributes)) => Ok(attributes),
        None => Ok(Map::new()),
        Some(_) => Err(Error::format("the attributes are not a JSON object")),
    }
}

/// The number of a file of chunks: `__7.blp`, counted from 0, or `__8__.bin`, counted from 1.
fn number_of(name: &str) -> Option<(u64, u64)> {
    let rest = name.strip_prefix("__")?;
    let (digits, first) = match rest.strip_suffix(".blp") {
        Some(digits) => (digits, 0),
        None => (rest.strip_suffix("__.bin")?, 1),
    };
    let number = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((number, first))
}

impl Array {
    /// Opens the array in a directory; one of records may have a directory for each field, then it is several arrays.
    ///
    /// # Errors
    /// `Format` if a document is missing or damaged.
    pub(super) fn open(root: &dyn Container, name: &str) -> Result<Vec<Self>> {
        let meta = root.enter("meta")?;
        let documents = || {
            let (storage, sizes) = (required(&*meta, "storage")?, required(&*meta, "sizes")?);
            Ok::<_, Error>((storage, sizes))
        };
        let (storage, sizes) = documents().context(Context::member("meta"))?;
        let text =
            storage.get("dtype").and_then(Json::as_str).ok_or_else(|| Error::format("meta/storage has no dtype"))?;
        let dtype = Dtype::parse(text).context("meta/storage")?;
        let shape = extents(sizes.get("shape")).context("meta/sizes")?;
        let chunk_rows = storage.get("chunklen").and_then(Json::as_u64).filter(|&rows| rows > 0);
        let chunk_rows = chunk_rows.ok_or_else(|| Error::format("meta/storage has no chunklen of 1 or more"))?;
        let attributes = attributes(root)?;
        let data = match root.enter("data") {
            Ok(data) => Some(data),
            // an array without rows need not have it
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let whole = Array {
            name: name.to_owned(),
            row_bytes: row_bytes(&dtype, &shape)?,
            dtype,
            dtype_text: text.to_owned(),
            shape,
            chunk_rows,
            attributes,
            is_fortran: false,
            data: None,
            files: Vec::new(),
            first: 0,
            storage: storage.clone(),
        };
        if let Some(data) = &data
            && matches!(whole.dtype.kind, Kind::Record(_))
            && data_files(&**data)?.0.is_empty()
            && !data.nested()?.is_empty()
        {
            let mut columns = Vec::new();
            whole.fields(&whole.dtype, data.clone(), "", 0, &mut columns)?;
            return Ok(columns);
        }
        let (files, first) = data.as_ref().map_or(Ok((Vec::new(), 0)), |data| data_files(&**data))?;
        Ok(vec![Array { data, files, first, ..whole }])
    }

    /// Adds an array for each field of a record that has a directory of its own.
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
            let (files, first) = data_files(&*data)?;
            out.push(Array {
                name,
                row_bytes: row_bytes(&element, &shape)?,
                dtype_text: self.dtype_text.clone(),
                dtype: element,
                shape,
                chunk_rows: self.chunk_rows,
                storage: self.storage.clone(),
                attributes: self.attributes.clone(),
                is_fortran: false,
                data: Some(data),
                files,
                first,
            });
        }
        Ok(())
    }

    /// The array in a single file of chunks; bytes, if the file does not say what they are.
    pub(super) fn of_file(inside: Arc<dyn Container>, file: &str) -> Result<Self> {
        let superchunk = Superchunk::open(inside.open(file)?)?;
        let bytes = superchunk.bytes();
        let metadata = superchunk.metadata.clone().unwrap_or(Json::Null);
        let is_array = metadata.get("container").and_then(Json::as_str) == Some("numpy");
        let (text, shape) = match metadata.get("dtype").and_then(Json::as_str).filter(|_| is_array) {
            Some(text) => (text.to_owned(), extents(metadata.get("shape")).context("metadata")?),
            None => ("|u1".to_owned(), vec![bytes]),
        };
        let dtype = Dtype::parse(&text)?;
        let row_bytes = row_bytes(&dtype, &shape)?;
        let chunk = superchunk.chunks.first().map_or(0, |chunk| u64::from(chunk.bytes));
        Ok(Array {
            name: ARRAY.to_owned(),
            dtype,
            dtype_text: text,
            chunk_rows: (chunk / row_bytes.max(1)).max(1),
            row_bytes,
            is_fortran: metadata.get("order").and_then(Json::as_str) == Some("F") && shape.len() > 1,
            shape,
            storage: metadata,
            attributes: Map::new(),
            data: Some(inside),
            files: vec![(0, file.to_owned())],
            first: 0,
        })
    }

    /// Bytes of all rows.
    ///
    /// # Errors
    /// `Format` if they are more than any file has.
    pub(super) fn bytes(&self) -> Result<u64> {
        let bytes = self.shape[0].checked_mul(self.row_bytes).filter(|&bytes| bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| Error::format(format!("{} rows of {} bytes", self.shape[0], self.row_bytes)))
    }

    /// The first file of chunks, if the array has rows.
    pub(super) fn first_file(&self) -> Result<Option<Superchunk>> {
        match (&self.data, self.files.first()) {
            (Some(data), Some((_, file))) => open_file(&**data, file).map(Some),
            _ => Ok(None),
        }
    }

    /// Calls `each` with all bytes of the rows, last axis fastest, in pieces of any length. Chunks are decoded on all threads.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged, or the files have fewer rows than stated; that of `each`; `Interrupted`.
    pub(super) fn read(&self, progress: &dyn Progress, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let bytes = self.bytes()?;
        if !self.is_fortran {
            return self.read_stored(bytes, progress, each);
        }
        if bytes > MOST_TRANSPOSED {
            let message = format!("an array of {bytes} bytes in Fortran order; the limit is {MOST_TRANSPOSED}");
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
        let Some(data) = self.data.as_ref().filter(|_| bytes > 0) else {
            return if bytes == 0 { Ok(()) } else { Err(self.too_few(0, bytes)) };
        };
        let mut rest = bytes;
        let mut batch: Vec<(Arc<Superchunk>, usize, &str)> = Vec::new();
        let (mut in_batch, mut found) = (0, 0);
        for (expected, (number, file)) in (self.first..).zip(&self.files) {
            // an array that became shorter keeps the files after its last row
            if found >= bytes {
                break;
            }
            if *number != expected {
                let message = format!("a file of chunks is missing: number {expected}, before {file}");
                return Err(Error::format(message).context(Context::member(&self.name)));
            }
            let superchunk = Arc::new(open_file(&**data, file)?);
            for chunk in 0..superchunk.chunks.len() {
                let len = u64::from(superchunk.chunks[chunk].bytes);
                if in_batch > 0 && in_batch + len > BATCH_BYTES {
                    flush(&mut batch, &mut rest, progress, each)?;
                    in_batch = 0;
                }
                batch.push((superchunk.clone(), chunk, file));
                (in_batch, found) = (in_batch + len, found + len);
                if found >= bytes {
                    break;
                }
            }
        }
        flush(&mut batch, &mut rest, progress, each)?;
        if rest > 0 { Err(self.too_few(bytes - rest, bytes)) } else { Ok(()) }
    }

    fn too_few(&self, found: u64, bytes: u64) -> Error {
        let message = format!("the shape takes {bytes} bytes, but the files of chunks have {found}");
        Error::format(message).context(Context::member(&self.name))
    }
}

/// Decodes chunks and hands on at most `rest` of their bytes.
fn flush(
    batch: &mut Vec<(Arc<Superchunk>, usize, &str)>,
    rest: &mut u64,
    progress: &dyn Progress,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    progress.go_on()?;
    let decode = |(superchunk, chunk, file): &(Arc<Superchunk>, usize, &str)| {
        let mut bytes = Vec::new();
        let most = u64::from(superchunk.chunks[*chunk].bytes);
        superchunk.decode(*chunk, most, &mut bytes).with_context(|| Context::member(*file))?;
        Ok(bytes)
    };
    let decoded: Vec<Result<Vec<u8>>> = batch.par_iter().map(decode).collect();
    batch.clear();
    for bytes in decoded {
        let mut bytes = bytes?;
        bytes.truncate(usize::try_from(*rest).unwrap_or(usize::MAX));
        *rest -= bytes.len() as u64;
        each(&bytes)?;
        progress.advance(bytes.len() as u64, ".", "");
    }
    progress.go_on()
}

fn open_file(data: &dyn Container, file: &str) -> Result<Superchunk> {
    Superchunk::open(data.open(file)?).context(Context::member(file))
}

/// The files of chunks, and the number of the first.
fn data_files(data: &dyn Container) -> Result<(Vec<(u64, String)>, u64)> {
    let mut first = 0;
    let mut files = Vec::new();
    for name in data.names()? {
        if let Some((number, base)) = number_of(&name) {
            first = base;
            files.push((number, name));
        }
    }
    files.sort();
    Ok((files, first))
}

/// Extents of an array, slowest axis first.
fn extents(shape: Option<&Json>) -> Result<Vec<u64>> {
    let list = shape.and_then(Json::as_array).filter(|list| (1..=32).contains(&list.len()));
    let extents = list.and_then(|list| list.iter().map(Json::as_u64).collect::<Option<Vec<_>>>());
    extents.ok_or_else(|| Error::format("no shape of 1 to 32 extents"))
}

/// Bytes of a row.
fn row_bytes(dtype: &Dtype, shape: &[u64]) -> Result<u64> {
    let bytes = shape[1..].iter().try_fold(dtype.size as u64, |bytes, &extent| bytes.checked_mul(extent));
    let bytes = bytes.filter(|&bytes| bytes <= u32::MAX.into());
    bytes.ok_or_else(|| Error::format(format!("rows of shape {:?} are longer than a chunk can be", &shape[1..])))
}

/// Elements in the order of the last axis, of elements in that of the first.
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
