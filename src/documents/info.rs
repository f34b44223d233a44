//! Documents of `info`. docs/reference/info.md describes their members.

use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::list::{ListedFile, named};
use super::{Described, Plugin, shown};
use crate::blz::{ArrayInfo, Arrays};
use crate::convert::{DatasetInfo, SourceTable, SpaceUsage, ThinTable};
use crate::error::Result;
use crate::output::Damage;
use crate::pack::StoredFiles;
use crate::value::{Shape, Value, Values};
use ctds::{ColumnInfo, ColumnKind, FileLayout, ManagerInfo, Property, Table};
use msv4::{Attribute, Content, Partition, ProcessingSet};

/// The document of `info` for a source with tables. It has no status. `S` summarizes a
/// MeasurementSet; programs that parse the document use [`Summary`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info<S = Summary> {
    /// Path of the source, as it was given.
    pub source: String,
    /// `MeasurementSet`, `calibration table`, `image` or `table`; missing if the source has no
    /// tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Summary of a MeasurementSet or calibration table; missing for any other source.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub summary: Option<S>,
    /// Each table, by the keywords that lead to it, such as `ANTENNA` or `A/B`; the main table,
    /// `.`, is first.
    pub tables: IndexMap<String, Described<InfoTable>>,
    /// Plugins that HDF5 readers need; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
    /// Parts and states of the source that need attention; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// Parts that were left out of a salvaged file; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    /// Links of a thin table to its HDF5 file; missing for any other table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thin: Option<InfoThin>,
    /// Use of space in a native HDF5 file; missing for any other source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<InfoSpace>,
    /// Whether `to-ms --exact` can restore the original files from a native HDF5 file; missing for
    /// any other source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restorable: Option<bool>,
    /// `msv4` for a native HDF5 file whose large columns are stored by the axes of MSv4; missing
    /// for any other source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

impl<S> Info<S> {
    /// Makes the document of a source without tables; `source` is its path.
    pub fn new(source: impl Into<String>) -> Self {
        Info {
            source: source.into(),
            kind: None,
            summary: None,
            tables: IndexMap::new(),
            plugins: Vec::new(),
            attention: Vec::new(),
            damage: Vec::new(),
            thin: None,
            bytes: None,
            restorable: None,
            schema: None,
        }
    }
}

/// The document of `info --msv4`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoMsv4 {
    /// Path of the source, as it was given.
    pub source: String,
    /// Rows of the main table, each of which has one place in one partition.
    pub rows: u64,
    /// The partitions, in the order of their keys.
    pub partitions: Vec<InfoPartition>,
    /// Sentences on what the schema cannot say, or what is left out.
    pub warnings: Vec<String>,
}

/// A partition of a MeasurementSet as MSv4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoPartition {
    /// Name of its group, such as `my_0`.
    pub name: String,
    /// Number of times, baselines (antennas of single dishes), channels and correlations.
    pub shape: Vec<u64>,
    /// Places of times and baselines that have a row.
    pub rows: u64,
    /// Names of the correlations, such as `XX`.
    pub correlations: Vec<String>,
    /// Intents of the scans.
    pub intents: Vec<String>,
    /// Columns by which it was split further, so that no two rows share a place.
    pub split_by: Vec<String>,
    /// Paths of its datasets, the partition's own first.
    pub datasets: Vec<String>,
}

impl InfoMsv4 {
    /// Makes the document of a processing set; `source` is the path of the MeasurementSet.
    pub fn new(source: impl Into<String>, set: &ProcessingSet) -> Self {
        let partitions: Vec<_> = set.partitions.iter().map(InfoPartition::from).collect();
        let rows = partitions.iter().map(|partition| partition.rows).sum();
        InfoMsv4 { source: source.into(), rows, partitions, warnings: set.warnings.clone() }
    }
}

