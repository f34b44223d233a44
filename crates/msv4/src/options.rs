//! Options of a processing set.

/// Name, partitions and date of a processing set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Beginning of the partitions' names, such as `my`.
    pub name: String,
    /// Columns by which rows are separated besides those that always separate them, such as
    /// `FIELD_ID` and `SCAN_NUMBER`.
    pub partition_schema: Vec<String>,
    /// Date of creation in ISO 8601, for the attributes.
    pub date: String,
}
