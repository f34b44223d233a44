//! Exit codes of the program and their meanings.

use ctds_hdf5::ErrorKind;
use std::io;
use std::process::ExitCode;

/// Exit codes of the program `h5bridge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Exit code 0: everything that was asked for is done.
    Done = 0,
    /// Exit code 1: a failure for which no other exit code is defined.
    Failed = 1,
    /// Exit code 2: the command line is wrong.
    Usage = 2,
    /// Exit code 3: the source cannot be read; it is damaged, missing, or something else than
    /// expected.
    Source = 3,
    /// Exit code 4: the source is legal but has something that is not supported.
    Unsupported = 4,
    /// Exit code 5: `verify` found a difference.
    Different = 5,
    /// Exit code 6: finished, but `--strict` was given and there were warnings, or `--salvage` was
    /// given and damaged parts were left out.
    Warnings = 6,
    /// Exit code 7: the target exists or is locked.
    Target = 7,
    /// Exit code 8: the disk is full.
    NoSpace = 8,
    /// Exit code 130: a signal has stopped the program.
    Interrupted = 130,
}

impl Status {
    /// Ordered by code.
    pub(crate) const ALL: [Self; 10] = [
        Status::Done,
        Status::Failed,
        Status::Usage,
        Status::Source,
        Status::Unsupported,
        Status::Different,
        Status::Warnings,
        Status::Target,
        Status::NoSpace,
        Status::Interrupted,
    ];

    /// `Done` if the reader of the output has closed the pipe.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<ctds_hdf5::Error>() {
            return Self::of_kind(error.kind());
        }
        match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Status::Done,
            Some(error) if error.kind() == io::ErrorKind::StorageFull => Status::NoSpace,
            _ => Status::Failed,
        }
    }

    /// The exit status for a kind of error of the library.
    pub fn of_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Status::Usage,
            ErrorKind::Format | ErrorKind::NotFound | ErrorKind::Limit => Status::Source,
            ErrorKind::Unsupported => Status::Unsupported,
            ErrorKind::Exists | ErrorKind::Locked => Status::Target,
            ErrorKind::NoSpace => Status::NoSpace,
            ErrorKind::Interrupted => Status::Interrupted,
            _ => Status::Failed,
        }
    }

    /// Name of the exit status in the `--json` document.
    pub fn name(self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Usage => "usage",
            Status::Source => "source unreadable",
            Status::Unsupported => "not supported",
            Status::Different => "different",
            Status::Warnings => "warnings",
            Status::Target => "target exists or is locked",
            Status::NoSpace => "no space",
            Status::Interrupted => "interrupted",
        }
    }

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Status::Done => "all that was asked for",
            Status::Failed => "the system refused or failed: permissions, a broken disk",
            Status::Usage => "the command line is wrong",
            Status::Source => "the source is missing, damaged or something else",
            Status::Unsupported => "legal, but not supported",
            Status::Different => "`verify` found a difference",
            Status::Warnings => "warnings under --strict, or damage left out by --salvage",
            Status::Target => "the target exists, or another program has the table locked",
            Status::NoSpace => "the disk is full",
            Status::Interrupted => "stopped by Ctrl-C or SIGTERM",
        }
    }

    /// The exit code, as the shell gets it.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status.code())
    }
}
