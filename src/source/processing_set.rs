//! Compares the processing set of MSv4 in a native HDF5 file with the one that the tables of the
//! file give: what differs was changed by a user, or is damaged, and is in no table.

use std::collections::{BTreeMap, HashSet};

use msv4::{Content, Dataset, Options, Part, Partition, ProcessingSet, Variable};

use super::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::h5::Group;
use crate::native::{NativeTable, PROCESSING_SET, changed_attributes, open_dataset, readable};
use crate::value::{Region, Shape, Values};

/// Bytes of a variable that are compared at a time.
const BLOCK_BYTES: u64 = 4 << 20;

/// An object of the processing set that is not as the tables have it.
pub(crate) struct SetChange {
    /// Path from the root.
    pub(crate) path: String,
    what: What,
}

enum What {
    Missing,
    InNoTable,
    Values,
    Attribute(String),
    Unreadable(String),
}

impl SetChange {
    /// The state of the object, for a comparison.
    pub(crate) fn found(&self) -> String {
        match &self.what {
            What::Missing => "it is missing".to_owned(),
            What::InNoTable => "no table has it".to_owned(),
            What::Values => "other values".to_owned(),
            What::Attribute(name) => format!("another attribute {name}"),
            What::Unreadable(error) => error.clone(),
        }
    }

    /// A sentence for the user: the change is not converted.
    pub(crate) fn note(&self) -> String {
        let path = &self.path;
        match &self.what {
            What::Missing => format!("{path} is missing: what the tables have is converted"),
            What::InNoTable => format!("{path} is not converted: no table has it"),
            What::Values => format!("the values of {path} are not converted: they differ from those of the tables"),
            What::Attribute(name) => format!("attribute {name} of {path} is not converted: the tables have another"),
            What::Unreadable(error) => format!("{path} cannot be compared with the tables: {error}"),
        }
    }
}

impl Source {
    /// Empty without a processing set. Elements of hypercubes are those of the tables; only flags
    /// at places without a row are compared. Damage counts as a change.
    pub(crate) fn set_changes(&self) -> Result<Vec<SetChange>> {
        // a main table that cannot be opened is a difference by itself
        let main = self.tables.first().and_then(|main| main.content().ok());
        let native = main.filter(|main| main.inner().is_none()).and_then(|main| main.as_native());
        let Some(native) = native else { return Ok(Vec::new()) };
        let mut compared = Compared { source: self, grids: native.grid_paths(), changes: Vec::new() };
        let found = compared.set(native);
        compared.note(&format!("/{PROCESSING_SET}"), found)?;
        Ok(compared.changes)
    }
}

struct Compared<'a> {
    source: &'a Source,
    /// Paths of the hypercubes of columns.
    grids: HashSet<String>,
    changes: Vec<SetChange>,
}

