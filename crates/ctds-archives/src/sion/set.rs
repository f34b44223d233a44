//! The physical files of a SION set, and which of them holds each logical task: a task numbered
//! across all files. All indices and numbers count from 0.

use std::sync::Arc;

use ctds::container::Container;
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::io::ReadAt;

use super::physical::Physical;

/// Mark in the names of copies of a SION set that SIONlib keeps on other nodes: `NAME_BUDDY_00`.
const BUDDY: &str = "_BUDDY_";

/// All physical files, or the single one that was opened.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) files: Vec<Physical>,
    /// For each logical task: index in `files`, and its number in that file.
    pub(super) tasks: Vec<(u32, u32)>,
}

/// Requires a closed file, or reads a damaged one as far as possible.
type Open = fn(Arc<dyn ReadAt>) -> Result<Physical>;

impl Set {
    /// Opens the other files of the set only if `name` is the first one.
    pub(super) fn open(inside: &dyn Container, name: &str) -> Result<Self> {
        Self::open_by(inside, name, Physical::open)
    }

    /// Reads files without META2 as far as possible; the error describes the damage. `Format` if
    /// META1 of a file is damaged, or a file is missing.
    pub(super) fn salvage(inside: &dyn Container, name: &str) -> Result<(Self, Error)> {
        let open = |file: Arc<dyn ReadAt>| match Physical::open(file.clone()) {
            Err(error) if error.is_damage() => Physical::salvage(file),
            opened => opened,
        };
        let damage = match Self::open(inside, name) {
            Ok(_) => Error::format("the file is intact"),
            Err(error) => {
                let message = "the lengths of the chunks (META2) are missing: each chunk is taken with all its space, zeros included";
                Error::format(message).caused_by(error)
            }
        };
        Ok((Self::open_by(inside, name, open)?, damage))
    }

    fn open_by(inside: &dyn Container, name: &str, open: Open) -> Result<Self> {
        let first = open(inside.open(name)?).context(Context::member(name))?;
        let count = first.meta1.files as u32;
        if count == 1 || first.meta1.file_number != 0 {
            let tasks = (0..first.tasks() as u32).map(|task| (0, task)).collect();
            return Ok(Set { files: vec![first], tasks });
        }
        let mut files = vec![first];
        for number in 1..count {
            let member = member_name(name, number);
            let file = inside.open(&member).map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    Error::format(format!("file {number} of the {count} files of the set is missing"))
                        .context(Context::member(&member))
                }
                _ => error,
            })?;
            files.push(open(file).context(Context::member(member))?);
        }
        let tasks = logical_tasks(&files).context(Context::member(name))?;
        Ok(Set { files, tasks })
    }

    pub(super) fn task(&self, task: usize) -> (&Physical, usize) {
        let (file, local) = self.tasks[task];
        (&self.files[file as usize], local as usize)
    }
}

/// Name of file `number` of the set whose first file, number 0, is `name`: `NAME.000001` for 1.
pub(super) fn member_name(name: &str, number: u32) -> String {
    format!("{name}.{number:06}")
}

/// Without a stored mapping, the tasks of the first file come first, then those of the second …
fn logical_tasks(files: &[Physical]) -> Result<Vec<(u32, u32)>> {
    let stored = files[0].mapping.as_deref().unwrap_or_default();
    if stored.is_empty() {
        let of_file =
            |(number, file): (usize, &Physical)| (0..file.tasks() as u32).map(move |task| (number as u32, task));
        return Ok(files.iter().enumerate().flat_map(of_file).collect());
    }
    let place = |(task, &[file, local]): (usize, &[i32; 2])| {
        let exists = usize::try_from(file)
            .ok()
            .and_then(|file| files.get(file))
            .is_some_and(|found| usize::try_from(local).is_ok_and(|local| local < found.tasks()));
        match exists {
            true => Ok((file as u32, local as u32)),
            false => {
                let message = format!("task {task} is given as task {local} of file {file}, which does not exist");
                Err(Error::format(message).context("mapping"))
            }
        }
    };
    stored.iter().enumerate().map(place).collect()
}

/// Other files of the set that begins with `name`, and the copies that SIONlib made.
pub(super) fn parts(inside: &dyn Container, name: &str) -> Result<Vec<String>> {
    let is_part = |other: &String| {
        let rest = other.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(BUDDY) || rest.strip_prefix('.').is_some_and(is_number))
    };
    Ok(inside.names()?.into_iter().filter(is_part).collect())
}

fn is_number(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit())
}
