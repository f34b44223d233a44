//! Datasets that libhdf5 has open.

use bstr::BString;
use h5_read::Datatype;
use hdf5::dataset::{FillValue, Layout as StorageLayout};

use super::super::codec::ChunkLimit;
use super::super::dataset::Layout;
use super::super::elsewhere::{MAX_SOURCES, too_many_sources};
use super::super::error::Hdf5Result;
use super::super::sys::{self, Charset, Strings, Target};
use super::super::{Attribute, Elsewhere, IndexKind, Steps, Storage, StoredChunk};
use super::attribute;
use crate::error::{Error, Result};
use crate::value::Values;

#[derive(Debug, Clone)]
pub(in crate::h5) struct Dataset(pub(super) sys::DatasetHandle);

impl Dataset {
    pub(super) fn new(dataset: hdf5::Dataset) -> Self {
        Dataset(dataset.into())
    }

    #[cfg(test)]
    pub(in crate::h5) fn raw(&self) -> &hdf5::Dataset {
        &self.0
    }

    /// `None` for a null dataspace.
    pub(in crate::h5) fn extents(&self) -> Result<Option<Vec<u64>>> {
        let space = self.0.space().h5()?;
        Ok((!space.is_null()).then(|| space.shape().into_iter().map(|extent| extent as u64).collect()))
    }

    /// Whether the slowest axis has no limit.
    pub(in crate::h5) fn grows(&self) -> Result<bool> {
        Ok(matches!(self.0.space().h5()?.maxdims().first(), Some(None)))
    }

    pub(in crate::h5) fn layout(&self) -> Result<Layout> {
        let creation = self.0.dcpl().h5()?;
        let chunk = creation.get_chunk().h5()?;
        Ok(Layout {
            chunk: chunk.map(|chunk| chunk.iter().rev().map(|&extent| extent as u64).collect()),
            filters: sys::filters(&creation)?,
            datatype: self.datatype()?,
        })
    }

    pub(in crate::h5) fn datatype(&self) -> Result<Datatype> {
        sys::describe(&self.0.dtype().h5()?)
    }

    /// The dataset is in chunks.
    pub(in crate::h5) fn index_kind(&self) -> Result<IndexKind> {
        // H5D_chunk_index_t
        Ok(match sys::chunk_index(&self.0)? {
            0 => IndexKind::BtreeV1,
            1 => IndexKind::Single,
            2 => IndexKind::Implicit,
            3 => IndexKind::FixedArray,
            4 => IndexKind::ExtensibleArray,
            5 => IndexKind::BtreeV2,
            number => IndexKind::Unknown(number),
        })
    }

    /// Without the text of variable-length strings.
    pub(in crate::h5) fn stored_bytes(&self) -> u64 {
        self.0.storage_size()
    }

    pub(in crate::h5) fn elsewhere(&self) -> Result<Option<Elsewhere>> {
        let creation = self.0.dcpl().h5()?;
        Ok(match creation.get_layout().h5()? {
            StorageLayout::Virtual => {
                let sources = sys::virtual_sources(&creation, MAX_SOURCES)?;
                Some(Elsewhere::Virtual(sources.ok_or_else(too_many_sources)?))
            }
            StorageLayout::Contiguous => {
                let files: Vec<_> = creation.get_external().h5()?.into_iter().map(|file| file.name).collect();
                (!files.is_empty()).then_some(Elsewhere::Raw(files))
            }
            _ => None,
        })
    }

    pub(in crate::h5) fn storage(&self) -> Result<Storage> {
        Ok(match self.0.dcpl().h5()?.get_layout().h5()? {
            StorageLayout::Chunked => Storage::Chunks,
            StorageLayout::Contiguous => Storage::Block(self.0.offset()),
            StorageLayout::Compact => Storage::Header,
            StorageLayout::Virtual => Storage::Other("in other datasets"),
        })
    }

    /// The fill value as in the file, if one is defined.
    pub(in crate::h5) fn fill(&self) -> Result<Option<Vec<u8>>> {
        let creation = self.0.dcpl().h5()?;
        match creation.get_fill_value_defined().h5()? {
            FillValue::UserDefined => sys::fill(&creation, &self.0.dtype().h5()?).map(Some),
            _ => Ok(None),
        }
    }

