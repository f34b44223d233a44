//! Documents of verbs about the program itself.

use serde::{Deserialize, Serialize};

/// The document of `completions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completions {
    /// Name under which the shell looks for the script.
    pub file: String,
    /// The script.
    pub script: String,
}

/// The document of `generate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generate {
    /// Paths of the files that were written.
    pub files: Vec<String>,
}
