//! Exit codes and what they mean.

use ctds_hdf5::ErrorKind;
use std::io;
use std::process::ExitCode;

/// Exit codes of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Everything that was asked for.
    Done = 0,
    /// Failure of any other kind.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The source cannot be read: it is damaged, missing, or something else.
    Source = 3,
    /// Legal, but not supported.
    Unsupported = 4,
    /// `verify` found a difference.
    Different = 5,
    /// Finished with warnings, under `--strict`.
    Warnings = 6,
    /// The target exists or is locked.
    Target = 7,
    /// The disk is full.
    NoSpace = 8,
    /// A signal has stopped it.
    Interrupted = 130,
}

impl Status {
    /// Every status, by its number.
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

    /// The status of a failure.
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

    /// The status of a failure of the library.
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

    /// Name of the status in the `--json` document.
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

    /// When the program ends with this status, for people.
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

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status.code())
    }
}
