//! Groups: names of objects.

use crate::object::Object;

/// A group.
#[derive(Debug, Clone)]
pub struct Group {
    object: Object,
}

impl Group {
    pub(crate) fn new(object: Object) -> Self {
        Group { object }
    }

    /// The group as an object: its address and attributes.
    pub fn object(&self) -> &Object {
        &self.object
    }
}
