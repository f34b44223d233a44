//! `h5bridge pack` writes the files of a table into containers, which are files that hold other
//! files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ctds_hdf5::blz::{ArrayFormat, Arrays, Export};
use ctds_hdf5::pack::{
    Contents, Elsewhere, FilesEvent, FilesFollowed, FollowFiles, Listing, Pack, PackFormat, PackSummary,
};
use ctds_hdf5::program::os::peak_memory;
use ctds_hdf5::{Compression, Error, ErrorKind, HashKind, documents};

use crate::args::{Global, Publishing, duration, hash_kind, size};
use crate::exit::Status;
use crate::interrupt::{Interrupts, Stop};
use crate::progress::Bar;
use crate::report::{self, Ending, Salvaging};
use crate::stderr;

/// Command-line arguments of `h5bridge pack`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge pack my.ms packed.ms
  h5bridge pack my.ms archive.h5 --single-file --compress gzip --crc
  h5bridge pack packed.ms again.ms --format multihdf5
  h5bridge pack streams run.sion --format sion
  h5bridge pack my.ms /archive/my.vt --format vt
  h5bridge pack my.ms live.mfh5 --follow --until-closed
  h5bridge pack my.h5/group/data data.bcolz --format bcolz --compress zstd")]
pub(crate) struct Args {
    /// A table directory, packed or not, or a single file that holds a whole table. The formats
    /// hdf5, vt and sion accept any directory or container; blz, bcolz and bloscpack accept an
    /// array or a dataset in an HDF5 file
    source: PathBuf,
    /// The table directory to create, or with --single-file the file; with --format vt the archive
    /// (of the Python package cs.vt) to create or to extend
    out: PathBuf,
    /// Kind of container. Casacore 3.6 and later read multifile, every casacore since 2.0
    /// multifile1; casacore built with HDF5 reads multihdf5, the default with --single-file and
    /// --compress. hdf5 and sion (SIONlib) are single files. vt adds an entry to an archive of the
    /// Python package cs.vt, whose blocks are in a directory (store) beside it. blz, bcolz and
    /// bloscpack hold arrays in Blosc chunks
    #[arg(long, value_parser = formats())]
    format: Option<Format>,
    /// Size in bytes of the blocks in which a container stores files, at least 128; 1M by default,
    /// less for small tables, and 64K with --follow
    #[arg(long, value_parser = size, value_name = "1M")]
    block_size: Option<u64>,
    /// Store a checksum for each block: CRC-32 in MultiFile, Fletcher32 in MultiHDF5
    #[arg(long)]
    crc: bool,
    /// Hash that a single multihdf5 file records of each file: blake3 (default), or sha256 for
    /// archives whose rules ask for it
    #[arg(long, value_parser = hash_kind(), value_name = "blake3|sha256", hide_possible_values = true)]
    checksum: Option<HashKind>,
    #[arg(long, default_value = "none", value_parser = compress, help = compress_help())]
    compress: Compression,
    /// Write one file for everything, subtables included; casacore cannot open it
    #[arg(long)]
    single_file: bool,
    #[command(flatten)]
    publishing: Publishing,
    /// Leave out files that cannot be read, name them, and pack the rest; the exit code is then 6
    #[arg(long)]
    salvage: bool,
    /// Pack also the tables in other places that hold rows, columns or subtables of SOURCE, as
    /// parts of OUT that it names; by default a warning names them, and with --strict nothing is
    /// packed
    #[arg(long)]
    follow_references: bool,
    /// Keep OUT, a single multihdf5 file, in step with a table that another program is writing,
    /// byte for byte, until Ctrl-C: readers of OUT see the newest commit. h5bridge finalize makes
    /// an ordinary container of it; h5bridge follow copies rows instead, to a file for plots
    #[arg(long, conflicts_with_all = ["crc", "checksum", "compress", "salvage", "follow_references"])]
    follow: bool,
    /// With --follow: stop when no other program has the table open
    #[arg(long, requires = "follow")]
    until_closed: bool,
    /// With --follow: stop when nothing has changed for this time: 60s, 5m
    #[arg(long, requires = "follow", value_name = "TIME", value_parser = duration)]
    idle: Option<Duration>,
    /// With --follow: look for changes at this interval, 1s by default
    #[arg(long, requires = "follow", value_name = "TIME", value_parser = duration)]
    poll: Option<Duration>,
    /// With --follow: flush to disk (fsync) at each commit
    #[arg(long, requires = "follow")]
    fsync: bool,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    /// Such as casacore's MultiFile.
    Container(PackFormat),
    Arrays(ArrayFormat),
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let names = PackFormat::all().map(PackFormat::name).chain(ArrayFormat::ALL.map(ArrayFormat::name));
    PossibleValuesParser::new(names).try_map(|name| {
        let of_arrays = || name.parse().map(Format::Arrays);
        name.parse().map(Format::Container).or_else(|_: Error| of_arrays())
    })
}

