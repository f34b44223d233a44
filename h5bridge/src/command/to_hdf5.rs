//! `to-hdf5` writes a native HDF5 file from a table and its subtables.

mod describe;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ctds_hdf5::Context;
use ctds_hdf5::blz::{self, Arrays};
use ctds_hdf5::convert::{
    Averaging, ColumnPlan, Compress, Compression, DigestPolicy, Hash, HashKind, Hdf5Version, Predicate, Prediction,
    Profile, Reflink, TablePlan, ToHdf5, ToHdf5Plan, ToHdf5Summary,
};
use ctds_hdf5::pack::{Contents, PackFormat};
use serde_json::json;

use self::describe::{
    averaged_json, averaged_lines, expected_json, profile_line, sharing_json, sharing_lines, table_json, table_lines,
};
use super::{link, pack};
use crate::args::{Durable, External, Global, SOURCE, hash_kind, if_exists, size};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending, Salvaging};

/// Command-line arguments of `h5bridge to-hdf5`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-hdf5 my.ms my.h5
  h5bridge to-hdf5 my.ms my.h5 --columns TIME,UVW,DATA --rows 0..10000
  h5bridge to-hdf5 my.ms my.h5 --where 'DATA_DESC_ID == 0 && TIME > \"2014-04-22T10:30:00\"'
  h5bridge to-hdf5 my.ms my.h5 --average time=10s,chan=4
  h5bridge to-hdf5 my.ms my.h5 --dry-run")]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    /// The HDF5 file to write
    out: PathBuf,
    #[command(flatten)]
    chosen: Chosen,
    /// Convert only the rows of the main table that satisfy a condition on its scalar columns, such as
    /// 'FIELD_ID == "3C286" && SCAN_NUMBER in 3..=5'
    #[arg(long = "where", value_name = "CONDITION")]
    predicate: Option<Predicate>,
    /// Average the visibilities of a MeasurementSet, weighted and without flagged samples: rows of a baseline in bins of
    /// time, neighbouring channels, or both
    #[arg(long, value_name = "time=10s,chan=4", conflicts_with_all = ["restorable", "salvage"])]
    average: Option<Averaging>,
    #[arg(long, default_value = "auto", value_parser = compress_or_keep, help = keep_help())]
    compress: CompressOrKeep,
    /// With --compress shared: share bytes with the source by reflinks where possible (auto), fail if not possible
    /// (always), or copy them (never); the content of OUT is the same
    #[arg(long, default_value = "auto", value_parser = reflink(), value_name = "WHEN")]
    reflink: Reflink,
    /// Lay out the file for reading from a disk (default), or from an object store (cloud) with chunks of 4 MiB and all
    /// metadata together in a few pages
    #[arg(long, value_enum, default_value_t = ProfileName::Default, hide_possible_values = true, value_name = "default|cloud")]
    profile: ProfileName,
    /// The oldest HDF5 that reads the file: 1.10, or 1.8, also for readers that know no newer structures, such as jsfive and
    /// pyfive; h5bridge lint tells what each reader needs
    #[arg(long, default_value = "1.10", value_parser = hdf5_version(), value_name = "1.8|1.10")]
    hdf5: Hdf5Version,
    /// Replace SOURCE, a table directory, in one step by a thin table whose tiles are in OUT (docs/thin.md), so that
    /// the data is stored once. OUT and the thin table are first compared with SOURCE; OUT is written as by --compress
    /// shared
    #[arg(long, conflicts_with_all = ["columns", "exclude", "rows", "predicate", "tables", "appendable", "restorable", "quicklook", "salvage", "dry_run", "dtype", "digest", "no_digest", "max_memory"])]
    replace: bool,
    /// With --replace: let programs write to the thin table (the new SOURCE); cells whose tiles are in OUT are then
    /// written into OUT
    #[arg(long, requires = "replace")]
    writable: bool,
    /// Make all datasets appendable along the row axis
    #[arg(long)]
    appendable: bool,
    /// Also store what is needed to restore the original directory, every file and every byte, with `to-ms --exact`
    #[arg(long)]
    restorable: bool,
    /// With --restorable: the hash that is stored of each original file; sha256 for archives whose rules ask for it
    #[arg(long, default_value = "blake3", value_parser = hash_kind(), value_name = "blake3|sha256", hide_possible_values = true, requires = "restorable")]
    checksum: HashKind,
    /// Add small versions of the visibilities by time and channel, which HDFView and H5Web draw as heat maps (group quicklook)
    #[arg(long)]
    quicklook: bool,
    /// Store each file of a container as an array of little-endian elements of this type instead of bytes; the type is
    /// named as in numpy: f4, int32
    #[arg(long, value_name = "f4")]
    dtype: Option<String>,
    /// Replace OUT if it exists
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    durable: Durable,
    /// Print what would be written: tables, columns, chunks, and the expected size, time and memory. If OUT would have more than
    /// 16 MiB, its disk is measured with 32 MiB that are not kept
    #[arg(long)]
    dry_run: bool,
    /// Threads that decode and compress; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Limit of the memory for data, in bytes: 512M, 2G
    #[arg(long, default_value = "256M", value_parser = memory, value_name = "256M")]
    max_memory: u64,
    /// Leave out damaged parts of SOURCE, name them, and convert the rest; the exit code is then 6
    #[arg(long, conflicts_with = "restorable")]
    salvage: bool,
    /// Compute digests of the content during the conversion and store them in the file; the default, except with --compress none or shared
    #[arg(long)]
    digest: bool,
    /// Do not compute digests of the content
    #[arg(long, conflicts_with_all = ["digest", "restorable"])]
    no_digest: bool,
    #[command(flatten)]
    external: External,
}

