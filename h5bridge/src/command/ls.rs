//! `ls` lists the files inside a container.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::blz::{ArrayInfo, Arrays, ChunkEntry};
use ctds_hdf5::documents::{Chunk, List};
use ctds_hdf5::pack::{Listed, Listing};
use ctds_hdf5::{ContainerInfo, Error, ErrorKind, FileLayout, Properties};
use serde_json::json;

use crate::args::Global;
use crate::exit::Status;
use crate::report;

/// Command-line arguments of `h5bridge ls`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge ls packed.ms
  h5bridge ls packed.ms -S --human-readable
  h5bridge ls packed.ms --summarize
  h5bridge ls packed.ms/table.mf --json
  h5bridge ls archive.h5/ANTENNA")]
pub(crate) struct Args {
    /// A table directory, a container, a path into one, or an array of BLZ, bcolz or bloscpack
    source: PathBuf,
    /// Order of the files within each directory or container
    #[arg(long, value_name = "ORDER", default_value = "none")]
    sort: Sort,
    /// Sort by size, largest first: --sort size
    #[arg(short = 'S', conflicts_with = "sort")]
    by_size: bool,
    /// Reverse the order of the files
    #[arg(short, long)]
    reverse: bool,
    /// Print sizes with units: 1.2 MiB
    #[arg(long)]
    human_readable: bool,
    /// Print a line with the number of files and their bytes at the end
    #[arg(short = 'c', long)]
    total: bool,
    /// Print only the number of files and their bytes
    #[arg(short, long)]
    summarize: bool,
}

/// Order in which `h5bridge ls` lists files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Files in alphabetical order, by name
    Name,
    /// Files with the most bytes first
    Size,
    /// Files that occupy the most bytes in the container first, counted after compression and in
    /// whole blocks
    Stored,
    /// Files in the order in which they are found in the container, without collecting them in
    /// memory
    None,
}

impl Args {
    fn order(&self) -> Sort {
        if self.by_size { Sort::Size } else { self.sort }
    }

    /// Whether all files of a container are collected and sorted before any is printed.
    fn is_ordered(&self) -> bool {
        self.order() != Sort::None || self.reverse
    }

    /// `key` returns the name of a file, its bytes, and the bytes occupied in the container.
    fn arrange<T>(&self, files: &mut [T], key: impl Fn(&T) -> (&str, u64, u64)) {
        match self.order() {
            Sort::Name => files.sort_by(|a, b| key(a).0.cmp(key(b).0)),
            Sort::Size => files.sort_by_key(|file| std::cmp::Reverse(key(file).1)),
            Sort::Stored => files.sort_by_key(|file| std::cmp::Reverse(key(file).2)),
            Sort::None => {}
        }
        if self.reverse {
            files.reverse();
        }
    }

    /// Aligned on the right; with a unit if `--human-readable` is given.
    fn size(&self, bytes: u64) -> String {
        let text = if self.human_readable { report::bytes(bytes) } else { bytes.to_string() };
        format!("{text:>12}")
    }

    fn arrange_listing(&self, listing: &mut Listing) {
        self.arrange(&mut listing.files, |file| (&file.name, file.len, file.layout.stored_bytes));
        listing.nested.iter_mut().for_each(|nested| self.arrange_listing(nested));
    }
}

/// Number of listed files, their bytes, and the bytes that they occupy in the container.
#[derive(Default)]
struct Total {
    files: u64,
    bytes: u64,
    stored: u64,
}

impl Total {
    fn add(&mut self, bytes: u64, stored: u64) {
        self.files += 1;
        self.bytes += bytes;
        self.stored += stored;
    }

    fn line(&self, args: &Args) -> String {
        let files = if self.files == 1 { "file" } else { "files" };
        let stored = args.size(self.stored);
        format!("  {}  total of {} {files}, {} stored", args.size(self.bytes), self.files, stored.trim_start())
    }
}

