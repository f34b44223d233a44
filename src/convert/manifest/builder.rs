//! [`ToManifest`], which writes manifests: references to the chunks of a table or of a native HDF5
//! file, and a companion HDF5 file for data that are not in tiles.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::super::conversion::to_hdf5;
use super::super::to_hdf5::{Compress, Outline, Plan, ToHdf5Options};
use super::arrays::{Arrays, Counts};
use super::chunks::StoredIn;
use super::files::{Files, Naming};
use super::left_out::LeftOutColumn;
use super::references::References;
use super::tiles::{TableDirectory, Tiles};
use crate::call::{Call, call_setters, open_setters};
use crate::error::{Context, Error, Result, ResultExt, column_context};
use crate::h5::{self, Compression};
use crate::output::{COMPANION, Output};
use crate::output::{IfExists, Publishing};
use crate::progress::{Phase, Progress};
use crate::remote;
use crate::source::{Source, SourceTable};
use crate::table::OpenOptions;
use crate::value::DataType;

/// Estimated JSON text of one reference, to check the free space of the disk.
const REFERENCE_BYTES: u64 = 64;

/// Writes a manifest: references in the format of kerchunk, version 1, to the chunks of a table or
/// of a native HDF5 file. xarray, zarr and VirtualiZarr open it as arrays; the elements stay where
/// they are.
///
/// Tiles of a table are chunks as they are. All other numbers, and every Bool, are converted to a
/// small HDF5 file, the companion, beside the manifest: `my.json.rest.h5`. Strings are in the
/// manifest itself.
///
/// ```
/// use ctds_hdf5::convert::ToManifest;
/// # use ctds_hdf5::{ColumnDesc, NewTable};
/// # let folder = tempfile::tempdir()?;
/// # let (my_ms, my_json) = (folder.path().join("my.ms"), folder.path().join("my.json"));
/// # let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?;
/// # table.add_rows(2)?;
/// # table.close()?;
///
/// let summary = ToManifest::new(&my_ms).write(&my_json)?;
/// assert_eq!((summary.columns, summary.left_out.len()), (1, 0));
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`write` writes the manifest"]
pub struct ToManifest<'a> {
    source: PathBuf,
    open: OpenOptions,
    table: Option<String>,
    base: Option<String>,
    threads: usize,
    call: Call<'a>,
}

/// Summary of a manifest that was written: JSON references to the chunks of a table or native HDF5
/// file, for readers of Zarr.
#[derive(Debug)]
#[non_exhaustive]
pub struct ManifestSummary {
    /// Number of tables, the main one and subtables, whose columns the manifest (JSON references to
    /// chunks) represents.
    pub tables: usize,
    /// Number of columns of all tables that the manifest represents by Zarr arrays.
    pub columns: usize,
    /// Number of columns that the manifest represents by references to their tiles in the files of
    /// the table.
    pub tiled_columns: usize,
    /// Number of columns with elements in the manifest itself.
    pub inline_columns: usize,
    /// Number of rows of the main table in the manifest or, if the manifest is restricted to one
    /// subtable, of that one.
    pub rows: u64,
    /// Number of chunks of all arrays in the manifest (a JSON file in the format of kerchunk, for
    /// readers of Zarr). Each chunk is a reference (file, offset and length) or its bytes as text.
    pub references: u64,
    /// Total size in bytes of the tiles, in the files of the table, to which the manifest refers.
    pub tile_bytes: u64,
    /// Path of the companion (the HDF5 file with the elements that are not tiles), and its size in
    /// bytes; `None` if the source is a native HDF5 file.
    pub companion: Option<(PathBuf, u64)>,
    /// Size of the manifest in bytes.
    pub file_bytes: u64,
    /// Columns that have no arrays in the manifest, with the reasons.
    pub left_out: Vec<LeftOutColumn>,
    /// Warnings for the user about the manifest, as sentences.
    pub warnings: Vec<String>,
}

impl<'a> ToManifest<'a> {
    /// Prepares a manifest (a JSON file of references to chunks, which readers of Zarr open as
    /// arrays) of the table directory or native HDF5 file at `source`. For
    /// [`write_references`](Self::write_references) it may be a URL.
    pub fn new(source: impl AsRef<Path>) -> Self {
        ToManifest {
            source: source.as_ref().to_owned(),
            open: OpenOptions::default(),
            table: None,
            base: None,
            threads: 0,
            call: Call::default(),
        }
    }

