//! `info`: what is in a source and how it is stored.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::blz::{ArrayInfo, Arrays};
use ctds_hdf5::convert::{DatasetInfo, Source, SourceTable, SpaceUsage, ThinTable, display_name};
use ctds_hdf5::pack::{Contents, StoredFile, StoredFiles};
use ctds_hdf5::value::{Shape, Value, Values};
use ctds_hdf5::{ColumnInfo, ColumnKind, FileLayout, ManagerInfo, Plugin, Table, TableKind, shown_path};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::ls;
use crate::args::{External, Global, SOURCE};
use crate::exit::Status;
use crate::report;

/// Arguments of `info`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge info my.ms
  h5bridge info my.h5 --json
  h5bridge info run.sion/TASK3
  h5bridge info s3://bucket/my.h5")]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    #[command(flatten)]
    external: External,
}

/// Prints arrays: name, element type, shape, chunks.
fn run_arrays(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let arrays = Arrays::open(&args.source)?;
    let list = arrays.list()?;
    if global.json {
        let array = |array: &ArrayInfo| {
            json!({
                "name": array.name, "dtype": array.dtype, "shape": array.shape, "chunk_rows": array.chunk_rows,
                "bytes": array.bytes, "codec": array.codec, "checksum": array.checksum, "version": array.version,
            })
        };
        let document = json!({
            "source": args.source.display().to_string(),
            "arrays": list.iter().map(array).collect::<Vec<_>>(),
            "attributes": arrays.attributes(),
        });
        writeln!(out, "{document:#}")?;
        return Ok(Status::Done);
    }
    list.iter().try_for_each(|array| writeln!(out, "{}", ls::array_line(array)))?;
    for (name, value) in arrays.attributes() {
        writeln!(out, "  {}: {value}", ls::printable(&name))?;
    }
    Ok(Status::Done)
}

/// Prints a container of files that are not those of a table: format, number of files, properties.
fn run_container(container: &StoredFiles, global: &Global, out: &mut impl Write) -> Result<Status> {
    let (info, properties) = (container.info(), container.properties()?);
    let (files, bytes) = container.totals()?;
    if global.json {
        let mut document = json!({
            "source": container.name(), "format": info.format, "version": info.version, "block_size": info.block_bytes,
            "checksum": info.checksum, "files": files, "bytes": bytes,
        });
        ls::add_properties(&mut document, &properties);
        writeln!(out, "{document:#}")?;
        return Ok(Status::Done);
    }
    let bytes = report::bytes(bytes);
    writeln!(out, "{}  {}: {files} files of {bytes}", ls::printable(container.name()), ls::describe(&info))?;
    ls::property_lines(&properties).try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Status::Done)
}

/// Prints a file in a container: length, how it is stored, properties.
fn run_file(args: &Args, file: &StoredFile, global: &Global, out: &mut impl Write) -> Result<Status> {
    let listed = &file.listed;
    if global.json {
        let mut document = ls::file_json(listed);
        document["source"] = args.source.display().to_string().into();
        writeln!(out, "{document:#}")?;
        return Ok(Status::Done);
    }
    let layout = &listed.layout;
    let stored = format!("{} stored in {} blocks", report::bytes(layout.stored_bytes), layout.blocks);
    writeln!(out, "{}  {} bytes, {stored}", ls::printable(&listed.name), listed.len)?;
    ls::property_lines(&listed.properties).try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Status::Done)
}

