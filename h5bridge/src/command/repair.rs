//! `repair`: a live file whose writer did not close it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::live::{Repaired, repair};
use serde_json::json;

use crate::cli::Global;
use crate::exit::Status;
use crate::report;

/// Arguments of `repair`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge repair live.h5")]
pub struct Args {
    /// A live HDF5 file whose writer was killed; of another program's the tables are not trimmed
    file: PathBuf,
}

/// Prints what was committed, which is there, and what was not, which is lost.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let repaired = repair(&args.file)?;
    let chunks = repaired.incomplete_chunks;
    let warning = (chunks > 0).then(|| format!("{chunks} chunks are not complete; what is missing reads as zeros"));
    let warnings: Vec<_> = warning.into_iter().collect();
    let status = report::finished(warnings.len(), global.strict);
    if global.json {
        let tables = repaired
            .tables
            .iter()
            .map(|table| json!({"name": table.name, "committed_rows": table.committed, "lost_rows": table.lost}));
        let tables: serde_json::Value = tables.collect();
        let document = json!({
            "status": status.name(),
            "code": status.code(),
            "warnings": warnings,
            "was_open": repaired.was_open,
            "end_before": repaired.end.0,
            "end": repaired.end.1,
            "datasets": repaired.datasets,
            "incomplete_chunks": repaired.incomplete_chunks,
            "tables": tables,
        });
        writeln!(out, "{document:#}")?;
        return Ok(status);
    }
    describe(&repaired, out)?;
    warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    Ok(status)
}

fn describe(repaired: &Repaired, out: &mut impl Write) -> Result<()> {
    for table in &repaired.tables {
        let lost = if table.lost > 0 { format!(", {} not committed and gone", table.lost) } else { String::new() };
        writeln!(out, "{}: {} rows committed{lost}", table.name, table.committed)?;
    }
    let (before, after) = repaired.end;
    let found = match repaired.was_open {
        true if before < after => format!("was not closed; its end was set from {before} to {after} bytes"),
        true => "was not closed".to_owned(),
        false => "was closed".to_owned(),
    };
    writeln!(out, "{} datasets checked; the file {found}", repaired.datasets)?;
    Ok(())
}
