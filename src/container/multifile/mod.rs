//! MultiFile: equal blocks of one file, and a header that says whose they are. formats/table.md 5.

use super::Format;
use crate::error::Error;

pub(crate) static FORMAT: Format = Format {
    name: "multifile",
    file_name: "table.mf",
    recognise: |_| false,
    open: |_, _| Err(Error::unsupported("multifile is not supported yet")),
    create: |_, _| Err(Error::unsupported("multifile is not supported yet")),
};
