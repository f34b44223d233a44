//! Progress of a batch: counts of its items (jobs) by state, and the time that is left.

use std::collections::BTreeMap;

use super::ledger::{Folded, State};
use super::manifest::Manifest;
use crate::prometheus::{Exposition, Kind};

/// Items in some state, and the bytes of their sources.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    states: BTreeMap<&'static str, Count>,
    /// Items that were tried and are not done, by the last exit code.
    pub(crate) codes: BTreeMap<i32, u64>,
    pub(crate) all: Count,
    /// Targets written.
    pub(crate) file_bytes: u64,
    /// Durations of the last attempts together.
    pub(crate) seconds: f64,
    /// Seconds from the earliest attempt's start to the latest's end; 0 without records.
    pub(crate) span: f64,
}

impl Counts {
    pub(crate) fn new(manifest: &Manifest, folded: &Folded) -> Self {
        let mut counts = Counts { span: folded.span.map_or(0., |(first, last)| last - first), ..Counts::default() };
        counts.states = State::ALL.iter().map(|state| (state.name(), Count::default())).collect();
        for item in 0..manifest.len() {
            let (last, bytes) = (folded.last(item), manifest.bytes(item));
            for count in [Some(&mut counts.all), counts.states.get_mut(last.state.name())].into_iter().flatten() {
                count.items += 1;
                count.bytes += bytes;
            }
            counts.file_bytes += last.file_bytes;
            counts.seconds += f64::from(last.seconds);
            if !matches!(last.state, State::Done | State::Skipped | State::Waiting) {
                *counts.codes.entry(last.code).or_default() += 1;
            }
        }
        counts
    }

    pub(crate) fn of(&self, state: State) -> Count {
        self.states.get(state.name()).copied().unwrap_or_default()
    }

    /// `Done`, or `Skipped` because the target existed already.
    pub(crate) fn finished(&self) -> Count {
        let (done, skipped) = (self.of(State::Done), self.of(State::Skipped));
        Count { items: done.items + skipped.items, bytes: done.bytes + skipped.bytes }
    }

    /// Expected seconds at the rate so far; `None` while no item is done.
    pub(crate) fn left(&self) -> Option<f64> {
        let (finished, wait, again) = (self.of(State::Done), self.of(State::Waiting), self.of(State::Retry));
        let share = if finished.bytes > 0 {
            (wait.bytes + again.bytes) as f64 / finished.bytes as f64
        } else if finished.items > 0 {
            (wait.items + again.items) as f64 / finished.items as f64
        } else {
            return None;
        };
        Some(share * self.span)
    }
}

/// Text format of Prometheus, for example for the textfile collector of a node exporter.
pub(crate) fn prometheus(counts: &Counts) -> String {
    let mut text = Exposition::new("h5bridge_batch_");
    let by_state =
        |value: fn(Count) -> u64| State::ALL.iter().map(move |state| (state.name(), value(counts.of(*state))));
    text.labelled(Kind::Gauge, "items", "Items of the manifest by state.", "state", by_state(|count| count.items));
    text.labelled(
        Kind::Gauge,
        "source_bytes",
        "Bytes of the sources by state.",
        "state",
        by_state(|count| count.bytes),
    );
    let help = "Items that did not succeed by exit code of the last attempt.";
    text.labelled(Kind::Gauge, "unsuccessful_items", help, "code", &counts.codes);
    text.one(Kind::Gauge, "target_bytes", "Bytes of the targets.", counts.file_bytes);
    text.one(Kind::Gauge, "work_seconds", "Time of the last attempts.", counts.seconds);
    text.finish()
}
