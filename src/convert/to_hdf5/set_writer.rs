//! Writes the processing set of a conversion by the schema MSv4: first groups, attributes and
//! datasets, then, chunk by chunk, the elements of the variables that lie on grids of times and
//! baselines. docs/reference/layout.md, "MSv4".

use std::collections::HashMap;

use msv4::{Content, Dataset, Part, Partition, Tables, Variable};

use super::datasets::Datasets;
use super::lanes::{DatasetSink, Lane, pad};
use super::layout_choice::grid;
use super::processing_set::{SetPlan, VariablePlan};
use crate::error::{Error, Result};
use crate::grid::unravel;
use crate::h5::{self, Allocation, Attachments, Attribute, Compression, DatasetSpec, Group, Scale};
use crate::native::{self, MAIN_TABLE, PROCESSING_SET, readable};
use crate::source::Source;
use crate::table::Column;
use crate::value::{Shape, Values};

pub(super) struct SetWriter<'a> {
    pub(super) plan: &'a SetPlan,
    pub(super) datasets: &'a mut Datasets,
    pub(super) compression: &'a [Compression],
}

impl SetWriter<'_> {
    pub(super) fn write(&mut self, root: &Group) -> Result<Vec<DatasetSink>> {
        let group = root.create_group(PROCESSING_SET)?;
        let (name, value) = native::OF_PROCESSING_SET;
        group.set_attribute(name, &Attribute::string(value))?;
        let mut numbers = HashMap::new();
        for (number, of) in self.plan.variables.iter().enumerate() {
            numbers.insert((of.partition, of.dataset, of.variable), number);
        }
        let mut sinks = vec![None; self.plan.variables.len()];
        for (partition, of) in self.plan.set.partitions.iter().enumerate() {
            for (dataset, found) in of.datasets.iter().enumerate() {
                let group = native::open_path(&group, &found.path)?;
                self.write_dataset(
                    &group,
                    found,
                    |variable| numbers.get(&(partition, dataset, variable)).copied(),
                    &mut sinks,
                )?;
            }
            self.datasets.settle();
        }
        Ok(sinks.into_iter().flatten().collect())
    }

    fn write_dataset(
        &mut self,
        group: &Group,
        of: &Dataset,
        number: impl Fn(usize) -> Option<usize>,
        sinks: &mut [Option<DatasetSink>],
    ) -> Result<()> {
        write_attributes(&of.attributes, |name, value| group.set_attribute(name, value))?;
        let is_index = |variable: &Variable| variable.axes.len() == 1 && variable.axes[0] == variable.name;
        let others = of.coordinates.iter().filter(|coordinate| !is_index(coordinate));
        let others: Vec<&str> = others.map(|coordinate| coordinate.name.as_str()).collect();
        if !others.is_empty() {
            let (name, value) = native::coordinates_attribute(&others);
            group.set_attribute(name, &value)?;
        }
        let mut scales: HashMap<&str, Scale> = HashMap::new();
        for coordinate in of.coordinates.iter().filter(|coordinate| is_index(coordinate)) {
            let dataset = write_values(group, coordinate)?;
            dataset.make_scale(&coordinate.name)?;
            scales.insert(&coordinate.name, dataset.as_scale()?);
        }
        let all = || of.coordinates.iter().chain(&of.variables);
        for (axis, extent) in all().flat_map(|variable| variable.axes.iter().zip(&variable.shape)) {
            if !scales.contains_key(axis.as_str()) {
                scales.insert(axis, group.create_dimension(axis, *extent)?.as_scale()?);
            }
        }
        let mut attachments = Attachments::default();
        let mut attach = |dataset: &h5::Dataset, variable: &Variable| {
            let scales: Vec<Scale> = variable.axes.iter().rev().map(|axis| scales[axis.as_str()].clone()).collect();
            if scales.is_empty() { Ok(()) } else { attachments.attach(dataset, &scales) }
        };
        for coordinate in of.coordinates.iter().filter(|coordinate| !is_index(coordinate)) {
            attach(&write_values(group, coordinate)?, coordinate)?;
        }
        for (place, variable) in of.variables.iter().enumerate() {
            match number(place) {
                Some(number) => {
                    let sink = self.create(group, variable, number)?;
                    attach(&self.datasets[sink.dataset], variable)?;
                    sinks[number] = Some(sink);
                }
                None => attach(&write_values(group, variable)?, variable)?,
            }
        }
        attachments.write()
    }

    fn create(&mut self, group: &Group, variable: &Variable, number: usize) -> Result<DatasetSink> {
        let of = &self.plan.variables[number];
        let (element, size) = (variable.data_type, variable.data_type.size());
        let compression = self.compression[number];
        let spec =
            DatasetSpec { element, shape: &of.shape, chunk: Some(of.chunk.clone()), appendable: false, compression };
        let dataset = group.create_allocated(&variable.name, &spec, Allocation::Chunks)?;
        write_attributes(&variable.attributes, |name, value| dataset.set_attribute(name, value))?;
        let pipeline = (!compression.is_none()).then(|| compression.pipeline(size));
        Ok(DatasetSink { dataset: self.datasets.add(dataset), grid: grid(&of.shape, &of.chunk), size, pipeline })
    }
}

fn write_values(group: &Group, variable: &Variable) -> Result<h5::Dataset> {
    let Content::Values(values) = &variable.content else {
        return Err(Error::usage(format!("the coordinate {} has no values", variable.name)));
    };
    let shape = Shape::from_reversed(&variable.shape);
    let dataset = group.create_filled(&variable.name, &shape, &readable(values))?;
    write_attributes(&variable.attributes, |name, value| dataset.set_attribute(name, value))?;
    Ok(dataset)
}

