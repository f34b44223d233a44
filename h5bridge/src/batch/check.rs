//! Decides whether an item (one job) of `h5bridge batch` is done already, from its target (the
//! output) and the receipt, the JSON file beside the target that records how the target was made.

use std::path::Path;

use super::item::{Item, Verb};
use super::receipt::{self, Receipt};

/// Evidence by which `h5bridge batch` accepts that an item is done (`--trust`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    /// The ledger (the directory with the results of all runs) records that the item is done
    Ledger,
    /// The target has the size that the receipt file beside it records, and the source has not
    /// changed since the target was made
    Receipt,
    /// The target has the size that the receipt file beside it records and agrees with the digests
    /// stored in the target or the checksums in the receipt, and the source has not changed since
    /// the target was made
    Digest,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The receipt is missing, unreadable or of another item, or the target is missing or has
    /// another size.
    Nothing,
    /// Size of the target and fingerprint of the source are those in the receipt. A source that
    /// cannot be read now, or could not when the target was made, is not compared.
    Done,
    /// The source has changed since.
    Outdated,
}

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

/// `verify TARGET`, if `verb` stores digests in its targets.
pub(super) fn check_words(verb: Verb, target: &Path) -> Option<[std::ffi::OsString; 2]> {
    verb.stores_digests.then(|| ["verify".into(), target.into()])
}
