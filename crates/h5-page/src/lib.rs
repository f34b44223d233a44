//! Answers requests about an HDF5 file as [h5grove](https://silx-kit.github.io/h5grove/) does, for
//! the viewer H5Web, in WebAssembly: no C, no thread, no `unsafe`.
//!
//! | request | parameters                               | answer                                            |
//! |---------|------------------------------------------|---------------------------------------------------|
//! | `paths` | `path`                                   | paths of a group and all objects below it         |
//! | `meta`  | `path`                                   | an object: kind, attributes, type, shape, members |
//! | `attr`  | `path`, `attr_keys`                      | values of attributes                              |
//! | `data`  | `path`, `selection`, `format`, `dtype`, `flatten` | values of a dataset                      |
//! | `stats` | `path`, `selection`                      | minimum, maximum, mean, standard deviation        |
//!
//! The documents are those of the crate h5-browse, which needs a system with files, and C. This
//! crate has the parts that a page without a server can use: `format` is `json`, `bin` or `npy`,
//! links into other files are not followed, and all rows of a live file up to its extents are
//! shown.
//!
//! # Map
//!
//! `answer.rs` finds objects and their values; `describe.rs` describes objects and types,
//! `elements.rs` writes values as JSON, `number.rs` knows which types are numbers and converts
//! them, `selection.rs` parses selections, `filters.rs` decodes chunks.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answer;
mod describe;
mod elements;
mod error;
mod filters;
mod number;
mod selection;

pub use answer::answer;
pub use error::{Refusal, Result};
