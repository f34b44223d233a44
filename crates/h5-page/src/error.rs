//! Reasons why a request has no answer.

use std::fmt;

/// Result of a request.
pub type Result<T> = std::result::Result<T, Refusal>;

/// Reason, for a person, why a request has no answer.
#[derive(Debug)]
pub struct Refusal(String);

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Refusal(message.into())
    }

    pub(crate) fn within(self, place: &str) -> Self {
        Refusal(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<h5_read::Error> for Refusal {
    fn from(error: h5_read::Error) -> Self {
        Refusal(error.to_string())
    }
}
