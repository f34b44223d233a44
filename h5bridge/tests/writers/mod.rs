//! The commands that write a target, each with a source to write it from and what the target must
//! become; shared by the tests of races and of interruptions.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// The program under test: the one just built, or the one of the environment variable `H5BRIDGE`.
pub fn program() -> PathBuf {
    std::env::var_os("H5BRIDGE").map_or(env!("CARGO_BIN_EXE_h5bridge").into(), PathBuf::from)
}

/// Whether the long form of a test was asked for with `H5BRIDGE_LONG=1`.
pub fn is_long() -> bool {
    std::env::var("H5BRIDGE_LONG").is_ok_and(|value| value == "1")
}

/// A scratch directory, in memory if possible.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A command that makes `target` from a source: `VERB SOURCE target OPTIONS`.
#[derive(Debug, Clone)]
pub struct Writer {
    pub name: &'static str,
    pub verb: &'static str,
    pub source: PathBuf,
    pub options: &'static [&'static str],
    /// The file name of the target.
    pub target: &'static str,
    /// Content of a whole target: the output is the same in every run.
    pub whole: Content,
}

impl Writer {
    /// The command that writes `target`; nothing that it prints is shown.
    pub fn command(&self, target: &Path, overwrite: bool) -> Command {
        let mut command = Command::new(program());
        command.args([self.verb, "-q"]).arg(&self.source).arg(target).args(self.options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if overwrite {
            command.arg("--overwrite");
        }
        command
    }
}

/// The bytes of a file, or of every file of a directory by relative path.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(BTreeMap<String, Vec<u8>>);

impl Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, bytes)| (name, bytes.len()))).finish()
    }
}

impl Content {
    /// Content at `path`; `None` if nothing is there, or if it went away while it was read.
    pub fn of(path: &Path) -> Option<Self> {
        let identity = identity(path)?;
        let mut found = BTreeMap::new();
        let read = read_below(path, String::new(), &mut found);
        match read {
            Ok(()) if self::identity(path) == Some(identity) => Some(Content(found)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("{}: {error}", path.display()),
            _ => None,
        }
    }

    /// Whether this is a file.
    pub fn is_file(&self) -> bool {
        self.0.contains_key("")
    }

    /// Other content for a file: the first half.
    pub fn cut(&self) -> Self {
        let mut cut = self.clone();
        cut.0.values_mut().for_each(|bytes| bytes.truncate(bytes.len() / 2));
        cut
    }

    /// Makes `path` hold this.
    pub fn write_to(&self, path: &Path) {
        for (name, bytes) in &self.0 {
            // of a file the name is empty
            let path = if name.is_empty() { path.to_owned() } else { path.join(&name[1..]) };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// How this differs from a whole target, for messages.
    pub fn difference(&self, whole: &Content) -> String {
        let missing =
            whole.0.keys().filter(|name| !self.0.contains_key(*name)).map(|name| format!("{name} is missing"));
        let other = self.0.iter().filter_map(|(name, bytes)| match whole.0.get(name) {
            Some(expected) if expected == bytes => None,
            Some(expected) => Some(format!("{name} has {} bytes, expected {}, or others", bytes.len(), expected.len())),
            None => Some(format!("{name} is not expected")),
        });
        missing.chain(other).take(5).collect::<Vec<_>>().join("; ")
    }
}

/// Device and inode.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn read_below(path: &Path, name: String, found: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    if !path.symlink_metadata()?.is_dir() {
        found.insert(name, fs::read(path)?);
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        read_below(&entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy()), found)?;
    }
    Ok(())
}

/// Names in a directory, sorted.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// Waits until a process has ended, which must come within 120,000 looks, one each millisecond at
/// most: a machine that is busy, or suspended, gives it more time.
pub fn wait_for_end(child: &mut Child) {
    for _ in 0..120_000 {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    panic!("a process hangs: {}", child.id());
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// All writers of `table`, with sources below `folder`.
pub fn writers(folder: &Path, table: &Path) -> Vec<Writer> {
    let path = |name: &str| folder.join(name);
    let make = |verb: &str, source: &Path, target: &str, options: &[&str]| {
        succeed(Command::new(program()).args([verb, "-q"]).arg(source).arg(path(target)).args(options));
    };
    make("to-hdf5", table, "native.h5", &["--compress", "none"]);
    make("to-hdf5", table, "restorable.h5", &["--restorable"]);
    make("pack", table, "packed.mf", &["--format", "multifile", "--single-file"]);
    make("follow", table, "live.h5", &["--until-closed"]);
    let forms: [(&str, &str, PathBuf, &[&str], &str); 14] = [
        ("to-hdf5", "to-hdf5", table.into(), &[], "out.h5"),
        ("to-hdf5 none", "to-hdf5", table.into(), &["--compress", "none"], "out.h5"),
        ("to-hdf5 restorable", "to-hdf5", table.into(), &["--restorable"], "out.h5"),
        ("to-ms", "to-ms", path("native.h5"), &[], "out.ms"),
        ("to-ms exact", "to-ms", path("restorable.h5"), &["--exact"], "out.ms"),
        ("to-ms of a table", "to-ms", table.into(), &[], "out.ms"),
        ("pack multifile", "pack", table.into(), &["--format", "multifile", "--crc"], "out.ms"),
        ("pack multihdf5", "pack", table.into(), &["--format", "multihdf5"], "out.ms"),
        ("pack multihdf5 gzip", "pack", table.into(), &["--compress", "gzip", "--crc"], "out.ms"),
        ("pack single multifile", "pack", table.into(), &["--format", "multifile", "--single-file"], "out.mf"),
        ("pack single multihdf5", "pack", table.into(), &["--single-file", "--crc"], "out.h5"),
        ("unpack", "unpack", path("packed.mf"), &[], "out.ms"),
        ("finalize", "finalize", path("live.h5"), &[], "out.h5"),
        ("finalize none", "finalize", path("live.h5"), &["--compress", "none"], "out.h5"),
    ];
    let forms = forms.into_iter().map(|(name, verb, source, options, target)| {
        let mut writer = Writer { name, verb, source, options, target, whole: Content(BTreeMap::new()) };
        let reference = folder.join("reference");
        succeed(&mut writer.command(&reference, false));
        writer.whole = Content::of(&reference).unwrap();
        let removed = if reference.is_dir() { fs::remove_dir_all(&reference) } else { fs::remove_file(&reference) };
        removed.unwrap();
        writer
    });
    forms.collect()
}
