//! Output and exit status of the verbs (subcommands) of `h5bridge`: summaries, warnings, errors and
//! JSON documents in one common form.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ctds_hdf5::convert::{Damage, Source};
use ctds_hdf5::documents::{Document, Failure};
use ctds_hdf5::program::os::peak_memory;
use ctds_hdf5::{Error, ErrorKind, Plugin};
use serde::Serialize;

use crate::args::Global;
use crate::exit::Status;
use crate::stderr;

/// A message on stderr, and with `--json` a document on stdout.
pub(crate) fn error(error: &anyhow::Error, status: Status, verb: &str, as_json: bool) {
    let sentence = sentence(error);
    let step = next_step(error, verb).filter(|_| !names_a_step(&sentence));
    stderr::line(format_args!("h5bridge: {sentence}{}", step.map_or(String::new(), |step| format!(" ({step})"))));
    if as_json {
        let (failure, mut out) = (Failure::new(status.name(), status.code(), sentence), std::io::stdout());
        // nothing is left to be said if stdout is closed
        let _ = match verb {
            "watch" | "serve" => write_line(&failure, &mut out),
            _ => write_document(&failure, &mut out),
        };
    }
}

pub(crate) const SALVAGE: &str = "--salvage leaves out what is damaged";

pub(crate) const SALVAGE_FILES: &str = "--salvage leaves out files that cannot be read";

/// Single quotes let shells leave the word as it is.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Options with which a command that failed on a damaged source would continue.
#[derive(Debug)]
pub(crate) struct Suggestion(String);

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `--salvage` was given, and helps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Salvaging {
    pub(crate) is_given: bool,
    /// The rest of the source can be opened without the damaged parts.
    pub(crate) helps: bool,
}

impl Salvaging {
    /// The main table must open without the option.
    pub(crate) fn of_tables(is_given: bool, source: &Path) -> Self {
        let helps = Source::open_served(source, &|_| true).is_ok_and(|source| source.tables()[0].columns().is_ok());
        Salvaging { is_given, helps }
    }
}

/// Hints at the `options` that leave out damage, or says that no more can be left out.
pub(crate) fn suggest(error: Error, salvaging: Salvaging, options: impl Into<String>) -> anyhow::Error {
    // a pointer of Git LFS is fetched, not salvaged
    if error.to_string().contains("`git lfs pull`") {
        return error.into();
    }
    let hint = match (error.kind(), salvaging) {
        (ErrorKind::Format | ErrorKind::Limit, Salvaging { is_given: false, helps: true }) => options.into(),
        (ErrorKind::Format | ErrorKind::Limit, Salvaging { is_given: true, helps: false }) => {
            let needed = if error.to_string().contains("table.dat") { "a whole table.dat" } else { "its main table" };
            format!("nothing of the source can be salvaged without {needed}: `h5bridge help damage`")
        }
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(Suggestion(hint))
}

/// The hint of a `Suggestion` comes last, in parentheses.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    if let Some(suggestion) = error.downcast_ref::<Suggestion>() {
        let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        return format!("{} ({suggestion})", causes.join(": "));
    }
    // verbs name the file of every other error of the system
    let is_of_stdout = error.is::<std::io::Error>() && error.chain().count() == 1;
    format!("{}{error:#}", if is_of_stdout { "stdout: " } else { "" })
}

/// The message names a command or option already, so that no hint is added.
fn names_a_step(sentence: &str) -> bool {
    [" --", "(--", "`h5bridge ", "`git ", "did you mean", "; it has ", ": name ", ", name "]
        .iter()
        .any(|mark| sentence.contains(mark))
}

/// Hint after `verb` has failed, for example `--overwrite`.
fn next_step(error: &anyhow::Error, verb: &str) -> Option<String> {
    let kind = match (error.downcast_ref::<Error>(), Status::of(error)) {
        (Some(error), _) => error.kind(),
        (None, Status::NoSpace) => ErrorKind::NoSpace,
        (None, _) => ErrorKind::Io,
    };
    Some(match kind {
        ErrorKind::Io => "check the path, its permissions and its disk".to_owned(),
        ErrorKind::NoSpace => "free some space, or write to another disk".to_owned(),
        ErrorKind::Format | ErrorKind::Limit => "if it is damaged: `h5bridge help damage`".to_owned(),
        ErrorKind::Unsupported => "`h5bridge help formats` lists what is supported".to_owned(),
        ErrorKind::Usage => format!("`h5bridge help {verb}` shows the options"),
        ErrorKind::NotFound => "check the path; `h5bridge ls` and `h5bridge info` show what a source holds".to_owned(),
        ErrorKind::Exists => "name another target, or replace it with --overwrite".to_owned(),
        ErrorKind::Locked if format!("{error:#}").contains("a writer has the file") => {
            "a live file has one writer at a time: end that one first".to_owned()
        }
        ErrorKind::Locked => "--lock-timeout SECONDS waits longer".to_owned(),
        _ => return None,
    })
}

