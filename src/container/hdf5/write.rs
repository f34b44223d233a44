//! Writing a container of files as datasets in an HDF5 file; all files have to be announced before
//! the first one is written.
//!
//! The bytes of a large file without compression are written past libhdf5, or copied by the system:
//! libhdf5 says where the block is once it is reserved.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use super::element::element_of;
use super::{CHUNK_BYTES, FILES_MARK, FORMAT, VERSION, link_attribute, properties};
use crate::container::{Announced, AnnouncedFile, Container, ContainerInfo, ContainerMut, FormatOptions, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, Compression, Dataset, DatasetSpec, Group, Storage};
use crate::io::{FileTarget, Raw, RawCopy, ReadAt, WriteAt};
use crate::sync::LockUnpoisoned;
use crate::value::{ByteOrder, DataType, Region, Shape, Values};

/// Zeros written to a new dataset, to make libhdf5 allocate its space; more than its write buffer,
/// since zeros left there would overwrite later bytes.
const RESERVING_BYTES: u64 = 128 << 10;

/// Shared by the container and its nested ones.
#[derive(Debug)]
struct Open {
    file: h5::File,
    /// The HDF5 file opened a second time, for bytes that are written without libhdf5.
    target: Arc<FileTarget>,
    /// Path of the first file of each content, by identity, and its announcement.
    first: HashMap<String, (String, AnnouncedFile)>,
}

/// `None` after the commit.
type Shared = Arc<Mutex<Option<Open>>>;

/// The root group, or a nested one.
#[derive(Debug)]
pub(super) struct FilesMut {
    shared: Shared,
    group: Group,
    announced: Announced,
    /// Indices into `announced.files`.
    by_name: HashMap<String, usize>,
    compression: Compression,
    is_outermost: bool,
}

impl FilesMut {
    pub(super) fn create(path: &Path, files: &Announced, options: &FormatOptions) -> Result<Self> {
        if options.checksums || options.appendable {
            return Err(Error::usage("files as HDF5 datasets have no checksums, and do not grow"));
        }
        let file = h5::File::create(path)?;
        let group = file.root()?;
        group.set_attribute(FILES_MARK, &Attribute::Scalar(Values::Int64(vec![VERSION])))?;
        let target = Arc::new(FileTarget::open(path)?);
        let shared = Arc::new(Mutex::new(Some(Open { file, target, first: HashMap::new() })));
        Self::new(shared, group, files.clone(), Compression::of_filter(options.compression)?, true)
    }

    fn new(
        shared: Shared,
        group: Group,
        files: Announced,
        compression: Compression,
        is_outermost: bool,
    ) -> Result<Self> {
        properties::write(&files.properties, |name, value| group.set_attribute(name, value))?;
        let by_name = files.files.iter().enumerate().map(|(at, file)| (file.name.clone(), at)).collect();
        Ok(FilesMut { shared, group, announced: files, by_name, compression, is_outermost })
    }

    fn announced(&self, name: &str) -> Result<&AnnouncedFile> {
        let found = self.by_name.get(name).map(|&at| &self.announced.files[at]);
        found.ok_or_else(|| Error::not_found("this file was not announced").context(Context::member(name)))
    }

    fn open_file(&self) -> MutexGuard<'_, Option<Open>> {
        self.shared.lock_unpoisoned()
    }
}

fn committed() -> Error {
    Error::usage("the container is written already")
}

impl Container for FilesMut {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.announced.files.iter().map(|file| file.name.clone()).collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Err(Error::unsupported("the file is being written").context(Context::member(name)))
    }

    fn describe(&self) -> ContainerInfo {
        let block_bytes = (!self.compression.is_none()).then_some(CHUNK_BYTES);
        ContainerInfo { format: FORMAT.name, version: Some(VERSION as u32), block_bytes, ..ContainerInfo::default() }
    }
}