fn compress(text: &str) -> Result<Compression, String> {
    text.parse::<Compression>().map_err(|error| error.message().to_owned())
}

fn compress_help() -> String {
    format!("{}; multihdf5, and formats of arrays but for lzf and their default", Compression::forms())
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    if args.follow {
        return follow(&args, global, out);
    }
    let format = match args.format {
        Some(Format::Arrays(format)) => {
            let of_containers = [
                (args.crc, "--crc"),
                (args.checksum.is_some(), "--checksum"),
                (args.single_file, "--single-file"),
                (args.block_size.is_some(), "--block-size"),
                (args.salvage, "--salvage"),
                (args.follow_references, "--follow-references"),
            ];
            if let Some((_, option)) = of_containers.iter().find(|(given, _)| *given) {
                let message = format!("{option} is for containers; {format} has arrays");
                return Err(Error::new(ErrorKind::Usage, message).into());
            }
            return export(&args.source, &args.out, global, out, |export| {
                export
                    .format(format)
                    .compression(args.compress)
                    .if_exists(args.publishing.if_exists())
                    .sync(args.publishing.sync)
            });
        }
        Some(Format::Container(format)) => Some(format),
        None => None,
    };
    write(&args.source, &args.out, global, out, args.compress, |mut pack| {
        pack = pack
            .checksums(args.crc)
            .single_file(args.single_file)
            .salvage(args.salvage)
            .follow_references(args.follow_references)
            .if_exists(args.publishing.if_exists())
            .sync(args.publishing.sync);
        if let Some(format) = format {
            pack = pack.format(format);
        }
        if let Some(kind) = args.checksum {
            pack = pack.checksum(kind);
        }
        if let Some(bytes) = args.block_size {
            pack = pack.block_bytes(bytes);
        }
        pack
    })
}

/// Runs until a signal, or `--until-closed` or `--idle`, ends it.
fn follow(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let is_other = |format| !matches!(format, Format::Container(format) if format == PackFormat::MULTI_HDF5);
    if args.format.is_some_and(is_other) {
        return Err(Error::new(ErrorKind::Usage, "--follow writes the format multihdf5, and no other").into());
    }
    let stop = Stop::new(global.caller.as_ref())?;
    let mut follow = FollowFiles::new(&args.source, &args.out)
        .durable(args.fsync)
        .overwrite(args.publishing.overwrite)
        .sync(args.publishing.sync)
        .until_closed(args.until_closed)
        .idle(args.idle)
        .cancel(&stop.token());
    if let Some(every) = args.poll {
        follow = follow.poll(every);
    }
    if let Some(bytes) = args.block_size {
        follow = follow.block_bytes(bytes);
    }
    let started = Instant::now();
    let observe = |event: FilesEvent<'_>| match event {
        FilesEvent::Started { replaces } if !global.quiet => {
            let verb = if replaces { "replacing" } else { "writing" };
            stderr::line(format_args!("following {}, {verb} {}", args.source.display(), args.out.display()));
        }
        FilesEvent::Note(note) if global.caller.is_none() => report::warning(note),
        _ => {}
    };
    let followed = follow.run(observe).map_err(|error| report::stopped(error, &args.source, &args.out))?;
    let FilesFollowed { files, bytes, stored_bytes, commits, notes: warnings, .. } = &followed;
    let seconds = started.elapsed().as_secs_f64();
    let (size, stored, target) = (report::bytes(*bytes), report::bytes(*stored_bytes), args.out.display());
    let mut summary = vec![format!("{target}: {files} files of {size} in {stored}, {commits} commits, {seconds:.1} s")];
    if stop.is_set() {
        summary.push(format!("interrupted; {target} is whole, the same command begins a new one in its place"));
    }
    summary.push(format!("next: h5bridge finalize {target} OUT.ms"));
    Ending { warnings, warned: true, summary, ..Ending::default() }
        .print(global, out, || documents::PackFollow::new(&args.out, &followed, seconds, peak_memory()))
}

