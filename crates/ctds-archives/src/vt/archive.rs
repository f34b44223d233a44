//! Archive files (`.vt`) of the Python package cs.vt: a line for each saved state of a directory,
//! the last one is the current.
//!
//! ```text
//! 2020-09-13T12:26:40.500000+00:00 1600000000.5 D{"my.ms":meta:M{…},block:B{…}} comment
//! ```
//!
//! Empty lines and those that begin with `#` are skipped. The last line ends with a line feed: else
//! it is incomplete.

use ctds::error::{Context, Error, Result, ResultExt};

use super::dirent::Dirent;
use super::text::Text;

/// Bytes at the beginning of a file that tell whether it is an archive.
pub(super) const HEAD_BYTES: u64 = 4096;

/// One saved state.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Date and time in ISO form.
    pub(super) date: String,
    /// Since 1970; 0 if the line cannot be parsed.
    pub(super) seconds: f64,
    /// The root, mostly a directory; an error if the line cannot be parsed.
    pub(super) entry: Result<Dirent>,
}

/// Date, seconds since 1970, and root with comment; `None` if the line has fewer parts.
fn fields(line: &str) -> Option<(&str, &str, &str)> {
    let (date, rest) = line.split_once(char::is_whitespace)?;
    let (seconds, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    Some((date, seconds, rest.trim_start()))
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Whether a text has more than empty lines and comments.
pub(super) fn has_entries(bytes: &[u8]) -> bool {
    bytes.split(|&byte| byte == b'\n').any(|line| !is_skipped(&String::from_utf8_lossy(line)))
}

pub(super) fn is_archive(head: &[u8]) -> bool {
    let head = match std::str::from_utf8(head) {
        Ok(head) => head,
        // the last character may be cut off
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let Some(line) = head.lines().find(|line| !is_skipped(line)) else { return false };
    let Some((date, seconds, entry)) = fields(line.trim_start()) else { return false };
    let date: Vec<u8> = date.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect();
    let is_entry = ["D{", "F{", "SymLink{", "Indirect{"].iter().any(|start| entry.starts_with(start));
    date.starts_with(b"0000-00-00T00:00") && seconds.parse::<f64>().is_ok() && is_entry
}

/// The current state is the last; `Format` if the text is not one of whole lines, has no entry, or
/// the current one cannot be parsed.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Line>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::format("the text is not UTF-8").context(Context::offset("archive", error.valid_up_to() as u64))
    })?;
    let mut lines: Vec<Line> = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let place = Context::offset("line", offset);
        offset += line.len() as u64;
        if is_skipped(line) {
            continue;
        }
        if !line.ends_with('\n') {
            return Err(Error::format("the last line is incomplete: no line feed ends it").context(place));
        }
        let Some((date, seconds, rest)) = fields(line.trim()) else {
            return Err(Error::format("the line does not have date, time and entry").context(place));
        };
        let seconds = seconds.parse::<f64>();
        let entry = match &seconds {
            Ok(_) => Text::new(rest).dirent(),
            Err(_) => Err(Error::format("the time is not a number of seconds")),
        };
        lines.push(Line { date: date.to_owned(), seconds: seconds.unwrap_or_default(), entry: entry.context(place) });
    }
    match lines.last().map(|last| &last.entry) {
        None => Err(Error::format("the archive has no entries")),
        Some(Err(error)) => Err(error.clone()),
        Some(Ok(_)) => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "2020-01-01T00:00:00+00:00 1577836800.0 F{\"f x\":block:LB{61}} a {comment}\n";

    #[test]
    fn lines_with_comments_between() {
        let text = format!("# comment\n\n{LINE}   \n  # another\n{}", LINE.replace("2020-", "2021-"));
        let lines = parse(text.as_bytes()).unwrap();
        assert_eq!(lines.iter().map(|line| &line.date[..4]).collect::<Vec<_>>(), ["2020", "2021"]);
        assert_eq!(lines[1].entry.as_ref().unwrap().name, "f x");
        assert!(is_archive(text.as_bytes()));
        let tabs = LINE.replacen(' ', "\t", 1).replacen(' ', "\t  ", 1);
        assert!(is_archive(tabs.as_bytes()) && parse(tabs.as_bytes()).is_ok());
    }

    #[test]
    fn other_texts_are_not_archives() {
        for text in ["", "# comment\n", "2020-01-01 1.5 x", "2020-01-01T00:00:00 1.5 x{", "nothing like that", "\0\0"] {
            assert!(!is_archive(text.as_bytes()) && parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_archive_that_is_cut_off_is_refused() {
        for len in 1..LINE.len() - 1 {
            assert!(parse(&LINE.as_bytes()[..len]).is_err(), "{len}");
        }
        let error = parse(format!("{LINE}{}", LINE.trim_end()).as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("line at byte {}: the last line is incomplete: no line feed ends it", LINE.len()));
        // an older line that is damaged does not matter until it is asked for
        let lines = parse(format!("{}{LINE}", LINE.replace("F{", "Q{")).as_bytes()).unwrap();
        assert!(lines[0].entry.is_err() && lines[1].entry.is_ok());
    }
}
