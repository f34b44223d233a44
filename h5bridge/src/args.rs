//! Command-line options that several verbs (subcommands) of `h5bridge` share, and parsers of their
//! values, such as sizes and times.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, ColorChoice};
use ctds_hdf5::{HashKind, IfExists, Locking, OpenOptions, SyncPolicy};

use crate::interrupt::Caller;

/// Help of an argument that accepts any source with tables.
pub(crate) const SOURCE: &str = "A table directory, a container or a path into one (archive.h5/ANTENNA), or a native or live HDF5 file, also at \
     an address (https://..., s3://BUCKET/KEY)";

pub(crate) fn hash_kind() -> impl TypedValueParser<Value = HashKind> {
    PossibleValuesParser::new(HashKind::ALL.map(HashKind::name)).try_map(|name| name.parse())
}

/// Options that every verb of `h5bridge` accepts (`--json`, `--quiet`, `--lock-timeout` …).
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options", next_display_order = 900)]
pub(crate) struct Global {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print neither progress nor summary
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print the plan and diagnostics (-vv: more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Colours: auto, always, never
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) color: ColorChoice,
    /// Exit with status 6 if warnings were printed
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Seconds to wait for writers
    #[arg(long, global = true, default_value_t = 60., value_name = "SECONDS", value_parser = seconds)]
    pub(crate) lock_timeout: f64,
    /// Open tables without locks (read-only media)
    #[arg(long, global = true)]
    pub(crate) no_lock: bool,
    /// End this process when its parent process, whose process id is given, ends
    #[arg(long, global = true, hide = true, value_name = "PROCESS")]
    pub(crate) end_with: Option<i32>,
    /// The command line by which this program is started again as a child process; empty: the
    /// executable of the running process
    #[arg(skip)]
    pub(crate) program: Vec<OsString>,
    /// Connection to the program, such as the Python package, that runs the verb within its own
    /// process; `None`: the verb was started from a command line
    #[arg(skip)]
    pub(crate) caller: Option<Caller>,
}

/// The option `--follow-external` of the verbs that read native HDF5 files: whether array elements
/// that such a file keeps in other files (external storage, virtual datasets, external links) are
/// read.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct External {
    /// Follow a native HDF5 file to files below its directory
    ///
    /// Elements that it keeps there (external storage, virtual datasets, external links) are read.
    #[arg(long)]
    follow_external: bool,
}

impl External {
    /// `--follow-external` decides whether elements in other files are read.
    pub(crate) fn open_options(self, global: &Global) -> OpenOptions {
        OpenOptions { follow_external: self.follow_external, ..global.open_options() }
    }
}

/// The options `--overwrite` and `--sync` of the verbs that write OUT.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Publishing {
    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// When to flush the output to disk (fsync)
    ///
    /// "behind": while it is written and at the end; "end": only at the end; "never": not at all,
    /// which is fastest, but a power failure in the next half minute can damage the output.
    #[arg(long, value_name = "WHEN", default_value = "behind", value_parser = sync_policy())]
    pub(crate) sync: SyncPolicy,
}

impl Publishing {
    pub(crate) fn if_exists(self) -> IfExists {
        if_exists(self.overwrite)
    }
}

/// Replaces the help text of `--overwrite`, in its place among the arguments of a verb.
pub(crate) fn overwrite_help(help: &'static str) -> impl Fn(Arg) -> Arg {
    move |arg| if arg.get_id() == "overwrite" { arg.help(help) } else { arg }
}

impl Global {
    /// Time to wait for a writer; `None` with `--no-lock`.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let timeout = Duration::try_from_secs_f64(self.lock_timeout).unwrap_or(Duration::from_secs(u32::MAX.into()));
        (!self.no_lock).then_some(timeout)
    }

    pub(crate) fn open_options(&self) -> OpenOptions {
        // no time-out is as good as one of a century
        let locking = self.patience().map_or(Locking::None, Locking::Wait);
        OpenOptions { locking, ..OpenOptions::default() }
    }

    /// Options that concern tables, for the command line of a child of `h5bridge batch run`.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["--lock-timeout".to_owned(), self.lock_timeout.to_string()];
        words.extend(self.no_lock.then(|| "--no-lock".to_owned()));
        words.extend(self.strict.then(|| "--strict".to_owned()));
        words
    }

    /// Whether text has colours; `automatic`: without `--color` and `NO_COLOR`.
    pub(crate) fn colours(&self, automatic: bool) -> bool {
        match self.color {
            ColorChoice::Auto => automatic && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            choice => choice == ColorChoice::Always,
        }
    }

    /// `--color` holds for all text of this process.
    pub(crate) fn choose_colours(&self) {
        if self.color != ColorChoice::Auto {
            console::set_colors_enabled(self.color == ColorChoice::Always);
            console::set_colors_enabled_stderr(self.color == ColorChoice::Always);
        }
    }

    /// Warnings go to stderr, with `-v` also information, with `-vv` also debugging messages.
    pub(crate) fn start_logging(&self) {
        let level = match self.verbose {
            0 => tracing::Level::WARN,
            1 => tracing::Level::INFO,
            _ => tracing::Level::DEBUG,
        };
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_target(false)
            .without_time()
            .with_ansi(self.colours(std::io::stderr().is_terminal()))
            // the process may have a subscriber already
            .try_init()
            .ok();
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number of seconds, such as 60 or 0.5".to_owned())
}

fn sync_policy() -> impl TypedValueParser<Value = SyncPolicy> {
    PossibleValuesParser::new(["behind", "end", "never"]).try_map(|word| word.parse::<SyncPolicy>())
}

pub(crate) fn if_exists(overwrite: bool) -> IfExists {
    if overwrite { IfExists::Replace } else { IfExists::Fail }
}

/// `512`, `64K`, `4M`, `1G` (powers of two).
pub(crate) fn size(text: &str) -> Result<u64> {
    let text = text.trim().to_ascii_uppercase();
    let text = text.trim_end_matches("IB").trim_end_matches('B');
    let (number, shift) = match text.char_indices().last() {
        Some((end, 'K')) => (&text[..end], 10),
        Some((end, 'M')) => (&text[..end], 20),
        Some((end, 'G')) => (&text[..end], 30),
        _ => (text, 0),
    };
    let bytes: u64 = number.trim().parse().map_err(|_| anyhow!("expected a size such as 64K or 256M"))?;
    bytes.checked_mul(1 << shift).ok_or_else(|| anyhow!("the size exceeds 2^64 bytes"))
}

/// `500ms`, `60s`, `5m`, `1h`; a number without a unit is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match &text[end..] {
        "ms" => 1e-3,
        "" | "s" => 1.,
        "m" => 60.,
        "h" => 3600.,
        unit => return Err(format!("{unit:?} is not a unit of time: expected ms, s, m or h")),
    };
    let number: f64 = text[..end].parse().map_err(|_| "a number is expected before the unit".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|error| error.to_string())
}
