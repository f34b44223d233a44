//! The data model: element types, flat buffers of elements, byte order, shapes, regions, records.
//! No I/O and no formats.

#[doc(hidden)]
pub mod bits;
mod byte_order;
mod data_type;
mod record;
mod region;
mod shape;
mod values;

#[doc(hidden)]
pub use crate::for_each_type;
pub use byte_order::ByteOrder;
#[doc(hidden)]
pub use byte_order::swap_bytes;
pub use data_type::DataType;
#[doc(hidden)]
pub use data_type::TABLE_CODE;
pub use record::{Field, Record, Value};
pub use region::Region;
pub use shape::Shape;
#[doc(hidden)]
pub use values::{extend_default, swap_width};

pub use values::{Element, Values};

pub use bstr::BString;
pub use num_complex::{Complex32, Complex64};
