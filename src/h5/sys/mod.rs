//! Calls of libhdf5's C functions that the `hdf5` crate lacks or restricts. This folder has the
//! only `unsafe` code of the crate.
//!
//! Every function is safe to call. Each takes the global lock for its calls, owns what it creates
//! through a handle of the `hdf5` crate, and checks the length of buffers before libhdf5 sees them.
//! Extents here are in HDF5's order, slowest axis first.
//!
//! | file             | calls about                                                                  |
//! |------------------|------------------------------------------------------------------------------|
//! | `calls.rs`       | the macros that make every call                                              |
//! | `file.rs`        | files and their descriptors                                                  |
//! | `driver.rs`      | the file driver that reads from a [`ReadAt`](crate::io::ReadAt)              |
//! | `link.rs`        | links of groups, and what they lead to                                       |
//! | `space.rs`       | dataspaces and selections                                                    |
//! | `datatype.rs`    | the types of elements that this program writes                               |
//! | `dataset.rs`     | datasets and their chunks                                                    |
//! | `handle.rs`      | closing datasets                                                             |
//! | `scale.rs`       | dimension scales                                                             |
//! | `attribute.rs`   | attributes                                                                   |
//! | `values.rs`      | values of attributes and elements of datasets                                |
//! | `filter.rs`      | filters, and the codecs of this program among them                           |
#![allow(unsafe_code, reason = "calls into libhdf5")]

#[macro_use]
mod calls;

mod attribute;
mod dataset;
mod datatype;
#[cfg(feature = "static-hdf5")]
mod driver;
mod file;
mod filter;
mod handle;
mod link;
mod scale;
mod space;
mod values;

pub(super) use attribute::{attribute_names, create_attribute, has_attribute};
pub(super) use dataset::{
    chunk_index, create_dataset, each_stored_chunk, fill, flush_dataset, header_address, refresh_dataset, set_extent,
    set_fill, stored_chunk, virtual_sources, write_chunk,
};
pub(super) use datatype::{
    Charset, Foreign, array_type, describe, fixed_string_type, foreign_type, int_record_type, number_type, record_type,
    simple_type, string_type,
};
pub(super) use file::{
    Mode, create_file, create_memory_file, descriptor, end_of_file, image, open_file, open_live, open_source, unlock,
};
pub(super) use filter::{filters, is_filter_available};
pub(super) use handle::{DatasetHandle, file_number, take_failure};
pub(super) use link::{link, link_names, open_dataset, open_dataset_at, open_group_at};
pub(super) use scale::{attach_scale, set_dimension_list, set_reference_list, set_scale};
pub(super) use space::{chunked_dataspace, dataspace, memory, scalar, select_steps};
pub(super) use values::{Strings, Target, read, read_strings, write, write_strings};
