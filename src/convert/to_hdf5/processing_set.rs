//! The plan of the processing set of a conversion by the schema MSv4: datasets of times, baselines,
//! frequencies and polarizations in the group `/msv4`; `set_writer.rs` writes them.
//! docs/reference/layout.md, "MSv4".
//!
//! A **variable** is one on the grid of times and baselines of a partition, whose elements are read
//! from the main table. If every partition has a column as such a variable, the variables are the
//! hypercubes of the column, which is stored nowhere else.

use std::collections::BTreeMap;
use std::path::Path;

use bstr::ByteSlice;
use msv4::{Content, Options, Partition, PlacedRun, ProcessingSet, Tables, Variable};

use super::layout_choice::part_of_cell;
use crate::error::Result;
use crate::native::{PROCESSING_SET, StoredGrid};
use crate::source::Source;
use crate::table::{Column, ColumnInfo};
use crate::value::{Record, Shape};

#[derive(Debug)]
pub(crate) struct SetPlan {
    pub(super) set: ProcessingSet,
    /// Ordered by partition, dataset and variable.
    pub(super) variables: Vec<VariablePlan>,
    /// Numbers of the variables that are the hypercubes of each column.
    columns: BTreeMap<String, Vec<usize>>,
}

#[derive(Debug)]
pub(super) struct VariablePlan {
    pub(super) partition: usize,
    pub(super) dataset: usize,
    pub(super) variable: usize,
    /// Path from the root.
    path: String,
    /// Fastest axis first, as is `chunk`.
    pub(super) shape: Shape,
    pub(super) chunk: Shape,
}

impl SetPlan {
    /// Chunks have about `chunk_bytes`; `Unsupported` if the source is not a MeasurementSet.
    pub(super) fn new(source: &Source, takes: &dyn Fn(&str, &str) -> bool, chunk_bytes: u64) -> Result<Self> {
        let name = Path::new(&source.name).file_stem().unwrap_or_default().to_string_lossy();
        let wanted = Wanted::new(source, takes);
        let set = ProcessingSet::read(&wanted, &Options { name: name.into_owned(), ..Options::default() })?;
        let mut plan = SetPlan { set, variables: Vec::new(), columns: BTreeMap::new() };
        plan.find_variables(chunk_bytes);
        Ok(plan)
    }

    fn find_variables(&mut self, chunk_bytes: u64) {
        for (partition, of) in self.set.partitions.iter().enumerate() {
            for (dataset, of) in of.datasets.iter().enumerate() {
                for (variable, found) in of.variables.iter().enumerate() {
                    match &found.content {
                        Content::Values(_) => continue,
                        Content::Cells(cells) if !cells.is_repeated && !cells.is_time => {
                            self.columns.entry(cells.column.clone()).or_default().push(self.variables.len());
                        }
                        _ => {}
                    }
                    let shape = Shape::from_reversed(&found.shape);
                    let chunk = chunk_of(&shape, found.data_type.size() as u64, chunk_bytes);
                    let path = format!("/{PROCESSING_SET}/{}/{}", of.path, found.name);
                    self.variables.push(VariablePlan { partition, dataset, variable, path, shape, chunk });
                }
            }
        }
        let partitions = self.set.partitions.len();
        self.columns.retain(|_, variables| variables.len() == partitions);
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.set.warnings
    }

    /// Shapes and chunk shapes; empty if the column's hypercubes are not variables.
    pub(super) fn cubes_of(&self, column: &str) -> Vec<(Shape, Shape)> {
        self.of_column(column).map(|of| (of.shape.clone(), of.chunk.clone())).collect()
    }

    pub(super) fn stored_grids(&self, column: &str) -> Vec<StoredGrid> {
        let stored = |of: &VariablePlan| {
            let reversed = matches!(&self.variable(of).content, Content::Cells(cells) if cells.is_reversed);
            StoredGrid { path: of.path.clone(), reversed }
        };
        self.of_column(column).map(stored).collect()
    }

    pub(super) fn numbers_of(&self, column: &str) -> &[usize] {
        self.columns.get(column).map_or(&[], Vec::as_slice)
    }

