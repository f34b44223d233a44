//! The command line of `h5bridge`: global options and verbs.

use std::ffi::OsString;
use std::io::Write;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::args::Global;
#[cfg(feature = "serve")]
use crate::command::serve;
use crate::command::{
    batch, completions, digest, finalize, follow, generate, help, info, join, link, lint, ls, manifest, materialize,
    pack, plot, refs, repair, shard, to_hdf5, to_ms, unpack, verify, vt, watch,
};
use crate::exit::Status;
use crate::version;

/// Convert casacore tables (MeasurementSets) to HDF5 and back.
#[derive(Debug, Parser)]
#[command(
    name = "h5bridge",
    version,
    long_version = version::long(),
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(before_help = "Examples:
  h5bridge info my.ms
  h5bridge to-hdf5 my.ms
  h5bridge verify my.ms my.h5")]
pub(crate) struct Cli {
    /// Options that every verb accepts.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The verb that is run, with its arguments.
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Name of the verb that was given, for messages.
    #[arg(skip)]
    pub(crate) verb_name: String,
}

impl Cli {
    /// The command line as clap describes it, for completions, manual pages and help.
    pub(crate) fn full_command() -> Command {
        help::with_groups(help::with_words(Self::command()))
    }

    /// The first word names the program. Help and version are errors, which have the text to print.
    pub(crate) fn parse_words(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<_> = args.into_iter().collect();
        let matches = help::with_words(Self::command()).try_get_matches_from(&words).or_else(|error| {
            // the groups take a millisecond to lay out
            let is_help =
                matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
            if is_help { Self::full_command().try_get_matches_from(&words) } else { Err(error) }
        })?;
        let verb_name = matches.subcommand_name().unwrap_or_default().to_owned();
        Ok(Cli { verb_name, ..Self::from_arg_matches(&matches)? })
    }

    pub(crate) fn run(self, out: &mut impl Write) -> Result<Status> {
        let global = &self.global;
        match self.verb {
            Verb::Batch(args) => batch::run(args, global, out),
            Verb::ToHdf5(args) => to_hdf5::run(args, global, out),
            Verb::ToMs(args) => to_ms::run(args, global, out),
            Verb::Info(args) => info::run(args, global, out),
            Verb::Digest(args) => digest::run(args, global, out),
            Verb::Finalize(args) => finalize::run(args, global, out),
            Verb::Follow(args) => follow::run(args, global, out),
            Verb::Join(args) => join::run(&args, global, out),
            Verb::Link(args) => link::run(args, global, out),
            Verb::Lint(args) => lint::run(&args, global, out),
            Verb::Materialize(args) => materialize::run(args, global, out),
            Verb::Manifest(args) => manifest::run(args, global, out),
            Verb::Refs(args) => refs::run(args, global, out),
            Verb::Repair(args) => repair::run(args, global, out),
            Verb::Verify(args) => verify::run(args, global, out),
            Verb::Pack(args) => pack::run(args, global, out),
            Verb::Unpack(args) => unpack::run(args, global, out),
            Verb::Vt(args) => vt::run(args, global, out),
            Verb::Ls(args) => ls::run(args, global, out),
            Verb::Shard(args) => shard::run(args, global, out),
            Verb::Watch(args) => watch::run(args, global, out),
            Verb::Plot(args) => plot::run(args, global, out),
            #[cfg(feature = "serve")]
            Verb::Serve(args) => serve::run(args, global, out),
            #[cfg(not(feature = "serve"))]
            Verb::Serve(_) => {
                let message = "this h5bridge was built without `serve`; the wheel (`pip install h5bridge`), `cargo install --path h5bridge` and the \
                               Debian and conda packages have it";
                Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Unsupported, message).into())
            }
            Verb::Completions(args) => completions::run(&args, global, Cli::full_command(), out),
            Verb::Help(args) => help::run(&args, global, Cli::full_command(), out),
            Verb::Generate(args) => generate::run(&args, global, Cli::full_command(), out),
        }
    }
}

