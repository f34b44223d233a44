//! How what was written gets its final name.

use crate::error::{Error, Result};

/// What a call does with an existing target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// The call fails with [`ErrorKind::Exists`](crate::ErrorKind::Exists) before it writes anything.
    #[default]
    Fail,
    /// The new file or table takes the name in one step, once it is whole. A directory is replaced only if it is a table.
    Replace,
}

impl IfExists {
    pub(crate) fn replaces(self) -> bool {
        self == IfExists::Replace
    }
}

/// When an output is made durable (`fsync`). A name always appears in one step, and never for a half-written output; what
/// differs is what a power failure can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// Never, as with `cp`: after a power failure the output may be empty or damaged for as long as the system keeps
    /// it in memory, half a minute as a rule.
    Never,
    /// Once, before the output gets its name.
    End,
    /// Also from time to time while it is written, so that little is left to do at the end.
    #[default]
    Behind,
}

impl SyncPolicy {
    /// Parses a policy: `never`, `end` or `behind`.
    ///
    /// # Errors
    /// `Usage` for other words.
    pub fn parse(word: &str) -> Result<Self> {
        match word {
            "never" => Ok(SyncPolicy::Never),
            "end" => Ok(SyncPolicy::End),
            "behind" => Ok(SyncPolicy::Behind),
            _ => Err(Error::usage(format!("{word:?} is not one of \"never\", \"end\", \"behind\""))),
        }
    }
}

/// Both options of publishing an output.
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
        let found: Vec<_> = ["never", "end", "behind"].iter().map(|word| SyncPolicy::parse(word).unwrap()).collect();
        assert_eq!(found, [SyncPolicy::Never, SyncPolicy::End, SyncPolicy::Behind]);
        assert!(SyncPolicy::parse("always").is_err());
    }
}
