//! `to-hdf5` writes a native HDF5 file from a table and its subtables.

mod describe;
mod written;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Arg;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ctds_hdf5::blz::{self, Arrays};
use ctds_hdf5::convert::{
    Averaging, Compress, Compression, DigestPolicy, HashKind, Hdf5Version, Predicate, Prediction, Profile, Reflink,
    Schema, ToHdf5, ToHdf5Plan,
};
use ctds_hdf5::pack::{Contents, PackFormat};
use ctds_hdf5::program::os::peak_memory;
use ctds_hdf5::{Context, documents};

use self::describe::{averaged_lines, profile_line, rounded, sharing_lines, table_lines};
use self::written::Written;
use super::{link, pack};
use crate::args::{External, Global, Publishing, SOURCE, hash_kind, size};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending, Salvaging};

/// Command-line arguments of `h5bridge to-hdf5`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-hdf5 my.ms
  h5bridge to-hdf5 my.ms my.h5 --columns TIME,UVW,DATA --rows 0..10000
  h5bridge to-hdf5 my.ms my.h5 --where 'DATA_DESC_ID == 0 && TIME > \"2014-04-22T10:30:00\"'
  h5bridge to-hdf5 my.ms my.h5 --average time=10s,chan=4
  h5bridge to-hdf5 my.ms my.h5 --dry-run")]
#[command(mut_args(heading))]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    /// The HDF5 file to write; without it, my.h5 beside my.ms
    #[arg(value_name = "OUT")]
    given_out: Option<PathBuf>,
    #[arg(skip)]
    out: PathBuf,
    #[command(flatten)]
    chosen: Chosen,
    /// Convert only the rows that satisfy a condition
    ///
    /// The condition is on scalar columns of the main table, such as 'FIELD_ID == "3C286" &&
    /// SCAN_NUMBER in 3..=5' (h5bridge help selecting).
    #[arg(long = "where", value_name = "CONDITION")]
    predicate: Option<Predicate>,
    /// Average visibilities in time, frequency, or both
    ///
    /// The average of a MeasurementSet is weighted and without flagged samples: of rows of a
    /// baseline in bins of time, of neighbouring channels, or both.
    #[arg(long, value_name = "time=10s,chan=4", conflicts_with_all = ["restorable", "salvage"])]
    average: Option<Averaging>,
    /// Rows of a table, or the axes of MSv4
    ///
    /// The large columns of a MeasurementSet are stored as rows (native), or by time, baseline,
    /// frequency and polarization (msv4), as xarray and xradio have them.
    #[arg(long, value_enum, default_value_t = SchemaName::Native, hide_possible_values = true, value_name = "native|msv4", conflicts_with = "replace")]
    schema: SchemaName,
    #[arg(long, default_value = "auto", value_parser = compress_or_keep, help = "none, gzip[:1-9], zstd[:1-22], lz4, auto, shared or keep", long_help = keep_help())]
    compress: CompressOrKeep,
    /// With --compress shared: share bytes with the source
    ///
    /// Bytes are shared by reflinks where possible (auto), or always, which fails where it is not
    /// possible, or never; the content of OUT is the same.
    #[arg(long, default_value = "auto", value_parser = reflink(), value_name = "WHEN")]
    reflink: Reflink,
    /// Lay out the file for a disk or an object store
    ///
    /// In a file for an object store (cloud), chunks have 4 MiB, and all metadata is together in a
    /// few pages.
    #[arg(long, value_enum, default_value_t = ProfileName::Default, hide_possible_values = true, value_name = "default|cloud")]
    profile: ProfileName,
    /// The oldest HDF5 that reads the file
    ///
    /// 1.8 is also for readers that know no newer structures, such as jsfive and pyfive; h5bridge
    /// lint tells what each reader needs.
    #[arg(long, default_value = "1.10", value_parser = hdf5_version(), value_name = "1.8|1.10")]
    hdf5: Hdf5Version,
    /// Replace SOURCE by a thin table whose tiles are in OUT
    ///
    /// The data is then stored once (docs/howto/share.md). SOURCE, a table directory, is replaced
    /// in one step, after OUT and the thin table were compared with it. OUT is written as by
    /// --compress shared.
    #[arg(long, conflicts_with_all = ["columns", "exclude", "rows", "predicate", "tables", "appendable", "restorable", "quicklook", "salvage", "dry_run", "dtype", "digest", "no_digest", "max_memory"])]
    replace: bool,
    /// With --replace: let programs write to the thin table
    ///
    /// Cells of the new SOURCE whose tiles are in OUT are then written into OUT.
    #[arg(long, requires = "replace")]
    writable: bool,
    /// Make all datasets appendable along the row axis
    #[arg(long)]
    appendable: bool,
    /// Also store what `to-ms --exact` needs
    ///
    /// It restores the original directory, every file and every byte.
    #[arg(long)]
    restorable: bool,
    /// With --restorable: the hash of each original file
    ///
    /// sha256 is for archives whose rules ask for it.
    #[arg(long, default_value = "blake3", value_parser = hash_kind(), value_name = "blake3|sha256", hide_possible_values = true, requires = "restorable")]
    checksum: HashKind,
    /// Add small versions of the visibilities, as heat maps
    ///
    /// They are by time and channel, in the group quicklook, for HDFView and H5Web.
    #[arg(long)]
    quicklook: bool,
    /// Store files of a container as arrays of this type
    ///
    /// Elements are little-endian; the type is named as in numpy: f4, int32. Without it, files are
    /// stored as bytes.
    #[arg(long, value_name = "f4")]
    dtype: Option<String>,
    #[command(flatten)]
    publishing: Publishing,
    /// Print what would be written, and write nothing
    ///
    /// Tables, columns, chunks, and the expected size, time and memory are shown. If OUT would have
    /// more than 16 MiB, its disk is measured with 32 MiB that are not kept.
    #[arg(long)]
    dry_run: bool,
    /// Threads that decode and compress; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Limit of the memory for data, in bytes: 512M, 2G
    #[arg(long, default_value = "256M", value_parser = memory, value_name = "256M")]
    max_memory: u64,
    /// Leave out damaged parts of SOURCE, and name them
    ///
    /// The rest is converted; the exit code is then 6.
    #[arg(long, conflicts_with = "restorable")]
    salvage: bool,
    /// Store digests of the content
    ///
    /// That is the default, except with --compress none or shared.
    #[arg(long)]
    digest: bool,
    /// Store no digests of the content
    #[arg(long, conflicts_with_all = ["digest", "restorable"])]
    no_digest: bool,
    #[command(flatten)]
    external: External,
}

