//! Opens the arrays at a path, which may be datasets of HDF5.

use std::ops::Deref;
use std::path::Path;

use blosc_arrays::array::{Array, Stored};

use super::from_hdf5::{self, Found};
use crate::container::FORMATS;
use crate::error::{Context, Result, ResultExt};
use crate::hash::{Hash, HashKind, Hasher};
use crate::progress::Progress;

/// The BLZ, bcolz or bloscpack arrays at a path, or those of an HDF5 file: a single one, or the
/// columns of a table.
///
/// It has the methods of [`blosc_arrays::Arrays`]. Arrays that are datasets of HDF5 have no chunks
/// for [`each_chunk`](blosc_arrays::Arrays::each_chunk); their
/// [`format`](blosc_arrays::Arrays::format) is the one from which they were converted, `None` for
/// datasets of other programs.
#[derive(Debug)]
pub struct Arrays(blosc_arrays::Arrays);

impl Deref for Arrays {
    type Target = blosc_arrays::Arrays;

    fn deref(&self) -> &blosc_arrays::Arrays {
        &self.0
    }
}

impl Arrays {
    /// Whether BLZ, bcolz or bloscpack arrays are at `path`: a directory with the JSON metadata of
    /// an array or table, a file of chunks, or an HDF5 file that such arrays were converted to.
    pub fn are_at(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        from_hdf5::is_marked(path) || blosc_arrays::Arrays::are_in(path, FORMATS)
    }

    /// Opens the BLZ, bcolz or bloscpack array or table at `path`, which may also be an HDF5 file
    /// of any program or a dataset in it: `my.h5/group/data`.
    ///
    /// # Errors
    /// `Format` if a document or the header of a file of chunks is damaged; `Unsupported` for
    /// elements that numpy has nothing like; `Usage` if an HDF5 file has several datasets and none
    /// is named.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let Some((file, inside)) = from_hdf5::hdf5_at(path) else {
            return blosc_arrays::Arrays::open_in(path, FORMATS).map(Arrays);
        };
        let place = Context::path(path);
        let Found { columns, attributes, arrays, format } = from_hdf5::open(&file, &inside).context(place.clone())?;
        let format = format.and_then(|name| name.parse().ok());
        Ok(Arrays(blosc_arrays::Arrays { columns, attributes, arrays, format, place }))
    }

    /// The name of each array and the hash, of the kind `kind`, of its decoded elements, last axis
    /// fastest, with the byte order and coding of text of the original array.
    ///
    /// # Errors
    /// `Format` if a chunk is damaged; `Interrupted` if `progress` says so.
    pub fn digest(&self, kind: HashKind, progress: &dyn Progress) -> Result<Vec<(String, Hash)>> {
        let digest = |array: &Array| {
            let mut hasher = Hasher::new(kind);
            array
                .read(progress, &mut |piece| {
                    hasher.update(piece);
                    Ok(())
                })
                .context(Context::member(&array.name))?;
            Ok((array.name.clone(), hasher.finish()))
        };
        self.arrays.iter().map(digest).collect::<Result<_>>().context(self.place.clone())
    }

    /// Whether the arrays are datasets of an HDF5 file rather than files of Blosc chunks.
    pub fn are_datasets(&self) -> bool {
        self.arrays.iter().any(|array| matches!(array.stored, Stored::Rows(_)))
    }
}