/// Options of `to-hdf5` and of `shard plan` that choose the columns, rows and tables to convert.
#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// Convert only these columns: DATA of the main table, ANTENNA/NAME of a subtable; tables without a named column
    /// stay whole
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub(crate) columns: Vec<String>,
    /// Leave out these columns, named in the same way as for --columns
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub(crate) exclude: Vec<String>,
    /// Convert only the rows A..B of the main table: from A, counted from 0, up to but without B
    #[arg(long, value_name = "A..B", value_parser = row_range)]
    pub(crate) rows: Option<Range<u64>>,
    /// Convert only these tables; MAIN is the main one
    #[arg(long, value_delimiter = ',', value_name = "MAIN,ANTENNA")]
    pub(crate) tables: Vec<String>,
}

impl Chosen {
    /// Restricts the conversion `convert` to the columns, rows and tables that the command-line options choose.
    pub(crate) fn of<'a>(&self, convert: ToHdf5<'a>) -> ToHdf5<'a> {
        let convert = convert.columns(&self.columns).exclude(&self.exclude).tables(&self.tables);
        match &self.rows {
            Some(rows) => convert.rows(rows.clone()),
            None => convert,
        }
    }
}

/// Parser of `--reflink`: whether the HDF5 file shares bytes with the source by reflinks (auto, always or never).
fn reflink() -> impl TypedValueParser<Value = Reflink> {
    PossibleValuesParser::new(["auto", "always", "never"]).map(|word| match word.as_str() {
        "always" => Reflink::Always,
        "never" => Reflink::Never,
        _ => Reflink::Auto,
    })
}

/// Parser of `--hdf5`: the oldest HDF5 that can read the file.
fn hdf5_version() -> impl TypedValueParser<Value = Hdf5Version> {
    PossibleValuesParser::new(["1.8", "1.10"]).try_map(|word| Hdf5Version::parse(&word))
}

/// Values of `to-hdf5 --profile`, which lays out the HDF5 file for reading from a disk (`Default`) or from an object store (`Cloud`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProfileName {
    Default,
    Cloud,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Default => Profile::Disk,
            ProfileName::Cloud => Profile::Cloud,
        }
    }
}

