//! Placeholder.
use super::{Kind, Manager, OpenArgs};
use crate::error::{Error, Result};
pub(super) static COLUMN: Kind = Kind { names: &["TiledColumnStMan"], open };
pub(super) static SHAPE: Kind = Kind { names: &["TiledShapeStMan"], open };
pub(super) static CELL: Kind = Kind { names: &["TiledCellStMan"], open };
pub(super) static DATA: Kind = Kind { names: &["TiledDataStMan"], open };
fn open(_args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    Err(Error::unsupported("later"))
}