/// Prints every table and column. Shapes are slowest axis first, as HDF5 and numpy show them.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    if Arrays::are_at(&args.source) {
        return run_arrays(&args, global, out);
    }
    match Contents::of(&args.source)? {
        Contents::Container(files) => return run_container(&files, global, out),
        Contents::File(file) => return run_file(&args, &file, global, out),
        _ => {}
    }
    let source = Source::open_with(&args.source, args.external.open_options(global))?;
    if global.json {
        let mut tables = Map::new();
        for table in source.tables() {
            let document = TableJson::new(table).and_then(|document| Ok(serde_json::to_value(document)?));
            let document = document.unwrap_or_else(|error| json!({ "error": error.to_string() }));
            tables.insert(table.name.clone(), document);
        }
        let mut document = json!({ "source": shown_path(&args.source), "tables": tables });
        report::add_plugins(&mut document, &plugins(&source));
        if !source.damage().is_empty() {
            document["damage"] = json!(source.damage());
        }
        if let Some(thin) = ThinTable::open(&args.source)? {
            let link = |(file, dataset, bytes)| json!({ "file": file, "dataset": dataset, "bytes": bytes });
            document["thin"] = json!({ "hdf5": thin.hdf5().display().to_string(), "links": thin.links().map(link).collect::<Vec<_>>() });
        }
        if let Some(usage) = SpaceUsage::of(&args.source)? {
            document["bytes"] = json!({
                "file": usage.file, "datasets": usage.datasets, "recipes": usage.recipes, "literals": usage.literals,
                "other": usage.other,
            });
            document["restorable"] = usage.restorable.into();
        }
        writeln!(out, "{document:#}")?;
        return Ok(Status::Done);
    }
    for table in source.tables() {
        print(table, out)?;
    }
    if !source.damage().is_empty() {
        writeln!(out, "salvaged from a damaged source; left out:")?;
        source.damage().iter().try_for_each(|damage| writeln!(out, "  {damage}"))?;
    }
    if let Some(line) = report::plugin_line(&plugins(&source)) {
        writeln!(out, "{line}")?;
    }
    if let Some(usage) = SpaceUsage::of(&args.source)? {
        let [file, datasets, recipes, literals, other] =
            [usage.file, usage.datasets, usage.recipes, usage.literals, usage.other].map(report::bytes);
        let restorable = if usage.restorable {
            format!("; restorable: {recipes} of recipes and {literals} of literals")
        } else {
            String::new()
        };
        writeln!(out, "the file: {file}, of which {datasets} datasets, {other} structure and strings{restorable}")?;
    }
    Ok(Status::Done)
}

/// The plugins that HDF5 readers need for the datasets of all tables. What cannot be read needs none.
fn plugins(source: &Source) -> BTreeSet<Plugin> {
    let of_table = |table: &SourceTable| {
        let columns = table.columns().map_or(0, <[ColumnInfo]>::len);
        (0..columns).flat_map(|index| table.storage(index).unwrap_or_default()).collect::<Vec<_>>()
    };
    let datasets = source.tables().iter().flat_map(of_table);
    datasets.flat_map(|dataset| dataset.plugins).collect()
}

/// The document of a table.
#[derive(Serialize)]
struct TableJson {
    nrow: u64,
    #[serde(rename = "type")]
    table_type: String,
    subtype: String,
    columns: Vec<ColumnJson>,
    #[serde(flatten)]
    casacore: Option<CasacoreJson>,
}

/// Details that only a casacore table has.
#[derive(Serialize)]
struct CasacoreJson {
    kind: String,
    byte_order: &'static str,
    locked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<StorageJson>,
    managers: Vec<ManagerJson>,
}

#[derive(Serialize)]
struct StorageJson {
    format: &'static str,
    version: Option<u32>,
    block_size: Option<u64>,
    checksum: Option<&'static str>,
}

#[derive(Serialize)]
struct ManagerJson {
    #[serde(rename = "type")]
    type_name: String,
    name: String,
    sequence: u32,
    parameters: Map<String, Json>,
}

#[derive(Serialize)]
struct ColumnJson {
    name: String,
    dtype: &'static str,
    kind: &'static str,
    shape: Option<Vec<u64>>,
    manager: String,
    manager_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    engine_chain: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    parameters: Map<String, Json>,
    #[serde(flatten)]
    stored: Option<StoredJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hypercubes: Vec<HypercubeJson>,
}

/// How a column is stored, for columns in datasets or in files of a container.
#[derive(Serialize)]
struct StoredJson {
    chunk: Option<Vec<u64>>,
    index: String,
    filters: Vec<String>,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    datasets: Vec<DatasetJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
}

#[derive(Serialize)]
struct DatasetJson {
    name: String,
    shape: Vec<u64>,
    chunk: Option<Vec<u64>>,
    index: String,
    appendable: bool,
    filters: Vec<String>,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<ElsewhereJson>,
}

/// Location of the elements, if the dataset itself does not hold them.
#[derive(Serialize)]
struct ElsewhereJson {
    kind: &'static str,
    targets: Vec<String>,
}

#[derive(Serialize)]
struct HypercubeJson {
    shape: Vec<u64>,
    tile: Vec<u64>,
}

