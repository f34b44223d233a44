//! Copies of tables that a test may damage.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::testdata;

/// A copy of a table in a temporary directory, free to be damaged.
pub struct Copy {
    folder: TempDir,
    name: String,
}

impl Copy {
    /// Copies the table `name` of testdata/, with everything in its directory.
    pub fn of(name: &str) -> Self {
        Self::of_path(&testdata().join(name))
    }

    /// Copies the table at `path`.
    pub fn of_path(path: &Path) -> Self {
        let copy = Copy {
            folder: tempfile::tempdir().unwrap(),
            name: path.file_name().unwrap().to_str().expect("names in testdata are plain").to_owned(),
        };
        copy_tree(path, &copy.path());
        copy
    }

    /// Path of the copied table.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// A path for another file or directory beside the copied table.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Names of the regular files of the copied table, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Reads all bytes of a file of the copied table.
    pub fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.path().join(file)).unwrap()
    }

    /// Writes a file of the copied table, which may be a new one.
    pub fn write(&self, file: &str, bytes: &[u8]) {
        fs::write(self.path().join(file), bytes).unwrap();
    }

    /// Changes the bytes of a file of the copied table with a function.
    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> &Self {
        let mut bytes = self.read(file);
        change(&mut bytes);
        self.write(file, &bytes);
        self
    }

    /// Overwrites bytes of a file of the copied table from `offset` on.
    pub fn put(&self, file: &str, offset: usize, bytes: &[u8]) -> &Self {
        self.edit(file, |content| content[offset..offset + bytes.len()].copy_from_slice(bytes))
    }

    /// Removes a file of the copied table.
    pub fn remove(&self, file: &str) -> &Self {
        fs::remove_file(self.path().join(file)).unwrap();
        self
    }
}

/// Copies a directory with everything below it.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
