//! Writes elements of any HDF5 type as JSON.

use ctds_hdf5::internals::Visitor;
use h5_read::{Class, Datatype, Reference};

use crate::number::{Kind, Number};
use crate::text::{push_json, push_string};

/// Writes elements as JSON, with commas within but not between them.
pub(crate) struct JsonElements<'a> {
    out: &'a mut Vec<u8>,
    /// Offsets in `out` at which elements end.
    ends: &'a mut Vec<usize>,
    depth: usize,
    /// Axes of HDF5 arrays, whose brackets are left out: each value counts as an element.
    array_axes: usize,
    /// Open lists without brackets, for the axes of an element that is an array.
    arrays: usize,
    /// Whether the next value in the open list needs a comma before it.
    follows: bool,
}

impl<'a> JsonElements<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, ends: &'a mut Vec<usize>, array_axes: usize) -> Self {
        JsonElements { out, ends, depth: 0, array_axes, arrays: 0, follows: false }
    }

    fn value(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.depth > 0 && self.follows {
            self.out.push(b',');
        }
        write(self.out);
        self.follows = true;
        self.ended();
    }

    fn ended(&mut self) {
        if self.depth == 0 {
            self.ends.push(self.out.len());
        }
    }
}

impl Visitor for JsonElements<'_> {
    fn fixed(&mut self, element: &Datatype, bytes: &[u8]) {
        self.value(|out| match &element.class {
            Class::String(text) => push_string(text.trim(bytes), out),
            Class::Opaque { .. } => push_string(bytes, out),
            _ => match Number::of(element) {
                Some(number) if number.form.kind != Kind::Complex => match number.standard(bytes.to_vec()) {
                    Ok(bytes) => push_json(number.form, &bytes, out),
                    Err(_) => out.extend_from_slice(b"null"),
                },
                _ => out.extend_from_slice(b"null"),
            },
        });
    }

    fn text(&mut self, text: &[u8]) {
        self.value(|out| push_string(text, out));
    }

    fn reference(&mut self, kind: Reference, bytes: &[u8]) {
        let name = match kind {
            Reference::Object => "object",
            Reference::Region => "region",
            _ => "newer",
        };
        let null = if bytes.iter().all(|&byte| byte == 0) { " (null)" } else { "" };
        self.value(|out| push_string(format!("<HDF5 {name} reference{null}>").as_bytes(), out));
    }

    fn begin(&mut self) {
        if self.arrays < self.array_axes {
            self.arrays += 1;
            return;
        }
        if self.depth > 0 && self.follows {
            self.out.push(b',');
        }
        self.out.push(b'[');
        self.depth += 1;
        self.follows = false;
    }

    fn end(&mut self) {
        if self.depth == 0 {
            self.arrays = self.arrays.saturating_sub(1);
            return;
        }
        self.out.push(b']');
        self.depth -= 1;
        self.follows = true;
        self.ended();
    }
}