/// Prints file by file; if files are to be sorted, those of a container are first collected.
struct Printer<'a, W> {
    args: &'a Args,
    out: &'a mut W,
    /// Nesting depth of the container that holds the files to print next; 0 for the outermost.
    depth: usize,
    block_bytes: Option<u64>,
    kept: Vec<(String, u64, FileLayout)>,
    total: Total,
}

impl<W: Write> Printer<'_, W> {
    fn add(&mut self, listed: &Listed<'_>) -> io::Result<()> {
        match listed {
            Listed::File { name, len, layout } => {
                self.total.add(*len, layout.stored_bytes);
                if self.args.is_ordered() && !self.args.summarize {
                    self.kept.push(((*name).to_owned(), *len, (*layout).clone()));
                    return Ok(());
                }
            }
            _ => self.flush()?,
        }
        if let Listed::Container { depth, info, .. } = listed {
            (self.depth, self.block_bytes) = (*depth, info.block_bytes);
        }
        self.print(listed)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut kept = std::mem::take(&mut self.kept);
        self.args.arrange(&mut kept, |(name, len, layout)| (name, *len, layout.stored_bytes));
        kept.iter().try_for_each(|(name, len, layout)| self.print(&Listed::File { name, len: *len, layout }))
    }

    fn print(&mut self, listed: &Listed<'_>) -> io::Result<()> {
        if self.args.summarize {
            return Ok(());
        }
        print(listed, self.depth, self.block_bytes, self.args, self.out)
    }
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    if Arrays::are_at(&args.source) {
        return run_arrays(&args, global, out);
    }
    if global.json {
        let mut listing = Listing::open(&args.source)?;
        args.arrange_listing(&mut listing);
        report::write_document(&List::from(&listing), out)?;
        return Ok(Status::Done);
    }
    let mut printer =
        Printer { args: &args, out, depth: 0, block_bytes: None, kept: Vec::new(), total: Total::default() };
    let mut written = Ok(());
    let visited = Listing::visit(&args.source, &mut |listed| {
        written = printer.add(&listed);
        match written {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Interrupted, "the listing cannot be printed")),
        }
    });
    written?;
    visited?;
    printer.flush()?;
    if args.total || args.summarize {
        let line = printer.total.line(&args);
        writeln!(out, "{line}")?;
    }
    Ok(Status::Done)
}

pub(super) fn array_line(array: &ArrayInfo) -> String {
    let ArrayInfo { name, dtype, shape, chunk_rows, codec, checksum, .. } = array;
    let codec = codec.as_ref().map_or(String::new(), |codec| format!(", {codec}"));
    let checksum = checksum.as_ref().filter(|kind| *kind != "none").map_or(String::new(), |kind| format!(", {kind}"));
    format!("{:24} {dtype} {shape:?} in chunks of {chunk_rows} rows{codec}{checksum}", printable(name))
}

/// Chunks are not collected: an array can have millions. `--json` prints one line for each.
fn run_arrays(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    if args.is_ordered() {
        let message = "chunks of arrays are listed as they are found: -S, --sort and --reverse are for files";
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    let arrays = Arrays::open(&args.source)?;
    let list = arrays.list()?;
    let mut total = Total::default();
    if global.json {
        let names: Vec<&str> = list.iter().map(|array| array.name.as_str()).collect();
        let (name, format) = (args.source.display().to_string(), arrays.format().map(|format| format.name()));
        // the members of `ListChunks`
        writeln!(
            out,
            "{{\"name\": {}, \"format\": {}, \"arrays\": {}, \"chunks\": [",
            json!(name),
            json!(format),
            json!(names)
        )?;
    }
    if !global.json && !args.summarize {
        list.iter().try_for_each(|array| writeln!(out, "{}", array_line(array)))?;
    }
    let (mut written, mut is_first) = (Ok(()), true);
    let mut show = |chunk: ChunkEntry<'_>| {
        let ChunkEntry { array, file, number, bytes, stored_bytes, codec, .. } = &chunk;
        let (bytes, stored_bytes) = (*bytes, *stored_bytes);
        total.add(bytes, stored_bytes);
        written = if global.json {
            writeln!(out, "{}{}", if is_first { "" } else { "," }, json!(Chunk::from(&chunk)))
        } else if args.summarize {
            Ok(())
        } else {
            let name = printable(&format!("{array}/{file}"));
            let (size, stored) = (args.size(bytes), args.size(stored_bytes));
            writeln!(out, "  {size}  {name} {number}  {codec}, {} stored", stored.trim_start())
        };
        is_first = false;
        Ok(written.is_ok())
    };
    arrays.each_chunk(&mut show)?;
    written?;
    if global.json {
        writeln!(out, "]}}")?;
    } else if args.total || args.summarize {
        writeln!(out, "{}", total.line(args))?;
    }
    Ok(Status::Done)
}

