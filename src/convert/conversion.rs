//! Writes a native HDF5 file from tables: its structure, the elements and, if requested, the data
//! from which the original files are restored.

use std::path::Path;
use std::sync::Arc;

use super::exact;
use super::to_hdf5::{ColumnPlan, Compress, Plan, Sharing, ToHdf5Options, Writer, write_quicklook};
use crate::call::pool::thread_pool;
use crate::error::{Context, Result, ResultExt};
use crate::h5::File;
use crate::hash::Hash;
use crate::io::{FileSource, FileTarget, ReadAt, WriteAt, trim};
use crate::output::Damage;
use crate::output::Publishing;
use crate::output::{Output, directory_of};
use crate::progress::{Phase, Progress};
use crate::source::Source;

/// Summary of a finished conversion of a table to HDF5.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToHdf5Summary {
    /// Number of tables that were written to the HDF5 file.
    pub tables: usize,
    /// Number of columns that were written to the HDF5 file.
    pub columns: usize,
    /// Number of selected columns of the source that were not converted, because this program
    /// cannot read them or because they are damaged.
    pub missing: usize,
    /// Number of rows of the main table that were written.
    pub rows: u64,
    /// Bytes of all elements that were converted, uncompressed; strings are counted as 16 bytes
    /// each.
    pub bytes: u64,
    /// Size of the HDF5 file in bytes.
    pub file_bytes: u64,
    /// How much of the HDF5 file shares its bytes with the source (reflink); `None` without
    /// [`Compress::Shared`].
    pub sharing: Option<Sharing>,
    /// Fingerprint of the main table (BLAKE3 of its content by the rules of CTFP-2, whatever the
    /// storage); `None` if digests were not computed.
    pub digest: Option<Hash>,
    /// Damaged parts of the source that were left out; empty without
    /// [`ToHdf5::salvage`](super::ToHdf5::salvage).
    pub damage: Vec<Damage>,
    /// Warnings for the user about the conversion, as sentences.
    pub warnings: Vec<String>,
}

/// Nothing is left at `target` after an error; `Exists` if it is not to be replaced.
pub(crate) fn to_hdf5(
    source: &Source,
    plan: &Plan,
    options: &ToHdf5Options,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<ToHdf5Summary> {
    let needed = needed_bytes(source, plan, options, target)?;
    progress.expect(plan.bytes());
    progress.phase(Phase::Writing);
    let output = Output::create(target, publishing, needed)?;
    let file = create_file(output.partial(), options)?;
    // a file that shares bytes takes less
    if options.compress != Compress::Shared {
        let reserve = || FileTarget::open(output.partial())?.reserve(needed);
        reserve().with_context(|| Context::path(target))?;
    }
    let mut writer = Writer::new(source, plan, options, &file)?;
    writer.write_structure(progress)?;
    let (digest, sharing) = writer.write_data(output.partial(), publishing.sync, progress)?;
    if options.quicklook {
        let mut lacking = write_quicklook(source, plan, &writer.root, progress)?;
        writer.warnings.append(&mut lacking);
    }
    if let Some(tree) = &plan.tree {
        // the recipes are tried on the bytes of the file
        file.flush()?;
        let written: Arc<dyn ReadAt> = Arc::new(FileSource::open(output.partial())?);
        let pool = thread_pool(options.threads)?;
        exact::record(
            tree,
            source,
            plan,
            &writer.root,
            &written,
            &pool,
            options.max_memory,
            options.checksum,
            progress,
        )?;
    }
    progress.go_on()?;
    let mut warnings = plan.warnings.clone();
    warnings.append(&mut writer.warnings);
    drop(writer);
    let file_bytes = publish(file, output, progress)?;
    Ok(ToHdf5Summary {
        tables: plan.tables.len(),
        columns: plan.columns().count(),
        missing: plan.tables.iter().map(|table| table.missing.len()).sum(),
        rows: plan.tables.first().map_or(0, |table| table.rows.end - table.rows.start),
        bytes: plan.bytes(),
        file_bytes,
        sharing,
        digest,
        damage: source.damage().to_vec(),
        warnings,
    })
}

/// Returns the size in bytes.
fn publish(file: File, output: Output, progress: &dyn Progress) -> Result<u64> {
    file.close()?;
    trim(output.partial())?;
    let bytes = output.partial().metadata()?.len();
    progress.phase(Phase::Flushing);
    output.commit()?;
    Ok(bytes)
}

/// Approximate: some KiB of metadata for each dataset, and no compressed columns.
fn needed_bytes(source: &Source, plan: &Plan, options: &ToHdf5Options, target: &Path) -> Result<u64> {
    let of_column = |column: &ColumnPlan| if column.compression.is_none() { column.bytes } else { 0 };
    let needed = plan.columns().fold(0u64, |sum, column| sum.saturating_add(of_column(column)).saturating_add(4096));
    let shared = match options.compress {
        Compress::Shared => Sharing::expect(source, plan, options.reflink, directory_of(target))?.shared_bytes,
        Compress::With(_) | Compress::Auto => 0,
    };
    Ok(needed.saturating_sub(shared))
}

fn create_file(path: &Path, options: &ToHdf5Options) -> Result<File> {
    match (options.compress, options.profile.page_bytes()) {
        (Compress::Shared, _) => File::create_aligned(path),
        (Compress::With(_) | Compress::Auto, Some(page_bytes)) => File::create_paged(path, page_bytes),
        (Compress::With(_) | Compress::Auto, None) => File::create_for(options.hdf5.bounds(), path),
    }
}
