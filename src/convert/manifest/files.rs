//! The files on which a manifest (JSON references to chunks in these files) depends: their names in
//! the references, sizes and modification times.

use std::fs;
use std::io::{BufReader, Read};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::references::{FileName, RECORD};
use crate::call::{Call, call_setters};
use crate::convert::recorded_file::RecordedFile;
use crate::error::{Context, Error, Result, ResultExt};

#[derive(Debug, Clone)]
pub(super) struct Naming {
    /// Directory or URL in which readers find the files; `None` for absolute paths.
    pub(super) base: Option<String>,
    /// Absolute path of the manifest's directory.
    pub(super) directory: PathBuf,
}

impl Naming {
    pub(super) fn new(base: Option<&str>, target: &Path) -> Result<Self> {
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = parent.canonicalize().with_context(|| Context::path(parent))?;
        Ok(Naming { base: base.map(|base| base.trim_end_matches('/').to_owned()), directory })
    }

    /// Absolute path, or [`base`](super::ToManifest::base) and the file name.
    pub(super) fn name(&self, path: &Path) -> Result<String> {
        let absolute = std::path::absolute(path)?;
        let named = match &self.base {
            Some(base) => {
                let absolute = path.canonicalize().unwrap_or(absolute);
                let name = absolute.file_name().unwrap_or_default().to_str().map(str::to_owned);
                name.map(|name| format!("{base}/{name}"))
            }
            None => absolute.to_str().map(str::to_owned),
        };
        named.ok_or_else(|| Error::unsupported("a path that is not UTF-8").context(Context::path(path)))
    }

    /// Path for later checks: `local`, or with `base` relative to the manifest's directory.
    fn recorded(&self, local: &Path) -> PathBuf {
        if self.base.is_some() { relative(&self.directory, local) } else { local.to_owned() }
    }
}

/// Both paths are absolute and without links.
fn relative(directory: &Path, file: &Path) -> PathBuf {
    let common = directory.components().zip(file.components()).take_while(|(one, other)| one == other).count();
    let up = directory.components().skip(common).map(|_| Component::ParentDir);
    up.chain(file.components().skip(common)).collect()
}

/// Includes files whose content was copied into the manifest or its companion.
#[derive(Debug)]
pub(super) struct Files {
    naming: Naming,
    list: Vec<KnownFile>,
}

#[derive(Debug)]
struct KnownFile {
    local: PathBuf,
    name: FileName,
    /// `None` on a server, where `ETag` or time is checked with each request.
    state: Option<RecordedFile>,
}

/// Index in [`Files`].
pub(super) type FileNumber = usize;

impl Files {
    pub(super) fn new(naming: Naming) -> Self {
        Files { naming, list: Vec::new() }
    }

    /// References call the file `name`.
    pub(super) fn add(&mut self, local: &Path, name: &str) -> Result<FileNumber> {
        if let Some(known) = self.list.iter().position(|known| known.local == local) {
            return Ok(known);
        }
        let metadata = local.metadata().with_context(|| Context::path(local))?;
        let path = self.naming.recorded(local);
        let state = Some(RecordedFile::new(path, &metadata));
        self.list.push(KnownFile { local: local.to_owned(), name: FileName::new(name), state });
        Ok(self.list.len() - 1)
    }

    pub(super) fn add_remote(&mut self, address: &Path, name: &str) -> FileNumber {
        self.list.push(KnownFile { local: address.to_owned(), name: FileName::new(name), state: None });
        self.list.len() - 1
    }

    /// The file is at `local` now and will be at `target`.
    pub(super) fn add_new(&mut self, local: &Path, target: &Path, name: &str) -> Result<FileNumber> {
        let number = self.add(local, name)?;
        if let Some(state) = &mut self.list[number].state {
            state.path = self.naming.recorded(target);
        }
        Ok(number)
    }

    pub(super) fn name(&self, file: FileNumber) -> &FileName {
        &self.list[file].name
    }

    pub(super) fn to_json(&self) -> Result<Json> {
        let states: Vec<&RecordedFile> = self.list.iter().filter_map(|known| known.state.as_ref()).collect();
        if let Some(other) = states.iter().find(|state| state.path.to_str().is_none()) {
            return Err(Error::unsupported("a path that is not UTF-8").context(Context::path(&other.path)));
        }
        Ok(json!(states))
    }

    pub(super) fn check_unchanged(&self) -> Result<()> {
        for known in &self.list {
            let Some(state) = &known.state else { continue };
            let metadata = known.local.metadata().with_context(|| Context::path(&known.local))?;
            if let Some(change) = state.change(&metadata) {
                let message = format!("the file changed while the manifest was made: {change}");
                return Err(Error::format(message).context(Context::path(&known.local)));
            }
        }
        Ok(())
    }
}

