//! The command line of `h5bridge` as a function, for the program itself and for programs that embed
//! it.

#![deny(clippy::print_stderr)]

mod args;
mod batch;
mod cli;
mod command;
mod exit;
mod interrupt;
mod progress;
mod prometheus;
mod report;
mod stderr;
mod topics;
mod version;

use std::ffi::OsString;

use ctds_hdf5::{Error, ErrorKind};

pub use crate::exit::Status;
pub use crate::interrupt::Caller;

/// Runs a command line, whose first word is the name of the program. Results go to stdout, messages
/// to stderr; SIGINT and SIGTERM are listened to from now on.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Status {
    run_as(Vec::new(), args)
}

/// Runs the command line `args`, whose first word is the name of the program, and returns the exit
/// status. The verb `batch` starts child processes with the command line `program`, or with the
/// executable of this process if `program` is empty.
pub fn run_as(program: Vec<OsString>, args: impl IntoIterator<Item = OsString>) -> Status {
    let mut cli = match cli::Cli::parse_words(args) {
        Ok(cli) => cli,
        Err(error) => {
            // help and version are not errors, and a closed pipe is not one either
            let _ = error.print();
            return if error.use_stderr() { Status::Usage } else { Status::Done };
        }
    };
    cli.global.choose_colours();
    cli.global.start_logging();
    cli.global.program = program;
    let (json, verb) = (cli.global.json, cli.verb_name.clone());
    let begin = cli.global.end_with.map_or(Ok(()), batch::end_with);
    let result = begin.map_err(anyhow::Error::from).and_then(|()| cli.run(&mut std::io::stdout().lock()));
    result.unwrap_or_else(|error| {
        let status = Status::of(&error);
        match status {
            Status::Done => {}
            Status::Interrupted => {
                let outcome = error.downcast_ref::<report::Stopped>().map(ToString::to_string);
                let outcome = outcome.as_deref().unwrap_or(interrupt::NOTHING_WRITTEN);
                stderr::line(format_args!("{}; {outcome}", interrupt::MESSAGE));
            }
            _ => report::error(&error, status, &verb, json),
        }
        status
    })
}

/// Runs a verb within the process of another program: `words` is the command line without the name
/// of the program. Prints nothing and handles no signals. Returns the exit status and the document
/// that `--json` prints.
///
/// # Errors
/// What would be the message of the verb; `Usage` for words that it does not know.
pub fn call(words: impl IntoIterator<Item = OsString>, caller: Caller) -> Result<(Status, String), Error> {
    let args = std::iter::once(OsString::from("h5bridge")).chain(words);
    let usage = |error: clap::Error| Error::new(ErrorKind::Usage, first_paragraph(&error.to_string()));
    let mut cli = cli::Cli::parse_words(args).map_err(usage)?;
    cli.global = args::Global { json: true, quiet: true, caller: Some(caller), ..cli.global };
    let mut document = Vec::new();
    let status = cli.run(&mut document).map_err(|error| match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::new(ErrorKind::Io, report::sentence(&error)),
    })?;
    Ok((status, String::from_utf8_lossy(&document).into_owned()))
}

/// Clap's first sentence and the tip (a similar word), without the usage text.
fn first_paragraph(message: &str) -> String {
    let mut paragraphs = message.split("\n\n").map(str::trim);
    let sentence = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    match paragraphs.next().and_then(|next| next.strip_prefix("tip: ")) {
        Some(tip) => format!("{sentence}; {tip}"),
        None => sentence.to_owned(),
    }
}