impl From<&Partition> for InfoPartition {
    fn from(partition: &Partition) -> Self {
        let main = partition.datasets.first();
        let coordinate =
            |name: &str| main.and_then(|main| main.coordinates.iter().find(|coordinate| coordinate.name == name));
        let texts = |values: &Values| match values {
            Values::String(texts) => texts.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        let correlations = coordinate("polarization").map_or_else(Vec::new, |of| match &of.content {
            Content::Values(values) => texts(values),
            _ => Vec::new(),
        });
        let scans = coordinate("scan_name").map_or(&[][..], |of| &of.attributes);
        let intents = scans.iter().filter(|(name, _)| name == "scan_intents").flat_map(|(_, intents)| match intents {
            Attribute::List(list) => list.iter().filter_map(Attribute::text).map(str::to_owned).collect(),
            _ => Vec::new(),
        });
        InfoPartition {
            name: partition.name.clone(),
            shape: main.and_then(|main| main.variables.first()).map_or_else(Vec::new, |first| first.shape.clone()),
            rows: partition.grid.rows,
            correlations,
            intents: intents.collect(),
            split_by: partition.split_by.iter().map(ToString::to_string).collect(),
            datasets: partition.datasets.iter().map(|dataset| dataset.path.clone()).collect(),
        }
    }
}

/// Something that needs attention, such as a damaged column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// `damaged`, `not converted`, `not supported`, `elsewhere` for elements in other files, `live`
    /// for a live HDF5 file, `open` for a table that another program has open, or `stale` if the
    /// origin of the source has changed.
    pub kind: String,
    /// The table or column, such as `ANTENNA` or `MAIN/DATA`; missing if the whole source is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Text for users; the reason if something cannot be read.
    pub text: String,
}

/// Links of a thin table to an HDF5 file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoThin {
    /// Path of the HDF5 file.
    pub hdf5: String,
    /// The files of the table that are links.
    pub links: Vec<LinkedFile>,
}

impl From<&ThinTable> for InfoThin {
    fn from(thin: &ThinTable) -> Self {
        let link = |(file, dataset, bytes): (&str, &str, u64)| LinkedFile {
            file: file.to_owned(),
            dataset: dataset.to_owned(),
            bytes,
        };
        InfoThin { hdf5: shown(thin.hdf5()), links: thin.links().map(link).collect() }
    }
}

/// A file of a thin table that is a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinkedFile {
    /// Name of the file in the table directory.
    pub file: String,
    /// Path of the dataset in the HDF5 file.
    pub dataset: String,
    /// Size of the dataset.
    pub bytes: u64,
}

/// Use of space in a native HDF5 file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoSpace {
    /// Size of the file.
    pub file: u64,
    /// Stored size of the datasets, without those for restoring original files and without text of
    /// variable length.
    pub datasets: u64,
    /// Stored size of the recipes, which describe how original files are rebuilt from datasets.
    pub recipes: u64,
    /// Stored size of the parts of original files that no other dataset holds.
    pub literals: u64,
    /// All other bytes.
    pub other: u64,
}

impl From<&SpaceUsage> for InfoSpace {
    fn from(usage: &SpaceUsage) -> Self {
        let SpaceUsage { file, datasets, recipes, literals, other, .. } = *usage;
        InfoSpace { file, datasets, recipes, literals, other }
    }
}

/// A table of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoTable {
    /// Number of rows.
    pub nrow: u64,
    /// Type of the table in its `table.info`, such as `Measurement Set`.
    #[serde(rename = "type")]
    pub table_type: String,
    /// Subtype of the table in its `table.info`.
    pub subtype: String,
    /// The columns, in the order of the table description.
    pub columns: Vec<InfoColumn>,
    /// Storage of a casacore table; its members are missing for tables of HDF5 files.
    #[serde(flatten)]
    pub casacore: Option<InfoCasacore>,
}

