//! Encodes the values of an HDF5 dataset for an answer, in one of the formats JSON, plain bytes,
//! npy, CSV and TIFF.

use std::fmt;

use ctds::error::{Error, Result};

use crate::json::JsonElements;
use crate::limits::Limits;
use crate::nest::Nest;
use crate::number::Form;
use crate::read::{Values, convert};
use crate::selection::{Blocks, elements};
use crate::text::{longest, longest_csv, push_csv, push_json};
use crate::tiff;

/// Largest piece of encoded values that [`Pieces`] returns at a time, in bytes. The first is
/// encoded before the answer begins, so that its errors can still be sent.
pub const PIECE_BYTES: u64 = 1 << 20;

const PIECE: usize = PIECE_BYTES as usize;

/// Encoded blocks are appended to a smaller piece, except the last one.
const SMALL_PIECE: usize = PIECE / 2;

/// Encoding in which the values of a dataset are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Nested lists in JSON, slowest axis outermost.
    #[default]
    Json,
    /// The bytes of the elements without a header, last axis fastest. Numbers have the byte order
    /// of the file, or are little-endian with [`Dtype::Safe`].
    Bin,
    /// A file in numpy's format npy, for numbers; its header states their type and byte order.
    Npy,
    /// CSV: lines of numbers with commas; only for selections of numbers with one or two axes.
    Csv,
    /// An uncompressed TIFF image; only for selections of numbers with two axes.
    Tiff,
}

/// Element type to which the numbers of a dataset are converted before they are encoded; JSON
/// ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dtype {
    /// The element type and byte order that the dataset has in the file. Numbers of a type that
    /// numpy lacks get the nearest numpy type.
    #[default]
    Origin,
    /// The nearest type for which JavaScript has typed arrays: little-endian, and 32 or 64 bits if
    /// it is a floating-point type.
    Safe,
}

/// Which values of a dataset to read, and how to encode them.
#[derive(Debug, Clone, Copy, Default)]
pub struct DataOptions<'a> {
    /// The selection in numpy's basic syntax, `0,:,2:8:2`; `None` for the whole dataset.
    pub selection: Option<&'a str>,
    /// Encoding in which the values are returned.
    pub format: Format,
    /// Element type to which numbers are converted for the formats `Bin`, `Npy`, `Csv` and `Tiff`;
    /// `Json` ignores it. `Safe` is an error for a dataset without numbers, in every format.
    pub dtype: Dtype,
    /// Whether JSON values are one flat list instead of nested ones.
    pub flatten: bool,
}

/// Encoded values of a dataset, with the headers that an HTTP server needs to send them.
pub struct Data {
    /// Media type of the encoded values, such as `application/json`.
    pub content_type: &'static str,
    /// File name under which a web browser should save the values; `None` for JSON and plain bytes.
    pub file_name: Option<&'static str>,
    /// Total length of the encoded values in bytes; `None` if it is not known before all of them
    /// are encoded.
    pub length: Option<u64>,
    /// The encoded values in pieces, each of which is encoded when it is asked for.
    pub pieces: Pieces,
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data").field("content_type", &self.content_type).field("length", &self.length).finish()
    }
}

/// Iterator over the encoded values of a dataset in pieces of at most 1 MiB. Values are read from
/// the file when a piece is asked for; the iterator ends after an error.
pub struct Pieces {
    /// Encoded bytes, of which the first `given` were already returned.
    ready: Vec<u8>,
    given: usize,
    /// `None` once all values are encoded.
    source: Option<Box<dyn Source>>,
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("ready", &(self.ready.len() - self.given)).finish()
    }
}

trait Source: Send {
    /// Appends about 1 MiB; returns false if no values were left.
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool>;
}

impl Pieces {
    fn new(source: impl Source + 'static) -> Self {
        Pieces { ready: Vec::new(), given: 0, source: Some(Box::new(source)) }
    }

    pub(crate) fn of(ready: Vec<u8>) -> Self {
        Pieces { ready, given: 0, source: None }
    }

    /// Encodes until there are 1 MiB; returns true if all values are encoded.
    fn begin(&mut self) -> Result<bool> {
        while self.ready.len() <= PIECE {
            let Some(source) = &mut self.source else { return Ok(true) };
            if !source.more(&mut self.ready)? {
                self.source = None;
            }
        }
        Ok(self.source.is_none())
    }
}

