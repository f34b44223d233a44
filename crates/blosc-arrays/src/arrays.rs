//! Opens the BLZ, bcolz or bloscpack arrays at a path: a single one, or the columns of a table.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value as Json};

use crate::array::{self, ARRAY, Array, Stored};
use crate::chunk_files::StoredChunk;
use crate::container::{self, Container, Directory, Formats, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::format::ArrayFormat;
use crate::io::{FileSource, ReadAt};
use crate::json::Document;
use crate::progress::Progress;
use crate::suggest::instead;
use crate::superchunk::{self, Superchunk};

/// The JSON document that makes a directory a table; it lists the columns.
const COLUMNS: &str = "__rootdirs__";

/// The BLZ, bcolz or bloscpack arrays at a path, or an array in memory: a single one, or the
/// columns of a table.
#[derive(Debug)]
pub struct Arrays {
    /// Names of the columns of a table, in order; `None` for a single array.
    #[doc(hidden)]
    pub columns: Option<Vec<String>>,
    #[doc(hidden)]
    pub attributes: Option<Document>,
    #[doc(hidden)]
    pub arrays: Vec<Array>,
    /// The format that the arrays come from; `None` for arrays of other origin.
    #[doc(hidden)]
    pub format: Option<ArrayFormat>,
    /// Outermost context of errors.
    #[doc(hidden)]
    pub place: Context,
}

/// One stored chunk of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkEntry<'a> {
    /// Name of the array that the chunk belongs to.
    pub array: &'a str,
    /// Name of the file that holds the chunk, without its directory.
    pub file: &'a str,
    /// Number of the chunk within its file, counted from 0.
    pub number: u64,
    /// Size of the chunk's content when decoded, in bytes.
    pub bytes: u64,
    /// Size of the chunk in bytes as stored, compressed, without its checksum.
    pub stored_bytes: u64,
    /// Name of the codec that compressed the chunk: `lz4`, `zstd`.
    pub codec: &'static str,
}

/// Properties of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ArrayInfo {
    /// Name of the array: that of the column of a table, `array` if it is not a column.
    pub name: String,
    /// Element type of the array, as its format spells it: `float64`, `<i4`.
    pub dtype: String,
    /// Extents of the array, slowest axis first.
    pub shape: Vec<u64>,
    /// Number of rows in a chunk of the array; the last chunk may have fewer.
    pub chunk_rows: u64,
    /// Size of all elements of the array in bytes, uncompressed.
    pub bytes: u64,
    /// Codec of the array's first chunk: `lz4`, `zstd`; `None` for an array without rows or without
    /// files of chunks.
    pub codec: Option<String>,
    /// Kind of the checksums of the array's chunks: `none`, `adler32`, `sha256`; `None` if no file
    /// of chunks exists.
    pub checksum: Option<String>,
    /// Version of the bloscpack format of the array's files of chunks, 1 to 3; `None` if the array
    /// has no such files.
    pub version: Option<u8>,
}

impl Arrays {
    /// Whether BLZ, bcolz or bloscpack arrays are at `path`: a directory with the JSON metadata of
    /// an array or table, or a file of chunks.
    pub fn are_at(path: impl AsRef<Path>) -> bool {
        Self::are_in(path.as_ref(), Formats::OWN)
    }

    /// [`are_at`](Self::are_at), also for paths that lead into containers of these formats.
    #[doc(hidden)]
    pub fn are_in(path: &Path, formats: Formats) -> bool {
        if directory(path).is_some() {
            return true;
        }
        if path.is_file() {
            let head = FileSource::open(path).and_then(|file| {
                let mut head = [0; 4];
                file.read_at(0, &mut head).map(|()| head)
            });
            if head.is_ok_and(|head| head == superchunk::MAGIC) {
                return true;
            }
        }
        let of_tables = |file: &container::Outermost<'_>| file.is_whole() && file.format.is_for_tables();
        let is_for_tables =
            |path: &Path| container::outermost(path, formats).is_ok_and(|file| file.as_ref().is_some_and(of_tables));
        if std::path::absolute(path).is_ok_and(|path| is_for_tables(&path)) {
            return false;
        }
        container::locate(path, formats).is_ok_and(|root| is_array_or_table(&*root))
    }

