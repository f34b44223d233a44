//! The default view of `h5bridge info`: kind of the source, its columns, findings that need
//! attention.

use std::collections::BTreeSet;
use std::path::Path;

use ctds_hdf5::convert::{Source, SourceTable, SpaceUsage, ThinTable};
use ctds_hdf5::documents::Attention;
use ctds_hdf5::program::shown_path;
use ctds_hdf5::{ColumnInfo, ColumnKind, Plugin};
use ms_look::Summary;

use super::attention::sentences;
use super::columns::ColumnFacts;
use super::screen::Section;
use super::words::count;
use super::{image, observation};
use crate::command::ls;
use crate::report;

/// Characters of the source's name in the first line.
const NAME_WIDTH: usize = 40;

/// Directories (0: the table's) whose files count for the size.
const MAX_DEPTH: usize = 16;

pub(super) struct Facts<'a> {
    /// As the user gave it: path of the source.
    pub(super) path: &'a Path,
    pub(super) source: &'a Source,
    pub(super) summary: Option<Summary>,
    pub(super) findings: Vec<Attention>,
    pub(super) usage: Option<SpaceUsage>,
    pub(super) thin: Option<ThinTable>,
    pub(super) plugins: BTreeSet<Plugin>,
}

/// Judged by the type in table.info; for other types, "MeasurementSet" if `summary` is given and
/// DATA_DESC_ID exists, else "table": words for the content.
pub(super) fn kind(main: &SourceTable, summary: Option<&Summary>) -> &'static str {
    let table_type = main.info().map(|info| info.table_type.to_string()).unwrap_or_default();
    match table_type.trim() {
        "Measurement Set" => "MeasurementSet",
        "Calibration" => "calibration table",
        "Image" => "image",
        _ if summary.is_some() && main.columns().is_ok_and(|columns| has(columns, "DATA_DESC_ID")) => "MeasurementSet",
        _ => "table",
    }
}

fn has(columns: &[ColumnInfo], name: &str) -> bool {
    columns.iter().any(|column| column.desc.name == name)
}

pub(super) fn sections(facts: &Facts<'_>) -> Vec<Section> {
    let Some(main) = facts.source.tables().first() else { return Vec::new() };
    let kind = kind(main, facts.summary.as_ref());
    let mut sections = vec![title(facts, main, kind)];
    match (&facts.summary, kind) {
        (Some(summary), _) => sections.extend(observation::sections(summary, true)),
        (None, "image") => sections.extend(image::sections(main)),
        _ => {}
    }
    sections.push(columns(facts.source, main, facts.summary.is_some()));
    if facts.summary.is_none() {
        sections.extend(subtables(facts.source));
    }
    sections.extend(storage(facts));
    sections.extend(attention(facts));
    sections
}

pub(super) fn table_sections(facts: &Facts<'_>, number: usize) -> Vec<Section> {
    let Some(table) = facts.source.tables().get(number) else { return Vec::new() };
    let name = ctds_hdf5::convert::display_name(&table.name);
    let rows = table.rows().map_or_else(|error| error.to_string(), |rows| count(rows, "row"));
    let mut sections = vec![Section { title: format!("{name}  {rows}"), ..Section::default() }];
    if let Some(summary) = &facts.summary {
        sections.extend(observation::table(summary, &table.name));
    }
    sections.push(Section { all: None, ..columns(facts.source, table, false) });
    sections
}

fn title(facts: &Facts<'_>, main: &SourceTable, kind: &str) -> Section {
    let shown = shown_path(facts.path);
    let name = Path::new(&shown).file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into());
    let name = console::truncate_str(&name, NAME_WIDTH, "…");
    let sub_type = main.info().map(|info| info.sub_type.to_string()).unwrap_or_default();
    let sub_type = match sub_type.trim() {
        "" => String::new(),
        text => format!(" ({text})"),
    };
    let mut words = vec![format!("{kind}{sub_type}")];
    words.extend(main.rows().ok().map(|rows| count(rows, "row")));
    words.extend(main.columns().ok().map(|columns| count(columns.len() as u64, "column")));
    let subtables = facts.source.tables().len() as u64 - 1;
    words.extend((subtables > 0).then(|| count(subtables, "subtable")));
    words.extend(facts.source.remote_bytes().or_else(|| disk_bytes(facts.path, 0)).map(report::bytes));
    Section { title: format!("{name}: {}", words.join(", ")), rows: vec![vec![stored(main)]], ..Section::default() }
}