impl ContainerMut for FilesMut {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        let create = || -> Result<_> {
            check_name(name)?;
            let file = self.announced(name)?;
            let mut open = self.open_file();
            let open = open.as_mut().ok_or_else(committed)?;
            let element = element_of(&file.properties, file.len);
            let size = element.size() as u64;
            let shape = Shape::from([file.len / size]);
            let chunk =
                (!self.compression.is_none()).then(|| Shape::from([(file.len / size).clamp(1, CHUNK_BYTES / size)]));
            let spec = DatasetSpec { element, shape: &shape, chunk, appendable: false, compression: self.compression };
            let dataset = self.group.create_dataset(name, &spec)?;
            properties::write(&file.properties, |name, value| dataset.set_attribute(name, value))?;
            if let Some(content) = &file.properties.content {
                let path = format!("/{}", dataset.path().trim_start_matches('/'));
                open.first.entry(content.clone()).or_insert_with(|| (path, file.clone()));
            }
            let block = block(&dataset, element, file.len)?.map(|position| (open.target.clone(), position));
            Ok(DatasetBytes { shared: self.shared.clone(), dataset, element, block, len: file.len })
        };
        Ok(Arc::new(create().context(Context::member(name))?))
    }

    /// True once linked to the dataset of an earlier file with the same content.
    fn is_complete(&self, name: &str) -> Result<bool> {
        let file = self.announced(name)?;
        let open = self.open_file();
        let first = file.properties.content.as_ref().and_then(|content| open.as_ref()?.first.get(content));
        let Some((path, first)) = first.filter(|(_, first)| first.len == file.len) else { return Ok(false) };
        check_name(name)?;
        self.group.link(name, path)?;
        if first.properties != file.properties {
            let own = Attribute::string(properties::to_json(&file.properties));
            self.group.set_attribute(&link_attribute(name), &own)?;
        }
        Ok(true)
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Err(Error::unsupported("the file is written as a whole").context(Context::member(name)))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.edit(name).map(drop)
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        check_name(name)?;
        let found = self.announced.nested.iter().find(|(found, _)| found == name);
        let missing = || Error::not_found("this container was not announced").context(Context::member(name));
        let files = found.map(|(_, files)| files.clone()).ok_or_else(missing)?;
        let _open = self.open_file();
        let group = self.group.create_group(name)?;
        Ok(Arc::new(Self::new(self.shared.clone(), group, files, self.compression, false)?))
    }

    fn commit(&self) -> Result<()> {
        if !self.is_outermost {
            return Ok(());
        }
        let open = self.open_file().take().ok_or_else(committed)?;
        open.file.close()
    }
}

/// Offset of the reserved bytes; `None` for other layouts and under 256 KiB: libhdf5 writes.
fn block(dataset: &Dataset, element: DataType, len: u64) -> Result<Option<u64>> {
    if len < 2 * RESERVING_BYTES || !matches!(dataset.storage()?, Storage::Block(_)) {
        return Ok(None);
    }
    write_bytes(dataset, element, 0, &vec![0; RESERVING_BYTES as usize])?;
    Ok(match dataset.storage()? {
        Storage::Block(position) => position,
        _ => None,
    })
}

/// Fails unless `data` begins and ends at whole elements.
fn write_bytes(dataset: &Dataset, element: DataType, offset: u64, data: &[u8]) -> Result<()> {
    let size = element.size() as u64;
    let count = data.len() as u64;
    if !offset.is_multiple_of(size) || !count.is_multiple_of(size) {
        return Err(Error::usage(format!(
            "{count} bytes from byte {offset} on are not whole elements of {size} bytes"
        )));
    }
    let region = Region { start: Shape::from([offset / size]), shape: Shape::from([count / size]) };
    let mut values = Values::new(element);
    values.extend_from_bytes(data, ByteOrder::Little);
    dataset.write_region(&region, &values)
}

#[derive(Debug)]
struct DatasetBytes {
    shared: Shared,
    dataset: Dataset,
    element: DataType,
    /// Offset of the dataset's first byte; `None` if libhdf5 has to write the bytes.
    block: Option<(Arc<FileTarget>, u64)>,
    len: u64,
}

impl DatasetBytes {
    /// Refuses bytes after the announced length.
    fn check(&self, offset: u64, count: u64) -> Result<()> {
        match offset.checked_add(count).is_some_and(|end| end <= self.len) {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "{count} bytes from byte {offset} on exceed the {} bytes that were announced",
                self.len
            ))),
        }
    }
}

impl ReadAt for DatasetBytes {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, _offset: u64, _out: &mut [u8]) -> Result<()> {
        Err(Error::unsupported("the file is being written"))
    }
}

impl WriteAt for DatasetBytes {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let open = self.shared.lock_unpoisoned();
        if open.is_none() {
            return Err(committed());
        }
        self.check(offset, data.len() as u64)?;
        if let Some((target, position)) = &self.block {
            return target.write_at(position + offset, data);
        }
        write_bytes(&self.dataset, self.element, offset, data)
    }

    fn copy_raw(&self, offset: u64, bytes: Raw<'_>, by: &dyn RawCopy) -> u64 {
        let open = self.shared.lock_unpoisoned();
        match &self.block {
            Some((target, position)) if open.is_some() && self.check(offset, bytes.len).is_ok() => {
                target.copy_raw(position + offset, bytes, by)
            }
            _ => 0,
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        match len == self.len {
            true => Ok(()),
            false => Err(Error::usage(format!("the file is {len} bytes long, {} were announced", self.len))),
        }
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