    fn of_column(&self, column: &str) -> impl Iterator<Item = &VariablePlan> {
        self.numbers_of(column).iter().map(|&number| &self.variables[number])
    }

    pub(super) fn partition(&self, of: &VariablePlan) -> &Partition {
        &self.set.partitions[of.partition]
    }

    pub(super) fn variable(&self, of: &VariablePlan) -> &Variable {
        &self.partition(of).datasets[of.dataset].variables[of.variable]
    }

    pub(super) fn bytes(&self, variable: usize) -> u64 {
        let of = &self.variables[variable];
        of.shape.elements().unwrap_or(u64::MAX).saturating_mul(self.variable(of).data_type.size() as u64)
    }

    /// The shape of the cells of the first partition.
    pub(super) fn cell_of(&self, column: &str) -> Shape {
        self.of_column(column).next().map_or_else(Shape::scalar, |of| of.shape[..of.shape.len() - 2].into())
    }

    /// The rows of all partitions in ascending order, with the number of the partition.
    pub(super) fn rows(&self) -> Vec<(usize, PlacedRun)> {
        let partitions = self.set.partitions.iter().enumerate();
        let mut runs: Vec<_> =
            partitions.flat_map(|(number, of)| of.grid.placed_runs().map(move |run| (number, run))).collect();
        runs.sort_unstable_by_key(|(_, run)| run.rows.start);
        runs
    }

    /// Whether the variables of a column have its cells in the order of rows, chunk after chunk.
    pub(super) fn is_in_order(&self, column: &str, rows: u64) -> bool {
        let mut variables = self.of_column(column);
        let (Some(of), None) = (variables.next(), variables.next()) else { return false };
        let is_reversed = matches!(&self.variable(of).content, Content::Cells(cells) if cells.is_reversed);
        let cell = of.shape.len() - 2;
        !is_reversed && self.partition(of).grid.as_range() == Some(0..rows) && of.shape[..cell] == of.chunk[..cell]
    }
}

/// Cuts the slowest axes first, into equal parts, so that the last is not mostly padding.
fn chunk_of(shape: &Shape, size: u64, bytes: u64) -> Shape {
    let most = part_of_cell(shape, size, bytes);
    let extents = shape.iter().zip(most.iter());
    extents.map(|(&extent, &most)| extent.max(1).div_ceil(extent.max(1).div_ceil(most.max(1)))).collect()
}

/// The tables of a source without columns that were not selected, which the file does not have.
struct Wanted<'a> {
    source: &'a Source,
    columns: BTreeMap<&'a str, Vec<ColumnInfo>>,
}

impl<'a> Wanted<'a> {
    fn new(source: &'a Source, takes: &dyn Fn(&str, &str) -> bool) -> Self {
        let of_table = |table: &'a str| {
            let is_wanted = |info: &&ColumnInfo| takes(table, &info.desc.name.to_str_lossy());
            (table, source.columns(table).iter().filter(is_wanted).cloned().collect())
        };
        Wanted { source, columns: source.names().into_iter().map(of_table).collect() }
    }
}

impl Tables for Wanted<'_> {
    fn rows(&self, table: &str) -> Option<u64> {
        self.source.rows(table)
    }

    fn columns(&self, table: &str) -> &[ColumnInfo] {
        self.columns.get(table).map_or(&[], Vec::as_slice)
    }

    fn names(&self) -> Vec<&str> {
        self.source.names()
    }

    fn keywords(&self, table: &str) -> Option<&Record> {
        self.source.keywords(table)
    }

    fn column(&self, table: &str, column: &str) -> Result<Column<'_>> {
        Tables::column(self.source, table, column)
    }
}

impl VariablePlan {
    /// Indices of a chunk on the axis of times (1) or baselines (2).
    pub(super) fn range(&self, axis: usize, chunk: u64) -> Vec<usize> {
        let axis = self.shape.len() - axis;
        let start = chunk * self.chunk[axis];
        (start as usize..(start + self.chunk[axis]).min(self.shape[axis]) as usize).collect()
    }
}
