//! The datasets that a conversion fills. Only some of them are kept open, as each open one costs
//! memory in libhdf5.

use std::collections::VecDeque;
use std::ops::Index;

use crate::error::Result;
use crate::h5::{Dataset, Group};

/// Each open dataset has some 20 KB of metadata in libhdf5.
const OPEN: usize = 512;

/// Numbered as they were added; [`settle`](Self::settle) closes all but [`OPEN`] of them.
pub(super) struct Datasets {
    root: Group,
    most: usize,
    all: Vec<Entry>,
    /// Numbers; the one opened first in front.
    open: VecDeque<usize>,
}

struct Entry {
    path: String,
    dataset: Option<Dataset>,
}

impl Datasets {
    pub(super) fn new(root: Group) -> Self {
        Datasets { root, most: OPEN, all: Vec::new(), open: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn add(&mut self, dataset: Dataset) -> usize {
        let number = self.all.len();
        self.all.push(Entry { path: dataset.path().to_owned(), dataset: Some(dataset) });
        self.open.push_back(number);
        number
    }

    pub(super) fn path(&self, number: usize) -> &str {
        &self.all[number].path
    }

    /// Called when the attributes and dimension scales of all are written.
    pub(super) fn settle(&mut self) {
        while self.open.len() > self.most {
            self.close_first();
        }
    }

    /// Opens the dataset again if it is closed.
    pub(super) fn opened(&mut self, number: usize) -> Result<&Dataset> {
        if self.all[number].dataset.is_none() {
            let dataset = self.root.dataset(self.path(number).trim_start_matches('/'))?;
            self.all[number].dataset = Some(dataset);
            self.open.push_back(number);
            if self.open.len() > self.most {
                self.close_first();
            }
        }
        Ok(&self[number])
    }

    fn close_first(&mut self) {
        if let Some(first) = self.open.pop_front() {
            self.all[first].dataset = None;
        }
    }
}

impl Index<usize> for Datasets {
    type Output = Dataset;

    /// The dataset must be open; [`opened`](Datasets::opened) opens it.
    fn index(&self, number: usize) -> &Dataset {
        self.all[number].dataset.as_ref().expect("the dataset is open")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h5::{Compression, DatasetSpec, File};
    use crate::value::{DataType, Region, Shape, Values};

    #[test]
    fn datasets_that_were_closed_are_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(&folder.path().join("many.h5")).unwrap();
        let root = file.root().unwrap();
        let mut datasets = Datasets { most: 2, ..Datasets::new(file.root().unwrap()) };
        let shape = Shape::from([4]);
        for number in 0..5 {
            let group = root.create_group(&format!("SUB{number}")).unwrap();
            let spec = DatasetSpec {
                element: DataType::Int,
                shape: &shape,
                chunk: Some(shape.clone()),
                appendable: false,
                compression: Compression::NONE,
            };
            assert_eq!(datasets.add(group.create_dataset("A", &spec).unwrap()), number);
            assert!((0..=number).all(|number| datasets[number].path() == datasets.path(number)), "none is closed yet");
        }
        datasets.settle();
        for number in [0, 4, 1, 1, 0, 3, 2] {
            let bytes = [number as u8 + 1; 16];
            datasets.opened(number).unwrap().write_chunk(&Shape::from([0]), &bytes, 0).unwrap();
            let open = datasets.all.iter().filter(|entry| entry.dataset.is_some()).count();
            assert_eq!((open, datasets.open.len()), (2, 2));
        }
        for number in 0..5 {
            let expected = i32::from_ne_bytes([number as u8 + 1; 4]);
            let mut found = Values::new(DataType::Int);
            let dataset = root.dataset(&format!("SUB{number}/A")).unwrap();
            dataset.read_region(&Region::whole(&shape), &mut found).unwrap();
            assert_eq!(found, Values::Int(vec![expected; 4]));
        }
    }
}
