//! Creates HDF5 datasets with the element types of other array formats, such as BLZ, some of which
//! casacore lacks; their elements are read and written as raw bytes.

use super::{Compression, StoredElement};
use crate::value::Shape;

#[derive(Debug, Clone)]
pub(crate) struct ElementSpec<'a> {
    pub(crate) element: &'a StoredElement,
    /// Fastest axis first; the last axis can grow without limit.
    pub(crate) shape: &'a Shape,
    /// Fastest axis first; no extent is 0.
    pub(crate) chunk: &'a Shape,
    pub(crate) compression: Compression,
    /// Parameters (`cd_values`) of Blosc as the only filter; `compression` is then ignored.
    pub(crate) blosc: Option<&'a [u32]>,
    /// Bytes of the element that is read where nothing was written; `None` for zeros.
    pub(crate) fill: Option<&'a [u8]>,
}
