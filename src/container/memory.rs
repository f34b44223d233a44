//! Files in memory, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Container;
use crate::error::{Error, Result};
use crate::io::ReadAt;

/// Names and contents.
#[derive(Debug, Default)]
pub(crate) struct Memory(BTreeMap<String, Arc<Vec<u8>>>);

impl Memory {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Self {
        Memory(files.into_iter().map(|(name, bytes)| (name.to_owned(), Arc::new(bytes))).collect())
    }
}

impl Container for Memory {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        match self.0.get(name) {
            Some(bytes) => Ok(bytes.clone()),
            None => Err(Error::not_found("no such file").at(name)),
        }
    }
}
