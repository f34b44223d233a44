//! Does one item (job) of a batch: a child process writes the output under a temporary name. The
//! output is then renamed, and a receipt, the JSON file that records how it was made, is written
//! beside it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use ctds_hdf5::{Error, ErrorKind, IfExists, Result, StagedOutput};
use serde_json::Value as Json;

use super::check::{self, Found, Trust};
use super::checksum::{Checksum, same_content};
use super::child::{Ended, Program, is_transient, message, words};
use super::item::{Effect, Item, Verb};
use super::ledger::{Record, State, host, now};
use super::receipt::{Measured, Receipt, fingerprint};
use crate::exit::Status;

/// Kept of one attempt.
const MAX_WARNINGS: usize = 10;
const MAX_CHARACTERS: usize = 500;

#[derive(Debug)]
pub(crate) struct Work {
    program: Program,
    global: Vec<OsString>,
    threads: usize,
    trust: Trust,
    checksums: Vec<Checksum>,
    host: String,
}

/// Result of an attempt by a child process, or of a check or an error of this process.
#[derive(Debug, Default)]
struct Outcome {
    state: Option<State>,
    code: i32,
    killed: bool,
    error: Option<String>,
    file_bytes: Option<u64>,
    digest: Option<String>,
    rows: Option<u64>,
    warnings: Vec<String>,
}

impl Outcome {
    fn of_state(state: State, error: Option<String>) -> Self {
        let code = if state == State::Conflict { Status::Target.code().into() } else { 0 };
        Outcome { state: Some(state), code, error, ..Outcome::default() }
    }

    fn of_error(error: &Error) -> Self {
        let code = Status::of_kind(error.kind()).code().into();
        Outcome { code, error: Some(error.to_string()), ..Outcome::default() }
    }

    fn of_child(ended: &Ended) -> Self {
        let document: Json = serde_json::from_str(&ended.stdout).unwrap_or(Json::Null);
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        let warnings = document["warnings"].as_array().into_iter().flatten();
        let warnings = warnings.filter_map(Json::as_str).take(MAX_WARNINGS).map(shortened).collect();
        let code = ended.code();
        let different = || {
            let first = document["differences"].get(0).map(Json::to_string).unwrap_or_default();
            format!("the sources are different: {first}")
        };
        let error = match code {
            0 | 6 => None,
            5 => Some(different()),
            _ => Some(text("error").unwrap_or_else(|| message(ended))),
        };
        Outcome {
            state: None,
            code,
            killed: ended.signal().is_some(),
            error: error.as_deref().map(shortened),
            file_bytes: None,
            digest: text("digest"),
            rows: document["rows"].as_u64(),
            warnings,
        }
    }

    fn is_success(&self) -> bool {
        [Status::Done, Status::Warnings].iter().any(|status| self.code == i32::from(status.code()))
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARACTERS).collect()
}

impl Work {
    pub(crate) fn new(program: Program, global: &[String], threads: usize, trust: Trust) -> Self {
        let global = words(["--json", "--quiet"].into_iter().chain(global.iter().map(String::as_str)));
        Work { program, global, threads, trust, checksums: Vec::new(), host: host() }
    }

    pub(crate) fn checksums(mut self, checksums: &[Checksum]) -> Self {
        self.checksums = checksums.to_vec();
        self.checksums.sort_unstable();
        self.checksums.dedup();
        self
    }

    pub(super) fn trust(&self) -> Trust {
        self.trust
    }