impl Compared<'_> {
    fn set(&mut self, native: &NativeTable) -> Result<()> {
        let Some(group) = native.processing_set()? else { return Ok(()) };
        let partitions = group.link_names()?;
        let name = partitions.first().and_then(|first| first.rsplit_once('_')).map_or("", |(name, _)| name);
        let set = ProcessingSet::read(self.source, &Options { name: name.to_owned(), ..Options::default() })?;
        let mut expected: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for partition in &set.partitions {
            for dataset in &partition.datasets {
                let (above, own) = dataset.path.rsplit_once('/').unwrap_or(("", &dataset.path));
                expected.entry(above.to_owned()).or_default().push(own);
            }
        }
        self.members(&group, expected.get("").map_or(&[][..], Vec::as_slice), &[])?;
        for partition in &set.partitions {
            for dataset in &partition.datasets {
                let below = expected.get(&dataset.path).map_or(&[][..], Vec::as_slice);
                match group.group(&dataset.path) {
                    Ok(group) => self.dataset(&group, partition, dataset, below)?,
                    // the members of its parent have told that
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => self.note(&format!("{}/{}", group.path(), dataset.path), Err(error))?,
                }
            }
        }
        Ok(())
    }

    /// Turns damage of an object, and edits that make it unreadable, into a change.
    fn note(&mut self, path: &str, found: Result<()>) -> Result<()> {
        match found {
            Err(error) if error.may_be_left_out() || error.is_damage() => {
                self.differ(path.to_owned(), What::Unreadable(error.to_string()));
                Ok(())
            }
            found => found,
        }
    }

    fn differ(&mut self, path: String, what: What) {
        self.changes.push(SetChange { path, what });
    }

    /// Members of a group that are missing or not expected.
    fn members(&mut self, group: &Group, groups: &[&str], datasets: &[&str]) -> Result<()> {
        let found: HashSet<String> = group.link_names()?.into_iter().collect();
        let shown = |name: &str| format!("{}/{name}", group.path().trim_end_matches('/'));
        for name in groups.iter().chain(datasets).filter(|name| !found.contains(**name)) {
            self.differ(shown(name), What::Missing);
        }
        let mut others: Vec<&String> = found.iter().filter(|name| !groups.contains(&name.as_str())).collect();
        others.retain(|name| !datasets.contains(&name.as_str()));
        others.sort();
        for name in others {
            self.differ(shown(name), What::InNoTable);
        }
        Ok(())
    }

    fn dataset(&mut self, group: &Group, partition: &Partition, of: &Dataset, below: &[&str]) -> Result<()> {
        let all: Vec<&Variable> = of.coordinates.iter().chain(&of.variables).collect();
        let axes = all.iter().flat_map(|variable| &variable.axes).map(String::as_str);
        let mut names: Vec<&str> = all.iter().map(|variable| variable.name.as_str()).chain(axes).collect();
        names.sort_unstable();
        names.dedup();
        let found = self.members(group, below, &names).and_then(|()| self.attributes(group, None, &of.attributes));
        self.note(group.path(), found)?;
        for variable in all.into_iter().filter(|variable| group.has(&variable.name)) {
            let path = format!("{}/{}", group.path(), variable.name);
            let found = self.variable(group, partition, variable, &path);
            self.note(&path, found)?;
        }
        Ok(())
    }

    fn variable(&mut self, group: &Group, partition: &Partition, variable: &Variable, path: &str) -> Result<()> {
        self.attributes(group, Some(&variable.name), &variable.attributes)?;
        if !self.has_same_elements(group, partition, variable, path)? {
            self.differ(path.to_owned(), What::Values);
        }
        Ok(())
    }

    fn attributes(
        &mut self,
        group: &Group,
        dataset: Option<&str>,
        expected: &[(String, msv4::Attribute)],
    ) -> Result<()> {
        let path = dataset.map_or_else(|| group.path().to_owned(), |name| format!("{}/{name}", group.path()));
        for name in changed_attributes(group, dataset, expected)? {
            self.differ(path.clone(), What::Attribute(name));
        }
        Ok(())
    }

    fn has_same_elements(&self, group: &Group, partition: &Partition, variable: &Variable, path: &str) -> Result<bool> {
        let shape = Shape::from_reversed(&variable.shape);
        let dataset = open_dataset(group, &variable.name)?;
        let is_of_column = self.grids.contains(path);
        // other types and shapes of a hypercube are those of its column
        if is_of_column && (dataset.data_type()? != variable.data_type || dataset.shape()? != shape) {
            return Ok(true);
        }
        if dataset.shape()? != shape || dataset.data_type()? != variable.data_type {
            return Ok(false);
        }
        if let Content::Values(values) = &variable.content {
            let mut found = Values::new(values.data_type());
            dataset.read_region(&Region::whole(&shape), &mut found)?;
            return Ok(readable(values).same_bits(&found));
        }
        let is_padded = partition.grid.rows < partition.grid.places();
        if is_of_column && !(variable.name == "FLAG" && is_padded) {
            return Ok(true);
        }
        let [times, baselines, rest @ ..] = &variable.shape[..] else {
            return Err(Error::format("it has no axes of times and baselines"));
        };
        let of_time = rest.iter().product::<u64>().saturating_mul(*baselines) * variable.data_type.size() as u64;
        let step = (BLOCK_BYTES / of_time.max(1)).max(1);
        let baselines: Vec<usize> = (0..*baselines as usize).collect();
        for first in (0..*times).step_by(step as usize) {
            let count = step.min(times - first);
            let all: Vec<usize> = (first as usize..(first + count) as usize).collect();
            let start = vec![0; rest.len()];
            let part = Part { times: &all, baselines: &baselines, start: &start, extent: rest };
            let mut found = Values::new(variable.data_type);
            let cell: Shape = shape[..shape.len() - 1].into();
            dataset.read_region(&Region::rows(&cell, first..first + count), &mut found)?;
            let expected = partition.read(self.source, variable, part)?;
            if !expected.same_bits(&found) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
