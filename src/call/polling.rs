//! The loop of everything that follows a table which another program is writing: step after step
//! until the table is closed or idle, or the caller ends it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{ErrorKind, Result};
use crate::progress::CancelToken;

/// Longest pause while something waits to be copied or compared, or the table is being written.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Longest sleep between two checks of the cancel token.
const TOKEN_PAUSE: Duration = Duration::from_millis(50);

/// Pause between two of the last steps.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Time after which none of the last steps begins.
const LAST_STEPS: Duration = Duration::from_secs(10);

/// When a table is looked at, and what ends that.
#[derive(Debug, Clone)]
pub(crate) struct Polling {
    pub(crate) every: Duration,
    /// Ends when no other program has the table open.
    pub(crate) until_closed: bool,
    /// Ends after this time without a change.
    pub(crate) idle: Option<Duration>,
    pub(crate) cancel: CancelToken,
}

/// A table that is being followed.
pub(crate) trait Steps {
    /// Result of a step.
    type Step;

    /// Copies what is new.
    fn step(&mut self) -> Result<Self::Step>;

    fn pace(step: &Self::Step) -> Pace;

    /// Whether another program has the table open.
    fn is_in_use(&self) -> Result<bool>;

    /// Sentences for the user, those of earlier steps included.
    fn notes(&self) -> Vec<String>;
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// Something was copied: the table is not idle.
    pub(crate) changed: bool,
    /// More of the same is likely: the next step follows at once.
    pub(crate) at_once: bool,
    /// Something is left to copy or to compare: this is not the end.
    pub(crate) more: bool,
    /// The table is being written.
    pub(crate) waiting: bool,
}

pub(crate) enum Polled<'a, S> {
    Changed(S),
    /// Told once.
    Note(&'a str),
}

/// The sentences that the user knows.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeSet<String>);

impl Told {
    pub(crate) fn tell(&mut self, notes: Vec<String>, mut tell: impl FnMut(&str)) {
        for note in notes {
            if !self.0.contains(&note) {
                tell(&note);
                self.0.insert(note);
            }
        }
    }
}

impl Default for Polling {
    fn default() -> Self {
        let every = Duration::from_millis(50);
        Polling { every, until_closed: false, idle: None, cancel: CancelToken::new() }
    }
}

impl Polling {
    /// Repeats `start` as long as it fails with `NotFound` while the directory `source` exists: the
    /// table is still being made.
    pub(crate) fn start<T>(&self, source: &Path, start: impl Fn() -> Result<T>) -> Result<T> {
        let since = Instant::now();
        let may_wait = || source.exists() && !self.cancel.is_cancelled() && !self.is_idle(since);
        loop {
            match start() {
                Err(error) if error.kind() == ErrorKind::NotFound && may_wait() => self.sleep(self.every),
                started => return started,
            }
        }
    }

    pub(crate) fn run<F: Steps>(
        &self,
        followed: &mut F,
        told: &mut Told,
        mut observer: impl FnMut(Polled<'_, F::Step>),
    ) -> Result<()> {
        let mut changed = Instant::now();
        while !self.cancel.is_cancelled() {
            // before the step, so that it sees what was written last
            let closed = self.until_closed && !followed.is_in_use()?;
            let step = followed.step()?;
            let pace = F::pace(&step);
            if pace.changed {
                changed = Instant::now();
                observer(Polled::Changed(step));
            }
            told.tell(followed.notes(), |note| observer(Polled::Note(note)));
            if !pace.more && (closed || self.is_idle(changed)) {
                break;
            }
            if !pace.at_once {
                let is_busy = pace.more || pace.waiting;
                self.sleep(if is_busy { self.every.min(BUSY_PAUSE) } else { self.every });
            }
        }
        Ok(())
    }

    /// Whether the last change is as long ago as `idle` says; false without it.
    fn is_idle(&self, changed: Instant) -> bool {
        self.idle.is_some_and(|idle| changed.elapsed() >= idle)
    }

    /// Ends early if the cancel token is cancelled.
    fn sleep(&self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|_| !self.cancel.is_cancelled()) {
            std::thread::sleep(left.min(TOKEN_PAUSE));
        }
    }
}

