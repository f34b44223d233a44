//! Conversion of many tables (`h5bridge batch`): a manifest lists the items (jobs) to do, a ledger
//! records the attempts, a receipt beside each target records how it was made.
//!
//! All three are plain files of JSON. Each process appends to a ledger file of its own, so no locks
//! are needed, and a run that starts again does what the ledger, or the receipts, do not show as
//! done. Each item is the work of a child process.

mod check;
mod checksum;
mod child;
mod item;
mod ledger;
mod limits;
mod manifest;
mod plan;
mod queue;
mod receipt;
mod run;
mod shard;
mod status;
mod work;

pub(crate) use self::check::Trust;
pub(crate) use self::checksum::Checksum;
pub(crate) use self::child::{Program, end_with};
pub(crate) use self::item::Id;
pub(crate) use self::ledger::{Folded, Ledger, Record, State, host, now};
pub(crate) use self::limits::Limits;
pub(crate) use self::manifest::Manifest;
pub(crate) use self::plan::{Plan, Planned};
pub(crate) use self::run::{Run, Tally};
pub(crate) use self::shard::Shard;
pub(crate) use self::status::{Count, Counts, prometheus};
pub(crate) use self::work::Work;
