//! The progress bar of a conversion.

use std::io::IsTerminal;

use ctds_hdf5::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr if that is a terminal, else nothing.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar of `bytes`.
    pub(crate) fn new(bytes: u64, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(8));
        if quiet || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is constant and valid"));
        Bar(bar)
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64, table: &str, column: &str) {
        if self.0.is_hidden() {
            return;
        }
        self.0.inc(bytes);
        self.0.set_message(if table == "." { column.to_owned() } else { format!("{table}/{column}") });
    }
}
