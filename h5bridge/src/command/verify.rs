//! `h5bridge verify` compares two sources (tables, HDF5 files, arrays), or one source with the
//! digests and checksums stored in it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ctds_hdf5::blz::{ArrayDifference, ArrayInfo, Arrays};
use ctds_hdf5::convert::{
    ChangedFile, CheckManifest, Compare, Comparison, Difference, Predicate, Source, ThinTable, display_name,
};
use ctds_hdf5::documents::{self, CheckedArrays};
use ctds_hdf5::pack::{ByteDifference, Check, CompareBytes, Contents, Listing};

use crate::args::{External, Global, SOURCE};
use crate::command::pack::left_out;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge verify`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge verify my.ms my.h5
  h5bridge verify my.ms copy.ms --json
  h5bridge verify my.h5
  h5bridge verify my.ms packed.ms --bytes
  h5bridge verify archive.h5 --bytes
  h5bridge verify data.bcolz data.h5
  h5bridge verify my.json
  h5bridge verify my.ms s3://bucket/my.h5")]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    left: PathBuf,
    /// The source to compare LEFT with; if omitted, LEFT is checked against its stored digests and
    /// checksums, or, if LEFT is a manifest, the files that it refers to against their recorded
    /// sizes and modification times
    right: Option<PathBuf>,
    /// Compare the files of two tables byte by byte, whatever their containers; or check all files
    /// of one source against their checksums. Containers without tables are always compared in this
    /// way
    #[arg(long)]
    bytes: bool,
    /// Compare only the rows of the main table of LEFT that satisfy a condition, with all rows of
    /// the other source
    #[arg(long = "where", value_name = "CONDITION", requires = "right", conflicts_with = "bytes")]
    predicate: Option<Predicate>,
    #[command(flatten)]
    external: External,
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    match &args.right {
        Some(right) if args.bytes => compare_bytes(&args.left, right, global, out),
        Some(right) if args.predicate.is_none() && (Arrays::are_at(&args.left) || Arrays::are_at(right)) => {
            compare_arrays(&args.left, right, global, out)
        }
        Some(right) if args.predicate.is_none() && (holds_files(&args.left) || holds_files(right)) => {
            compare_bytes(&args.left, right, global, out)
        }
        Some(right) => {
            let mut compare = Compare::new(&args.left, right).open_options(args.external.open_options(global));
            if let Some(predicate) = args.predicate {
                compare = compare.rows_where(predicate);
            }
            report_comparison(compare.progress(&interrupts.stoppable(&())).run()?, &[&args.left, right], global, out)
        }
        None if CheckManifest::is_at(&args.left) => check_manifest(&args.left, global, out),
        None if ThinTable::open(&args.left)?.is_some() && !args.bytes => check_thin(&args.left, global, out),
        None if Arrays::are_at(&args.left) => check_arrays(&args.left, global, out),
        None if args.bytes || holds_files(&args.left) => check(&args.left, global, out),
        None => {
            let stored = Compare::with_stored_digests(&args.left).open_options(args.external.open_options(global));
            report_comparison(stored.progress(&interrupts.stoppable(&())).run()?, &[&args.left], global, out)
        }
    }
}

/// Such sources can only be compared byte by byte.
fn holds_files(source: &Path) -> bool {
    matches!(Contents::of(source), Ok(Contents::Container(_)))
}

/// One of the sources may be any dataset of an HDF5 file.
fn compare_arrays(left: &Path, right: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let names = [left, right];
    let (left, right) = (Arrays::open(left)?, Arrays::open(right)?);
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let bar = Bar::new(left.bytes(), global.quiet || global.json);
    let result = left.compare(&right, &interrupts.stoppable(&bar));
    bar.finish();
    let result = result?;
    let equal = result.differences.is_empty();
    let line = |found: &ArrayDifference| {
        let index = found.index.as_ref().map_or(String::new(), |index| format!(" {index:?}"));
        format!("{}{index}: {} | {}", found.array, found.left, found.right)
    };
    let verdict = verdict(equal, &names);
    Ending {
        failed: (!equal).then_some(Status::Different),
        found: result.differences.iter().map(line).collect(),
        summary: vec![format!("{verdict}: {} arrays, {} compared", result.arrays, report::bytes(result.bytes))],
        ..Ending::default()
    }
    .print(global, out, || documents::VerifyArrays::from(&result))
}

fn check_manifest(manifest: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let check = CheckManifest::new(manifest).progress(&interrupts.stoppable(&())).run()?;
    let unchanged = check.changed.is_empty();
    let (files, bytes) = (check.files, report::bytes(check.bytes));
    let path = |file: &ChangedFile| file.path.display().to_string();
    let summary = match check.changed.len() {
        0 => format!("unchanged by size and time of modification: {files} files, {bytes}, whose bytes were not read"),
        count => format!(
            "changed since {} was made: {count} of {files} files; `h5bridge manifest` again",
            manifest.display()
        ),
    };
    Ending {
        failed: (!unchanged).then_some(Status::Different),
        found: check.changed.iter().map(|file| format!("{}: {}", path(file), file.change)).collect(),
        summary: vec![summary],
        ..Ending::default()
    }
    .print(global, out, || documents::VerifyManifest::from(&check))
}

/// Opening a thin table fails if its HDF5 file was moved or rewritten.
fn check_thin(table: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let source = Source::open_with(table, global.open_options())?;
    let (mut links, mut bytes) = (0, 0);
    for table in source.tables() {
        let Some(table) = table.table()? else { continue };
        for (_, _, linked) in ThinTable::open(table.path())?.iter().flat_map(ThinTable::links) {
            links += 1;
            bytes += linked;
        }
    }
    Ending {
        summary: vec![format!("a thin table: {links} files lead to {} where they are recorded", report::bytes(bytes))],
        ..Ending::default()
    }
    .print(global, out, || documents::VerifyThin::new(links, bytes))
}

/// Compares all decoded chunks of BLZ, bcolz or bloscpack with the stored checksums.
fn check_arrays(source: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let arrays = Arrays::open(source)?;
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let bar = Bar::new(arrays.bytes(), global.quiet || global.json);
    let checked = arrays.check(&interrupts.stoppable(&bar));
    bar.finish();
    checked?;
    let (list, bytes) = (arrays.list()?, arrays.bytes());
    let has_none = |array: &&ArrayInfo| array.checksum.as_deref().is_none_or(|kind| kind == "none");
    let (count, unchecked) = (list.len(), list.iter().filter(has_none).count());
    let warnings = match unchecked {
        0 => Vec::new(),
        count => vec![format!("{count} arrays have no checksums: damage that decodes cannot be seen")],
    };
    let (checked, bytes_shown) = (count - unchecked, report::bytes(bytes));
    let summary = match checked {
        0 => format!("all chunks decode, nothing says what their bytes should be: {count} arrays, {bytes_shown}"),
        _ => format!("no damage: {checked} of {count} arrays with checksums, {bytes_shown} decoded"),
    };
    let checked = CheckedArrays { arrays: checked as u64, decoded: count as u64, bytes };
    Ending { warnings: &warnings, summary: vec![summary], ..Ending::default() }
        .print(global, out, || documents::VerifyStoredArrays::new(checked))
}

/// `equal`, or `different: a.ms and b.h5`.
fn verdict(equal: bool, names: &[&Path]) -> String {
    let names: Vec<String> = names.iter().map(|name| name.display().to_string()).collect();
    if equal { "equal".to_owned() } else { format!("different: {}", names.join(" and ")) }
}

fn report_comparison(result: Comparison, names: &[&Path], global: &Global, out: &mut impl Write) -> Result<Status> {
    let equal = result.differences.is_empty();
    let failed = (!equal).then_some(Status::Different);
    let mut warnings: Vec<_> = result.skipped.iter().map(|name| format!("not compared: {name}")).collect();
    // damage that only one side left out is among the differences
    if equal {
        warnings.extend(result.damage.iter().map(|damage| format!("left out when the file was made: {damage}")));
    }
    let verdict = match (equal, result.damage.is_empty()) {
        (true, false) => "equal as far as salvaged".to_owned(),
        _ => verdict(equal, names),
    };
    let files = if result.files > 0 { format!(", {} files", result.files) } else { String::new() };
    let (tables, columns, cells) = (result.tables, result.columns, result.cells);
    Ending {
        failed,
        warnings: &warnings,
        damage: &result.damage,
        found: result.differences.iter().map(describe).collect(),
        summary: vec![format!("{verdict}: {tables} tables, {columns} columns, {cells} cells{files} compared")],
        ..Ending::default()
    }
    .print(global, out, || documents::VerifyTables::from(&result))
}

fn compare_bytes(left: &Path, right: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let bar = Bar::new(0, global.quiet || global.json);
    let result =
        CompareBytes::new(left, right).open_options(global.open_options()).progress(&interrupts.stoppable(&bar)).run();
    bar.finish();
    let result = result?;
    let equal = result.differences.is_empty();
    let failed = (!equal).then_some(Status::Different);
    let verdict = verdict(equal, &[left, right]);
    let line = |found: &ByteDifference| {
        let offset = found.offset.map_or(String::new(), |offset| format!(" byte {offset}"));
        format!("{}{offset}: {} | {}", found.file, found.left, found.right)
    };
    let warnings = [result.warnings.clone(), left_out(&result.elsewhere, "compared")].concat();
    Ending {
        failed,
        warnings: &warnings,
        found: result.differences.iter().map(line).collect(),
        summary: vec![format!("{verdict}: {} files, {} compared", result.files, report::bytes(result.bytes))],
        ..Ending::default()
    }
    .print(global, out, || documents::VerifyBytes::from(&result))
}

fn check(source: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let mut result = Check::open(source)?;
    let bytes = result.listing.as_ref().map_or(0, Listing::bytes);
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let bar = Bar::new(bytes, global.quiet || global.json);
    result.read(&interrupts.stoppable(&bar))?;
    bar.finish();
    let mut warnings = Vec::new();
    if result.unchecked > 0 {
        let count = result.unchecked;
        warnings.push(format!("{count} files or containers have no checksums: they can only be compared with others"));
    }
    if result.unnamed > 0 {
        let count = result.unnamed;
        warnings.push(format!("no index and no archive names {count} blocks: nothing says what their bytes should be"));
    }
    let failed = (!result.damaged.is_empty()).then_some(Status::Source);
    let document = documents::VerifyStored::from(&result);
    let summary = match document.intact {
        None => format!("{}: nothing says what the bytes should be, nothing was compared", source.display()),
        Some(true) => format!("no damage: {}", compared(&result)),
        Some(false) => {
            let places = result.damaged.len();
            let compared = match result.files + result.blocks {
                0 => String::new(),
                _ => format!("; {}", compared(&result)),
            };
            format!("damaged: {}, {places} places; `h5bridge help damage`{compared}", source.display())
        }
    };
    Ending {
        failed,
        warnings: &warnings,
        found: result.damaged.iter().map(|(file, error)| format!("{file}: {error}")).collect(),
        summary: vec![summary],
        ..Ending::default()
    }
    .print(global, out, || document)
}

/// Number of files, blocks and bytes.
fn compared(result: &Check) -> String {
    let bytes = report::bytes(result.bytes + result.block_bytes);
    format!("{} files with checksums, {} blocks, {bytes} compared", result.files, result.blocks)
}

fn describe(difference: &Difference) -> String {
    let mut place = display_name(&difference.table).to_owned();
    if let Some(column) = &difference.column {
        place += &format!(" {column}");
    }
    if let Some(row) = difference.row {
        place += &format!(" row {row}");
    }
    if let Some(index) = difference.index.as_ref().filter(|index| !index.is_empty()) {
        place += &format!(" {index:?}");
    }
    format!("{place}: {} | {}", difference.left, difference.right)
}
