//! Findings of `h5bridge info` that need attention: parts that cannot be read, other programs that
//! use the source, changes of the table or HDF5 file from which the source was made.

use std::fs::DirEntry;
use std::path::Path;

use ctds_hdf5::convert::{DatasetInfo, Source, ThinTable, display_name};
use ctds_hdf5::documents::Attention;
use ctds_hdf5::live::Reader;
use ctds_hdf5::{Error, ErrorKind, is_open_elsewhere};
use ms_look::Summary;

fn finding(kind: &str, text: impl Into<String>) -> Attention {
    Attention { kind: kind.to_owned(), part: None, text: text.into() }
}

fn finding_of(part: impl Into<String>, kind: &str, error: &Error) -> Attention {
    Attention { part: Some(part.into()), ..finding(kind, error.message()) }
}

/// Findings of the same kind and text share a sentence, which names at most three of them.
pub(super) fn sentences(findings: &[Attention]) -> Vec<String> {
    let mut groups: Vec<(&Attention, Vec<&str>)> = Vec::new();
    for finding in findings {
        let part = finding.part.as_deref().into_iter();
        match groups.iter_mut().find(|(first, _)| first.kind == finding.kind && first.text == finding.text) {
            Some((_, parts)) => parts.extend(part),
            None => groups.push((finding, part.collect())),
        }
    }
    let sentence = |(finding, parts): (&Attention, Vec<&str>)| match parts.split_at_checked(3) {
        None if parts.is_empty() => finding.text.clone(),
        None => format!("{}: {}: {}", finding.kind, parts.join(", "), finding.text),
        Some((first, [])) => format!("{}: {}: {}", finding.kind, first.join(", "), finding.text),
        Some((first, rest)) => {
            format!("{}: {} and {} more: {}", finding.kind, first.join(", "), rest.len(), finding.text)
        }
    };
    groups.into_iter().map(sentence).collect()
}

/// Called before this process opens the source.
pub(super) fn use_by_others(path: &Path, no_lock: bool) -> Option<Attention> {
    let is_open = !no_lock && path.is_dir() && is_open_elsewhere(path).unwrap_or(false);
    is_open.then(|| finding("open", "another program has the table open; what it has not flushed is missing here"))
}

/// First use by `others`, then changes of the origin, and parts that cannot be read or are in other
/// files.
pub(super) fn find(
    others: Option<Attention>,
    path: &Path,
    source: &Source,
    summary: Option<&Summary>,
    thin: Option<&ThinTable>,
    datasets: &[(String, DatasetInfo)],
) -> Vec<Attention> {
    let mut found: Vec<_> = others.into_iter().chain(live(path, source)).collect();
    found.extend(stale(path, source, thin));
    let salvaged = source.damage().iter();
    found.extend(
        salvaged.map(|damage| finding("damaged", format!("salvaged from a damaged source; left out: {damage}"))),
    );
    found.extend(source.problems().map(|(table, error)| match error.kind() {
        ErrorKind::NotFound => Attention {
            text: "the subtable is missing".to_owned(),
            ..finding_of(display_name(table), "damaged", error)
        },
        _ => finding_of(display_name(table), "damaged", error),
    }));
    for table in source.tables() {
        for (index, column) in table.columns().unwrap_or_default().iter().enumerate() {
            let Some(error) = table.unreadable(index) else { continue };
            let kind = match table.table() {
                Ok(Some(_)) if error.kind() == ErrorKind::Unsupported => "not supported",
                Ok(Some(_)) => "damaged",
                _ => "not converted",
            };
            found.push(finding_of(format!("{}/{}", display_name(&table.name), column.desc.name), kind, &error));
        }
    }
    for (part, elsewhere) in datasets.iter().filter_map(|(part, dataset)| Some((part, dataset.elsewhere.as_ref()?))) {
        found.push(Attention { part: Some(part.clone()), ..finding("elsewhere", elsewhere.text.clone()) });
    }
    for problem in summary.iter().flat_map(|summary| &summary.problems) {
        found.push(finding("damaged", problem.clone()));
    }
    found
}

/// The file is open for writing, its writer exited without closing it, or it was closed.
fn live(path: &Path, source: &Source) -> Option<Attention> {
    let reader = source.is_live().then(|| Reader::open(path).ok()).flatten()?;
    Some(match reader.is_being_written() {
        Ok(true) => finding(
            "live",
            "live file that is open for writing, or its writer exited without closing it (then: h5bridge repair)",
        ),
        _ => finding("live", "live file, closed by its writer; h5bridge finalize makes a smaller file for the archive"),
    })
}

/// A table was written after the HDF5 file was made from it, or the HDF5 file of a thin table was
/// moved or rewritten.
fn stale(path: &Path, source: &Source, thin: Option<&ThinTable>) -> Option<Attention> {
    if let Some(thin) = thin {
        return thin.check().err().map(|error| finding("stale", error.to_string()));
    }
    let name = source.converted_from()?;
    // the file beside its source
    let table = path.parent()?.join(&name);
    let converted = path.metadata().ok()?.modified().ok()?;
    let is_newer =
        |entry: &DirEntry| entry.metadata().and_then(|found| found.modified()).is_ok_and(|time| time > converted);
    // readers that wait for a writer leave requests in table.lock
    let has_data = |entry: &DirEntry| {
        let name = entry.file_name();
        name != "table.lock" && name.as_encoded_bytes().starts_with(b"table.")
    };
    let changed = std::fs::read_dir(&table).ok()?.flatten().any(|entry| has_data(&entry) && is_newer(&entry));
    changed.then(|| finding("stale", format!("{name} was written after it was converted to this file")))
}
