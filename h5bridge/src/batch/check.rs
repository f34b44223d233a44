//! Finds out whether an item of `h5bridge batch` is done already, from its target and receipt.

use std::path::Path;

use super::item::{Item, Verb};
use super::receipt::{self, Receipt};

/// Evidence by which `h5bridge batch` accepts that an item is done (`--trust`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    /// The ledger records that the item is done
    Ledger,
    /// The target has its recorded size and a receipt, and the source is as it was
    Receipt,
    /// Receipt, and the target agrees with its own digests or checksums
    Digest,
}

/// The state of an item of a batch according to its target and the receipt beside that.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The target or its receipt is missing, or the receipt is of another item: the item is still to be done.
    Nothing,
    /// The item is done: target, receipt and source agree, or the source no longer exists.
    Done,
    /// The item was done, but its source has changed since.
    Outdated,
}

/// Compares the target of an item with its receipt, and the fingerprint of the source with that in the receipt; returns the state of the item. If the
/// source no longer exists, the target and the receipt decide alone.
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

/// The command line that checks a target against the digests stored in it; `None` if the verb that wrote it stores none.
pub(super) fn check_words(verb: Verb, target: &Path) -> Option<[std::ffi::OsString; 2]> {
    verb.stores_digests.then(|| ["verify".into(), target.into()])
}
