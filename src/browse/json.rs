//! Writes elements of any HDF5 type as JSON.

use super::number::{Kind, Number};
use super::text::{push_json, push_string};
use crate::h5::{AnyClass, AnyType, ReferenceKind, Visitor};

/// Writes elements of a dataset as JSON to `out`, one after the other. Commas are written within an element, but not between
/// elements.
pub(super) struct JsonElements<'a> {
    out: &'a mut Vec<u8>,
    /// Offsets in bytes at which the written elements end in the JSON text (`out`).
    ends: &'a mut Vec<usize>,
    depth: usize,
    /// Number of axes of each element if it is itself an HDF5 array, else 0. Brackets for these axes are left out: each
    /// value in such an array counts as an element of its own.
    array_axes: usize,
    /// Number of begun and not yet ended lists that are written without brackets, because they stand for the axes of an
    /// element that is an HDF5 array.
    arrays: usize,
    /// Whether the list that is open already has a value, so that the next one needs a comma before it.
    follows: bool,
}

impl<'a> JsonElements<'a> {
    /// Makes a writer that appends elements as JSON to `out`, and to `ends` the offset in `out` at which each element
    /// ends. If elements are HDF5 arrays, `array_axes` is the number of their axes (else 0), and each of their elements counts as one.
    pub(super) fn new(out: &'a mut Vec<u8>, ends: &'a mut Vec<usize>, array_axes: usize) -> Self {
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
    fn fixed(&mut self, element: &AnyType, bytes: &[u8]) {
        self.value(|out| match &element.class {
            AnyClass::Text { padding, .. } => push_string(padding.strip(bytes), out),
            AnyClass::Opaque { .. } => push_string(bytes, out),
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

    fn reference(&mut self, kind: ReferenceKind, bytes: &[u8]) {
        let name = match kind {
            ReferenceKind::Object => "object",
            ReferenceKind::Region => "region",
            ReferenceKind::Newer => "newer",
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