    call_setters!(target);

    open_setters!();

    /// Restricts the manifest to one table, `MAIN` or a subtable such as `ANTENNA`. Its columns
    /// become arrays of the root group, for readers that do not support groups.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = Some(name.into());
        self
    }

    /// Sets the directory or URL in which readers find the source and the companion (an HDF5 file
    /// with the elements that are not in tiles), such as `s3://archive/2026`; by default references
    /// have the present absolute paths of the files.
    pub fn base(mut self, base: impl Into<String>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Sets the number of threads that decode and compress the elements of the companion; 0, the
    /// default: one for each processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Writes the manifest `target` and, unless the source is a native HDF5 file, its companion.
    /// Both appear under their names when they are complete.
    ///
    /// # Errors
    /// `Unsupported` for a table inside a container, one with files that are symbolic links, or a
    /// source that is a URL; `Usage` if the manifest or its companion would replace the source;
    /// `Exists` if there is something at `target` or in the place of the companion, unless
    /// [`if_exists`](Self::if_exists) says otherwise; `Format` if the source changes while the
    /// manifest is made; `NoSpace`; `Interrupted`; those of reading the source. The target is then
    /// as it was before.
    pub fn write(self, target: impl AsRef<Path>) -> Result<ManifestSummary> {
        // the companion lies beside the file that a link leads to
        let resolved = target.as_ref().canonicalize().ok().filter(|_| target.as_ref().is_symlink());
        let target =
            resolved.as_deref().filter(|_| self.call.publishing.if_exists.replaces()).unwrap_or(target.as_ref());
        if remote::is_remote(&self.source) {
            let message =
                "a manifest records sizes and times of local files: `h5bridge refs` writes references to this file";
            return Err(Error::unsupported(message).context(Context::path(&self.source)));
        }
        let source = Source::open_with(&self.source, self.open)?;
        if let (Ok(from), Ok(to)) = (self.source.canonicalize(), target.canonicalize())
            && (from == to || companion_of(target).canonicalize().is_ok_and(|companion| companion == from))
        {
            return Err(Error::usage("the manifest would replace its source").context(Context::path(target)));
        }
        self.call.run(|progress| self.write_from(&source, target, progress).with_context(|| source.place.clone()))
    }

    /// Writes to `out` a manifest of a native HDF5 file, with references to the chunks of this file
    /// only. `url` is the address at which readers find the file; by default its absolute path, or
    /// its URL without the query. After an error, `out` has an incomplete document.
    ///
    /// # Errors
    /// `Usage` if the source is a table directory; `Format` if it changes while the references are
    /// made; those of reading the source and of writing to `out`.
    pub fn write_references(self, url: Option<&str>, out: impl Write) -> Result<ManifestSummary> {
        let source = Source::open_with(&self.source, self.open)?;
        let place = source.place.clone();
        let write =
            |progress: &dyn Progress| self.write_references_of(&source, url, Counted { out, bytes: 0 }, progress);
        self.call.run(write).with_context(|| place)
    }

    fn write_references_of<W: Write>(
        &self,
        source: &Source,
        url: Option<&str>,
        out: Counted<W>,
        progress: &dyn Progress,
    ) -> Result<ManifestSummary> {
        if source.tables.first().is_some_and(|main| main.group.is_none()) {
            return Err(Error::usage("not a native HDF5 file: `h5bridge manifest` writes references to tables"));
        }
        refuse_set(source)?;
        let plan = Plan::new(source, &self.options(Compress::With(Compression::NONE)))?;
        let outline = Outline::of_plan(source, &plan)?;
        let naming = Naming { base: None, directory: PathBuf::new() };
        let mut files = Files::new(naming.clone());
        let tiles = self.tiles(source, &plan, &naming, &mut files)?;
        let number = if remote::is_remote(&self.source) {
            let address = self.source.to_string_lossy();
            // a signature would expire, and be readable in the references
            let name = url.or(address.split('?').next()).unwrap_or_default();
            files.add_remote(&self.source, name)
        } else {
            let local = self.source.canonicalize().with_context(|| Context::path(&self.source))?;
            let name = naming.name(&local)?;
            files.add(&local, url.unwrap_or(&name))?
        };
        let (file, bytes) = h5::File::open_with_source(&self.source)?;
        let stored = (file.root()?, StoredIn { file: number, bytes: bytes.len()? });
        let is_flat = self.table.is_some();
        let arrays = Arrays { source, plan: &plan, outline: &outline, tiles: &tiles, stored, files: &files, is_flat };
        let record = json!({ "version": env!("CARGO_PKG_VERSION"), "source": source.name });
        let warnings = warnings(&arrays)?;
        let Document { counts, references, out } = write_document(&arrays, record, &warnings, out, progress)?;
        files.check_unchanged()?;
        Ok(ManifestSummary { file_bytes: out.bytes, ..summary(&plan, &tiles, counts, references, warnings) })
    }

    fn write_from(&self, source: &Source, target: &Path, progress: &dyn Progress) -> Result<ManifestSummary> {
        refuse_set(source)?;
        let options = self.options(Compress::With(Compression::NONE));
        let plan = Plan::new(source, &options)?;
        let outline = Outline::of_plan(source, &plan)?;
        let naming = Naming::new(self.base.as_deref(), target)?;
        let mut files = Files::new(naming.clone());
        let tiles = self.tiles(source, &plan, &naming, &mut files)?;
        let needed =
            tiles.iter().flatten().flatten().flatten().fold(0, |sum: u64, tiles| sum.saturating_add(tiles.count()));
        let output = Output::create(target, self.call.publishing, needed.saturating_mul(REFERENCE_BYTES))?;
        let is_native = source.tables.first().is_some_and(|main| main.group.is_some());
        let (stored_at, companion, of_companion) = if is_native {
            (self.source.clone(), None, Vec::new())
        } else {
            let path = companion_of(output.partial());
            let warnings = self.write_companion(source, &tiles, &path, progress)?;
            (path.clone(), Some(path), warnings)
        };
        let final_companion = companion_of(target);
        let stored_in = match &companion {
            Some(path) => {
                let name = naming.name(&naming.directory.join(final_companion.file_name().unwrap_or_default()))?;
                let later = naming.directory.join(final_companion.file_name().unwrap_or_default());
                files.add_new(path, &later, &name)?
            }
            None => {
                let local = self.source.canonicalize().with_context(|| Context::path(&self.source))?;
                files.add(&local, &naming.name(&self.source)?)?
            }
        };
        let bytes = stored_at.metadata()?.len();
        let file = h5::File::open_shared(&stored_at)?;
        let stored = (file.root()?, StoredIn { file: stored_in, bytes });
        let is_flat = self.table.is_some();
        let arrays = Arrays { source, plan: &plan, outline: &outline, tiles: &tiles, stored, files: &files, is_flat };
        let record = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "source": source.name,
            "files": files.to_json()?,
        });
        let mut warnings = warnings(&arrays)?;
        let out = BufWriter::with_capacity(1 << 18, File::create(output.partial())?);
        let Document { counts, references, .. } = write_document(&arrays, record, &warnings, out, progress)?;
        warnings.extend(of_companion);
        drop(arrays);
        files.check_unchanged()?;
        progress.go_on()?;
        let file_bytes = output.partial().metadata()?.len();
        progress.phase(Phase::Flushing);
        output.commit()?;
        Ok(ManifestSummary {
            companion: companion.map(|_| (final_companion, bytes)),
            file_bytes,
            ..summary(&plan, &tiles, counts, references, warnings)
        })
    }

    fn options(&self, compress: Compress) -> ToHdf5Options {
        let tables = self.table.iter().cloned().collect();
        ToHdf5Options { compress, tables, digest: false, threads: self.threads, ..ToHdf5Options::default() }
    }

    /// Indexed as [`Arrays::tiles`].
    fn tiles(
        &self,
        source: &Source,
        plan: &Plan,
        naming: &Naming,
        files: &mut Files,
    ) -> Result<Vec<Vec<Option<Vec<Tiles>>>>> {
        let Some(path) = source.tables.first().and_then(|main| main.path.as_ref()) else {
            return Ok(plan.tables.iter().map(|table| table.columns.iter().map(|_| None).collect()).collect());
        };
        if !path.is_dir() {
            let message = "a table inside a container; `h5bridge unpack` takes it out, `h5bridge to-hdf5` converts it";
            return Err(Error::unsupported(message));
        }
        let root = TableDirectory { path: path.clone(), name: naming.name(&self.source)? };
        let mut found = Vec::new();
        for table in &plan.tables {
            let content = source.tables[table.source].content()?;
            let of_column = |column| {
                let tiles = Tiles::of_column(content, column, &root, files);
                tiles.with_context(|| column_context(&table.name, &column.name))
            };
            found.push(table.columns.iter().map(of_column).collect::<Result<_>>()?);
            root.add_files(content, files)?;
        }
        Ok(found)
    }

    /// Numbers and Bools that are not in tiles; returns warnings of the conversion.
    fn write_companion(
        &self,
        source: &Source,
        tiles: &[Vec<Option<Vec<Tiles>>>],
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<Vec<String>> {
        let options = self.options(Compress::Auto);
        let mut plan = Plan::new(source, &options)?;
        for (table, tiles) in plan.tables.iter_mut().zip(tiles) {
            let mut has_tiles = tiles.iter().map(Option::is_some);
            table.columns.retain(|column| {
                let is_number = !matches!(column.data_type, DataType::String | DataType::Record);
                !has_tiles.next().unwrap_or(false) && is_number
            });
        }
        plan.warnings.clear();
        // the companion is published, and made durable, with the manifest
        let publishing = Publishing { if_exists: IfExists::Fail, sync: self.call.publishing.sync };
        Ok(to_hdf5(source, &plan, &options, path, publishing, progress)?.warnings)
    }
}

