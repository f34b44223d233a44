//! Placeholder.
use super::{Kind, Manager, OpenArgs};
use crate::error::{Error, Result};
pub(super) static KIND: Kind = Kind { names: &["IncrementalStMan"], open };
fn open(_args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    Err(Error::unsupported("later"))
}