impl Args {
    /// The options of `--replace`, which replaces SOURCE by a thin table (a table directory whose large data files refer to the HDF5 file).
    fn replacement(&self) -> link::Replacement {
        let Args { writable, overwrite, threads, durable, .. } = self;
        link::Replacement { writable: *writable, overwrite: *overwrite, threads: *threads, durable: *durable }
    }
}

/// Parses a range of rows `A..B`: from row A, counted from 0, up to but without row B.
fn row_range(text: &str) -> Result<Range<u64>> {
    let (start, end) = text.split_once("..").ok_or_else(|| anyhow!("expected A..B"))?;
    let range = start.trim().parse()?..end.trim().parse()?;
    if range.start > range.end { Err(anyhow!("the first row comes after the last")) } else { Ok(range) }
}

/// Parses `--compress`: how data is compressed, such as `zstd` or `none`.
pub(crate) fn compress(text: &str) -> Result<Compress, String> {
    let more = |message: &str| if message.starts_with("expected ") { ", or auto, shared" } else { "" };
    Compress::parse(text).map_err(|error| format!("{}{}", error.message(), more(error.message())))
}

/// The help text of `--compress`.
pub(crate) fn compress_help() -> String {
    format!(
        "{}; auto: what every HDF5 reader has, where it gains; shared: auto, but tiles of numbers stay as they are",
        Compression::forms()
    )
}

/// Value of `to-hdf5 --compress`: a compression, or `keep`, which copies the compressed chunks of Blosc arrays unchanged.
#[derive(Debug, Clone, Copy)]
enum CompressOrKeep {
    Compress(Compress),
    Keep,
}

fn compress_or_keep(text: &str) -> Result<CompressOrKeep, String> {
    match text {
        "keep" => Ok(CompressOrKeep::Keep),
        _ => compress(text).map(CompressOrKeep::Compress),
    }
}

fn keep_help() -> String {
    format!("{}; keep, for arrays in Blosc chunks: as they are", compress_help())
}

/// The compression that `--compress` gives for tables and files; an error for `keep`, which only arrays in Blosc chunks can have.
fn without_keep(args: &Args) -> Result<Compress> {
    match args.compress {
        CompressOrKeep::Compress(compress) => Ok(compress),
        CompressOrKeep::Keep => {
            let message = format!("--compress keep is for arrays; {} is none", args.source.display());
            Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into())
        }
    }
}

/// Parses `--max-memory`: the memory in bytes that a conversion may hold.
pub(crate) fn memory(text: &str) -> Result<u64> {
    let bytes = size(text)?;
    if bytes < 64 << 20 { Err(anyhow!("at least 64M are needed")) } else { Ok(bytes) }
}

/// Refuses command-line options that only tables have, for a source that is not a table; `what` is the kind of source in the message.
fn check_no_table_options(args: &Args, what: &str) -> Result<()> {
    let of_tables = [
        (!args.chosen.columns.is_empty(), "--columns"),
        (!args.chosen.exclude.is_empty(), "--exclude"),
        (args.chosen.rows.is_some(), "--rows"),
        (args.predicate.is_some(), "--where"),
        (args.average.is_some(), "--average"),
        (!args.chosen.tables.is_empty(), "--tables"),
        (args.profile != ProfileName::Default, "--profile"),
        (args.hdf5 != Hdf5Version::V110, "--hdf5"),
        (args.appendable, "--appendable"),
        (args.restorable, "--restorable"),
        (args.quicklook, "--quicklook"),
        (args.reflink != Reflink::Auto, "--reflink"),
        (args.dry_run, "--dry-run"),
        (args.digest, "--digest"),
    ];
    if let Some((_, option)) = of_tables.iter().find(|(given, _)| *given) {
        let message = format!("{option} is for tables; {} is {what}", args.source.display());
        return Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into());
    }
    Ok(())
}

/// Compression of the files of a container that is not a table, as `--compress` gives it; without the option, none.
fn compression(args: &Args) -> Result<Compression> {
    Ok(match without_keep(args)? {
        Compress::With(compression) => compression,
        Compress::Auto => Compression::NONE,
        Compress::Shared => {
            let message = format!("--compress shared is for tables; {} is none", args.source.display());
            return Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into());
        }
    })
}