impl Iterator for Pieces {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        while self.ready.len() - self.given < SMALL_PIECE
            && let Some(source) = &mut self.source
        {
            self.ready.drain(..self.given);
            self.given = 0;
            match source.more(&mut self.ready) {
                Ok(true) => {}
                Ok(false) => self.source = None,
                Err(error) => {
                    (self.ready, self.source) = (Vec::new(), None);
                    return Some(Err(error));
                }
            }
        }
        let left = &self.ready[self.given..];
        if left.is_empty() {
            return None;
        }
        if self.given == 0 && left.len() <= PIECE {
            return Some(Ok(std::mem::take(&mut self.ready)));
        }
        let piece = left[..left.len().min(PIECE)].to_vec();
        self.given += piece.len();
        Some(Ok(piece))
    }
}

struct Raw {
    values: Values,
    blocks: Blocks,
    block: Vec<u8>,
    /// Bytes of `block` that were already returned.
    taken: usize,
    /// Numpy types that numbers are read in and converted to.
    forms: Option<(Form, Form)>,
}

impl Raw {
    fn new(values: Values, to: Option<Form>) -> Self {
        let blocks = values.blocks();
        let forms = values.number.as_ref().map(|number| (number.form, to.unwrap_or(number.form)));
        Raw { values, blocks, block: Vec::new(), taken: 0, forms }
    }

    /// `None` at the end.
    fn block(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(block) = self.blocks.next() else { return Ok(None) };
        let read = self.values.read(&block)?;
        Ok(Some(match self.forms {
            Some((from, to)) => convert(read, from, to),
            None => read,
        }))
    }

    /// Returns `bytes` bytes or less; empty at the end.
    fn take(&mut self, bytes: usize) -> Result<&[u8]> {
        if self.taken == self.block.len() {
            let Some(block) = self.block()? else { return Ok(&[]) };
            (self.block, self.taken) = (block, 0);
        }
        let taken = self.taken;
        self.taken += bytes.min(self.block.len() - taken);
        Ok(&self.block[taken..self.taken])
    }
}

struct Binary {
    raw: Raw,
    /// Header of npy or TIFF; empty once it is returned.
    header: Vec<u8>,
}

impl Source for Binary {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        out.append(&mut self.header);
        let Some(mut block) = self.raw.block()? else { return Ok(false) };
        if out.is_empty() {
            *out = block;
        } else {
            out.append(&mut block);
        }
        Ok(true)
    }
}

struct JsonNumbers {
    raw: Raw,
    form: Form,
    nest: Nest,
}

impl Source for JsonNumbers {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let (form, size) = (self.form, self.form.size);
        let bytes = self.raw.take((PIECE / longest(form) as usize).max(1) * size)?;
        out.reserve(PIECE);
        self.nest.elements(bytes.len() / size, out, |start, run, out| {
            push_json(form, &bytes[start * size..(start + run) * size], out);
        });
        Ok(!bytes.is_empty())
    }
}

/// Strings, compounds …
struct JsonAny {
    values: Values,
    blocks: Blocks,
    nest: Nest,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Source for JsonAny {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let Some(block) = self.blocks.next() else { return Ok(false) };
        self.text.clear();
        self.ends.clear();
        let mut elements = JsonElements::new(&mut self.text, &mut self.ends, self.values.array_axes);
        self.values.visit(&block, &mut elements)?;
        push_elements(&mut self.nest, &self.text, &self.ends, out);
        Ok(true)
    }
}

/// Nested lists; `ends` are the offsets in `text` at which the elements end.
pub(crate) fn push_elements(nest: &mut Nest, text: &[u8], ends: &[usize], out: &mut Vec<u8>) {
    nest.elements(ends.len(), out, |start, run, out| {
        for number in start..start + run {
            if number > start {
                out.push(b',');
            }
            let begin = if number == 0 { 0 } else { ends[number - 1] };
            out.extend_from_slice(&text[begin..ends[number]]);
        }
    });
}

struct Csv {
    raw: Raw,
    form: Form,
    columns: u64,
    column: u64,
}

