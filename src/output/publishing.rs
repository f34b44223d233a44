//! How a written output gets its final name: what happens to an existing target, and when the bytes
//! are made durable.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Action of a call whose target exists already: fail, or replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// An existing target makes the call fail with [`ErrorKind::Exists`](crate::ErrorKind::Exists)
    /// before it writes anything.
    #[default]
    Fail,
    /// The new file or table takes the name of the existing one in one step, once it is complete. A
    /// directory is replaced only if it is a table.
    Replace,
}

impl IfExists {
    pub(crate) fn replaces(self) -> bool {
        self == IfExists::Replace
    }
}

/// When an output is made durable (`fsync`). The final name always appears in one step and never
/// for a half-written output; the policies differ in the harm that a power failure can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// An output is never made durable, as with `cp`: a power failure can leave it empty or damaged
    /// until the system has written it to the disk, usually about half a minute later.
    Never,
    /// An output is made durable once, before it gets its final name.
    End,
    /// An output is made durable before it gets its final name, and the system is asked to write it
    /// to the disk while it is written, so that little is left to do at the end.
    #[default]
    Behind,
}

impl SyncPolicy {
    /// Whether the system is asked to write an output to the disk while it is written.
    pub(crate) fn is_behind(self) -> bool {
        self == SyncPolicy::Behind
    }
}

impl FromStr for SyncPolicy {
    type Err = Error;

    /// `never`; `end`, once the output is complete; `behind`, also while it is written. Else
    /// `Usage`.
    fn from_str(word: &str) -> Result<Self> {
        match word {
            "never" => Ok(SyncPolicy::Never),
            "end" => Ok(SyncPolicy::End),
            "behind" => Ok(SyncPolicy::Behind),
            _ => Err(Error::usage(format!("{word:?} is not one of \"never\", \"end\", \"behind\""))),
        }
    }
}

impl fmt::Display for SyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SyncPolicy::Never => "never",
            SyncPolicy::End => "end",
            SyncPolicy::Behind => "behind",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Publishing {
    pub(crate) if_exists: IfExists,
    pub(crate) sync: SyncPolicy,
}

impl From<IfExists> for Publishing {
    fn from(if_exists: IfExists) -> Self {
        Publishing { if_exists, sync: SyncPolicy::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for word in ["never", "end", "behind"] {
            assert_eq!(word.parse::<SyncPolicy>().unwrap().to_string(), word);
        }
        assert!("always".parse::<SyncPolicy>().is_err());
    }
}