/// Converts arrays in the formats BLZ, bcolz or bloscpack to HDF5 datasets, with the same chunks.
fn arrays_to_hdf5(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    check_no_table_options(args, "an array")?;
    if args.dtype.is_some() {
        return Err(
            ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, "an array has a type: --dtype is for files").into()
        );
    }
    let arrays = Arrays::open(&args.source)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(arrays.bytes(), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let keep = matches!(args.compress, CompressOrKeep::Keep);
    let compression = if keep { Compression::NONE } else { compression(args)? };
    let to_hdf5 = blz::ToHdf5::new(&arrays)
        .compression(compression)
        .keep_chunks(keep)
        .if_exists(if_exists(args.overwrite))
        .sync(args.durable.policy());
    let summary = to_hdf5.progress(&stoppable).write(&args.out);
    bar.finish();
    let summary = summary.map_err(|error| report::stopped(error, &args.source, &args.out))?;
    let seconds = started.elapsed().as_secs_f64();
    let (size, stored) = (report::bytes(summary.bytes), report::bytes(summary.file_bytes));
    Ending {
        summary: vec![
            format!("{}: {} arrays; {size} of data in {stored}", args.out.display(), summary.arrays),
            report::speed(summary.bytes, seconds),
            format!("next: h5bridge verify {} {}", args.source.display(), args.out.display()),
        ],
        fields: json!({
            "out": args.out.display().to_string(),
            "arrays": summary.arrays,
            "bytes": summary.bytes,
            "file_bytes": summary.file_bytes,
            "seconds": seconds,
            "peak_memory": report::peak_memory(),
        }),
        plugins: if keep { vec![Compression::blosc_plugin()] } else { compression.plugin().into_iter().collect() },
        ..Ending::default()
    }
    .print(global, out)
}

/// Writes the files of a container that is not a table as datasets of bytes.
fn files_to_hdf5(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    check_no_table_options(args, "a container of other files")?;
    pack::write(&args.source, &args.out, global, out, compression(args)?, |mut pack| {
        if let Some(dtype) = &args.dtype {
            pack = pack.dtype(dtype);
        }
        pack.format(PackFormat::HDF5)
            .salvage(args.salvage)
            .if_exists(if_exists(args.overwrite))
            .sync(args.durable.policy())
    })
}

