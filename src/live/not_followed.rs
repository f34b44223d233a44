//! The parts of a followed table that a live file does not hold: a root attribute of the file.
//! docs/reference/live.md, "Following".

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, File, Group};
use crate::native::NOT_FOLLOWED;
use crate::value::Values;

/// The parts of a table that the live file which `follow` made of it does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotFollowed {
    /// Path of the followed table, as it was given.
    pub source: String,
    /// A sentence for each part: `MAIN: column X: why`.
    pub parts: Vec<String>,
}

impl NotFollowed {
    pub(super) fn new(source: &Path, parts: &[String]) -> Self {
        NotFollowed { source: source.display().to_string(), parts: parts.to_vec() }
    }

    pub(super) fn write(&self, root: &Group) -> Result<()> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string(self).map_err(|error| Error::format(error.to_string()))?;
        root.set_attribute(NOT_FOLLOWED, &Attribute::string(text))
    }

    /// Nothing without the attribute.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let attribute = File::open_shared(path)?.root()?.attribute(NOT_FOLLOWED)?;
        let Some(Values::String(texts)) = attribute.as_ref().map(Attribute::values) else { return Ok(Self::default()) };
        let text = texts.first().map_or(&b""[..], |text| text);
        serde_json::from_slice(text).map_err(|error| Error::format(error.to_string())).context(NOT_FOLLOWED)
    }
}
