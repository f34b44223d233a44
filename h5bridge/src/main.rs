//! `h5bridge`: casacore tables to HDF5 and back, from the command line.

mod args;
mod cli;
mod command;
mod exit;
mod interrupt;
mod progress;
mod report;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // help and version are no errors; a closed pipe is none either
            let _ = error.print();
            return if error.use_stderr() { exit::Status::Usage } else { exit::Status::Done }.into();
        }
    };
    cli.global.start_logging();
    let json = cli.global.json;
    let status = match cli.run(&mut std::io::stdout().lock()) {
        Ok(status) => status,
        Err(error) => {
            let status = exit::Status::of(&error);
            if status == exit::Status::Done {
                return status.into();
            }
            if status == exit::Status::Interrupted {
                eprintln!("{}", interrupt::MESSAGE);
                return status.into();
            }
            report::error(&error, status, json);
            status
        }
    };
    status.into()
}
