//! Addresses of stores that another program serves: `vt+unix:PATH`, a socket, and
//! `vt+exec:COMMAND`, a command of the shell that serves on its standard input and output. `#NAME`
//! after it is an archive of the store, and what follows a slash after that is a path in it.

use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Transport<'a> {
    Unix(&'a Path),
    Exec(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Address<'a> {
    pub(super) transport: Transport<'a>,
    /// Empty for the archive of the store that has no name.
    pub(super) archive: &'a str,
}

const UNIX: &str = "vt+unix:";
const EXEC: &str = "vt+exec:";

impl<'a> Address<'a> {
    /// `None` for a path of the file system.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (text, archive) = text.rsplit_once('#').unwrap_or((text, ""));
        let transport = match text.strip_prefix(UNIX) {
            Some(path) => Transport::Unix(Path::new(path)),
            None => Transport::Exec(text.strip_prefix(EXEC)?),
        };
        Some(Address { transport, archive })
    }
}

/// An address and the path in the archive, which may be empty; `None` for a path of the file
/// system. Only what a user has typed is an address, never a path that a file has: it would run its
/// command.
pub fn split_address(path: &Path) -> Option<(&str, &Path)> {
    let text = path.to_str()?;
    Address::parse(text)?;
    let Some(archive) = text.rfind('#') else { return Some((text, Path::new(""))) };
    let end = text[archive..].find('/').map_or(text.len(), |slash| archive + slash);
    Some((&text[..end], Path::new(text[end..].trim_start_matches('/'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_an_archive_and_a_path_in_it() {
        for (path, address, below) in [
            ("vt+unix:/run/vt.sock", "vt+unix:/run/vt.sock", ""),
            ("vt+unix:/run/vt.sock#", "vt+unix:/run/vt.sock#", ""),
            ("vt+unix:/run/vt.sock#/ANTENNA", "vt+unix:/run/vt.sock#", "ANTENNA"),
            ("vt+exec:ssh host h5bridge vt serve /a#b.vt/c/d", "vt+exec:ssh host h5bridge vt serve /a#b.vt", "c/d"),
        ] {
            assert_eq!(split_address(Path::new(path)), Some((address, Path::new(below))), "{path}");
        }
        for path in ["/run/vt+unix:x", "vt+tcp:x", "vt", "./vt+exec:ls"] {
            assert_eq!(split_address(Path::new(path)), None, "{path}");
        }
        let parsed = Address::parse("vt+exec:echo '#' | cat#a").unwrap();
        assert_eq!(parsed, Address { transport: Transport::Exec("echo '#' | cat"), archive: "a" });
        let parsed = Address::parse("vt+unix:s").unwrap();
        assert_eq!(parsed, Address { transport: Transport::Unix(Path::new("s")), archive: "" });
    }
}
