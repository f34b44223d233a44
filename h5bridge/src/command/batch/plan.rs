//! `batch plan` writes a manifest, the list of items (jobs) of a batch, from patterns of the
//! sources' paths or from a list of them.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use ctds_hdf5::documents::BatchPlan;
use ctds_hdf5::{Error, ErrorKind};

use crate::args::Global;
use crate::batch::{Plan, Planned};
use crate::exit::Status;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge batch plan`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge batch plan 'archive/**/*.ms' --to 'out/{path}/{stem}.h5' --out all.ndjson -- --compress none
  h5bridge batch plan 'out/**/*.h5' --verb verify --out check.ndjson
  find archive -name '*.ms' -prune | h5bridge batch plan --from - --to 'out/{stem}.h5' >all.ndjson")]
pub(super) struct Args {
    /// Sources, or patterns of their paths in quotes: * in names, ** for any directories. Nothing
    /// inside a directory that matches is searched
    #[arg(required_unless_present = "from")]
    patterns: Vec<String>,
    /// Read the sources from a file, - is stdin: each line is a path, or a JSON object with
    /// "source" and, if they differ from those of the command line, "target", "verb", "options"
    #[arg(long, value_name = "FILE", conflicts_with = "patterns")]
    from: Option<PathBuf>,
    /// Name of the targets: {stem} and {name} are the name of the source without and with its
    /// ending, {parent} that of its directory, {path} its directory from the first wildcard on
    #[arg(long, value_name = "TEMPLATE")]
    to: Option<String>,
    /// The verb that is run on each source: to-hdf5, to-ms, pack, unpack, finalize, verify, digest,
    /// info
    #[arg(long, default_value = "to-hdf5")]
    verb: String,
    /// Do not read the sizes of the sources: the shards (shares of batch run --shard) have equal
    /// numbers of items instead of bytes
    #[arg(long)]
    no_sizes: bool,
    /// The manifest to write; without it, stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Options of the verb, after --
    #[arg(last = true)]
    options: Vec<String>,
}

pub(super) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let Some(target) = args.out.clone() else {
        let mut buffered = BufWriter::new(&mut *out);
        let planned = plan(args, &mut buffered)?;
        drop(buffered);
        // stdout has the manifest
        let quiet = Global { json: false, caller: None, program: Vec::new(), ..*global };
        return print(planned, None, &quiet, out);
    };
    if target.symlink_metadata().is_ok() {
        let message = format!("{}: the manifest exists already (name another file)", target.display());
        return Err(Error::new(ErrorKind::Exists, message).into());
    }
    let directory = target.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = |error: std::io::Error| Error::from(error).context(target.as_path());
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.prefix(".manifest-").tempfile_in(directory).map_err(at)?;
    let mut buffered = BufWriter::new(file);
    let planned = plan(args, &mut buffered)?;
    let file = buffered.into_inner().map_err(|error| at(error.into_error()))?;
    file.as_file().sync_all().map_err(at)?;
    file.persist_noclobber(&target).map_err(|error| at(error.error))?;
    print(planned, Some(&target), global, out)
}

fn plan(args: Args, out: &mut impl Write) -> Result<Planned> {
    let mut plan = Plan::new(&args.verb, args.to, args.options, out)?;
    if args.no_sizes {
        plan = plan.without_sizes();
    }
    for pattern in &args.patterns {
        plan.add_pattern(pattern)?;
    }
    if let Some(from) = args.from {
        let mut list: Box<dyn BufRead> = match from.as_os_str() == "-" {
            true => Box::new(std::io::stdin().lock()),
            false => {
                Box::new(BufReader::new(File::open(&from).map_err(|error| Error::from(error).context(from.as_path()))?))
            }
        };
        plan.add_list(&mut list).map_err(|error| error.context(&from))?;
    }
    let planned = plan.finish()?;
    if planned.items == 0 {
        return Err(Error::new(ErrorKind::Usage, "the list names no sources: nothing is to be done").into());
    }
    Ok(planned)
}

fn print(planned: Planned, target: Option<&Path>, global: &Global, out: &mut impl Write) -> Result<Status> {
    let Planned { items, bytes, repeated } = planned;
    let mut summary = vec![format!("{items} items, {}", report::bytes(bytes))];
    if repeated > 0 {
        summary.push(format!("{repeated} sources were named more than once"));
    }
    let next = target.map(|target| format!("next: h5bridge batch run {} --ledger LEDGER", target.display()));
    summary.extend(next);
    Ending { summary, ..Ending::default() }.print(global, out, || {
        let out = target.map_or(String::new(), |target| target.display().to_string());
        BatchPlan { out, items, bytes, repeated }
    })
}
