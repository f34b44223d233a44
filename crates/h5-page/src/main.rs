//! Answers one request about an HDF5 file: `h5-page FILE REQUEST [NAME=VALUE]…`. The answer is
//! standard output; the reason of a refusal is standard error, and the status is 1. In the page,
//! JavaScript is the system that this program knows: it starts it once for each request.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::process::ExitCode;

use h5_page::answer;
use h5_read::{File, Storage};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, request, parameters @ ..] = &arguments[..] else {
        eprintln!("usage: h5-page FILE REQUEST [NAME=VALUE]...");
        return ExitCode::from(2);
    };
    let pair = |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let parameters: Vec<_> = parameters.iter().filter_map(pair).collect();
    let answered = || -> Result<(), Box<dyn std::error::Error>> {
        let file = File::open(Local(fs::File::open(path)?))?;
        Ok(io::stdout().lock().write_all(&answer(&file, request, &parameters)?)?)
    };
    match answered() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A file of WASI, which has no positioned reads in the standard library; this program has one
/// thread.
struct Local(fs::File);

impl Storage for Local {
    fn len(&self) -> io::Result<u64> {
        (&self.0).seek(SeekFrom::End(0))
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        (&self.0).seek(SeekFrom::Start(offset))?;
        (&self.0).read_exact(out)
    }
}
