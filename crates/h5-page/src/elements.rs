//! Elements of any type as JSON: nested lists, slowest axis outermost.

use h5_read::{Class, Datatype, File, GlobalHeap, Reference};

use crate::error::{Refusal, Result};
use crate::number::Number;

/// Largest document, in bytes.
pub(crate) const JSON_BYTES: usize = 64 << 20;

/// The elements in `bytes`, which are as the file has them and as many as `shape` says; arrays are
/// further axes. Elements of types that are not decoded are `null`.
///
/// # Errors
/// More than [`JSON_BYTES`]; damaged heaps.
pub(crate) fn nested(file: &File, datatype: &Datatype, shape: &[u64], bytes: &[u8]) -> Result<Vec<u8>> {
    let number = Number::of(datatype);
    let mut writer = Writer { heap: GlobalHeap::new(file), out: Vec::new() };
    let mut elements = bytes.chunks_exact((datatype.size as usize).max(1));
    writer.axis(shape, &mut |writer| match (elements.next(), &number) {
        (Some(element), Some(number)) => {
            number.push_json(element, &mut writer.out);
            Ok(())
        }
        (Some(element), None) => writer.element(datatype, element),
        (None, _) => Err(Refusal::new("the dataset has fewer elements than its extents say")),
    })?;
    Ok(writer.out)
}

/// Appends text as JSON; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    // memory can be written
    let _ = serde_json::to_writer(out, &*String::from_utf8_lossy(text));
}

struct Writer {
    heap: GlobalHeap,
    out: Vec<u8>,
}

impl Writer {
    fn axis(&mut self, shape: &[u64], each: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Some((&extent, inner)) = shape.split_first() else { return each(self) };
        self.list(0..extent, |writer, _| writer.axis(inner, each))
    }

    fn list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut each: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.out.push(b'[');
        for (number, item) in items.enumerate() {
            if number > 0 {
                self.out.push(b',');
            }
            each(self, item)?;
            if self.out.len() > JSON_BYTES {
                return Err(Refusal::new(format!(
                    "the answer has more than {JSON_BYTES} bytes: choose less with selection"
                )));
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn element(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        match &datatype.class {
            Class::String(text) => push_text(text.trim(bytes), &mut self.out),
            Class::VariableString(text) => push_text(text.trim(self.heap.sequence(bytes, 1)?), &mut self.out),
            Class::Opaque { .. } => push_text(bytes, &mut self.out),
            Class::Sequence(base) => {
                let parts = self.heap.sequence(bytes, base.size)?.to_vec();
                let parts = parts.chunks_exact((base.size as usize).max(1));
                self.list(parts, |writer, bytes| writer.element(base, bytes))?;
            }
            Class::Compound(members) => self.list(members.iter(), |writer, member| {
                let start = member.offset as usize;
                let bytes = bytes.get(start..start + member.datatype.size as usize);
                writer.element(&member.datatype, bytes.unwrap_or_default())
            })?,
            Class::Array { base, extents } => {
                let shape: Vec<u64> = extents.iter().map(|&extent| extent.into()).collect();
                let mut parts = bytes.chunks_exact((base.size as usize).max(1));
                self.axis(&shape, &mut |writer| writer.element(base, parts.next().unwrap_or_default()))?;
            }
            Class::Reference(kind) => self.reference(*kind, bytes),
            _ => match Number::of(datatype) {
                Some(number) => number.push_json(bytes, &mut self.out),
                None => self.out.extend_from_slice(b"null"),
            },
        }
        Ok(())
    }

    fn reference(&mut self, kind: Reference, bytes: &[u8]) {
        let name = match kind {
            Reference::Object => "object",
            Reference::Region => "region",
            _ => return self.out.extend_from_slice(b"null"),
        };
        let null = if bytes.iter().all(|&byte| byte == 0) { " (null)" } else { "" };
        push_text(format!("<HDF5 {name} reference{null}>").as_bytes(), &mut self.out);
    }
}
