//! Runs verbs (subcommands) of the `h5bridge` command line within the process of the Python
//! interpreter.

use std::ffi::OsString;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{CancelToken, Progress};
use h5bridge::Caller;
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::others;

/// Time between two checks for a signal, in the Python thread that waits until a verb (subcommand
/// of `h5bridge`) has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Shortest time between two calls of the user's progress function.
const REPORT: Duration = Duration::from_millis(100);

/// Runs the command line `args`, whose first word is the name of the program, and returns its exit
/// code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    let interpreter: OsString = py.import("sys")?.getattr("executable")?.extract()?;
    let program = vec![interpreter, "-m".into(), "h5bridge".into()];
    Ok(py.detach(|| h5bridge::run_as(program, args).code()))
}

/// Runs a verb, given as the words of its command line. Returns its exit code and the document that
/// `--json` prints. `progress` is a Python function that is called with the progress, or None.
///
/// `progress(done_bytes, total_bytes, table, part)` is called at most ten times a second, in this
/// thread. An exception of it, KeyboardInterrupt included, ends the verb; unfinished output is
/// removed before it is raised here.
#[pyfunction]
#[pyo3(signature = (words, progress=None))]
pub(crate) fn call(py: Python<'_>, words: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<(u8, String)> {
    others::look(py);
    let counts = Arc::new(Counts::default());
    let caller = Caller { token: CancelToken::new(), progress: counts.clone() };
    let token = caller.token.clone();
    let result = waited_for(py, move || h5bridge::call(words, caller), &token, &counts, progress.as_ref())?;
    let (status, document) = result.or_raise(py)?;
    Ok((status.code(), document))
}

/// Runs `work` in a new thread and returns its result; the calling Python thread handles signals.
/// An exception raised by a signal handler or by `progress` cancels `token`; it is raised after
/// `work` has ended, or at once if `work` has not begun to write.
pub(crate) fn waited_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    token: &CancelToken,
    counts: &Counts,
    progress: Option<&Py<PyAny>>,
) -> PyResult<T> {
    let (done, wait) = channel();
    let wait = Mutex::new(wait);
    let lock = || wait.lock_unpoisoned();
    std::thread::spawn(move || done.send(work()));
    let mut reported = Instant::now();
    loop {
        match py.detach(|| lock().recv_timeout(LOOK)) {
            Ok(result) => {
                report(py, counts, progress)?;
                return Ok(result);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(pyo3::exceptions::PyRuntimeError::new_err(
                    "the thread of the verb has ended without a result",
                ));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        others::look(py);
        let mut heard = py.check_signals();
        if heard.is_ok() && reported.elapsed() >= REPORT {
            reported = Instant::now();
            heard = report(py, counts, progress);
        }
        if let Err(error) = heard {
            token.cancel();
            if counts.has_begun() {
                py.detach(|| lock().recv().ok());
            }
            return Err(error);
        }
    }
}

fn report(py: Python<'_>, counts: &Counts, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let Some((done, total, table, part)) = counts.news() else { return Ok(()) };
    progress.call1(py, (done, total, table, part)).map(drop)
}

/// Progress of a verb, which the thread that runs it updates and the waiting Python thread reads.
#[derive(Default)]
pub(crate) struct Counts(Mutex<State>);

#[derive(Default)]
struct State {
    begun: bool,
    changed: bool,
    done: u64,
    total: u64,
    table: String,
    part: String,
}

impl Counts {
    /// Whether the subcommand of `h5bridge` has begun its work, and may have written something.
    fn has_begun(&self) -> bool {
        self.0.lock_unpoisoned().begun
    }

    /// Progress that was not yet reported: bytes done, bytes in all, name of the table, and name of
    /// its column or file that is being processed; `None` if nothing is new.
    fn news(&self) -> Option<(u64, u64, String, String)> {
        let mut state = self.0.lock_unpoisoned();
        std::mem::take(&mut state.changed).then(|| (state.done, state.total, state.table.clone(), state.part.clone()))
    }

    fn set(&self, set: impl FnOnce(&mut State)) {
        let mut state = self.0.lock_unpoisoned();
        state.begun = true;
        set(&mut state);
    }
}

impl Progress for Counts {
    fn expect(&self, bytes: u64) {
        self.set(|state| (state.total, state.changed) = (bytes, true));
    }

    fn advance(&self, bytes: u64, table: &str, part: &str) {
        self.set(|state| {
            state.done += bytes;
            state.changed = true;
            if state.table != table {
                table.clone_into(&mut state.table);
            }
            if state.part != part {
                part.clone_into(&mut state.part);
            }
        });
    }

    fn is_cancelled(&self) -> bool {
        self.set(|_| {});
        false
    }
}
