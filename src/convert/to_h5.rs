//! Executes a plan: a native HDF5 file from tables.
//!
//! First everything but the data is made, in the order of the plan: groups, attributes, datasets, scales. Then the
//! columns run through [`lane`](super::lane), and at last come the digests that only the data gives.

use std::ops::Range;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use serde_json::json;

use super::content::{Content, Source};
use super::digest::{ColumnDigest, ColumnStream, Sha, digest_cells, hex, table_sha};
use super::lane::{self, Appender, CHUNKS_HELD, Lane, Message, OddStrings, Target};
use super::mapping::{Attributes, Dimensions, axis_roles, text, text_attribute};
use super::output::Output;
use super::pieces::{Pieces, Shapes};
use super::plan::{ColumnPlan, Form, Options, Plan, Route, TablePlan, chunk_rows, grid, place, stored_size};
use super::{json, scales};
use crate::error::{Error, Place, Result};
use crate::h5::{Attribute, Dataset, DatasetSpec, Deflate, File, Group, Pipeline, Stage};
use crate::io::{ByteOrder, swap_bytes};
use crate::schema::ColumnKind;
use crate::table::{Cells, ColumnInfo, Tiling};
use crate::value::{DataType, Region, Shape, Values, swap_width};

/// Bytes that a piece of a column takes.
const PIECE_BYTES: u64 = 4 << 20;
/// Columns that are read, digested and filtered at the same time, at most.
const LANES: u64 = 4;

/// What a conversion did.
#[derive(Debug)]
pub struct Summary {
    /// Tables written.
    pub tables: usize,
    /// Columns written.
    pub columns: usize,
    /// Columns that are not converted.
    pub missing: usize,
    /// Rows of the main table.
    pub rows: u64,
    /// Bytes of all elements, uncompressed.
    pub bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CTFP-1 digest of the main table.
    pub digest: Sha,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Called while a conversion runs.
pub trait Progress {
    /// `bytes` more of `column` in `table` have been written.
    fn advance(&self, bytes: u64, table: &str, column: &str);
}

/// Writes the native HDF5 file that `plan` describes to `target`, which appears when it is whole.
///
/// # Errors
/// `Exists` without `overwrite` if there is something at `target`, `NoSpace`, and those of reading the source. Nothing is
/// left at `target` then.
pub fn to_hdf5(
    source: &Source,
    plan: &Plan,
    options: &Options,
    target: &Path,
    overwrite: bool,
    progress: &dyn Progress,
) -> Result<Summary> {
    // metadata of a dataset takes some KiB; what compresses needs less than this
    let of_column = |column: &ColumnPlan| if column.deflate.is_some() { 0 } else { column.bytes };
    let needed = plan.columns().fold(0u64, |sum, column| sum.saturating_add(of_column(column)).saturating_add(4096));
    let output = Output::create(target, overwrite, needed)?;
    let file = File::create(output.partial())?;
    let mut writer = Writer::new(source, plan, options, &file)?;
    writer.write_structure()?;
    let syncing = output.sync_behind()?;
    let digest = writer.write_data(progress)?;
    drop(syncing);
    let mut warnings = plan.warnings.clone();
    warnings.append(&mut writer.warnings);
    drop(writer);
    file.close()?;
    let file_bytes = output.partial().metadata()?.len();
    output.commit()?;
    Ok(Summary {
        tables: plan.tables.len(),
        columns: plan.columns().count(),
        missing: plan.tables.iter().map(|table| table.missing.len()).sum(),
        rows: plan.tables.first().map_or(0, |table| table.rows.end - table.rows.start),
        bytes: plan.bytes(),
        file_bytes,
        digest,
        warnings,
    })
}

struct Writer<'a> {
    source: &'a Source,
    plan: &'a Plan,
    options: &'a Options,
    root: Group,
    exact: Group,
    /// All that get data, by the numbers in [`Target`].
    datasets: Vec<Dataset>,
    /// For each table of the plan.
    groups: Vec<Group>,
    exact_groups: Vec<Group>,
    jobs: Vec<(u64, Job)>,
    warnings: Vec<String>,
}

/// What a lane does at a time.
#[derive(Debug)]
enum Job {
    /// The scale `row` of a table.
    RowNumbers { target: Target, rows: Range<u64> },
    /// A column, by the numbers of its table and itself in the plan.
    Column { table: usize, column: usize, targets: Targets },
}

/// The datasets of a column.
#[derive(Debug)]
enum Targets {
    Dense { data: Target, defined: Option<Target> },
    Cubes { cubes: Vec<Target>, row_cube: Target, row_index: Target },
    Ragged { values: Target, offset: Target, shape: Target, defined: Target },
}

/// What a lane says of a finished column.
struct Done {
    table: usize,
    column: usize,
    sha256: Sha,
    /// Of the only dataset that holds strings.
    odd: OddStrings,
}

