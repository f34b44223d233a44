//! Decides whether an item (one job) of `h5bridge batch` is already done, from its target (the output) and the receipt file beside the target.

use std::path::Path;

use super::item::{Item, Verb};
use super::receipt::{self, Receipt};

/// Evidence by which `h5bridge batch` accepts that an item is done (`--trust`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    /// The ledger (the directory with the results of all runs) records that the item is done
    Ledger,
    /// The target has the size that the receipt file beside it records, and the source has not changed since the target
    /// was made
    Receipt,
    /// The target has the size in its receipt file and agrees with the digests stored in it or with the checksums in
    /// that file, and the source has not changed since the target was made
    Digest,
}

/// The state of an item (one job) of a batch, according to its target and the receipt, a file beside the target that records how it was made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The item is still to be done: the target or its receipt is missing, the receipt is of another item, or the size
    /// of the target differs from the size in the receipt.
    Nothing,
    /// The item is done: the target agrees with its receipt, and so does the source, if it still exists.
    Done,
    /// The item was done, but its source has changed since.
    Outdated,
}

/// Returns the state of an item: compares the size of its target, and the fingerprint of its source (paths, sizes, times of the files), with those in
/// the receipt. A source that no longer exists is not compared.
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

/// The arguments of `h5bridge` that check a target against the digests stored in it (`verify TARGET`); `None` if
/// `verb`, which wrote the target, does not store digests.
pub(super) fn check_words(verb: Verb, target: &Path) -> Option<[std::ffi::OsString; 2]> {
    verb.stores_digests.then(|| ["verify".into(), target.into()])
}
