//! Reads many small pieces of a file, one after the other into memory, with few system calls.

use super::ReadAt;
use crate::error::Result;

/// Gap that is read with the pieces around it: to skip it would cost another system call.
const GAP_BYTES: u64 = 2 << 10;
/// Bytes read at once, gaps included.
const WINDOW_BYTES: u64 = 256 << 10;

/// Reads pieces of a file into a buffer. Near ones in ascending order are read with one system
/// call.
#[derive(Debug)]
pub struct Gather<'a> {
    file: &'a dyn ReadAt,
    /// Unfilled part of the buffer.
    rest: &'a mut [u8],
    start: u64,
    end: u64,
    /// Pieces not read yet: offset from `start`, and length.
    pieces: Vec<(u32, u32)>,
    window: Vec<u8>,
}

impl<'a> Gather<'a> {
    /// `None` unless `file` is a file of the operating system, for which [`GAP_BYTES`] is chosen: a
    /// request to a server costs more.
    pub fn new(file: &'a dyn ReadAt, out: &'a mut [u8]) -> Option<Self> {
        file.raw(0)?;
        Some(Gather { file, rest: out, start: 0, end: 0, pieces: Vec::new(), window: Vec::new() })
    }

    /// Pieces before are read first if this one is not near them. False if the buffer is too small,
    /// or reading failed.
    #[must_use]
    pub fn push(&mut self, offset: u64, len: u64) -> bool {
        let Some(end) = offset.checked_add(len) else { return false };
        if !self.pieces.is_empty()
            && offset >= self.end
            && offset - self.end <= GAP_BYTES
            && end - self.start <= WINDOW_BYTES
        {
            self.pieces.push(((offset - self.start) as u32, len as u32));
            self.end = end;
            return true;
        }
        if self.flush().is_none() {
            return false;
        }
        if len >= WINDOW_BYTES {
            return self.read(offset, len).is_some();
        }
        self.start = offset;
        self.end = end;
        self.pieces.push((0, len as u32));
        true
    }

    /// False if the pieces do not fill the buffer, or reading failed.
    #[must_use]
    pub fn finish(mut self) -> bool {
        self.flush().is_some() && self.rest.is_empty()
    }

    fn next(&mut self, len: usize) -> Option<&'a mut [u8]> {
        let (now, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(len)?;
        self.rest = rest;
        Some(now)
    }

    fn read(&mut self, offset: u64, len: u64) -> Option<()> {
        let out = self.next(usize::try_from(len).ok()?)?;
        self.file.read_at(offset, out).ok()
    }

    fn flush(&mut self) -> Option<()> {
        let bytes = self.end - self.start;
        let mut pieces = std::mem::take(&mut self.pieces);
        match pieces[..] {
            [] => {}
            [_] => self.read(self.start, bytes)?,
            _ => {
                let mut window = std::mem::take(&mut self.window);
                if (window.len() as u64) < bytes {
                    window.resize(bytes.next_power_of_two() as usize, 0);
                }
                let read: Result<()> = self.file.read_at(self.start, &mut window[..bytes as usize]);
                read.ok()?;
                for &(at, len) in &pieces {
                    let out = self.next(len as usize)?;
                    let from = &window[at as usize..][..len as usize];
                    match len {
                        4 => copy::<4>(from, out),
                        8 => copy::<8>(from, out),
                        _ => out.copy_from_slice(from),
                    }
                }
                self.window = window;
            }
        }
        pieces.clear();
        self.pieces = pieces;
        Some(())
    }
}

/// The compiler knows `N`, so that no function is called for the copy.
fn copy<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::io::FileSource;

    #[test]
    fn pieces_come_in_the_order_in_which_they_were_added() {
        let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let source = FileSource::open(file.path()).unwrap();
        let lists: [&[(u64, u64)]; 7] = [
            &[],
            &[(7, 4)],
            // near each other, then far, then back
            &[(0, 4), (4, 8), (100, 8), (100 + 8 + GAP_BYTES, 3), (900_000, 16), (5, 4), (5, 4), (4, 2)],
            &[(10, WINDOW_BYTES), (11, WINDOW_BYTES + 1), (3, 4)],
            &[(0, 200_000), (200_000, 200_000), (400_001, 8)],
            &[((1 << 20) - 8, 8)],
            &[(20, 0), (30, 4), (34, 0)],
        ];
        for list in lists {
            let expected: Vec<u8> =
                list.iter().flat_map(|&(at, len)| bytes[at as usize..][..len as usize].to_vec()).collect();
            let mut found = vec![0; expected.len()];
            let mut gather = Gather::new(&source, &mut found).unwrap();
            assert!(list.iter().all(|&(at, len)| gather.push(at, len)), "{list:?}");
            assert!(gather.finish(), "{list:?}");
            assert!(found == expected, "{list:?}");
        }
    }

    #[test]
    fn missing_bytes_are_reported() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 64]).unwrap();
        let source = FileSource::open(file.path()).unwrap();
        let fills = |list: &[(u64, u64)], len: usize| {
            let mut out = vec![0; len];
            let mut gather = Gather::new(&source, &mut out).unwrap();
            list.iter().all(|&(at, len)| gather.push(at, len)) && gather.finish()
        };
        assert!(fills(&[(0, 4), (8, 4)], 8));
        assert!(!fills(&[(0, 4), (8, 4)], 9), "too few pieces");
        assert!(!fills(&[(0, 4), (8, 4)], 7), "too many pieces");
        assert!(!fills(&[(0, 4), (62, 4)], 8), "past the end of the file");
        assert!(!fills(&[(u64::MAX, 4)], 4), "past the end of any file");
        let memory = vec![0; 64];
        assert!(Gather::new(&memory, &mut [0; 4]).is_none());
    }
}