impl<'a> Writer<'a> {
    fn new(source: &'a Source, plan: &'a Plan, options: &'a Options, file: &File) -> Result<Self> {
        let root = file.root()?;
        root.set_attribute("format", &Attribute::string("ctds-hdf5"))?;
        root.set_attribute("format_version", &Attribute::string("1.0"))?;
        root.set_attribute("creator", &Attribute::string(concat!("ctds-hdf5 ", env!("CARGO_PKG_VERSION"))))?;
        root.set_attribute("source", &text_attribute(source.name.as_bytes().as_bstr()))?;
        let exact = root.create_group("_ctds")?;
        Ok(Writer {
            source,
            plan,
            options,
            root,
            exact,
            datasets: Vec::new(),
            groups: Vec::new(),
            exact_groups: Vec::new(),
            jobs: Vec::new(),
            warnings: Vec::new(),
        })
    }

    fn content(&self, table: &TablePlan) -> Result<&'a dyn Content> {
        self.source.tables[table.source].content()
    }

    fn write_structure(&mut self) -> Result<()> {
        let plan = self.plan;
        // dimension names are shared below a root group
        let mut dimensions: Vec<(String, Dimensions)> = Vec::new();
        for (number, table) in plan.tables.iter().enumerate() {
            let group = open_path(&self.root, &table.group)?;
            let exact = open_path(&self.exact, &table.group)?;
            let top = table.group.split('/').nth(1).unwrap_or_default();
            if !dimensions.iter().any(|(known, _)| known == top) {
                dimensions.push((top.to_owned(), Dimensions::default()));
            }
            let known = dimensions.iter_mut().find(|(known, _)| known == top).map(|(_, known)| known);
            let known = known.expect("it was added");
            self.write_table(number, table, &group, &exact, known).at_with(|| format!("table {}", table.name))?;
            self.groups.push(group);
            self.exact_groups.push(exact);
        }
        Ok(())
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
        let mut attributes = Attributes::default();
        attributes.add("table_type", text_attribute(content.info().table_type.as_bstr()));
        attributes.add("table_subtype", text_attribute(content.info().sub_type.as_bstr()));
        attributes.add("readme", text_attribute(content.info().readme.as_bstr()));
        attributes.add_keywords(content.keywords(), &|stored| self.table_path(table, stored));
        for column in &table.missing {
            // what casacore would compute is kept in words
            let keywords = &content.columns()[column.index].desc.keywords;
            if let Some(expression) = keywords.string("_VirtualTaQLEngine_CalcExpr") {
                attributes.add(&format!("{}__taql", column.name), text_attribute(expression));
            }
        }
        for (name, value) in attributes.iter() {
            group.set_attribute(name, value)?;
        }
        self.write_exact_table(table, content, exact)?;
        for column in &table.missing {
            let link = format!("{}__missing", column.name);
            self.write_exact_column(content, &link, ("missing", Some(&column.reason)), column.index, exact)?;
        }

        let rows = table.rows.end - table.rows.start;
        let deflate = match self.options.compress {
            super::plan::Compress::None => None,
            super::plan::Compress::Gzip(level) => Some(level),
            super::plan::Compress::Auto => (rows > 128).then_some(4),
        };
        let row_shape = Shape::from([rows]);
        let row_chunk = Shape::from([chunk_rows(8, rows, self.options.appendable)]);
        // a dimension has one length in a tree of groups, and a subtable has other rows than its parent
        let row_name = &self.plan.tables[number].row;
        let row = self.create(group, row_name, DataType::Int64, &row_shape, &row_chunk, true, deflate)?;
        let row_scale = row.dataset;
        self.datasets[row_scale].make_scale(row_name)?;
        self.jobs.push((rows * 8, Job::RowNumbers { target: row, rows: table.rows.clone() }));

        let values = scales::Coordinates::of(self.source, table);
        let plan = self.plan;
        let taken = move |name: &str| plan.names.has(&table.group, name);
        let mut scales = scales::Scales::new(group, dimensions, &values, &taken);
        for (index, column) in table.columns.iter().enumerate() {
            let info = &content.columns()[column.index];
            let targets = self.write_column(table, column, info, group, row_scale, &mut scales);
            let targets = targets.at_with(|| format!("column {}", column.name))?;
            let form = match (&column.form, column.data_type) {
                (_, DataType::Record) => "record",
                (Form::Dense { .. }, _) => "dense",
                (Form::Cubes { .. }, _) => "cubes",
                (Form::Ragged { .. }, _) => "ragged",
            };
            self.write_exact_column(content, &column.link, (form, None), column.index, exact)?;
            self.jobs.push((column.bytes, Job::Column { table: number, column: index, targets }));
        }
        Ok(())
    }

    /// Creates the datasets of a column, with attributes and scales.
    fn write_column(
        &mut self,
        table: &TablePlan,
        column: &ColumnPlan,
        info: &ColumnInfo,
        group: &Group,
        row: usize,
        scales: &mut scales::Scales<'_>,
    ) -> Result<Targets> {
        let mut attributes = Attributes::default();
        if column.link != column.name {
            attributes.add("ctds_name", text_attribute(info.desc.name.as_bstr()));
        }
        attributes.add_column(info.desc.comment.as_bstr(), &info.desc.keywords);
        attributes.add_keywords(&info.desc.keywords, &|stored| self.table_path(table, stored));
        let rows = table.rows.end - table.rows.start;
        let element = stored_type(column.data_type);
        let is_ms = table.source == 0 && scales.is_measurement_set();
        let roles = |axes: usize| axis_roles(is_ms, &column.name, axes);
        let row_target = |writer: &mut Self, group: &Group, name: &str, element: DataType| {
            let chunk = chunk_rows(stored_size(element), rows, writer.options.appendable);
            let target = writer.create(
                group,
                name,
                element,
                &Shape::from([rows]),
                &Shape::from([chunk]),
                true,
                column.deflate,
            )?;
            writer.datasets[target.dataset].attach_scale(0, &writer.datasets[row])?;
            Ok::<_, Error>(target)
        };
        match &column.form {
            Form::Dense { shape, chunk, .. } => {
                let data = self.create(group, &column.link, element, shape, chunk, true, column.deflate)?;
                for (name, value) in attributes.iter() {
                    self.datasets[data.dataset].set_attribute(name, value)?;
                }
                let axes = shape.len() - 1;
                scales.attach(&self.datasets[data.dataset], &shape[..axes], &roles(axes))?;
                self.datasets[data.dataset].attach_scale(axes, &self.datasets[row])?;
                let defined = column.defined_link.as_ref();
                let defined = defined.map(|name| row_target(self, group, name, DataType::Bool)).transpose()?;
                Ok(Targets::Dense { data, defined })
            }
            Form::Cubes { cubes } => {
                let group = group.create_group(&column.link)?;
                for (name, value) in attributes.iter() {
                    group.set_attribute(name, value)?;
                }
                let mut targets = Vec::new();
                let mut local = scales.within(&group);
                for (number, (shape, chunk)) in cubes.iter().enumerate() {
                    let name = format!("cube{number}");
                    let cube = self.create(&group, &name, element, shape, chunk, true, column.deflate)?;
                    let axes = shape.len() - 1;
                    let mut all = roles(axes);
                    all.push("position");
                    local.attach(&self.datasets[cube.dataset], shape, &all)?;
                    targets.push(cube);
                }
                let row_cube = row_target(self, &group, "row_cube", DataType::Int)?;
                let row_index = row_target(self, &group, "row_index", DataType::Int64)?;
                Ok(Targets::Cubes { cubes: targets, row_cube, row_index })
            }
            Form::Ragged { axes, elements } => {
                let group = group.create_group(&column.link)?;
                for (name, value) in attributes.iter() {
                    group.set_attribute(name, value)?;
                }
                let one = |len: u64, size: u64| (Shape::from([len]), Shape::from([chunk_rows(size, len, false)]));
                let (shape, chunk) = one(*elements, stored_size(element));
                let values = self.create(&group, "values", element, &shape, &chunk, false, column.deflate)?;
                let mut local = scales.within(&group);
                local.attach(&self.datasets[values.dataset], &shape, &["element"])?;
                let (shape, chunk) = one(rows + 1, 8);
                let offset = self.create(&group, "offset", DataType::Int64, &shape, &chunk, false, column.deflate)?;
                local.attach(&self.datasets[offset.dataset], &shape, &["offset"])?;
                let width = *axes as u64;
                let shape = Shape::from([width, rows]);
                let chunk = Shape::from([width, chunk_rows(4 * width, rows, self.options.appendable)]);
                let shapes = self.create(&group, "shape", DataType::Int, &shape, &chunk, true, column.deflate)?;
                local.attach(&self.datasets[shapes.dataset], &[width], &["axis"])?;
                self.datasets[shapes.dataset].attach_scale(1, &self.datasets[row])?;
                let defined = row_target(self, &group, "defined", DataType::Bool)?;
                Ok(Targets::Ragged { values, offset, shape: shapes, defined })
            }
        }
    }

    /// Creates a dataset that will get data.
    #[allow(clippy::too_many_arguments, reason = "they are the dataset's properties")]
    fn create(
        &mut self,
        group: &Group,
        name: &str,
        element: DataType,
        shape: &Shape,
        chunk: &Shape,
        can_grow: bool,
        deflate: Option<u8>,
    ) -> Result<Target> {
        let deflate = deflate.filter(|_| element.is_fixed_size()).map(|level| Deflate { level });
        let spec = DatasetSpec {
            element,
            shape,
            chunk: Some(chunk.clone()),
            // HDF5 has no chunks without elements
            appendable: can_grow && self.options.appendable && !chunk.contains(&0),
            filter: deflate,
        };
        let dataset = self.datasets.len();
        self.datasets.push(group.create_dataset(name, &spec)?);
        let pipeline = deflate.map(|deflate| {
            Pipeline::new(vec![Stage::Shuffle { element_size: element.size() }, Stage::Deflate(deflate)])
        });
        Ok(Target { dataset, grid: grid(shape, chunk), size: element.size(), pipeline })
    }

    /// The path of the group of the subtable that a keyword of `table` stores as `stored`.
    fn table_path(&self, table: &TablePlan, stored: &BStr) -> String {
        let found = self
            .source
            .tables
            .iter()
            .position(|other| other.parent == Some(table.source) && other.stored == stored.as_bytes());
        match found.and_then(|source| self.plan.tables.iter().find(|other| other.source == source)) {
            Some(other) => other.group.clone(),
            None => stored.to_str_lossy().into_owned(),
        }
    }

    fn write_exact_table(&self, table: &TablePlan, content: &dyn Content, exact: &Group) -> Result<()> {
        let table_name = |stored: &[u8]| content.table_name(stored);
        let info = content.info();
        let mut document = json!({
            "row": table.row,
            "rows": table.rows.end - table.rows.start,
            "first_row": table.rows.start,
            "keywords": json::from_record(content.keywords(), &table_name),
            "info": {
                "type": json::from_string(info.table_type.as_bstr()),
                "subtype": json::from_string(info.sub_type.as_bstr()),
                "readme": json::from_string(info.readme.as_bstr()),
            },
        });
        if let Some(table) = content.as_table() {
            let description = table.description();
            let managers = table.managers().map(|(kind, sequence, name)| {
                json!({"type": json::from_string(kind), "sequence": sequence, "name": json::from_string(name)})
            });
            document["byte_order"] = table.byte_order().name().into();
            document["description"] = json!({
                "name": json::from_string(description.name.as_bstr()),
                "version": json::from_string(description.version.as_bstr()),
                "comment": json::from_string(description.comment.as_bstr()),
            });
            document["private_keywords"] = json::from_record(&description.private_keywords, &table_name);
            document["managers"] = managers.collect();
        }
        exact.set_attribute("table", &Attribute::string(document.to_string()))
    }

    /// `form` is the form of the cells, and if they are missing why.
    fn write_exact_column(
        &self,
        content: &dyn Content,
        link: &str,
        (form, reason): (&str, Option<&str>),
        index: usize,
        exact: &Group,
    ) -> Result<()> {
        let info = &content.columns()[index];
        let desc = &info.desc;
        let mut document = json!({
            "position": index,
            "name": json::from_string(desc.name.as_bstr()),
            "link": link,
            "form": form,
            "dtype": desc.data_type.name(),
            "kind": if desc.kind == ColumnKind::Array { "array" } else { "scalar" },
            "options": desc.options,
            "ndim": desc.ndim,
            "shape": info.shape.as_ref().filter(|_| desc.kind == ColumnKind::Array).map(|shape| shape.reversed()),
            "comment": json::from_string(desc.comment.as_bstr()),
            "max_length": desc.max_length,
            "default_manager": [
                json::from_string(desc.manager_type.as_bstr()),
                json::from_string(desc.manager_group.as_bstr()),
            ],
            "manager": json::from_string(info.manager.as_bstr()),
            "manager_name": json::from_string(info.manager_name.as_bstr()),
            "keywords": json::from_record(&desc.keywords, &|stored| content.table_name(stored)),
        });
        if let Some(reason) = reason {
            document["reason"] = reason.into();
        }
        exact.set_attribute(&format!("column.{link}"), &Attribute::string(document.to_string()))
    }

    /// Runs all jobs, and returns the digest of the main table.
    fn write_data(&mut self, progress: &dyn Progress) -> Result<Sha> {
        let threads = match self.options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool =
            pool.map_err(|error| Error::new(crate::ErrorKind::Io, "threads cannot be started").caused_by(error))?;
        let largest = self.jobs.iter().map(|(_, job)| job.chunk_bytes()).max().unwrap_or(0).max(PIECE_BYTES);
        let affordable = self.options.max_memory / (largest * (CHUNKS_HELD + 2));
        let lanes = if threads == 1 { 1 } else { affordable.clamp(1, LANES) as usize };

        let jobs = std::mem::take(&mut self.jobs);
        let mut names = vec![(0, 0); self.datasets.len()];
        for (_, job) in &jobs {
            if let Job::Column { table, column, targets } = job {
                targets.all().for_each(|target| names[target.dataset] = (*table, *column));
            }
        }
        let mut shas: Vec<Vec<Option<Sha>>> =
            self.plan.tables.iter().map(|table| vec![None; table.columns.len()]).collect();
        let mut odd = Vec::new();
        let (plan, source, datasets) = (self.plan, self.source, &self.datasets);
        let work = |job: Job, lane: &mut Lane<'_, Done>| -> Result<()> {
            match job {
                Job::RowNumbers { target, rows } => write_row_numbers(&target, rows, lane),
                Job::Column { table, column, targets } => {
                    let (table_plan, column_plan) = (&plan.tables[table], &plan.tables[table].columns[column]);
                    let content = source.tables[table_plan.source].content()?;
                    let run = ColumnRun::new(content, table_plan, column_plan)
                        .and_then(|mut run| run.write(&targets, lane).map(|sha256| (sha256, run.odd)));
                    let (sha256, odd) = run.at_with(|| place(&table_plan.name, &column_plan.name))?;
                    lane.done(Done { table, column, sha256, odd })
                }
            }
        };
        lane::run(jobs, lanes, &pool, work, |message, buffers| match message {
            Message::Chunk { dataset, index, bytes, len } => {
                datasets[dataset].write_chunk(&index, &bytes, 0)?;
                buffers.give(bytes);
                let (table, column) = names[dataset];
                if let Some(table) = plan.tables.get(table)
                    && let Some(column) = table.columns.get(column)
                {
                    progress.advance(len, &table.name, &column.name);
                }
                Ok(())
            }
            Message::Strings { dataset, region, values } => datasets[dataset].write_region(&region, &values),
            Message::Done(done) => {
                shas[done.table][done.column] = Some(done.sha256);
                if !done.odd.0.is_empty() {
                    odd.push((done.table, done.column, done.odd));
                }
                Ok(())
            }
            Message::Failed(error) => Err(error),
        })?;
        // lanes finish in any order
        odd.sort_by_key(|&(table, column, _)| (table, column));
        for (table, column, odd) in odd {
            self.write_odd_strings(table, column, odd)?;
        }
        self.write_digests(&shas)
    }

    fn write_odd_strings(&mut self, table: usize, column: usize, odd: OddStrings) -> Result<()> {
        let column = &self.plan.tables[table].columns[column];
        let group = self.exact_groups[table].create_group(&format!("strings.{}", column.link))?;
        let write = |name: &str, values: Values| -> Result<()> {
            let shape = Shape::from([values.len() as u64]);
            let spec = DatasetSpec {
                element: values.data_type(),
                shape: &shape,
                chunk: None,
                appendable: false,
                filter: None,
            };
            group.create_dataset(name, &spec)?.write_region(&Region::whole(&shape), &values)
        };
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for (_, string) in &odd.0 {
            bytes.extend_from_slice(string);
            offsets.push(bytes.len() as i64);
        }
        write("index", Values::Int64(odd.0.iter().map(|&(index, _)| index as i64).collect()))?;
        write("offset", Values::Int64(offsets))?;
        write("bytes", Values::UChar(bytes))?;
        self.warnings.push(format!(
            "{}: {} strings are not UTF-8 or contain a NUL; their exact bytes are under _ctds",
            place(&self.plan.tables[table].name, &column.name),
            odd.0.len()
        ));
        Ok(())
    }

    fn write_digests(&self, shas: &[Vec<Option<Sha>>]) -> Result<Sha> {
        let mut main = None;
        for (table, shas) in self.plan.tables.iter().zip(shas) {
            let content = self.content(table)?;
            let digest = |(column, sha): (&ColumnPlan, &Option<Sha>)| {
                let sha = sha.ok_or_else(|| Error::format("a column without a digest"));
                ColumnDigest::new(&content.columns()[column.index], sha, content)
            };
            let missing = table.missing.iter().map(|column| {
                let error = Error::unsupported(column.reason.as_str());
                ColumnDigest::new(&content.columns()[column.index], Err(error), content)
            });
            let columns: Vec<_> = table.columns.iter().zip(shas).map(digest).chain(missing).collect();
            main.get_or_insert(table_sha(table.rows.end - table.rows.start, &columns));
        }
        let main = main.unwrap_or_default();
        self.root.set_attribute("source_digest", &Attribute::string(hex(&main)))?;
        Ok(main)
    }
}

