//! The error type of the library: what kind of failure, where, and what was expected.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of an [`Error`], by which a caller can decide what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused or failed; retry, or fix the system.
    Io,
    /// The disk is full, or a quota is exhausted.
    NoSpace,
    /// The bytes contradict the format: the file is damaged or is something else.
    Format,
    /// The source is legal, but has something that this library does not implement.
    Unsupported,
    /// The source needs more memory, nesting or indirection than the limits allow. They are
    /// constants, far above what telescopes write: the source is damaged, or made to exhaust its
    /// reader. The message names the limit.
    Limit,
    /// The call itself is wrong: an argument is out of range or contradicts another.
    Usage,
    /// The requested file, table, column or object does not exist.
    NotFound,
    /// The target of the call exists already.
    Exists,
    /// Another process holds the lock on the table or file.
    Locked,
    /// The call was cancelled, by a [`CancelToken`](crate::CancelToken) or
    /// [`Progress`](crate::Progress), and has removed its unfinished output, so that it can be
    /// repeated.
    Interrupted,
}

/// One step on the way to an error: the file, table, column, row or byte at which it happened.
///
/// [`Error::contexts`] lists them, so that a caller can skip a damaged column, say, without parsing
/// the message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Context {
    /// A file or directory in which the error happened, as the caller named it.
    Path(PathBuf),
    /// A file in which the error happened: one of a table, of an archive or of another container of
    /// files.
    Member {
        /// Name of the file in its table, archive or other container of files, such as `table.f3`.
        file: String,
        /// Type of the data manager that reads the file, if it is known: `StandardStMan`.
        manager: Option<String>,
    },
    /// The table in which the error happened: `.` for the main table (`MAIN` in HDF5 files that are
    /// being written), `ANTENNA` for a subtable, or the path of another table that a column's
    /// engine reads.
    Table(String),
    /// A subtable that cannot be opened, named by the keywords that lead to it, such as `ANTENNA`
    /// or `A/B`.
    Subtable(String),
    /// A column of a table, in which the error happened.
    Column {
        /// The table that the column belongs to: `.` for the main table, otherwise the name of the
        /// subtable, such as `ANTENNA`; empty if the call reads only one table.
        table: String,
        /// Name of the column in which the error happened.
        column: String,
    },
    /// The row in which the error happened, counted from 0.
    Row(u64),
    /// A structure of a file in which the error happened, and where it begins.
    Offset {
        /// Name of the structure (part of a file) in which the error happened, as the file's format
        /// calls it: `index`, `TableDesc`.
        structure: String,
        /// Offset in bytes of the structure in which the error happened, from the start of the
        /// file, or of the enclosing object if only this offset is known.
        offset: u64,
    },
    /// A step on the way to an error, in words: one that is not a file, table, column, row or
    /// offset.
    Other(String),
}

impl Context {
    #[doc(hidden)]
    pub fn path(path: impl AsRef<Path>) -> Self {
        Context::Path(path.as_ref().to_path_buf())
    }

    /// A file of a table, of an archive or of another container.
    #[doc(hidden)]
    pub fn member(file: impl Into<String>) -> Self {
        Context::Member { file: file.into(), manager: None }
    }

    /// A file of a table, with the type of the data manager that reads it.
    #[doc(hidden)]
    pub fn managed(file: impl Into<String>, manager: impl fmt::Display) -> Self {
        Context::Member { file: file.into(), manager: Some(manager.to_string()) }
    }

    #[doc(hidden)]
    pub fn table(name: impl fmt::Display) -> Self {
        Context::Table(name.to_string())
    }

    /// A column without the table's name, for a call that reads only one table.
    #[doc(hidden)]
    pub fn column(name: impl fmt::Display) -> Self {
        Context::Column { table: String::new(), column: name.to_string() }
    }

