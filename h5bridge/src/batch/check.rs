//! Decides whether an item (one job) of `h5bridge batch` is done already, from its target (the output) and the receipt,
//! the JSON file beside the target that records how the target was made.

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
    /// The target has the size that the receipt file beside it records and agrees with the digests stored in the target
    /// or the checksums in the receipt, and the source has not changed since the target was made
    Digest,
}

/// Whether an item (one job) of a batch is done, judged by its target (the output) and by the receipt, the JSON file
/// `TARGET.receipt.json` beside the target that records how the target was made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing shows that the item is done. The receipt (the JSON file beside the target that records how it was made)
    /// is missing, unreadable or of another item, or the target is missing or does not have the recorded size.
    Nothing,
    /// The item is done: the size of the target and the fingerprint of the source (SHA-256 of paths, sizes and times of
    /// its files) are those in the receipt, the JSON file beside the target that records how it was made. A source that
    /// cannot be read now, or could not when the target was made, is not compared.
    Done,
    /// The item was done, but its source has changed since: paths, sizes or times of its files are not those recorded
    /// in the receipt, the JSON file beside the target.
    Outdated,
}

/// Judges whether `item` is done: compares the size of `target` and the fingerprint of the source
/// with those in the receipt, the JSON file beside `target` that records how it was made. A source
/// that cannot be read now, or could not when `target` was made, is not compared.
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
