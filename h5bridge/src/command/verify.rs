//! `verify`: whether two sources hold the same.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ctds_hdf5::convert::{Difference, Source, check, verify};
use serde_json::json;

use crate::cli::Global;
use crate::exit::Status;
use crate::report;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge verify my.ms my.h5
  h5bridge verify my.ms copy.ms --json
  h5bridge verify my.h5")]
pub struct Args {
    /// A table directory or a native HDF5 file
    left: PathBuf,
    /// A table directory or a native HDF5 file; without it the first is compared with the digests that it holds of itself
    right: Option<PathBuf>,
}

/// Prints what was compared and the first difference of each column.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let open = |path: &Path| Source::open_with(path, global.open_options());
    let result = match &args.right {
        Some(right) => verify(&open(&args.left)?, &open(right)?)?,
        None => check(&args.left)?,
    };
    let equal = result.differences.is_empty();
    let status = if equal { report::finished(result.skipped.len(), global.strict) } else { Status::Different };
    let warnings: Vec<_> = result.skipped.iter().map(|name| format!("not compared: {name}")).collect();
    if global.json {
        let differences: Vec<_> = result.differences.iter().map(to_json).collect();
        let document = json!({
            "status": status.name(),
            "code": status.code(),
            "warnings": warnings,
            "equal": equal,
            "compared": {
                "tables": result.tables, "columns": result.columns, "cells": result.cells, "files": result.files,
            },
            "differences": differences,
        });
        writeln!(out, "{document:#}")?;
        return Ok(status);
    }
    for difference in &result.differences {
        writeln!(out, "{}", describe(difference))?;
    }
    if !global.quiet {
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        let verdict = if equal { "equal" } else { "different" };
        let files = if result.files > 0 { format!(", {} files", result.files) } else { String::new() };
        let (tables, columns, cells) = (result.tables, result.columns, result.cells);
        eprintln!("{verdict}: {tables} tables, {columns} columns, {cells} cells{files} compared");
    }
    Ok(status)
}

fn to_json(difference: &Difference) -> serde_json::Value {
    json!({
        "table": difference.table, "column": difference.column, "row": difference.row, "index": difference.index,
        "left": difference.left, "right": difference.right,
    })
}

fn describe(difference: &Difference) -> String {
    let mut place = if difference.table == "." { "MAIN".to_owned() } else { difference.table.clone() };
    if let Some(column) = &difference.column {
        place += &format!(" {column}");
    }
    if let Some(row) = difference.row {
        place += &format!(" row {row}");
    }
    if let Some(index) = difference.index.as_ref().filter(|index| !index.is_empty()) {
        place += &format!(" {index:?}");
    }
    format!("{place}: {} | {}", difference.left, difference.right)
}
