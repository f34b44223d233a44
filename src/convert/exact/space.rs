//! How the bytes of a native file divide among data and original files.

use std::path::Path;

use crate::error::{Context, Result, ResultExt};
use crate::h5::{File, Group, LinkKind};
use crate::limits;
use crate::native::{self, restore_path};

/// What the parts of a native file take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpaceUsage {
    /// The file.
    pub file: u64,
    /// The elements of all datasets that everybody reads, without the text of variable-length strings.
    pub datasets: u64,
    /// How the original files come from datasets.
    pub recipes: u64,
    /// What of the original files no other dataset gives.
    pub literals: u64,
    /// The rest: the structure of the file, attributes, the text of strings.
    pub other: u64,
    /// Whether the original files can be restored.
    pub restorable: bool,
}

impl SpaceUsage {
    /// What the parts of the native file at `path` take; `None` if it is something else.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn of(path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref();
        if !path.is_file() || !native::is_native(path).with_context(|| Context::path(path))? {
            return Ok(None);
        }
        let add = || -> Result<Self> {
            let root = File::open_shared(path)?.root()?;
            let mut usage = SpaceUsage { file: path.metadata()?.len(), ..SpaceUsage::default() };
            add_datasets(&root, &mut usage, 0)?;
            let known = usage.datasets + usage.recipes + usage.literals;
            usage.other = usage.file.saturating_sub(known);
            Ok(usage)
        };
        add().with_context(|| Context::path(path)).map(Some)
    }
}

fn add_datasets(group: &Group, usage: &mut SpaceUsage, depth: usize) -> Result<()> {
    limits::depth(depth, "groups")?;
    let is_recipes = group.path() == restore_path();
    usage.restorable |= is_recipes;
    for (name, kind) in group.links()? {
        match kind {
            LinkKind::Group => add_datasets(&group.group(&name)?, usage, depth + 1)?,
            LinkKind::Dataset => {
                let part = match (is_recipes, name.as_str()) {
                    (true, "literals") => &mut usage.literals,
                    (true, _) => &mut usage.recipes,
                    (false, _) => &mut usage.datasets,
                };
                // in other files it takes no bytes of this one
                *part += group.header(&name)?.stored_bytes();
            }
            _ => {}
        }
    }
    Ok(())
}
