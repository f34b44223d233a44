//! `digest` prints fingerprints of the content of a table, which do not depend on how it is stored.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::blz::Arrays;
use ctds_hdf5::convert::{Digest, Hash, HashKind, Source, TableDigest};
use ctds_hdf5::documents::{self, DigestFiles};
use ctds_hdf5::pack::{Contents, Listing};
use ctds_hdf5::{Error, ErrorKind, Progress};

use crate::args::{External, Global, SOURCE, hash_kind};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::report;

/// Command-line arguments of `h5bridge digest`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge digest my.ms
  h5bridge digest my.h5 --json --columns DATA,FLAG")]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    /// Only columns with these names, in all tables
    #[arg(long, value_delimiter = ',')]
    columns: Vec<String>,
    /// Hash: blake3 gives CTFP-2, the fingerprints that conversions store; sha256 gives CTFP-1, as
    /// files of older programs store it
    #[arg(long, default_value = "blake3", value_parser = hash_kind(), value_name = "blake3|sha256", hide_possible_values = true)]
    hash: HashKind,
    #[command(flatten)]
    external: External,
}

/// Errors of columns are printed in place of their fingerprints; the first decides the status.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let progress = interrupts.stoppable(&());
    if Arrays::are_at(&args.source) {
        let digests = Arrays::open(&args.source)?.digest(args.hash, &progress)?;
        return print_files(args.hash, digests, global, out);
    }
    // opening a path into a native file gives the error
    let contents = match Source::split_path(&args.source) {
        Some(_) => Contents::Table,
        None => Contents::of(&args.source)?,
    };
    match contents {
        Contents::Container(files) => return digest_files(&files.listing()?, args.hash, &progress, global, out),
        Contents::File(file) => {
            let hash = file.hash(args.hash, &progress)?;
            return print_files(args.hash, [(file.listed.name, hash)], global, out);
        }
        _ => {}
    }
    let digest = Digest::new(&args.source).open_options(args.external.open_options(global)).hash(args.hash);
    let tables = digest.columns(args.columns).progress(&progress).run()?;
    let mut status = Status::Done;
    // a missing subtable is not part of the content
    let mut note = |error: &Error, missing_is_fine: bool| {
        if status == Status::Done && !(missing_is_fine && error.kind() == ErrorKind::NotFound) {
            status = if error.kind() == ErrorKind::Unsupported { Status::Unsupported } else { Status::Source };
        }
    };
    for (_, table) in &tables {
        match table {
            Ok(table) => {
                table.columns.iter().filter_map(|column| column.hash.as_ref().err()).for_each(|e| note(e, false));
            }
            Err(error) => note(error, true),
        }
    }
    if global.json {
        report::write_document(&documents::Digest::new(args.hash, &tables), out)?;
        return Ok(status);
    }
    for (name, table) in &tables {
        match table {
            Ok(table) => print(name, table, out)?,
            Err(error) => writeln!(out, "{name}: {error}")?,
        }
    }
    Ok(status)
}

/// Prints the hash of each file of a container, as `b3sum` and `sha256sum` do.
fn digest_files(
    listing: &Listing,
    kind: HashKind,
    progress: &dyn Progress,
    global: &Global,
    out: &mut impl Write,
) -> Result<Status> {
    let mut files = Vec::new();
    let mut written = Ok(());
    listing.digest(kind, progress, &mut |path, _, hash| {
        if global.json {
            files.push((path.to_owned(), hash));
        } else if written.is_ok() {
            written = writeln!(out, "{hash}  {path}");
        }
        Ok(())
    })?;
    written?;
    print_files(kind, files, global, out)
}

fn print_files(
    kind: HashKind,
    files: impl IntoIterator<Item = (String, Hash)>,
    global: &Global,
    out: &mut impl Write,
) -> Result<Status> {
    if global.json {
        report::write_document(&DigestFiles::new(kind, files), out)?;
        return Ok(Status::Done);
    }
    for (path, hash) in files {
        writeln!(out, "{hash}  {path}")?;
    }
    Ok(Status::Done)
}

fn print(name: &str, table: &TableDigest, out: &mut impl Write) -> Result<()> {
    writeln!(out, "{}  {name}  {} rows", table.hash, table.rows)?;
    for column in &table.columns {
        match &column.hash {
            Ok(hash) => writeln!(out, "  {hash}  {}", column.name)?,
            Err(error) => writeln!(out, "  {:64}  {}: {error}", "-", column.name)?,
        }
    }
    Ok(())
}
