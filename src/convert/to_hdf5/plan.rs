//! The plan of a conversion to HDF5, as plain data: which column becomes which dataset, in which
//! chunks.

use std::ops::Range;

use bstr::ByteSlice;

use super::compression::{Choice, Compress, Sample};
use super::hdf5_version::Hdf5Version;
use super::layout_choice::{ColumnForm, Growth, Selection, Survey, TileUse};
use super::processing_set::SetPlan;
use super::profile::Profile;
use crate::container::thin;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt, column_context as place};
use crate::h5::{self, Allocation, Compression, VirtualSource};
use crate::hash::HashKind;
use crate::limits;
use crate::native::{
    FormKind, MAIN_TABLE, MAX_CUBES, Names, StoredForm, defined_flags, last_part, missing_link, row_name, source_name,
    split_name, stored_size, table_path,
};
use crate::output::Damage;
use crate::output::clone::Reflink;
use crate::source::tree::Tree;
use crate::source::{Averaging, Content, Predicate, Source, no_column};
use crate::table::{Access, ColumnCells, ColumnInfo, Table};
use crate::value::{DataType, Region, Shape, Values};

/// Memory of averaging for sums, and for samples, flags and weights.
const AVERAGING_BYTES: u64 = 12 << 20;

/// The form of the large columns of a MeasurementSet in the HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Schema {
    /// Rows are the slowest axis, as in the table.
    #[default]
    Native,
    /// The axes are times, baselines, frequencies and polarizations: the datasets of MSv4, below
    /// the group `/msv4`.
    Msv4,
}

#[derive(Debug, Clone)]
pub(crate) struct ToHdf5Options {
    /// `DATA` of the main table, `ANTENNA/NAME`; tables not mentioned are converted whole.
    pub(crate) columns: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// Half-open range of the main table; `None` for all.
    pub(crate) rows: Option<Range<u64>>,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) average: Option<Averaging>,
    /// `MAIN` or a subtable's name; empty for all.
    pub(crate) tables: Vec<String>,
    pub(crate) compress: Compress,
    pub(crate) reflink: Reflink,
    pub(crate) profile: Profile,
    pub(crate) hdf5: Hdf5Version,
    pub(crate) appendable: bool,
    pub(crate) schema: Schema,
    /// 0 for one on each processor.
    pub(crate) threads: usize,
    /// Bytes that the conversion may hold at a time.
    pub(crate) max_memory: u64,
    pub(crate) digest: bool,
    /// Whether planning reads a cell of each column, to find unreadable ones early.
    pub(crate) tries_cells: bool,
    pub(crate) quicklook: bool,
    /// If true, the digest of the table is always computed.
    pub(crate) restorable: bool,
    pub(crate) checksum: HashKind,
    /// Size from which a column of joined files becomes a virtual dataset.
    pub(crate) virtual_bytes: u64,
}

impl ToHdf5Options {
    pub(crate) fn growth(&self) -> Growth {
        if self.appendable { Growth::Rows } else { Growth::None }
    }

    /// Digests take little time in comparison with the compression of large columns.
    pub(crate) fn is_compressed(&self) -> bool {
        !matches!(self.compress, Compress::With(Compression::NONE) | Compress::Shared)
    }

    fn check_hdf5(&self) -> Result<()> {
        let newer = [
            (self.appendable, "appending under SWMR", "--appendable"),
            (self.compress == Compress::Shared, "datasets in one block without an index", "--compress shared"),
            (self.profile == Profile::Cloud, "pages of metadata", "--profile cloud"),
        ];
        match newer.iter().find(|(given, ..)| *given && self.hdf5 == Hdf5Version::V18) {
            Some((_, what, option)) => {
                Err(Error::usage(format!("HDF5 1.8 does not have {what}: {option} or --hdf5 1.8")))
            }
            None => Ok(()),
        }
    }

