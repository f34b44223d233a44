//! Items (jobs) of `h5bridge batch`: each has a source, the verb (subcommand of h5bridge) that is
//! run on it with its options, and the target to write.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ctds_hdf5::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// First 8 bytes of the SHA-256 of verb, source, target and options, printed as 16 hexadecimal
/// digits.
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

/// How a verb uses the second path of its command line; the first is the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The second path is the target.
    Writes,
    /// A second path is optional, such as the target that `verify` compares with the source.
    Reads,
    /// `none`: a batch of such items measures the time that the batch itself needs.
    Nothing,
}

/// A subcommand of h5bridge, or `none`, which does nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) has_threads: bool,
    /// `verify TARGET` can check a target by digests stored in it.
    pub(crate) stores_digests: bool,
}

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

/// Options of `batch run`, and such by which an item changes its source or writes nothing.
const REFUSED: [&str; 3] = ["--dry-run", "--replace", "--json"];

/// The receipt appends `.receipt.json` to the name, and file systems allow 255 bytes.
const LONGEST_NAME: usize = 240;

impl Verb {
    /// `none`, or a subcommand that a batch can run; `Usage` for any other name.
    pub(crate) fn find(name: &str) -> Result<Self> {
        VERBS.iter().find(|verb| verb.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).filter(|name| *name != "none").collect();
            let message = format!("{name:?} cannot be the work of a batch; these can: {}", names.join(", "));
            Error::new(ErrorKind::Usage, message)
        })
    }
}

/// One line of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: Id,
    pub(crate) verb: String,
    pub(crate) source: String,
    /// Second path on the command line: written, or compared by `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Size of the source; 0 if it is not known.
    #[serde(default)]
    pub(crate) bytes: u64,
}

impl Item {
    pub(crate) fn new(verb: String, source: String, target: Option<String>, options: Vec<String>, bytes: u64) -> Self {
        let mut item = Item { id: Id(0), verb, source, target, options, bytes };
        item.id = item.computed_id();
        item
    }

    /// Computed from the JSON array of verb, source, target and options.
    pub(crate) fn computed_id(&self) -> Id {
        let content = (&self.verb, &self.source, &self.target, &self.options);
        let text = serde_json::to_string(&content).expect("strings are valid JSON");
        let digest = Sha256::digest(text.as_bytes());
        Id(u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes")))
    }

    /// `Usage` if verb, target or options are not allowed in a batch.
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

    pub(crate) fn output(&self) -> Option<&Path> {
        self.target.as_deref().map(Path::new)
    }

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
