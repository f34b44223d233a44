//! Opens the BLZ, bcolz or bloscpack arrays at a path: a single one, or the columns of a table.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value as Json};

use super::array::{self, ARRAY, Array, Stored};
use super::chunk_files::StoredChunk;
use super::format::ArrayFormat;
use super::from_hdf5;
use super::json::Document;
use super::superchunk::{self, Superchunk};
use crate::container::{self, Container, Directory, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::hash::{Hash, HashKind, Hasher};
use crate::io::{FileSource, ReadAt};
use crate::progress::Progress;

/// Name of the JSON document that makes a directory a table of BLZ or bcolz arrays; it lists the columns.
const COLUMNS: &str = "__rootdirs__";

/// The BLZ, bcolz or bloscpack arrays at a path, or those of an HDF5 file: a single one, or the columns of a table.
#[derive(Debug)]
pub struct Arrays {
    /// Names of the columns of a table, in order; `None` for a single array.
    pub(super) columns: Option<Vec<String>>,
    pub(super) attributes: Option<Document>,
    pub(super) arrays: Vec<Array>,
    /// The format of the files that the arrays are stored in. If the arrays are HDF5 datasets, the format from which
    /// they were converted; `None` for datasets of other programs.
    pub(super) format: Option<ArrayFormat>,
    pub(super) place: Context,
}

/// One stored chunk of an array, as `h5bridge ls` shows it.
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

/// Properties of a BLZ, bcolz or bloscpack array, as `h5bridge info` shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Codec of the array's first chunk: `lz4`, `zstd`; `None` for an array without rows or one in HDF5.
    pub codec: Option<String>,
    /// Kind of the checksums of the array's chunks: `none`, `adler32`, `sha256`; `None` if no file of chunks exists.
    pub checksum: Option<String>,
    /// Version of the bloscpack format of the array's files of chunks, 1 to 3; `None` if the array has no such files.
    pub version: Option<u8>,
}

impl Arrays {
    /// Whether BLZ, bcolz or bloscpack arrays are at `path`: a directory with the JSON metadata of an array or table, a
    /// file of chunks, or an HDF5 file that such arrays were converted to.
    pub fn are_at(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        if directory(path).is_some() || from_hdf5::is_marked(path) {
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
        if std::path::absolute(path)
            .is_ok_and(|path| container::outermost(&path).is_ok_and(|file| file.as_ref().is_some_and(of_tables)))
        {
            return false;
        }
        container::locate(path).is_ok_and(|root| is_array(&*root) || root.open(COLUMNS).is_ok())
    }

    /// Opens the BLZ, bcolz or bloscpack array or table at `path`, which may also be an HDF5 file of any program or a dataset
    /// in it: `my.h5/group/data`.
    ///
    /// # Errors
    /// `Format` if a document or the header of a file of chunks is damaged; `Unsupported` for elements that numpy has nothing
    /// like; `Usage` if an HDF5 file has several datasets and none is named.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = Context::path(path);
        Self::open_at(path, place.clone()).context(place)
    }

    fn open_at(path: &Path, place: Context) -> Result<Self> {
        if let Some((file, inside)) = from_hdf5::hdf5_at(path) {
            let from_hdf5::Found { columns, attributes, arrays, format } = from_hdf5::open(&file, &inside)?;
            let format = format.and_then(|name| name.parse().ok());
            return Ok(Arrays { columns, attributes, arrays, format, place });
        }
        if path.is_file() && !container::locate(path).is_ok_and(|root| is_array(&*root) || root.open(COLUMNS).is_ok()) {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| Error::unsupported("the file's name is not UTF-8"))?;
            let folder = Arc::new(Directory::new(path.parent().unwrap_or(Path::new(""))));
            let arrays = vec![Array::of_file(folder, name)?];
            let format = Some(ArrayFormat::Bloscpack);
            return Ok(Arrays { columns: None, attributes: None, arrays, format, place });
        }
        let root = directory(path).map_or_else(|| container::locate(path), Ok)?;
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

    /// Name, type, shape and storage of each array: the columns of a table in their order, or a single array.
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

    /// The name of each array and the hash, of the kind `kind`, of its decoded elements, last axis fastest, with the byte order and coding of
    /// text of the original array.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged; `Interrupted` if `progress` says so.
    pub fn digest(&self, kind: HashKind, progress: &dyn Progress) -> Result<Vec<(String, Hash)>> {
        let digest = |array: &Array| {
            let mut hasher = Hasher::new(kind);
            array
                .read(progress, &mut |piece| {
                    hasher.update(piece);
                    Ok(())
                })
                .context(Context::member(&array.name))?;
            Ok((array.name.clone(), hasher.finish()))
        };
        self.arrays.iter().map(digest).collect::<Result<_>>().context(self.place.clone())
    }

    /// Verifies the arrays: compares all chunks with their checksums and decodes them, on all threads; an error for the
    /// first chunk that is damaged.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged, or there are fewer rows than stated; `Interrupted` if `progress` says so.
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

    /// Calls `visit` with each stored chunk of the arrays, in order, until it returns false. Chunks are found one by one, as
    /// there may be millions. Arrays that are datasets of HDF5 are skipped.
    ///
    /// # Errors
    /// `Format` if a header is damaged, or the chunks have fewer rows than stated; those of `visit`.
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

    /// Attributes that the user gave the table, or the array on its own, as a JSON object; empty without any.
    pub fn attributes(&self) -> Map<String, Json> {
        match (&self.columns, self.arrays.first()) {
            (None, Some(array)) => array.members(),
            _ => self.attributes.as_ref().and_then(Document::members).cloned().unwrap_or_default(),
        }
    }

    /// The format of the files that the arrays are stored in. If the arrays are HDF5 datasets, the format from which
    /// they were converted; `None` for datasets of other programs.
    pub fn format(&self) -> Option<ArrayFormat> {
        self.format
    }

    /// Whether the arrays are datasets of an HDF5 file rather than files of Blosc chunks.
    pub fn are_datasets(&self) -> bool {
        self.arrays.iter().any(|array| matches!(array.stored, Stored::Dataset(_)))
    }
}

/// Opens `path` as the plain directory of a BLZ array or table; `None` if it is not one. The directory is not listed, as it
/// may have millions of files.
fn directory(path: &Path) -> Option<Arc<dyn Container>> {
    let root: Arc<dyn Container> = Arc::new(Directory::new(path));
    (path.is_dir() && (is_array(&*root) || root.open(COLUMNS).is_ok())).then_some(root)
}

/// Whether the directory `root` is that of a BLZ array: it has the JSON document `meta/storage` or `meta/sizes`.
fn is_array(root: &dyn Container) -> bool {
    root.enter("meta").is_ok_and(|meta| meta.open("storage").is_ok() || meta.open("sizes").is_ok())
}
