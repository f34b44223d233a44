//! `info --msv4`: the partitions that a MeasurementSet has as MSv4.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use ctds_hdf5::Context;
use ctds_hdf5::convert::Source;
use ctds_hdf5::documents::{InfoMsv4, InfoPartition};
use ctds_hdf5::msv4::{Options, ProcessingSet};
use ctds_hdf5::program::shown_path;

use super::screen::{self, Section};
use super::words::thousands;

pub(super) fn print(path: &Path, source: &Source, json: bool, width: usize, out: &mut impl Write) -> Result<()> {
    let name = path.file_stem().map_or_else(|| "ms".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let set = ProcessingSet::read(source, &Options { name, ..Options::default() });
    let set = set.map_err(|error| error.context(Context::path(path)))?;
    let document = InfoMsv4::new(shown_path(path), &set);
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        return Ok(());
    }
    let mut rows: Vec<_> = document.partitions.iter().map(line).collect();
    let count = document.partitions.len();
    let title = match count {
        1 => "1 partition".to_owned(),
        _ => format!("{count} partitions"),
    };
    let title = format!("{title}, {} rows, each in one place", thousands(document.rows));
    let mut heads = vec!["NAME", ">TIMES", ">BASELINES", ">CHANNELS", "CORRELATIONS", ">EMPTY", "SPLIT BY", "INTENTS"];
    for column in (0..heads.len()).rev() {
        if rows.iter().all(|row| row[column].is_empty()) {
            heads.remove(column);
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    let mut sections = vec![Section { title, heads, rows, ..Section::default() }];
    if !document.warnings.is_empty() {
        let rows = document.warnings.iter().map(|warning| vec![warning.clone()]).collect();
        sections.push(Section { title: "Attention".to_owned(), rows, is_warning: true, ..Section::default() });
    }
    screen::print(sections, None, Some(width), out)?;
    Ok(())
}

fn line(partition: &InfoPartition) -> Vec<String> {
    let places: u64 = partition.shape.iter().take(2).product();
    let empty = match places - partition.rows {
        0 => String::new(),
        empty => format!("{:.1} %", empty as f64 / places as f64 * 100.),
    };
    let extent = |axis: usize| partition.shape.get(axis).map_or_else(String::new, |extent| thousands(*extent));
    vec![
        partition.name.clone(),
        extent(0),
        extent(1),
        extent(2),
        partition.correlations.join(" "),
        empty,
        partition.split_by.join(" "),
        partition.intents.join(" "),
    ]
}
