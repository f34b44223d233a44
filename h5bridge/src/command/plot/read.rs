//! Reads rows into the frames, the data of plots, until all rows or as many as `--max-read` allows
//! are read.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use ctds_hdf5::{Error, ErrorKind};
use ms_look::{Frame, Request, Session};

use crate::args::Global;
use crate::interrupt::Stop;
use crate::stderr;

/// Longest time of reading without a check for signals and a report of progress.
const STEP: Duration = Duration::from_millis(300);

/// How long `--no-lock` waits for a writer that is in the middle of a flush.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows are read once for all frames.
pub(super) fn frames(
    session: &mut Session,
    requests: &[Request],
    (source, global, stop): (&Path, &Global, &Stop),
) -> Result<Vec<Frame>> {
    let shows_progress = std::io::stderr().is_terminal() && !global.quiet && !global.json;
    session.set_budget(STEP / requests.len().max(1) as u32);
    let (patience, mut waiting) = (global.patience().unwrap_or(PATIENCE), Duration::ZERO);
    let read = |session: &mut Session, request: &Request| {
        session.frame(request).map_err(|error| error.context(source.display()))
    };
    let mut frames: Vec<Frame> = requests.iter().map(|request| read(session, request)).collect::<Result<_, _>>()?;
    let is_read = |frame: &Frame| frame.is_complete() || frame.is_stopped();
    while !frames.iter().all(is_read) {
        if stop.is_set() {
            bail!(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        if let Some(first) = frames.first().filter(|_| shows_progress) {
            stderr::part(format_args!("\r{} of {} rows ", first.plot.rows_used, first.plot.rows));
        }
        let used = |frames: &[Frame]| frames.iter().map(|frame| frame.plot.rows_used).sum::<u64>();
        let before = used(&frames);
        for (frame, request) in frames.iter_mut().zip(requests).filter(|(frame, _)| !is_read(frame)) {
            *frame = read(session, request)?;
        }
        if used(&frames) == before {
            if waiting >= patience {
                bail!(
                    Error::new(ErrorKind::Locked, "another program has been writing to the table all the time")
                        .context(source.display())
                );
            }
            // a writer is in the middle of a flush
            stop.sleep(STEP);
            waiting += STEP;
            session.refresh()?;
        }
    }
    if shows_progress {
        stderr::part("\r\x1b[K");
    }
    Ok(frames)
}