    fn check_msv4(&self) -> Result<()> {
        let refused = [
            (self.appendable, "--appendable", "its axes of times do not grow"),
            (self.restorable, "--restorable", "tiles are not kept as chunks; the native schema keeps them"),
            (self.compress == Compress::Shared, "--compress shared", "tiles are not kept as chunks"),
            (self.hdf5 == Hdf5Version::V18, "--hdf5 1.8", "its attributes are too large for HDF5 1.8"),
            (self.rows.is_some(), "--rows", "select rows by --where, such as TIME or SCAN_NUMBER"),
            (!self.tables.is_empty(), "--tables", "its datasets are made of all tables"),
        ];
        match refused.iter().find(|(given, ..)| *given && self.schema == Schema::Msv4) {
            Some((_, option, reason)) => {
                Err(Error::usage(format!("--schema msv4 does not go with {option}: {reason}")))
            }
            None => Ok(()),
        }
    }

    /// [`Compress::Shared`] makes smaller tiles chunks, to share more bytes with the source.
    fn tiles(&self) -> TileUse {
        if self.compress == Compress::Shared { TileUse::Shared } else { TileUse::Chunks }
    }

    /// `table` is 0 for the main table.
    fn rows_of(&self, table: usize, all: u64) -> Result<Range<u64>> {
        match &self.rows {
            Some(rows) if table == 0 => limits::row_range(rows, all).map(|()| rows.clone()),
            _ => Ok(0..all),
        }
    }

    /// `table` is `.` for the main table. Columns that place rows on MSv4 grids are always taken.
    pub(crate) fn takes(&self, table: &str, column: &str) -> bool {
        let of_table = |name: &&String| split_name(name).0 == table;
        let is_named = |names: &[String]| names.iter().filter(of_table).any(|name| split_name(name).1 == column);
        let is_placing = self.schema == Schema::Msv4 && table == MAIN_TABLE && msv4::PLACING.contains(&column);
        let chosen = is_placing || !self.columns.iter().any(|name| of_table(&name)) || is_named(&self.columns);
        chosen && !is_named(&self.exclude)
    }
}

