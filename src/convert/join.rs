//! Joins native HDF5 files (converted tables) that have ranges of rows of one table into one file.
//! Its large columns are virtual datasets, which refer to those files.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::to_hdf5::{Plan, ToHdf5Options, Writer};
use crate::call::{Call, call_setters, open_setters};
use crate::error::{Context, Error, Result, ResultExt, column_context as place};
use crate::h5::File;
use crate::output::{Output, directory_of};
use crate::progress::{Phase, Progress};
use crate::source::{Comparison, PartFile, Source, compare, compare_rows};
use crate::table::OpenOptions;

/// Default of `copy_below`: from this size on, a column becomes a virtual dataset.
const VIRTUAL_BYTES: u64 = 1 << 20;
/// Bytes of the path by which a joined file refers to a part.
const MAX_NAME: usize = 1000;

/// How many rows of a joined file are compared with its parts before it appears under its name.
/// Subtables, and the structure of the tables, are always compared as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JoinCheck {
    /// The first and the last row of each part (a file with a range of rows) are compared with the
    /// joined file, in every column.
    #[default]
    Edges,
    /// All rows of the joined file are compared with its parts.
    All,
}

/// Joins native HDF5 files with ranges of rows of one table (parts, as `shard plan --split` plans
/// them) into one file. Large columns become virtual datasets: their elements stay in the parts,
/// found by paths relative to the joined file.
///
/// Where a part is missing later, HDF5 reads NaN, `true` and the integers farthest from 0 without
/// an error.
///
/// ```no_run
/// use ctds_hdf5::convert::JoinParts;
///
/// let joined = JoinParts::new(["parts-0000.h5", "parts-0001.h5"]).write("joined.h5")?;
/// println!("{} rows of {} files", joined.rows, joined.parts);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`write` joins"]
pub struct JoinParts<'a> {
    parts: Vec<PathBuf>,
    open: OpenOptions,
    virtual_bytes: u64,
    check: JoinCheck,
    call: Call<'a>,
}

/// Summary of native HDF5 files that [`JoinParts::write`] has joined.
#[derive(Debug)]
#[non_exhaustive]
pub struct JoinSummary {
    /// Number of parts (native HDF5 files with ranges of rows) that were joined.
    pub parts: usize,
    /// Number of rows of the main table of the joined file.
    pub rows: u64,
    /// Number of tables of the joined file.
    pub tables: usize,
    /// Names of the columns of the joined file that are virtual datasets.
    pub virtual_columns: Vec<String>,
    /// Size in bytes of the elements that stay in the parts (the files that were joined),
    /// uncompressed.
    pub virtual_bytes: u64,
    /// Size in bytes of the elements that were copied to the joined file, uncompressed.
    pub copied_bytes: u64,
    /// Number of cells of the joined file that were compared with those of the files from which it
    /// is joined.
    pub cells: u64,
    /// Size in bytes of the joined file.
    pub file_bytes: u64,
    /// Warnings for the user about the joined file, as sentences.
    pub warnings: Vec<String>,
}

impl<'a> JoinParts<'a> {
    /// Prepares to join native HDF5 files that have consecutive ranges of rows of one table, given
    /// in the order of the rows.
    pub fn new<P: AsRef<Path>>(parts: impl IntoIterator<Item = P>) -> Self {
        JoinParts {
            parts: parts.into_iter().map(|part| part.as_ref().to_owned()).collect(),
            open: OpenOptions::default(),
            virtual_bytes: VIRTUAL_BYTES,
            check: JoinCheck::default(),
            call: Call::default(),
        }
    }

    call_setters!(target);

    open_setters!();

    /// Sets the size in bytes from which a column of the joined file becomes a virtual dataset;
    /// smaller ones are copied. The default is 1 MiB.
    pub fn copy_below(mut self, bytes: u64) -> Self {
        self.virtual_bytes = bytes;
        self
    }

    /// Sets how many rows are compared with the parts (the files that are joined) before the joined
    /// file gets its name.
    pub fn check(mut self, check: JoinCheck) -> Self {
        self.check = check;
        self
    }

    /// Writes the joined file to `target`, which appears when it is complete and has been compared
    /// with its parts.
    ///
    /// # Errors
    /// `Usage` if the parts are not in or below the directory of `target`, not parts of one table,
    /// or not in order; `Exists`, `NoSpace`, `Interrupted`; `Format` if the joined file does not
    /// read as its parts; those of reading them.
    pub fn write(&self, target: impl AsRef<Path>) -> Result<JoinSummary> {
        self.call.run(|progress| self.join(target.as_ref(), progress))
    }

