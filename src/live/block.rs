//! Cells of consecutive rows, to be written to a live file: an HDF5 file that others read while
//! rows are appended.

use std::borrow::Cow;

use bstr::BString;
use bytemuck::NoUninit;
use ndarray::{Array, ArrayView, Dimension};

use crate::error::{Error, Result};
use crate::native::can_hold;
use crate::value::{Complex32, Complex64, DataType, Element, Values, swap_width};

/// The cells of consecutive rows of a column: from a slice or vector (row after row, in each cell
/// the first axis fastest), from an array or view of ndarray (rows first, then the axes of the
/// cell, slowest first), or from [`Values`]. Cells given by reference are not copied if their
/// elements follow each other in this order in memory.
///
/// ```
/// use ctds_hdf5::live::Block;
///
/// let times = vec![5e9, 5e9 + 1.0];
/// let weights = ndarray::Array2::<f32>::ones((2, 4));
/// let (times, weights) = (Block::from(&times), Block::from(&weights));
/// # let _ = (times, weights);
/// ```
#[derive(Debug, Clone)]
pub struct Block<'a> {
    pub(super) elements: Elements<'a>,
    /// `None` for an undefined cell. Without the list, the column must have one shape.
    pub(super) shapes: Option<&'a [Option<usize>]>,
    /// Rows, then the axes of the cells, slowest first; `None` for cells not of ndarray.
    pub(super) extents: Option<Vec<u64>>,
}

#[derive(Debug, Clone)]
pub(super) enum Elements<'a> {
    /// Type and little-endian bytes.
    Numbers(DataType, Cow<'a, [u8]>),
    Strings(&'a [BString]),
}

impl<'a> Block<'a> {
    /// Sets the shapes of the cells, for a column that declares several: for each row the index of
    /// its cell's shape, or `None` for an undefined cell. The block has the elements of the defined
    /// cells only, one cell after the other.
    #[must_use]
    pub fn with_shapes(mut self, shapes: &'a [Option<usize>]) -> Self {
        self.shapes = Some(shapes);
        self
    }

    pub(super) fn data_type(&self) -> DataType {
        match &self.elements {
            Elements::Numbers(data_type, _) => *data_type,
            Elements::Strings(_) => DataType::String,
        }
    }

    fn numbers<T: Element + NoUninit>(elements: Cow<'a, [T]>) -> Self {
        let mut bytes: Cow<'a, [u8]> = match elements {
            Cow::Borrowed(elements) => Cow::Borrowed(bytemuck::cast_slice(elements)),
            Cow::Owned(elements) => Cow::Owned(bytemuck::cast_slice(&elements).to_vec()),
        };
        if cfg!(target_endian = "big") {
            crate::value::swap_bytes(bytes.to_mut(), swap_width(T::DATA_TYPE));
        }
        Block { elements: Elements::Numbers(T::DATA_TYPE, bytes), shapes: None, extents: None }
    }
}

macro_rules! numbers {
    ($($rust:ty)*) => {$(
        impl<'a> From<&'a [$rust]> for Block<'a> {
            fn from(elements: &'a [$rust]) -> Self {
                Block::numbers(Cow::Borrowed(elements))
            }
        }

        impl<'a> From<&'a Vec<$rust>> for Block<'a> {
            fn from(elements: &'a Vec<$rust>) -> Self {
                Block::from(elements.as_slice())
            }
        }

        impl<'a, const N: usize> From<&'a [$rust; N]> for Block<'a> {
            fn from(elements: &'a [$rust; N]) -> Self {
                Block::from(elements.as_slice())
            }
        }

        impl From<Vec<$rust>> for Block<'_> {
            fn from(elements: Vec<$rust>) -> Self {
                Block::numbers(Cow::Owned(elements))
            }
        }

        impl<const N: usize> From<[$rust; N]> for Block<'_> {
            fn from(elements: [$rust; N]) -> Self {
                Block::from(elements.to_vec())
            }
        }

        impl<D: Dimension> From<Array<$rust, D>> for Block<'_> {
            fn from(array: Array<$rust, D>) -> Self {
                let extents = array.shape().iter().map(|&extent| extent as u64).collect();
                let elements = Cow::Owned(array.iter().copied().collect());
                Block { extents: Some(extents), ..Block::numbers(elements) }
            }
        }

        impl<'a, D: Dimension> From<&'a Array<$rust, D>> for Block<'a> {
            fn from(array: &'a Array<$rust, D>) -> Self {
                Block::from(array.view())
            }
        }

        impl<'a, D: Dimension> From<ArrayView<'a, $rust, D>> for Block<'a> {
            /// Elements are borrowed if they are contiguous in row-major order, otherwise copied.
            fn from(view: ArrayView<'a, $rust, D>) -> Self {
                let extents = view.shape().iter().map(|&extent| extent as u64).collect();
                let elements = match view.to_slice() {
                    Some(elements) => Cow::Borrowed(elements),
                    None => Cow::Owned(view.iter().copied().collect()),
                };
                Block { extents: Some(extents), ..Block::numbers(elements) }
            }
        }
    )*};
}
numbers!(bool u8 i16 u16 i32 u32 i64 f32 f64 Complex32 Complex64);

impl<'a> From<&'a [BString]> for Block<'a> {
    fn from(strings: &'a [BString]) -> Self {
        Block { elements: Elements::Strings(strings), shapes: None, extents: None }
    }
}

impl<'a> From<&'a Vec<BString>> for Block<'a> {
    fn from(strings: &'a Vec<BString>) -> Self {
        Block::from(strings.as_slice())
    }
}

impl<'a> TryFrom<&'a Values> for Block<'a> {
    type Error = Error;

    fn try_from(values: &'a Values) -> Result<Self> {
        let elements = match (values, values.le_bytes()) {
            (Values::String(strings), _) => Elements::Strings(strings),
            (_, Some(bytes)) => Elements::Numbers(values.data_type(), bytes),
            _ => return Err(Error::unsupported("cells that are records have no fixed size")),
        };
        Ok(Block { elements, shapes: None, extents: None })
    }
}

impl<'a> Elements<'a> {
    /// Little-endian numbers, NUL-padded strings; fails if one is too long, not UTF-8, or has NUL.
    pub(super) fn stored(self, string_bytes: usize) -> Result<Cow<'a, [u8]>> {
        let strings = match self {
            Elements::Numbers(_, bytes) => return Ok(bytes),
            Elements::Strings(strings) => strings,
        };
        let mut bytes = Vec::with_capacity(strings.len() * string_bytes);
        for string in strings {
            if string.len() > string_bytes {
                let (length, shown) = (string.len(), string);
                return Err(Error::usage(format!("{shown:?} has {length} bytes, {string_bytes} are declared")));
            }
            if !can_hold(string) {
                return Err(Error::usage(format!("the string {string:?} is not UTF-8 without NUL, as HDF5 needs it")));
            }
            bytes.extend_from_slice(string);
            bytes.resize(bytes.len() + string_bytes - string.len(), 0);
        }
        Ok(Cow::Owned(bytes))
    }
}
