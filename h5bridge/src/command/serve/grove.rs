//! Placeholder until the API of h5grove is merged.

use std::path::Path;

/// An answer of the API.
pub(super) struct Answer {
    pub(super) content_type: &'static str,
    pub(super) disposition: Option<String>,
    pub(super) length: Option<u64>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Bytes(Vec<u8>),
    Pieces(Box<dyn Iterator<Item = ctds_hdf5::Result<Vec<u8>>> + Send>),
}

/// A refusal.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
}

pub(super) struct Limits {
    pub(super) response: u64,
}

pub(super) fn answer(
    file: &Path,
    name: &str,
    request: &str,
    query: &[(String, String)],
    served: &(dyn Fn(&Path) -> bool + Sync),
    limits: &Limits,
) -> Result<Answer, Refusal> {
    let _ = (name, query, served);
    let length = std::fs::metadata(file).map(|f| f.len()).unwrap_or(0);
    if length > limits.response {
        return Err(Refusal { status: 413, message: format!("the answer has {length} bytes; choose less") });
    }
    if request == "data" {
        let mut open = std::fs::File::open(file).map_err(|e| Refusal { status: 500, message: e.to_string() })?;
        let pieces = std::iter::from_fn(move || {
            let mut piece = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(&mut open, 1 << 20), &mut piece).ok()?;
            (!piece.is_empty()).then_some(Ok(piece))
        });
        let body = Body::Pieces(Box::new(pieces));
        return Ok(Answer { content_type: "application/octet-stream", disposition: None, length: Some(length), body });
    }
    Ok(Answer { content_type: "application/json", disposition: None, length: None, body: Body::Bytes(b"{}".to_vec()) })
}