/// The last steps, for about 10 s at most, until nothing is left to do.
pub(crate) fn last_steps<F: Steps>(followed: &mut F) -> Result<()> {
    let start = Instant::now();
    loop {
        let step = followed.step()?;
        if !F::pace(&step).more || start.elapsed() >= LAST_STEPS {
            return Ok(());
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::error::Error;

    /// Steps as they are listed; then none does anything.
    struct Listed {
        steps: VecDeque<Pace>,
        taken: usize,
        uses: VecDeque<bool>,
    }

    impl Listed {
        fn new(steps: &[Pace]) -> Self {
            Listed { steps: steps.iter().copied().collect(), taken: 0, uses: VecDeque::new() }
        }
    }

    impl Steps for Listed {
        type Step = Pace;

        fn step(&mut self) -> Result<Pace> {
            self.taken += 1;
            self.uses.pop_front();
            Ok(self.steps.pop_front().unwrap_or_default())
        }

        fn pace(step: &Pace) -> Pace {
            *step
        }

        fn is_in_use(&self) -> Result<bool> {
            Ok(self.uses.front().copied().unwrap_or(false))
        }

        fn notes(&self) -> Vec<String> {
            vec!["the same".to_owned(), format!("step {}", self.taken)]
        }
    }

    const CHANGED: Pace = Pace { changed: true, at_once: true, more: false, waiting: false };
    const MORE: Pace = Pace { changed: false, at_once: false, more: true, waiting: false };

    fn polling() -> Polling {
        Polling { every: Duration::from_millis(1), until_closed: true, ..Polling::default() }
    }

    #[test]
    fn a_closed_table_ends_when_nothing_is_left() {
        let mut listed = Listed::new(&[CHANGED, MORE, MORE, CHANGED]);
        // in use until the second step; the last step found nothing new
        listed.uses = VecDeque::from([true, true]);
        let (mut changes, mut notes) = (0, Vec::new());
        let observe = |event: Polled<'_, Pace>| match event {
            Polled::Changed(_) => changes += 1,
            Polled::Note(note) => notes.push(note.to_owned()),
        };
        polling().run(&mut listed, &mut Told::default(), observe).unwrap();
        assert_eq!((listed.taken, changes), (4, 2));
        assert_eq!(notes, ["the same", "step 1", "step 2", "step 3", "step 4"], "each is told once");
    }

    #[test]
    fn an_idle_table_and_a_cancelled_token_end_it() {
        let idle = Duration::from_millis(30);
        let polling = Polling { until_closed: false, idle: Some(idle), ..polling() };
        let (start, mut listed) = (Instant::now(), Listed::new(&[CHANGED]));
        polling.run(&mut listed, &mut Told::default(), |_| {}).unwrap();
        assert!(start.elapsed() >= idle && listed.taken > 1);
        let endless = Polling { idle: None, ..polling };
        let token = endless.cancel.clone();
        let mut listed = Listed::new(&[CHANGED, CHANGED]);
        endless.run(&mut listed, &mut Told::default(), |_| token.cancel()).unwrap();
        assert_eq!(listed.taken, 1);
    }

    #[test]
    fn only_a_table_that_is_being_made_is_waited_for() {
        let (folder, tries) = (tempfile::tempdir().unwrap(), std::cell::Cell::new(0));
        let start = |kind: ErrorKind| {
            tries.set(tries.get() + 1);
            if tries.get() < 3 { Err(Error::new(kind, "not yet")) } else { Ok(()) }
        };
        polling().start(folder.path(), || start(ErrorKind::NotFound)).unwrap();
        assert_eq!(tries.replace(0), 3);
        assert!(polling().start(folder.path(), || start(ErrorKind::Format)).is_err());
        assert!(polling().start(&folder.path().join("no"), || start(ErrorKind::NotFound)).is_err());
        assert_eq!(tries.get(), 2);
    }

    #[test]
    fn last_steps_are_taken_until_nothing_is_left() {
        let mut listed = Listed::new(&[MORE, MORE]);
        last_steps(&mut listed).unwrap();
        assert_eq!(listed.taken, 3);
    }
}