/// Runs `h5bridge to-hdf5`: converts the source, or with `--dry-run` prints the tables, columns and chunks that it
/// would write.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    if !args.dry_run {
        report::check_target(&args.out, args.overwrite)?;
    }
    if args.replace && args.hdf5 == Hdf5Version::V18 {
        let message = "--replace: a thin table needs datasets in one block, which HDF5 1.8 does not have";
        return Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into());
    }
    if args.replace {
        return link::replace(&args.source, &args.out, &args.replacement(), global, out);
    }
    if Arrays::are_at(&args.source) {
        return arrays_to_hdf5(&args, global, out);
    }
    match Contents::of(&args.source) {
        Ok(Contents::Container(_) | Contents::File(_)) => return files_to_hdf5(&args, global, out),
        Ok(_) => {}
        Err(_) if args.salvage && Contents::can_be_salvaged(&args.source) => return files_to_hdf5(&args, global, out),
        Err(error) => return Err(pack::suggest(error, args.salvage, &args.source)),
    }
    if args.dtype.is_some() {
        let message = format!("--dtype is for files of a container; {} is a table", args.source.display());
        return Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into());
    }
    let compress = without_keep(&args)?;
    if args.reflink == Reflink::Always && compress != Compress::Shared {
        let message = "--reflink always: only a file made with --compress shared shares bytes with its source";
        return Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into());
    }
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let digest = match (args.digest, args.no_digest) {
        (true, _) => DigestPolicy::Always,
        (_, true) => DigestPolicy::Never,
        _ => DigestPolicy::Auto,
    };
    let mut to_hdf5 = args
        .chosen
        .of(ToHdf5::new(&args.source))
        .open_options(args.external.open_options(global))
        .compression(compress)
        .reflink(args.reflink)
        .profile(args.profile.into())
        .hdf5(args.hdf5)
        .appendable(args.appendable)
        .restorable(args.restorable)
        .checksum(args.checksum)
        .quicklook(args.quicklook)
        .digest(digest)
        .salvage(args.salvage)
        .threads(args.threads)
        .max_memory(args.max_memory)
        .if_exists(if_exists(args.overwrite))
        .sync(args.durable.policy());
    let condition =
        args.predicate.as_ref().map(|predicate| format!(" --where {}", report::quoted(&predicate.to_string())));
    if let Some(predicate) = args.predicate {
        to_hdf5 = to_hdf5.rows_where(predicate);
    }
    if let Some(averaging) = args.average {
        to_hdf5 = to_hdf5.average(averaging);
    }
    // a search for damage and for bins takes long
    let stoppable = interrupts.stoppable(&());
    let plan = to_hdf5.progress(&stoppable).plan();
    let go_on = |error: ctds_hdf5::Error| {
        let options = options_after(&error, args.restorable);
        report::suggest(error, Salvaging::of_tables(args.salvage, &args.source), options)
    };
    let plan = plan.map_err(go_on)?;
    if args.dry_run {
        return print_plan(&plan, &args.out, global, out);
    }
    let left = left_uncompressed(&plan);
    let expected = plan.prediction();
    let bar = Bar::new(plan.bytes(), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let plan = plan.progress(&stoppable);
    let summary = plan.write(&args.out);
    bar.finish();
    let summary = summary.map_err(|error| report::stopped(go_on(error), &args.source, &args.out))?;
    let seconds = started.elapsed().as_secs_f64();
    let ToHdf5Summary { tables, columns, missing, rows, bytes, file_bytes, warnings, digest, .. } = &summary;
    let digest = digest.as_ref().map(Hash::to_string);
    let (size, stored) = (report::bytes(*bytes), report::bytes(*file_bytes));
    let ratio = *file_bytes as f64 / (*bytes).max(1) as f64;
    let known = digest.as_ref().map_or(String::new(), |digest| format!(", digest {}", &digest[..16]));
    let mut lines = vec![
        format!(
            "{}: {tables} tables, {columns} columns, {rows} rows; {size} of data in {stored} ({ratio:.2})",
            args.out.display()
        ),
        format!(
            "{}{known}; expected: {} in {}",
            report::speed(*bytes, seconds),
            report::bytes(expected.file_bytes),
            rounded(expected.seconds)
        ),
    ];
    let sharing = summary.sharing.as_ref();
    lines.extend(sharing.into_iter().flat_map(|sharing| sharing_lines(sharing, *file_bytes)));
    let averaged = plan.averaged();
    lines.extend(profile_line(&plan));
    lines.extend(averaged.map(averaged_lines).unwrap_or_default());
    if !left.is_empty() {
        lines.push(format!("not compressed, because samples hardly shrank: {}", left.join(", ")));
    }
    let condition = condition.unwrap_or_default();
    // averages are compared with their digests only
    lines.push(match averaged {
        Some(_) => format!("next: h5bridge verify {}", args.out.display()),
        None => format!("next: h5bridge verify {} {}{condition}", args.source.display(), args.out.display()),
    });
    let mut fields = json!({
        "out": args.out.display().to_string(),
        "tables": tables,
        "columns": columns,
        "columns_missing": missing,
        "rows": rows,
        "bytes": bytes,
        "file_bytes": file_bytes,
        "seconds": seconds,
        "peak_memory": report::peak_memory(),
        "digest": digest,
        "not_compressed": left,
        "expected": expected_json(&expected),
    });
    if let Some(averaged) = averaged {
        fields["averaged"] = averaged_json(averaged);
    }
    if plan.profile() == Profile::Cloud {
        fields["profile"] = "cloud".into();
    }
    if plan.hdf5() == Hdf5Version::V18 {
        fields["hdf5"] = "1.8".into();
    }
    if let Some(sharing) = sharing {
        fields["sharing"] = sharing_json(sharing, *file_bytes);
    }
    Ending {
        warnings,
        summary: lines,
        fields,
        plugins: compress.plugin().into_iter().collect(),
        damage: &summary.damage,
        ..Ending::default()
    }
    .print(global, out)
}