impl Job {
    /// Bytes of its largest chunk.
    fn chunk_bytes(&self) -> u64 {
        match self {
            Job::RowNumbers { target, .. } => target.chunk_bytes() as u64,
            Job::Column { targets, .. } => targets.all().map(|target| target.chunk_bytes() as u64).max().unwrap_or(0),
        }
    }
}

impl Targets {
    fn all(&self) -> impl Iterator<Item = &Target> {
        let list: Vec<&Target> = match self {
            Targets::Dense { data, defined } => std::iter::once(data).chain(defined).collect(),
            Targets::Cubes { cubes, row_cube, row_index } => cubes.iter().chain([row_cube, row_index]).collect(),
            Targets::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        };
        list.into_iter()
    }
}

/// The type of the dataset of a column: records are JSON.
fn stored_type(data_type: DataType) -> DataType {
    if data_type == DataType::Record { DataType::String } else { data_type }
}

/// Creates the groups of `path` that are missing.
fn open_path(root: &Group, path: &str) -> Result<Group> {
    let mut group = root.clone();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        group = if group.has(name) { group.group(name)? } else { group.create_group(name)? };
    }
    Ok(group)
}

fn write_row_numbers(target: &Target, rows: Range<u64>, lane: &mut Lane<'_, Done>) -> Result<()> {
    let mut appender = Appender::new(target);
    for row in rows {
        appender.push(lane, &row.to_le_bytes())?;
    }
    appender.finish(lane)
}

