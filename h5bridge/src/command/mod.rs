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

use anyhow::Result;

use crate::cli::{Cli, Verb};
use crate::exit::Status;

/// Runs the verb; what it has to say goes to stdout.
pub fn run(cli: Cli) -> Result<Status> {
    let out = &mut std::io::stdout().lock();
    match cli.verb {
        Verb::ToHdf5(args) => to_hdf5::run(args, &cli.global, out),
        Verb::ToMs(args) => to_ms::run(args, &cli.global, out),
        Verb::Info(args) => info::run(args, &cli.global, out),
        Verb::Digest(args) => digest::run(args, &cli.global, out),
        Verb::Finalize(args) => finalize::run(args, &cli.global, out),
        Verb::Follow(args) => follow::run(args, &cli.global, out),
        Verb::Repair(args) => repair::run(args, &cli.global, out),
        Verb::Verify(args) => verify::run(args, &cli.global, out),
        Verb::Pack(args) => pack::run(args, &cli.global, out),
        Verb::Unpack(args) => unpack::run(args, &cli.global, out),
        Verb::Ls(args) => ls::run(args, &cli.global, out),
        Verb::Watch(args) => watch::run(args, &cli.global, out),
    }
}
