//! Attaches dimension scales to datasets, as `H5DSattach_scale` of libhdf5 does. That function writes the list of a scale's
//! datasets again for each of them, which takes quadratic time; here each list is written once.

use std::collections::HashMap;

use super::{Dataset, sys};
use crate::error::{Error, Result, ResultExt};

/// A dimension scale that is attached to datasets.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    dataset: hdf5::Dataset,
    address: u64,
}

impl Dataset {
    /// The dataset, which was [made a scale](Dataset::make_scale), to be attached to others.
    pub(crate) fn as_scale(&self) -> Result<Scale> {
        let address = sys::header_address(self.inner()).with_context(|| format!("dataset {}", self.path()))?;
        Ok(Scale { dataset: self.inner().clone(), address })
    }
}

/// The datasets that scales are attached to: every scale gets the list of its own when [`write`](Self::write) is called.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    /// Each scale, with the address of each dataset and the number of the axis, slowest first, that it is attached to.
    scales: Vec<(Scale, Vec<(u64, u32)>)>,
    /// Index in `scales` of each scale, by its address.
    known: HashMap<u64, usize>,
}

impl Attachments {
    /// Attaches one scale to each axis of a dataset that has none yet; `scales` are those of the axes, fastest first.
    pub(crate) fn attach(&mut self, dataset: &Dataset, scales: &[Scale]) -> Result<()> {
        let attach = || -> Result<_> {
            let axes = dataset.shape()?.len();
            if scales.len() != axes {
                return Err(Error::usage(format!("{} scales were given for a dataset of {axes} axes", scales.len())));
            }
            let addresses: Vec<u64> = scales.iter().rev().map(|scale| scale.address).collect();
            sys::set_dimension_list(dataset.inner(), &addresses)?;
            sys::header_address(dataset.inner())
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

    /// Writes the list of each scale, once all datasets are attached.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.known.clear();
        self.scales.drain(..).try_for_each(|(scale, users)| sys::set_reference_list(&scale.dataset, &users))
    }
}
