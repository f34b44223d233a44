//! Links of groups.

/// A link, unresolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// A link to an object of the same file.
    Hard,
    /// A path in the same file.
    Soft(String),
    /// A link to an object of another file.
    External {
        /// Name of the file, as the link has it.
        file: String,
        /// Path in that file.
        path: String,
    },
    /// A link of this class, 65 to 255, which only a program that registers the class can follow.
    UserDefined(i32),
}

/// The object that a link leads to, or why it is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkKind {
    Group,
    Dataset,
    /// A path in the same file, which may lead nowhere.
    Soft,
    /// Another file that must not be opened, or a user-defined class.
    Elsewhere,
    /// A committed (named) type.
    Other,
    /// An object that cannot be opened.
    Damaged,
}
