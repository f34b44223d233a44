//! Declaration of a new table: its columns, and the managers that store them.

use std::path::Path;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::writer::TableWriter;
use super::{ColumnInfo, TableDesc};
use crate::container::Directory;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::schema::{ColumnDesc, ColumnKind, TableInfo};
use crate::value::{ByteOrder, DataType, Field, Record, Shape, Value, Values};

/// The declaration of a new table: its columns and keywords, and the managers that store the
/// columns.
///
/// ```
/// use ctds::{ColumnDesc, ManagerSpec, NewTable, value::{Complex32, Shape}};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("my.tab");
/// let table = NewTable::new()
///     .table_type("Measurement Set")
///     .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
///     .column(ColumnDesc::array::<f64>("UVW").direct(Shape::from([3])).unit("m"))
///     .create(path)?;
/// table.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Columns that are not bound to a manager go to a StandardStMan.
#[derive(Debug, Clone)]
pub struct NewTable {
    pub(super) desc: TableDesc,
    pub(super) info: TableInfo,
    pub(super) order: ByteOrder,
    /// Ordered as declared; data managers are still empty.
    pub(super) columns: Vec<ColumnInfo>,
    managers: Vec<(ManagerSpec, Vec<BString>)>,
}

/// The declaration of a data manager of a new table: its type, name and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagerSpec {
    /// Type of the data manager, as table.dat stores it: `StandardStMan` …
    pub type_name: BString,
    /// Name of the data manager, which distinguishes it from the other managers of the table.
    pub name: BString,
    /// Parameters of the data manager, named as in casacore's `SPEC` records: `BUCKETSIZE`,
    /// `DEFAULTTILESHAPE` … A missing one has casacore's default.
    pub parameters: Record,
}

impl ManagerSpec {
    /// Declares a data manager by its type: `StandardStMan`, `IncrementalStMan`, `StManAipsIO`,
    /// `TiledColumnStMan`, `TiledShapeStMan`, `TiledCellStMan`, `TiledDataStMan`; see
    /// [`written_managers`](crate::written_managers).
    pub fn new(type_name: impl Into<BString>, name: impl Into<BString>) -> Self {
        ManagerSpec { type_name: type_name.into(), name: name.into(), parameters: Record::default() }
    }

    /// Declares a StandardStMan, which stores the cells of several rows in a bucket and suits any
    /// column.
    pub fn standard(name: impl Into<BString>) -> Self {
        Self::new("StandardStMan", name)
    }

    /// Declares an IncrementalStMan, which stores a value only where it differs from that of the
    /// row before; it suits columns whose value rarely changes.
    pub fn incremental(name: impl Into<BString>) -> Self {
        Self::new("IncrementalStMan", name)
    }

    /// Declares a TiledShapeStMan: a hypercube for each shape of cells. `tile` is the shape of its
    /// tiles in elements, first axis fastest and rows last.
    pub fn tiled_shape(name: impl Into<BString>, tile: &Shape) -> Self {
        Self::new("TiledShapeStMan", name).tile_shape(tile)
    }

    /// Declares a TiledColumnStMan: one hypercube for all cells, which have a fixed shape. `tile`
    /// is the shape of its tiles in elements, first axis fastest and rows last.
    pub fn tiled_column(name: impl Into<BString>, tile: &Shape) -> Self {
        Self::new("TiledColumnStMan", name).tile_shape(tile)
    }

    /// Declares a TiledCellStMan: a hypercube for each cell. `tile` is the shape of its tiles in
    /// elements, first axis fastest.
    pub fn tiled_cell(name: impl Into<BString>, tile: &Shape) -> Self {
        Self::new("TiledCellStMan", name).tile_shape(tile)
    }

    /// Sets the size in bytes of a bucket of a StandardStMan or IncrementalStMan.
    pub fn bucket_size(self, bytes: u32) -> Self {
        self.parameter("BUCKETSIZE", Value::Scalar(Values::Int(vec![bytes as i32])))
    }

    /// Sets the default shape of the tiles of a tiled data manager (`DEFAULTTILESHAPE`), in
    /// elements, first axis fastest.
    pub fn tile_shape(self, tile: &Shape) -> Self {
        let extents = tile.iter().map(|&extent| i32::try_from(extent).unwrap_or(i32::MAX)).collect();
        self.parameter("DEFAULTTILESHAPE", Value::Array(Shape::from([tile.len() as u64]), Values::Int(extents)))
    }

