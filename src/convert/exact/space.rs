//! Sizes of the parts of a native HDF5 file (a converted table): its datasets, the data to restore
//! the original casacore files, and the rest: the structure of HDF5, attributes and the text of
//! variable-length strings.

use crate::error::{Result, ResultExt};
use crate::h5::{Group, LinkKind};
use crate::limits;
use crate::native::restore_path;
use crate::source::{Source, SourceTable};

/// Space in bytes that the parts of a native HDF5 file (to which a casacore table was converted)
/// use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpaceUsage {
    /// Size in bytes of the whole native HDF5 file, to which a casacore table was converted.
    pub file: u64,
    /// Size in bytes, as stored (after compression), of the datasets of the native HDF5 file,
    /// except those for restoring original casacore files. Without the text of variable-length
    /// strings.
    pub datasets: u64,
    /// Size in bytes, as stored, of the recipes, which describe how the original casacore files are
    /// rebuilt from datasets.
    pub recipes: u64,
    /// Size in bytes, as stored, of the literals: the parts of the original casacore files that no
    /// other dataset holds.
    pub literals: u64,
    /// Number of bytes of the native HDF5 file that are in none of `datasets`, `recipes` and
    /// `literals`: the structure of HDF5, attributes and the text of variable-length strings.
    pub other: u64,
    /// Whether the original casacore files can be restored from the native HDF5 file.
    pub restorable: bool,
}

impl SpaceUsage {
    /// Measures how many bytes of a native HDF5 file its datasets take, how many the data to
    /// restore the original casacore files, and how many the rest. `None` if the source is not a
    /// native HDF5 file.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn of(source: &Source) -> Result<Option<Self>> {
        let Some(native) = source.tables.iter().find_map(SourceTable::native) else { return Ok(None) };
        let add = || -> Result<Self> {
            let mut usage = SpaceUsage { file: native.file_bytes()?, ..SpaceUsage::default() };
            add_datasets(&native.root()?, &mut usage, 0)?;
            let known = usage.datasets + usage.recipes + usage.literals;
            usage.other = usage.file.saturating_sub(known);
            Ok(usage)
        };
        add().with_context(|| source.place.clone()).map(Some)
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