impl TableJson {
    fn new(table: &SourceTable) -> Result<Self> {
        let info = table.info()?;
        let columns = table.columns()?.iter().enumerate();
        let casacore = table.table()?.map(|table| CasacoreJson {
            kind: table_kind(table),
            byte_order: table.byte_order().name(),
            locked: table.is_locked(),
            storage: table.storage().map(|storage| StorageJson {
                format: storage.format,
                version: storage.version,
                block_size: storage.block_bytes,
                checksum: storage.checksum,
            }),
            managers: table.managers().map(|manager| ManagerJson::new(&manager)).collect(),
        });
        Ok(TableJson {
            nrow: table.rows()?,
            table_type: info.table_type.to_string(),
            subtype: info.sub_type.to_string(),
            columns: columns.map(|(index, column)| ColumnJson::new(table, index, column)).collect::<Result<_>>()?,
            casacore,
        })
    }
}

impl ManagerJson {
    fn new(manager: &ManagerInfo<'_>) -> Self {
        ManagerJson {
            type_name: manager.type_name.to_string(),
            name: manager.name.to_string(),
            sequence: manager.sequence,
            parameters: parameters(manager).collect(),
        }
    }
}

impl ColumnJson {
    fn new(table: &SourceTable, index: usize, column: &ColumnInfo) -> Result<Self> {
        let chain = chain(table, column)?;
        let datasets = table.storage(index)?;
        // a dataset that was refused has no shape
        let first = datasets.first().filter(|first| first.elsewhere.is_none() || !first.shape.is_empty());
        let first = first.map(|first| first.shape.reversed());
        Ok(ColumnJson {
            name: column.desc.name.to_string(),
            dtype: column.data_type().name(),
            kind: if column.desc.kind == ColumnKind::Array { "array" } else { "scalar" },
            shape: first.or_else(|| column.shape.as_ref().map(Shape::reversed)),
            manager: column.manager.to_string(),
            manager_name: column.manager_name.to_string(),
            engine_chain: if chain.len() > 1 { chain } else { Vec::new() },
            parameters: column
                .engine_parameters()
                .map(|field| (field.name.to_string(), value_json(&field.value)))
                .collect(),
            stored: match StoredJson::in_datasets(datasets) {
                Some(stored) => Some(stored),
                None => StoredJson::in_files(&table.stored_files(index)?),
            },
            hypercubes: table
                .hypercubes(index)
                .iter()
                .map(|(shape, tile)| HypercubeJson { shape: shape.reversed(), tile: tile.reversed() })
                .collect(),
        })
    }
}

impl StoredJson {
    /// The chunks are those of the first dataset.
    fn in_datasets(datasets: Vec<DatasetInfo>) -> Option<Self> {
        let datasets: Vec<_> = datasets.into_iter().map(DatasetJson::new).collect();
        let first = datasets.first()?;
        Some(StoredJson {
            chunk: first.chunk.clone(),
            index: first.index.clone(),
            filters: first.filters.clone(),
            stored_bytes: datasets.iter().map(|dataset| dataset.stored_bytes).sum(),
            datasets,
            files: Vec::new(),
        })
    }

    /// The blocks are those of the largest file; the bytes are those of all columns of the manager.
    fn in_files(files: &[(String, FileLayout)]) -> Option<Self> {
        let (_, largest) = files.iter().max_by_key(|(_, layout)| layout.stored_bytes)?;
        Some(StoredJson {
            chunk: largest.block_bytes.map(|bytes| vec![bytes]),
            index: largest.index.clone().unwrap_or_else(|| "none".to_owned()),
            filters: largest.filters.clone(),
            stored_bytes: files.iter().map(|(_, layout)| layout.stored_bytes).sum(),
            datasets: Vec::new(),
            files: files.iter().map(|(name, _)| name.clone()).collect(),
        })
    }
}

impl DatasetJson {
    fn new(dataset: DatasetInfo) -> Self {
        DatasetJson {
            name: dataset.name,
            shape: dataset.shape.reversed(),
            chunk: dataset.chunk.as_ref().map(Shape::reversed),
            index: dataset.index,
            appendable: dataset.appendable,
            filters: dataset.filters,
            stored_bytes: dataset.stored_bytes,
            elsewhere: dataset.elsewhere.map(|found| ElsewhereJson { kind: found.kind, targets: found.targets }),
        }
    }
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
        if let Some(thin) = ThinTable::open(table.path())? {
            writeln!(out, "  a thin table: tiles are in {}", thin.hdf5().display())?;
            for (file, dataset, bytes) in thin.links() {
                writeln!(out, "    {file}  {dataset}, {}", report::bytes(bytes))?;
            }
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