/// Accepts any words: the arguments of a verb that this build lacks.
#[cfg(not(feature = "serve"))]
#[derive(Debug, clap::Args)]
pub(crate) struct Ignored {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

/// The verbs of `h5bridge` (`to-hdf5`, `info` …) with their arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show tables, columns, storage managers, chunks
    Info(info::Args),
    /// Draw visibilities and flags of a MeasurementSet
    Plot(plot::Args),
    /// Show files in a browser, also while they grow
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    /// Fail with a message that names the builds of h5bridge that have the web server
    #[cfg(not(feature = "serve"))]
    #[command(hide = true)]
    Serve(Ignored),
    /// List the files in a container
    Ls(ls::Args),
    /// Show how a live HDF5 file grows
    Watch(watch::Args),
    /// Convert a table and its subtables to an HDF5 file
    #[command(name = "to-hdf5")]
    ToHdf5(to_hdf5::Args),
    /// Write a table from an HDF5 file, or from another table
    #[command(name = "to-ms")]
    ToMs(to_ms::Args),
    /// Compare two sources, or check one by its digests
    ///
    /// Values or, with --bytes, bytes are compared. One source alone is checked against the digests
    /// and checksums stored in it.
    Verify(verify::Args),
    /// Print fingerprints of tables, columns and keywords
    ///
    /// The fingerprints (CTFP-2) are of the content: they do not depend on how it is stored.
    Digest(digest::Args),
    /// Name what readers of an HDF5 file cannot use
    ///
    /// A native HDF5 file is checked against the rules of its layout (docs/reference/layout.md),
    /// and what h5py, xarray, MATLAB and other readers cannot use is reported.
    Lint(lint::Args),
    /// Keep a live HDF5 file in step with a growing table
    ///
    /// Another program is writing the table.
    Follow(follow::Args),
    /// Repair a live HDF5 file whose writer was killed
    Repair(repair::Args),
    /// Make an archive of a live HDF5 file that has ended
    ///
    /// The archive file is compressed and has digests.
    Finalize(finalize::Args),
    /// Pack the files of a table into containers
    ///
    /// Those of its subtables are packed as well.
    Pack(pack::Args),
    /// Extract the files of a table from its containers
    Unpack(unpack::Args),
    /// Serve a vt store to other programs
    ///
    /// A vt store has blocks of files and archives of the Python package cs.vt.
    Vt(vt::Args),
    /// Make a table of an HDF5 file: one copy for both
    ///
    /// The files with large tiles in the table directory are symbolic links to the HDF5 file.
    Link(link::Args),
    /// Make such a table independent of its HDF5 file
    ///
    /// The data of a thin table (made by link) is copied from that file into the table.
    Materialize(materialize::Args),
    /// Let xarray and zarr read a table as it is
    ///
    /// References (kerchunk JSON) are written, by which they read a table that is not converted.
    Manifest(manifest::Args),
    /// Let xarray and zarr read an HDF5 file in the cloud
    ///
    /// References (kerchunk JSON) to a native HDF5 file, also one in an object store, are printed.
    Refs(refs::Args),
    /// Convert, verify or pack many tables
    ///
    /// They are shared by any number of machines.
    Batch(batch::Args),
    /// Convert one huge table on many machines
    ///
    /// The steps are plan, work, status, commit and verify.
    Shard(shard::Args),
    /// Make one HDF5 file of several with ranges of rows
    ///
    /// Large columns stay in those files (virtual datasets).
    Join(join::Args),
    /// Show the help of a verb, or a page about a topic
    ///
    /// Topics are formats, layout, selecting, exit codes …
    Help(help::Args),
    /// Print completions for bash, zsh or fish
    ///
    /// Shells load these files when they start; `mkdir -p` makes missing directories. bash needs
    /// the package bash-completion. zsh looks in ~/.zfunc if ~/.zshrc has, before compinit:
    /// fpath+=(~/.zfunc). The wheel and the packages of Debian and conda have installed the files
    /// already.
    Completions(completions::Args),
    /// Write pages of the manual, or completions of a shell, for packages
    #[command(hide = true)]
    Generate(generate::Args),
}