struct Document<W> {
    counts: Counts,
    references: u64,
    out: W,
}

/// Writes `record`, to which the columns that are left out are added, then the groups and arrays.
fn write_document<W: Write>(
    arrays: &Arrays<'_>,
    mut record: Json,
    warnings: &[String],
    out: W,
    progress: &dyn Progress,
) -> Result<Document<W>> {
    let left_out = arrays.left_out()?;
    let missing = left_out
        .iter()
        .map(|column| json!({ "table": column.table, "column": column.column, "reason": column.reason }));
    record["left_out"] = missing.collect();
    if !warnings.is_empty() {
        record["warnings"] = warnings.into();
    }
    let mut document = References::begin(out, &record)?;
    let counts = arrays.write(left_out, &mut document, progress)?;
    let (out, references) = document.end()?;
    Ok(Document { counts, references, out })
}

/// Without those about columns that are left out.
fn warnings(arrays: &Arrays<'_>) -> Result<Vec<String>> {
    let plan = arrays.plan;
    let missing = plan.tables.iter().flat_map(|table| table.missing.iter().map(|column| (&table.name, &column.name)));
    let known: Vec<String> =
        missing.map(|(table, column)| format!("{} is not converted: ", column_context(table, column))).collect();
    let is_new = |text: &&String| !known.iter().any(|start| text.starts_with(start));
    let mut warnings: Vec<String> = plan.warnings.iter().filter(is_new).cloned().collect();
    warnings.extend(arrays.changed_strings()?);
    Ok(warnings)
}