/// Properties particular to a format, such as `sion_globalrank` of SIONlib files.
pub(super) fn property_lines(properties: &Properties) -> impl Iterator<Item = String> {
    properties.values.iter().map(|(name, value)| format!("  {name}: {}", json!(value)))
}

pub(super) fn describe(info: &ContainerInfo) -> String {
    let mut words = vec![info.format.to_owned()];
    words.extend(info.version.map(|version| format!("version {version}")));
    words.extend(info.block_bytes.map(|bytes| format!("blocks of {bytes} bytes")));
    words.extend(info.blocks.map(|blocks| format!("{blocks} blocks")));
    words.extend(info.free_blocks.filter(|&free| free > 0).map(|free| format!("{free} free")));
    words.extend(info.checksum.map(str::to_owned));
    words.join(", ")
}

/// Line for a container, a file in it, a symbolic link in an archive, or the date of a saved state
/// of cs.vt. `depth`: number of containers around it; `block_bytes`: block size of the container.
fn print(
    listed: &Listed<'_>,
    depth: usize,
    block_bytes: Option<u64>,
    args: &Args,
    out: &mut impl Write,
) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    match listed {
        Listed::Container { name, info, .. } => writeln!(out, "{indent}{}  {}", printable(name), describe(info)),
        Listed::File { name, len, layout } => {
            let words = describe_layout(layout, *len, block_bytes, args).join(", ");
            writeln!(out, "{indent}  {}  {}  {words}", args.size(*len), printable(name))
        }
        Listed::LeftOut { name, what } => {
            writeln!(out, "{indent}  {:>12}  {}  {}", "-", printable(name), printable(what))
        }
        Listed::History { name } => writeln!(out, "{indent}  entry {}", printable(name)),
        _ => Ok(()),
    }
}

/// The block size is only named if it differs from the container's, `block_bytes`.
fn describe_layout(layout: &FileLayout, len: u64, block_bytes: Option<u64>, args: &Args) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(bytes) = layout.block_bytes {
        words.push(format!("{} blocks", layout.blocks));
        words.extend((block_bytes != Some(bytes)).then(|| format!("of {bytes} bytes")));
    }
    let runs = layout.block_numbers.iter().map(|run| match run.end - run.start {
        1 => run.start.to_string(),
        _ => format!("{}-{}", run.start, run.end - 1),
    });
    let runs: Vec<_> = runs.collect();
    if !runs.is_empty() {
        words.push(format!("[{}]", runs.join(" ")));
    }
    words.extend(layout.index.clone());
    words.extend(layout.filters.iter().cloned());
    if layout.stored_bytes != len {
        words.push(format!("{} stored", args.size(layout.stored_bytes).trim_start()));
    }
    words
}

/// A name without control characters, which could be commands to the terminal.
pub(super) fn printable(name: &str) -> String {
    if name.is_empty() || name.chars().any(char::is_control) { format!("{name:?}") } else { name.to_owned() }
}
