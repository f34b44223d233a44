//! Executes a plan: a native HDF5 file from tables.
//!
//! First everything but the data is made, in the order of the plan: groups, attributes, datasets, scales. Then the
//! columns run through [`lane`](super::lane), and at last come the digests that only the data gives.

use std::ops::Range;

use bstr::{BStr, ByteSlice};
use serde_json::json;

use super::column::{ColumnResult, ColumnWriter, write_row_numbers};
use super::lanes::{self, DatasetSink, Lane, Message};
use super::layout_choice::{Form, chunk_rows, grid};
use super::plan::{ColumnPlan, Compress, Options, Plan, TablePlan};
use crate::error::{Context, Error, Result, ResultExt, column_context as place};
use crate::h5::{Attribute, Dataset, DatasetSpec, Deflate, File, Group, Pipeline, Stage};
use crate::native::{
    self, Attributes, ColumnDigests, Coordinates, Dimensions, RawStrings, Scales, axis_roles, json, stored_size,
    text_attribute, unique,
};
use crate::pool::thread_pool;
use crate::progress::Progress;
use crate::sha::{Sha, hex};
use crate::source::digest::{keywords_sha, table_sha};
use crate::source::{ColumnDigest, Content, Source, coordinates};
use crate::table::ColumnInfo;
use crate::value::{DataType, Region, Shape, Values};

pub(crate) struct Writer<'a> {
    source: &'a Source,
    plan: &'a Plan,
    options: &'a Options,
    pub(crate) root: Group,
    exact: Group,
    /// All that get data, by the numbers in [`DatasetSink`].
    datasets: Vec<Dataset>,
    /// For each table of the plan.
    groups: Vec<Group>,
    exact_groups: Vec<Group>,
    jobs: Vec<(u64, Job)>,
    pub(crate) warnings: Vec<String>,
}

/// What a lane does at a time.
#[derive(Debug)]
enum Job {
    /// The scale `row` of a table.
    RowNumbers { target: DatasetSink, rows: Range<u64> },
    /// A column, by the numbers of its table and itself in the plan, and its datasets: of a dense column the data and, if
    /// there are undefined cells, their flags; the cubes and the row map, cube and index; or values, offset, shape, flags.
    Column { table: usize, column: usize, targets: Vec<DatasetSink> },
}

impl<'a> Writer<'a> {
    pub(crate) fn new(source: &'a Source, plan: &'a Plan, options: &'a Options, file: &File) -> Result<Self> {
        let root = file.root()?;
        let exact = native::begin(&root, &source.name)?;
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

    fn content(&self, table: &TablePlan) -> Result<&'a Content> {
        self.source.tables[table.source].content()
    }

    pub(crate) fn write_structure(&mut self, progress: &dyn Progress) -> Result<()> {
        let plan = self.plan;
        // dimension names are shared below a root group
        let mut dimensions: Vec<(String, Dimensions)> = Vec::new();
        for (number, table) in plan.tables.iter().enumerate() {
            progress.go_on()?;
            let group = native::open_path(&self.root, &table.group)?;
            let exact = native::open_path(&self.exact, &table.group)?;
            let top = table.group.split('/').nth(1).unwrap_or_default();
            if !dimensions.iter().any(|(known, _)| known == top) {
                dimensions.push((top.to_owned(), Dimensions::default()));
            }
            let known = dimensions.iter_mut().find(|(known, _)| known == top).map(|(_, known)| known);
            let known = known.expect("it was added");
            self.write_table(number, table, &group, &exact, known).with_context(|| Context::table(&table.name))?;
            self.groups.push(group);
            self.exact_groups.push(exact);
        }
        Ok(())
    }

