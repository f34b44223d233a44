//! Writes the errors that tests provoke to files, from which `scripts/messages` makes a list of all messages; only with
//! the feature `record-messages`.
//!
//! If the environment variable `H5BRIDGE_MESSAGES` names a directory, each process appends lines of JSON to a file of its own in
//! it: the place in the sources that made the error, the kind, the number of contexts, the program, and the text. A place has
//! more lines only for other messages and for texts with more contexts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

/// Largest number of different messages that are recorded for one place in the source code that makes errors.
const MOST_TEXTS: usize = 24;

/// A place in the source code that makes errors: file, line and column.
type Site = (&'static str, u32, u32);

/// State of the recording of errors: the output file of this process, and the messages recorded for each place in the
/// source code. Messages that differ only in digits, spaces or punctuation count as the same one. It is recorded again
/// only when it has more contexts (file, column …) than each time before.
struct Recorder {
    file: File,
    program: String,
    known: HashMap<Site, Vec<(String, usize)>>,
}

static RECORDER: LazyLock<Option<Mutex<Recorder>>> = LazyLock::new(|| {
    let directory = std::env::var_os("H5BRIDGE_MESSAGES")?;
    let path = Path::new(&directory).join(format!("{}.jsonl", std::process::id()));
    let file = OpenOptions::new().append(true).create(true).open(path).ok()?;
    let program = std::env::args_os().next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(Mutex::new(Recorder { file, program, known: HashMap::new() }))
});

/// Appends an error, made at the place `site` in the source code, to this process's file in the directory
/// `H5BRIDGE_MESSAGES`. It is skipped if a message that differs at most in its digits and signs was written with as many contexts (file,
/// column …) or more, or if 24 ([`MOST_TEXTS`]) messages of `site` were written. `message` is the error without its contexts, and `text`
/// formats it with them.
pub(super) fn record(
    site: &'static Location<'static>,
    kind: &dyn std::fmt::Debug,
    contexts: usize,
    message: &str,
    text: impl FnOnce() -> String,
) {
    let Some(Ok(mut recorder)) = RECORDER.as_ref().map(Mutex::lock) else { return };
    let of_site = recorder.known.entry((site.file(), site.line(), site.column())).or_default();
    let letters: String = message.chars().filter(|c| c.is_alphabetic()).collect();
    match of_site.iter().position(|(known, _)| *known == letters) {
        Some(known) if of_site[known].1 > contexts => return,
        Some(known) => of_site[known].1 = contexts + 1,
        None if of_site.len() == MOST_TEXTS => return,
        None => of_site.push((letters, contexts + 1)),
    }
    let line = serde_json::json!({
        "file": site.file(), "line": site.line(), "column": site.column(), "kind": format!("{kind:?}"), "contexts": contexts,
        "program": recorder.program, "text": text(),
    });
    // one write: threads of other processes have other files, those of this one wait for the lock
    let _ = recorder.file.write_all(format!("{line}\n").as_bytes());
}
