//! Chains of tables that are opened because each takes values from the next (forwarded columns,
//! references, concatenations): finds circles and limits the number of tables.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::OpenOptions;
use crate::error::{Error, Result};
use crate::limits;

/// Whether a table that another one names may be opened, by the path of its file or directory,
/// links resolved.
pub type Admits<'a> = &'a dyn Fn(&Path) -> bool;

/// Fails with `Unsupported`, an error that leads elsewhere, unless `admits` allows the table.
pub(super) fn admit(admits: Option<Admits<'_>>, path: &Path, name: &str) -> Result<()> {
    // a table in a container has no place of its own
    let place = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok()).unwrap_or_else(|| path.to_owned());
    match admits {
        Some(admits) if !admits(&place) => {
            Err(Error::elsewhere(format!("the table {name} is not among those that are served")))
        }
        _ => Ok(()),
    }
}

/// A table that is being opened, and those before it, each of which takes values from the next.
/// Damaged tables can take values in a circle, or from too many: four engines, each of whose tables
/// has four engines again. The chain shows circles; its length and number of tables are limited.
pub(super) struct OpenChain<'a> {
    pub(super) options: OpenOptions,
    /// `None` allows every table.
    admits: Option<Admits<'a>>,
    /// Without symbolic links, to recognise the table in a circle.
    path: PathBuf,
    before: Option<&'a OpenChain<'a>>,
    /// Tables opened for the first table of the chain; all chains from it share the count.
    opened: &'a Cell<usize>,
}

impl<'a> OpenChain<'a> {
    /// Begins a chain; `opened` is 0.
    pub(super) fn new(path: &Path, options: OpenOptions, admits: Option<Admits<'a>>, opened: &'a Cell<usize>) -> Self {
        OpenChain { options, admits, path: real(path), before: None, opened }
    }

    /// `Format` if the table is in the chain already; `Limit` if the chain is too long, or has
    /// opened too many tables; `Unsupported` if `admits` does not allow the table.
    pub(super) fn then(&'a self, path: &Path) -> Result<Self> {
        admit(self.admits, path, &path.file_name().unwrap_or_default().to_string_lossy())?;
        let path = real(path);
        let mut depth = 1;
        let mut link = Some(self);
        while let Some(chain) = link {
            if chain.path == path {
                return Err(Error::format("the table's values come from the table itself"));
            }
            depth += 1;
            link = chain.before;
        }
        limits::depth(depth, "tables that lead to each other")?;
        self.opened.set(self.opened.get() + 1);
        limits::tables(self.opened.get())?;
        Ok(OpenChain { options: self.options, admits: self.admits, path, before: Some(self), opened: self.opened })
    }
}

fn real(path: &Path) -> PathBuf {
    // where there is nothing, opening fails with a better message
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn circles_and_crowds_end() {
        let opened = Cell::new(0);
        let first = OpenChain::new(Path::new("/a"), OpenOptions::default(), None, &opened);
        let second = first.then(Path::new("/b")).unwrap();
        assert_eq!(second.then(Path::new("/a")).err().map(|error| error.kind()), Some(ErrorKind::Format));
        // beside each other, tables may come back
        assert!(first.then(Path::new("/b")).is_ok());
        let crowd = (0..1 << 20).map(|_| second.then(Path::new("/c"))).find_map(Result::err);
        assert_eq!(crowd.map(|error| error.kind()), Some(ErrorKind::Limit));
    }
}
