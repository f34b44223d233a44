//! Makes an ordinary MultiHDF5 container of one that was filled while a table was being written.

use std::path::{Path, PathBuf};

use super::compare::{ByteComparison, compare};
use super::file_set::{FileSet, Wanted};
use super::follow::is_followed;
use super::format::PackFormat;
use super::write::{PackOptions, PackSummary, rewrite};
use crate::call::{Call, call_setters};
use crate::error::{Context, Error, Result};
use crate::h5::Compression;
use crate::output::WriterLock;
use crate::progress::Phase;
use crate::table::OpenOptions;

/// Makes an ordinary MultiHDF5 container of one that [`FollowFiles`](super::FollowFiles) has
/// filled, compares the two byte by byte, and only then gives the new one its name.
///
/// ```no_run
/// use ctds_hdf5::pack::FinalizeFiles;
///
/// FinalizeFiles::new("live.mfh5").write("packed.ms")?; // casacore opens packed.ms
/// FinalizeFiles::new("live.mfh5").replace()?; // live.mfh5 is a single file as of `Pack`
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`write` or `replace` makes the container"]
pub struct FinalizeFiles<'a> {
    live: PathBuf,
    call: Call<'a>,
}

/// Summary of [`FinalizeFiles`]: what was written, and its comparison with the live container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinalizedFiles {
    /// Summary of writing the ordinary container.
    pub summary: PackSummary,
    /// Result of comparing all files of both containers. It lists no differences: the call fails if
    /// any are found.
    pub comparison: ByteComparison,
}

impl<'a> FinalizeFiles<'a> {
    /// Prepares to make an ordinary container of the one at `live`, whose writer has ended.
    pub fn new(live: impl AsRef<Path>) -> Self {
        FinalizeFiles { live: live.as_ref().to_owned(), call: Call::default() }
    }

    call_setters!(target);

    /// Writes the table directory `target` with a MultiHDF5 container in it, and in each subtable.
    /// Casacore that was built with HDF5 opens it.
    ///
    /// # Errors
    /// `Locked` while the live container has a writer; `Usage` if it is another file; `Format` if
    /// the comparison finds a difference; as [`Pack::write`](super::Pack::write).
    pub fn write(self, target: impl AsRef<Path>) -> Result<FinalizedFiles> {
        self.run(Some(target.as_ref()))
    }

    /// Replaces the live container by an ordinary one in a single file, with checksums, as
    /// [`Pack::single_file`](super::Pack::single_file) makes it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn replace(self) -> Result<FinalizedFiles> {
        self.run(None)
    }

    fn run(self, target: Option<&Path>) -> Result<FinalizedFiles> {
        let live = self.live.as_path();
        // no writer begins while it is read
        let _lock = WriterLock::take(live)?;
        let source = FileSet::open(live, Wanted::Packed, OpenOptions::default())?;
        if !is_followed(live) {
            let message = "`pack --follow` did not make this container: it is an ordinary one already";
            return Err(Error::usage(message).context(Context::path(live)));
        }
        let options = PackOptions {
            format: PackFormat::MULTI_HDF5,
            block_bytes: None,
            checksums: false,
            hash: None,
            compression: Compression::NONE,
            single_file: target.is_none(),
            dtype: None,
        };
        let target = target.unwrap_or(live);
        self.call.run(|progress| {
            progress.expect(2 * source.bytes());
            progress.phase(Phase::Writing);
            let mut comparison = ByteComparison::default();
            let check = |written: &Path| {
                progress.phase(Phase::Comparing);
                let written = FileSet::open(written, Wanted::Files, OpenOptions::default())?;
                comparison = compare(&source, &written, progress)?;
                match comparison.differences.first() {
                    Some(difference) => Err(Error::format(format!("what was written differs in {}", difference.file))),
                    None => Ok(()),
                }
            };
            let summary = rewrite(&source, target, &options, self.call.publishing, progress, check)?;
            Ok(FinalizedFiles { summary, comparison })
        })
    }
}
