//! The key-value records in a stream of a SION file: key and length, 8 bytes each in the byte order
//! of the file's metadata, then the value. The stream `TASK3` is read as the container
//! `TASK3.keys`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctds::container::{Container, ContainerInfo};
use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::{ReadAt, read_array};
use ctds::value::ByteOrder;

use super::extents::{Extents, Stream};

/// Listings leave this name out, because the file `TASK3` has the same bytes.
const SUFFIX: &str = ".keys";

/// `TASK3` for `TASK3.keys`; `None` for a name without `.keys`.
pub(super) fn stream_of(name: &str) -> Option<&str> {
    name.strip_suffix(SUFFIX)
}

/// A file for each key, named by its decimal number.
#[derive(Debug)]
pub(super) struct Keys {
    stream: Arc<dyn ReadAt>,
    values: BTreeMap<u64, Extents>,
}

impl Keys {
    /// Joins the values of records with the same key, in their order; `Format` if a record is
    /// longer than the stream.
    pub(super) fn read(stream: Arc<dyn ReadAt>, order: ByteOrder) -> Result<Self> {
        let (mut at, len) = (0, stream.len()?);
        let mut values: BTreeMap<u64, Extents> = BTreeMap::new();
        while at < len {
            let record = || -> Result<(u64, u64)> {
                let [key, count] =
                    [read_array(&*stream, at)?, read_array(&*stream, at + 8)?].map(|number| order.u64(number));
                match count <= len - at - 16 {
                    true => Ok((key, count)),
                    false => Err(Error::format(format!("key {key} has {count} bytes, the stream {len} in all"))),
                }
            };
            let (key, count) = record().context(Context::offset("key-value record", at))?;
            values.entry(key).or_default().push(at + 16, count);
            at += 16 + count;
        }
        Ok(Keys { stream, values })
    }
}

impl Container for Keys {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.values.keys().map(u64::to_string).collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let key = name.parse().ok().filter(|key: &u64| key.to_string() == name);
        let extents = key.and_then(|key| self.values.get(&key));
        let extents =
            extents.ok_or_else(|| Error::not_found("the key does not exist").context(Context::member(name)))?;
        Ok(Arc::new(Stream { file: self.stream.clone(), extents: extents.clone() }))
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: super::FORMAT.name, ..ContainerInfo::default() }
    }
}
