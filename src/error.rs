//! The one error type: what kind of failure, where, and what was expected.

use std::error::Error as StdError;
use std::fmt;

/// What the caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused or failed; retry, or fix the system.
    Io,
    /// The disk is full.
    NoSpace,
    /// The bytes contradict the format: the file is damaged or is something else.
    Format,
    /// Legal, but not implemented here.
    Unsupported,
    /// More memory, nesting or indirection than the limits allow.
    Limit,
    /// The call is wrong.
    Usage,
    /// What was asked for is not there.
    NotFound,
    /// The target exists already.
    Exists,
    /// Another process holds the lock.
    Locked,
    /// The operation was told to stop.
    Interrupted,
}

/// A failure: its kind, its place (outermost first) and one sentence.
///
/// Printed as `a.ms: table.f3 (StandardStMan): index at byte 4196: last row 9000, table has 120 rows`.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    /// Innermost first; printed in reverse.
    place: Vec<String>,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with a sentence that says what was found and what was expected.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, place: Vec::new(), message: one_line(message.into()), source: None }))
    }

    pub(crate) fn format(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Keeps the error underneath.
    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the place, outside of those already known: file, table, column …
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        let place = one_line(place.to_string());
        // what is opened inside a file may have named it
        if self.0.place.last() != Some(&place) {
            self.0.place.push(place);
        }
        self
    }

    /// The same error where arguments came from a file: what would be a wrong call is a file that contradicts itself.
    pub(crate) fn of_input(mut self) -> Self {
        if self.0.kind == ErrorKind::Usage {
            self.0.kind = ErrorKind::Format;
        }
        self
    }

    /// The same error once more, without the error underneath.
    pub(crate) fn again(&self) -> Self {
        let Inner { kind, place, message, .. } = &*self.0;
        Error(Box::new(Inner { kind: *kind, place: place.clone(), message: message.clone(), source: None }))
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

/// Longest part of an error in characters.
const MOST_CHARACTERS: usize = 500;

/// Names from damaged files may be of any length and hold line ends and terminal commands.
fn one_line(text: String) -> String {
    let count = text.chars().count();
    if count <= MOST_CHARACTERS && !text.chars().any(char::is_control) {
        return text;
    }
    let mut line = String::new();
    for (number, c) in text.chars().enumerate() {
        match number {
            _ if number == MOST_CHARACTERS / 2 && count > MOST_CHARACTERS => line.push('…'),
            _ if number > MOST_CHARACTERS / 2 && number + MOST_CHARACTERS / 2 < count => {}
            _ if c.is_control() => line.extend(c.escape_default()),
            _ => line.push(c),
        }
    }
    line
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.0.place.iter().rev() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        let kind = match error.kind() {
            // names in damaged files may be no names at all
            Os::NotFound | Os::NotADirectory | Os::InvalidFilename | Os::InvalidInput => ErrorKind::NotFound,
            _ if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => ErrorKind::NotFound,
            Os::StorageFull | Os::QuotaExceeded => ErrorKind::NoSpace,
            Os::AlreadyExists => ErrorKind::Exists,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string()).caused_by(error)
    }
}

/// Adds the place to the error of a result.
pub(crate) trait Place<T> {
    fn at(self, place: impl fmt::Display) -> Result<T>;
    fn at_with<P: fmt::Display>(self, place: impl FnOnce() -> P) -> Result<T>;
}

impl<T, E: Into<Error>> Place<T> for Result<T, E> {
    fn at(self, place: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().at(place))
    }

    fn at_with<P: fmt::Display>(self, place: impl FnOnce() -> P) -> Result<T> {
        self.map_err(|error| error.into().at(place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_outermost_first() {
        let error = Error::format("9000 rows claimed").at("index at byte 4196").at("table.f3").at("a.ms");
        assert_eq!(error.to_string(), "a.ms: table.f3: index at byte 4196: 9000 rows claimed");
        assert_eq!(error.kind(), ErrorKind::Format);
        assert_eq!(
            error.at("a.ms").at("b.ms").to_string(),
            "b.ms: a.ms: table.f3: index at byte 4196: 9000 rows claimed"
        );
    }

    #[test]
    fn text_from_files_stays_in_one_short_line() {
        let error = Error::format(format!("object {}", "a\n\x1b".repeat(9999))).at("x\r");
        let text = error.to_string();
        assert!(text.starts_with("x\\r: object a\\n\\u{1b}a"), "{text}");
        assert!(text.contains('…') && text.len() < 6 * MOST_CHARACTERS && !text.contains('\n'), "{text}");
        let long = "é".repeat(MOST_CHARACTERS);
        assert_eq!(Error::format(long.clone()).to_string(), long);
    }
}
