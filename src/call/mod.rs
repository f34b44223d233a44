//! Options that the builders of all long calls share: progress, cancellation, existing targets,
//! flushing.

pub(crate) mod polling;
pub(crate) mod pool;

use crate::error::Result;
use crate::output::Publishing;
use crate::progress::{CancelToken, Progress};

/// Options of a long call: progress reports, cancellation, what happens to an existing target,
/// flushing to disk.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) cancel: Option<&'a CancelToken>,
    pub(crate) publishing: Publishing,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Call { progress: &(), cancel: None, publishing: Publishing::default() }
    }
}

impl Call<'_> {
    pub(crate) fn run<T>(&self, call: impl FnOnce(&dyn Progress) -> Result<T>) -> Result<T> {
        match self.cancel {
            Some(token) => call(&token.with(self.progress)),
            None => call(self.progress),
        }
    }
}

/// Defines the setters of the options in [`Call`] for a builder with a field `call`.
macro_rules! call_setters {
    () => {
        /// Sets the receiver of progress reports of the call.
        pub fn progress(mut self, progress: &'a dyn $crate::progress::Progress) -> Self {
            self.call.progress = progress;
            self
        }

        /// Sets a token with which another thread can stop the call. The call then returns
        /// `Interrupted` before its next block of data, and its target stays as it was before the
        /// call.
        pub fn cancel(mut self, token: &'a $crate::progress::CancelToken) -> Self {
            self.call.cancel = Some(token);
            self
        }
    };
    (target) => {
        $crate::call::call_setters!();

        /// Sets what happens if the file or directory that the call is to make exists already. By
        /// default the call fails with `Exists`.
        pub fn if_exists(mut self, if_exists: $crate::output::IfExists) -> Self {
            self.call.publishing.if_exists = if_exists;
            self
        }

        /// Sets when the output is made durable (fsync). Default:
        /// [`SyncPolicy::Behind`](crate::SyncPolicy::Behind): before it gets its final name, and
        /// the system is asked to write it to the disk before that.
        pub fn sync(mut self, sync: $crate::output::SyncPolicy) -> Self {
            self.call.publishing.sync = sync;
            self
        }
    };
}
pub(crate) use call_setters;

/// Defines the setters of a builder for how it opens the tables or files that it reads; the builder
/// has a field `open: OpenOptions`.
macro_rules! open_setters {
    () => {
        /// Sets how the tables or files that the call reads are opened and locked, such as the time
        /// to wait for a lock.
        pub fn open_options(mut self, options: OpenOptions) -> Self {
            self.open = options;
            self
        }
    };
    (native) => {
        $crate::call::open_setters!();

        /// Sets whether elements that an HDF5 source keeps in other files are read, if those are
        /// below the source's own directory. Default: false, such elements are an error.
        pub fn follow_external(mut self, follow: bool) -> Self {
            self.open.follow_external = follow;
            self
        }
    };
}
pub(crate) use open_setters;
