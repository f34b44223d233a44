//! Names of tables as keywords store them, relative to the table that holds the keyword.
//! formats/table.md 1.10.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

/// Path of the table that a keyword of the table at `parent` names as `name`.
///
/// | stored     | means                                        |
/// |------------|----------------------------------------------|
/// | `././SUB`  | below the parent                             |
/// | `./SIDE`   | beside the parent                            |
/// | `TAIL/.`   | the parent's path without its end `TAIL`     |
/// | else       | as it is; relative to the working directory  |
pub fn resolve(name: &[u8], parent: &Path) -> PathBuf {
    let mut rest = name;
    let mut pairs = 0;
    while let Some(after) = rest.strip_prefix(b"./") {
        rest = after;
        pairs += 1;
    }
    let rest_path = Path::new(OsStr::from_bytes(rest));
    match pairs {
        0 => {}
        1 => return parent.parent().unwrap_or(Path::new("")).join(rest_path),
        _ => return parent.join(rest_path),
    }
    if let Some(tail) = name.strip_suffix(b"/.") {
        let parent_bytes = parent.as_os_str().as_bytes();
        let ending = [b"/", tail].concat();
        if let Some(ancestor) = parent_bytes.strip_suffix(ending.as_slice()) {
            return PathBuf::from(OsStr::from_bytes(ancestor));
        }
    }
    if let Some(below) = name.strip_prefix(b"~/")
        && let Some(home) = std::env::var_os("HOME")
    {
        return Path::new(&home).join(OsStr::from_bytes(below));
    }
    PathBuf::from(OsStr::from_bytes(name.as_bytes()))
}

/// The name that [`resolve`] turns into `path` again; both paths are absolute.
pub fn stored_name(path: &Path, parent: &Path) -> BString {
    let below = |path: &Path, above: &Path| {
        let rest = path.strip_prefix(above).ok().filter(|rest| !rest.as_os_str().is_empty());
        rest.map(|rest| rest.as_os_str().as_bytes().to_owned())
    };
    let name = if let Some(rest) = below(path, parent) {
        [b"././".as_slice(), &rest].concat()
    } else if let Some(rest) = below(parent, path) {
        [rest.as_slice(), b"/."].concat()
    } else if let Some(rest) = parent.parent().and_then(|beside| below(path, beside)) {
        [b"./".as_slice(), &rest].concat()
    } else {
        path.as_os_str().as_bytes().to_owned()
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_cases() {
        let parent = Path::new("/d/x.tab");
        assert_eq!(resolve(b"././SUB", parent), Path::new("/d/x.tab/SUB"));
        assert_eq!(resolve(b"./side.tab", parent), Path::new("/d/side.tab"));
        assert_eq!(resolve(b"/else/far.tab", parent), Path::new("/else/far.tab"));
        assert_eq!(resolve(b"inner/.", Path::new("/d/p.tab/inner")), Path::new("/d/p.tab"));
        // formats/table.md 1.10: what casacore stores
        for (path, parent, stored) in [
            ("/d/x.tab/SUB", "/d/x.tab", "././SUB"),
            ("/d/p.tab", "/d/p.tab/inner", "inner/."),
            ("/d/side.tab", "/d/x.tab", "./side.tab"),
            ("/d/x.tab", "/d/x.tab", "./x.tab"),
            ("/else/far.tab", "/d/x.tab", "/else/far.tab"),
        ] {
            assert_eq!(stored_name(Path::new(path), Path::new(parent)), stored);
            assert_eq!(resolve(stored.as_bytes(), Path::new(parent)), Path::new(path));
        }
    }
}