/// Writes arrays in Blosc chunks, and prints a summary; `options` configures the export.
pub(super) fn export(
    source: &Path,
    target: &Path,
    global: &Global,
    out: &mut impl Write,
    options: impl FnOnce(Export<'_>) -> Export<'_>,
) -> Result<Status> {
    let started = Instant::now();
    let arrays = Arrays::open(source)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(arrays.bytes(), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let summary = options(Export::new(&arrays).progress(&stoppable)).write(target);
    bar.finish();
    let summary = summary.map_err(|error| report::stopped(error, source, target))?;
    let seconds = started.elapsed().as_secs_f64();
    let (size, stored) = (report::bytes(summary.bytes), report::bytes(summary.stored_bytes));
    Ending {
        summary: vec![
            format!(
                "{}: {} arrays in {}; {size} of data in {stored}",
                target.display(),
                summary.arrays,
                summary.format
            ),
            report::speed(summary.bytes, seconds),
            format!("next: h5bridge verify {} {}", source.display(), target.display()),
        ],
        ..Ending::default()
    }
    .print(global, out, || documents::PackArrays::new(target, &summary, seconds, peak_memory()))
}

/// `options` sets all options but the compression.
pub(super) fn write(
    source: &Path,
    target: &Path,
    global: &Global,
    out: &mut impl Write,
    compression: Compression,
    options: impl FnOnce(Pack<'_>) -> Pack<'_>,
) -> Result<Status> {
    let started = Instant::now();
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let pack = Pack::new(source).open_options(global.open_options()).compression(compression).progress(&stoppable);
    let pack = options(pack);
    let (followed, is_salvaged) = (pack.follows_references(), pack.is_salvaging());
    if global.strict {
        let elsewhere = pack.elsewhere().map_err(|error| suggest(error, is_salvaged, source))?;
        if !elsewhere.is_empty() {
            return refuse(&elsewhere, global, out);
        }
    }
    let summary = pack.write(target);
    bar.finish();
    // packed references name their tables by other paths
    let bytes = if followed { "" } else { "--bytes " };
    let next = format!("h5bridge verify {bytes}{} {}", source.display(), target.display());
    let summary = summary.map_err(|error| report::stopped(suggest(error, is_salvaged, source), source, target))?;
    finish(&summary, target, started, &next, compression, "packed; --follow-references packs it as well", global, out)
}

/// Nothing was packed, with `--strict`, because the source needs tables that would be left out.
fn refuse(elsewhere: &[Elsewhere], global: &Global, out: &mut impl Write) -> Result<Status> {
    let warnings = left_out(elsewhere, "packed; --follow-references packs it as well");
    Ending {
        failed: Some(Status::Warnings),
        warnings: &warnings,
        summary: vec!["nothing was packed (--strict)".to_owned()],
        ..Ending::default()
    }
    .print(global, out, || documents::PackRefused::from(elsewhere.to_vec()))
}

/// Warnings about tables that the files need but that were not treated; `how` names the treatment.
pub(super) fn left_out(elsewhere: &[Elsewhere], how: &str) -> Vec<String> {
    let warning = |table: &Elsewhere| match table.is_missing {
        true => format!("{table}, which is missing"),
        false => format!("{table}, which is not {how}"),
    };
    elsewhere.iter().map(warning).collect()
}

/// Hints at `--salvage`, unless the source is a single file whose list of files is unreadable.
pub(super) fn suggest(error: ctds_hdf5::Error, is_given: bool, source: &Path) -> anyhow::Error {
    let helps = !is_given && (source.is_dir() || Listing::open(source).is_ok() || Contents::can_be_salvaged(source));
    report::suggest(error, Salvaging { is_given: false, helps }, report::SALVAGE_FILES)
}

/// Names files that were left out; `how` names the treatment.
#[expect(clippy::too_many_arguments, reason = "each is a fact of one call")]
pub(super) fn finish(
    summary: &PackSummary,
    target: &Path,
    started: Instant,
    next: &str,
    compression: Compression,
    how: &str,
    global: &Global,
    out: &mut impl Write,
) -> Result<Status> {
    let seconds = started.elapsed().as_secs_f64();
    let (bytes, stored) = (report::bytes(summary.bytes), report::bytes(summary.stored_bytes));
    let named = summary.damage.iter().map(|damage| format!("damaged, left out: {damage}"));
    let elsewhere = left_out(&summary.elsewhere, how);
    let warnings: Vec<String> = summary.warnings.iter().cloned().chain(named).chain(elsewhere).collect();
    Ending {
        warnings: &warnings,
        damage: &summary.damage,
        summary: vec![
            format!("{}: {} files of {bytes} in {stored}", target.display(), summary.files),
            report::speed(summary.bytes, seconds),
            format!("next: {next}"),
        ],
        shared: summary.shared_bytes,
        plugins: compression.plugin().into_iter().collect(),
        ..Ending::default()
    }
    .print(global, out, || documents::Pack::new(target, summary, seconds, peak_memory()))
}
