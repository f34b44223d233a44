//! Compares two BLZ arrays, or tables of arrays, element by element.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::array::Array;
use crate::arrays::Arrays;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::hex::Hex;
use crate::progress::Progress;

/// Result of comparing two arrays or tables of arrays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArrayComparison {
    /// Number of arrays that both sides of the comparison have.
    pub arrays: usize,
    /// Size in bytes of the arrays whose elements were compared, uncompressed; each pair of arrays
    /// counts once.
    pub bytes: u64,
    /// The first difference of each array that differs; empty if both sides are equal.
    pub differences: Vec<ArrayDifference>,
}

/// The first difference found between two compared arrays, or an array that only one of the two
/// [`Arrays`] has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ArrayDifference {
    /// Name of the array.
    pub array: String,
    /// Indices of the first element that differs, from 0, slowest axis first; `None` if type or
    /// shape differ, or only one side has the array.
    pub index: Option<Vec<u64>>,
    /// The array in the [`Arrays`] whose [`compare`](Arrays::compare) was called: the bytes of the
    /// element that differs in hexadecimal digits, or without an `index` its type and shape, or
    /// `missing`.
    pub left: String,
    /// The array in the other [`Arrays`], in the same form as `left`.
    pub right: String,
}

impl Arrays {
    /// Compares all elements of these arrays with those of `other`, bit by bit; the order of bytes
    /// and the coding of text make no difference.
    ///
    /// # Errors
    /// Those of reading the arrays; `Interrupted` if `progress` says so.
    pub fn compare(&self, other: &Arrays, progress: &dyn Progress) -> Result<ArrayComparison> {
        let mut result = ArrayComparison::default();
        let is_single = |arrays: &Arrays| arrays.columns.is_none() && arrays.arrays.len() == 1;
        let are_single = is_single(self) && is_single(other);
        let same = |left: &Array, right: &Array| are_single || left.name == right.name;
        let mut add = |array: &str, index: Option<Vec<u64>>, left: String, right: String| {
            result.differences.push(ArrayDifference { array: array.to_owned(), index, left, right });
        };
        for right in &other.arrays {
            if !self.arrays.iter().any(|left| same(left, right)) {
                add(&right.name, None, "missing".to_owned(), describe(right)?);
            }
        }
        for left in &self.arrays {
            let Some(right) = other.arrays.iter().find(|right| same(left, right)) else {
                add(&left.name, None, describe(left)?, "missing".to_owned());
                continue;
            };
            result.arrays += 1;
            if left.shape != right.shape || !left.dtype.is_like(&right.dtype)? {
                add(&left.name, None, describe(left)?, describe(right)?);
                continue;
            }
            if let Some((at, found)) = compare([(left, &self.place), (right, &other.place)], progress)? {
                let index = index_of(at / left.dtype.size as u64, &left.shape);
                let [left_bytes, right_bytes] = found;
                add(&left.name, Some(index), left_bytes, right_bytes);
            }
            result.bytes += left.bytes()?;
        }
        Ok(result)
    }
}

fn describe(array: &Array) -> Result<String> {
    Ok(format!("{} {:?}", array.dtype_text, array.shape))
}

fn index_of(mut element: u64, shape: &[u64]) -> Vec<u64> {
    let mut index: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let at = element % extent.max(1);
            element /= extent.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}

/// Sends neutral forms to the thread that compares; each message has whole elements.
fn send(array: &Array, progress: &dyn Progress, to: &SyncSender<Vec<u8>>) -> Result<()> {
    let size = array.dtype.size;
    let mut held = Vec::new();
    array.read(progress, &mut |piece| {
        held.extend_from_slice(piece);
        let whole = held.len() / size * size;
        let rest = held.split_off(whole);
        let mut elements = std::mem::replace(&mut held, rest);
        if !array.dtype.is_plain() {
            elements.chunks_exact_mut(size).try_for_each(|element| array.dtype.convert(element))?;
        }
        // the other side has found a difference, or failed
        to.send(elements).map_err(|_| Error::new(ErrorKind::Interrupted, "nothing more is compared"))
    })
}

/// Compares two arrays of one type and shape; returns the offset in bytes of the first element that
/// differs, and its bytes on each side in hexadecimal digits. `None`: they are equal.
fn compare(arrays: [(&Array, &Context); 2], progress: &dyn Progress) -> Result<Option<(u64, [String; 2])>> {
    let [(left, _), (right, _)] = arrays;
    let size = left.dtype.size;
    thread::scope(|scope| {
        let (to_left, from_left) = sync_channel(4);
        let (to_right, from_right) = sync_channel(4);
        let sending = [
            scope.spawn(move || send(left, progress, &to_left)),
            scope.spawn(move || send(right, &Quiet(progress), &to_right)),
        ];
        let (mut sides, mut at) = ([Side::new(from_left), Side::new(from_right)], 0u64);
        let mut found = None;
        loop {
            let [a, b] = &mut sides;
            let len = a.fill().min(b.fill());
            if len == 0 {
                break;
            }
            let (x, y) = (&a.bytes[a.at..a.at + len], &b.bytes[b.at..b.at + len]);
            if x != y {
                let place = x.iter().zip(y).position(|(x, y)| x != y).unwrap_or(0) / size * size;
                let show = |bytes: &[u8]| Hex(&bytes[place..place + size]).to_string();
                found = Some((at + place as u64, [show(x), show(y)]));
                break;
            }
            (a.at, b.at, at) = (a.at + len, b.at + len, at + len as u64);
        }
        drop(sides);
        let mut failed: Option<Error> = None;
        for (thread, (array, place)) in sending.into_iter().zip(arrays) {
            let sent = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // one that failed makes the other end as well
            if let Err(error) = sent.context(Context::member(&array.name)).context(place.clone())
                && failed.as_ref().is_none_or(|failed| failed.kind() == ErrorKind::Interrupted)
            {
                failed = Some(error);
            }
        }
        match failed {
            Some(error) if found.is_none() => Err(error),
            _ => Ok(found),
        }
    })
}

/// Received elements of one array that are not yet compared.
struct Side {
    from: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    at: usize,
}

impl Side {
    fn new(from: Receiver<Vec<u8>>) -> Self {
        Side { from, bytes: Vec::new(), at: 0 }
    }

    /// Waits for more elements if all received ones were compared; returns the number of bytes that
    /// can be compared now, 0 at the end of the array.
    fn fill(&mut self) -> usize {
        while self.at == self.bytes.len() {
            let Ok(bytes) = self.from.recv() else { return 0 };
            (self.bytes, self.at) = (bytes, 0);
        }
        self.bytes.len() - self.at
    }
}

/// Forwards cancellation, but reports no bytes, so that they are counted only for the first array.
struct Quiet<'a>(&'a dyn Progress);

impl Progress for Quiet<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}