    /// A structure of a file that begins at `offset`; a negative one, of a damaged file, is kept as
    /// text.
    #[doc(hidden)]
    pub fn offset(structure: impl fmt::Display, offset: impl TryInto<u64> + fmt::Display + Copy) -> Self {
        match offset.try_into() {
            Ok(offset) => Context::Offset { structure: structure.to_string(), offset },
            Err(_) => Context::Other(format!("{structure} at byte {offset}")),
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Context::Path(path) => shown_path(path),
            Context::Member { file, manager: None } => file.clone(),
            Context::Member { file, manager: Some(manager) } => format!("{file} ({manager})"),
            Context::Table(name) => format!("table {name}"),
            Context::Subtable(name) => format!("subtable {name}"),
            Context::Column { table, column } if matches!(table.as_str(), "" | ".") => format!("column {column}"),
            Context::Column { table, column } => format!("subtable {table}: column {column}"),
            Context::Row(row) => format!("row {row}"),
            Context::Offset { structure, offset } => format!("{structure} at byte {offset}"),
            Context::Other(text) => text.clone(),
        };
        f.write_str(&one_line(text))
    }
}

impl From<&Path> for Context {
    fn from(path: &Path) -> Self {
        Context::Path(path.to_path_buf())
    }
}

impl From<&PathBuf> for Context {
    fn from(path: &PathBuf) -> Self {
        Context::Path(path.clone())
    }
}

impl From<&str> for Context {
    fn from(text: &str) -> Self {
        Context::Other(text.into())
    }
}

impl From<String> for Context {
    fn from(text: String) -> Self {
        Context::Other(text)
    }
}

impl From<std::borrow::Cow<'_, str>> for Context {
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        Context::Other(text.into_owned())
    }
}

impl From<&String> for Context {
    fn from(text: &String) -> Self {
        Context::Other(text.clone())
    }
}

impl From<std::path::Display<'_>> for Context {
    fn from(path: std::path::Display<'_>) -> Self {
        Context::Path(path.to_string().into())
    }
}

impl From<&Context> for Context {
    fn from(context: &Context) -> Self {
        context.clone()
    }
}

/// The error of this library: its kind, the steps that led to it (file, column, row …; outermost
/// first) and a sentence that describes the failure.
///
/// Printed as
/// `a.ms: table.f3 (StandardStMan): index at byte 4196: last row 9000, table has 120 rows`.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    /// Innermost first; messages print them in reverse.
    contexts: Vec<Context>,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    /// The data are in another file, which is not opened.
    elsewhere: bool,
    refused: bool,
}

/// The result of every fallible function in this crate; the error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with a sentence that says what was found and what was expected.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = one_line(message.into());
        Error(Box::new(Inner { kind, contexts: Vec::new(), message, source: None, elsewhere: false, refused: false }))
    }

    #[doc(hidden)]
    pub fn format(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format, message)
    }

    #[doc(hidden)]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// An `Unsupported` error: the data are in another file, to which the opened file refers, and
    /// which is not opened. No caller may go on without it, see
    /// [`may_be_left_out`](Self::may_be_left_out).
    #[doc(hidden)]
    pub fn elsewhere(message: impl Into<String>) -> Self {
        let mut error = Self::unsupported(message);
        error.0.elsewhere = true;
        error
    }

    /// An `Unsupported` error about a part of a file that a user has edited to what cannot be
    /// converted. No caller may go on without the part, see
    /// [`may_be_left_out`](Self::may_be_left_out).
    #[doc(hidden)]
    pub fn refused(message: impl Into<String>) -> Self {
        let mut error = Self::unsupported(message);
        error.0.refused = true;
        error
    }

    /// The same error about something that no caller may go on without, see
    /// [`may_be_left_out`](Self::may_be_left_out).
    #[doc(hidden)]
    pub fn not_left_out(mut self) -> Self {
        self.0.refused = true;
        self
    }

    /// Whether a conversion may leave out the column: the file is sound, but the form of the column
    /// is not supported. False for [`elsewhere`](Self::elsewhere) and [`refused`](Self::refused):
    /// elements are not lost silently.
    #[doc(hidden)]
    pub fn may_be_left_out(&self) -> bool {
        self.kind() == ErrorKind::Unsupported && !self.0.elsewhere && !self.0.refused
    }

    /// Whether a source is damaged or incomplete, not that the call itself cannot continue.
    #[doc(hidden)]
    pub fn is_damage(&self) -> bool {
        matches!(self.kind(), ErrorKind::Format | ErrorKind::NotFound | ErrorKind::Limit | ErrorKind::Io)
    }

    #[doc(hidden)]
    pub fn leads_elsewhere(&self) -> bool {
        self.0.elsewhere
    }

    #[doc(hidden)]
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    #[doc(hidden)]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    #[doc(hidden)]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// [`source`](StdError::source) returns the cause.
    #[doc(hidden)]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// Adds a step to the context of an error, as the outermost one.
    ///
    /// The outermost step is not repeated.
    #[must_use]
    pub fn context(mut self, context: impl Into<Context>) -> Self {
        let context = context.into();
        // an error inside a file may name the file already, as a path or as text
        if self.0.contexts.last().is_none_or(|last| last.to_string() != context.to_string()) {
            self.0.contexts.push(context);
        }
        self
    }

    /// Adds a file as the outermost context, unless the context has a path, such as that of a
    /// conversion's target.
    #[doc(hidden)]
    pub fn of_file(self, place: &Context) -> Self {
        let names_a_path = self.0.contexts.iter().any(|context| matches!(context, Context::Path(_)));
        if names_a_path { self } else { self.context(place) }
    }

    /// The steps on the way to the error, outermost first: path, file of the table, structure and
    /// offset.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        self.0.contexts.iter().rev()
    }

    /// The sentence that describes the failure, without the context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Turns a `Usage` error into `Format`: the wrong argument was read from a file, which is
    /// therefore inconsistent.
    #[doc(hidden)]
    pub fn blame_source(mut self) -> Self {
        if self.0.kind == ErrorKind::Usage {
            self.0.kind = ErrorKind::Format;
        }
        self
    }

    /// The kind of the failure, by which a caller can decide what to do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

