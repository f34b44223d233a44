//! Reports how far a long call has come, and asks whether it should stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// The present activity of a long call: conversion, packing …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The call reads the source and writes the target.
    Writing,
    /// The call compares what was written with the source.
    Comparing,
    /// The call makes the target durable (fsync), before the target gets its final name.
    Flushing,
}

impl Phase {
    /// Name of the phase of a call for people, such as `writing`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Writing => "writing",
            Phase::Comparing => "comparing",
            Phase::Flushing => "flushing",
        }
    }
}

/// Receives reports of a long call: conversion, packing, comparison. The type `()` implements it,
/// and ignores all reports.
pub trait Progress: Sync {
    /// Reports that about `bytes` bytes will be written. Calls that write a target report this
    /// before they create anything.
    fn expect(&self, _bytes: u64) {}

    /// Reports that `bytes` more bytes of the column or file `part` of the table `table` have been
    /// written or compared.
    fn advance(&self, _bytes: u64, _table: &str, _part: &str) {}

    /// Reports that the call has entered another phase. Before the first of these reports the call
    /// opens the source and plans its work.
    fn phase(&self, _phase: Phase) {}

    /// Whether the call should stop. The call asks this between blocks of data, from any thread; if
    /// true, it returns [`ErrorKind::Interrupted`] and removes what it has written. See
    /// [`CancelToken`].
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}

impl dyn Progress + '_ {
    /// Fails with `Interrupted` after a cancellation.
    pub fn go_on(&self) -> Result<()> {
        if self.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }
}

pub fn cancelled() -> Error {
    Error::new(ErrorKind::Interrupted, "interrupted")
}

/// A request to stop a long call from another thread, or from a signal handler. Clones share the
/// request.
///
/// The call returns [`ErrorKind::Interrupted`] before its next block of data. It has then removed
/// what it has written: the target is as it was before.
///
/// ```
/// use ctds::CancelToken;
///
/// let token = CancelToken::new();
/// let handle = token.clone();
/// let stop = std::thread::spawn(move || handle.cancel());
/// # stop.join().unwrap();
///
/// assert!(token.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Makes a token that does not stop any call yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks all calls that have the token or a clone of it to stop. This cannot be taken back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) was called on the token or a clone of it.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Combines the token with `progress`, as one argument of a call: the call reports to
    /// `progress`, and stops when the token is cancelled.
    pub fn with<'a>(&'a self, progress: &'a dyn Progress) -> Cancellable<'a> {
        Cancellable { token: self, progress }
    }

    /// Fails with `Interrupted` after a cancellation.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }
}

/// Ignores reports; stops the call when the token is cancelled.
impl Progress for CancelToken {
    fn is_cancelled(&self) -> bool {
        CancelToken::is_cancelled(self)
    }
}

/// A receiver of progress reports with a token that can stop the call, from [`CancelToken::with`].
#[derive(Clone, Copy)]
pub struct Cancellable<'a> {
    token: &'a CancelToken,
    progress: &'a dyn Progress,
}

impl Progress for Cancellable<'_> {
    fn expect(&self, bytes: u64) {
        self.progress.expect(bytes);
    }

    fn advance(&self, bytes: u64, table: &str, part: &str) {
        self.progress.advance(bytes, table, part);
    }

    fn phase(&self, phase: Phase) {
        self.progress.phase(phase);
    }

    fn is_cancelled(&self) -> bool {
        self.token.is_cancelled() || self.progress.is_cancelled()
    }
}