    /// Sets a parameter of the data manager; `name` is casacore's name of the parameter, such as
    /// `BUCKETSIZE`.
    pub fn parameter(mut self, name: impl Into<BString>, value: Value) -> Self {
        self.parameters.set(name, value);
        self
    }
}

impl Default for NewTable {
    fn default() -> Self {
        Self::new()
    }
}

impl NewTable {
    /// Begins the declaration of a table without columns, whose data files have the byte order of
    /// this machine.
    pub fn new() -> Self {
        let order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
        NewTable {
            desc: TableDesc::default(),
            info: TableInfo::default(),
            order,
            columns: Vec::new(),
            managers: Vec::new(),
        }
    }

    /// Sets the byte order of the data files of the new table.
    pub fn byte_order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the type of the new table: `Measurement Set`, `Antenna` …
    pub fn table_type(mut self, table_type: impl Into<BString>) -> Self {
        self.info.table_type = table_type.into();
        self
    }

    /// Sets type, subtype and readme of the new table.
    pub fn info(mut self, info: TableInfo) -> Self {
        self.info = info;
        self
    }

    /// Sets name, version, comment, keywords and private keywords of the new table; the columns of
    /// `desc` are added to the existing ones.
    pub fn description(mut self, mut desc: TableDesc) -> Self {
        let columns = std::mem::take(&mut desc.columns);
        self.desc = desc;
        columns.into_iter().fold(self, NewTable::column)
    }

    /// Sets the keyword `name` of the new table.
    pub fn keyword(mut self, name: impl Into<BString>, value: Value) -> Self {
        self.desc.keywords.set(name, value);
        self
    }

    #[doc(hidden)]
    pub fn keyword_field(mut self, field: Field) -> Self {
        self.desc.keywords.fields.retain(|other| other.name != field.name);
        self.desc.keywords.fields.push(field);
        self
    }

    /// Adds a column to the new table.
    pub fn column(mut self, desc: ColumnDesc) -> Self {
        self.columns.push(column_info(desc));
        self
    }

    /// The description may lack `shape`, the fixed one of all cells.
    #[doc(hidden)]
    pub fn column_of_shape(mut self, desc: ColumnDesc, shape: Option<Shape>) -> Self {
        self.columns.push(ColumnInfo { shape, ..column_info(desc) });
        self
    }

    /// Assigns columns of the new table, by their names, to a data manager; the columns may be
    /// added before or after this call.
    pub fn bind<N: Into<BString>>(mut self, manager: ManagerSpec, columns: impl IntoIterator<Item = N>) -> Self {
        self.managers.push((manager, columns.into_iter().map(Into::into).collect()));
        self
    }

    /// Defines the hypercolumn `name` of the new table: which columns of the tiled manager of the
    /// same name are data, coordinates along the axes of its hypercubes, and ids of hypercubes. A
    /// hypercube has `axes` axes; `coordinates` is empty or has one name for each axis, fastest
    /// axis first, with `""` for an axis without coordinates.
    ///
    /// TiledDataStMan needs the definition; others where they have coordinates or ids.
    pub fn hypercolumn(mut self, name: &str, axes: u32, data: &[&str], coordinates: &[&str], ids: &[&str]) -> Self {
        let strings = |names: &[&str]| {
            let names: Vec<BString> = names.iter().map(|&name| name.into()).collect();
            Value::Array(Shape::from([names.len() as u64]), Values::String(names))
        };
        let mut definition = Record::default();
        definition.set("ndim", Value::Scalar(Values::UInt(vec![axes])));
        definition.set("data", strings(data));
        definition.set("coord", strings(coordinates));
        definition.set("id", strings(ids));
        self.desc.private_keywords.set(format!("Hypercolumn_{name}"), Value::Record(definition));
        self
    }

    /// Makes the directory `path` and the files of the data managers in it. The directory becomes a
    /// table when the returned writer is [closed](TableWriter::close).
    ///
    /// # Errors
    /// `Exists` if there is something at `path`, `Usage` if the description contradicts itself,
    /// `Unsupported` for managers that are not written or cannot hold their columns and for foreign
    /// columns, `Io`, `NoSpace`.
    pub fn create(self, path: impl AsRef<Path>) -> Result<TableWriter> {
        let path = std::path::absolute(path.as_ref())?;
        let place = Context::path(&path);
        self.check_names().and_then(|()| self.bindings().map(drop)).context(&place)?;
        std::fs::create_dir(&path).context(place)?;
        self.create_in(&path, true).inspect_err(|_| {
            // nothing can be done about what cannot be removed
            let _ = std::fs::remove_dir_all(&path);
        })
    }