/// Names of the columns that `--compress auto` leaves uncompressed because their samples did not shrink enough.
fn left_uncompressed(plan: &ToHdf5Plan<'_>) -> Vec<String> {
    let is_left = |column: &&ColumnPlan| column.compression.is_none() && column.sample_remains().is_some();
    let of_table = |table: &TablePlan| -> Vec<String> {
        let columns = table.columns.iter().filter(is_left);
        columns.map(|column| format!("{}/{}", table.group.trim_start_matches('/'), column.link)).collect()
    };
    plan.tables().iter().flat_map(of_table).collect()
}

/// Hint for the user after an error in a damaged source: the options of `to-hdf5` that leave out the damaged column or all damaged parts.
fn options_after(error: &ctds_hdf5::Error, restorable: bool) -> String {
    if restorable {
        return "a restorable file needs an intact source; without --restorable, --salvage leaves out what is damaged"
            .to_owned();
    }
    let column = error.contexts().find_map(|context| match context {
        Context::Column { table, column, .. } if matches!(table.as_str(), "" | ".") => Some(column.clone()),
        Context::Column { table, column, .. } => Some(format!("{table}/{column}")),
        other if other.to_string().contains("column ") => Some("COLUMN".to_owned()),
        _ => None,
    });
    match column {
        Some(column) => format!("--exclude {column} leaves out the column, {}", report::SALVAGE),
        None => report::SALVAGE.to_owned(),
    }
}

/// A predicted time in seconds, with two digits if it is short.
fn rounded(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

/// Prints the plan of a conversion: the tables, columns and chunks that it would write.
fn print_plan(plan: &ToHdf5Plan<'_>, target: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let memory = plan.peak_memory();
    let expected = plan.prediction_at(target);
    let restorable = plan.restorable()?;
    let mut fields = json!({
        "bytes": plan.bytes(), "peak_memory": memory,
        "expected": expected_json(&expected),
        "tables": plan.tables().iter().map(table_json).collect::<Vec<_>>(),
    });
    let mut found: Vec<_> = plan.tables().iter().flat_map(table_lines).collect();
    let (bytes, memory) = (report::bytes(plan.bytes()), report::bytes(memory));
    let Prediction { file_bytes, seconds, disk_rate, .. } = expected;
    let disk = disk_rate.map_or(String::new(), |rate| format!(" (the disk writes {}/s)", report::bytes(rate as u64)));
    found.push(format!(
        "the file: about {} for {bytes} of data, in about {}{disk}; peak memory about {memory}",
        report::bytes(file_bytes),
        rounded(seconds)
    ));
    if let Some(sharing) = plan.sharing(target)? {
        fields["sharing"] = sharing_json(&sharing, file_bytes);
        found.extend(sharing_lines(&sharing, file_bytes));
    }
    if let Some(line) = profile_line(plan) {
        fields["profile"] = "cloud".into();
        found.push(line);
    }
    if plan.hdf5() == Hdf5Version::V18 {
        fields["hdf5"] = "1.8".into();
    }
    if let Some(averaged) = plan.averaged() {
        fields["averaged"] = averaged_json(averaged);
        found.extend(averaged_lines(averaged));
    }
    if let Some((files, bytes)) = restorable {
        fields["restorable"] = json!({"files": files, "bytes": bytes});
        let bytes = report::bytes(bytes);
        found.push(format!(
            "restorable: {files} files of {bytes}; the parts that the datasets do not contain are stored in addition"
        ));
    }
    Ending { warnings: plan.warnings(), damage: plan.damage(), found, fields, ..Ending::default() }.print(global, out)
}
