//! Writes messages to stderr, each in one piece. `eprintln!` is not used: it writes a line in
//! pieces, and panics if stderr cannot be written.

use std::fmt::Display;
use std::io::Write;

/// The line is lost if stderr cannot be written, for example after its terminal was closed.
pub(crate) fn line(text: impl Display) {
    part(format_args!("{text}\n"));
}

/// Like [`line`], without an end of line.
pub(crate) fn part(text: impl Display) {
    let _ = std::io::stderr().lock().write_all(text.to_string().as_bytes());
}
