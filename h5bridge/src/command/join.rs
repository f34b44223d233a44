//! `join --virtual` makes one HDF5 file of several native HDF5 files (layout:
//! docs/reference/layout.md), each with a range of rows of one table. Large columns of the new file
//! are virtual datasets, whose elements stay in the input files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{JoinCheck, JoinParts, JoinSummary};
use ctds_hdf5::{Error, ErrorKind, documents};

use crate::args::{Global, Publishing, size};
use crate::batch::Manifest;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge join`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge join --virtual parts-0000.h5 parts-0001.h5 joined.h5
  h5bridge join --virtual parts.h5.parts.ndjson joined.h5")]
pub(crate) struct Args {
    /// Native HDF5 files with ranges of rows of one table, in the order of the rows, or the list
    /// that `shard plan --split` writes; the last path is the file to write, in a directory that
    /// holds all others, also in subdirectories
    #[arg(required = true, num_args = 2.., value_name = "PART... OUT")]
    paths: Vec<PathBuf>,
    /// Make virtual datasets, whose elements stay in the input files. HAZARD: where such a file is
    /// missing, was renamed or cannot be read later, HDF5 gives NaN, true and the integers farthest
    /// from 0 in the place of its elements, and no error
    #[arg(long = "virtual")]
    is_virtual: bool,
    /// Copy columns that have fewer bytes than this in all input files together; larger ones become
    /// virtual datasets
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "1M")]
    copy_below: u64,
    /// Rows of each input file that are compared with OUT before OUT appears: the first and last
    /// one (edges), or all
    #[arg(long, value_name = "ROWS", default_value = "edges", value_parser = ["edges", "all"])]
    check: String,
    #[command(flatten)]
    publishing: Publishing,
}

/// Message if `--virtual` is missing.
const CHOICE: &str = "`join` makes virtual datasets only, and has to be told so, because HDF5 reads missing parts as fill values without an error: \
                      join with --virtual; xarray.open_mfdataset reads the parts as one; `h5bridge shard plan` of the table makes one file \
                      that has everything";

const HAZARD: &str = "where a part is missing, HDF5 reads NaN, true and the integers farthest from 0 without an error: move the parts with the \
                      file, and look for them before it is read";

pub(crate) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    if !args.is_virtual {
        return Err(Error::new(ErrorKind::Usage, CHOICE).into());
    }
    let none = (Path::new(""), &[][..]);
    let (target, parts) = args.paths.split_last().map_or(none, |(target, parts)| (target.as_path(), parts));
    report::check_target(target, args.publishing.overwrite)?;
    let parts = parts.iter().map(|part| parts_of(part)).collect::<Result<Vec<_>>>()?.concat();
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let joined = JoinParts::new(&parts)
        .open_options(global.open_options())
        .copy_below(args.copy_below)
        .check(if args.check == "all" { JoinCheck::All } else { JoinCheck::Edges })
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable)
        .write(target);
    bar.finish();
    let joined =
        joined.map_err(|error| report::stopped(error, parts.first().map_or(target, PathBuf::as_path), target))?;
    let mut warnings = joined.warnings.clone();
    warnings.extend((!joined.virtual_columns.is_empty()).then(|| HAZARD.to_owned()));
    let seconds = started.elapsed().as_secs_f64();
    Ending { warnings: &warnings, summary: lines(target, &joined), ..Ending::default() }
        .print(global, out, || documents::Join::new(target, &joined, seconds))
}

/// `part`, or the targets of a list that ends in `.ndjson`, as `shard plan --split` writes it.
fn parts_of(part: &Path) -> Result<Vec<PathBuf>> {
    if part.extension().is_none_or(|end| end != "ndjson") {
        return Ok(vec![part.to_owned()]);
    }
    let manifest = Manifest::open(part)?;
    let mut parts = Vec::new();
    for number in 0..manifest.len() {
        let item = manifest.read(number)?;
        let none = || {
            let message = format!("item {} has no target: the list of `shard plan --split` is expected", item.id);
            Error::new(ErrorKind::Usage, message).context(part)
        };
        parts.push(PathBuf::from(item.target.clone().ok_or_else(none)?));
    }
    Ok(parts)
}

fn lines(target: &Path, joined: &JoinSummary) -> Vec<String> {
    let JoinSummary { parts, rows, tables, virtual_columns, virtual_bytes, copied_bytes, cells, file_bytes, .. } =
        joined;
    let names = if virtual_columns.is_empty() { "none".to_owned() } else { virtual_columns.join(", ") };
    vec![
        format!(
            "{}: {rows} rows of {parts} parts, {tables} tables, {}; {cells} cells compared and equal",
            target.display(),
            report::bytes(*file_bytes)
        ),
        format!(
            "virtual: {names}: {} stay in the parts; {} copied",
            report::bytes(*virtual_bytes),
            report::bytes(*copied_bytes)
        ),
        format!("h5bridge reads them with --follow-external: `h5bridge info {} --follow-external`", target.display()),
    ]
}
