//! Adds a line to an archive, which other processes and the original may read and add to at the
//! same time.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ctds::error::{Error, ErrorKind, Result};
use ctds::limits;

use super::archive;

/// End of the name of the file whose existence locks an archive for the original.
const LOCK_SUFFIX: &str = ".lock";

const LOCK_MARK: &[u8] = b"h5bridge\n";

const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The lock file of an archive, as the original uses it; removed when dropped.
#[derive(Debug)]
struct ArchiveLock(PathBuf);

impl ArchiveLock {
    /// The caller holds `flock` on the archive, so a lock file with this program's mark is left
    /// from a killed process, and is replaced. `Locked` if that of another program still exists
    /// after `wait`.
    fn take(archive: &Path, wait: Duration) -> Result<Self> {
        let mut path = archive.to_owned().into_os_string();
        path.push(LOCK_SUFFIX);
        let path = PathBuf::from(path);
        let until = Instant::now() + wait;
        loop {
            // written before it gets its name, so that no process sees the lock file without its
            // mark
            let mut marked = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
            marked.write_all(LOCK_MARK)?;
            match marked.persist_noclobber(&path) {
                Ok(_) => return Ok(ArchiveLock(path)),
                Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error.error.into());
                }
                Err(_) => {}
            }
            if fs::read(&path).is_ok_and(|content| content == LOCK_MARK) {
                fs::remove_file(&path)?;
            } else if Instant::now() < until {
                std::thread::sleep(LOCK_POLL);
            } else {
                let message = format!(
                    "{} exists: another program adds to the archive; if none does, a killed one has left the file: remove it",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Locked, message));
            }
        }
    }
}

impl Drop for ArchiveLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Adds a missing line end if the last line can be parsed; otherwise cuts this line off, and
/// returns a warning. After an error the archive is as before; one without lines is removed.
pub(super) fn append_line(target: &Path, line: &str) -> Result<Option<String>> {
    let mut file = loop {
        let file = File::options().create(true).truncate(false).read(true).write(true).open(target)?;
        file.lock()?;
        // another process may have removed the file while this one waited for the lock
        let (ours, named) = (file.metadata()?, fs::metadata(target));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            break file;
        }
    };
    let appended = append(&mut file, target, line);
    if appended.is_err() && file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        let _ = fs::remove_file(target);
    }
    appended
}

/// The archive is locked.
fn append(file: &mut File, target: &Path, line: &str) -> Result<Option<String>> {
    let _lock = ArchiveLock::take(target, LOCK_WAIT)?;
    let mut bytes = Vec::new();
    limits::whole_file(file.metadata()?.len())?;
    file.read_to_end(&mut bytes)?;
    let mut end = bytes.len();
    let mut warning = None;
    if bytes.last().is_some_and(|&last| last != b'\n') {
        let start = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if archive::parse(&[&bytes[start..], b"\n"].concat()).is_err() {
            warning =
                Some(format!("the last line of the archive, {} bytes, was incomplete and is cut off", end - start));
            end = start;
        }
    }
    let line =
        if end == bytes.len() && end > 0 && bytes[end - 1] != b'\n' { format!("\n{line}") } else { line.to_owned() };
    file.set_len(end as u64)?;
    file.seek(SeekFrom::Start(end as u64))?;
    if let Err(error) = file.write_all(line.as_bytes()).and_then(|()| file.sync_all()) {
        let _ = file.set_len(end as u64);
        return Err(error.into());
    }
    if bytes.is_empty()
        && let Some(directory) = target.parent()
    {
        File::open(directory)?.sync_all()?;
    }
    Ok(warning)
}

/// A time since 1970 as an ISO date in UTC.
pub(super) fn date(seconds: u64, microseconds: u32) -> String {
    format!("{}.{microseconds:06}+00:00", ctds::calendar::Moment::of_unix(seconds as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000+00:00"),
            (951_782_400, "2000-02-29T00:00:00.000000+00:00"),
            (1_600_000_000, "2020-09-13T12:26:40.000000+00:00"),
            (4_107_542_399, "2100-02-28T23:59:59.000000+00:00"),
            (4_107_542_400, "2100-03-01T00:00:00.000000+00:00"),
        ] {
            assert_eq!(date(seconds, 0), expected);
        }
    }

    #[test]
    fn the_lock_of_the_original_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, lock) = (folder.path().join("a.vt"), folder.path().join("a.vt.lock"));
        drop(ArchiveLock::take(&archive, Duration::ZERO).unwrap());
        assert!(!lock.exists());
        // as a killed process of this program leaves it
        fs::write(&lock, LOCK_MARK).unwrap();
        let taken = ArchiveLock::take(&archive, Duration::ZERO).unwrap();
        assert!(lock.exists());
        drop(taken);
        // as the original makes it
        fs::write(&lock, "").unwrap();
        assert_eq!(ArchiveLock::take(&archive, LOCK_POLL).unwrap_err().kind(), ErrorKind::Locked);
        assert!(lock.exists());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(2 * LOCK_POLL);
                fs::remove_file(&lock).unwrap();
            });
            ArchiveLock::take(&archive, LOCK_WAIT).unwrap();
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_incomplete_line_is_completed_or_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.vt");
        let line = "2020-01-01T00:00:00+00:00 1577836800.0 F{\"f\":block:LB{61}}";
        for (before, after, has_warning) in [
            (String::new(), format!("{line}\n"), false),
            (format!("{line}\n"), format!("{line}\n{line}\n"), false),
            (line.to_owned(), format!("{line}\n{line}\n"), false),
            (format!("{line}\n{}", &line[..50]), format!("{line}\n{line}\n"), true),
        ] {
            fs::write(&archive, before).unwrap();
            assert_eq!(append_line(&archive, &format!("{line}\n")).unwrap().is_some(), has_warning);
            assert_eq!(fs::read_to_string(&archive).unwrap(), after);
        }
    }
}