fn write_attributes(
    attributes: &[(String, msv4::Attribute)],
    mut set: impl FnMut(&str, &Attribute) -> Result<()>,
) -> Result<()> {
    attributes.iter().try_for_each(|(name, value)| set(name, &native::attribute_of(value)))
}

pub(super) struct VariableWriter<'a> {
    pub(super) source: &'a Source,
    pub(super) plan: &'a SetPlan,
}

/// Some times and baselines of a variable, which are written together.
struct Block {
    /// First row, the order of blocks, so that several variables read the table together.
    row: u64,
    target: usize,
    /// Chunks along the axis of times, and of baselines.
    place: [u64; 2],
}

impl VariableWriter<'_> {
    /// `targets` has sinks for the variables to write; `seen` gets cells and bytes of each chunk.
    pub(super) fn write_column<D: Send>(
        &self,
        column: &str,
        targets: &[DatasetSink],
        lane: &mut Lane<'_, D>,
        mut seen: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let listed: Vec<_> = self.plan.numbers_of(column).iter().copied().zip(targets).collect();
        self.write(&listed, lane, &mut seen)
    }

    pub(super) fn write_variable<D: Send>(
        &self,
        number: usize,
        target: &DatasetSink,
        lane: &mut Lane<'_, D>,
    ) -> Result<()> {
        self.write(&[(number, target)], lane, &mut |_, _| Ok(()))
    }

    fn write<D: Send>(
        &self,
        listed: &[(usize, &DatasetSink)],
        lane: &mut Lane<'_, D>,
        seen: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some((first, _)) = listed.first() else { return Ok(()) };
        let column = match &self.plan.variable(&self.plan.variables[*first]).content {
            Content::Cells(cells) => Some(Tables::column(self.source, MAIN_TABLE, &cells.column)?),
            _ => None,
        };
        for block in self.blocks(listed) {
            let (number, target) = listed[block.target];
            let of = &self.plan.variables[number];
            let (source, partition, variable) = (self.source, self.plan.partition(of), self.plan.variable(of));
            let opened = Opened { source, partition, variable, of, column: column.as_ref() };
            write_block(&opened, block.place, target, lane, seen)?;
        }
        Ok(())
    }

    fn blocks(&self, listed: &[(usize, &DatasetSink)]) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (target, (number, sink)) in listed.iter().enumerate() {
            let of = &self.plan.variables[*number];
            if of.shape.contains(&0) {
                continue;
            }
            let counts = sink.grid.counts();
            let axes = counts.len();
            let grid = &self.plan.partition(of).grid;
            for time in 0..counts[axes - 1] {
                for baseline in 0..counts[axes - 2] {
                    let place = [time, baseline];
                    let (times, baselines) = (of.range(1, time), of.range(2, baseline));
                    let first =
                        |time: usize| grid.rows_at(&[time], &baselines).into_iter().filter(|row| *row >= 0).min();
                    let row = times.iter().find_map(|&time| first(time)).map_or(u64::MAX, |row| row as u64);
                    blocks.push(Block { row, target, place });
                }
            }
        }
        // of equal ones each stays where it is: the order does not depend on anything else
        blocks.sort_by_key(|block| block.row);
        blocks
    }
}

/// A variable, and the column it is read from; `None` if it has the rows themselves.
struct Opened<'a> {
    source: &'a Source,
    partition: &'a Partition,
    variable: &'a Variable,
    of: &'a VariablePlan,
    column: Option<&'a Column<'a>>,
}

impl Opened<'_> {
    fn read(&self, part: Part<'_>) -> Result<Values> {
        match (&self.variable.content, self.column) {
            (Content::Cells(cells), Some(column)) => self.partition.read_column(column, self.variable, cells, part),
            _ => self.partition.read(self.source, self.variable, part),
        }
    }
}

fn write_block<D: Send>(
    opened: &Opened<'_>,
    place: [u64; 2],
    target: &DatasetSink,
    lane: &mut Lane<'_, D>,
    seen: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let of = opened.of;
    let (times, baselines) = (of.range(1, place[0]), of.range(2, place[1]));
    let counts = target.grid.counts();
    let inner: Shape = counts[..counts.len() - 2].into();
    for number in 0..inner.elements()? {
        let index = unravel(number, &inner);
        let start: Vec<u64> = index.iter().zip(of.chunk.iter()).map(|(&i, &len)| i * len).collect();
        let left = start.iter().zip(of.chunk.iter()).zip(of.shape.iter());
        let extent: Vec<u64> = left.map(|((&start, &len), &extent)| len.min(extent - start)).collect();
        let slowest_first = |extents: &[u64]| extents.iter().rev().copied().collect::<Vec<_>>();
        let part = Part {
            times: &times,
            baselines: &baselines,
            start: &slowest_first(&start),
            extent: &slowest_first(&extent),
        };
        let values = opened.read(part)?;
        let read = Shape::from(&extent[..]).with_axis(baselines.len() as u64).with_axis(times.len() as u64);
        let bytes = match values.le_bytes() {
            Some(found) if read == of.chunk => {
                let mut bytes = lane.buffers.take(found.len());
                bytes.copy_from_slice(&found);
                bytes
            }
            _ => pad(&values, &read, &of.chunk)?,
        };
        seen((times.len() * baselines.len()) as u64, &bytes)?;
        let index = Shape::from(&index[..]).with_axis(place[1]).with_axis(place[0]);
        lane.chunk(target, index, bytes)?;
    }
    Ok(())
}
