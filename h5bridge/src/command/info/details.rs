//! The detailed views of `h5bridge info`: all columns, how everything is stored, all keywords.

use std::io::Write;

use anyhow::Result;
use ctds_hdf5::convert::{Source, SourceTable, ThinTable, display_name};
use ctds_hdf5::documents::keyword_value;
use ctds_hdf5::value::{Record, Value};

use super::columns::ColumnFacts;
use super::screen::Section;
use super::words::{count, parameters};
use crate::command::ls;
use crate::report;

/// Order in which `h5bridge info --columns` lists columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sort {
    /// Columns in alphabetical order, by name
    Name,
    /// Columns with the most bytes first
    Size,
    /// Columns in the order of the table
    None,
}

fn title(table: &SourceTable) -> String {
    let rows = table.rows().map_or_else(|error| error.to_string(), |rows| count(rows, "row"));
    let table_type = table.info().map(|info| info.table_type.to_string()).unwrap_or_default();
    let columns = count(table.columns().map_or(0, <[_]>::len) as u64, "column");
    format!("{}  {rows}, {columns}  {table_type}", display_name(&table.name)).trim_end().to_owned()
}

/// Empty columns included.
pub(super) fn columns(source: &Source, table: &SourceTable, sort: Sort) -> Section {
    let mut facts = ColumnFacts::of(source, table);
    match sort {
        Sort::Name => facts.sort_by(|a, b| a.name.cmp(&b.name)),
        Sort::Size => facts.sort_by_key(|column| std::cmp::Reverse(column.bytes)),
        Sort::None => {}
    }
    let row = |column: ColumnFacts| {
        let shape = if column.is_empty { "empty".to_owned() } else { column.shape.clone() };
        let size = column.size();
        let manager = match column.compression.is_empty() {
            true => column.manager,
            false => format!("{}, {}", column.manager, column.compression),
        };
        vec![column.name, column.data_type.to_owned(), shape, size, column.unit, manager, column.comment]
    };
    Section {
        title: title(table),
        heads: vec!["Name", "Type", "Shape", ">Size", "Unit", "Manager", "Comment"],
        rows: facts.into_iter().map(row).collect(),
        ..Section::default()
    }
}

pub(super) fn keywords(table: &SourceTable) -> Section {
    let mut rows = Vec::new();
    if let Ok(keywords) = table.keywords() {
        add_keywords("", keywords, &mut rows);
    }
    for column in table.columns().unwrap_or_default() {
        add_keywords(&format!("{} ", column.desc.name), &column.desc.keywords, &mut rows);
    }
    Section { title: title(table), rows, ..Section::default() }
}

fn add_keywords(prefix: &str, record: &Record, rows: &mut Vec<Vec<String>>) {
    for field in &record.fields {
        let name = format!("{prefix}{}", field.name);
        match &field.value {
            Value::Record(nested) => add_keywords(&format!("{name}."), nested, rows),
            Value::Table(stored) => rows.push(vec![name, format!("table {stored}")]),
            value => rows.push(vec![name, keyword_value(value).to_string()]),
        }
    }
}

/// Managers with their parameters, hypercubes, datasets.
pub(super) fn print_storage(table: &SourceTable, out: &mut impl Write) -> Result<()> {
    writeln!(out, "{}", ls::printable(&title(table)))?;
    let Ok(columns) = table.columns() else { return Ok(()) };
    if let Some(table) = table.table()? {
        let locked = if table.is_locked() { "locked for reading" } else { "not locked" };
        writeln!(out, "  {}, {} endian, {locked}", table.kind(), table.byte_order().name())?;
        if let Some(storage) = table.storage().filter(|storage| storage.block_bytes.is_some()) {
            writeln!(out, "  in {}", ls::describe(&storage))?;
        }
        if let Some(thin) = ThinTable::open(table.path())? {
            writeln!(out, "  a thin table: tiles are in {}", thin.hdf5().display())?;
            for (file, dataset, bytes) in thin.links() {
                writeln!(out, "    {file}  {dataset}, {}", report::bytes(bytes))?;
            }
        }
        let bytes = table.manager_bytes().unwrap_or_default();
        for (number, manager) in table.managers().enumerate() {
            let list: Vec<_> = parameters(&manager).map(|(name, value)| format!("{name}={value}")).collect();
            let size =
                bytes.get(number).filter(|bytes| **bytes > 0).map(|bytes| format!(", {}", report::bytes(*bytes)));
            let name = ls::printable(&format!("{} {}", manager.type_name, manager.name));
            let line = format!("  {}{}: {}", name.trim_end(), size.unwrap_or_default(), list.join(" "));
            writeln!(out, "{}", line.trim_end().trim_end_matches(':'))?;
        }
    }
    for (index, column) in columns.iter().enumerate() {
        print_column(table, index, column, out)?;
    }
    Ok(())
}

fn print_column(table: &SourceTable, index: usize, column: &ctds_hdf5::ColumnInfo, out: &mut impl Write) -> Result<()> {
    let manager = match column.manager_name.to_string() {
        name if name.is_empty() => column.manager.to_string(),
        name => format!("{} ({name})", column.manager),
    };
    let name = ls::printable(&column.desc.name.to_string());
    writeln!(out, "  {name:24} {:9} {}", column.desc.type_name(), ls::printable(&manager))?;
    for stored in table.engine_chain(index)?.iter().skip(1) {
        writeln!(out, "    from {}", ls::printable(stored))?;
    }
    let engine: Vec<_> =
        column.engine_parameters().map(|field| format!("{}={}", field.name, keyword_value(&field.value))).collect();
    if !engine.is_empty() {
        writeln!(out, "    {}", engine.join(" "))?;
    }
    for (shape, tile) in table.hypercubes(index) {
        writeln!(out, "    hypercube {:?} in tiles {:?}", shape.reversed(), tile.reversed())?;
    }
    for (file, layout) in table.stored_files(index)? {
        let filters = layout.filters.join(", ");
        writeln!(out, "    {file}: {} {filters}", report::bytes(layout.stored_bytes))?;
    }
    for dataset in table.storage(index)? {
        if let Some(elsewhere) = &dataset.elsewhere {
            writeln!(out, "    {}: {}", dataset.name, elsewhere.text)?;
            continue;
        }
        let chunk = dataset.chunk.as_ref().map_or(String::new(), |chunk| format!(" in chunks {:?}", chunk.reversed()));
        let bytes = report::bytes(dataset.stored_bytes);
        let (shape, index, name) = (dataset.shape.reversed(), dataset.index, dataset.name);
        let line = format!("    {name}: {shape:?}{chunk}, {index}, {bytes} {}", dataset.filters.join(", "));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