    /// Chunks that codecs of this program decode have at most `chunk_bytes` bytes.
    fn with<T>(&self, block: &[Steps], chunk_bytes: u64, call: impl FnOnce(&Target<'_>) -> Result<T>) -> Result<T> {
        let file = self.0.space().h5()?;
        let [start, step, count] = [|axis: &Steps| axis.start, |axis: &Steps| axis.step, |axis: &Steps| axis.count]
            .map(|of| -> Vec<u64> { block.iter().map(of).collect() });
        sys::select_steps(&file, &start, &step, &count)?;
        let memory = sys::memory(&count)?;
        let _limit = ChunkLimit::new(chunk_bytes);
        call(&Target::Dataset { dataset: &self.0, memory: &memory, file: &file })
    }

    pub(in crate::h5) fn read(&self, block: &[Steps], chunk_bytes: u64, out: &mut [u8]) -> Result<()> {
        let datatype = self.0.dtype().h5()?;
        self.with(block, chunk_bytes, |target| sys::read(target, &datatype, out))
    }

    pub(in crate::h5) fn strings(&self, block: &[Steps], chunk_bytes: u64, out: &mut Vec<BString>) -> Result<()> {
        let datatype = self.0.dtype().h5()?;
        self.with(block, chunk_bytes, |target| sys::read_strings(target, &datatype, out))
    }

    /// `values` have the dataset's type; `Usage` if a string contains NUL or is not UTF-8.
    pub(in crate::h5) fn write(&self, block: &[Steps], chunk_bytes: u64, values: &Values) -> Result<()> {
        self.with(block, chunk_bytes, |target| match values {
            Values::String(strings) => sys::write_strings(target, Charset::Utf8, &Strings::new(strings)?),
            _ => {
                let bytes = values.le_bytes().ok_or_else(|| Error::usage("HDF5 has no records"))?;
                sys::write(target, &sys::number_type(values.data_type())?, &bytes)
            }
        })
    }

    /// Elements as the file has them.
    pub(in crate::h5) fn write_bytes(&self, block: &[Steps], bytes: &[u8]) -> Result<()> {
        let datatype = self.0.dtype().h5()?;
        self.with(block, u64::MAX, |target| sys::write(target, &datatype, bytes))
    }

    /// `offset` is the index of the chunk's first element.
    pub(in crate::h5) fn write_chunk(&self, offset: &[u64], filter_mask: u32, bytes: &[u8]) -> Result<()> {
        sys::write_chunk(&self.0, offset, filter_mask, bytes)
    }

    /// The chunk whose first element has the index `at`; `None` if it was never written.
    pub(in crate::h5) fn chunk(&self, at: &[u64]) -> Result<Option<StoredChunk>> {
        sys::stored_chunk(&self.0, at)
    }

    /// Calls `each` for each chunk, by the index of its first element, in no promised order.
    pub(in crate::h5) fn each_chunk(&self, each: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
        sys::each_stored_chunk(&self.0, each)
    }

    /// Fails with `Unsupported` if the file has a user block and libhdf5 is older than 1.14, which
    /// does not count addresses of chunks from the start of the file.
    pub(in crate::h5) fn check_addresses(&self) -> Result<()> {
        let is_new = cfg!(feature = "static-hdf5") || hdf5::library_version() >= (1, 14, 0);
        if is_new || self.0.file().h5()?.userblock() == 0 {
            return Ok(());
        }
        Err(Error::unsupported("chunks after a user block are read with HDF5 1.14 or newer"))
    }

    pub(in crate::h5) fn link_count(&self) -> Result<usize> {
        Ok(self.0.loc_info().h5()?.num_links)
    }

    /// Offset of the header from where libhdf5 counts addresses.
    pub(in crate::h5) fn address(&self) -> Result<u64> {
        sys::header_address(&self.0)
    }

    pub(in crate::h5) fn file_bytes(&self) -> Result<u64> {
        Ok(self.0.file().h5()?.size())
    }

    pub(in crate::h5) fn set_extents(&self, extents: &[u64]) -> Result<()> {
        sys::set_extent(&self.0, extents)
    }

    pub(in crate::h5) fn flush(&self) -> Result<()> {
        sys::flush_dataset(&self.0)
    }

    pub(in crate::h5) fn refresh(&self) -> Result<()> {
        sys::refresh_dataset(&self.0)
    }

    pub(in crate::h5) fn set_scale(&self, name: &str) -> Result<()> {
        sys::set_scale(&self.0, name)
    }

    pub(in crate::h5) fn attach_scale(&self, axis: u32, scale: &Dataset) -> Result<()> {
        sys::attach_scale(&self.0, &scale.0, axis)
    }

    pub(in crate::h5) fn set_dimension_list(&self, scales: &[u64]) -> Result<()> {
        sys::set_dimension_list(&self.0, scales)
    }

    /// The address of each dataset of the scale, and the number of the axis.
    pub(in crate::h5) fn set_reference_list(&self, users: &[(u64, u32)]) -> Result<()> {
        sys::set_reference_list(&self.0, users)
    }

    pub(in crate::h5) fn set_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        attribute::set(&self.0, name, value, Charset::Utf8)
    }

    pub(in crate::h5) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.0)
    }

    pub(in crate::h5) fn attribute(&self, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
        attribute::get(&self.0, name)
    }
}

/// Whether libhdf5 has a filter, or finds a plugin that has it.
pub(in crate::h5) fn has_filter(id: i32) -> Result<bool> {
    sys::is_filter_available(id)
}
