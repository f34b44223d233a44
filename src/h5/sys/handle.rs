//! Handles of datasets. Closing the last one writes what libhdf5 still has of the dataset in its
//! memory, and the `hdf5` crate ignores when that fails: here the file remembers the failure.

use std::collections::HashMap;
use std::ffi::c_ulong;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex};

use hdf5_sys::{h5f, h5i};

use super::super::error::Hdf5Result;
use crate::error::{Error, Result};
use crate::sync::LockUnpoisoned;

/// The first failure of each open file, by the number of [`file_number`].
static FAILURES: LazyLock<Mutex<HashMap<u64, Error>>> = LazyLock::new(Mutex::default);

#[derive(Debug, Clone)]
pub(crate) struct DatasetHandle(ManuallyDrop<hdf5::Dataset>);

impl From<hdf5::Dataset> for DatasetHandle {
    fn from(dataset: hdf5::Dataset) -> Self {
        DatasetHandle(ManuallyDrop::new(dataset))
    }
}

impl Deref for DatasetHandle {
    type Target = hdf5::Dataset;

    fn deref(&self) -> &hdf5::Dataset {
        &self.0
    }
}

impl Drop for DatasetHandle {
    fn drop(&mut self) {
        // closing a file closes its datasets
        if !self.0.is_valid() {
            return;
        }
        let file = if self.0.refcount() == 1 { self.0.file().ok() } else { None };
        let number = file.and_then(|file| file_number(&file).ok());
        if let Err(error) = call!(h5i::H5Idec_ref(self.0.id())).h5()
            && let Some(number) = number
        {
            FAILURES.lock_unpoisoned().entry(number).or_insert(error);
        }
    }
}

/// Differs from that of every other file that was opened in this process.
pub(crate) fn file_number(file: &hdf5::File) -> Result<u64> {
    let mut number: c_ulong = 0;
    call!(h5f::H5Fget_fileno(file.id(), &raw mut number)).h5()?;
    Ok(number)
}

/// The first failure to close a dataset of the file, which is forgotten.
pub(crate) fn take_failure(file: u64) -> Option<Error> {
    FAILURES.lock_unpoisoned().remove(&file)
}