    fn check_names(&self) -> Result<()> {
        for (number, (spec, _)) in self.managers.iter().enumerate() {
            if self.managers[..number].iter().any(|(other, _)| other.name == spec.name) {
                return Err(Error::usage(format!("two data managers are named {:?}", spec.name)));
            }
        }
        Ok(())
    }

    /// Makes the managers' files in the existing directory `path`. Unlike [`create`](Self::create)
    /// it accepts managers of the same name, as old tables have them.
    #[doc(hidden)]
    pub fn create_in(self, path: &Path, write_behind: bool) -> Result<TableWriter> {
        let place = Context::path(path);
        let managers = self.bindings().context(&place)?;
        let files = Directory::new(path).write_behind(write_behind);
        TableWriter::new(path.to_owned(), Arc::new(files), self, managers).context(place)
    }

    /// Managers with the numbers of their columns; unbound columns get an additional StandardStMan.
    fn bindings(&self) -> Result<Vec<(ManagerSpec, Vec<usize>)>> {
        for (number, column) in self.columns.iter().enumerate() {
            check_column(column, &self.columns[..number])?;
        }
        let mut of_column = vec![None; self.columns.len()];
        let mut managers: Vec<(ManagerSpec, Vec<usize>)> = Vec::new();
        for (spec, names) in &self.managers {
            for name in names {
                let found = self.columns.iter().position(|column| column.desc.name == *name);
                let found = found.ok_or_else(|| {
                    Error::usage(format!("column {name} does not exist, but is assigned to a manager"))
                })?;
                if of_column[found].replace(managers.len()).is_some() {
                    return Err(Error::usage(format!("column {name} is put into two managers")));
                }
            }
            managers.push((spec.clone(), Vec::new()));
        }
        if of_column.contains(&None) {
            let name = unique_name("StandardStMan", managers.iter().map(|(spec, _)| &spec.name));
            managers.push((ManagerSpec::standard(name), Vec::new()));
        }
        for (column, manager) in of_column.into_iter().enumerate() {
            let manager = manager.unwrap_or(managers.len() - 1);
            managers[manager].1.push(column);
        }
        managers.retain(|(_, columns)| !columns.is_empty());
        Ok(managers)
    }
}

/// The data manager is left empty.
pub(super) fn column_info(desc: ColumnDesc) -> ColumnInfo {
    let shape = match desc.kind {
        ColumnKind::Scalar => Some(Shape::scalar()),
        ColumnKind::Array => desc.is_fixed_shape().then(|| desc.shape.clone()),
    };
    ColumnInfo { desc, shape, manager: BString::default(), manager_name: BString::default(), may_be_undefined: false }
}

/// `wanted`, else `wanted_1`, `wanted_2` …
pub(super) fn unique_name<'a>(wanted: &str, taken: impl Iterator<Item = &'a BString> + Clone) -> String {
    let is_free = |name: &String| !taken.clone().any(|taken| *taken == *name);
    let numbered = (1..).map(|number| format!("{wanted}_{number}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// Fails if the declaration contradicts itself, or repeats the name of a column `before` it.
pub(super) fn check_column(column: &ColumnInfo, before: &[ColumnInfo]) -> Result<()> {
    let desc = &column.desc;
    let wrong = |message: String| Err(Error::usage(message).context(Context::column(desc.name.as_bstr())));
    if desc.name.is_empty() {
        return wrong("the name is empty".into());
    }
    if before.iter().any(|other| other.desc.name == desc.name) {
        return Err(Error::new(ErrorKind::Exists, "there is a column of this name already")
            .context(Context::column(desc.name.as_bstr())));
    }
    desc.check_class().context(Context::column(desc.name.as_bstr()))?;
    if desc.kind == ColumnKind::Scalar {
        return Ok(());
    }
    match &column.shape {
        _ if desc.data_type == DataType::Record => wrong("the cells of an array cannot be records".into()),
        None if desc.is_fixed_shape() => wrong("the shape is fixed, but not given".into()),
        Some(shape) if shape.is_empty() => wrong("the fixed shape has no axes".into()),
        // the cells of an engine have the shape of the stored ones, whatever is described
        Some(shape) if desc.ndim > 0 && ![shape, &desc.shape].iter().any(|shape| shape.len() as i32 == desc.ndim) => {
            wrong(format!("the fixed shape is {shape}, but cells have {} axes", desc.ndim))
        }
        _ => Ok(()),
    }
}
