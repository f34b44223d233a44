//! How far a long call has come.

/// Called while something is converted or packed.
pub trait Progress {
    /// About `bytes` will be written, as is known now.
    fn expect(&self, _bytes: u64) {}

    /// `bytes` more of `part`, a column or a file, of `table` have been written.
    fn advance(&self, bytes: u64, table: &str, part: &str);
}
