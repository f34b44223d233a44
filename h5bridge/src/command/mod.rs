//! The verbs of `h5bridge`, such as `to-hdf5` and `info`: one file for each, with its command-line
//! arguments and its implementation.

pub(crate) mod batch;
pub(crate) mod completions;
pub(crate) mod digest;
pub(crate) mod finalize;
pub(crate) mod follow;
pub(crate) mod generate;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod join;
pub(crate) mod link;
pub(crate) mod lint;
pub(crate) mod ls;
pub(crate) mod manifest;
pub(crate) mod materialize;
pub(crate) mod pack;
pub(crate) mod plot;
pub(crate) mod refs;
pub(crate) mod repair;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod shard;
pub(crate) mod to_hdf5;
pub(crate) mod to_ms;
pub(crate) mod unpack;
pub(crate) mod verify;
pub(crate) mod vt;
pub(crate) mod watch;
