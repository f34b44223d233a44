//! `info`: what is in a source and how it is stored.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::convert::{DatasetInfo, Source, SourceTable, cost, display_name};
use ctds_hdf5::value::{Shape, Value, Values};
use ctds_hdf5::{ColumnInfo, ColumnKind, ManagerInfo, Table, TableKind};
use serde_json::{Map, Value as Json, json};

use super::ls;
use crate::cli::{External, Global};
use crate::exit::Status;
use crate::report;

/// Arguments of `info`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge info my.ms
  h5bridge info my.h5 --json")]
pub struct Args {
    /// A table directory or a native HDF5 file
    source: PathBuf,
    #[command(flatten)]
    external: External,
}

/// Prints every table and column. Shapes are slowest axis first, as HDF5 and numpy show them.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let source = Source::open_with(&args.source, args.external.open_options(global))?;
    if global.json {
        let mut tables = Map::new();
        for table in source.tables() {
            let document = to_json(table).unwrap_or_else(|error| json!({ "error": error.to_string() }));
            tables.insert(table.name.clone(), document);
        }
        let mut document = json!({ "source": args.source.display().to_string(), "tables": tables });
        if let Some(cost) = cost(&args.source)? {
            document["bytes"] = json!({
                "file": cost.file, "datasets": cost.datasets, "recipes": cost.recipes, "literals": cost.literals,
                "other": cost.other,
            });
            document["restorable"] = cost.restorable.into();
        }
        writeln!(out, "{document:#}")?;
        return Ok(Status::Done);
    }
    for table in source.tables() {
        print(table, out)?;
    }
    if let Some(cost) = cost(&args.source)? {
        let [file, datasets, recipes, literals, other] =
            [cost.file, cost.datasets, cost.recipes, cost.literals, cost.other].map(report::bytes);
        let restorable = if cost.restorable {
            format!("; restorable: {recipes} of recipes and {literals} of literals")
        } else {
            String::new()
        };
        writeln!(out, "the file: {file}, of which {datasets} datasets, {other} structure and strings{restorable}")?;
    }
    Ok(Status::Done)
}

fn kind(info: &ColumnInfo) -> &'static str {
    if info.desc.kind == ColumnKind::Array { "array" } else { "scalar" }
}

fn to_json(table: &SourceTable) -> Result<Json> {
    let info = table.info()?;
    let mut columns = Vec::new();
    for (index, column) in table.columns()?.iter().enumerate() {
        let mut entry = json!({
            "name": column.desc.name.to_string(),
            "dtype": column.data_type().name(),
            "kind": kind(column),
            "shape": column.shape.as_ref().map(Shape::reversed),
            "manager": column.manager.to_string(),
            "manager_name": column.manager_name.to_string(),
        });
        let chain = chain(table, column)?;
        if chain.len() > 1 {
            entry["engine_chain"] = chain.into();
        }
        let parameters: Map<String, Json> =
            column.engine_parameters().map(|field| (field.name.to_string(), value_json(&field.value))).collect();
        if !parameters.is_empty() {
            entry["parameters"] = parameters.into();
        }
        let datasets = table.storage(index)?;
        if let Some(first) = datasets.first() {
            let is_known = first.elsewhere.is_none() || !first.shape.is_empty();
            let all: Vec<Json> = datasets.iter().map(dataset_json).collect();
            for key in ["chunk", "index", "filters"] {
                entry[key] = all[0][key].clone();
            }
            if is_known {
                entry["shape"] = first.shape.reversed().into();
            }
            entry["stored_bytes"] = datasets.iter().map(|dataset| dataset.stored_bytes).sum::<u64>().into();
            entry["datasets"] = all.into();
        }
        let files = table.stored_files(index)?;
        if let Some((_, largest)) = files.iter().max_by_key(|(_, layout)| layout.stored_bytes) {
            entry["chunk"] = json!(largest.block_bytes.map(|bytes| [bytes]));
            entry["index"] = largest.index.as_deref().unwrap_or("none").into();
            entry["filters"] = largest.filters.clone().into();
            // of all columns of the manager
            entry["stored_bytes"] = files.iter().map(|(_, layout)| layout.stored_bytes).sum::<u64>().into();
            entry["files"] = files.iter().map(|(name, _)| name.as_str()).collect();
        }
        let cubes = table.hypercubes(index);
        if !cubes.is_empty() {
            entry["hypercubes"] =
                cubes.iter().map(|(shape, tile)| json!({"shape": shape.reversed(), "tile": tile.reversed()})).collect();
        }
        columns.push(entry);
    }
    let mut document = json!({
        "nrow": table.rows()?,
        "type": info.table_type.to_string(),
        "subtype": info.sub_type.to_string(),
        "columns": columns,
    });
    if let Some(table) = table.table()? {
        document["kind"] = table_kind(table).into();
        document["byte_order"] = table.byte_order().name().into();
        document["locked"] = table.is_locked().into();
        if let Some(storage) = table.storage() {
            document["storage"] = json!({
                "format": storage.format,
                "version": storage.version,
                "block_size": storage.block_bytes,
                "checksum": storage.checksum,
            });
        }
        document["managers"] = table
            .managers()
            .map(|manager| {
                let parameters: Map<String, Json> = parameters(&manager).collect();
                json!({
                    "type": manager.type_name.to_string(),
                    "name": manager.name.to_string(),
                    "sequence": manager.sequence,
                    "parameters": parameters,
                })
            })
            .collect();
    }
    Ok(document)
}