impl Default for ToHdf5Options {
    fn default() -> Self {
        ToHdf5Options {
            columns: Vec::new(),
            exclude: Vec::new(),
            rows: None,
            predicate: None,
            average: None,
            tables: Vec::new(),
            compress: Compress::Auto,
            reflink: Reflink::Auto,
            profile: Profile::Disk,
            hdf5: Hdf5Version::V110,
            appendable: false,
            schema: Schema::Native,
            threads: 0,
            max_memory: 256 << 20,
            digest: true,
            tries_cells: true,
            quicklook: false,
            restorable: false,
            checksum: HashKind::default(),
            virtual_bytes: 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Plan {
    /// The main table first, parents before children.
    pub(crate) tables: Vec<TablePlan>,
    pub(crate) warnings: Vec<String>,
    /// Subtables that keywords refer to.
    pub(crate) missing_tables: Vec<String>,
    /// Path of the group, and path in the keyword, of subtables `h5bridge serve` refuses.
    pub(crate) refused_tables: Vec<(String, String)>,
    /// The original files, if they are to be restorable.
    pub(crate) tree: Option<Tree>,
    /// Names in each group, except for dimension scales.
    pub(crate) names: Names,
    pub(super) averaging_bytes: u64,
    /// `None` unless the file is by the schema MSv4.
    pub(super) set: Option<SetPlan>,
}

/// Plan of a table that becomes a group of the HDF5 file.
#[derive(Debug)]
#[non_exhaustive]
pub struct TablePlan {
    /// Index of [`Source::tables`].
    pub(crate) source: usize,
    /// Name of the table in the source: `.` for the main table, `ANTENNA` …
    pub name: String,
    /// Path of the table's group in the HDF5 file.
    pub group: String,
    /// Dimension scale of the rows.
    pub(crate) row: String,
    /// Rows of the table that are converted: a half-open range of row numbers, which count from 0.
    pub rows: Range<u64>,
    /// Plans of the columns that are converted.
    pub columns: Vec<ColumnPlan>,
    /// Columns that were selected but cannot be read by this program.
    pub missing: Vec<MissingColumn>,
}

/// A column of the source that is not converted, and the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct MissingColumn {
    /// Index in its table.
    pub(crate) index: usize,
    /// Name in its table of the column that is not converted.
    pub name: String,
    /// Stands for the name of a dataset or group in the document of the column.
    pub(crate) link: String,
    /// Type of the casacore data manager that holds the column that is not converted.
    pub manager: String,
    /// The reason why the column is not converted, as a sentence.
    pub reason: String,
}

/// Plan of a column that becomes a dataset, or a group of datasets, of the HDF5 file.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnPlan {
    /// Index in its table.
    pub(crate) index: usize,
    /// Name in its table of the column that is converted.
    pub name: String,
    /// Name of the column's dataset or group in the HDF5 file.
    pub link: String,
    /// Only of a column with some undefined cells and one shape of the others.
    pub(crate) defined_link: Option<String>,
    /// Type of the casacore data manager that holds the column.
    pub manager: String,
    /// Type of the column's elements.
    pub data_type: DataType,
    /// Storage form of the column in the HDF5 file.
    pub form: ColumnForm,
    /// How the column's datasets of numbers are compressed.
    pub compression: Compression,
    /// Missing for a column that is not to be compressed, or has less than 1 MiB.
    pub(crate) sample: Option<Sample>,
    /// Predicted for one thread; 0 if elements are stored as they are.
    pub(crate) decoding_seconds: f64,
    /// Seconds spent on reading the shapes of all cells for the plan; 0 if that was not necessary.
    pub(crate) survey_seconds: f64,
    pub(crate) allocation: Allocation,
    /// Name of the HDF5 chunk index (the structure that locates chunks) of the column's datasets,
    /// as in `H5Dget_chunk_index_type`: `single`, `implicit`, `fixed_array`, `extensible_array`, or
    /// `none` without chunks; in files for HDF5 1.8 `btree_v1`.
    pub chunk_index: &'static str,
    /// Bytes of all elements of the column, uncompressed; strings are counted as 16 bytes each.
    pub bytes: u64,
    /// Datasets of other files with the elements; `None` if its own dataset holds them.
    pub(crate) virtual_sources: Option<Vec<VirtualSource>>,
}

impl Plan {
    /// `Usage` if the options name a table or column that does not exist.
    pub(crate) fn new(source: &Source, options: &ToHdf5Options) -> Result<Self> {
        let mut plan = Plan {
            tables: Vec::new(),
            warnings: Vec::new(),
            missing_tables: Vec::new(),
            refused_tables: Vec::new(),
            tree: None,
            names: Names::default(),
            averaging_bytes: if options.average.is_some() { AVERAGING_BYTES } else { 0 },
            set: None,
        };
        if options.compress == Compress::Shared && options.appendable {
            return Err(Error::usage("datasets that can grow do not share bytes: --appendable or --compress shared"));
        }
        if options.compress == Compress::Shared && options.profile == Profile::Cloud {
            return Err(Error::usage("an object store does not share bytes: --profile cloud or --compress shared"));
        }
        if options.compress == Compress::Shared && options.average.is_some() {
            return Err(Error::usage("averages do not share bytes with the source: --average or --compress shared"));
        }
        options.check_hdf5()?;
        options.check_msv4()?;
        plan.find_tree(source, options)?;
        if options.schema == Schema::Msv4 {
            let takes = |table: &str, column: &str| options.takes(table, column);
            let set = SetPlan::new(source, &takes, options.profile.chunk_bytes())?;
            plan.warnings.extend_from_slice(set.warnings());
            plan.set = Some(set);
        }
        // the path of the group of each table of the source, if it is taken
        let mut groups: Vec<Option<String>> = Vec::new();
        for index in 0..source.tables.len() {
            let group = plan.add_table(source, index, &groups, options)?;
            groups.push(group);
        }
        plan.warnings.append(&mut source.edits(&|number| groups[number].is_some())?);
        for refused in source.refused() {
            let group = plan.new_group(Some(refused.parent), &refused.name, &groups);
            plan.refused_tables.push((group, refused.stored.clone()));
        }
        if !options.restorable && options.tables.is_empty() {
            plan.warnings.append(&mut source.left_outside());
        }
        plan.warnings.extend(source.damage().iter().map(Damage::warning));
        if !plan.missing_tables.is_empty() {
            let (count, list) = (plan.missing_tables.len(), plan.missing_tables.join(", "));
            plan.warnings.push(format!("missing subtables: {count}: {list}"));
        }
        plan.check_names(source, options)?;
        if options.hdf5 == Hdf5Version::V18 {
            plan.check_scales()?;
        }
        Ok(plan)
    }

