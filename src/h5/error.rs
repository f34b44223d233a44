//! Converts libhdf5's error stacks to this crate's errors, which have one sentence and a kind.

use std::cell::RefCell;
use std::io;

use super::lock::{being_written, locked};
use crate::error::{Error, ErrorKind, Result};

thread_local! {
    /// Error of the last read by this program's own file driver (for remote files) on this thread.
    static CAUSE: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// The driver's error, which libhdf5's stack lacks; `None` after a read that succeeded.
#[cfg_attr(not(feature = "static-hdf5"), expect(dead_code, reason = "no source is read through that library"))]
pub(super) fn note_cause(cause: Option<Error>) {
    CAUSE.set(cause);
}

/// Parts of names of functions that write: their failures get the kind `Io`, others `Format`.
const WRITING: [&str; 8] = ["write", "create", "flush", "close", "set_", "attach", "delete", "unlink"];

pub(super) trait Hdf5Result<T> {
    fn h5(self) -> Result<T>;
}

impl<T> Hdf5Result<T> for hdf5::Result<T> {
    fn h5(self) -> Result<T> {
        self.map_err(from_hdf5)
    }
}

/// Innermost entry: cause; outermost: operation. An error of `note_cause` goes first, then errno.
pub(super) fn from_hdf5(error: hdf5::Error) -> Error {
    if let Some(cause) = CAUSE.take() {
        return cause;
    }
    let Some(stack) = error.stack() else { return Error::usage(format!("HDF5: {error}")) };
    let (Some(outer), Some(inner)) = (stack.first(), stack.last()) else {
        return Error::new(ErrorKind::Io, "HDF5: a call failed and gave no reason");
    };
    if let Some(os) = stack.iter().find_map(|frame| errno(frame.desc())) {
        let os = io::Error::from_raw_os_error(os);
        return match os.kind() {
            io::ErrorKind::WouldBlock => locked(),
            _ => Error::from(os),
        };
    }
    // the cause lies deeper, in the search for a plugin
    if let Some(frame) = stack.iter().find(|frame| frame.desc().contains("is not registered")) {
        return Error::unsupported(format!("HDF5: {}", frame.desc()));
    }
    if inner.desc().contains("already open for") {
        return being_written();
    }
    let kind = if stack.contains_minor(hdf5::MinorErrorCode::NotHdf5) {
        return Error::format("the file is not an HDF5 file");
    } else if WRITING.iter().any(|part| outer.func().contains(part)) {
        ErrorKind::Io
    } else {
        ErrorKind::Format
    };
    Error::new(kind, format!("HDF5: {} ({})", inner.desc(), outer.func()))
}

fn errno(text: &str) -> Option<i32> {
    let digits = text.split_once("errno = ")?.1;
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_in_a_frame() {
        assert_eq!(errno("file write failed: fd = 3, errno = 28, error message = 'No space left on device'"), Some(28));
        assert_eq!(errno("errno = 5"), Some(5));
        assert_eq!(errno("no number"), None);
    }
}
