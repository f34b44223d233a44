//! Manifests of `h5bridge batch`: files with one item (a job, as JSON) on each line, which are not
//! changed after they are written.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind as Os, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ctds_hdf5::{Context, Error, ErrorKind, Result};

use super::item::{Id, Item};

/// Limit of lines in manifests, lists of sources and ledgers, line end included.
pub(super) const LONGEST_LINE: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Entry {
    id: Id,
    offset: u64,
    length: u32,
    bytes: u64,
}

/// Keeps in memory only the identity of each item, the size of its source, and where its line is.
#[derive(Debug)]
pub(crate) struct Manifest {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
    by_id: HashMap<Id, u32>,
    repeated: usize,
}

impl Manifest {
    /// Equal lines are one item. `Format` for a line that is not an item or has the id of another
    /// one, `Usage` for work that a batch cannot do.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = File::open(&path).map_err(|error| Error::from(error).context(path.as_path()))?;
        Self::from_file(path, file)
    }

    /// Reads from the start; messages call the file `path`.
    pub(crate) fn from_file(path: impl Into<PathBuf>, mut file: File) -> Result<Self> {
        let path = path.into();
        let at = |error: Error| error.context(Context::Path(path.clone()));
        file.rewind().map_err(|error| at(error.into()))?;
        let mut manifest = Manifest {
            path: path.clone(),
            file: file.try_clone().map_err(|error| at(error.into()))?,
            entries: Vec::new(),
            by_id: HashMap::new(),
            repeated: 0,
        };
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut offset = 0;
        each_line(&mut reader, |number, line| {
            let next = offset + line.len() as u64;
            if !line.trim_ascii().is_empty() {
                manifest.add(line, offset).map_err(|error| error.context(format!("line {number}")))?;
            }
            offset = next;
            Ok(())
        })
        .map_err(at)?;
        Ok(manifest)
    }

    fn add(&mut self, line: &[u8], offset: u64) -> Result<()> {
        let item = parse(line)?;
        item.check()?;
        let expected = item.computed_id();
        if item.id != expected {
            let message = format!("the id is {}, that of the content {expected}: edit pairs and plan again", item.id);
            return Err(Error::new(ErrorKind::Format, message));
        }
        if let Some(&first) = self.by_id.get(&item.id) {
            let first = self.read(first as usize)?;
            if (&first.verb, &first.source, &first.target) != (&item.verb, &item.source, &item.target) {
                let message = format!("{} and {} have the same id, {}", first.source, item.source, item.id);
                return Err(Error::new(ErrorKind::Format, message));
            }
            self.repeated += 1;
            return Ok(());
        }
        let number = u32::try_from(self.entries.len())
            .map_err(|_| Error::new(ErrorKind::Limit, "a manifest has at most 2^32 items"))?;
        self.by_id.insert(item.id, number);
        self.entries.push(Entry { id: item.id, offset, length: line.len() as u32, bytes: item.bytes });
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn repeated(&self) -> usize {
        self.repeated
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// 0 if it is not known.
    pub(crate) fn bytes(&self, number: usize) -> u64 {
        self.entries[number].bytes
    }

    pub(crate) fn id(&self, number: usize) -> Id {
        self.entries[number].id
    }

    pub(crate) fn find(&self, id: Id) -> Option<usize> {
        self.by_id.get(&id).map(|&number| number as usize)
    }

    /// Fails with `Format` if the file has changed since it was opened.
    pub(crate) fn read(&self, number: usize) -> Result<Item> {
        let Entry { id, offset, length, .. } = self.entries[number];
        let mut line = vec![0; length as usize];
        let read = self.file.read_exact_at(&mut line, offset).map_err(Error::from);
        let item = read.and_then(|()| parse(&line)).map_err(|error| error.context(self.path.as_path()))?;
        if item.id != id {
            let message = "the manifest has changed since it was opened";
            return Err(Error::new(ErrorKind::Format, message).context(self.path.as_path()));
        }
        Ok(item)
    }
}

fn parse(line: &[u8]) -> Result<Item> {
    serde_json::from_slice(line)
        .map_err(|error| Error::new(ErrorKind::Format, format!("the line is not an item of a manifest: {error}")))
}

/// `visit` gets the number, from 1, and the bytes of each line, line end included; `Format` for
/// lines that are too long.
pub(super) fn each_line(reader: &mut impl BufRead, mut visit: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == Os::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let end = available.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > LONGEST_LINE {
            let message = format!("line {} is longer than the limit of {LONGEST_LINE} bytes", number + 1);
            return Err(Error::new(ErrorKind::Format, message));
        }
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if end.is_some() || (taken == 0 && !line.is_empty()) {
            number += 1;
            visit(number, &line)?;
            line.clear();
        } else if taken == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(source: &str) -> Item {
        Item::new("verify".into(), source.into(), None, Vec::new(), 7)
    }

    fn open(text: &str) -> Result<Manifest> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ndjson");
        std::fs::write(&path, text).unwrap();
        Manifest::open(path)
    }

    #[test]
    fn equal_lines_are_one_item() {
        let line = |source| serde_json::to_string(&item(source)).unwrap();
        let manifest = open(&format!("{}\n\n{}\n{}", line("/a"), line("/b"), line("/a"))).unwrap();
        assert_eq!((manifest.len(), manifest.repeated(), manifest.bytes(1)), (2, 1, 7));
        assert_eq!(manifest.read(1).unwrap(), item("/b"));
        assert_eq!(manifest.find(item("/b").id), Some(1));
    }

    #[test]
    fn lines_that_are_not_items_are_named() {
        let mut wrong = item("/a");
        wrong.source = "/b".into();
        for (text, words) in [
            ("{}".to_owned(), "line 1"),
            (serde_json::to_string(&wrong).unwrap(), "the id is"),
            (format!("\n{}", "x".repeat(LONGEST_LINE + 1)), "longer"),
        ] {
            let error = open(&text).unwrap_err();
            assert!(error.kind() == ErrorKind::Format && error.to_string().contains(words), "{error}");
        }
    }
}
