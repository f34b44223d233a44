//! Selections of elements.

/// Selection on one axis: `count` elements, every `step`-th from `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// First index.
    pub start: u64,
    /// Distance of two indices, at least 1.
    pub step: u64,
    /// Number of indices.
    pub count: u64,
}

impl Steps {
    /// The last element; the first if there are none.
    pub(super) fn last(&self) -> u64 {
        self.start.saturating_add(self.step.saturating_mul(self.count.saturating_sub(1)))
    }
}