/// Options of `to-hdf5` and of `shard plan` that choose the columns, rows and tables to convert.
#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// Convert only these columns
    ///
    /// DATA is a column of the main table, ANTENNA/NAME of a subtable; tables without a named
    /// column stay whole.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub(crate) columns: Vec<String>,
    /// Leave out these columns, named in the same way as for --columns
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub(crate) exclude: Vec<String>,
    /// Convert only the rows A..B of the main table
    ///
    /// Rows are counted from 0; B is the first that is left out.
    #[arg(long, value_name = "A..B", value_parser = row_range)]
    pub(crate) rows: Option<Range<u64>>,
    /// Convert only these tables; MAIN is the main one
    #[arg(long, value_delimiter = ',', value_name = "MAIN,ANTENNA")]
    pub(crate) tables: Vec<String>,
}

impl Chosen {
    pub(crate) fn of<'a>(&self, convert: ToHdf5<'a>) -> ToHdf5<'a> {
        let convert = convert.columns(&self.columns).exclude(&self.exclude).tables(&self.tables);
        match &self.rows {
            Some(rows) => convert.rows(rows.clone()),
            None => convert,
        }
    }
}

fn reflink() -> impl TypedValueParser<Value = Reflink> {
    PossibleValuesParser::new(["auto", "always", "never"]).map(|word| match word.as_str() {
        "always" => Reflink::Always,
        "never" => Reflink::Never,
        _ => Reflink::Auto,
    })
}

/// The oldest HDF5 that can read the file.
fn hdf5_version() -> impl TypedValueParser<Value = Hdf5Version> {
    PossibleValuesParser::new(["1.8", "1.10"]).try_map(|word| word.parse::<Hdf5Version>())
}

/// Values of `to-hdf5 --profile`, which lays out the HDF5 file for reading from a disk (`Default`)
/// or from an object store (`Cloud`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProfileName {
    Default,
    Cloud,
}

/// Values of `to-hdf5 --schema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SchemaName {
    Native,
    Msv4,
}

impl From<SchemaName> for Schema {
    fn from(name: SchemaName) -> Self {
        match name {
            SchemaName::Native => Schema::Native,
            SchemaName::Msv4 => Schema::Msv4,
        }
    }
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Default => Profile::Disk,
            ProfileName::Cloud => Profile::Cloud,
        }
    }
}