/// A column on its way.
struct ColumnRun<'a> {
    content: &'a dyn Content,
    info: &'a ColumnInfo,
    plan: &'a ColumnPlan,
    cells: Box<dyn Cells + 'a>,
    rows: Range<u64>,
    odd: OddStrings,
}

impl<'a> ColumnRun<'a> {
    fn new(content: &'a dyn Content, table: &TablePlan, plan: &'a ColumnPlan) -> Result<Self> {
        let cells = content.cells(plan.index)?;
        let info = &content.columns()[plan.index];
        Ok(ColumnRun { content, info, plan, cells, rows: table.rows.clone(), odd: OddStrings::default() })
    }

    /// Reads the column, hands its chunks to the lane, and returns its digest.
    fn write(&mut self, targets: &Targets, lane: &mut Lane<'_, Done>) -> Result<Sha> {
        match (targets, &self.plan.form) {
            (Targets::Dense { data, defined }, Form::Dense { shape, route, .. }) => match route {
                Route::Tiles => self.write_tiles(data, lane),
                Route::Parts => self.write_parts(data, defined.as_ref(), lane),
                Route::Rows => self.write_rows(data, defined.as_ref(), shape, lane),
            },
            (Targets::Cubes { cubes, row_cube, row_index }, _) => self.write_cubes(cubes, row_cube, row_index, lane),
            (Targets::Ragged { values, offset, shape, defined }, _) => {
                self.write_ragged(values, offset, shape, defined, lane)
            }
            (Targets::Dense { .. }, _) => unreachable!("targets are made from the form"),
        }
    }