    /// Runs nothing if the item is done already. `is_last`: this run makes no further attempt.
    pub(super) fn attempt(&self, item: &Item, attempt: u32, is_last: bool, stop: &dyn Fn() -> bool) -> Record {
        let start = Instant::now();
        let outcome = item.check().and_then(|verb| self.run(item, verb, stop));
        let outcome = outcome.unwrap_or_else(|error| Outcome::of_error(&error));
        let state = outcome.state.unwrap_or(match outcome.code {
            _ if outcome.is_success() => State::Done,
            code if !is_transient(code) => State::Failed,
            _ if outcome.killed && is_last && !stop() => State::Killed,
            _ => State::Retry,
        });
        Record {
            id: item.id,
            state,
            attempt,
            code: outcome.code,
            error: outcome.error,
            seconds: start.elapsed().as_secs_f64(),
            bytes: item.bytes,
            file_bytes: outcome.file_bytes,
            digest: outcome.digest,
            warnings: outcome.warnings,
            host: self.host.clone(),
            time: now(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    fn run(&self, item: &Item, verb: Verb, stop: &dyn Fn() -> bool) -> Result<Outcome> {
        match (verb.effect, item.output()) {
            (Effect::Writes, Some(target)) => self.write(item, verb, target, stop),
            (Effect::Nothing, _) => Ok(Outcome::of_state(State::Done, None)),
            (_, other) => Ok(Outcome::of_child(&self.child(item, verb, other, stop)?)),
        }
    }

    /// `target` is the second path, written or read. When `stop` becomes true, SIGTERM is sent.
    fn child(&self, item: &Item, verb: Verb, target: Option<&Path>, stop: &dyn Fn() -> bool) -> Result<Ended> {
        let mut line = self.global.clone();
        line.extend([verb.name.into(), item.source.as_str().into()]);
        line.extend(target.map(OsString::from));
        // the target of the child is new, its own one is replaced when that is published
        let options = item.options.iter().filter(|option| verb.effect != Effect::Writes || *option != "--overwrite");
        line.extend(options.map(OsString::from));
        let has_threads = item.options.iter().any(|option| option.split('=').next() == Some("--threads"));
        if verb.has_threads && !has_threads {
            line.extend(["--threads".into(), self.threads.to_string().into()]);
        }
        self.program.run(&line, stop)
    }

    fn write(&self, item: &Item, verb: Verb, target: &Path, stop: &dyn Fn() -> bool) -> Result<Outcome> {
        let mut is_damaged = false;
        match check::look(item, target) {
            Found::Done if self.agrees(verb, target, stop)? => return Ok(Outcome::of_state(State::Skipped, None)),
            Found::Done => is_damaged = true,
            Found::Outdated if !item.overwrites() => {
                let message = "the source has changed since the target was made (plan it with --overwrite)";
                return Ok(Outcome::of_state(State::Conflict, Some(message.into())));
            }
            _ => {}
        }
        if let Some(directory) = target.parent() {
            fs::create_dir_all(directory).map_err(|error| Error::from(error).context(directory))?;
        }
        let if_exists = if item.overwrites() { IfExists::Replace } else { IfExists::Fail };
        let staged = StagedOutput::create(target, if_exists)?;
        let source = fingerprint(Path::new(&item.source)).ok();
        let mut outcome = Outcome::of_child(&self.child(item, verb, Some(staged.path()), stop)?);
        // with status 6 because of --strict or --salvage an output exists
        if !outcome.is_success() {
            return Ok(outcome);
        }
        let measured = Measured::read(staged.path(), &self.checksums)?;
        outcome.file_bytes = Some(measured.bytes);
        match staged.publish() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Exists => {
                if !is_damaged && check::look(item, target) == Found::Done {
                    return Ok(Outcome { state: Some(State::Skipped), ..outcome });
                }
                // another run that was killed before it wrote the receipt has written the same
                if item.overwrites() || !same_content(staged.path(), target)? {
                    let message = "the target exists, and is not what this item writes (--overwrite replaces it)";
                    return Ok(Outcome {
                        file_bytes: None,
                        ..Outcome::of_state(State::Conflict, Some(message.into()))
                    });
                }
            }
            Err(error) => return Err(error),
        }
        let receipt = Receipt {
            id: item.id,
            verb: item.verb.clone(),
            source,
            file_bytes: measured.bytes,
            digest: outcome.digest.clone(),
            rows: outcome.rows,
            checksums: measured.checksums,
            files: measured.files,
            version: env!("CARGO_PKG_VERSION").into(),
        };
        receipt.write(target, staged.path())?;
        Ok(outcome)
    }

    /// Whether `target` is intact; true without a check unless `Trust::Digest` is set.
    /// `h5bridge verify` checks it if `verb` stores digests, else the checksums of the receipt do.
    fn agrees(&self, verb: Verb, target: &Path, stop: &dyn Fn() -> bool) -> Result<bool> {
        if self.trust != Trust::Digest {
            return Ok(true);
        }
        if let Some(check) = check::check_words(verb, target) {
            let mut line = self.global.clone();
            line.extend(check);
            return Ok(self.program.run(&line, stop)?.code() == 0);
        }
        let Some(receipt) = Receipt::of(target) else { return Ok(false) };
        let kinds: Vec<Checksum> = receipt.kinds();
        let measured = Measured::read(target, &kinds)?;
        Ok((measured.checksums, measured.files) == (receipt.checksums, receipt.files))
    }
}
