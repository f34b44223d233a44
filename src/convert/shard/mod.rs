//! One conversion by many processes or machines: a plan, items (ranges of chunks) that workers
//! write in any order, and a commit that publishes the result.
//!
//! `plan` makes `OUT.h5.shards/`: the HDF5 file with everything but the chunks of large datasets,
//! and `plan.ndjson`, which names ranges of these chunks, the *items*. A worker reads tiles or rows
//! of the source and writes the chunks of an item: into the file where the dataset is one block,
//! whose addresses are known, else to a file of chunks of its own. It does not call libhdf5.
//! Whether an item is done twice, or by two workers at a time, makes no difference. `commit`
//! inserts the files of chunks and publishes the file.
//!
//! The way back is the same: `plan` makes the table directory with everything but the tiles of
//! large hypercubes, whose files have holes, and workers write ranges of tiles into them.
//!
//! ```text
//! OUT.h5.shards/plan.ndjson       the plan
//!               OUT.h5            the file, without the name of the target; or the directory of the table
//!               structure         what commit returns to if it was interrupted; only with files of chunks
//!               chunks/ID.chunks  chunks of an item that get their addresses at commit
//!               ledger/           results, which the caller keeps
//! ```

mod check;
mod chunks;
mod commit;
mod create;
mod create_table;
mod document;
mod insert;
mod structure;
mod table;
mod tile_file;
mod work;

pub use check::RangeCheck;
pub use commit::{CommitShards, ShardCommitSummary};
pub use create::ShardPlanSummary;
pub(super) use create::create;
pub(super) use create_table::create_table;
pub use document::{ShardItem, ShardPlan, ShardResult};
pub use work::{ShardWorker, UnsyncedItem};
