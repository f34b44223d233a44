//! What all verbs print in the same way.

use std::io::Write;

use serde_json::json;

use crate::exit::Status;

/// The failure of a verb: a sentence on stderr, and with `--json` a document on stdout.
pub fn error(error: &anyhow::Error, status: Status, as_json: bool) {
    eprintln!("h5bridge: {error:#}");
    if as_json {
        let document = json!({
            "status": status.name(), "code": status.code(), "warnings": [], "error": format!("{error:#}"),
        });
        // nothing is left to be said if stdout is closed
        let _ = writeln!(std::io::stdout(), "{document:#}");
    }
}

/// Warnings on stderr.
pub fn warnings(warnings: &[String]) {
    warnings.iter().for_each(|warning| eprintln!("h5bridge: warning: {warning}"));
}

/// Bytes for people.
pub fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// The most memory that this process has held, in bytes.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The status of a run that finished, with these warnings.
pub fn finished(warnings: usize, strict: bool) -> Status {
    if strict && warnings > 0 { Status::Warnings } else { Status::Done }
}