impl InfoTable {
    /// Describes a table.
    ///
    /// # Errors
    /// That of opening the table; those of reading the HDF5 file or the container in which it is.
    pub fn new(table: &SourceTable) -> Result<Self> {
        let info = table.info()?;
        let columns = table.columns()?.iter().enumerate();
        Ok(InfoTable {
            nrow: table.rows()?,
            table_type: info.table_type.to_string(),
            subtype: info.sub_type.to_string(),
            columns: columns.map(|(index, column)| InfoColumn::new(table, index, column)).collect::<Result<_>>()?,
            casacore: table.table()?.map(InfoCasacore::from),
        })
    }
}

/// Storage of a casacore table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoCasacore {
    /// `plain table`, or the tables to which a reference table or concatenation refers.
    pub kind: String,
    /// `big` or `little`.
    pub byte_order: String,
    /// Whether the program has locked the table for reading.
    pub locked: bool,
    /// The directory or container with the files of the table; missing for a table without values
    /// of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<InfoStorage>,
    /// The storage managers.
    pub managers: Vec<InfoManager>,
}

impl From<&Table> for InfoCasacore {
    fn from(table: &Table) -> Self {
        // 0 bytes where the files cannot be listed
        let bytes = table.manager_bytes().unwrap_or_default().into_iter().chain(std::iter::repeat(0));
        InfoCasacore {
            kind: table.kind().to_string(),
            byte_order: table.byte_order().name().to_owned(),
            locked: table.is_locked(),
            storage: table.storage().map(|storage| InfoStorage {
                format: storage.format.to_owned(),
                version: storage.version,
                block_size: storage.block_bytes,
                checksum: storage.checksum.map(str::to_owned),
            }),
            managers: table.managers().zip(bytes).map(|(manager, bytes)| InfoManager::new(&manager, bytes)).collect(),
        }
    }
}

/// The directory or container with the files of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoStorage {
    /// `directory`, or the name of the container's format, such as `MultiFile`.
    pub format: String,
    /// Version of the format; `None` if it has none.
    pub version: Option<u32>,
    /// Size of a block; `None` if the container has no blocks of one size.
    pub block_size: Option<u64>,
    /// Kind of the checksums; `None` if it has none.
    pub checksum: Option<String>,
}

/// A storage manager of a casacore table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoManager {
    /// Type of the manager, such as `TiledShapeStMan`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Name of the manager in the table; may be empty.
    pub name: String,
    /// Number of the manager in the table, which is part of the names of its files.
    pub sequence: u32,
    /// Parameters of the manager: numbers and strings as they are, other types as text.
    pub parameters: Map<String, Json>,
    /// Size of its files, with all its columns; 0 if they cannot be listed.
    pub bytes: u64,
}

