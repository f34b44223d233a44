//! Every byte of every header, and every length to which a small file can be cut.