/// Whether the unfinished target was removed, and that the source is unchanged.
#[derive(Debug)]
pub(crate) struct Stopped(String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds the effect of a signal to its error; other errors stay as they are.
pub(crate) fn stopped(error: impl Into<anyhow::Error>, source: &Path, target: &Path) -> anyhow::Error {
    let error = error.into();
    if Status::of(&error) != Status::Interrupted {
        return error;
    }
    let shown = target.display();
    let outcome = match (unfinished(target), target.symlink_metadata().is_ok()) {
        (Some(left), _) => format!("{} could not be removed, the next run with this target does", left.display()),
        (None, true) => format!("{shown} is as it was"),
        (None, false) => format!("the unfinished {shown} was removed"),
    };
    let read = if source == target { String::new() } else { format!("; {} is untouched", source.display()) };
    error.context(Stopped(format!("{outcome}{read}; the same command begins again")))
}

/// Temporary directory of `target`, if it still exists.
fn unfinished(target: &Path) -> Option<PathBuf> {
    let name = target.file_name()?.to_string_lossy();
    let prefix = format!("{name}.{}-", std::process::id());
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut entries = std::fs::read_dir(parent).ok()?.flatten();
    let is_left = |name: &str| name.starts_with(&prefix) && name.ends_with(".partial");
    entries.find(|entry| is_left(&entry.file_name().to_string_lossy())).map(|entry| entry.path())
}

/// `--quiet` does not hide warnings.
pub(crate) fn warning(text: &str) {
    stderr::line(format_args!("h5bridge: warning: {text}"));
}

/// Output of a verb that has finished.
#[derive(Default)]
pub(crate) struct Ending<'a> {
    /// Status if the findings are an error, such as `Different` from `verify`.
    pub(crate) failed: Option<Status>,
    pub(crate) warnings: &'a [String],
    /// Left out of the target; any damage gives the status `Warnings`.
    pub(crate) damage: &'a [Damage],
    /// Warnings were already printed while the command ran.
    pub(crate) warned: bool,
    /// Lines for stdout, such as the differences that `verify` has found.
    pub(crate) found: Vec<String>,
    /// Lines for stderr unless `--quiet` is given.
    pub(crate) summary: Vec<String>,
    /// Bytes shared with the source by reflinks, without disk space of their own.
    pub(crate) shared: u64,
    /// Needed by readers of the target.
    pub(crate) plugins: Vec<Plugin>,
}

impl Ending<'_> {
    /// `content` adds the verb's own members to the document of `--json`.
    pub(crate) fn print<T: Serialize>(
        self,
        global: &Global,
        out: &mut impl Write,
        content: impl FnOnce() -> T,
    ) -> Result<Status> {
        let strict = global.strict && !self.warnings.is_empty();
        let warned = strict || !self.damage.is_empty();
        let status = self.failed.unwrap_or(if warned { Status::Warnings } else { Status::Done });
        if global.json {
            let mut document = Document::new(content(), status.name(), status.code());
            document.shared_bytes = self.shared;
            document.warnings = self.warnings.to_vec();
            document.damage = self.damage.to_vec();
            document.plugins = self.plugins.iter().map(Into::into).collect();
            write_document(&document, out)?;
            return Ok(status);
        }
        self.found.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        if !self.warned {
            self.warnings.iter().for_each(|text| warning(text));
        }
        if !global.quiet {
            let shared = (self.shared > 0).then(|| format!("shared with the source: {}", bytes(self.shared)));
            self.summary.iter().chain(&shared).chain(&plugin_line(&self.plugins)).for_each(stderr::line);
        }
        Ok(status)
    }
}

/// `None` if readers need no plugins.
pub(crate) fn plugin_line<'a>(plugins: impl IntoIterator<Item = &'a Plugin>) -> Option<String> {
    let names: Vec<String> = plugins.into_iter().map(Plugin::to_string).collect();
    (!names.is_empty()).then(|| format!("readers need {}", names.join("; ")))
}

pub(crate) fn write_document(document: &impl Serialize, out: &mut impl Write) -> Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_string_pretty(document)?)?)
}

/// A document of a verb whose output is read line by line.
pub(crate) fn write_line(document: &impl Serialize, out: &mut impl Write) -> Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_string(document)?)?)
}

/// Elapsed time, throughput, and the most memory that the process used.
pub(crate) fn speed(bytes: u64, seconds: f64) -> String {
    let memory = peak_memory().map_or(String::new(), |peak| format!(", peak memory {}", self::bytes(peak)));
    format!("{seconds:.2} s, {}/s{memory}", self::bytes((bytes as f64 / seconds) as u64))
}

/// Refuses before any work is done; the writer checks this again.
pub(crate) fn check_target(target: &Path, overwrite: bool) -> Result<()> {
    if target.symlink_metadata().is_ok() && !overwrite {
        let message = format!("{}: the target exists already (--overwrite replaces it)", target.display());
        return Err(Error::new(ErrorKind::Exists, message).into());
    }
    Ok(())
}

/// `12.3 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