impl Source for Csv {
    fn more(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let (form, size) = (self.form, self.form.size);
        let bytes = self.raw.take((PIECE / longest_csv(form) as usize).max(1) * size)?;
        push_csv(form, bytes, self.columns, &mut self.column, out);
        Ok(!bytes.is_empty())
    }
}

/// Advice to select about the fraction `share`; `shape` has the slowest axis first.
fn choose_less(shape: &[u64], share: f64) -> String {
    let longest = shape.iter().enumerate().max_by_key(|(_, extent)| **extent).filter(|(_, extent)| **extent > 1);
    match longest {
        Some((axis, &extent)) => {
            let before = ":,".repeat(axis);
            let part = ((extent as f64 * share) as u64).max(1);
            format!("choose less with selection={before}0:{part} or every n-th with selection={before}::n")
        }
        None => "one element is more than that".to_owned(),
    }
}

fn check(size: u64, what: &str, most: u64, shape: &[u64]) -> Result<()> {
    if size <= most {
        return Ok(());
    }
    let share = 0.9 * most as f64 / size as f64;
    Err(Error::limit(format!(
        "the answer would have {size} {what}, the limit is {most}: {}",
        choose_less(shape, share)
    )))
}

/// `open` opens the dataset, again for a second pass, which finds the length of a long JSON answer.
pub(crate) fn data(open: &dyn Fn() -> Result<Values>, options: &DataOptions<'_>, limits: &Limits) -> Result<Data> {
    let values = open()?;
    let number = values.number.clone().filter(|_| values.shape.is_some());
    if options.dtype == Dtype::Safe && number.is_none() {
        return Err(Error::usage("Unsupported dtype safe for non-numeric data"));
    }
    values.check_backed()?;
    let form = number.map(|number| if options.dtype == Dtype::Safe { number.form.safe() } else { number.form });
    match options.format {
        Format::Json => json(open, values, options, limits),
        Format::Bin => bytes(values, form, limits),
        format => numbers(format, values, form, limits),
    }
}

/// Encodes elements in the format `Bin`; numbers have this `form`.
fn bytes(values: Values, form: Option<Form>, limits: &Limits) -> Result<Data> {
    let Some(shape) = values.shape.clone() else {
        return Err(Error::usage("Unsupported encoding bin for datasets without a dataspace"));
    };
    if values.has_pointers() {
        return Err(Error::usage(
            "Unsupported encoding bin for elements of variable length and references: they have no bytes of \
             their own; take json",
        ));
    }
    let size = form.map_or(values.element.size(), |form| form.size as u64);
    let length = values.count().saturating_mul(size);
    check(length, "bytes", limits.binary_bytes, &shape)?;
    binary("application/octet-stream", None, Vec::new(), Raw::new(values, form), length)
}

/// Encodes numbers of this `form` in a format for nothing else: `Npy`, `Csv` or `Tiff`.
fn numbers(format: Format, values: Values, form: Option<Form>, limits: &Limits) -> Result<Data> {
    let name = match format {
        Format::Npy => "npy",
        Format::Csv => "csv",
        _ => "tiff",
    };
    let (Some(form), Some(shape)) = (form, values.shape.clone()) else {
        return Err(Error::usage(format!("Unsupported encoding {name} for non-numeric content")));
    };
    let bytes = values.count().saturating_mul(form.size as u64);
    if format == Format::Npy {
        let header = npy_header(form, &shape);
        let length = bytes.saturating_add(header.len() as u64);
        check(length, "bytes", limits.binary_bytes, &shape)?;
        let raw = Raw::new(values, Some(form));
        return binary("application/octet-stream", Some("data.npy"), header, raw, length);
    }
    if shape.is_empty() {
        return Err(Error::usage(format!("Unsupported encoding {name} for empty and scalar datasets")));
    }
    match (format, &shape[..]) {
        (Format::Tiff, &[rows, columns]) => {
            let length = bytes.saturating_add(tiff::HEADER as u64);
            check(length, "bytes", limits.binary_bytes, &shape)?;
            let header = tiff::header(form, rows, columns)?;
            binary("image/tiff", Some("data.tiff"), header, Raw::new(values, Some(form)), length)
        }
        (Format::Csv, [_] | [_, _]) => {
            check(values.count().saturating_mul(longest_csv(form)), "bytes", limits.binary_bytes, &shape)?;
            let columns = if shape.len() == 2 { shape[1] } else { 1 };
            let source = Csv { raw: Raw::new(values, Some(form)), form, columns, column: 0 };
            finish("text/csv", Some("data.csv"), None, Pieces::new(source))
        }
        _ => {
            let axes = if format == Format::Csv { "one or two axes" } else { "two axes" };
            Err(Error::usage(format!(
                "Unsupported encoding {name} for {} axes: it has {axes}; choose with selection",
                shape.len()
            )))
        }
    }
}

