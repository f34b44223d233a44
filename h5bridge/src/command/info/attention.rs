//! Findings about a source that need attention: parts that cannot be read, other programs, changes since it was made.

use std::path::Path;

use ctds_hdf5::convert::{Source, ThinTable, display_name};
use ctds_hdf5::live::Reader;
use ctds_hdf5::look::Summary;
use serde::Serialize;

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Kind of finding: `damaged`, `not converted`, `not supported`, `elsewhere`, `live`, `open`, `stale`, `plugin`.
    pub(super) kind: &'static str,
    /// Description with the part that it is about.
    pub(super) text: String,
}

impl Finding {
    fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Finding { kind, text: text.into() }
    }
}

/// Everything about a source that needs attention. `is_open`: another program has the table open.
pub(super) fn find(
    path: &Path,
    source: &Source,
    summary: Option<&Summary>,
    thin: Option<&ThinTable>,
    is_open: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if is_open {
        found.push(Finding::new("open", "another program has the table open; what it has not flushed is missing here"));
    }
    found.extend(live(path));
    found.extend(stale(path, source, thin));
    let salvaged = source.damage().iter();
    found.extend(salvaged.map(|damage| Finding::new("damaged", format!("salvaged from a damaged source; left out: {damage}"))));
    found.extend(source.problems().map(|(table, error)| Finding::new("damaged", format!("subtable {table}: {error}"))));
    for table in source.tables() {
        for (index, column) in table.columns().unwrap_or_default().iter().enumerate() {
            let Some(error) = table.unreadable(index) else { continue };
            let kind = match table.table() {
                Ok(Some(_)) if error.kind() == ctds_hdf5::ErrorKind::Unsupported => "not supported",
                Ok(Some(_)) => "damaged",
                _ => "not converted",
            };
            let name = display_name(&table.name);
            found.push(Finding::new(kind, format!("{name}/{} is {kind}: {error}", column.desc.name)));
        }
    }
    for problem in summary.iter().flat_map(|summary| &summary.problems) {
        found.push(Finding::new("damaged", problem.clone()));
    }
    found
}

/// State of a live file.
fn live(path: &Path) -> Option<Finding> {
    let reader = path.is_file().then(|| Reader::open(path).ok()).flatten()?;
    Some(match reader.is_being_written() {
        Ok(true) => Finding::new(
            "live",
            "live file that is open for writing, or its writer exited without closing it (then: h5bridge repair)",
        ),
        _ => Finding::new("live", "live file, closed by its writer; h5bridge finalize makes a smaller file for the archive"),
    })
}

/// Changes since the source was made.
fn stale(path: &Path, source: &Source, thin: Option<&ThinTable>) -> Option<Finding> {
    if let Some(thin) = thin {
        return thin.check().err().map(|error| Finding::new("stale", error.to_string()));
    }
    let name = source.converted_from()?;
    // the file beside its source
    let table = path.parent()?.join(&name);
    let converted = path.metadata().ok()?.modified().ok()?;
    let is_newer = |file: &str| Some(table.join(file).metadata().ok()?.modified().ok()? > converted);
    let changed = ["table.dat", "table.lock"].into_iter().any(|file| is_newer(file) == Some(true));
    changed.then(|| Finding::new("stale", format!("{name} was written after it was converted to this file")))
}