    /// Returns the path of the group, `None` if the table is not selected.
    fn add_table(
        &mut self,
        source: &Source,
        index: usize,
        groups: &[Option<String>],
        options: &ToHdf5Options,
    ) -> Result<Option<String>> {
        let table = &source.tables[index];
        if !options.tables.is_empty() && !options.tables.iter().any(|name| is_named(name, &table.name)) {
            return Ok(None);
        }
        let content = match table.content() {
            Ok(content) => content,
            Err(_) if source.is_left_out(&table.name) => return Ok(None),
            Err(error) => return self.add_missing_table(&table.name, error).map(|()| None),
        };
        let group = self.new_group(table.parent, &table.name, groups);
        let rows = options.rows_of(index, content.rows())?;
        limits::rows(rows.end - rows.start).with_context(|| Context::table(&table.name))?;
        let row = row_name(&group);
        self.names.reserve_row(&group, &row);
        if let Some(error) = content.as_table().and_then(Table::unreadable).filter(|_| !source.is_salvaged()) {
            return Err(error);
        }
        let (columns, missing) = (Vec::new(), Vec::new());
        let mut plan =
            TablePlan { source: index, name: table.name.clone(), group: group.clone(), row, rows, columns, missing };
        for column in 0..content.columns().len() {
            self.add_column(source, content, column, &mut plan, options)?;
        }
        self.tables.push(plan);
        Ok(Some(group))
    }

    /// `parent` indexes the tables; `groups` are the paths of earlier ones.
    fn new_group(&mut self, parent: Option<usize>, name: &str, groups: &[Option<String>]) -> String {
        let main = table_path(MAIN_TABLE);
        let Some(parent) = parent else {
            self.names.reserve_root();
            return main;
        };
        let keyword = last_part(name);
        match groups.get(parent).and_then(Option::as_ref).filter(|parent| **parent != main) {
            Some(parent) => format!("{parent}/{}", self.names.unique_table(parent, keyword)),
            // subtables of the main table lie beside it
            None => format!("/{}", self.names.unique_table("", keyword)),
        }
    }

    fn add_column(
        &mut self,
        source: &Source,
        content: &Content,
        index: usize,
        table: &mut TablePlan,
        options: &ToHdf5Options,
    ) -> Result<()> {
        let info = &content.columns()[index];
        let name = info.desc.name.to_str_lossy().into_owned();
        if !options.takes(&table.name, &name) {
            return Ok(());
        }
        let of_set = self.set.as_ref().filter(|_| table.source == 0);
        let cubes = of_set.map_or_else(Vec::new, |set| set.cubes_of(&name));
        let planned = ColumnPlan::new(content, index, &table.rows, cubes, &mut self.names, &table.group, options);
        content.forget(index);
        match planned {
            Ok(column) => table.columns.push(column),
            // the rest is converted without a column of an unknown form
            Err(error) if source.may_leave_out(&error) => {
                let manager = info.manager.to_str_lossy().trim_end().to_owned();
                // damage has its warning already
                if error.may_be_left_out() {
                    self.warnings.push(format!("{} is not converted: {error}", place(&table.name, &name)));
                }
                let link = self.names.unique(&table.group, &missing_link(&name));
                table.missing.push(MissingColumn { index, name, link, manager, reason: error.to_string() });
            }
            Err(error) => return Err(error.context(place(&table.name, &name))),
        }
        Ok(())
    }

    fn find_tree(&mut self, source: &Source, options: &ToHdf5Options) -> Result<()> {
        if !options.restorable {
            return Ok(());
        }
        let is_whole = options.columns.is_empty()
            && options.exclude.is_empty()
            && options.rows.is_none()
            && options.predicate.is_none()
            && options.tables.is_empty();
        if !is_whole {
            return Err(Error::usage("a restorable file has all tables, columns and rows"));
        }
        if source.is_salvaged() {
            return Err(Error::usage(
                "a restorable file has the original bytes: parts of the source cannot be left out",
            ));
        }
        let Some(root) = source.tables.first().and_then(|table| table.path.as_ref()) else {
            return Err(Error::usage("only a table directory can be made restorable"));
        };
        if thin::Record::read(root)?.is_some() {
            let message = "a thin table, whose files are in an HDF5 file; `h5bridge materialize` makes it independent";
            return Err(Error::unsupported(message).context(Context::path(root)));
        }
        let tree = Tree::find(root).with_context(|| Context::path(root))?;
        self.warnings.extend_from_slice(tree.notes());
        for table in &source.tables {
            if table.path.as_ref().is_some_and(|path| !path.starts_with(root)) {
                self.warnings
                    .push(format!("subtable {} lies elsewhere: its original files are not restorable", table.name));
            }
        }
        self.tree = Some(tree);
        Ok(())
    }