/// Refuses files whose columns are variables of MSv4.
fn refuse_set(source: &Source) -> Result<()> {
    if source.tables.first().is_some_and(SourceTable::is_by_msv4) {
        return Err(Error::unsupported(
            "a file by the schema MSv4, which needs no references: VirtualiZarr reads it, \
             HDFParser(group=\"msv4/NAME_0\"); references of tables are those of a file by the native schema",
        ));
    }
    Ok(())
}

/// The caller sets the size of the manifest, and the path and size of its companion.
fn summary(
    plan: &Plan,
    tiles: &[Vec<Option<Vec<Tiles>>>],
    counts: Counts,
    references: u64,
    warnings: Vec<String>,
) -> ManifestSummary {
    let all_tiles = || tiles.iter().flatten().flatten();
    ManifestSummary {
        tables: plan.tables.len(),
        columns: counts.columns,
        tiled_columns: all_tiles().count(),
        inline_columns: counts.inline_columns,
        rows: plan.tables.first().map_or(0, |table| table.rows.end - table.rows.start),
        references,
        tile_bytes: all_tiles().flatten().fold(0, |sum, tiles| tiles.total_bytes().saturating_add(sum)),
        companion: None,
        file_bytes: 0,
        left_out: counts.left_out,
        warnings,
    }
}

struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

fn companion_of(manifest: &Path) -> PathBuf {
    let mut path = manifest.as_os_str().to_owned();
    path.push(COMPANION);
    path.into()
}
