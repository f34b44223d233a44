//! Reads files into memory. Where the copy from the system's page cache to the caller's memory
//! would be slow, because of the address of that memory, bytes go through a buffer at a better
//! address.
//!
//! On processors of AMD (seen on Zen 3) the instruction with which Linux copies from the page cache
//! (`rep movsb`) is ten times slower if the target begins 1 to 31 bytes after the source, counted
//! within pages of 4096 bytes: 1.7 instead of 16 GB/s. Memory for large arrays usually begins 16
//! bytes after the start of a page, and tiles in files at the start of a page.

use std::cell::RefCell;
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
/// Distances within a page from source to target at which a copy may be slow.
const SLOW: std::ops::Range<usize> = 1..32;
/// Smaller reads go straight into the caller's memory.
const LARGE: usize = 16 << 10;
/// Bytes read at a time, and copied on while they are in the processor's cache.
const PIECE: usize = 64 << 10;
/// Bytes per call of `memcpy`: for more, the C library may use the slow `rep movsb`.
const COPIED: usize = 1024;

thread_local! {
    static BETWEEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// `UnexpectedEof` if the file ends before `out` is full; errors of reading.
pub(super) fn read(file: &File, offset: u64, out: &mut [u8]) -> Result<()> {
    if out.len() < LARGE || !is_slow(offset, out) {
        return file.read_exact_at(out, offset);
    }
    BETWEEN.with_borrow_mut(|between| {
        between.resize(PIECE + 2 * PAGE, 0);
        // the same place within a page as in the file
        let start = (offset as usize).wrapping_sub(between.as_ptr().addr()) % PAGE;
        let mut at = offset;
        for piece in out.chunks_mut(PIECE) {
            let copy = &mut between[start..start + piece.len()];
            file.read_exact_at(copy, at)?;
            for (to, from) in piece.chunks_mut(COPIED).zip(copy.chunks(COPIED)) {
                to.copy_from_slice(from);
            }
            at += piece.len() as u64;
        }
        Ok(())
    })
}

/// Whether `out` is, within a page, a little higher than its bytes in the page cache.
fn is_slow(offset: u64, out: &[u8]) -> bool {
    SLOW.contains(&(out.as_ptr().addr().wrapping_sub(offset as usize) % PAGE))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn bytes_are_the_same_at_all_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..3 * PIECE + 5000).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        let mut memory = vec![0; bytes.len() + 2 * PAGE];
        let page = memory.as_ptr().align_offset(PAGE);
        let memory = &mut memory[page..];
        let mut slow = 0;
        for (offset, len) in [(0, LARGE), (0, bytes.len()), (7, PIECE + 1), (4100, 2 * PIECE), (5000, 3 * PIECE)] {
            for shift in (0..48).chain([PAGE - 1]) {
                let out = &mut memory[shift..shift + len];
                out.fill(0);
                slow += usize::from(is_slow(offset, out));
                read(&file, offset, out).unwrap();
                assert!(*out == bytes[offset as usize..][..len], "{len} bytes at {offset}, shift {shift}");
            }
        }
        assert!(slow > 0, "some addresses are such");
        for shift in 0..48 {
            let error = read(&file, 5001, &mut memory[shift..shift + 3 * PIECE]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
    }
}