    fn join(&self, target: &Path, progress: &dyn Progress) -> Result<JoinSummary> {
        let parts = part_files(&self.parts, target)?;
        let source = Source::join(&parts, self.open, progress)?;
        let options = ToHdf5Options { digest: false, virtual_bytes: self.virtual_bytes, ..ToHdf5Options::default() };
        let plan = Plan::new(&source, &options)?;
        let main = || plan.tables.iter().take(1).flat_map(|table| &table.columns);
        let (joined, copied): (Vec<_>, Vec<_>) = plan.columns().partition(|column| column.virtual_sources.is_some());
        let copied_bytes = copied.iter().map(|column| column.bytes).sum();
        let mut warnings = plan.warnings.clone();
        for column in main().filter(|column| column.virtual_sources.is_none()) {
            if column.data_type.is_fixed_size() && column.bytes >= self.virtual_bytes && column.bytes > 0 {
                warnings.push(format!(
                    "column {} is copied, {} bytes: its cells are not one dataset in each part",
                    column.name, column.bytes
                ));
            }
        }
        progress.expect(copied_bytes);
        progress.phase(Phase::Writing);
        let output = Output::create(target, self.call.publishing, copied_bytes)?;
        let file = File::create(output.partial())?;
        let mut writer = Writer::new(&source, &plan, &options, &file)?;
        writer.write_structure(progress)?;
        writer.write_data(output.partial(), self.call.publishing.sync, progress)?;
        warnings.append(&mut writer.warnings);
        drop(writer);
        file.close()?;
        let found = self.compare(&source, &parts, output.partial(), progress)?;
        if let Some(difference) = found.differences.first() {
            let (left, right) = (&difference.left, &difference.right);
            let row = difference.row.map_or(String::new(), |row| format!("row {row}: "));
            let message = format!("{row}{right}, {left} in the parts: HDF5 does not read the joined file as its parts");
            let at = place(&difference.table, difference.column.as_deref().unwrap_or_default());
            return Err(Error::format(message).context(at).context(Context::path(target)));
        }
        let file_bytes = output.partial().metadata()?.len();
        let summary = JoinSummary {
            parts: parts.len(),
            rows: plan.tables.first().map_or(0, |table| table.rows.end),
            tables: plan.tables.len(),
            virtual_columns: joined.iter().map(|column| column.name.clone()).collect(),
            virtual_bytes: joined.iter().map(|column| column.bytes).sum(),
            copied_bytes,
            cells: found.cells,
            file_bytes,
            warnings,
        };
        progress.phase(Phase::Flushing);
        output.commit()?;
        Ok(summary)
    }

    /// Reads the joined file through libhdf5, as other programs do.
    fn compare(
        &self,
        source: &Source,
        parts: &[PartFile],
        partial: &Path,
        progress: &dyn Progress,
    ) -> Result<Comparison> {
        // HDF5 looks for the parts beside the file
        let links = Links::make(parts, directory_of(partial))?;
        let options = OpenOptions { follow_external: true, ..OpenOptions::default() };
        let made = Source::open_with(partial, options)?;
        let found = match self.check {
            JoinCheck::All => compare(source, &made, progress),
            JoinCheck::Edges => compare_rows(source, &made, &source.edges_of_parts(), progress),
        };
        drop(made);
        links.remove()?;
        found
    }
}

/// Temporary hard links beside the unfinished file, so that HDF5 finds the parts in a check.
struct Links {
    directory: PathBuf,
    made: Vec<PathBuf>,
}

impl Links {
    /// The links have the relative paths by which the joined file refers to its parts.
    fn make(parts: &[PartFile], directory: &Path) -> Result<Self> {
        let mut links = Links { directory: directory.to_owned(), made: Vec::new() };
        for part in parts {
            let link = directory.join(&part.relative);
            if let Some(folder) = link.parent() {
                fs::create_dir_all(folder)?;
            }
            let linked = fs::hard_link(&part.path, &link);
            linked.map_err(|error| {
                let message = format!(
                    "the part cannot be linked into {} for the check, {error}: parts have to be on the file system of the joined file",
                    directory.display()
                );
                Error::unsupported(message).context(Context::path(&part.path))
            })?;
            links.made.push(link);
        }
        Ok(links)
    }

    /// Also removes the directories made for the links.
    fn remove(self) -> Result<()> {
        for link in &self.made {
            fs::remove_file(link).with_context(|| Context::path(link))?;
            let folders = link.ancestors().skip(1).take_while(|folder| *folder != self.directory);
            // one that another part needs is not empty
            folders.for_each(|folder| drop(fs::remove_dir(folder)));
        }
        Ok(())
    }
}

/// Each part has its path relative to the directory of `target`.
fn part_files(parts: &[PathBuf], target: &Path) -> Result<Vec<PartFile>> {
    let directory = directory_of(target);
    let directory = directory.canonicalize().with_context(|| Context::path(directory))?;
    let name = target.file_name().ok_or_else(|| Error::usage("the target has no name of its own"))?;
    let target = directory.join(name);
    let mut files: Vec<PartFile> = Vec::new();
    for part in parts {
        let at = || Context::path(part);
        let missing = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::not_found(format!("{error}: all parts have to exist")),
            _ => error.into(),
        };
        let path = part.canonicalize().map_err(missing).with_context(at)?;
        let refused = |why: String| Err(Error::usage(why).context(at()));
        if path == target {
            return refused("the joined file is one of its parts".into());
        }
        let Ok(relative) = path.strip_prefix(&directory) else {
            let message = format!(
                "the part is not in or below {}, the directory of the joined file, which names its parts relative to itself",
                directory.display()
            );
            return refused(message);
        };
        let normal = relative.components().all(|part| matches!(part, Component::Normal(_)));
        let Some(relative) = relative.to_str().filter(|name| normal && !name.contains('%') && name.len() <= MAX_NAME)
        else {
            return refused(format!(
                "HDF5 cannot have this name in a virtual dataset: it is not UTF-8, has a %, or is longer than {MAX_NAME} bytes"
            ));
        };
        if files.iter().any(|other| other.relative == relative) {
            return refused("the part is named twice".into());
        }
        let relative = relative.to_owned();
        files.push(PartFile { path, relative });
    }
    Ok(files)
}
