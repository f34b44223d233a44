//! Carries out a conversion plan: writes a native HDF5 file from tables.
//!
//! First everything but the data is made, in the order of the plan: groups, attributes, datasets,
//! scales. Then the columns run through [`lanes`](super::lanes), and at last come the digests that
//! only the data gives.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use bstr::ByteSlice;
use rayon::prelude::*;

use super::blocks::{Block, BlockWriter, Sharing};
use super::column::{ColumnResult, ColumnWriter, Numbered, write_row_numbers};
use super::compression::Compress;
use super::datasets::Datasets;
use super::described::Described;
use super::lanes::{self, DatasetSink, Lane, Message};
use super::layout_choice::{self, ColumnForm, ReadStrategy, chunk_rows, grid};
use super::plan::{ColumnPlan, Plan, TablePlan, ToHdf5Options};
use super::set_writer::{SetWriter, VariableWriter};
#[cfg(any(test, feature = "internals"))]
use super::stored::Place;
use crate::call::pool::thread_pool;
use crate::error::{Context, Error, Result, ResultExt, column_context as place};
use crate::grid::Grid;
use crate::h5::{Allocation, Attribute, ChunkInfo, Compression, Dataset, DatasetSpec, File, Group, VirtualSpec};
use crate::hash::Hash;
use crate::io::{FileTarget, Growth};
use crate::native::{
    self, AVERAGED, AxisNames, ColumnDocument, Dimensions, Layout, Maker, Members, Part, RawStrings, SOURCE_DIGEST,
    Scales, StoredColumnDigests, StoredDigests, StoredForm, TableDocument, TreeDimensions, VIEW_ROWS, View,
    display_name, stored_size,
};
use crate::output::SyncPolicy;
use crate::progress::Progress;
use crate::source::digest::{CellDigest, CellsDigest, digest_cells, keywords_hash, table_hash};
use crate::source::{ColumnDigest, Content, Source, fill_of};
use crate::value::{DataType, Shape};

pub(crate) struct Writer<'a> {
    source: &'a Source,
    plan: &'a Plan,
    options: &'a ToHdf5Options,
    pub(crate) root: Group,
    exact: Group,
    /// Indexed by [`DatasetSink`].
    datasets: Datasets,
    groups: Vec<Group>,
    exact_groups: Vec<Group>,
    jobs: Vec<(u64, Job)>,
    /// Filled before all other datasets.
    blocks: Vec<Block>,
    pub(crate) warnings: Vec<String>,
}

/// `table` and `column` are indices of the plan.
#[derive(Debug)]
enum Job {
    RowNumbers {
        table: usize,
        target: DatasetSink,
        numbered: Numbered,
        rows: Range<u64>,
    },
    Column {
        table: usize,
        column: usize,
        targets: Box<Members<DatasetSink>>,
        cubes: Cubes,
    },
    /// A variable of MSv4 that is not the hypercube of a column.
    Variable {
        number: usize,
        target: Box<DatasetSink>,
    },
}

/// Whether elements of cells are written with the datasets that locate them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cubes {
    Written,
    /// Elements are virtual, copied as blocks of tiles, or left to other processes.
    LeftOut,
}

/// The digest of each column of each table of the plan, once it is known.
type Digests = Vec<Vec<Option<Result<CellsDigest>>>>;

struct JobRunner<'a> {
    source: &'a Source,
    plan: &'a Plan,
    cells: CellDigest,
    progress: &'a dyn Progress,
}

impl JobRunner<'_> {
    fn run(&self, job: Job, lane: &mut Lane<'_, ColumnResult>) -> Result<()> {
        match job {
            Job::RowNumbers { table, target, numbered, rows } => {
                let content = self.source.tables[self.plan.tables[table].source].content()?;
                write_row_numbers(&target, content, numbered, rows, lane)
            }
            Job::Column { table, column, targets, cubes } => {
                let (table_plan, column_plan) = (&self.plan.tables[table], &self.plan.tables[table].columns[column]);
                let content = self.source.tables[table_plan.source].content()?;
                let variables = self.variables().filter(|_| matches!(column_plan.form, ColumnForm::Grids { .. }));
                let run = ColumnWriter::new(content, table_plan, column_plan, self.cells, self.progress)
                    .map(|run| run.cubes_written(cubes == Cubes::Written).variables(variables))
                    .and_then(|mut run| run.write(&targets, lane).map(|digest| (digest, run.raw)));
                content.forget(column_plan.index);
                let (digest, raw) = run.with_context(|| place(&table_plan.name, &column_plan.name))?;
                lane.done(ColumnResult { table, column, digest, raw })
            }
            Job::Variable { number, target } => match self.variables() {
                Some(writer) => writer.write_variable(number, &target, lane),
                None => Ok(()),
            },
        }
    }

    fn variables(&self) -> Option<VariableWriter<'_>> {
        self.plan.set.as_ref().map(|plan| VariableWriter { source: self.source, plan })
    }
}

