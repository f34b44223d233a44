//! A store without an archive, as a container: data files alone do not tell which blocks make up
//! which file.

use std::sync::Arc;

use ctds::container::{BlockCheck, Container, ContainerInfo};
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::io::ReadAt;

use super::check;
use super::hash::HashKind;
use super::store::{self, Store};
use super::tree::{Archive, is_archive};

#[derive(Debug)]
pub(super) struct BareStore {
    store: Arc<Store>,
    directory: Arc<dyn Container>,
}

impl BareStore {
    pub(super) fn open(inside: &dyn Container, name: &str) -> Result<Self> {
        let directory = inside.enter(name)?;
        let store = Store::open(&*directory).context(Context::member(name))?;
        Ok(BareStore { store, directory })
    }
}

impl Container for BareStore {
    /// Empty, because a store has blocks, not files; archives beside them are nested containers.
    fn names(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Err(Error::not_found("a vt store has blocks, not files: name an archive (.vt)").context(Context::member(name)))
    }

    fn nested(&self) -> Result<Vec<String>> {
        let mut archives = Vec::new();
        for name in self.directory.names()? {
            if is_archive(&*self.directory, &name)? {
                archives.push(name);
            }
        }
        Ok(archives)
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        match is_archive(&*self.directory, name) {
            Ok(true) => Ok(Arc::new(Archive::open(&*self.directory, name)?)),
            Ok(false) => Err(Error::not_found("the file is not an archive").context(Context::member(name))),
            Err(error) => Err(error),
        }
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: STORE_NAME, checksum: Some("zlib, sha1"), ..ContainerInfo::default() }
    }

    fn check_blocks(&self) -> Result<Option<BlockCheck>> {
        check::check(&self.store, &*self.directory).map(Some)
    }

    /// Reads and decodes every block; damage is an error, never false.
    fn check(&self) -> Result<bool> {
        let (_, damage) = self.store.survey_all(HashKind::Sha1)?;
        match damage.first() {
            Some(error) => Err(error.clone()),
            None => Ok(true),
        }
    }
}

pub(super) const STORE_NAME: &str = "vt-store";

pub(super) fn is_store(inside: &dyn Container, name: &str) -> Result<bool> {
    match inside.enter(name) {
        Ok(directory) => store::is_store(&*directory),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