/// Formats a path for messages. A URL is shown without user name, password and query: the query may
/// be a signature with which every reader of the message could open the file.
pub fn shown_path(path: &Path) -> String {
    let text = path.display().to_string();
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https")) else {
        return text;
    };
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
    let (host, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("…@{host}"));
    format!("{scheme}://{host}{path}{query}")
}

/// Leaves out the name of the main table, `.`.
pub fn column_context(table: &str, column: &str) -> Context {
    Context::Column { table: table.to_owned(), column: column.to_owned() }
}

/// Characters of a printed context or sentence; the middle of a longer one becomes `…`.
const MAX_CHARACTERS: usize = 500;

/// Names from damaged files may be of any length, with line ends and terminal commands.
fn one_line(text: String) -> String {
    let count = text.chars().count();
    if count <= MAX_CHARACTERS && !text.chars().any(char::is_control) {
        return text;
    }
    let mut line = String::new();
    for (number, c) in text.chars().enumerate() {
        match number {
            _ if number == MAX_CHARACTERS / 2 && count > MAX_CHARACTERS => line.push('…'),
            _ if number > MAX_CHARACTERS / 2 && number + MAX_CHARACTERS / 2 < count => {}
            _ if c.is_control() => line.extend(c.escape_default()),
            _ => line.push(c),
        }
    }
    line
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for context in self.contexts() {
            write!(f, "{context}: ")?;
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
    /// Skips a cause whose text ends the message already, so that a printed chain has it once.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let mut cause = self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static));
        while let Some(found) = cause.filter(|cause| self.0.message.ends_with(&one_line(cause.to_string()))) {
            cause = found.source();
        }
        cause
    }
}

impl From<std::io::Error> for Error {
    /// `NotFound` also for a path through a file, too many symbolic links, or a name that no file
    /// can have, as damaged files contain. A full disk or quota is `NoSpace`.
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        let kind = match error.kind() {
            // a name with a NUL, which the system refuses as invalid input, belongs to no file
            Os::NotFound | Os::NotADirectory | Os::InvalidFilename | Os::InvalidInput => ErrorKind::NotFound,
            _ if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => ErrorKind::NotFound,
            Os::StorageFull | Os::QuotaExceeded => ErrorKind::NoSpace,
            Os::AlreadyExists => ErrorKind::Exists,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string()).caused_by(error)
    }
}

