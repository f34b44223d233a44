//! In place of `library/`, for programs without libhdf5: they read HDF5 files and write none. No
//! file is opened, so that groups and datasets of this module do not exist.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bstr::BString;
use h5_read::Datatype;

use super::dataset::Layout;
use super::{
    Allocation, Attribute, Bounds, ByteRows, DatasetSpec, ElementSpec, Elsewhere, FileKind, IndexKind, Link, LinkKind,
    LiveSpec, Steps, Storage, StoredChunk, VirtualSpec,
};
use crate::error::{Error, Result};
use crate::io::{FileSource, ReadAt};
use crate::value::Values;

fn absent<T>(what: &str) -> Result<T> {
    Err(Error::unsupported(format!("this program was built without libhdf5 (feature `lite`), which {what}")))
}

/// No filters but those of this program.
pub(super) fn has_filter(_: i32) -> Result<bool> {
    Ok(false)
}

#[derive(Debug, Clone)]
pub(super) struct File(Infallible);

impl File {
    pub(super) fn create(_: Bounds, _: FileKind, _: &Path) -> Result<Self> {
        absent("writes HDF5 files")
    }

    pub(super) fn create_in_memory() -> Result<(Self, String)> {
        absent("writes HDF5 files")
    }

    pub(super) fn open(_: &Path) -> Result<Self> {
        absent("reads these elements")
    }

    pub(super) fn open_source(_: &str, _: Arc<dyn ReadAt>) -> Result<Self> {
        absent("reads these elements")
    }

    pub(super) fn open_live(_: &Path, _: Arc<FileSource>) -> Result<Self> {
        absent("reads these elements")
    }

    pub(super) fn edit(_: Bounds, _: &Path) -> Result<Self> {
        absent("changes HDF5 files")
    }

    pub(super) fn edit_live(_: &Path) -> Result<Self> {
        absent("changes HDF5 files")
    }

    pub(super) fn append_live(_: &Path) -> Result<Self> {
        absent("writes HDF5 files")
    }

    pub(super) fn root(&self) -> Result<Group> {
        match self.0 {}
    }

    pub(super) fn group_at(&self, _: u64) -> Result<Group> {
        match self.0 {}
    }

    pub(super) fn dataset_at(&self, _: u64) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn flush(&self) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn end_of_file(&self) -> Result<u64> {
        match self.0 {}
    }

    pub(super) fn image(&self) -> Result<Vec<u8>> {
        match self.0 {}
    }

    pub(super) fn descriptor(&self) -> Result<fs::File> {
        match self.0 {}
    }

    pub(super) fn unlock(&self) {
        match self.0 {}
    }

    pub(super) fn close(self, _: bool) -> Result<()> {
        match self.0 {}
    }
}

#[derive(Debug, Clone)]
pub(super) struct Group(Infallible);

impl Group {
    pub(super) fn root(&self) -> Result<Self> {
        match self.0 {}
    }

    pub(super) fn group(&self, _: &str) -> Result<Self> {
        match self.0 {}
    }

    pub(super) fn dataset(&self, _: &str, _: Option<&Path>) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn opened(&self, _: &str, _: Option<&Path>) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn link(&self, _: &str) -> Result<Option<Link>> {
        match self.0 {}
    }

    pub(super) fn link_names(&self) -> Result<Vec<String>> {
        match self.0 {}
    }

    pub(super) fn kind_of(&self, _: &str) -> Result<LinkKind> {
        match self.0 {}
    }

    pub(super) fn link_count(&self) -> Result<usize> {
        match self.0 {}
    }

    pub(super) fn create_group(&self, _: &str, _: Bounds) -> Result<Self> {
        match self.0 {}
    }

    pub(super) fn create_dataset(&self, _: &str, _: Bounds, _: &DatasetSpec<'_>, _: Allocation) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn create_elements(&self, _: &str, _: Bounds, _: &ElementSpec<'_>) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn create_virtual(&self, _: &str, _: Bounds, _: &VirtualSpec<'_>) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn create_byte_rows(&self, _: &str, _: Bounds, _: &ByteRows) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn create_live(&self, _: &str, _: &LiveSpec<'_>) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn create_dimension(&self, _: &str, _: Bounds, _: u64) -> Result<Dataset> {
        match self.0 {}
    }

    pub(super) fn remove(&self, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn link_hard(&self, _: &str, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn link_file(&self, _: &str, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn rename(&self, _: &str, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn set_attribute(&self, _: &str, _: &Attribute, _: bool) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn set_int_record(&self, _: &str, _: &[(&str, i32)]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn attributes(&self) -> Result<Vec<String>> {
        match self.0 {}
    }

    pub(super) fn attribute(&self, _: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
        match self.0 {}
    }

    pub(super) fn attribute_fields(&self, _: &str) -> Result<Vec<String>> {
        match self.0 {}
    }
}

#[derive(Debug, Clone)]
pub(super) struct Dataset(Infallible);

impl Dataset {
    pub(super) fn extents(&self) -> Result<Option<Vec<u64>>> {
        match self.0 {}
    }

    pub(super) fn grows(&self) -> Result<bool> {
        match self.0 {}
    }

    pub(super) fn layout(&self) -> Result<Layout> {
        match self.0 {}
    }

    pub(super) fn datatype(&self) -> Result<Datatype> {
        match self.0 {}
    }

    pub(super) fn index_kind(&self) -> Result<IndexKind> {
        match self.0 {}
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        match self.0 {}
    }

    pub(super) fn elsewhere(&self) -> Result<Option<Elsewhere>> {
        match self.0 {}
    }

    pub(super) fn storage(&self) -> Result<Storage> {
        match self.0 {}
    }

    pub(super) fn fill(&self) -> Result<Option<Vec<u8>>> {
        match self.0 {}
    }

    pub(super) fn read(&self, _: &[Steps], _: u64, _: &mut [u8]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn strings(&self, _: &[Steps], _: u64, _: &mut Vec<BString>) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn write(&self, _: &[Steps], _: u64, _: &Values) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn write_bytes(&self, _: &[Steps], _: &[u8]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn write_chunk(&self, _: &[u64], _: u32, _: &[u8]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn chunk(&self, _: &[u64]) -> Result<Option<StoredChunk>> {
        match self.0 {}
    }

    pub(super) fn each_chunk(&self, _: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn check_addresses(&self) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn link_count(&self) -> Result<usize> {
        match self.0 {}
    }

    pub(super) fn address(&self) -> Result<u64> {
        match self.0 {}
    }

    pub(super) fn file_bytes(&self) -> Result<u64> {
        match self.0 {}
    }

    pub(super) fn set_extents(&self, _: &[u64]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn flush(&self) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn refresh(&self) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn set_scale(&self, _: &str) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn attach_scale(&self, _: u32, _: &Dataset) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn set_dimension_list(&self, _: &[u64]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn set_reference_list(&self, _: &[(u64, u32)]) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn set_attribute(&self, _: &str, _: &Attribute) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn attributes(&self) -> Result<Vec<String>> {
        match self.0 {}
    }

    pub(super) fn attribute(&self, _: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
        match self.0 {}
    }
}
