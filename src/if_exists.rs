//! What becomes of a file that is already at the target.

/// What a call does if there is already something at its target.
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