/// `A..B`: from row A, counted from 0, up to but without row B.
fn row_range(text: &str) -> Result<Range<u64>> {
    let (start, end) = text.split_once("..").ok_or_else(|| anyhow!("expected A..B"))?;
    let range = start.trim().parse()?..end.trim().parse()?;
    if range.start > range.end { Err(anyhow!("the first row comes after the last")) } else { Ok(range) }
}

/// `zstd`, `none` …
pub(crate) fn compress(text: &str) -> Result<Compress, String> {
    let more = |message: &str| if message.starts_with("expected ") { ", or auto, shared" } else { "" };
    text.parse::<Compress>().map_err(|error| format!("{}{}", error.message(), more(error.message())))
}

pub(crate) fn compress_help() -> String {
    format!(
        "{}; auto: what every HDF5 reader has, where it gains; shared: auto, but tiles of numbers stay as they are",
        Compression::forms()
    )
}

/// `keep` copies the compressed chunks of Blosc arrays unchanged.
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

/// Bytes that a conversion may hold in memory.
pub(crate) fn memory(text: &str) -> Result<u64> {
    let bytes = size(text)?;
    if bytes < 64 << 20 { Err(anyhow!("at least 64M are needed")) } else { Ok(bytes) }
}

impl Args {
    /// Refuses an existing OUT, and options that exclude each other for every kind of source.
    fn validate(&self) -> Result<()> {
        if self.out.extension().is_some_and(|end| end == "zarr") {
            return Err(usage(format!(
                "{}: to-hdf5 writes HDF5, not Zarr: name an OUT such as my.h5, or let xarray write Zarr: \
                 xarray.open_datatree({:?}, engine=\"h5bridge\", schema=\"msv4\").to_zarr({:?})",
                self.out.display(),
                self.source,
                self.out,
            )));
        }
        if !self.dry_run {
            report::check_target(&self.out, self.publishing.overwrite)?;
        }
        if self.replace && self.hdf5 == Hdf5Version::V18 {
            return Err(usage("--replace: a thin table needs datasets in one block, which HDF5 1.8 does not have"));
        }
        Ok(())
    }

    fn replacement(&self) -> link::Replacement {
        link::Replacement { writable: self.writable, threads: self.threads, publishing: self.publishing }
    }

    /// Whether SOURCE is a container or a file that does not hold a table.
    fn is_of_files(&self) -> Result<bool> {
        match Contents::of(&self.source) {
            Ok(Contents::Container(_) | Contents::File(_)) => Ok(true),
            Ok(_) => Ok(false),
            Err(_) if self.salvage && Contents::can_be_salvaged(&self.source) => Ok(true),
            Err(error) => Err(pack::suggest(error, self.salvage, &self.source)),
        }
    }

    /// The compression of tables. Refuses options that a table does not have.
    fn compression_of_tables(&self) -> Result<Compress> {
        if self.dtype.is_some() {
            let message = format!("--dtype is for files of a container; {} is a table", self.source.display());
            return Err(usage(message));
        }
        let compress = self.without_keep()?;
        if self.reflink == Reflink::Always && compress != Compress::Shared {
            return Err(usage(
                "--reflink always: only a file made with --compress shared shares bytes with its source",
            ));
        }
        Ok(compress)
    }

    /// The compression of the files of a container that is not a table; without the option, none.
    fn compression_of_files(&self) -> Result<Compression> {
        match self.without_keep()? {
            Compress::With(compression) => Ok(compression),
            Compress::Auto => Ok(Compression::NONE),
            Compress::Shared => {
                Err(usage(format!("--compress shared is for tables; {} is none", self.source.display())))
            }
        }
    }

    /// `keep` is an error: only arrays in Blosc chunks can have it.
    fn without_keep(&self) -> Result<Compress> {
        match self.compress {
            CompressOrKeep::Compress(compress) => Ok(compress),
            CompressOrKeep::Keep => {
                Err(usage(format!("--compress keep is for arrays; {} is none", self.source.display())))
            }
        }
    }

