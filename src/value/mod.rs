//! The data model: element types, flat buffers of elements, shapes, regions, records. No I/O and no formats.

mod data_type;
mod record;
mod region;
mod shape;
mod values;

pub use data_type::DataType;
pub(crate) use data_type::TABLE_CODE;
pub use record::{Field, Record, Value};
pub use region::Region;
pub use shape::Shape;
pub(crate) use values::{for_each_type, swap_width};

pub use values::{Element, Values};

pub use bstr::BString;
pub use num_complex::{Complex32, Complex64};
