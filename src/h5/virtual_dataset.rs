//! Creates virtual datasets, whose elements are in datasets of other files: one source after the
//! other along the slowest axis.

use crate::value::{DataType, Shape};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VirtualSource {
    /// Relative to the directory of the file with the virtual dataset.
    pub(crate) file: String,
    pub(crate) dataset: String,
    pub(crate) shape: Shape,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct VirtualSpec<'a> {
    /// Not a string.
    pub(crate) element: DataType,
    pub(crate) shape: &'a Shape,
    /// Sources fill the dataset along the slowest axis. Those with several axes are flat, in
    /// row-major order, if it has one.
    pub(crate) sources: &'a [VirtualSource],
    /// Little-endian bytes of the element that is read where a source is missing.
    pub(crate) fill: &'a [u8],
}