/// Adds context (file, column, row …) to the error of a result.
pub trait ResultExt<T> {
    fn context(self, context: impl Into<Context>) -> Result<T>;
    fn with_context<C: Into<Context>>(self, context: impl FnOnce() -> C) -> Result<T>;

    /// Innermost first.
    fn in_contexts(self, contexts: &[Context]) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for Result<T, E> {
    fn context(self, context: impl Into<Context>) -> Result<T> {
        self.map_err(|error| error.into().context(context))
    }

    fn with_context<C: Into<Context>>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|error| error.into().context(context()))
    }

    fn in_contexts(self, contexts: &[Context]) -> Result<T> {
        self.map_err(|error| contexts.iter().fold(error.into(), Error::context))
    }
}

#[cfg(any(test, feature = "internals"))]
pub trait Fails {
    /// Asserts an error of `kind` whose text ends with `words`.
    fn fails(self, kind: ErrorKind, words: &str);
}

#[cfg(any(test, feature = "internals"))]
impl<T> Fails for Result<T> {
    #[track_caller]
    fn fails(self, kind: ErrorKind, words: &str) {
        let Err(error) = self else { panic!("no error, expected {kind:?}: {words}") };
        assert_eq!((error.kind(), error.to_string().ends_with(words)), (kind, true), "{error}, expected {words}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_outermost_first() {
        let error = Error::format("9000 rows claimed")
            .context(Context::offset("index", 4196u64))
            .context("table.f3")
            .context("a.ms");
        assert_eq!(error.to_string(), "a.ms: table.f3: index at byte 4196: 9000 rows claimed");
        assert_eq!(error.kind(), ErrorKind::Format);
        assert_eq!(
            error.context("a.ms").context("b.ms").to_string(),
            "b.ms: a.ms: table.f3: index at byte 4196: 9000 rows claimed"
        );
    }

    #[test]
    fn contexts_print_as_they_always_did() {
        for (context, text) in [
            (Context::path("a.ms"), "a.ms"),
            (Context::path("what?.ms"), "what?.ms"),
            (Context::path("https://host/a.h5?X-Amz-Signature=secret"), "https://host/a.h5?…"),
            (Context::path("http://me:secret@host/a@b.h5"), "http://…@host/a@b.h5"),
            (Context::managed("table.f3", "StandardStMan"), "table.f3 (StandardStMan)"),
            (Context::member("table.dat"), "table.dat"),
            (Context::table("."), "table ."),
            (Context::Subtable("FEED".into()), "subtable FEED"),
            (column_context(".", "DATA"), "column DATA"),
            (column_context("FEED", "TIME"), "subtable FEED: column TIME"),
            (Context::Row(7), "row 7"),
            (Context::offset("array", -8i64), "array at byte -8"),
        ] {
            assert_eq!(context.to_string(), text);
        }
    }

    #[test]
    fn a_cause_is_printed_once() {
        let text = |error: &Error| {
            let causes = std::iter::successors(error.source(), |&cause| cause.source());
            causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
        };
        let missing = || std::io::Error::from_raw_os_error(nix::errno::Errno::ENOENT as i32);
        assert_eq!(text(&Error::from(missing()).context("a.ms")), "a.ms: No such file or directory (os error 2)");
        let outer = Error::format("not a table").caused_by(Error::from(missing()));
        assert_eq!(text(&outer), "not a table: No such file or directory (os error 2)");
        assert!(outer.source().is_some_and(|source| source.is::<Error>()));
    }

    #[test]
    fn text_from_files_stays_in_one_short_line() {
        let error = Error::format(format!("object {}", "a\n\x1b".repeat(9999))).context("x\r");
        let text = error.to_string();
        assert!(text.starts_with("x\\r: object a\\n\\u{1b}a"), "{text}");
        assert!(text.contains('…') && text.len() < 6 * MAX_CHARACTERS && !text.contains('\n'), "{text}");
        let long = "é".repeat(MAX_CHARACTERS);
        assert_eq!(Error::format(long.clone()).to_string(), long);
    }
}
