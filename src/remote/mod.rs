//! Reads files on web servers and in object stores by ranges: `https://…`, `http://…` and
//! `s3://BUCKET/KEY`.
//!
//! | file             |                                                                                      |
//! |------------------|--------------------------------------------------------------------------------------|
//! | `address.rs`     | URLs, and what an S3 address means with the settings of the environment              |
//! | `settings.rs`    | the environment variables and files of AWS: credentials, region, endpoint            |
//! | `signature.rs`   | AWS Signature Version 4                                                              |
//! | `client.rs`      | requests for ranges: checks of the answers, retries, the version of the file         |
//! | `file.rs`        | [`RemoteFile`]: blocks that are kept, requests that are merged                       |

#[cfg(feature = "remote")]
mod address;
#[cfg(feature = "remote")]
mod client;
#[cfg(feature = "remote")]
mod file;
#[cfg(feature = "remote")]
mod settings;
#[cfg(feature = "remote")]
mod signature;

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::io::ReadAt;

const SCHEMES: [&str; 3] = ["https://", "http://", "s3://"];

pub(crate) fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}

/// `https://host/my.h5/ANTENNA`: address of the file and path inside it, which may be empty.
pub(crate) fn split(path: &Path) -> (&Path, &str) {
    let text = path.to_str().unwrap_or_default();
    let ends = [".h5/", ".hdf5/"].into_iter().filter_map(|end| Some(text.find(end)? + end.len() - 1));
    match ends.min().filter(|_| !text.contains('?')) {
        Some(end) => (Path::new(&text[..end]), text[end..].trim_matches('/')),
        None => (path, ""),
    }
}

/// An open file is shared, with its cached blocks. `Usage` for a malformed address, `NotFound`,
/// `Unsupported` if the server does not serve ranges, else `Io`.
#[cfg(feature = "remote")]
pub(crate) fn open(path: &Path) -> Result<Arc<dyn ReadAt>> {
    Ok(file::open(path.to_str().unwrap_or_default())?)
}

/// Built without the feature `remote`.
#[cfg(not(feature = "remote"))]
pub(crate) fn open(_path: &Path) -> Result<Arc<dyn ReadAt>> {
    Err(crate::error::Error::unsupported("this program was built without the feature `remote`, which reads addresses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths() {
        for (path, found) in [("s3://b/k.h5", true), ("https://h/f", true), ("s3:/b", false), ("/s3://b", false)] {
            assert_eq!(is_remote(Path::new(path)), found, "{path}");
        }
        for (path, file, inside) in [
            ("s3://b/my.h5", "s3://b/my.h5", ""),
            ("s3://b/my.h5/ANTENNA", "s3://b/my.h5", "ANTENNA"),
            ("https://h/a.hdf5/A/B/", "https://h/a.hdf5", "A/B"),
            ("https://h/my.h5?key=a.h5/b", "https://h/my.h5?key=a.h5/b", ""),
        ] {
            assert_eq!(split(Path::new(path)), (Path::new(file), inside), "{path}");
        }
    }
}
