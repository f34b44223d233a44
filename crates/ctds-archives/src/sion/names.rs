//! The index of file names that this program can store as the stream of task 0 in a SION file: the
//! format itself identifies streams only by the numbers of tasks.
//!
//! The stream of task 0 is a line `ctds-names 1` and a JSON array of paths. The path at index `i`
//! is that of the file that task `i + 1` holds; paths that end in `/`, after all others, are
//! containers without files.
//!
//! Tasks are logical tasks, counted from 0. Without an index the virtual files are `TASK0`, `TASK1`
//! …

use std::collections::BTreeMap;
use std::sync::Arc;

use ctds::container::{Announced, check_name};
use ctds::error::{Error, Result};
use ctds::io::{ReadAt, read_all};
use ctds::limits;

const LINE: &[u8] = b"ctds-names 1\n";

const TASK: &str = "TASK";

pub(super) fn task_name(task: usize) -> String {
    format!("{TASK}{task}")
}

/// Task 3 for `TASK3`; `None` for other names.
pub(super) fn task_of(name: &str) -> Option<usize> {
    let task = name.strip_prefix(TASK)?.parse().ok()?;
    (task_name(task) == name).then_some(task)
}

#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Task of each file in this folder; task 0 holds the index itself.
    pub(super) files: BTreeMap<String, usize>,
    pub(super) nested: BTreeMap<String, Arc<Folder>>,
}

/// A [`Folder`] under construction.
#[derive(Default)]
struct Growing {
    files: BTreeMap<String, usize>,
    nested: BTreeMap<String, Growing>,
}

impl Folder {
    /// `None` if the stream is not an index; `Format` if it begins as one and is damaged.
    pub(super) fn read(stream: &dyn ReadAt, tasks: usize) -> Result<Option<Self>> {
        let mut head = [0; LINE.len()];
        if stream.len()? < head.len() as u64 {
            return Ok(None);
        }
        stream.read_at(0, &mut head)?;
        if head != LINE {
            return Ok(None);
        }
        let bytes = read_all(stream)?;
        // a salvaged stream has all the space of its chunk
        let json = &bytes[LINE.len()..bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0).count()];
        let paths: Vec<String> = serde_json::from_slice(json)
            .map_err(|error| Error::format(format!("the index of names in task 0 cannot be read: {error}")))?;
        let files = paths.iter().take_while(|path| !path.ends_with('/')).count();
        if files + 1 != tasks {
            let message = format!("the index of names in task 0 has {files} files, the file {} other tasks", tasks - 1);
            return Err(Error::format(message));
        }
        let mut root = Growing::default();
        for (at, path) in paths.iter().enumerate() {
            let added = match (path.strip_suffix('/'), at < files) {
                (None, true) => root.add_file(path, at + 1)?,
                (Some(folder), false) => root.folder(folder.split('/'))?.is_some(),
                _ => false,
            };
            if !added {
                return Err(Error::format(format!(
                    "the index of names in task 0 has {path:?} in a wrong place, or twice"
                )));
            }
        }
        Ok(Some(root.finish()))
    }

    /// `None` if the files are named by their tasks.
    pub(super) fn index(files: &Announced) -> Result<Option<Vec<u8>>> {
        let is_task = |(task, name): (usize, &String)| task_of(name) == Some(task);
        let names: Vec<String> = files.files.iter().map(|file| file.name.clone()).collect();
        if files.nested.is_empty() && !names.is_empty() && names.iter().enumerate().all(is_task) {
            return Ok(None);
        }
        let (mut paths, mut folders) = (Vec::new(), Vec::new());
        collect(files, "", &mut paths, &mut folders);
        paths.append(&mut folders);
        let json = serde_json::to_vec(&paths).map_err(|error| Error::usage(error.to_string()))?;
        Ok(Some([LINE, &json].concat()))
    }
}

fn collect(files: &Announced, prefix: &str, paths: &mut Vec<String>, folders: &mut Vec<String>) {
    paths.extend(files.files.iter().map(|file| format!("{prefix}{}", file.name)));
    for (name, inner) in &files.nested {
        let path = format!("{prefix}{name}/");
        if inner.files.is_empty() {
            folders.push(path.clone());
        }
        collect(inner, &path, paths, folders);
    }
}

impl Growing {
    /// Creates a missing folder; `None` if a part of the path is the name of a file.
    fn folder<'a>(&mut self, path: impl Iterator<Item = &'a str>) -> Result<Option<&mut Self>> {
        let mut folder = self;
        for (depth, name) in path.enumerate() {
            check_name(name)?;
            limits::depth(depth, "containers")?;
            if folder.files.contains_key(name) {
                return Ok(None);
            }
            folder = folder.nested.entry(name.to_owned()).or_default();
        }
        Ok(Some(folder))
    }

    /// Adds the file at `path`, which `task` holds; false if the path is taken.
    fn add_file(&mut self, path: &str, task: usize) -> Result<bool> {
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (self.folder(folder.split('/'))?, name),
            None => (Some(self), path),
        };
        check_name(name)?;
        Ok(folder.is_some_and(|folder| {
            !folder.nested.contains_key(name) && folder.files.insert(name.to_owned(), task).is_none()
        }))
    }

    fn finish(self) -> Folder {
        let nested = self.nested.into_iter().map(|(name, folder)| (name, Arc::new(folder.finish()))).collect();
        Folder { files: self.files, nested }
    }
}
