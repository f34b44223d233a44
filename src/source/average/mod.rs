//! Averages a MeasurementSet in time (the rows of a baseline) and frequency (neighbouring
//! channels), weighted, without flagged samples. docs/reference/selecting.md.
//!
//! | file             | purpose                                                            |
//! |------------------|--------------------------------------------------------------------|
//! | `averaging.rs`   | what is averaged: `time=10s,chan=4`                                |
//! | `time_bins.rs`   | which rows become one                                              |
//! | `rules.rs`       | what each column of the main table becomes                         |
//! | `plan.rs`        | bins, rules and the columns of flags and weights together          |
//! | `input.rs`       | the rows of bins with their samples, flags and weights             |
//! | `sums.rs`        | the sums that become averaged samples                              |
//! | `samples.rs`     | columns with a value for each channel, or made from those          |
//! | `rows.rs`        | columns with a value for each row                                  |
//! | `windows.rs`     | the table SPECTRAL_WINDOW                                          |
//! | `views.rs`       | the averaged tables                                                |
//! | `apply.rs`       | a source with averaged tables                                      |

mod apply;
mod averaging;
mod input;
mod plan;
mod rows;
mod rules;
mod samples;
mod sums;
#[cfg(test)]
mod tests;
mod time_bins;
mod views;
mod windows;

pub use apply::Averaged;
pub use averaging::Averaging;