impl InfoManager {
    fn new(manager: &ManagerInfo<'_>, bytes: u64) -> Self {
        let parameters = manager.parameters.fields.iter();
        InfoManager {
            type_name: manager.type_name.to_string(),
            name: manager.name.to_string(),
            sequence: manager.sequence,
            parameters: parameters.map(|field| (field.name.to_string(), keyword_value(&field.value))).collect(),
            bytes,
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoColumn {
    /// Name of the column.
    pub name: String,
    /// Type of the elements, such as `Complex`.
    pub dtype: String,
    /// `scalar` or `array`.
    pub kind: String,
    /// Shape of the first dataset, or of the cells if all have the same, slowest axis first; `None`
    /// if they differ.
    pub shape: Option<Vec<u64>>,
    /// Type of the storage manager, or of the engine that computes the values.
    pub manager: String,
    /// Name of the storage manager in the table; may be empty.
    pub manager_name: String,
    /// The reason why the column cannot be read; missing if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The engine, and the columns from which it computes the values, down to a storage manager;
    /// empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engine_chain: Vec<String>,
    /// Parameters of the engine; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Json>,
    /// Storage in HDF5 datasets or in the files of a container; its members are missing for any
    /// other column.
    #[serde(flatten)]
    pub stored: Option<InfoStored>,
    /// Hypercubes of a tiled column; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hypercubes: Vec<InfoHypercube>,
}

impl InfoColumn {
    fn new(table: &SourceTable, index: usize, column: &ColumnInfo) -> Result<Self> {
        let chain = table.engine_chain(index)?;
        let datasets = table.storage(index)?;
        // a dataset that was refused has no shape
        let first = datasets.first().filter(|first| first.elsewhere.is_none() || !first.shape.is_empty());
        let first = first.map(|first| first.shape.reversed());
        Ok(InfoColumn {
            name: column.desc.name.to_string(),
            dtype: column.desc.type_name().to_owned(),
            kind: if column.desc.kind == ColumnKind::Array { "array" } else { "scalar" }.to_owned(),
            shape: first.or_else(|| column.shape.as_ref().map(Shape::reversed)),
            manager: column.manager.to_string(),
            manager_name: column.manager_name.to_string(),
            error: table.unreadable(index).map(|error| error.to_string()),
            engine_chain: if chain.len() > 1 { chain } else { Vec::new() },
            parameters: column
                .engine_parameters()
                .map(|field| (field.name.to_string(), keyword_value(&field.value)))
                .collect(),
            stored: match InfoStored::in_datasets(datasets) {
                Some(stored) => Some(stored),
                None => InfoStored::in_files(&table.stored_files(index)?),
            },
            hypercubes: table
                .hypercubes(index)
                .iter()
                .map(|(shape, tile)| InfoHypercube { shape: shape.reversed(), tile: tile.reversed() })
                .collect(),
        })
    }
}

/// Storage of a column in HDF5 datasets, or in files of a container, which it may share with other
/// columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoStored {
    /// Extents of a chunk of the first dataset, slowest axis first; of files, the size of a block
    /// of the largest. `None` without chunks or blocks.
    pub chunk: Option<Vec<u64>>,
    /// Name of the HDF5 index of the chunks; `none` without chunks.
    pub index: String,
    /// Filters of the chunks, in words.
    pub filters: Vec<String>,
    /// Stored size of all datasets or files.
    pub stored_bytes: u64,
    /// The datasets; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<InfoDataset>,
    /// Names of the files in the container; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl InfoStored {
    fn in_datasets(datasets: Vec<DatasetInfo>) -> Option<Self> {
        let datasets: Vec<_> = datasets.into_iter().map(InfoDataset::from).collect();
        let first = datasets.first()?;
        Some(InfoStored {
            chunk: first.chunk.clone(),
            index: first.index.clone(),
            filters: first.filters.clone(),
            stored_bytes: datasets.iter().map(|dataset| dataset.stored_bytes).sum(),
            datasets,
            files: Vec::new(),
        })
    }

    fn in_files(files: &[(String, FileLayout)]) -> Option<Self> {
        let (_, largest) = files.iter().max_by_key(|(_, layout)| layout.stored_bytes)?;
        Some(InfoStored {
            chunk: largest.block_bytes.map(|bytes| vec![bytes]),
            index: largest.index.clone().unwrap_or_else(|| "none".to_owned()),
            filters: largest.filters.clone(),
            stored_bytes: files.iter().map(|(_, layout)| layout.stored_bytes).sum(),
            datasets: Vec::new(),
            files: files.iter().map(|(name, _)| name.clone()).collect(),
        })
    }
}

/// A dataset of a column in an HDF5 file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoDataset {
    /// Name of the dataset in the group of the table or column.
    pub name: String,
    /// Extents, slowest axis first.
    pub shape: Vec<u64>,
    /// Extents of a chunk, slowest axis first; `None` without chunks.
    pub chunk: Option<Vec<u64>>,
    /// Name of the index of the chunks; `none` without chunks.
    pub index: String,
    /// Whether the dataset can grow.
    pub appendable: bool,
    /// Filters of the chunks, in words.
    pub filters: Vec<String>,
    /// Size as stored.
    pub stored_bytes: u64,
    /// Other files with the elements; missing if the elements are in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<InfoElsewhere>,
}

impl From<DatasetInfo> for InfoDataset {
    fn from(dataset: DatasetInfo) -> Self {
        InfoDataset {
            name: dataset.name,
            shape: dataset.shape.reversed(),
            chunk: dataset.chunk.as_ref().map(Shape::reversed),
            index: dataset.index,
            appendable: dataset.appendable,
            filters: dataset.filters,
            stored_bytes: dataset.stored_bytes,
            elsewhere: dataset
                .elsewhere
                .map(|found| InfoElsewhere { kind: found.kind.to_owned(), targets: found.targets }),
        }
    }
}

/// Other files with the elements of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoElsewhere {
    /// The HDF5 feature that refers to them, such as `external storage`.
    pub kind: String,
    /// The files, as the dataset names them.
    pub targets: Vec<String>,
}