    /// `what` is the kind of source in the message.
    fn check_no_table_options(&self, what: &str) -> Result<()> {
        let of_tables = [
            (!self.chosen.columns.is_empty(), "--columns"),
            (!self.chosen.exclude.is_empty(), "--exclude"),
            (self.chosen.rows.is_some(), "--rows"),
            (self.predicate.is_some(), "--where"),
            (self.average.is_some(), "--average"),
            (!self.chosen.tables.is_empty(), "--tables"),
            (self.profile != ProfileName::Default, "--profile"),
            (self.hdf5 != Hdf5Version::V110, "--hdf5"),
            (self.schema != SchemaName::Native, "--schema"),
            (self.appendable, "--appendable"),
            (self.restorable, "--restorable"),
            (self.quicklook, "--quicklook"),
            (self.reflink != Reflink::Auto, "--reflink"),
            (self.dry_run, "--dry-run"),
            (self.digest, "--digest"),
        ];
        match of_tables.iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(usage(format!("{option} is for tables; {} is {what}", self.source.display()))),
            None => Ok(()),
        }
    }

    fn conversion<'a>(&self, compress: Compress, global: &Global) -> ToHdf5<'a> {
        let digest = match (self.digest, self.no_digest) {
            (true, _) => DigestPolicy::Always,
            (_, true) => DigestPolicy::Never,
            _ => DigestPolicy::Auto,
        };
        let mut to_hdf5 = self
            .chosen
            .of(ToHdf5::new(&self.source))
            .open_options(self.external.open_options(global))
            .compression(compress)
            .reflink(self.reflink)
            .profile(self.profile.into())
            .hdf5(self.hdf5)
            .schema(self.schema.into())
            .appendable(self.appendable)
            .restorable(self.restorable)
            .checksum(self.checksum)
            .quicklook(self.quicklook)
            .digest(digest)
            .salvage(self.salvage)
            .threads(self.threads)
            .max_memory(self.max_memory)
            .if_exists(self.publishing.if_exists())
            .sync(self.publishing.sync);
        if let Some(predicate) = &self.predicate {
            to_hdf5 = to_hdf5.rows_where(predicate.clone());
        }
        if let Some(averaging) = self.average {
            to_hdf5 = to_hdf5.average(averaging);
        }
        to_hdf5
    }

    /// Line with the command that compares OUT. Averages are compared with their digests only.
    fn next_step(&self, is_averaged: bool) -> String {
        let (source, target) = (self.source.display(), self.out.display());
        if is_averaged {
            return format!("next: h5bridge verify {target}");
        }
        let quoted = |predicate: &Predicate| format!(" --where {}", report::quoted(&predicate.to_string()));
        let condition = self.predicate.as_ref().map(quoted).unwrap_or_default();
        format!("next: h5bridge verify {source} {target}{condition}")
    }
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Usage, message).into()
}

/// The heading of `to-hdf5 --help` under which an option stands.
fn heading(arg: Arg) -> Arg {
    let heading = match arg.get_id().as_str() {
        "columns" | "exclude" | "rows" | "tables" | "predicate" | "average" => "What",
        "schema" | "compress" | "reflink" | "profile" | "hdf5" | "replace" | "writable" | "appendable"
        | "restorable" | "checksum" | "quicklook" | "dtype" => "Layout",
        "overwrite" | "sync" | "dry_run" | "digest" | "no_digest" | "salvage" | "follow_external" => "Safety",
        "threads" | "max_memory" => "Speed",
        _ => return arg,
    };
    arg.help_heading(heading)
}

/// `my.h5` beside `my.ms`, `3C286.cal.h5` beside `3C286.cal`; for an address, in the current
/// directory. `Usage` for HDF5 files, and sources without a name or in a table or container.
fn named_after(source: &Path) -> Result<PathBuf> {
    let missing = |why| usage(format!("{}: {why}: name OUT, the HDF5 file to write", source.display()));
    let is_address = source.to_string_lossy().contains("://");
    let name = source.file_name().ok_or_else(|| missing("the source has no name"))?;
    let has =
        |words: &[&str]| source.extension().is_some_and(|end| words.iter().any(|word| end.eq_ignore_ascii_case(word)));
    if has(&["h5", "hdf5"]) {
        return Err(missing("the source is an HDF5 file by its name"));
    }
    let name = if has(&["ms", "mf"]) {
        Path::new(name).with_extension("h5")
    } else {
        [name, "h5".as_ref()].join(".".as_ref()).into()
    };
    match source.parent() {
        Some(folder) if !is_address => {
            if folder.is_file() || folder.join("table.dat").exists() {
                return Err(missing("the source is part of a container or of another table"));
            }
            Ok(folder.join(name))
        }
        _ => Ok(name),
    }
}

