//! The HTTP API of h5grove 4.0, through which the viewer H5Web reads HDF5 files: turns a request
//! into calls of h5-browse, and their result into an answer.

use std::path::Path;
use std::sync::Arc;

use ctds_hdf5::{Context, Error, ErrorKind};
use h5_browse::{Browser, Data, DataOptions, Dtype, Format, LinkResolution, PIECE_BYTES, TableFile};

const JSON: &str = "application/json";

/// H5Web cannot show larger answers.
const JSON_BYTES: u64 = 64 << 20;

pub(super) struct Answer {
    pub(super) content_type: &'static str,
    pub(super) disposition: Option<String>,
    /// Known before the body is made.
    pub(super) length: Option<u64>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Bytes(Vec<u8>),
    Pieces(Box<dyn Iterator<Item = ctds_hdf5::Result<Vec<u8>>> + Send>),
}

/// HTTP status and message.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
}

pub(super) struct Limits {
    /// Larger answers are refused.
    pub(super) response: u64,
}

/// Decoded names and values.
struct Query<'a>(&'a [(String, String)]);

impl Query<'_> {
    /// The last value counts.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn path(&self) -> &str {
        self.get("path").unwrap_or("/")
    }

    fn links(&self) -> Result<LinkResolution, Refusal> {
        let Some(value) = self.get("resolve_links") else { return Ok(LinkResolution::default()) };
        // true and false, as it was before there were three
        match value.to_lowercase().as_str() {
            "none" | "false" => Ok(LinkResolution::None),
            "only_valid" => Ok(LinkResolution::OnlyValid),
            "all" | "true" => Ok(LinkResolution::All),
            _ => Err(wrong(format!(
                "{value} is not a valid value for link resolution. Accepted values are: all, none or only_valid"
            ))),
        }
    }

    fn flatten(&self) -> Result<bool, Refusal> {
        match self.get("flatten").map(str::to_lowercase).as_deref() {
            None | Some("false" | "0" | "no" | "off" | "f" | "n") => Ok(false),
            Some("true" | "1" | "yes" | "on" | "t" | "y") => Ok(true),
            Some(other) => Err(wrong(format!("flatten is true or false, not {other}"))),
        }
    }

    fn data(&self) -> Result<DataOptions<'_>, Refusal> {
        let format = match self.get("format").unwrap_or("json") {
            "json" => Format::Json,
            "bin" => Format::Bin,
            "npy" => Format::Npy,
            "csv" => Format::Csv,
            "tiff" => Format::Tiff,
            other => return Err(wrong(format!("Unsupported encoding {other}: take json, bin, npy, csv or tiff"))),
        };
        let dtype = match self.get("dtype").unwrap_or("origin") {
            "origin" => Dtype::Origin,
            "safe" => Dtype::Safe,
            other => return Err(wrong(format!("Unsupported dtype {other}: take origin or safe"))),
        };
        Ok(DataOptions { selection: self.get("selection"), format, dtype, flatten: self.flatten()? })
    }
}

fn wrong(message: String) -> Refusal {
    Refusal { status: 422, message }
}

/// `table` opens a table; `served` tells whether a link may lead to a path.
pub(super) fn answer(
    file: &Path,
    name: &str,
    request: &str,
    query: &[(String, String)],
    served: &(dyn Fn(&Path) -> bool + Sync),
    table: &dyn Fn() -> ctds_hdf5::Result<Arc<TableFile>>,
    limits: &Limits,
) -> Result<Answer, Refusal> {
    let query = Query(query);
    let refused = |error: Error| refusal(&error, name);
    let limits = h5_browse::Limits {
        binary_bytes: limits.response,
        json_bytes: limits.response.min(JSON_BYTES),
        ..h5_browse::Limits::default()
    };
    let of_table = || table().map(|table| Browser::of_table(&table, served, &limits));
    let browser = if file.is_dir() { of_table() } else { Browser::open(file, served, &limits) };
    let browser = browser.or_else(|error| match error.kind() {
        // anything else gets the error of opening it as HDF5
        ErrorKind::Format if file.is_file() => of_table().map_err(|_| error),
        _ => Err(error),
    });
    let browser = browser.map_err(refused)?;
    let path = query.path();
    let document = match request {
        "meta" => browser.meta(path, query.links()?),
        "attr" => {
            let names = query.0.iter().filter(|(key, _)| key == "attr_keys").map(|(_, value)| value.clone());
            browser.attributes(path, &names.collect::<Vec<_>>())
        }
        "stats" => browser.stats(path, query.get("selection")),
        "paths" => browser.paths(path, query.links()?),
        "data" => return browser.data(path, &query.data()?).map_err(refused).and_then(|data| values(data, name)),
        _ => return Err(Refusal { status: 404, message: format!("unknown request {request}") }),
    };
    let body = document.map_err(refused)?.into_bytes();
    Ok(Answer { content_type: JSON, disposition: None, length: Some(body.len() as u64), body: Body::Bytes(body) })
}

fn values(mut data: Data, name: &str) -> Result<Answer, Refusal> {
    let disposition = data.file_name.map(|name| format!("attachment; filename=\"{name}\""));
    let (content_type, length) = (data.content_type, data.length);
    // an answer of one piece is made already
    let body = match data.length {
        Some(0) => Body::Bytes(Vec::new()),
        Some(length) if length <= PIECE_BYTES => {
            let mut bytes = Vec::with_capacity(length as usize);
            for piece in data.pieces.by_ref() {
                bytes.extend(piece.map_err(|error| refusal(&error, name))?);
            }
            Body::Bytes(bytes)
        }
        _ => Body::Pieces(Box::new(data.pieces)),
    };
    Ok(Answer { content_type, disposition, length, body })
}

/// The message has the name of the file instead of its path on the server.
pub(super) fn refusal(error: &Error, name: &str) -> Refusal {
    let is_denied = error.kind() == ErrorKind::Io && error.message().contains("Permission denied");
    // the steps to the message; the path of the file comes first, and is the server's
    let steps = error.contexts().filter(|step| !matches!(step, Context::Path(_))).map(ToString::to_string);
    let message = match error.kind() {
        ErrorKind::NotFound if error.message().contains("os error") => "File not found".to_owned(),
        ErrorKind::NotFound | ErrorKind::Usage => error.message().to_owned(),
        _ if is_denied => "Permission denied".to_owned(),
        _ => steps.chain([error.message().to_owned()]).collect::<Vec<_>>().join(": "),
    };
    let status = match error.kind() {
        ErrorKind::NotFound => 404,
        ErrorKind::Limit => 413,
        ErrorKind::Locked => 503,
        _ if is_denied => 403,
        ErrorKind::Io => 500,
        _ => 422,
    };
    let message = if message.contains(name) || status == 413 { message } else { format!("{name}: {message}") };
    Refusal { status, message }
}
