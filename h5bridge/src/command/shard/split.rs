//! `h5bridge shard plan --split` plans independent HDF5 files by ranges of rows, as a manifest, a
//! list of conversions, for `h5bridge batch`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ctds_hdf5::convert::ToHdf5Plan;
use ctds_hdf5::documents::ShardSplit;
use ctds_hdf5::{Context, Error, ErrorKind};
use serde_json::json;

use crate::args::Global;
use crate::batch::Plan;
use crate::exit::Status;
use crate::report::{self, Ending};

const MAX_FILES: u64 = 1 << 16;

pub(super) struct Parts<'a> {
    pub(super) source: &'a Path,
    /// The path of which `OUT-0000` and so on are made.
    pub(super) out: &'a Path,
    /// Approximate size of each file.
    pub(super) bytes: u64,
    /// `--columns`, `--exclude` and `--tables`.
    pub(super) names: [(&'a str, &'a [String]); 3],
    pub(super) overwrite: bool,
}

/// Writes `OUT.parts.ndjson`, with one line for each file to be made.
pub(super) fn run(plan: &ToHdf5Plan<'_>, parts: &Parts<'_>, global: &Global, out: &mut impl Write) -> Result<Status> {
    let rows = plan.tables().first().map_or(0, |table| table.rows.end - table.rows.start);
    let files = plan.bytes().div_ceil(parts.bytes.max(1)).clamp(1, rows.max(1));
    if files > MAX_FILES {
        let message =
            format!("{files} files are too many, at most {MAX_FILES} are planned: --split needs a larger size");
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    let of_file = rows.div_ceil(files).max(1);
    let mut list = Vec::new();
    for number in 0..rows.div_ceil(of_file).max(1) {
        let (first, last) = (number * of_file, rows.min((number + 1) * of_file));
        let line = json!({
            "source": text(parts.source)?,
            "target": text(&part(parts.out, number))?,
            "options": options(parts, first, last),
            "bytes": plan.bytes() / files,
        });
        writeln!(list, "{line}")?;
    }
    let manifest = PathBuf::from(format!("{}.parts.ndjson", text(parts.out)?));
    report::check_target(&manifest, parts.overwrite)?;
    let at = |error: std::io::Error| Error::from(error).context(manifest.as_path());
    let mut lines = Vec::new();
    let mut batch = Plan::new("to-hdf5", None, Vec::new(), &mut lines)?;
    batch.add_list(&mut list.as_slice())?;
    let planned = batch.finish()?;
    let directory = manifest.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.prefix(".parts-").tempfile_in(directory).map_err(at)?;
    file.write_all(&lines).map_err(at)?;
    file.as_file().sync_all().map_err(at)?;
    file.persist(&manifest).map_err(|error| at(error.error))?;
    let size = report::bytes(plan.bytes());
    Ending {
        warnings: plan.warnings(),
        summary: vec![
            format!("{}: {} files of {of_file} rows, {size} in all", manifest.display(), planned.items),
            format!("next: h5bridge batch run {} --ledger LEDGER", manifest.display()),
        ],
        ..Ending::default()
    }
    .print(global, out, || {
        let (out, bytes) = (manifest.display().to_string(), plan.bytes());
        ShardSplit { out, items: planned.items, rows: of_file, bytes }
    })
}

/// Options of `to-hdf5` for the rows from `first` up to but without `last`.
fn options(parts: &Parts<'_>, first: u64, last: u64) -> Vec<String> {
    let mut words = vec!["--rows".to_owned(), format!("{first}..{last}")];
    for (option, names) in parts.names {
        if !names.is_empty() {
            words.extend([option.to_owned(), names.join(",")]);
        }
    }
    words.extend(parts.overwrite.then(|| "--overwrite".to_owned()));
    words
}

/// `OUT-0003.h5` for 3.
fn part(out: &Path, number: u64) -> PathBuf {
    let name = |end: Option<&str>| end.map_or(String::new(), |end| format!(".{end}"));
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let end = name(out.extension().and_then(|end| end.to_str()));
    out.with_file_name(format!("{stem}-{number:04}{end}"))
}

fn text(path: &Path) -> Result<&str, Error> {
    let not_utf8 = || Error::new(ErrorKind::Unsupported, "the path is not UTF-8: a manifest cannot name it");
    path.to_str().ok_or_else(|| not_utf8().context(Context::Path(path.to_owned())))
}
