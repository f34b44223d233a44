//! The JSON document of tables that `h5bridge info --json` prints. docs/info.md describes its
//! members.

use anyhow::Result;
use ctds_hdf5::convert::{DatasetInfo, SourceTable};
use ctds_hdf5::value::Shape;
use ctds_hdf5::{ColumnInfo, ColumnKind, FileLayout, ManagerInfo, Table};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::words::{chain, parameters, table_kind, value_json};

#[derive(Serialize)]
pub(super) struct TableJson {
    nrow: u64,
    #[serde(rename = "type")]
    table_type: String,
    subtype: String,
    columns: Vec<ColumnJson>,
    #[serde(flatten)]
    casacore: Option<CasacoreJson>,
}

/// Casacore tables only.
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
    /// Files of all its columns.
    bytes: u64,
}

#[derive(Serialize)]
struct ColumnJson {
    name: String,
    dtype: &'static str,
    kind: &'static str,
    shape: Option<Vec<u64>>,
    manager: String,
    manager_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    engine_chain: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    parameters: Map<String, Json>,
    #[serde(flatten)]
    stored: Option<StoredJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hypercubes: Vec<HypercubeJson>,
}

/// HDF5 datasets, or files of a container.
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

/// Elements in other files, such as external storage.
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
    pub(super) fn new(table: &SourceTable) -> Result<Self> {
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
            managers: managers(table),
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
    fn new(manager: &ManagerInfo<'_>, bytes: u64) -> Self {
        ManagerJson {
            type_name: manager.type_name.to_string(),
            name: manager.name.to_string(),
            sequence: manager.sequence,
            parameters: parameters(manager).collect(),
            bytes,
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
            error: table.unreadable(index).map(|error| error.to_string()),
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
    /// Chunks are those of the first dataset; `None` without datasets.
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

    /// Files hold all columns of the data manager: the blocks of the largest, and the bytes of all.
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

/// 0 bytes where the files cannot be listed.
fn managers(table: &Table) -> Vec<ManagerJson> {
    let bytes = table.manager_bytes().unwrap_or_default();
    let bytes = bytes.into_iter().chain(std::iter::repeat(0));
    table.managers().zip(bytes).map(|(manager, bytes)| ManagerJson::new(&manager, bytes)).collect()
}
