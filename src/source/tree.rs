//! Lists the files of a table directory that a restorable HDF5 file embeds, so that the original
//! directory can be restored.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice, ByteVec};

use crate::error::Result;
use crate::limits;
use crate::output::sorted_entries;

/// Directories and files that `to-ms --exact` can restore.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) directories: Vec<BString>,
    /// Path in the table directory, and in the file system.
    pub(crate) files: Vec<(BString, PathBuf)>,
    /// About entries that `to-ms --exact` will not restore, or in another form.
    notes: Vec<String>,
}

impl Tree {
    /// Symbolic links are followed; `root` may be a file.
    pub(crate) fn find(root: &Path) -> Result<Self> {
        let mut tree = Tree::default();
        if root.is_file() {
            tree.files.push((BString::default(), root.to_owned()));
        } else {
            tree.walk(root, &BString::default(), &mut vec![root.canonicalize()?])?;
        }
        Ok(tree)
    }

    pub(crate) fn size(&self) -> Result<(u64, u64)> {
        let lens = self.files.iter().map(|(_, path)| path.metadata().map(|metadata| metadata.len()));
        Ok((self.files.len() as u64, lens.sum::<std::io::Result<u64>>()?))
    }

    /// Devices and broken links will not be restored, and links become their targets.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn walk(&mut self, directory: &Path, prefix: &BString, above: &mut Vec<PathBuf>) -> Result<()> {
        limits::depth(above.len(), "directories")?;
        for entry in sorted_entries(directory)? {
            let mut name = prefix.clone();
            if !name.is_empty() {
                name.push_byte(b'/');
            }
            name.push_str(<[u8]>::from_os_str(&entry.file_name()).unwrap_or_default());
            let (path, is_link) = (entry.path(), entry.file_type()?.is_symlink());
            // where a link leads to counts
            let kind = match path.metadata() {
                Ok(metadata) => metadata.file_type(),
                Err(error) => {
                    self.notes.push(format!("{name}: not restorable: {error}"));
                    continue;
                }
            };
            if is_link {
                self.notes.push(format!("{name}: a symbolic link, restored as what it leads to"));
            }
            if kind.is_file() {
                self.files.push((name, path));
            } else if kind.is_dir() {
                let real = path.canonicalize()?;
                if above.contains(&real) {
                    self.notes.push(format!("{name}: not restorable: a symbolic link to a directory that it is in"));
                    continue;
                }
                self.directories.push(name.clone());
                above.push(real);
                self.walk(&path, &name, above)?;
                above.pop();
            } else {
                self.notes.push(format!("{name}: not restorable: neither a file nor a directory"));
            }
        }
        Ok(())
    }
}