/// Directory, container or native file; whether it refers to other tables; byte order.
fn stored(main: &SourceTable) -> String {
    let Ok(Some(table)) = main.table() else {
        return if main.is_by_msv4() { "native HDF5 file by the schema MSv4" } else { "native HDF5 file" }.to_owned();
    };
    let storage = match table.storage() {
        Some(storage) if storage.format == "directory" => "table directory".to_owned(),
        Some(storage) => format!("in {}", ls::describe(&storage)),
        None => "table directory without data of its own".to_owned(),
    };
    format!("{storage}, {}, {} endian", table.kind(), table.byte_order().name())
}

/// `None` if the path is not on disk. A symbolic link is followed at `depth` 0, below it counts
/// with its own size. Directories deeper than `MAX_DEPTH` count as 0 bytes.
fn disk_bytes(path: &Path, depth: usize) -> Option<u64> {
    // the target of a link in a table is not part of the table
    let found = if depth == 0 { path.metadata() } else { path.symlink_metadata() }.ok()?;
    if !found.is_dir() {
        return Some(found.len());
    }
    if depth > MAX_DEPTH {
        return Some(0);
    }
    let entries = std::fs::read_dir(path).ok()?;
    Some(entries.flatten().filter_map(|entry| disk_bytes(&entry.path(), depth + 1)).sum())
}

/// Columns that are not empty; with `arrays` those of arrays only, as for MeasurementSets.
fn columns(source: &Source, table: &SourceTable, arrays: bool) -> Section {
    let infos = table.columns().unwrap_or_default();
    let facts = ColumnFacts::of(source, table);
    let is_listed = |column: &&ColumnFacts| !column.is_empty && (!arrays || column.kind == ColumnKind::Array);
    let listed: Vec<&ColumnFacts> = facts.iter().filter(is_listed).collect();
    let empty = facts.iter().filter(|column| column.is_empty).count();
    let scalars = facts.len() - listed.len() - empty;
    let mut left_out = Vec::new();
    left_out.extend((scalars > 0).then(|| count(scalars as u64, "scalar")));
    left_out.extend((empty > 0).then(|| format!("{empty} empty")));
    let title = match left_out.is_empty() {
        true => format!("Columns ({})", infos.len()),
        false => format!("Columns ({}; not listed: {}; --columns lists all)", infos.len(), left_out.join(", ")),
    };
    let row = |column: &&ColumnFacts| {
        vec![
            column.name.clone(),
            column.data_type.to_owned(),
            column.shape.clone(),
            column.size(),
            column.manager.clone(),
            column.compression.clone(),
        ]
    };
    let rows = listed.iter().map(row).collect::<Vec<_>>();
    let heads =
        if rows.is_empty() { Vec::new() } else { vec!["Name", "Type", "Shape", ">Size", "Manager", "Compression"] };
    Section { title, heads, rows, all: Some("--columns lists all".to_owned()), ..Section::default() }
}

/// `None` without subtables.
fn subtables(source: &Source) -> Option<Section> {
    let tables = source.tables().get(1..).filter(|tables| !tables.is_empty())?;
    let row = |table: &SourceTable| {
        let rows = table.rows().map_or_else(|_| "?".to_owned(), |rows| count(rows, "row"));
        vec![table.name.clone(), rows, count(table.columns().map_or(0, <[ColumnInfo]>::len) as u64, "column")]
    };
    Some(Section {
        title: format!("Subtables ({})", tables.len()),
        rows: tables.iter().map(row).collect(),
        all: Some("--columns lists all".to_owned()),
        ..Section::default()
    })
}

/// Datasets, structure and original files of a native file, or linked files of a thin table.
fn storage(facts: &Facts<'_>) -> Option<Section> {
    let mut rows = Vec::new();
    if let Some(thin) = &facts.thin {
        rows.push(format!(
            "a thin table: {} are in {}",
            count(thin.links().count() as u64, "file"),
            thin.hdf5().display()
        ));
    }
    if let Some(usage) = &facts.usage {
        let [file, datasets, recipes, literals, other] =
            [usage.file, usage.datasets, usage.recipes, usage.literals, usage.other].map(report::bytes);
        rows.push(format!("the file: {file}, of which {datasets} datasets, {other} structure and strings"));
        rows.extend(usage.restorable.then(|| format!("restorable: {recipes} of recipes and {literals} of literals")));
    }
    let rows: Vec<_> = rows.into_iter().map(|row| vec![row]).collect();
    (!rows.is_empty()).then(|| Section { title: "Storage".to_owned(), rows, ..Section::default() })
}

/// `None` without warnings.
fn attention(facts: &Facts<'_>) -> Option<Section> {
    let texts = sentences(&facts.findings).into_iter().chain(report::plugin_line(&facts.plugins));
    let rows: Vec<_> = texts.map(|text| vec![text]).collect();
    let all = Some("--json lists all".to_owned());
    (!rows.is_empty()).then(|| Section {
        title: "Attention".to_owned(),
        rows,
        all,
        is_warning: true,
        ..Section::default()
    })
}