    /// The values of the axes of a table's columns: what the subtables say, if it is the main table of a MeasurementSet.
    fn coordinates(&self, table: &TablePlan) -> Coordinates {
        let Ok(content) = self.source.tables[table.source].content() else { return Coordinates::default() };
        if table.source != 0 || !content.info().table_type.starts_with(b"Measurement Set") {
            return Coordinates::default();
        }
        Coordinates::new(true, coordinates(self.source))
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
        let keyword = table.name.rsplit('/').next().unwrap_or_default();
        let renamed = table.name != "." && !table.group.ends_with(&format!("/{keyword}"));
        let exact_name = renamed.then(|| keyword.as_bytes().as_bstr());
        let table_path = |stored: &BStr| self.table_path(table, stored);
        let attributes = Attributes::of_table(exact_name, content.info(), content.keywords(), &table_path);
        for attribute in attributes.iter() {
            group.set_attribute(&attribute.name, &attribute.value)?;
        }
        for column in &table.missing {
            // what casacore would compute is kept in words
            let keywords = &content.columns()[column.index].desc.keywords;
            if let Some(expression) = keywords.string("_VirtualTaQLEngine_CalcExpr") {
                let name =
                    unique(&format!("{}__taql", column.name), |name| attributes.iter().any(|other| other.name == name));
                group.set_attribute(&name, &text_attribute(expression))?;
            }
        }
        self.write_exact_table(table, content, exact)?;
        for column in &table.missing {
            let link = format!("{}__missing", column.name);
            self.write_exact_column(content, &link, ("missing", Some(&column.reason)), column.index, exact)?;
        }

        let rows = table.rows.end - table.rows.start;
        let deflate = match self.options.compress {
            Compress::None => None,
            Compress::Gzip(level) => Some(level),
            Compress::Auto => (rows > 128).then_some(4),
        };
        let row_shape = Shape::from([rows]);
        let row_chunk = Shape::from([chunk_rows(8, rows, self.options.appendable)]);
        // a dimension has one length in a tree of groups, and a subtable has other rows than its parent
        let row_name = &self.plan.tables[number].row;
        let row = self.create(group, row_name, DataType::Int64, &row_shape, &row_chunk, true, deflate)?;
        let row_scale = row.dataset;
        self.datasets[row_scale].make_scale(row_name)?;
        self.jobs.push((rows * 8, Job::RowNumbers { target: row, rows: table.rows.clone() }));

        let values = self.coordinates(table);
        let plan = self.plan;
        let taken = move |name: &str| plan.names.has(&table.group, name);
        let mut scales = Scales::new(group, dimensions, &values, &taken);
        for (index, column) in table.columns.iter().enumerate() {
            let info = &content.columns()[column.index];
            let targets = self.write_column(table, column, info, group, row_scale, &mut scales);
            let targets = targets.with_context(|| Context::column(&column.name))?;
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
        scales: &mut Scales<'_>,
    ) -> Result<Vec<DatasetSink>> {
        let exact_name = (column.link != column.name).then(|| info.desc.name.as_bstr());
        let table_path = |stored: &BStr| self.table_path(table, stored);
        let attributes =
            Attributes::of_column(exact_name, info.desc.comment.as_bstr(), &info.desc.keywords, &table_path);
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
                for attribute in attributes.iter() {
                    self.datasets[data.dataset].set_attribute(&attribute.name, &attribute.value)?;
                }
                let axes = shape.len() - 1;
                scales.attach(&self.datasets[data.dataset], &shape[..axes], &roles(axes))?;
                self.datasets[data.dataset].attach_scale(axes, &self.datasets[row])?;
                let defined = column.defined_link.as_ref();
                let defined = defined.map(|name| row_target(self, group, name, DataType::Bool)).transpose()?;
                Ok(std::iter::once(data).chain(defined).collect())
            }
            Form::Cubes { cubes } => {
                let group = group.create_group(&column.link)?;
                for attribute in attributes.iter() {
                    group.set_attribute(&attribute.name, &attribute.value)?;
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
                targets.extend([row_cube, row_index]);
                Ok(targets)
            }
            Form::Ragged { axes, elements } => {
                let group = group.create_group(&column.link)?;
                for attribute in attributes.iter() {
                    group.set_attribute(&attribute.name, &attribute.value)?;
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
                Ok(vec![values, offset, shapes, defined])
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
    ) -> Result<DatasetSink> {
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
        Ok(DatasetSink { dataset, grid: grid(shape, chunk), size: element.size(), pipeline })
    }

    /// The path of the group of the table that a keyword of `table` stores as `stored`.
    fn table_path(&self, table: &TablePlan, stored: &BStr) -> String {
        let found = self.source.find(table.source, stored);
        match found.and_then(|source| self.plan.tables.iter().find(|other| other.source == source)) {
            Some(other) => other.group.clone(),
            None => stored.to_str_lossy().into_owned(),
        }
    }

    fn write_exact_table(&self, table: &TablePlan, content: &Content, exact: &Group) -> Result<()> {
        let table_name = |stored: &[u8]| content.table_name(stored);
        let mut document =
            native::table_document(&table.name, &table.row, content.info(), content.keywords(), &table_name);
        document["rows"] = (table.rows.end - table.rows.start).into();
        document["first_row"] = table.rows.start.into();
        if let Some(table) = content.as_table() {
            let description = table.description();
            let managers = table.managers().map(|manager| {
                json!({
                    "type": json::from_string(manager.type_name),
                    "sequence": manager.sequence,
                    "name": json::from_string(manager.name),
                    "parameters": json::from_record(&manager.parameters, &table_name),
                })
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
        content: &Content,
        link: &str,
        (form, reason): (&str, Option<&str>),
        index: usize,
        exact: &Group,
    ) -> Result<()> {
        let table_name = |stored: &[u8]| content.table_name(stored);
        let mut document = native::column_document(&content.columns()[index], index, link, form, &table_name);
        let number = content.as_table().and_then(|table| table.manager_numbers()[index]);
        document["manager_number"] = number.into();
        if let Some(reason) = reason {
            document["reason"] = reason.into();
        }
        exact.set_attribute(&format!("column.{link}"), &Attribute::string(document.to_string()))
    }

    /// Runs all jobs, and returns the digest of the main table if it is wanted.
    pub(crate) fn write_data(&mut self, progress: &dyn Progress) -> Result<Option<Sha>> {
        let pool = thread_pool(self.options.threads)?;
        let lanes = self.plan.lanes(self.options.max_memory) as usize;
        let jobs = std::mem::take(&mut self.jobs);
        let mut names = vec![(0, 0); self.datasets.len()];
        for (_, job) in &jobs {
            if let Job::Column { table, column, targets } = job {
                targets.iter().for_each(|target| names[target.dataset] = (*table, *column));
            }
        }
        let mut shas: Vec<Vec<Option<Result<Sha>>>> =
            self.plan.tables.iter().map(|table| table.columns.iter().map(|_| None).collect()).collect();
        let mut odd = Vec::new();
        let (plan, source, datasets) = (self.plan, self.source, &self.datasets);
        let wanted = self.options.digest || self.options.restorable;
        let work = |job: Job, lane: &mut Lane<'_, ColumnResult>| -> Result<()> {
            match job {
                Job::RowNumbers { target, rows } => write_row_numbers(&target, rows, lane),
                Job::Column { table, column, targets } => {
                    let (table_plan, column_plan) = (&plan.tables[table], &plan.tables[table].columns[column]);
                    let content = source.tables[table_plan.source].content()?;
                    let run = ColumnWriter::new(content, table_plan, column_plan, wanted, progress)
                        .and_then(|mut run| run.write(&targets, lane).map(|sha256| (sha256, run.odd)));
                    let (sha256, odd) = run.with_context(|| place(&table_plan.name, &column_plan.name))?;
                    lane.done(ColumnResult { table, column, sha256, odd })
                }
            }
        };
        lanes::run(jobs, lanes, &pool, work, |message, buffers| match message {
            Message::Chunk { dataset, index, bytes, len } => {
                progress.go_on()?;
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
        // lanes end in any order
        odd.sort_by_key(|&(table, column, _)| (table, column));
        for (table, column, odd) in odd {
            self.write_odd_strings(table, column, odd)?;
        }
        if wanted { self.write_digests(shas).map(Some) } else { Ok(None) }
    }

    fn write_odd_strings(&mut self, table: usize, column: usize, odd: RawStrings) -> Result<()> {
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

    fn write_digests(&self, shas: Vec<Vec<Option<Result<Sha>>>>) -> Result<Sha> {
        let mut main = None;
        for ((table, shas), exact) in self.plan.tables.iter().zip(shas).zip(&self.exact_groups) {
            let content = self.content(table)?;
            let digest = |(column, sha): (&ColumnPlan, Option<Result<Sha>>)| {
                let sha = sha.unwrap_or_else(|| Err(Error::format("a column without a digest")));
                ColumnDigest::new(&content.columns()[column.index], sha, content)
            };
            let missing = table.missing.iter().map(|column| {
                let error = Error::unsupported(column.reason.as_str());
                ColumnDigest::new(&content.columns()[column.index], Err(error), content)
            });
            let columns: Vec<_> = table.columns.iter().zip(shas).map(digest).chain(missing).collect();
            let rows = table.rows.end - table.rows.start;
            let sha = table_sha(rows, &columns);
            let keywords = keywords_sha(content.keywords(), content);
            let digests = columns.iter().map(|column| ColumnDigests {
                name: &column.name,
                sha256: column.sha256.as_ref().ok(),
                keywords_sha256: &column.keywords_sha256,
            });
            exact.set_attribute(native::DIGESTS, &native::digests_attribute(rows, &sha, &keywords, digests))?;
            main.get_or_insert(sha);
        }
        let main = main.unwrap_or_default();
        self.root.set_attribute("source_digest", &Attribute::string(hex(&main)))?;
        Ok(main)
    }
}

/// The type of the dataset of a column: records are JSON.
fn stored_type(data_type: DataType) -> DataType {
    if data_type == DataType::Record { DataType::String } else { data_type }
}