fn parameters<'a>(manager: &'a ManagerInfo<'_>) -> impl Iterator<Item = (String, Json)> + 'a {
    manager.parameters.fields.iter().map(|field| (field.name.to_string(), value_json(&field.value)))
}

/// For people: numbers and strings as they are, the rest in words.
fn value_json(value: &Value) -> Json {
    match value {
        Value::Scalar(Values::String(v)) => v[0].to_string().into(),
        Value::Scalar(Values::Bool(v)) => v[0].into(),
        Value::Scalar(Values::Int(v)) => v[0].into(),
        Value::Scalar(Values::UInt(v)) => v[0].into(),
        Value::Scalar(Values::Float(v)) => v[0].into(),
        Value::Scalar(Values::Double(v)) => v[0].into(),
        Value::Scalar(values) | Value::Array(_, values) => format!("{values:?}").into(),
        Value::Record(record) => format!("a record of {} fields", record.fields.len()).into(),
        Value::Table(stored) => stored.to_string().into(),
    }
}

fn table_kind(table: &Table) -> String {
    match table.kind() {
        TableKind::Plain => "plain table".to_owned(),
        TableKind::Reference { root } => format!("reference to {}", root.display()),
        TableKind::Concatenation { parts } => {
            let parts: Vec<_> = parts.iter().map(|part| part.display().to_string()).collect();
            format!("concatenation of {}", parts.join(", "))
        }
    }
}

/// The managers that the values of a column pass through, its own first.
fn chain(table: &SourceTable, column: &ColumnInfo) -> Result<Vec<String>> {
    let columns = table.columns()?;
    let mut chain = vec![column.manager.to_string().trim_end().to_owned()];
    let mut next = column.stored_column();
    while let Some(name) = next
        && chain.len() <= columns.len()
        && let Some(stored) = columns.iter().find(|stored| stored.desc.name == name)
    {
        chain.push(format!("{name} in {}", stored.manager.to_string().trim_end()));
        next = stored.stored_column();
    }
    Ok(chain)
}

fn dataset_json(dataset: &DatasetInfo) -> Json {
    let mut document = json!({
        "name": dataset.name,
        "shape": dataset.shape.reversed(),
        "chunk": dataset.chunk.as_ref().map(Shape::reversed),
        "index": dataset.index,
        "appendable": dataset.appendable,
        "filters": dataset.filters,
        "stored_bytes": dataset.stored_bytes,
    });
    if let Some(elsewhere) = &dataset.elsewhere {
        document["elsewhere"] = json!({ "kind": elsewhere.kind, "targets": elsewhere.targets });
    }
    document
}

fn print(table: &SourceTable, out: &mut impl Write) -> Result<()> {
    let name = display_name(&table.name);
    let columns = match table.columns() {
        Ok(columns) => columns,
        Err(error) => {
            writeln!(out, "{name}  {error}")?;
            return Ok(());
        }
    };
    let table_type = table.info()?.table_type.to_string();
    writeln!(out, "{name}  {} rows, {} columns  {table_type}", table.rows()?, columns.len())?;
    if let Some(table) = table.table()? {
        let locked = if table.is_locked() { "locked for reading" } else { "not locked" };
        writeln!(out, "  {}, {} endian, {locked}", table_kind(table), table.byte_order().name())?;
        if let Some(storage) = table.storage().filter(|storage| storage.block_bytes.is_some()) {
            writeln!(out, "  in {}", ls::describe(&storage))?;
        }
        for manager in table.managers().filter(|manager| !manager.parameters.fields.is_empty()) {
            let list: Vec<_> = parameters(&manager).map(|(name, value)| format!("{name}={value}")).collect();
            writeln!(out, "  {} {}: {}", manager.type_name, manager.name, list.join(" "))?;
        }
    }
    for (index, column) in columns.iter().enumerate() {
        let shape = column.shape.as_ref().map_or("any shape".to_owned(), |shape| format!("{:?}", shape.reversed()));
        let shape = if column.desc.kind == ColumnKind::Scalar { String::new() } else { shape };
        let manager = match column.manager_name.to_string() {
            name if name.is_empty() => column.manager.to_string(),
            name => format!("{} ({name})", column.manager),
        };
        let (column_name, data_type) = (column.desc.name.to_string(), column.data_type().name());
        writeln!(out, "  {column_name:24} {data_type:9} {shape:12} {manager}")?;
        for stored in chain(table, column)?.iter().skip(1) {
            writeln!(out, "    from {stored}")?;
        }
        let engine: Vec<_> =
            column.engine_parameters().map(|field| format!("{}={}", field.name, value_json(&field.value))).collect();
        if !engine.is_empty() {
            writeln!(out, "    {}", engine.join(" "))?;
        }
        for (shape, tile) in table.hypercubes(index) {
            writeln!(out, "    hypercube {:?} in tiles {:?}", shape.reversed(), tile.reversed())?;
        }
        for dataset in table.storage(index)? {
            if let Some(elsewhere) = &dataset.elsewhere {
                writeln!(out, "    {}: {}", dataset.name, elsewhere.text)?;
                continue;
            }
            let chunk =
                dataset.chunk.as_ref().map_or(String::new(), |chunk| format!(" in chunks {:?}", chunk.reversed()));
            let filters = dataset.filters.join(", ");
            let bytes = report::bytes(dataset.stored_bytes);
            let (shape, index, name) = (dataset.shape.reversed(), dataset.index, dataset.name);
            writeln!(out, "    {name}: {shape:?}{chunk}, {index}, {bytes} {filters}")?;
        }
    }
    Ok(())
}
