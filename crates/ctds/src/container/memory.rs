//! A container whose files are in memory, for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{Container, ContainerInfo, ContainerMut};
use crate::error::{Context, Error, Result};
use crate::io::{MemoryFile, ReadAt, WriteAt};
use crate::sync::LockUnpoisoned;

/// For tests: files and nested containers.
#[derive(Debug, Default)]
pub struct Memory {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
    nested: Mutex<BTreeMap<String, Arc<Memory>>>,
}

impl Memory {
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), Arc::new(MemoryFile::new(bytes))));
        Memory { files: Mutex::new(files.collect()), nested: Mutex::default() }
    }

    fn file(&self, name: &str) -> Result<Arc<MemoryFile>> {
        let files = self.files.lock_unpoisoned();
        files
            .get(name)
            .cloned()
            .ok_or_else(|| Error::not_found("the file does not exist").context(Context::member(name)))
    }
}

impl Container for Memory {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.files.lock_unpoisoned().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(self.file(name)?)
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.nested.lock_unpoisoned().keys().cloned().collect())
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        let nested = self.nested.lock_unpoisoned();
        match nested.get(name) {
            Some(memory) => Ok(memory.clone()),
            None => Err(Error::not_found("the directory does not exist").context(Context::member(name))),
        }
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: "memory", ..ContainerInfo::default() }
    }
}

impl ContainerMut for Memory {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        let file = Arc::new(MemoryFile::default());
        self.files.lock_unpoisoned().insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Ok(self.file(name)?)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.file(name)?;
        self.files.lock_unpoisoned().remove(name);
        Ok(())
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        let memory = Arc::new(Memory::default());
        self.nested.lock_unpoisoned().insert(name.to_owned(), memory.clone());
        Ok(memory)
    }

    fn commit(&self) -> Result<()> {
        Ok(())
    }
}