/// A hypercube of a tiled column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoHypercube {
    /// Extents, rows first.
    pub shape: Vec<u64>,
    /// Extents of a tile, rows first.
    pub tile: Vec<u64>,
}

/// The value of a keyword or parameter as the documents have it: single numbers, Bools and strings
/// as they are, complex numbers, arrays, records and tables as text.
pub fn keyword_value(value: &Value) -> Json {
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

/// Summary of a MeasurementSet or calibration table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The rows of OBSERVATION.
    pub observations: Vec<SummaryObservation>,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Number of rows that were read; fewer than `rows` if the table was sampled.
    pub rows_read: u64,
    /// Smallest and largest TIME in seconds of MJD; `None` without rows or TIME.
    pub time_range: Option<[f64; 2]>,
    /// INTERVAL of the first row, in seconds; `None` if it cannot be read.
    pub interval: Option<f64>,
    /// Fraction of flagged data; `None` if it is not known.
    pub flagged: Option<SummaryFlagged>,
    /// The rows of ANTENNA.
    pub antennas: Vec<SummaryAntenna>,
    /// The rows of FIELD.
    pub fields: Vec<SummaryField>,
    /// The rows of SPECTRAL_WINDOW.
    pub spectral_windows: Vec<SummaryWindow>,
    /// The scans in ascending order of their numbers.
    pub scans: Vec<SummaryScan>,
    /// Columns of the main table that could not be read, a sentence for each.
    pub problems: Vec<String>,
    /// Smallest and largest TIME as dates in UTC: `2026-11-20T17:30:00.0Z`; `None` without rows or
    /// TIME.
    pub time_range_utc: Option<[String; 2]>,
}

/// A row of OBSERVATION.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryObservation {
    /// TELESCOPE_NAME.
    pub telescope: String,
    /// OBSERVER; empty if the table has none.
    pub observer: String,
    /// PROJECT; empty if the table has none.
    pub project: String,
}

/// Fraction of flagged data in a MeasurementSet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryFlagged {
    /// The fraction, 0 to 1.
    pub fraction: f64,
    /// Kind of the data that was counted: `elements` of FLAG, or `rows` by FLAG_ROW.
    pub of: String,
}

/// A row of ANTENNA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryAntenna {
    /// NAME of the antenna.
    pub name: String,
    /// STATION of the antenna.
    pub station: String,
    /// POSITION: x, y, z in metres, `None` for a number that is not finite; `None` if it cannot be
    /// read.
    pub position: Option<[Option<f64>; 3]>,
    /// DISH_DIAMETER in metres; `None` if it cannot be read or is not finite.
    pub diameter: Option<f64>,
}

/// A row of FIELD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryField {
    /// FIELD_ID.
    pub id: u64,
    /// NAME of the field.
    pub name: String,
    /// CODE of the field; often empty.
    pub code: String,
    /// Longitude and latitude of the phase centre in radians, `None` for a number that is not
    /// finite; `None` if unknown.
    pub direction: Option<[Option<f64>; 2]>,
    /// Reference frame of the direction, such as `J2000`; empty if none is recorded.
    pub frame: String,
    /// Number of rows of the main table with the field, among those that were read.
    pub rows: u64,
}

