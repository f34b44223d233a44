//! Writes arrays in the formats of blz, bcolz and bloscpack; see docs/reference/formats/blz.md,
//! "Written here".

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::array::Array;
use crate::arrays::Arrays;
use crate::blosc::{self, BloscCodec, ChunkSettings};
use crate::checksum::Checksum;
use crate::chunk_files::BATCH_BYTES;
use crate::container::check_name;
use crate::dtype::Kind;
use crate::error::{Context, Error, Result, ResultExt};
use crate::format::ArrayFormat;
use crate::io::{FileTarget, WriteAt};
use crate::json::Document;
use crate::progress::{Phase, Progress};
use crate::superchunk::{MAGIC, METADATA_MAGIC};

/// Level of chunks if nothing names one, as in blz and bcolz.
const LEVEL: u8 = 5;

/// Spare of bloscpack: 10 unused chunk offsets a chunk, and 10 times the size of the metadata.
const SPARE: u64 = 10;

/// Number of Adler-32, which bloscpack uses by default.
const CHECKSUM: u8 = 1;

/// Writes arrays as directories of blz or bcolz, or as a bloscpack file.
///
/// ```no_run
/// use blosc_arrays::blosc::BloscCodec;
/// use blosc_arrays::{ArrayFormat, Arrays, Writer};
///
/// let arrays = Arrays::open("data.blp")?;
/// Writer::new(&arrays).format(ArrayFormat::Bcolz).compression(BloscCodec::Snappy, None).write("data.bcolz", &())?;
/// # Ok::<(), blosc_arrays::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "`write` writes"]
pub struct Writer<'a> {
    arrays: &'a Arrays,
    format: Option<ArrayFormat>,
    /// `None`: as the metadata of each array say.
    compression: Option<(BloscCodec, u8)>,
    is_behind: bool,
}

impl<'a> Writer<'a> {
    /// Prepares to write all of `arrays`.
    pub fn new(arrays: &'a Arrays) -> Self {
        Writer { arrays, format: None, compression: None, is_behind: true }
    }