    /// A missing subtable is worth a warning; a damaged one stops the conversion.
    fn add_missing_table(&mut self, name: &str, error: Error) -> Result<()> {
        if error.kind() != ErrorKind::NotFound {
            return Err(error);
        }
        self.missing_tables.push(name.to_owned());
        Ok(())
    }

    fn check_names(&self, source: &Source, options: &ToHdf5Options) -> Result<()> {
        for name in &options.tables {
            if !source.tables.iter().any(|table| is_named(name, &table.name)) {
                return Err(Error::usage(source.no_table_named(name)));
            }
        }
        for name in options.columns.iter().chain(&options.exclude) {
            let (table, column) = split_name(name);
            let found = source.tables.iter().find(|other| other.name == table);
            let found = found.ok_or_else(|| Error::usage(source.no_table_named(table)))?;
            let columns = found.columns().unwrap_or_default();
            if !columns.iter().any(|info| info.desc.name == column) {
                return Err(Error::usage(no_column(column, table, columns)));
            }
        }
        Ok(())
    }

    /// Refuses tables with more datasets than a dimension scale can list in a file for HDF5 1.8.
    fn check_scales(&self) -> Result<()> {
        for table in &self.tables {
            let datasets: usize = table.columns.iter().map(ColumnPlan::datasets_of_rows).sum();
            if datasets > h5::MAX_OLD_SCALED {
                let message = format!(
                    "{datasets} datasets have an axis of rows; in a file for HDF5 1.8 a dimension scale lists at most {}: take \
                     fewer columns, or leave out --hdf5 1.8",
                    h5::MAX_OLD_SCALED
                );
                return Err(Error::unsupported(message).context(Context::table(&table.name)));
            }
        }
        Ok(())
    }

    /// Number and bytes of the original files; `Io` if one is gone.
    pub(crate) fn restorable(&self) -> Result<Option<(u64, u64)>> {
        self.tree.as_ref().map(Tree::size).transpose()
    }

    /// All elements of columns, uncompressed.
    pub(crate) fn bytes(&self) -> u64 {
        self.columns().fold(0, |sum, column| sum.saturating_add(column.bytes))
    }

    pub(super) fn stored_form(&self, column: &ColumnPlan) -> StoredForm {
        match (&column.form, &self.set) {
            (ColumnForm::Grids { .. }, Some(set)) => column.stored_form().with_grids(set.stored_grids(&column.name)),
            _ => column.stored_form(),
        }
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &ColumnPlan> {
        self.tables.iter().flat_map(|table| &table.columns)
    }
}

/// `MAIN` and `.` are the main table.
fn is_named(wanted: &str, name: &str) -> bool {
    wanted == name || source_name(wanted) == name
}

impl ColumnPlan {
    /// Compressed size of a sample of the column, as a fraction of its bytes from 0 to 1; `None` if
    /// no sample was taken because the column is not to be compressed, or has less than 1 MiB.
    pub fn sample_remains(&self) -> Option<f64> {
        self.sample.map(|sample| sample.remains)
    }

    fn datasets_of_rows(&self) -> usize {
        match &self.form {
            ColumnForm::Dense { .. } => 1 + usize::from(self.defined_link.is_some()),
            ColumnForm::Cubes { .. } | ColumnForm::Grids { .. } | ColumnForm::Ragged { .. } => 2,
        }
    }

    pub(crate) fn stored_form(&self) -> StoredForm {
        let kind = match (&self.form, self.data_type) {
            (_, DataType::Record) => FormKind::Record,
            (ColumnForm::Dense { .. }, _) => FormKind::Dense,
            (ColumnForm::Cubes { .. } | ColumnForm::Grids { .. }, _) => FormKind::Cubes,
            (ColumnForm::Ragged { .. }, _) => FormKind::Ragged,
        };
        StoredForm::new(kind, self.link.as_str()).with_flags(self.defined_link.clone())
    }

