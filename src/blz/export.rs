//! Exports arrays in the formats of blz, bcolz and bloscpack; see docs/reference/formats/blz.md,
//! "Written here".

use std::path::Path;

use blosc_arrays::{ArrayFormat, Writer};

use crate::call::{Call, call_setters};
use crate::error::Result;
use crate::h5::Compression;
use crate::output::Output;
use crate::progress::Phase;

/// Exports arrays of Blosc chunks, or datasets of HDF5, as directories of blz or bcolz, or as a
/// bloscpack file.
///
/// ```no_run
/// use ctds_hdf5::blz::{ArrayFormat, Arrays, Export};
///
/// let arrays = Arrays::open("my.h5/group/data")?;
/// Export::new(&arrays).format(ArrayFormat::Bcolz).write("data.bcolz")?;
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[must_use = "`write` writes"]
pub struct Export<'a> {
    arrays: &'a blosc_arrays::Arrays,
    format: Option<ArrayFormat>,
    compression: Compression,
    call: Call<'a>,
}

/// Summary of the arrays that [`Export::write`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportSummary {
    /// Number of arrays that were written.
    pub arrays: usize,
    /// Size in bytes of the elements of the arrays that were written, uncompressed.
    pub bytes: u64,
    /// Size in bytes of all files that were written.
    pub stored_bytes: u64,
    /// Format of the files that were written.
    pub format: ArrayFormat,
}

impl<'a> Export<'a> {
    /// Prepares to write all of `arrays` in the format of blz, bcolz or bloscpack: the one that
    /// [`format`](Self::format) sets, else the one that they came from. [`write`](Self::write) gets
    /// the path of the directory, or for bloscpack of the file.
    pub fn new(arrays: &'a blosc_arrays::Arrays) -> Self {
        Export { arrays, format: None, compression: Compression::NONE, call: Call::default() }
    }

    /// Sets the format to write; by default the one that the arrays came from.
    pub fn format(mut self, format: ArrayFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets codec and level of the Blosc chunks; by default those that the array's metadata name,
    /// else LZ4 at level 5.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    call_setters!(target);

    /// Writes the arrays to `target`, a file for bloscpack, else a directory. It appears under its
    /// name only when it is complete.
    ///
    /// # Errors
    /// Those of reading the arrays; `Usage` without a format that is known, and for a table as a
    /// bloscpack file; `Unsupported` for chunks of 2 GiB or more; `Exists`, `NoSpace`, `Io`,
    /// `Interrupted`. The target is then as it was before.
    pub fn write(self, target: impl AsRef<Path>) -> Result<ExportSummary> {
        let target = target.as_ref();
        let writer = self.writer()?;
        let format = writer.chosen_format()?;
        self.call.run(|progress| {
            let bytes = self.arrays.bytes();
            progress.expect(bytes);
            progress.phase(Phase::Writing);
            let output = match format {
                ArrayFormat::Bloscpack => Output::create(target, self.call.publishing, 0)?,
                _ => Output::create_directory(target, self.call.publishing, 0)?,
            };
            writer.write_into(output.partial(), format, progress)?;
            let stored_bytes = output.bytes()?;
            progress.phase(Phase::Flushing);
            output.commit()?;
            Ok(ExportSummary { arrays: self.arrays.arrays.len(), bytes, stored_bytes, format })
        })
    }

    fn writer(&self) -> Result<Writer<'a>> {
        let mut writer = Writer::new(self.arrays).write_behind(self.call.publishing.sync.is_behind());
        if let Some(format) = self.format {
            writer = writer.format(format);
        }
        if self.compression.is_none() {
            return Ok(writer);
        }
        let text = self.compression.to_string();
        let (name, level) = text.split_once(':').unwrap_or((&text, ""));
        // the name of HDF5's filter
        let codec = if name == "gzip" { "zlib" } else { name };
        Ok(writer.compression(codec.parse()?, level.parse().ok()))
    }
}
