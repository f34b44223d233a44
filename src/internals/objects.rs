//! Objects of any HDF5 file, also of one that grows, and casacore tables in the form of such a
//! file, which h5-browse shows.

pub use crate::convert::to_hdf5::{Place, Unwritten};
pub use crate::h5::{
    AnyAttribute, AnyDataset, AnyNamedType, AnyObject, File, Group, Link, Served, Steps, Visitor, has_pointers,
};
pub use crate::live::committed::CommittedRows;