fn binary(
    content_type: &'static str,
    file_name: Option<&'static str>,
    header: Vec<u8>,
    raw: Raw,
    length: u64,
) -> Result<Data> {
    finish(content_type, file_name, Some(length), Pieces::new(Binary { raw, header }))
}

fn finish(
    content_type: &'static str,
    file_name: Option<&'static str>,
    length: Option<u64>,
    mut pieces: Pieces,
) -> Result<Data> {
    let length = if pieces.begin()? { Some(pieces.ready.len() as u64) } else { length };
    Ok(Data { content_type, file_name, length, pieces })
}

fn document(text: Vec<u8>) -> Data {
    let length = Some(text.len() as u64);
    Data { content_type: "application/json", file_name: None, length, pieces: Pieces::of(text) }
}

fn json(open: &dyn Fn() -> Result<Values>, values: Values, options: &DataOptions<'_>, limits: &Limits) -> Result<Data> {
    let Some(full) = values.shape.clone() else { return Ok(document(b"null".to_vec())) };
    let count = elements(&full);
    // a scalar stays one
    let shape = if options.flatten && !full.is_empty() { vec![count] } else { full.clone() };
    if count == 0 {
        check(Nest::empty_lists(&shape), "lists", limits.json_numbers, &shape)?;
        let mut text = Vec::new();
        Nest::empty(&shape, &mut text);
        return Ok(document(text));
    }
    let numbers = match &values.number {
        Some(number) if number.form.part() != number.form.size => count.saturating_mul(2),
        _ => count,
    };
    check(numbers, "numbers", limits.json_numbers, &full)?;
    let bound = values.number.as_ref().map(|number| {
        // each element may begin and end a list on every axis
        count.saturating_mul(longest(number.form) + 2 * shape.len() as u64 + 1)
    });
    let mut pieces = json_pieces(values, &shape);
    if pieces.begin()? {
        check(pieces.ready.len() as u64, "bytes", limits.json_bytes, &full)?;
        let length = Some(pieces.ready.len() as u64);
        return Ok(Data { content_type: "application/json", file_name: None, length, pieces });
    }
    let mut length = None;
    if bound.is_none_or(|bound| bound > limits.json_bytes) {
        // only a pass over all of it tells
        let mut bytes = 0;
        for piece in json_pieces(open()?, &shape) {
            bytes += piece?.len() as u64;
            check(bytes, "bytes or more", limits.json_bytes, &full)?;
        }
        length = Some(bytes);
    }
    Ok(Data { content_type: "application/json", file_name: None, length, pieces })
}

fn json_pieces(values: Values, shape: &[u64]) -> Pieces {
    let nest = Nest::new(shape);
    match values.number.as_ref().map(|number| number.form) {
        Some(form) => Pieces::new(JsonNumbers { raw: Raw::new(values, None), form, nest }),
        None => {
            let blocks = values.visited_blocks();
            Pieces::new(JsonAny { values, blocks, nest, text: Vec::new(), ends: Vec::new() })
        }
    }
}

/// Version 1.0; `shape` has the slowest axis first.
fn npy_header(form: Form, shape: &[u64]) -> Vec<u8> {
    let extents: Vec<String> = shape.iter().map(|extent| format!("{extent},")).collect();
    let shape = match &extents[..] {
        [] => String::new(),
        [one] => one.clone(),
        several => several.join(" ").trim_end_matches(',').to_owned(),
    };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", form.dtype());
    // magic, version, two bytes of length; the numbers begin at a multiple of 64
    let padding = 63 - (10 + text.len()) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.bytes());
    header
}
