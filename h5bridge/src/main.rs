//! `h5bridge`: casacore tables to HDF5 and back, from the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    h5bridge::run(std::env::args_os()).into()
}