/// Compares the files on which a manifest (a JSON file of references to chunks, for readers of
/// Zarr) depends with the sizes and modification times that the manifest records.
///
/// ```
/// use ctds_hdf5::convert::{CheckManifest, ToManifest};
/// # use ctds_hdf5::{ColumnDesc, NewTable};
/// # let folder = tempfile::tempdir()?;
/// # let (my_ms, my_json) = (folder.path().join("my.ms"), folder.path().join("my.json"));
/// # let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?;
/// # table.add_rows(2)?;
/// # table.close()?;
///
/// ToManifest::new(&my_ms).write(&my_json)?;
/// assert!(CheckManifest::new(&my_json).run()?.changed.is_empty());
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`run` compares"]
pub struct CheckManifest<'a> {
    path: PathBuf,
    call: Call<'a>,
}

/// Result of [`CheckManifest::run`], which compares the files of a manifest with their recorded
/// sizes and times.
#[derive(Debug)]
#[non_exhaustive]
pub struct ManifestCheck {
    /// Number of files that the manifest records, each of which was compared with its recorded size
    /// and time.
    pub files: usize,
    /// Sum of the sizes in bytes that the manifest records for its files, those that are now
    /// missing included.
    pub bytes: u64,
    /// Files that the manifest records and that are missing, cannot be opened, or have another size
    /// or modification time.
    pub changed: Vec<ChangedFile>,
}

/// A file that is missing or has changed since a manifest (a JSON file of references to chunks)
/// recorded its size and modification time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Path of the missing or changed file, as recorded in the manifest (JSON references to chunks
    /// in files); a relative one is resolved against the directory of the manifest.
    pub path: PathBuf,
    /// How the changed file differs from the record in the manifest, as a sentence.
    pub change: String,
}

/// The part of a manifest that is read to check its files.
#[derive(Deserialize)]
struct Document {
    version: u64,
    h5bridge: Option<Record>,
}

#[derive(Deserialize)]
struct Record {
    files: Vec<RecordedFile>,
}

impl<'a> CheckManifest<'a> {
    /// Prepares to check whether the files are unchanged on which the manifest at `path` depends (a
    /// JSON file of references to chunks in these files).
    pub fn new(path: impl AsRef<Path>) -> Self {
        CheckManifest { path: path.as_ref().to_owned(), call: Call::default() }
    }

    call_setters!();

    /// Whether the file at `path` may be a manifest (a JSON file of references to the chunks of a
    /// table or native HDF5 file, as [`ToManifest`](super::ToManifest) writes it): the name ends in
    /// `.json`, and the first byte is `{`.
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        let first = || -> std::io::Result<u8> {
            let mut byte = [0];
            fs::File::open(path)?.read_exact(&mut byte)?;
            Ok(byte[0])
        };
        path.extension().is_some_and(|end| end == "json") && path.is_file() && first().is_ok_and(|byte| byte == b'{')
    }

    /// Compares the sizes and modification times of the files that the manifest needs, such as
    /// those with the chunks, with the recorded ones; the content of the files is not read.
    ///
    /// # Errors
    /// `NotFound` and `Io`; `Format` if the file is not a manifest, or one without sizes and times;
    /// `Interrupted`.
    pub fn run(&self) -> Result<ManifestCheck> {
        self.call.run(|progress| {
            let place = Context::path(&self.path);
            let record = self.record().context(&place)?;
            let directory = self.path.parent().unwrap_or(Path::new(""));
            let mut check = ManifestCheck { files: 0, bytes: 0, changed: Vec::new() };
            for file in record.files {
                progress.go_on()?;
                check.files += 1;
                check.bytes = check.bytes.saturating_add(file.size);
                let change = file.change_below(directory);
                check.changed.extend(change.map(|change| ChangedFile { path: file.path, change }));
            }
            Ok(check)
        })
    }

    fn record(&self) -> Result<Record> {
        let reader = BufReader::with_capacity(1 << 16, fs::File::open(&self.path)?);
        let document: Document = serde_json::from_reader(reader).map_err(|error| match error.io_error_kind() {
            Some(kind) => Error::from(std::io::Error::from(kind)),
            None => Error::format(format!("the file is not a manifest of kerchunk: {error}")).caused_by(error),
        })?;
        if document.version != 1 {
            return Err(Error::unsupported(format!("version {} of kerchunk, only 1 is read", document.version)));
        }
        document.h5bridge.ok_or_else(|| {
            Error::format(format!(
                "the manifest lacks the member {RECORD:?}, which has the sizes and modification times of its files: \
                 `h5bridge manifest` writes it"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_from_a_directory() {
        let relative = |directory, file| relative(Path::new(directory), Path::new(file));
        assert_eq!(relative("/data/out", "/data/my.ms/table.f0"), Path::new("../my.ms/table.f0"));
        assert_eq!(relative("/data", "/data/my.ms/table.f0"), Path::new("my.ms/table.f0"));
    }

    #[test]
    fn names_with_a_base() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("my.json");
        let naming = Naming::new(Some("s3://archive/"), &target).unwrap();
        assert_eq!(naming.name(Path::new("/data/my.ms/")).unwrap(), "s3://archive/my.ms");
        assert_eq!(Naming::new(None, &target).unwrap().name(Path::new("/data/my.ms")).unwrap(), "/data/my.ms");
    }
}
