//! `lint` checks a native HDF5 file against the rules of its layout (docs/reference/layout.md), and
//! reports what other readers cannot use in it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::documents;
use ctds_hdf5::lint::{Finding, Lint, LintReport, Reader, Requirement, Rule};

use crate::args::Global;
use crate::exit::Status;
use crate::report::Ending;

/// Objects named for each kind of finding without `-v`; further ones are counted.
const LISTED: usize = 3;

/// Command-line arguments of `h5bridge lint`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge lint my.h5
  h5bridge lint my.h5 --json
  h5bridge lint my.h5 -v")]
pub(crate) struct Args {
    /// An HDF5 file that to-hdf5 or finalize has made, or a live file
    file: PathBuf,
}

/// Only broken rules change the exit status.
pub(crate) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let report = Lint::new(&args.file).run()?;
    let follows = report.follows_layout();
    let listed = if global.verbose > 0 { usize::MAX } else { LISTED };
    let found = by_rule(&report).iter().flat_map(|(rule, findings)| lines(rule, findings, listed)).collect();
    let of_layout = |finding: &&Finding| finding.rule.requirement == Requirement::Layout;
    let breaks = report.findings.iter().filter(of_layout).count();
    let LintReport { groups, datasets, attributes, .. } = &report;
    let verdict = match breaks {
        0 => "follows the layout".to_owned(),
        1 => "breaks the layout in 1 place".to_owned(),
        count => format!("breaks the layout in {count} places"),
    };
    Ending {
        failed: (!follows).then_some(Status::Different),
        found,
        summary: vec![format!(
            "{}: {verdict}; checked: {groups} groups, {datasets} datasets, {attributes} attributes",
            args.file.display()
        )],
        ..Ending::default()
    }
    .print(global, out, || documents::Lint::from(&report))
}

/// Groups the findings of a report by their rule, in the order in which the rules are defined.
fn by_rule(report: &LintReport) -> Vec<(&'static Rule, Vec<&Finding>)> {
    let mut groups: Vec<(&'static Rule, Vec<&Finding>)> = Vec::new();
    for finding in &report.findings {
        match groups.last_mut() {
            Some((rule, findings)) if rule.name == finding.rule.name => findings.push(finding),
            _ => groups.push((finding.rule, vec![finding])),
        }
    }
    groups
}

/// Text about a rule: reason, findings in at most `listed` objects, affected readers, remedy.
fn lines(rule: &Rule, findings: &[&Finding], listed: usize) -> Vec<String> {
    let kind = match rule.requirement {
        Requirement::Layout => "breaks the layout",
        Requirement::Reader => "note",
    };
    let mut of_found = BTreeMap::<&str, Vec<String>>::new();
    for finding in findings {
        of_found.entry(&finding.found).or_default().push(place(finding));
    }
    let mut lines = vec![format!("{kind}, {}: {}", rule.name, rule.why)];
    for (found, places) in of_found {
        let more = places.len().saturating_sub(listed);
        let shown = places[..places.len() - more].join(", ");
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("  {found}: {shown}{rest}"));
    }
    if !rule.readers.is_empty() {
        lines.push(format!("  readers: {}", names(rule).join(", ")));
    }
    lines.push(format!("  next: {}", rule.next));
    lines
}

/// HDF5 path, followed by the name of the attribute if the finding is about one.
fn place(finding: &Finding) -> String {
    match &finding.attribute {
        Some(attribute) => format!("{} attribute {attribute}", finding.object),
        None => finding.object.clone(),
    }
}

fn names(rule: &Rule) -> Vec<&'static str> {
    rule.readers.iter().map(|&reader| Reader::name(reader)).collect()
}