    fn new(
        content: &Content,
        index: usize,
        rows: &Range<u64>,
        cubes: Vec<(Shape, Shape)>,
        names: &mut Names,
        group: &str,
        options: &ToHdf5Options,
    ) -> Result<Self> {
        let info = &content.columns()[index];
        let cells = content.cells(index)?;
        let name = info.desc.name.to_str_lossy().into_owned();
        let selection = if *rows == (0..content.rows()) { Selection::AllRows } else { Selection::SomeRows };
        if options.tries_cells {
            touch_last_row(info, &*cells, rows)?;
        }
        let (growth, tiles, profile) = (options.growth(), options.tiles(), options.profile);
        let survey = Survey { info, cells: &*cells, rows, selection, growth, tiles, profile };
        let (form, survey_seconds) = if cubes.is_empty() { survey.form()? } else { (ColumnForm::Grids { cubes }, 0.0) };
        form.check_axes()?;
        form.check_cells(info.shape.as_ref().filter(|_| info.data_type() != DataType::Record))?;
        let link = names.unique(group, &name);
        let data_type = info.data_type();
        let bytes = form.elements()?.saturating_mul(stored_size(data_type));
        let has_undefined = matches!(form, ColumnForm::Dense { undefined: 1.., .. });
        let defined_link = has_undefined.then(|| names.unique(group, &defined_flags(&link)));
        let manager = info.manager.to_str_lossy().trim_end().to_owned();
        let is_virtual = bytes >= options.virtual_bytes;
        let virtual_sources = if is_virtual { virtual_sources(content, index, &form)? } else { None };
        let is_block = tiles == TileUse::Shared && form.is_of_tiles() && has_plain_tiles(&*cells);
        let allocation = if is_block { Allocation::Block } else { Allocation::Chunks };
        let Choice { compression, sample, decoding } = match allocation {
            Allocation::Block => Choice::from(Compression::NONE),
            Allocation::Chunks if virtual_sources.is_some() => Choice::from(Compression::NONE),
            Allocation::Chunks => options.compress.of_column(info, bytes, &*cells, rows)?,
        };
        let chunk_index = options.hdf5.chunk_index(form.chunk_index(growth, allocation));
        Ok(ColumnPlan {
            index,
            name,
            link,
            defined_link,
            manager,
            data_type,
            form,
            compression,
            sample,
            decoding_seconds: decoding * bytes as f64,
            survey_seconds,
            allocation,
            chunk_index: if virtual_sources.is_some() { "none" } else { chunk_index },
            bytes,
            virtual_sources,
        })
    }
}

/// The datasets of other files that have the values of a column, if it is stored like them.
fn virtual_sources(content: &Content, index: usize, form: &ColumnForm) -> Result<Option<Vec<VirtualSource>>> {
    match form {
        ColumnForm::Dense { shape, undefined: 0, .. } => content.virtual_sources(index, shape),
        ColumnForm::Ragged { elements, .. } => content.virtual_sources(index, &Shape::from([*elements])),
        _ => Ok(None),
    }
}

/// Whether tiles have the bytes of elements, neither packed nor compressed.
fn has_plain_tiles(cells: &dyn ColumnCells) -> bool {
    cells.tiling(MAX_CUBES).is_some_and(|tiling| tiling.cubes.iter().all(|cube| cube.storage().is_plain()))
}

/// Detects a row count beyond the stored data early: reads an element or the cell in the last row,
/// but only its shape if all cells before would have to be decoded.
fn touch_last_row(info: &ColumnInfo, cells: &dyn ColumnCells, rows: &Range<u64>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let last = rows.end - 1;
    let Some(shape) = cells.cell_shape(last)? else { return Ok(()) };
    let one = Region { start: shape.iter().map(|_| 0).collect(), shape: shape.iter().map(|_| 1).collect() };
    let can_split = info.data_type().is_fixed_size() && !shape.is_empty();
    if shape.elements()? == 0 || cells.access() == Access::InOrder {
        return Ok(());
    }
    cells.read_cell(last, can_split.then_some(&one), &mut Values::new(info.data_type()))
}