    /// Opens the BLZ, bcolz or bloscpack array or table at `path`.
    ///
    /// # Errors
    /// `Format` if a document or the header of a file of chunks is damaged; `Unsupported` for
    /// elements that are Python objects.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(path.as_ref(), Formats::OWN)
    }

    /// [`open`](Self::open), also for paths that lead into containers of these formats.
    #[doc(hidden)]
    pub fn open_in(path: &Path, formats: Formats) -> Result<Self> {
        let place = Context::path(path);
        Self::open_at(path, formats, place.clone()).context(place)
    }

    /// Makes a single array of elements in memory, last axis fastest, little-endian or as `dtype`
    /// says: their type in numpy's spelling, such as `float64`, `>i4` or
    /// `[('a', '<i4'), ('b', '|S3')]`. Its chunks have `chunk_rows` rows when it is written; a row
    /// is one index of the first, slowest axis of `shape`.
    ///
    /// # Errors
    /// `Usage` unless the shape has 1 to 32 axes, or if type and shape need another number of
    /// bytes; `Format` or `Unsupported` for other types.
    pub fn of_bytes(dtype: &str, shape: &[u64], chunk_rows: u64, bytes: Vec<u8>) -> Result<Self> {
        let arrays = vec![Array::of_bytes(dtype, shape, chunk_rows, bytes)?];
        Ok(Arrays { columns: None, attributes: None, arrays, format: None, place: Context::member(ARRAY) })
    }

    fn open_at(path: &Path, formats: Formats, place: Context) -> Result<Self> {
        if path.is_file() && !container::locate(path, formats).is_ok_and(|root| is_array_or_table(&*root)) {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| Error::unsupported("the file's name is not UTF-8"))?;
            let folder = Arc::new(Directory::new(path.parent().unwrap_or(Path::new(""))));
            let arrays = vec![Array::of_file(folder, name)?];
            let format = Some(ArrayFormat::Bloscpack);
            return Ok(Arrays { columns: None, attributes: None, arrays, format, place });
        }
        let root = directory(path).map_or_else(|| container::locate(path, formats), Ok)?;
        let Some(document) = array::document(&*root, COLUMNS)? else {
            let arrays = Array::open(&*root, ARRAY)?;
            let columns = match &arrays[..] {
                [only] if only.name == ARRAY => None,
                fields => Some(fields.iter().map(|field| field.name.clone()).collect()),
            };
            let attributes = if columns.is_some() { array::attributes(&*root)? } else { None };
            let format = Some(ArrayFormat::of_storage(&arrays));
            return Ok(Arrays { columns, attributes, arrays, format, place });
        };
        let document = document.value;
        let names = document.get("names").and_then(Json::as_array);
        let names: Option<Vec<&str>> = names.and_then(|names| names.iter().map(Json::as_str).collect());
        let names =
            names.ok_or_else(|| Error::format("its list of names is missing").context(Context::member(COLUMNS)))?;
        let mut arrays = Vec::new();
        for name in &names {
            check_name(name).context(Context::member(COLUMNS))?;
            let stored = document.get("dirs").and_then(|dirs| dirs.get(name)).and_then(Json::as_str);
            // some have long absolute paths of another machine
            let folder = stored.unwrap_or(name).trim_end_matches('/').rsplit('/').next().unwrap_or(name);
            check_name(folder).context(Context::member(COLUMNS))?;
            let column = || Array::open(&*root.enter(folder)?, name);
            let opened = column().context(Context::member(*name))?;
            let rows = |array: &Array| array.shape[0];
            if let (Some(first), Some(found)) = (arrays.first().map(rows), opened.first().map(rows))
                && first != found
            {
                let message = format!("column {name} has {found} rows, the first one {first}");
                return Err(Error::format(message));
            }
            arrays.extend(opened);
        }
        let columns = names.into_iter().map(str::to_owned).collect();
        let format = Some(ArrayFormat::of_storage(&arrays));
        Ok(Arrays { columns: Some(columns), attributes: array::attributes(&*root)?, arrays, format, place })
    }

    /// Name, type, shape and storage of each array: the columns of a table in their order, or a
    /// single array.
    ///
    /// # Errors
    /// `Format` if the first file of chunks of one is damaged.
    pub fn list(&self) -> Result<Vec<ArrayInfo>> {
        let info = |array: &Array| {
            let first = array.first_file().context(Context::member(&array.name))?;
            let chunk = first.as_ref().map(Superchunk::first).transpose().context(Context::member(&array.name))?;
            Ok(ArrayInfo {
                name: array.name.clone(),
                dtype: array.dtype_text.clone(),
                shape: array.shape.clone(),
                chunk_rows: array.chunk_rows,
                bytes: array.bytes()?,
                codec: chunk.flatten().map(|chunk| chunk.header().codec().to_owned()),
                checksum: first.as_ref().map(|first| first.checksum.name().to_owned()),
                version: first.as_ref().map(|first| first.version),
            })
        };
        self.arrays.iter().map(info).collect::<Result<_>>().context(self.place.clone())
    }

    /// Calls `each` with the decoded elements of the array `name`, last axis fastest, in pieces of
    /// any length. Chunks are verified and decoded on all threads.
    ///
    /// # Errors
    /// `NotFound` without such an array; `Format` if a chunk is damaged, or there are fewer rows
    /// than stated; that of `each`; `Interrupted` if `progress` says so.
    pub fn read(&self, name: &str, progress: &dyn Progress, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let found = self.arrays.iter().find(|array| array.name == name);
        let array = found.ok_or_else(|| {
            let names = self.arrays.iter().map(|array| &array.name);
            Error::not_found(format!("the array {name} does not exist{}", instead(name, names)))
        });
        array.and_then(|array| array.read(progress, each).context(Context::member(name))).context(self.place.clone())
    }

    /// Verifies the arrays: compares all chunks with their checksums and decodes them, on all
    /// threads; an error for the first chunk that is damaged.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged, or there are fewer rows than stated; `Interrupted` if
    /// `progress` says so.
    pub fn check(&self, progress: &dyn Progress) -> Result<()> {
        let check = |array: &Array| match array.stored {
            Stored::Files(_) => array.each_batch(array.bytes()?, progress, &mut |batch, _, _| {
                batch.par_iter().try_for_each(|chunk| chunk.decoded().map(drop))
            }),
            _ => array.read(progress, &mut |_| Ok(())),
        };
        self.arrays
            .iter()
            .try_for_each(|array| check(array).context(Context::member(&array.name)))
            .context(self.place.clone())
    }

    /// Calls `visit` with each stored chunk of the arrays, in order, until it returns false. Chunks
    /// are found one by one, as there may be millions. Arrays without files of chunks are skipped.
    ///
    /// # Errors
    /// `Format` if a header is damaged, or the chunks have fewer rows than stated; those of
    /// `visit`.
    pub fn each_chunk(&self, visit: &mut dyn FnMut(ChunkEntry<'_>) -> Result<bool>) -> Result<()> {
        for array in &self.arrays {
            let (bytes, mut found, mut goes_on) = (array.bytes()?, 0, true);
            let Stored::Files(files) = &array.stored else { continue };
            let mut show = |chunk: StoredChunk| -> Result<bool> {
                let (place, header) = (&chunk.place, chunk.place.header());
                found += place.bytes();
                goes_on = visit(ChunkEntry {
                    array: &array.name,
                    file: &chunk.file,
                    number: place.number,
                    bytes: place.bytes(),
                    stored_bytes: place.stored_bytes(),
                    codec: header.codec(),
                })?;
                Ok(goes_on && found < bytes)
            };
            let missing =
                if bytes == 0 { None } else { files.each(&mut show).context(Context::member(&array.name))? };
            if !goes_on {
                break;
            }
            if found < bytes {
                return Err(array.too_few(found, bytes, &missing.unwrap_or_default())).context(self.place.clone());
            }
        }
        Ok(())
    }

    /// Size of all elements of all arrays together in bytes, uncompressed.
    pub fn bytes(&self) -> u64 {
        self.arrays.iter().map(|array| array.bytes().unwrap_or(0)).fold(0, u64::saturating_add)
    }

    /// Attributes that the user gave the table, or the array on its own, as a JSON object; empty
    /// without any.
    pub fn attributes(&self) -> Map<String, Json> {
        match (&self.columns, self.arrays.first()) {
            (None, Some(array)) => array.members(),
            _ => self.attributes.as_ref().and_then(Document::members).cloned().unwrap_or_default(),
        }
    }

    /// The format that the arrays come from; `None` for arrays of other origin.
    pub fn format(&self) -> Option<ArrayFormat> {
        self.format
    }
}

/// Does not list the directory, which may have millions of files.
fn directory(path: &Path) -> Option<Arc<dyn Container>> {
    let root: Arc<dyn Container> = Arc::new(Directory::new(path));
    (path.is_dir() && is_array_or_table(&*root)).then_some(root)
}

fn is_array_or_table(root: &dyn Container) -> bool {
    let is_array = |meta: &dyn Container| meta.open("storage").is_ok() || meta.open("sizes").is_ok();
    root.enter("meta").is_ok_and(|meta| is_array(&*meta)) || root.open(COLUMNS).is_ok()
}