    fn pieces(&self) -> Pieces<'_> {
        Pieces::new(self.info, &*self.cells, self.rows.clone(), PIECE_BYTES)
    }

    /// A digest of its own, for cells that were not read in row order.
    fn digest(&self) -> Result<Sha> {
        digest_cells(self.info, &*self.cells, self.content, self.rows.clone())
    }

    fn tiling(&self) -> Result<Tiling<'_>> {
        let tiling = self.cells.tiling(super::plan::MAX_CUBES);
        tiling.ok_or_else(|| Error::format("the hypercubes have changed since the plan was made"))
    }

    /// One hypercube with all rows in order; where its tiles cover the cell, chunks are consecutive rows.
    fn write_tiles(&self, target: &Target, lane: &mut Lane<'_, Done>) -> Result<Sha> {
        let tiling = self.tiling()?;
        let cube = tiling.cubes.first().ok_or_else(|| Error::format("no hypercube"))?;
        let Some((cell, rows)) = target.grid.shape.split_last() else { return Err(Error::format("no row axis")) };
        let mut stream = cube.grid().covers_cells().then(|| ColumnStream::new(self.content));
        let chunk_rows = target.grid.chunk.last().copied().unwrap_or(1);
        let mut row = 0;
        copy_tiles(&**cube, target, lane, |bytes| {
            let Some(stream) = &mut stream else { return Ok(()) };
            let count = chunk_rows.min(rows - row);
            row += count;
            stream.update_same(&cell, count, bytes, target.size)
        })?;
        match stream {
            Some(stream) => Ok(stream.finish()),
            None => self.digest(),
        }
    }

    fn write_cubes(
        &self,
        cubes: &[Target],
        row_cube: &Target,
        row_index: &Target,
        lane: &mut Lane<'_, Done>,
    ) -> Result<Sha> {
        let tiling = self.tiling()?;
        if tiling.cubes.len() != cubes.len() {
            return Err(Error::format("the hypercubes have changed since the plan was made"));
        }
        for (cube, target) in tiling.cubes.iter().zip(cubes) {
            copy_tiles(&**cube, target, lane, |_| Ok(()))?;
        }
        let (mut cube, mut index) = (Appender::new(row_cube), Appender::new(row_index));
        let mut undefined =
            |lane: &mut Lane<'_, Done>, cube: &mut Appender<'_>, index: &mut Appender<'_>, rows: u64| {
                for _ in 0..rows {
                    cube.push(lane, &(-1i32).to_le_bytes())?;
                    index.push(lane, &0i64.to_le_bytes())?;
                }
                Ok::<_, Error>(())
            };
        let mut next = self.rows.start;
        for run in &tiling.runs {
            undefined(lane, &mut cube, &mut index, run.rows.start.min(self.rows.end) - next)?;
            for row in run.rows.start..run.rows.end.min(self.rows.end) {
                cube.push(lane, &(run.cube as i32).to_le_bytes())?;
                index.push(lane, &(run.position + row - run.rows.start).to_le_bytes())?;
            }
            next = run.rows.end.min(self.rows.end);
        }
        undefined(lane, &mut cube, &mut index, self.rows.end - next)?;
        cube.finish(lane)?;
        index.finish(lane)?;
        self.digest()
    }

    /// In blocks of rows.
    fn write_rows(
        &mut self,
        data: &Target,
        defined: Option<&Target>,
        shape: &Shape,
        lane: &mut Lane<'_, Done>,
    ) -> Result<Sha> {
        let cell: Shape = shape[..shape.len() - 1].into();
        let cell_len = cell.elements()? as usize;
        let mut stream = ColumnStream::new(self.content);
        let mut appender = Appender::new(data);
        let mut flags = defined.map(Appender::new);
        let mut values = Values::new(self.plan.data_type);
        let mut odd = std::mem::take(&mut self.odd);
        for piece in self.pieces() {
            let piece = piece?;
            values.clear();
            piece.read(&*self.cells, &mut values)?;
            stream.update(&piece, &values)?;
            let rows = piece.rows.end - piece.rows.start;
            if let Some(flags) = &mut flags
                && !piece.continues()
            {
                match &piece.shapes {
                    Shapes::Same(_) => flags.push(lane, &vec![1; rows as usize])?,
                    Shapes::Each(shapes) => {
                        let bytes: Vec<u8> = shapes.iter().map(|shape| u8::from(shape.is_some())).collect();
                        flags.push(lane, &bytes)?;
                    }
                }
            }
            let Some(bytes) = values.le_bytes() else {
                let first = piece.rows.start - self.rows.start;
                let strings = self.dense_strings(&values, &piece.shapes, cell_len);
                let strings = clean(strings, first * cell_len as u64, &mut odd);
                let mut region = Region::whole(&cell.with_axis(rows));
                region.start = region.start[..cell.len()].iter().copied().chain([first]).collect();
                lane.strings(data.dataset, region, Values::String(strings))?;
                continue;
            };
            match &piece.shapes {
                Shapes::Same(_) => appender.push(lane, &bytes)?,
                Shapes::Each(shapes) => {
                    let cell_bytes = cell_len * data.size;
                    let mut rest = &*bytes;
                    for shape in shapes {
                        if shape.is_none() {
                            appender.push_zeros(lane, cell_bytes)?;
                            continue;
                        }
                        let (cell, later) = rest.split_at_checked(cell_bytes).ok_or_else(changed)?;
                        appender.push(lane, cell)?;
                        rest = later;
                    }
                }
            }
        }
        appender.finish(lane)?;
        if let Some(flags) = flags {
            flags.finish(lane)?;
        }
        self.odd = odd;
        Ok(stream.finish())
    }

    /// The strings of whole cells, records as JSON, empty where a cell is undefined.
    fn dense_strings(&self, values: &Values, shapes: &Shapes, cell_len: usize) -> Vec<BString> {
        let strings: Vec<BString> = match values {
            Values::Record(records) => {
                let table_name = |stored: &[u8]| self.content.table_name(stored);
                records.iter().map(|record| json::from_record(record, &table_name).to_string().into()).collect()
            }
            Values::String(strings) => strings.clone(),
            _ => unreachable!("numbers have bytes"),
        };
        let Shapes::Each(shapes) = shapes else { return strings };
        let mut strings = strings.into_iter();
        shapes
            .iter()
            .flat_map(|shape| {
                let cell: Vec<BString> = match shape {
                    Some(_) => strings.by_ref().take(cell_len).collect(),
                    None => vec![BString::default(); cell_len],
                };
                cell
            })
            .collect()
    }

    /// Large cells, chunk by chunk. What is undefined stays unwritten.
    fn write_parts(&self, data: &Target, defined: Option<&Target>, lane: &mut Lane<'_, Done>) -> Result<Sha> {
        let mut flags = defined.map(Appender::new);
        let axes = data.grid.shape.len() - 1;
        let cell: Shape = data.grid.shape[..axes].into();
        let part: Shape = data.grid.chunk[..axes].into();
        let parts = grid(&cell, &part).counts();
        for row in self.rows.clone() {
            let is_defined = self.cells.cell_shape(row)?.is_some();
            if let Some(flags) = &mut flags {
                flags.push(lane, &[u8::from(is_defined)])?;
            }
            if !is_defined {
                continue;
            }
            for number in 0..parts.elements()? {
                let index = unravel(number, &parts);
                let start: Shape = index.iter().zip(part.iter()).map(|(&i, &n)| i * n).collect();
                let shape = (0..axes).map(|axis| part[axis].min(cell[axis] - start[axis])).collect();
                let region = Region { start, shape };
                let mut values = Values::new(self.plan.data_type);
                self.cells.read_cell(row, Some(&region), &mut values)?;
                let bytes = pad(&values, &region.shape, &part)?;
                let index = Shape::from(index.as_slice()).with_axis(row - self.rows.start);
                lane.chunk(data, index, bytes)?;
            }
        }
        if let Some(flags) = flags {
            flags.finish(lane)?;
        }
        self.digest()
    }

    /// Cells of differing shapes, one after the other.
    fn write_ragged(
        &mut self,
        values_target: &Target,
        offset: &Target,
        shape: &Target,
        defined: &Target,
        lane: &mut Lane<'_, Done>,
    ) -> Result<Sha> {
        let mut stream = ColumnStream::new(self.content);
        let mut elements = Appender::new(values_target);
        let (mut offsets, mut extents, mut flags) =
            (Appender::new(offset), Appender::new(shape), Appender::new(defined));
        let width = shape.grid.shape[0] as usize;
        let mut values = Values::new(self.plan.data_type);
        let mut odd = std::mem::take(&mut self.odd);
        let mut next = 0u64;
        // strings do not pass through the appender, which would count them
        let mut written = 0u64;
        offsets.push(lane, &0i64.to_le_bytes())?;
        for piece in self.pieces() {
            let piece = piece?;
            values.clear();
            piece.read(&*self.cells, &mut values)?;
            stream.update(&piece, &values)?;
            if !piece.continues() {
                for row in 0..(piece.rows.end - piece.rows.start) as usize {
                    let shape = match &piece.shapes {
                        Shapes::Same(shape) => Some(shape),
                        Shapes::Each(shapes) => shapes[row].as_ref(),
                    };
                    flags.push(lane, &[u8::from(shape.is_some())])?;
                    let mut padded = vec![-1i32; width];
                    if let Some(shape) = shape {
                        for (to, extent) in padded.iter_mut().zip(shape.reversed()) {
                            *to = i32::try_from(extent).map_err(|_| {
                                Error::unsupported(format!("a cell of shape {shape} in a column of differing shapes"))
                            })?;
                        }
                        next += shape.elements()?;
                    }
                    padded.iter().try_for_each(|extent| extents.push(lane, &extent.to_le_bytes()))?;
                    offsets.push(lane, &(next as i64).to_le_bytes())?;
                }
            }
            if values.is_empty() {
                continue;
            }
            match values.le_bytes() {
                Some(bytes) => elements.push(lane, &bytes)?,
                None => {
                    let strings =
                        clean(self.dense_strings(&values, &Shapes::Same(Shape::scalar()), 1), written, &mut odd);
                    let region = Region { start: Shape::from([written]), shape: Shape::from([strings.len() as u64]) };
                    written += strings.len() as u64;
                    lane.strings(values_target.dataset, region, Values::String(strings))?;
                }
            }
        }
        elements.finish(lane)?;
        offsets.finish(lane)?;
        extents.finish(lane)?;
        flags.finish(lane)?;
        self.odd = odd;
        Ok(stream.finish())
    }
}

