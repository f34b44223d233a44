//! Items (jobs) of `h5bridge batch`: each has a source, the verb (subcommand of h5bridge) that is run on it with its
//! options, and the target to write.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ctds_hdf5::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Identity of an item (job) of a batch: the first 8 bytes of the SHA-256 of verb, source, target and options, printed
/// as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Id(pub(crate) u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_id = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_id);
        number.map(Id).ok_or_else(|| format!("an id has 16 hexadecimal digits, found {text:?}"))
    }
}

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What a verb (subcommand that `h5bridge batch` runs for its jobs) does with the second path of its command line. The
/// first path is the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The verb writes the second path, which is its target.
    Writes,
    /// The verb only reads; a second path is optional and is read as well, such as the target that `verify` compares
    /// with the source.
    Reads,
    /// The verb `none`, which does nothing: a batch of such items (jobs) measures the time that the batch itself needs.
    Nothing,
}

/// A verb that an item (one job) of `h5bridge batch` can have: a subcommand of h5bridge, such as `to-hdf5`, or `none`,
/// which does nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    /// Whether the verb accepts the option `--threads`.
    pub(crate) has_threads: bool,
    /// Whether `verify TARGET` can check a target of the verb against digests stored in it.
    pub(crate) stores_digests: bool,
}

/// All verbs that an item (one job) of `h5bridge batch` can have: subcommands of h5bridge, and `none`, which does
/// nothing.
const VERBS: [Verb; 9] = [
    Verb { name: "to-hdf5", effect: Effect::Writes, has_threads: true, stores_digests: true },
    Verb { name: "to-ms", effect: Effect::Writes, has_threads: true, stores_digests: false },
    Verb { name: "pack", effect: Effect::Writes, has_threads: false, stores_digests: false },
    Verb { name: "unpack", effect: Effect::Writes, has_threads: false, stores_digests: false },
    Verb { name: "finalize", effect: Effect::Writes, has_threads: true, stores_digests: true },
    Verb { name: "verify", effect: Effect::Reads, has_threads: false, stores_digests: false },
    Verb { name: "digest", effect: Effect::Reads, has_threads: false, stores_digests: false },
    Verb { name: "info", effect: Effect::Reads, has_threads: false, stores_digests: false },
    Verb { name: "none", effect: Effect::Nothing, has_threads: false, stores_digests: false },
];

/// Options that items (jobs) of `h5bridge batch` may not have: they belong to `batch run`, or make an item change its
/// source or write nothing.
const REFUSED: [&str; 3] = ["--dry-run", "--replace", "--json"];

/// Longest file name of a target (output) in bytes: `.receipt.json` is appended to it for the receipt, the file that
/// records how the target was made, and file systems allow names of 255 bytes.
const LONGEST_NAME: usize = 240;

impl Verb {
    /// Finds the verb called `name`: `none`, or a subcommand of h5bridge that `h5bridge batch` can run for its jobs.
    ///
    /// # Errors
    /// `Usage` for any other name.
    pub(crate) fn find(name: &str) -> Result<Self> {
        VERBS.iter().find(|verb| verb.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).filter(|name| *name != "none").collect();
            let message = format!("{name:?} cannot be the work of a batch; these can: {}", names.join(", "));
            Error::new(ErrorKind::Usage, message)
        })
    }
}

/// One line of the manifest of `h5bridge batch`: a job to do, with its verb, source, target and options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: Id,
    pub(crate) verb: String,
    pub(crate) source: String,
    /// The second path on the command line, after the source: the file or directory to write, or what `verify` compares
    /// with the source. `None` without a second path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// Options of the verb for this item, as words of the command line.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Size of the source of the item in bytes; 0 if it is not known.
    #[serde(default)]
    pub(crate) bytes: u64,
}

impl Item {
    /// Makes an item (one job) of `h5bridge batch`; its id is computed from `verb`, `source`, `target` and `options`.
    /// `bytes` is the size of the source, 0 if it is not known.
    pub(crate) fn new(verb: String, source: String, target: Option<String>, options: Vec<String>, bytes: u64) -> Self {
        let mut item = Item { id: Id(0), verb, source, target, options, bytes };
        item.id = item.computed_id();
        item
    }

    /// The id of the item by its content: the first 8 bytes of the SHA-256 of the JSON array of verb, source, target and
    /// options.
    pub(crate) fn computed_id(&self) -> Id {
        let content = (&self.verb, &self.source, &self.target, &self.options);
        let text = serde_json::to_string(&content).expect("strings are valid JSON");
        let digest = Sha256::digest(text.as_bytes());
        Id(u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes")))
    }

    /// Checks that the item can be done: its verb, target and options are allowed in a batch.
    ///
    /// # Errors
    /// `Usage`.
    pub(crate) fn check(&self) -> Result<Verb> {
        let verb = Verb::find(&self.verb)?;
        if verb.effect == Effect::Writes && self.target.is_none() {
            return Err(Error::new(ErrorKind::Usage, format!("{} needs a target", self.verb)));
        }
        let name = self.output().and_then(Path::file_name).filter(|_| verb.effect == Effect::Writes);
        if name.is_some_and(|name| name.len() > LONGEST_NAME) {
            let message =
                format!("the name of the target has more than {LONGEST_NAME} bytes: its receipt could have none");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        if let Some(option) = self.options.iter().find(|option| REFUSED.contains(&option.as_str())) {
            return Err(Error::new(ErrorKind::Usage, format!("{option} is not possible in a batch")));
        }
        Ok(verb)
    }

    /// The path of the target of the item, which its verb writes or, as `verify` does, reads; `None` if the item has no
    /// target.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.target.as_deref().map(Path::new)
    }

    /// Whether the item replaces an existing target (its options have `--overwrite`).
    pub(crate) fn overwrites(&self) -> bool {
        self.options.iter().any(|option| option == "--overwrite")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_other_programs_compute() {
        // printf '["to-hdf5","/a.ms","/a.h5",["--compress","none"]]' | sha256sum
        let options = vec!["--compress".into(), "none".into()];
        let item = Item::new("to-hdf5".into(), "/a.ms".into(), Some("/a.h5".into()), options, 5);
        assert_eq!(item.id.to_string(), "35ee49164efdeeb7");
        // printf '["verify","/ü\\n.ms",null,[]]' | sha256sum
        let item = Item::new("verify".into(), "/ü\n.ms".into(), None, Vec::new(), 0);
        assert_eq!(item.id.to_string(), "cd27cf303fe7f8fb");
        let line = serde_json::to_string(&item).unwrap();
        assert_eq!(serde_json::from_str::<Item>(&line).unwrap(), item);
        assert!("00000000000000zz".parse::<Id>().is_err() && "+000000000000001".parse::<Id>().is_err());
    }

    #[test]
    fn work_that_a_batch_cannot_do_is_refused() {
        let item = |verb: &str, target: Option<&str>, option: Option<&str>| {
            let options = option.map(str::to_owned).into_iter().collect();
            Item::new(verb.into(), "/a.ms".into(), target.map(str::to_owned), options, 0).check()
        };
        assert!(item("to-hdf5", Some("/a.h5"), None).is_ok() && item("verify", None, None).is_ok());
        for refused in
            [item("serve", None, None), item("to-hdf5", None, None), item("to-hdf5", Some("/a.h5"), Some("--replace"))]
        {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Usage);
        }
    }
}
