//! Whether an item is done already.

use std::path::Path;

use super::item::{Item, Verb};
use super::receipt::{self, Receipt};

/// Evidence that an item is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    /// The ledger says so
    Ledger,
    /// The target has its size and a receipt, and the source is as it was
    Receipt,
    /// The same as receipt, and the target agrees with its own digests or checksums
    Digest,
}

/// What a target and its receipt tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing of this item: it is to be done.
    Nothing,
    /// The item is done.
    Done,
    /// The item was done, with another version of the source.
    Outdated,
}

/// Compares a target with its receipt, and the receipt with the source. A source that was removed since does not count.
pub(super) fn look(item: &Item, target: &Path) -> Found {
    let Some(receipt) = Receipt::of(target).filter(|receipt| receipt.id == item.id) else { return Found::Nothing };
    if receipt::size_of(target).ok() != Some(receipt.file_bytes) {
        return Found::Nothing;
    }
    match (receipt.source, receipt::fingerprint(Path::new(&item.source))) {
        (Some(then), Ok(now)) if then != now => Found::Outdated,
        _ => Found::Done,
    }
}

/// The words of the command that checks a target against digests in it, if its verb stores them.
pub(super) fn check_words(verb: Verb, target: &Path) -> Option<[std::ffi::OsString; 2]> {
    verb.stores_digests.then(|| ["verify".into(), target.into()])
}