/// Copies the tiles of a cube to the chunks of `target`, whose chunk is a tile, or several along the last axis, or the
/// part of a tile that has rows. `seen` gets the little-endian bytes of each chunk, padding included.
fn copy_tiles(
    cube: &dyn crate::grid::ChunkRead,
    target: &Target,
    lane: &mut Lane<'_, Done>,
    mut seen: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let tiles = cube.grid();
    let (Some(&tile_rows), Some(&chunk_rows)) = (tiles.chunk.last(), target.grid.chunk.last()) else {
        return Err(Error::format("a hypercube without axes"));
    };
    let tile_bytes = tiles.chunk.elements()? as usize * target.size;
    let tile_count = tiles.counts().elements()?;
    let chunks = target.grid.counts();
    let joined = chunk_rows.div_ceil(tile_rows);
    let chunk_bytes = target.chunk_bytes();
    for number in 0..chunks.elements()? {
        let first = number * joined;
        let count = joined.min(tile_count - first) as usize;
        let mut bytes = lane.buffers.take(count * tile_bytes);
        match cube.raw_order() {
            Some(order) => {
                cube.read_raw(first, &mut bytes)?;
                if order == ByteOrder::Big {
                    swap_bytes(&mut bytes, swap_width(cube.data_type()));
                }
            }
            None => {
                let mut values = Values::new(cube.data_type());
                let counts = tiles.counts();
                (first..first + count as u64)
                    .try_for_each(|tile| cube.read_chunk(&unravel(tile, &counts), &mut values))?;
                bytes.copy_from_slice(&values.le_bytes().expect("tiles hold elements of fixed size"));
            }
        }
        bytes.resize(chunk_bytes, 0);
        seen(&bytes)?;
        lane.chunk(target, Shape::from(unravel(number, &chunks).as_slice()), bytes)?;
    }
    Ok(())
}

