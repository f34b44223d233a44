//! SHA-256 as text.

/// A SHA-256.
pub type Sha = [u8; 32];

/// Its hexadecimal digits, as `sha256sum` prints them.
pub fn hex(sha: &Sha) -> String {
    sha.iter().map(|byte| format!("{byte:02x}")).collect()
}