pub(crate) fn run(mut args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    args.out = args.given_out.take().map_or_else(|| named_after(&args.source), Ok)?;
    args.validate()?;
    if args.replace {
        return link::replace(&args.source, &args.out, &args.replacement(), global, out);
    }
    if Arrays::are_at(&args.source) {
        return arrays_to_hdf5(&args, global, out);
    }
    if args.is_of_files()? {
        return files_to_hdf5(&args, global, out);
    }
    tables_to_hdf5(&args, started, global, out)
}

fn tables_to_hdf5(args: &Args, started: Instant, global: &Global, out: &mut impl Write) -> Result<Status> {
    let compress = args.compression_of_tables()?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    // a search for damage and for bins takes long
    let stoppable = interrupts.stoppable(&());
    let suggest = |error: ctds_hdf5::Error| {
        let options = options_after(&error, args.restorable);
        report::suggest(error, Salvaging::of_tables(args.salvage, &args.source), options)
    };
    let plan = args.conversion(compress, global).progress(&stoppable).plan().map_err(suggest)?;
    if args.dry_run {
        return print_plan(&plan, &args.out, global, out);
    }
    if global.verbose > 0 {
        plan.tables().iter().flat_map(table_lines).for_each(|line| tracing::info!("{line}"));
    }
    let expected = plan.prediction();
    let bar = Bar::new(plan.bytes(), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let plan = plan.progress(&stoppable);
    let summary = plan.write(&args.out);
    bar.finish();
    let summary = summary.map_err(|error| report::stopped(suggest(error), &args.source, &args.out))?;
    let seconds = started.elapsed().as_secs_f64();
    let written = Written { plan: &plan, summary: &summary, target: &args.out, expected, seconds };
    let mut lines = written.lines();
    lines.push(args.next_step(plan.averaged().is_some()));
    Ending {
        warnings: &summary.warnings,
        summary: lines,
        plugins: compress.plugin().into_iter().collect(),
        damage: &summary.damage,
        ..Ending::default()
    }
    .print(global, out, || documents::ToHdf5::new(&args.out, &plan, &summary, expected, seconds, peak_memory()))
}

/// The chunks of the datasets are those of the arrays.
fn arrays_to_hdf5(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    args.check_no_table_options("an array")?;
    if args.dtype.is_some() {
        return Err(usage("an array has a type: --dtype is for files"));
    }
    let arrays = Arrays::open(&args.source)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(arrays.bytes(), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let keep = matches!(args.compress, CompressOrKeep::Keep);
    let compression = if keep { Compression::NONE } else { args.compression_of_files()? };
    let to_hdf5 = blz::ToHdf5::new(&arrays)
        .compression(compression)
        .keep_chunks(keep)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync);
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
        plugins: if keep { vec![Compression::blosc_plugin()] } else { compression.plugin().into_iter().collect() },
        ..Ending::default()
    }
    .print(global, out, || documents::ToHdf5Arrays::new(&args.out, &summary, seconds, peak_memory()))
}

/// Writes the files of a container that is not a table as datasets of bytes.
fn files_to_hdf5(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    args.check_no_table_options("a container of other files")?;
    pack::write(&args.source, &args.out, global, out, args.compression_of_files()?, |mut pack| {
        if let Some(dtype) = &args.dtype {
            pack = pack.dtype(dtype);
        }
        pack.format(PackFormat::HDF5)
            .salvage(args.salvage)
            .if_exists(args.publishing.if_exists())
            .sync(args.publishing.sync)
    })
}

/// The options that leave out the damaged column or all damaged parts.
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

fn print_plan(plan: &ToHdf5Plan<'_>, target: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let memory = plan.peak_memory();
    let expected = plan.prediction_at(target);
    let restorable = plan.restorable()?;
    let mut document = documents::ToHdf5DryRun::new(plan, expected);
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
        document.sharing = Some(documents::Sharing::new(&sharing, file_bytes));
        found.extend(sharing_lines(&sharing, file_bytes));
    }
    if let Some(line) = profile_line(plan) {
        found.push(line);
    }
    if let Some(averaged) = plan.averaged() {
        found.extend(averaged_lines(averaged));
    }
    if let Some((files, bytes)) = restorable {
        document.restorable = Some(documents::Restorable { files, bytes });
        let bytes = report::bytes(bytes);
        found.push(format!(
            "restorable: {files} files of {bytes}; the parts that the datasets do not contain are stored in addition"
        ));
    }
    Ending { warnings: plan.warnings(), damage: plan.damage(), found, ..Ending::default() }
        .print(global, out, || document)
}
