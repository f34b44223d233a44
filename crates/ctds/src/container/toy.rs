//! A container format for tests, which is only read: the smallest example of a format.
//!
//! A text file lists the files; their bytes follow it, or lie in a second file `NAME.data`.
//!
//! ```text
//! toy container                    toy container, data elsewhere
//! table.dat 5                      table.dat 5
//! table.f0 3                       table.f0 3
//!
//! bytesabc
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Container, ContainerInfo, Format};
use crate::error::{Context, Error, Result};
use crate::io::{ReadAt, past_end, read_all};

pub static FORMAT: Format = Format {
    parts: |inside, name| Ok(if has_data_elsewhere(inside, name)? { vec![data_name(name)] } else { Vec::new() }),
    ..Format::read_only(
        "toy",
        |inside, name| Ok(head(inside, name)?.starts_with(MAGIC)),
        |inside, name| Ok(Arc::new(Toy::open(inside, name)?)),
    )
};

const MAGIC: &[u8] = b"toy container";
const ELSEWHERE: &[u8] = b", data elsewhere";

fn data_name(name: &str) -> String {
    format!("{name}.data")
}

fn head(inside: &dyn Container, name: &str) -> Result<Vec<u8>> {
    let file = inside.open(name)?;
    let mut head = vec![0; file.len()?.min((MAGIC.len() + ELSEWHERE.len()) as u64) as usize];
    file.read_at(0, &mut head)?;
    Ok(head)
}

fn has_data_elsewhere(inside: &dyn Container, name: &str) -> Result<bool> {
    Ok(head(inside, name)? == [MAGIC, ELSEWHERE].concat())
}

#[derive(Debug)]
struct Toy {
    data: Arc<dyn ReadAt>,
    /// Offset and length in `data`.
    files: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug)]
struct ToyFile {
    data: Arc<dyn ReadAt>,
    offset: u64,
    len: u64,
}

impl Toy {
    fn open(inside: &dyn Container, name: &str) -> Result<Self> {
        let damaged = || Error::format("the list of files is damaged");
        let bytes = read_all(&inside.open(name)?)?;
        let list_end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or_else(damaged)?;
        let list = std::str::from_utf8(&bytes[..list_end]).map_err(|_| damaged())?;
        let elsewhere = has_data_elsewhere(inside, name)?;
        let data: Arc<dyn ReadAt> = if elsewhere { inside.open(&data_name(name))? } else { Arc::new(bytes.clone()) };
        let mut offset = if elsewhere { 0 } else { list_end as u64 + 2 };
        let mut files = BTreeMap::new();
        for line in list.lines().skip(1) {
            let (name, len) = line.split_once(' ').ok_or_else(damaged)?;
            let len = len.parse().map_err(|_| damaged())?;
            files.insert(name.to_owned(), (offset, len));
            offset += len;
        }
        Ok(Toy { data, files })
    }
}

impl Container for Toy {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let found = self
            .files
            .get(name)
            .ok_or_else(|| Error::not_found("the file does not exist").context(Context::member(name)))?;
        Ok(Arc::new(ToyFile { data: self.data.clone(), offset: found.0, len: found.1 }))
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: FORMAT.name, ..ContainerInfo::default() }
    }
}

impl ReadAt for ToyFile {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return Err(past_end(offset, out.len() as u64, self.len));
        }
        self.data.read_at(self.offset + offset, out)
    }
}
