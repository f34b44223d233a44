//! Later.
use crate::cli::Global;
use crate::exit::Status;
use anyhow::Result;
use std::io::Write;
/// Later.
#[derive(Debug, clap::Args)]
pub struct Args {}
/// Later.
pub fn run(_args: Args, _global: &Global, _out: &mut impl Write) -> Result<Status> {
    Ok(Status::Failed)
}
