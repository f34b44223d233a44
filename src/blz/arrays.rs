//! The arrays at a path: one, or the columns of a table.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256 as Hasher};

use super::array::{self, ARRAY, Array};
use super::superchunk;
use crate::container::{self, Container, Directory, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{FileSource, ReadAt};
use crate::progress::Progress;
use crate::sha::Sha256;

/// The document that makes a directory a table.
const COLUMNS: &str = "__rootdirs__";

/// The arrays at a path: one, or the columns of a table.
#[derive(Debug)]
pub struct Arrays {
    /// `None`: an array on its own.
    pub(super) columns: Option<Vec<String>>,
    pub(super) attributes: Map<String, Json>,
    pub(super) arrays: Vec<Array>,
    pub(super) place: Context,
}

/// An array, as `info` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayInfo {
    /// Name of the column; `array` if it is not one.
    pub name: String,
    /// Element type, as the format spells it.
    pub dtype: String,
    /// Extents, slowest axis first.
    pub shape: Vec<u64>,
    /// Rows of a chunk.
    pub chunk_rows: u64,
    /// Bytes of all elements.
    pub bytes: u64,
    /// Codec of the first chunk; `None` for an array without rows.
    pub codec: Option<String>,
    /// Kind of the checksums of the chunks: `none`, `adler32`, `sha256`.
    pub checksum: Option<String>,
    /// Version of the files of chunks.
    pub version: Option<u8>,
}

impl Arrays {
    /// Whether such arrays are at `path`: a directory with the documents of an array or table, or a file of chunks.
    pub fn are_at(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
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

    /// Opens the array or table at `path`.
    ///
    /// # Errors
    /// `Format` if a document or the header of a file of chunks is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = Context::path(path);
        Self::open_at(path, place.clone()).context(place)
    }

    fn open_at(path: &Path, place: Context) -> Result<Self> {
        if path.is_file() && !container::locate(path).is_ok_and(|root| is_array(&*root) || root.open(COLUMNS).is_ok()) {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| Error::unsupported("the file's name is not UTF-8"))?;
            let folder = Arc::new(Directory::new(path.parent().unwrap_or(Path::new(""))));
            let arrays = vec![Array::of_file(folder, name)?];
            return Ok(Arrays { columns: None, attributes: Map::new(), arrays, place });
        }
        let root = container::locate(path)?;
        let Some(document) = array::document(&*root, COLUMNS)? else {
            let arrays = Array::open(&*root, ARRAY)?;
            let columns = match &arrays[..] {
                [only] if only.name == ARRAY => None,
                fields => Some(fields.iter().map(|field| field.name.clone()).collect()),
            };
            let attributes = if columns.is_some() { array::attributes(&*root)? } else { Map::new() };
            return Ok(Arrays { columns, attributes, arrays, place });
        };
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
        Ok(Arrays { columns: Some(columns), attributes: array::attributes(&*root)?, arrays, place })
    }

    /// What is known of each array.
    ///
    /// # Errors
    /// `Format` if the first file of chunks of one is damaged.
    pub fn list(&self) -> Result<Vec<ArrayInfo>> {
        let info = |array: &Array| {
            let first = array.first_file().context(Context::member(&array.name))?;
            Ok(ArrayInfo {
                name: array.name.clone(),
                dtype: array.dtype_text.clone(),
                shape: array.shape.clone(),
                chunk_rows: array.chunk_rows,
                bytes: array.bytes()?,
                codec: first.as_ref().and_then(|first| Some(first.codec()?.to_owned())),
                checksum: first.as_ref().map(|first| first.checksum.name().to_owned()),
                version: first.as_ref().map(|first| first.version),
            })
        };
        self.arrays.iter().map(info).collect::<Result<_>>().context(self.place.clone())
    }

    /// The SHA-256 of the elements of each array, as they are stored and last axis fastest, by its name.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged; `Interrupted` if `progress` says so.
    pub fn digest(&self, progress: &dyn Progress) -> Result<Vec<(String, Sha256)>> {
        let digest = |array: &Array| {
            let mut sha = Hasher::new();
            array
                .read(progress, &mut |piece| {
                    sha.update(piece);
                    Ok(())
                })
                .context(Context::member(&array.name))?;
            Ok((array.name.clone(), Sha256::from(sha.finalize())))
        };
        self.arrays.iter().map(digest).collect::<Result<_>>().context(self.place.clone())
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.arrays.iter().map(|array| array.bytes().unwrap_or(0)).fold(0, u64::saturating_add)
    }

    /// Attributes of the user of a table, or of an array on its own, as JSON.
    pub fn attributes(&self) -> &Map<String, Json> {
        match (&self.columns, self.arrays.first()) {
            (None, Some(array)) => &array.attributes,
            _ => &self.attributes,
        }
    }
}

/// Whether a directory has documents of an array.
fn is_array(root: &dyn Container) -> bool {
    root.enter("meta").is_ok_and(|meta| meta.open("storage").is_ok() || meta.open("sizes").is_ok())
}
