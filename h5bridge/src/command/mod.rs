//! The verbs, a file each: its arguments, and what it does with them.

pub mod digest;
pub mod finalize;
pub mod follow;
pub mod info;
pub mod ls;
pub mod pack;
pub mod repair;
pub mod to_hdf5;
pub mod to_ms;
pub mod unpack;
pub mod verify;
pub mod watch;
