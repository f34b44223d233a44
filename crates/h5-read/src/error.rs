//! Errors, which say what is wrong, in which structure, at which byte of the file.

use std::fmt;
use std::io;

/// Result of reading a part of a file.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a part of a file could not be read.
///
/// ```
/// use h5_read::{ErrorKind, File};
///
/// let error = File::open(b"not HDF5".to_vec()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Damaged);
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    /// Outermost last.
    places: Vec<String>,
    message: String,
    source: Option<io::Error>,
}

/// Kinds of errors, to act upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The storage could not be read.
    Io,
    /// Bytes are not as the file format demands.
    Damaged,
    /// The file uses a part of the format that this crate does not read.
    Unsupported,
    /// The file is plausible, but larger than [`Limits`](crate::Limits) allow.
    Limit,
    /// The file has nothing of this name.
    Missing,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, places: Vec::new(), message: message.into(), source: None }))
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Damaged, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Adds an outer place: `object header at byte 800`.
    pub(crate) fn within(mut self, place: impl fmt::Display) -> Self {
        self.0.places.push(place.to_string());
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The reason, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Structures that lead to the place, outermost first: `group /MAIN`, `fractal heap at byte
    /// 1234`.
    pub fn places(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.places.iter().rev().map(String::as_str)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.places() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        let message = source.to_string();
        Error(Box::new(Inner { kind: ErrorKind::Io, places: Vec::new(), message, source: Some(source) }))
    }
}

pub(crate) trait Within<T> {
    fn within<P: fmt::Display>(self, place: impl FnOnce() -> P) -> Result<T>;
}

impl<T> Within<T> for Result<T> {
    fn within<P: fmt::Display>(self, place: impl FnOnce() -> P) -> Result<T> {
        self.map_err(|error| error.within(place()))
    }
}