struct Report<'a> {
    table: &'a str,
    column: &'a str,
    /// Bytes of elements that were not reported yet.
    left: u64,
}

impl Report<'_> {
    /// Reports no more than the column's elements: chunks also have padding or places of cells.
    fn written(&mut self, bytes: u64, progress: &dyn Progress) {
        let now = bytes.min(self.left);
        self.left -= now;
        progress.advance(now, self.table, self.column);
    }
}

/// A dataset whose chunks other processes write, see [`Writer::hold_back`]; indices of the plan.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) table: usize,
    pub(crate) column: usize,
    pub(crate) cube: usize,
    pub(crate) path: String,
    /// Rows last.
    pub(crate) grid: Grid,
    /// Chunks are made of tiles, otherwise of rows.
    pub(crate) is_of_tiles: bool,
    /// Byte of the first chunk; `None` if chunks get their places only when they are written.
    pub(crate) address: Option<u64>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(source: &'a Source, plan: &'a Plan, options: &'a ToHdf5Options, file: &File) -> Result<Self> {
        let root = file.root()?;
        let exact = native::begin(&root, &source.name)?;
        if let Some(averaging) = source.tables.first().map_or(Ok(None), |main| main.content()?.averaging())? {
            root.set_attribute(AVERAGED, &Attribute::string(averaging))?;
        }
        Ok(Writer {
            source,
            plan,
            options,
            datasets: Datasets::new(file.root()?),
            root,
            exact,
            groups: Vec::new(),
            exact_groups: Vec::new(),
            jobs: Vec::new(),
            blocks: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// The keyword is too large for an attribute of HDF5 1.8.
    fn warn_of_large(&mut self, object: &str, name: &str) {
        self.warnings.push(format!(
            "{object}: keyword {name} is too large for an attribute of HDF5 1.8; it is kept under _ctds, where to-ms finds it"
        ));
    }

    fn content(&self, table: &TablePlan) -> Result<&'a Content> {
        self.source.tables[table.source].content()
    }

    pub(crate) fn write_structure(&mut self, progress: &dyn Progress) -> Result<()> {
        let plan = self.plan;
        // dimension names are shared below a root group
        let mut dimensions = TreeDimensions::default();
        for (number, table) in plan.tables.iter().enumerate() {
            progress.go_on()?;
            let group = native::open_path(&self.root, &table.group)?;
            let exact = native::open_path(&self.exact, &table.group)?;
            let dimensions = dimensions.of_group(&table.group);
            self.write_table(number, table, &group, &exact, dimensions).with_context(|| Context::table(&table.name))?;
            self.groups.push(group);
            self.exact_groups.push(exact);
            self.datasets.settle();
        }
        self.write_set()
    }

    /// Jobs of the columns fill the variables that are their hypercubes, own jobs the others.
    fn write_set(&mut self) -> Result<()> {
        let Some(set) = &self.plan.set else { return Ok(()) };
        let compress = self.options.compress;
        let mut compression: Vec<_> =
            (0..set.variables.len()).map(|number| compress.of_derived(set.bytes(number))).collect();
        let mut is_of_column = vec![false; set.variables.len()];
        let main = self.plan.tables.iter().filter(|table| table.source == 0);
        for column in main.flat_map(|table| &table.columns) {
            for &number in set.numbers_of(&column.name) {
                compression[number] = column.compression;
                is_of_column[number] = true;
            }
        }
        let sinks =
            SetWriter { plan: set, datasets: &mut self.datasets, compression: &compression }.write(&self.root)?;
        for (_, job) in &mut self.jobs {
            if let Job::Column { table, column, targets, .. } = job
                && let table = &self.plan.tables[*table]
                && table.source == 0
                && let Members::Cubes { cubes, .. } = &mut **targets
            {
                cubes.extend(set.numbers_of(&table.columns[*column].name).iter().map(|&number| sinks[number].clone()));
            }
        }
        let others = sinks.into_iter().enumerate().filter(|(number, _)| !is_of_column[*number]);
        self.jobs.extend(
            others.map(|(number, target)| (set.bytes(number), Job::Variable { number, target: Box::new(target) })),
        );
        Ok(())
    }

    fn described(&self) -> Described<'a> {
        Described { source: self.source, plan: self.plan }
    }

    fn write_table(
        &mut self,
        number: usize,
        table: &TablePlan,
        group: &Group,
        exact: &Group,
        dimensions: &mut Dimensions,
    ) -> Result<()> {
        let content = self.content(table)?;
        let (attributes, expressions) = self.described().table_attributes(table, content.info(), content.keywords())?;
        for (name, value) in &attributes {
            if self.options.hdf5.holds(name, value) {
                group.set_attribute(name, value)?;
            } else {
                self.warn_of_large(display_name(&table.name), name);
            }
        }
        let (layout, view) = (content.layout(), self.view(table, content));
        self.write_table_document(table, content, &layout, view.as_ref(), exact)?;
        if view.is_some_and(|view| view.is_reference()) {
            self.write_row_numbers(number, table, exact, VIEW_ROWS, Numbered::Root)?;
        }
        for (column, expression) in table.missing.iter().zip(expressions) {
            let form = StoredForm::missing(column.link.clone(), column.reason.clone(), expression);
            self.write_column_document(content, &layout, &form, column.index, exact)?;
        }
        let row_scale = self.write_rows(number, table, group)?;
        let values = self.described().coordinates(table);
        let plan = self.plan;
        let taken = move |name: &str| plan.names.has(&table.group, name);
        let mut axes = AxisNames::new(dimensions, &values, &taken);
        let mut scales = Scales::new(group);
        for (index, column) in table.columns.iter().enumerate() {
            let targets = self.write_column(table, column, group, row_scale, &mut scales, &mut axes);
            let targets = targets.with_context(|| Context::column(&column.name))?;
            self.write_column_document(content, &layout, &plan.stored_form(column), column.index, exact)?;
            if column.allocation == Allocation::Block {
                self.add_blocks(number, index, &targets)?;
            }
            let job = |cubes| Job::Column { table: number, column: index, targets: Box::new(targets), cubes };
            if column.virtual_sources.is_some() {
                // where the cells of a column with differing shapes are is written all the same
                if matches!(column.form, ColumnForm::Ragged { .. }) {
                    self.jobs.push((0, job(Cubes::LeftOut)));
                }
                continue;
            }
            match (column.allocation, &column.form) {
                (Allocation::Chunks, _) => self.jobs.push((column.bytes, job(Cubes::Written))),
                // the order in which other chunks are written does not depend on blocks
                (Allocation::Block, ColumnForm::Cubes { .. }) => self.jobs.push((0, job(Cubes::LeftOut))),
                (Allocation::Block, _) => {}
            }
        }
        let is_taken = |name: &str| attributes.iter().any(|(taken, _)| taken == name);
        for (name, value) in self.described().view(table, &mut axes, is_taken) {
            group.set_attribute(name, &value)?;
        }
        scales.finish()
    }

    fn add_blocks(&mut self, table: usize, column: usize, targets: &Members<DatasetSink>) -> Result<()> {
        for (part, target) in targets.parts() {
            let cube = match part {
                Part::Data => 0,
                Part::Cube(number) => number,
                _ => continue,
            };
            if let Some(address) = self.datasets[target.dataset].block()? {
                let (dataset, grid) = (target.dataset, target.grid.clone());
                self.blocks.push(Block { table, column, cube, dataset, grid, address });
            }
        }
        Ok(())
    }

    /// Leaves datasets to other processes that hold numbers without undefined cells, have at least
    /// `least` bytes, and consist of tiles or of whole rows.
    pub(crate) fn hold_back(&mut self, least: u64) -> Result<Vec<Held>> {
        let mut held = Vec::new();
        for block in std::mem::take(&mut self.blocks) {
            let data_type = self.plan.tables[block.table].columns[block.column].data_type;
            if block.grid.shape.elements()?.saturating_mul(stored_size(data_type)) < least {
                self.blocks.push(block);
                continue;
            }
            let path = self.datasets.path(block.dataset).to_owned();
            let Block { table, column, cube, grid, address, .. } = block;
            held.push(Held { table, column, cube, path, grid, is_of_tiles: true, address: Some(address) });
        }
        for (bytes, job) in std::mem::take(&mut self.jobs) {
            let Job::Column { table, column, targets, cubes: Cubes::Written } = job else {
                self.jobs.push((bytes, job));
                continue;
            };
            let plan = &self.plan.tables[table].columns[column];
            let is_large = plan.data_type.is_fixed_size() && plan.bytes >= least;
            let is_of_tiles = plan.form.is_of_tiles();
            let hold = |(cube, sink): (usize, &DatasetSink)| {
                let (path, grid) = (self.datasets.path(sink.dataset).to_owned(), sink.grid.clone());
                Held { table, column, cube, path, grid, is_of_tiles, address: None }
            };
            match &*targets {
                Members::Dense { data, flags: None } if is_large && plan.form.route() != ReadStrategy::Parts => {
                    held.push(hold((0, data)));
                }
                Members::Cubes { cubes, .. } if is_large => {
                    held.extend(cubes.iter().enumerate().map(hold));
                    self.jobs.push((0, Job::Column { table, column, targets, cubes: Cubes::LeftOut }));
                }
                _ => self.jobs.push((bytes, Job::Column { table, column, targets, cubes: Cubes::Written })),
            }
        }
        Ok(held)
    }

    /// Byte ranges with written chunks of all but the `held` datasets.
    pub(crate) fn chunk_ranges(&mut self, held: &[Held]) -> Result<Vec<Range<u64>>> {
        let held: HashSet<&str> = held.iter().map(|held| held.path.as_str()).collect();
        let mut ranges = Vec::new();
        for number in 0..self.datasets.len() {
            if !held.contains(self.datasets.path(number)) {
                let add = |chunk: ChunkInfo| ranges.push(chunk.address..chunk.address + chunk.stored_bytes);
                self.datasets.opened(number)?.each_chunk(add)?;
            }
        }
        Ok(ranges)
    }

    /// HDF5 also has the file open, but has allocated the blocks and does not write to them.
    fn fill_blocks(
        &self,
        path: &Path,
        sync: SyncPolicy,
        pool: &rayon::ThreadPool,
        progress: &dyn Progress,
    ) -> Result<Sharing> {
        let mut sharing = Sharing::of_columns(self.source, self.plan)?;
        let (source, plan, reflink) = (self.source, self.plan, self.options.reflink);
        let file = FileTarget::open(path)?.write_behind(sync.is_behind());
        let writer = BlockWriter { source, plan, reflink, file, progress };
        pool.install(|| {
            self.blocks.iter().try_for_each(|block| {
                let (shared, reason) = writer.fill(block)?;
                sharing.add(plan, block, shared, reason);
                Ok::<_, Error>(())
            })
        })?;
        Ok(sharing)
    }

    /// Such a column is not read by a lane; the inner result is always `Ok`.
    fn digest_of_block(&self, block: &Block, progress: &dyn Progress) -> Result<Result<CellsDigest>> {
        let table = &self.plan.tables[block.table];
        let content = self.content(table)?;
        let index = table.columns[block.column].index;
        let cells = content.cells(index)?;
        let (info, rows) = (&content.columns()[index], table.rows.clone());
        digest_cells(info, &*cells, content, rows, StoredDigests::WRITTEN, progress).map(Ok)
    }

    /// Record of a table that shows rows of other tables; `None` for some rows of a concatenation.
    fn view(&self, table: &TablePlan, content: &Content) -> Option<View> {
        let is_whole = table.rows == (0..content.rows());
        let mut view = content.view().filter(|view| is_whole || view.is_reference())?;
        for (place, name) in view.tables.iter_mut().enumerate() {
            let part = self.source.part_of_view(table.source, place);
            if let Some(other) = self.plan.tables.iter().find(|other| part == Some(other.source)) {
                *name = other.group.as_str().into();
            }
        }
        Some(view)
    }

    /// Returns the index of the dimension scale in `Writer::datasets`.
    fn write_rows(&mut self, place: usize, table: &TablePlan, group: &Group) -> Result<usize> {
        // a dimension has one length in a tree of groups, and a subtable has other rows than its
        // parent
        let number = self.write_row_numbers(place, table, group, &table.row, Numbered::Original)?;
        self.datasets[number].make_scale(&table.row)?;
        Ok(number)
    }

    /// Returns the index of the dataset in `Writer::datasets`.
    fn write_row_numbers(
        &mut self,
        place: usize,
        table: &TablePlan,
        group: &Group,
        name: &str,
        numbered: Numbered,
    ) -> Result<usize> {
        let rows = table.rows.end - table.rows.start;
        let shape = Shape::from([rows]);
        let appendable = numbered == Numbered::Original;
        let growth = if appendable { self.options.growth() } else { layout_choice::Growth::None };
        let spec = DatasetSpec {
            element: DataType::Int64,
            shape: &shape,
            chunk: Some(Shape::from([chunk_rows(8, rows, growth)])),
            appendable,
            compression: self.options.compress.of_row_numbers(rows),
        };
        let target = self.create(group, name, spec, Allocation::Chunks)?;
        let number = target.dataset;
        self.jobs.push((rows * 8, Job::RowNumbers { table: place, target, numbered, rows: table.rows.clone() }));
        Ok(number)
    }

    fn write_column(
        &mut self,
        table: &TablePlan,
        column: &ColumnPlan,
        group: &Group,
        row: usize,
        scales: &mut Scales,
        axes: &mut AxisNames<'_>,
    ) -> Result<Members<DatasetSink>> {
        let desc = &self.content(table)?.columns()[column.index].desc;
        let described = self.described();
        let mut attributes = described.column_attributes(table, column, desc.comment.as_bstr(), &desc.keywords)?;
        for name in attributes.remove_unless(|name, value| self.options.hdf5.holds(name, value)) {
            self.warn_of_large(&place(&table.name, &column.name).to_string(), &name);
        }
        let rows = table.rows.end - table.rows.start;
        let mut maker = ColumnMaker { writer: self, column, rows, row };
        column.with_new(table, &attributes, axes, |new, axes| {
            column.stored_form().create(group, new, scales, axes, &mut maker)
        })
    }

    /// Extensible only in an appendable file, compressed only if elements have a fixed size.
    fn create(
        &mut self,
        group: &Group,
        name: &str,
        spec: DatasetSpec<'_>,
        allocation: Allocation,
    ) -> Result<DatasetSink> {
        let chunk = spec.chunk.clone().unwrap_or_else(|| spec.shape.clone());
        let compression = if spec.element.is_fixed_size() { spec.compression } else { Compression::NONE };
        let appendable = spec.appendable && self.options.appendable;
        let spec = DatasetSpec { appendable, compression, ..spec };
        let dataset = self.datasets.add(group.create_allocated(name, &spec, allocation)?);
        let size = spec.element.size();
        let pipeline = (!compression.is_none()).then(|| compression.pipeline(size));
        Ok(DatasetSink { dataset, grid: grid(spec.shape, &chunk), size, pipeline })
    }

    /// Datasets of columns and row numbers, by path.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn places(&self) -> Vec<(String, Place)> {
        let path = |sink: &DatasetSink| self.datasets.path(sink.dataset).to_owned();
        let places = self.jobs.iter().flat_map(|(_, job)| match job {
            Job::RowNumbers { table, target, numbered: Numbered::Original, .. } => {
                vec![(path(target), Place::Rows { table: *table })]
            }
            Job::RowNumbers { table, target, numbered: Numbered::Root, .. } => {
                vec![(path(target), Place::RootRows { table: *table })]
            }
            Job::Column { table, column, targets, .. } => {
                let place = |part| Place::Column { table: *table, column: *column, part };
                targets.parts().into_iter().map(|(part, target)| (path(target), place(part))).collect()
            }
            Job::Variable { .. } => Vec::new(),
        });
        places.collect()
    }

    fn write_table_document(
        &self,
        table: &TablePlan,
        content: &Content,
        layout: &Layout,
        view: Option<&View>,
        exact: &Group,
    ) -> Result<()> {
        let table_names = |stored: &[u8]| content.table_name(stored);
        let mut document =
            TableDocument::new(&table.name, &table.row, content.info(), content.keywords(), &table_names);
        document.rows = Some(table.rows.end - table.rows.start);
        document.first_row = table.rows.start;
        document.unnamed = !self.source.tables[table.source].is_named;
        document.describe_storage(layout, &table_names);
        if table.source == 0 {
            document.damage = self.source.damage().to_vec();
            document.averaged = content.averaging()?;
        }
        if let Some(view) = view {
            document.describe_view(view);
        }
        document.write(exact)
    }

    fn write_column_document(
        &self,
        content: &Content,
        layout: &Layout,
        form: &StoredForm,
        index: usize,
        exact: &Group,
    ) -> Result<()> {
        let table_names = |stored: &[u8]| content.table_name(stored);
        let document = ColumnDocument::new(&content.columns()[index], index, form, &table_names);
        document.manager_number(layout.bindings.get(index).copied().flatten()).write(exact)
    }

    /// `sync`: whether the system is asked early to write the file to the disk.
    pub(crate) fn write_data(
        &mut self,
        path: &Path,
        sync: SyncPolicy,
        progress: &dyn Progress,
    ) -> Result<(Option<Hash>, Option<Sharing>)> {
        let pool = thread_pool(self.options.threads)?;
        let sharing = match self.options.compress {
            Compress::Shared => Some(self.fill_blocks(path, sync, &pool, progress)?),
            Compress::With(_) | Compress::Auto => None,
        };
        let mut growth = sync.is_behind().then(|| Growth::open(path)).transpose()?;
        let lanes = self.plan.lanes(self.options.max_memory) as usize;
        let jobs = std::mem::take(&mut self.jobs);
        let (mut reports, of_datasets) = self.reports(&jobs);
        let wanted = self.options.digest || self.options.restorable;
        let mut hashes = self.no_digests();
        if wanted {
            self.digest_blocks(&mut hashes, &pool, progress)?;
        }
        let mut raw = Vec::new();
        let kind = StoredDigests::WRITTEN;
        let cells = if wanted { CellDigest::Wanted(kind) } else { CellDigest::Skipped(kind) };
        let runner = JobRunner { source: self.source, plan: self.plan, cells, progress };
        let work = |job: Job, lane: &mut Lane<'_, ColumnResult>| runner.run(job, lane);
        let datasets = &mut self.datasets;
        lanes::run(jobs, lanes, &pool, work, |message, buffers| match message {
            Message::Chunk { dataset, index, bytes, len } => {
                progress.go_on()?;
                datasets.opened(dataset)?.write_chunk(&index, &bytes, 0)?;
                growth.iter_mut().for_each(Growth::write_back);
                buffers.give(bytes);
                if let Some(report) = of_datasets[dataset] {
                    reports[report].written(len, progress);
                }
                Ok(())
            }
            Message::Strings { dataset, region, values } => datasets.opened(dataset)?.write_region(&region, &values),
            Message::Done(done) => {
                hashes[done.table][done.column] = Some(done.digest);
                if done.raw.len() > 0 {
                    raw.push((done.table, done.column, done.raw));
                }
                Ok(())
            }
            Message::Failed(error) => Err(error),
        })?;
        // lanes end in any order
        raw.sort_by_key(|&(table, column, _)| (table, column));
        for (table, column, strings) in raw {
            self.write_raw_strings(table, column, &strings)?;
        }
        let digest = if wanted { self.write_digests(hashes)? } else { None };
        Ok((digest, sharing))
    }

    fn no_digests(&self) -> Digests {
        self.plan.tables.iter().map(|table| table.columns.iter().map(|_| None).collect()).collect()
    }

    /// Adds the digests of dense columns that were copied as blocks, which no job reads.
    fn digest_blocks(&self, digests: &mut Digests, pool: &rayon::ThreadPool, progress: &dyn Progress) -> Result<()> {
        let is_dense = |block: &&Block| {
            matches!(self.plan.tables[block.table].columns[block.column].form, ColumnForm::Dense { .. })
        };
        let digest = |block: &Block| Ok((block.table, block.column, self.digest_of_block(block, progress)?));
        let dense: Vec<_> = self.blocks.iter().filter(is_dense).collect();
        for (table, column, found) in pool.install(|| dense.into_par_iter().map(digest).collect::<Result<Vec<_>>>())? {
            digests[table][column] = Some(found);
        }
        Ok(())
    }

    /// Columns of the plan, and for each dataset its index in them; `None` for row numbers.
    fn reports(&self, jobs: &[(u64, Job)]) -> (Vec<Report<'a>>, Vec<Option<usize>>) {
        let plan: &'a Plan = self.plan;
        let (mut reports, mut first) = (Vec::new(), Vec::new());
        for table in &plan.tables {
            first.push(reports.len());
            let report =
                |column: &'a ColumnPlan| Report { table: &table.name, column: &column.name, left: column.bytes };
            reports.extend(table.columns.iter().map(report));
        }
        let mut of_datasets = vec![None; self.datasets.len()];
        for (_, job) in jobs {
            if let Job::Column { table, column, targets, .. } = job {
                targets.list().iter().for_each(|target| of_datasets[target.dataset] = Some(first[*table] + column));
            }
        }
        (reports, of_datasets)
    }

    fn write_raw_strings(&mut self, table: usize, column: usize, strings: &RawStrings) -> Result<()> {
        let column = &self.plan.tables[table].columns[column];
        strings.write(&self.exact_groups[table], &column.link)?;
        self.warnings.push(format!(
            "{}: {} strings are not UTF-8 or contain a NUL; their exact bytes are under _ctds",
            place(&self.plan.tables[table].name, &column.name),
            strings.len()
        ));
        Ok(())
    }

    fn write_digests(&self, hashes: Digests) -> Result<Option<Hash>> {
        let kind = StoredDigests::WRITTEN;
        let mut main = None;
        for ((table, hashes), exact) in self.plan.tables.iter().zip(hashes).zip(&self.exact_groups) {
            let content = self.content(table)?;
            let digest = |(column, hash): (&ColumnPlan, Option<Result<CellsDigest>>)| {
                let hash = hash.unwrap_or_else(|| Err(Error::format("the column has no digest")));
                ColumnDigest::new(&content.columns()[column.index], hash, kind, content)
            };
            let missing = table.missing.iter().map(|column| {
                let error = Error::unsupported(column.reason.as_str());
                ColumnDigest::new(&content.columns()[column.index], Err(error), kind, content)
            });
            let columns: Vec<_> = table.columns.iter().zip(hashes).map(digest).chain(missing).collect();
            let rows = table.rows.end - table.rows.start;
            let hash = table_hash(kind, rows, &columns);
            let keywords = keywords_hash(kind, content.keywords(), content);
            let mut digests = StoredDigests::new(rows, hash.to_string(), keywords.to_string());
            for column in &columns {
                let hash = column.hash.as_ref().ok().map(Hash::to_string);
                let keywords_hash = Some(column.keywords_hash.to_string());
                let marks = column.stored_marks();
                digests.add(&column.name, &StoredColumnDigests { hash, keywords_hash, marks })?;
            }
            digests.write(exact)?;
            main.get_or_insert(hash);
        }
        if let Some(main) = main {
            self.root.set_attribute(SOURCE_DIGEST, &Attribute::string(main.to_string()))?;
        }
        Ok(main)
    }
}

