//! Attaches dimension scales to datasets, as `H5DSattach_scale` of libhdf5 does. That function
//! writes the list of a scale's datasets again for each of them, which takes quadratic time; here
//! each list is written once.

use std::collections::HashMap;

use super::{Dataset, library};
use crate::error::{Error, Result, ResultExt};

#[derive(Debug, Clone)]
pub(crate) struct Scale {
    dataset: library::Dataset,
    address: u64,
}

impl Dataset {
    /// The dataset was [made a scale](Dataset::make_scale).
    pub(crate) fn as_scale(&self) -> Result<Scale> {
        let open = || {
            let dataset = self.library()?;
            Ok::<_, Error>(Scale { address: dataset.address()?, dataset: dataset.clone() })
        };
        open().with_context(|| format!("dataset {}", self.path()))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Attachments {
    /// Address of each dataset of a scale, and the number of the axis, slowest first.
    scales: Vec<(Scale, Vec<(u64, u32)>)>,
    /// Index by the scale's address.
    known: HashMap<u64, usize>,
}

impl Attachments {
    /// `dataset` has no scales yet; `scales` are those of the axes, fastest first.
    pub(crate) fn attach(&mut self, dataset: &Dataset, scales: &[Scale]) -> Result<()> {
        let attach = || -> Result<_> {
            let axes = dataset.shape()?.len();
            if scales.len() != axes {
                return Err(Error::usage(format!("{} scales were given for a dataset of {axes} axes", scales.len())));
            }
            let addresses: Vec<u64> = scales.iter().rev().map(|scale| scale.address).collect();
            let dataset = dataset.library()?;
            dataset.set_dimension_list(&addresses)?;
            dataset.address()
        };
        let address = attach().with_context(|| format!("dataset {}", dataset.path()))?;
        for (axis, scale) in (0..).zip(scales.iter().rev()) {
            let index = *self.known.entry(scale.address).or_insert(self.scales.len());
            if index == self.scales.len() {
                self.scales.push((scale.clone(), Vec::new()));
            }
            self.scales[index].1.push((address, axis));
        }
        Ok(())
    }

    /// All datasets are attached.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.known.clear();
        self.scales.drain(..).try_for_each(|(scale, users)| scale.dataset.set_reference_list(&users))
    }
}