/// The index of the `number`th of `counts` chunks, first axis fastest.
fn unravel(mut number: u64, counts: &Shape) -> Vec<u64> {
    counts
        .iter()
        .map(|&count| {
            let index = number % count.max(1);
            number /= count.max(1);
            index
        })
        .collect()
}

/// The bytes of an array, padded to a larger shape with zeros.
fn pad(values: &Values, shape: &Shape, padded: &Shape) -> Result<Vec<u8>> {
    let zero = vec![0; shape.len()];
    let mut whole = Values::new(values.data_type());
    whole.extend_default(padded.elements()? as usize);
    crate::grid::copy_box(values, shape, &zero, &mut whole, 0, padded, &zero, shape);
    whole.le_bytes().map(|bytes| bytes.into_owned()).ok_or_else(changed)
}

/// Makes strings such as HDF5 can have, and keeps those that are not the same afterwards.
fn clean(mut strings: Vec<BString>, first: u64, odd: &mut OddStrings) -> Vec<BString> {
    for (number, string) in strings.iter_mut().enumerate() {
        let (cleaned, same) = text(string.as_bstr());
        if !same {
            odd.0.push((first + number as u64, std::mem::replace(string, cleaned)));
        }
    }
    strings
}

fn changed() -> Error {
    Error::format("the cells have changed since the plan was made")
}