    /// Sets the format to write; by default the one that the arrays came from.
    pub fn format(mut self, format: ArrayFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the codec of the chunks and its level from 0, plain copies, to 9, by default 5. Without
    /// this call each array keeps what its metadata name, else LZ4 at level 5.
    pub fn compression(mut self, codec: BloscCodec, level: Option<u8>) -> Self {
        self.compression = Some((codec, level.map_or(LEVEL, |level| level.min(9))));
        self
    }

    /// Sets whether the system is asked early to write bloscpack files to the disk.
    #[doc(hidden)]
    pub fn write_behind(mut self, is_wanted: bool) -> Self {
        self.is_behind = is_wanted;
        self
    }

    /// Writes the arrays to `target`, which must not exist: a file for bloscpack, else a directory.
    /// After an error, what was written remains.
    ///
    /// # Errors
    /// Those of reading the arrays; `Usage` without a format that is known, and for a table as a
    /// bloscpack file; `Format` if the metadata name an unknown codec; `Unsupported` for one whose
    /// feature is off, and for chunks of 2 GiB or more; `Exists`, `NoSpace`, `Io`; `Interrupted` if
    /// `progress` says so.
    pub fn write(&self, target: impl AsRef<Path>, progress: &dyn Progress) -> Result<()> {
        let (target, format) = (target.as_ref(), self.chosen_format()?);
        let created = match format {
            ArrayFormat::Bloscpack => File::create_new(target).map(drop),
            _ => fs::create_dir(target),
        };
        created.with_context(|| Context::path(target))?;
        progress.expect(self.arrays.bytes());
        progress.phase(Phase::Writing);
        self.write_into(target, format, progress)
    }

    /// The format that is set, or else that of the arrays.
    #[doc(hidden)]
    pub fn chosen_format(&self) -> Result<ArrayFormat> {
        self.format.or(self.arrays.format).ok_or_else(|| {
            Error::usage("the arrays did not come from blz, bcolz or bloscpack: name the format to write")
        })
    }

    /// Writes the arrays to the file `path`, or into the empty directory `path`.
    #[doc(hidden)]
    pub fn write_into(&self, path: &Path, format: ArrayFormat, progress: &dyn Progress) -> Result<()> {
        self.write_to(path, format, progress).context(self.arrays.place.clone())
    }

    fn write_to(&self, path: &Path, format: ArrayFormat, progress: &dyn Progress) -> Result<()> {
        let arrays = &self.arrays.arrays;
        match (&self.arrays.columns, &arrays[..], format) {
            (None, [array], ArrayFormat::Bloscpack) => self.write_file(array, path, progress),
            (_, _, ArrayFormat::Bloscpack) => {
                Err(Error::usage("a bloscpack file has one array, this is a table: name a column"))
            }
            (None, [array], _) => self.write_directory(array, path, format, progress),
            (columns, _, _) => {
                let names = columns.iter().flatten().map(String::as_str);
                self.write_table(names.collect(), path, format, progress)
            }
        }
    }

    fn write_table(&self, names: Vec<&str>, path: &Path, format: ArrayFormat, progress: &dyn Progress) -> Result<()> {
        for array in &self.arrays.arrays {
            let name = array.name.as_str();
            if name.contains('/') || !names.contains(&name) {
                return Err(Error::unsupported(format!(
                    "column {name:?} is a field of a record, which bcolz does not have"
                )));
            }
            check_name(name)?;
            let folder = path.join(name);
            fs::create_dir(&folder)?;
            self.write_directory(array, &folder, format, progress).with_context(|| Context::member(name))?;
        }
        let mut document = json!({ "names": names });
        if format == ArrayFormat::Blz {
            let folders: Map<String, Json> = names.iter().map(|&name| (name.to_owned(), name.into())).collect();
            document["dirs"] = Json::Object(folders);
        }
        put(path, "__rootdirs__", &lines(&Document::new(document)))?;
        put(path, "__attrs__", &attributes(self.arrays.attributes.as_ref()))
    }

    fn settings(&self, array: &Array) -> Result<ChunkSettings> {
        let storage = array.storage.as_ref().map_or(&Json::Null, |storage| &storage.value);
        let params = storage.get("cparams").or_else(|| storage.get("bparams")).unwrap_or(&Json::Null);
        let level = params.get("clevel").and_then(Json::as_u64).map_or(LEVEL, |level| level.min(9) as u8);
        let shuffle = params.get("shuffle");
        let shuffle = shuffle.is_none_or(|shuffle| shuffle.as_bool().unwrap_or_else(|| shuffle.as_u64() != Some(0)));
        let typesize = array.dtype.typesize();
        let (codec, level) = match self.compression {
            Some(chosen) => chosen,
            None => (params.get("cname").and_then(Json::as_str).unwrap_or("lz4").parse()?, level),
        };
        Ok(ChunkSettings { codec, level, shuffle, typesize })
    }

    fn write_directory(&self, array: &Array, path: &Path, format: ArrayFormat, progress: &dyn Progress) -> Result<()> {
        let settings = self.settings(array)?;
        let (meta, data) = (path.join("meta"), path.join("data"));
        fs::create_dir(&meta)?;
        fs::create_dir(&data)?;
        let mut stored_bytes = 0;
        each_batch_of_chunks(array, progress, &mut |first, chunks| {
            let write = |(number, chunk): (usize, &[u8])| -> Result<u64> {
                let mut file = vec![0; HEADER_BYTES];
                file[..4].copy_from_slice(&MAGIC);
                // the version, and one chunk
                (file[4], file[8]) = (1, 1);
                blosc::encode(chunk, &settings, &mut file)?;
                let name = format!("__{}.blp", first + number as u64);
                fs::write(data.join(&name), &file).context(Context::member(name))?;
                Ok((file.len() - HEADER_BYTES) as u64)
            };
            let written: Vec<u64> = chunks.par_iter().copied().enumerate().map(write).collect::<Result<_>>()?;
            stored_bytes += written.iter().sum::<u64>();
            Ok(())
        })?;
        let sizes = json!({ "shape": array.shape, "nbytes": array.bytes()?, "cbytes": stored_bytes });
        put(&meta, "sizes", &lines(&Document::new(sizes)))?;
        put(&meta, "storage", &self.storage(array, format, &settings))?;
        put(path, "__attrs__", &attributes(array.attributes.as_ref()))
    }

    /// Text of `meta/storage`: as read, if it has the written format and no compression was set.
    fn storage(&self, array: &Array, format: ArrayFormat, settings: &ChunkSettings) -> String {
        let key = if format == ArrayFormat::Blz { "bparams" } else { "cparams" };
        let before = array.storage.as_ref();
        if let Some(before) = before.filter(|before| before.value.get(key).is_some() && self.compression.is_none()) {
            return lines(before);
        }
        let params = match format {
            ArrayFormat::Blz => json!({ "clevel": settings.level, "shuffle": settings.shuffle }),
            _ => json!({
                "clevel": settings.level, "shuffle": u8::from(settings.shuffle), "cname": settings.codec.name(),
                "quantize": 0,
            }),
        };
        let dflt = before.and_then(|before| before.value.get("dflt")).cloned();
        let dflt = dflt.unwrap_or_else(|| match array.dtype.kind {
            Kind::Bytes | Kind::Text => "".into(),
            Kind::Bool => false.into(),
            _ => 0.into(),
        });
        let dflt = match (dflt.as_str(), &array.dtype.kind) {
            // numbers that only Python's JSON has
            (Some(text @ ("NaN" | "Infinity" | "-Infinity")), Kind::Float) => text.to_owned(),
            _ => Document::new(dflt).text,
        };
        let (params, dtype) = (Document::new(params).text, Document::new(array.dtype.to_string().into()).text);
        let (rows, len) = (array.chunk_rows, array.shape[0]);
        format!(
            "{{\"dtype\": {dtype}, \"{key}\": {params}, \"chunklen\": {rows}, \"expectedlen\": {len}, \"dflt\": {dflt}}}\n"
        )
    }

    /// Writes a file of version 3, with offsets and a checksum of each chunk.
    fn write_file(&self, array: &Array, path: &Path, progress: &dyn Progress) -> Result<()> {
        let settings = self.settings(array)?;
        let checksum = Checksum::of_number(CHECKSUM)?;
        let (bytes, chunk_bytes) = (array.bytes()?, chunk_bytes(array)?);
        let count = if bytes == 0 { 0 } else { bytes.div_ceil(chunk_bytes) };
        let last = bytes - count.saturating_sub(1) * chunk_bytes;
        let metadata = self.metadata(array);
        let options = 1 | u8::from(metadata.is_some()) << 1;
        let mut head = [&MAGIC[..], &[3, options, CHECKSUM, settings.typesize()]].concat();
        for size in [chunk_bytes.min(bytes), last] {
            let size = i32::try_from(size)
                .map_err(|_| Error::unsupported("chunks have 2 GiB or more, which bloscpack cannot store"))?;
            head.extend(size.to_le_bytes());
        }
        head.extend((count as i64).to_le_bytes());
        head.extend((SPARE as i64 * count as i64).to_le_bytes());
        if let Some(metadata) = metadata {
            put_metadata(&metadata.text, checksum, &mut head);
        }
        let list = head.len() as u64;
        let entries = count + SPARE * count;
        let file = FileTarget::create(path)?.write_behind(self.is_behind);
        file.write_at(0, &head)?;
        let mut end = list + 8 * entries;
        let mut offsets: Vec<u8> = Vec::new();
        each_batch_of_chunks(array, progress, &mut |_, chunks| {
            let encode = |chunk: &&[u8]| -> Result<Vec<u8>> {
                let mut out = Vec::new();
                blosc::encode(chunk, &settings, &mut out)?;
                out.extend(checksum.of(&out));
                Ok(out)
            };
            let encoded: Vec<Vec<u8>> = chunks.par_iter().map(encode).collect::<Result<_>>()?;
            for chunk in encoded {
                offsets.extend((end as i64).to_le_bytes());
                file.write_at(end, &chunk)?;
                end += chunk.len() as u64;
            }
            Ok(())
        })?;
        // spare entries are -1
        offsets.resize(8 * entries as usize, 0xff);
        file.write_at(list, &offsets)
    }

    /// The JSON metadata of a bloscpack file: kept if the array came from bloscpack in C order,
    /// else made from its type and shape; `None` if it came from a bloscpack file without metadata.
    fn metadata(&self, array: &Array) -> Option<Document> {
        let before = array.storage.as_ref().filter(|_| self.arrays.format == Some(ArrayFormat::Bloscpack));
        match before {
            Some(before) if before.value.get("order").and_then(Json::as_str) != Some("F") => {
                return Some(before.clone());
            }
            None if self.arrays.format == Some(ArrayFormat::Bloscpack) => return None,
            _ => {}
        }
        Some(Document::new(json!({
            "dtype": array.dtype.literal(), "shape": array.shape, "order": "C", "container": "numpy",
        })))
    }
}

/// Header of a file of chunks in version 1 of the format.
const HEADER_BYTES: usize = 16;

/// Size of a decoded chunk; that of the whole array if it is shorter than a chunk.
fn chunk_bytes(array: &Array) -> Result<u64> {
    let bytes = array.chunk_rows.min(array.shape[0].max(1)).checked_mul(array.row_bytes);
    bytes
        .map(|bytes| bytes.max(1))
        .ok_or_else(|| Error::unsupported("chunks have 2^64 bytes or more, which Blosc cannot store"))
}

/// Decoded bytes of consecutive chunks, and the number of the first, from 0.
type EachChunks<'a> = dyn FnMut(u64, &[&[u8]]) -> Result<()> + 'a;

fn each_batch_of_chunks(array: &Array, progress: &dyn Progress, each: &mut EachChunks<'_>) -> Result<()> {
    let chunk_bytes = chunk_bytes(array)?;
    let chunk = usize::try_from(chunk_bytes)
        .map_err(|_| Error::unsupported("chunks have 2 GiB or more, which Blosc cannot store"))?;
    let (mut held, mut number): (Vec<u8>, u64) = (Vec::new(), 0);
    array.read(progress, &mut |piece| {
        held.extend_from_slice(piece);
        if held.len() as u64 >= BATCH_BYTES.max(chunk_bytes) {
            let whole = held.len() / chunk * chunk;
            let chunks: Vec<&[u8]> = held[..whole].chunks(chunk).collect();
            each(number, &chunks)?;
            number += chunks.len() as u64;
            held.drain(..whole);
        }
        Ok(())
    })?;
    let chunks: Vec<&[u8]> = held.chunks(chunk).collect();
    each(number, &chunks)
}

/// The text of a document, with a line feed at its end.
fn lines(document: &Document) -> String {
    let text = &document.text;
    if text.ends_with('\n') { text.clone() } else { format!("{text}\n") }
}

fn attributes(document: Option<&Document>) -> String {
    document.map_or_else(|| "{}\n".to_owned(), lines)
}

fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path: PathBuf = folder.join(name);
    let write = || File::create_new(&path)?.write_all(text.as_bytes());
    write().context(Context::member(name))
}

/// Appends metadata: header, the text, reserved space and the checksum.
fn put_metadata(text: &str, checksum: Checksum, out: &mut Vec<u8>) {
    let (len, space) = (text.len(), SPARE as usize * text.len());
    out.extend(METADATA_MAGIC);
    // no options, kind of the checksum, no codec, level
    out.extend([0, CHECKSUM, 0, 0]);
    for number in [len, space, len] {
        out.extend((number as u32).to_le_bytes());
    }
    out.extend([0; 8]);
    out.extend(text.as_bytes());
    out.resize(out.len() + space - len, 0);
    out.extend(checksum.of(text.as_bytes()));
}