struct ColumnMaker<'a, 'b> {
    writer: &'a mut Writer<'b>,
    column: &'a ColumnPlan,
    rows: u64,
    /// Index of the dimension scale of the rows.
    row: usize,
}

impl Maker for ColumnMaker<'_, '_> {
    const GROWS: bool = false;
    type Made = DatasetSink;

    fn shape(&self, part: Part) -> Result<Shape> {
        Ok(self.column.extents(part, self.rows, self.writer.options.growth())?.0)
    }

    fn make(&mut self, group: &Group, name: &str, part: Part) -> Result<DatasetSink> {
        let (rows, growth) = (self.rows, self.writer.options.growth());
        let element = part.element(self.column.data_type);
        let (shape, chunk) = self.column.extents(part, rows, growth)?;
        let appendable = !matches!(part, Part::Values | Part::Offset);
        let (compression, allocation) = match part {
            Part::Data | Part::Cube(_) | Part::Values => (self.column.compression, self.column.allocation),
            Part::Offset | Part::Shape | Part::RowCube | Part::RowIndex | Part::Position | Part::Defined => {
                (self.writer.options.compress.of_row_numbers(rows), Allocation::Chunks)
            }
        };
        if let (Some(sources), Part::Data | Part::Values) = (&self.column.virtual_sources, part) {
            let fill = fill_of(element);
            let spec = VirtualSpec { element, shape: &shape, sources, fill: &fill };
            let dataset = self.writer.datasets.add(group.create_virtual(name, &spec)?);
            return Ok(DatasetSink { dataset, grid: grid(&shape, &chunk), size: element.size(), pipeline: None });
        }
        let spec = DatasetSpec { element, shape: &shape, chunk: Some(chunk), appendable, compression };
        self.writer.create(group, name, spec, allocation)
    }

    fn dataset<'a>(&'a self, made: &'a DatasetSink) -> &'a Dataset {
        &self.writer.datasets[made.dataset]
    }

    fn row(&self) -> &Dataset {
        &self.writer.datasets[self.row]
    }
}
