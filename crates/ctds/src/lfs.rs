//! Recognises pointers of Git LFS: small text files that a clone without LFS has in place of the
//! files themselves.

use std::path::Path;

use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{FileSource, ReadAt};

const HEAD: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Length of a pointer in bytes, by the specification of Git LFS.
const LENGTHS: std::ops::RangeInclusive<u64> = 100..=1024;

/// False for a file that cannot be read.
pub fn is_pointer(path: &Path) -> bool {
    let may_be = path.metadata().is_ok_and(|metadata| metadata.is_file() && LENGTHS.contains(&metadata.len()));
    let mut head = [0; HEAD.len()];
    may_be && FileSource::open(path).and_then(|file| file.read_at(0, &mut head)).is_ok() && head == *HEAD
}

/// Fails with `Format`, and the command that fetches the file, if `path` is a pointer.
pub fn check(path: &Path) -> Result<()> {
    if !is_pointer(path) {
        return Ok(());
    }
    let message = "the file is a Git LFS pointer (\"version https://git-lfs…\"): the repository was cloned without its \
                   large files; run `git lfs pull` in it, which fetches them";
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Err(Error::format(message)).context(Context::member(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};

    #[test]
    fn pointers_are_recognised_by_their_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.f0");
        let pointer =
            format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n", "0".repeat(64));
        std::fs::write(&path, &pointer).unwrap();
        check(&path).fails(ErrorKind::Format, "run `git lfs pull` in it, which fetches them");
        for other in [pointer[1..].to_owned(), pointer[..90].to_owned(), pointer.repeat(9)] {
            std::fs::write(&path, other).unwrap();
            check(&path).unwrap();
        }
        check(&folder.path().join("missing")).unwrap();
    }
}
