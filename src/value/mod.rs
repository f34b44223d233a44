//! The data model: element types, flat buffers of elements, byte order, shapes, regions, records. No I/O and no formats.

pub(crate) mod bits;
mod byte_order;
mod data_type;
mod record;
mod region;
mod shape;
mod values;

pub use byte_order::ByteOrder;
pub(crate) use byte_order::swap_bytes;
pub use data_type::DataType;
pub(crate) use data_type::TABLE_CODE;
pub use record::{Field, Record, Value};
pub use region::Region;
pub use shape::Shape;
pub(crate) use values::{extend_default, for_each_type, swap_width};

pub use values::{Element, Values};

pub use bstr::BString;
pub use num_complex::{Complex32, Complex64};