/// A row of SPECTRAL_WINDOW. A frequency is `None` if it is unknown or not finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryWindow {
    /// Number of the row.
    pub id: u64,
    /// NAME of the spectral window; often empty.
    pub name: String,
    /// Number of channels.
    pub channels: u64,
    /// Centre frequency of the first channel in Hz.
    pub first: Option<f64>,
    /// Centre frequency of the last channel in Hz.
    pub last: Option<f64>,
    /// Width of the first channel in Hz; negative if frequencies descend.
    pub width: Option<f64>,
    /// TOTAL_BANDWIDTH in Hz.
    pub bandwidth: Option<f64>,
    /// Reference frame of the frequencies, such as `TOPO`; empty if none is recorded.
    pub frame: String,
    /// Names of the correlations of all polarization setups that are used with the spectral window,
    /// such as `XX`.
    pub correlations: Vec<String>,
    /// Number of rows of the main table with the spectral window, among those that were read.
    pub rows: u64,
}

/// The rows with one SCAN_NUMBER.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryScan {
    /// SCAN_NUMBER.
    pub number: i64,
    /// Smallest and largest TIME in seconds of MJD; `None` without finite TIMEs.
    pub time_range: Option<[f64; 2]>,
    /// Mean INTERVAL in seconds, of the rows that were read; `None` without finite ones.
    pub interval: Option<f64>,
    /// Number of rows, among those that were read.
    pub rows: u64,
    /// Numbers of the fields, ascending.
    pub fields: Vec<i64>,
    /// Numbers of the spectral windows, ascending.
    pub spectral_windows: Vec<i64>,
    /// Intents, from OBS_MODE of STATE.
    pub intents: Vec<String>,
}

/// The document of `info` for a container without tables. It has no status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoContainer {
    /// Path of the container, as it was given.
    pub source: String,
    /// Name of the format, such as `SIONlib`.
    pub format: String,
    /// Version of the format; `None` if it has none.
    pub version: Option<u32>,
    /// Size of a block; `None` if the container has no blocks of one size.
    pub block_size: Option<u64>,
    /// Kind of the checksums; `None` if it has none.
    pub checksum: Option<String>,
    /// Number of files.
    pub files: u64,
    /// Size of all files.
    pub bytes: u64,
    /// Metadata that only this format has, by name; empty if the member is missing.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub properties: IndexMap<String, Property>,
}

impl InfoContainer {
    /// Describes a container.
    ///
    /// # Errors
    /// Those of reading the container.
    pub fn new(container: &StoredFiles) -> Result<Self> {
        let (info, properties) = (container.info(), container.properties()?);
        let (files, bytes) = container.totals()?;
        Ok(InfoContainer {
            source: container.name().to_owned(),
            format: info.format.to_owned(),
            version: info.version,
            block_size: info.block_bytes,
            checksum: info.checksum.map(str::to_owned),
            files,
            bytes,
            properties: named(&properties),
        })
    }
}

/// The document of `info` for a file in a container. It has no status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoFile {
    /// The file, as `ls` lists it.
    #[serde(flatten)]
    pub file: ListedFile,
    /// Path of the file, as it was given.
    pub source: String,
}

impl InfoFile {
    /// Describes the file at the path `source`, which leads into a container.
    pub fn new(source: &Path, file: &crate::pack::ListedFile) -> Self {
        InfoFile { file: file.into(), source: shown(source) }
    }
}

/// The document of `info` for arrays of BLZ, bcolz or bloscpack. It has no status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InfoArrays {
    /// Path of the source, as it was given.
    pub source: String,
    /// The arrays.
    pub arrays: Vec<ArrayInfo>,
    /// Attributes that the user gave the table, or the array on its own.
    pub attributes: Map<String, Json>,
}

impl InfoArrays {
    /// Describes the arrays at the path `source`.
    ///
    /// # Errors
    /// Those of reading the arrays.
    pub fn new(source: &Path, arrays: &Arrays) -> Result<Self> {
        Ok(InfoArrays { source: shown(source), arrays: arrays.list()?, attributes: arrays.attributes() })
    }
}
