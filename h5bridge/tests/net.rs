//! The results of users, frozen: the bytes that each writing verb makes of every table of testdata,
//! and the `--json` documents of every verb, compared with `testdata/net.json`.
//!
//! The file has one line for each table and command: SHA-256 of each file written (the first 16
//! hexadecimal digits), and the document, in which short values are verbatim and long ones are
//! digested by table and column. Where `to-ms --exact` or `unpack` gives the source back, the line
//! says so; where a case gives the same as another one of the same table, it names that.
//!
//! `H5BRIDGE_LONG=1` takes every table; otherwise it is the first of each folder and every eighth
//! of the others.
//!
//! When the test fails it names the table, the command, and what differs. A change that is meant is
//! recorded with
//!
//! ```sh
//! H5BRIDGE_NET=write cargo nextest run -p h5bridge --test net --no-capture
//! ```
//!
//! which prints the same differences; each belongs into CHANGELOG.md. Two more variables help:
//! `H5BRIDGE` tests another program than the one just built, and `H5BRIDGE_AGAINST`, the path of an
//! earlier program, shows each difference in full (lines of documents, offsets in files) by running
//! the command with both.
//!
//! Normalised, since they differ from run to run: `seconds`, `time`, `commit_age_seconds`,
//! `lag_seconds`, `work_seconds`, `disk_rate`, and the `peak_memory` that was measured (the
//! estimate of `--dry-run` is kept: the number of threads is given), and `shared_bytes`. The
//! scratch directory is written as `~`, the source as `{in}`, the directory of a table's outputs as
//! `{w}`. Nothing else: all bytes written are the same in every run.
//!
//! Bytes are those of the HDF5 that is built with the program: with another one the test does not
//! run.
#![cfg(feature = "static-hdf5")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctds_hdf5_testing::{copy_tree, step, tables_below, testdata};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

/// Where the line of a case says that the files written are those of the source.
const AS_SOURCE: &str = "as the source";

/// Values longer than this are digested.
const VERBATIM: usize = 200;

/// Differences shown of one case, and cases shown.
const SHOWN: usize = 8;
const CASES_SHOWN: usize = 60;

/// A command: `{in}` is the source, `{w}/` the directory of the table's outputs. The word after
/// `=>` names its output, if anything.
const TABLE: &[&str] = &[
    "info {in}",
    "digest {in}",
    "ls {in}",
    "to-hdf5 {in} {w}/plan.h5 --dry-run --threads 2",
    "to-hdf5 {in} {w}/plan.h5 --dry-run --threads 2 --appendable --restorable --compress none",
    "to-hdf5 {in} {w}/auto.h5 --threads 2 => auto.h5",
    "to-hdf5 {in} {w}/none.h5 --threads 2 --compress none => none.h5",
    "to-hdf5 {in} {w}/none-digest.h5 --threads 1 --compress none --digest => none-digest.h5",
    "to-hdf5 {in} {w}/gzip.h5 --threads 2 --compress gzip:4 => gzip.h5",
    "to-hdf5 {in} {w}/appendable.h5 --threads 2 --appendable => appendable.h5",
    "to-hdf5 {in} {w}/restorable.h5 --threads 2 --restorable => restorable.h5",
    "to-hdf5 {in} {w}/restorable-none.h5 --threads 1 --restorable --compress none => restorable-none.h5",
    "info {w}/auto.h5",
    "info {w}/restorable.h5",
    "digest {w}/appendable.h5",
    "verify {in} {w}/auto.h5",
    "verify {w}/restorable.h5",
    "to-ms {w}/auto.h5 {w}/auto.ms --threads 2 => auto.ms",
    "to-ms {w}/restorable.h5 {w}/exact.ms --threads 2 --exact => exact.ms",
    "to-ms {w}/restorable-none.h5 {w}/exact-none.ms --threads 1 --exact => exact-none.ms",
    "to-ms {in} {w}/copy.ms --threads 2 => copy.ms",
    "to-ms {w}/none.h5 {w}/engines.ms --threads 1 --byte-order big --engines => engines.ms",
    "verify {in} {w}/auto.ms",
    "pack {in} {w}/mf.ms --format multifile => mf.ms",
    "pack {in} {w}/mf-crc.ms --format multifile --crc --block-size 1K => mf-crc.ms",
    "pack {in} {w}/mh.ms --format multihdf5 => mh.ms",
    "pack {in} {w}/mh-gzip.ms --crc --compress gzip => mh-gzip.ms",
    "pack {in} {w}/single.mf --format multifile --single-file --crc => single.mf",
    "pack {in} {w}/single.h5 --single-file => single.h5",
    "pack {in} {w}/single-gzip.h5 --single-file --crc --compress gzip:9 => single-gzip.h5",
    "ls {w}/mf-crc.ms",
    "ls {w}/mh-gzip.ms",
    "ls {w}/single.mf",
    "ls {w}/single.h5",
    "info {w}/single.mf",
    "digest {w}/single.mf",
    "verify {in} {w}/single-gzip.h5 --bytes",
    "verify {w}/single.mf --bytes",
    "unpack {w}/mf-crc.ms {w}/mf.tab => mf.tab",
    "unpack {w}/mh-gzip.ms {w}/mh.tab => mh.tab",
    "unpack {w}/single.mf {w}/single-mf.tab => single-mf.tab",
    "unpack {w}/single.h5 {w}/single-h5.tab => single-h5.tab",
];

/// For one table of each folder: live files take longer. `--idle` ends it where the table has
/// nothing to follow.
const LIVE: &[&str] = &[
    "lint {w}/auto.h5",
    "to-hdf5 {in} {w}/v18.h5 --threads 2 --hdf5 1.8 => v18.h5",
    "lint {w}/v18.h5",
    "follow {in} {w}/live.h5 --until-closed --idle 500ms --poll 1ms => live.h5",
    "info {w}/live.h5",
    "watch {w}/live.h5 --count 1",
    "verify {in} {w}/live.h5",
    "finalize {w}/live.h5 {w}/final.h5 --threads 2 => final.h5",
    "finalize {w}/live.h5 {w}/final-source.h5 --threads 2 --source {in} --restorable --compress none => final-source.h5",
    "repair {w}/live.h5 => live.h5",
];

/// For the MeasurementSet: selections, other levels, and what fails.
const DEMO: &[&str] = &[
    "verify {in}",
    "info {w}/mh.ms",
    "to-hdf5 {in} {w}/gzip1.h5 --threads 2 --compress gzip:1 => gzip1.h5",
    "to-hdf5 {in} {w}/gzip9.h5 --threads 2 --compress gzip:9 --max-memory 8M => gzip9.h5",
    "to-hdf5 {in} {w}/some.h5 --threads 2 --columns TIME,UVW,DATA,ANTENNA/NAME --rows 10..100 => some.h5",
    "to-hdf5 {in} {w}/some.h5 --threads 2 --exclude DATA --tables MAIN,ANTENNA --overwrite => some.h5",
    "to-hdf5 {in} {w}/some.h5",
    "to-hdf5 {in} {w}/no.h5 --columns NO_SUCH_COLUMN",
    "to-hdf5 {in} {w}/no.h5 --rows 0..1000000",
    "to-hdf5 {in}/no {w}/no.h5",
    "to-ms {w}/no.h5 {w}/no.ms",
    "to-ms {w}/auto.h5 {w}/no.ms --exact",
    "to-ms {w}/auto.h5 {w}/auto.ms",
    "pack {in} {w}/mf.ms",
    "pack {w}/auto.h5 {w}/no.ms",
    "pack {in} {w}/no.ms --format multifile --compress gzip",
    "unpack {w}/auto.h5 {w}/no.ms",
    "unpack {w}/mf.ms {w}/mf.tab",
    "info {w}/no.h5",
    "ls {w}/no.h5",
    "ls {w}/auto.h5",
    "ls {w}/single.h5/ANTENNA",
    "digest {w}/no.h5",
    "digest {w}/auto.h5 --columns DATA,FLAG",
    "verify {in} {w}/some.h5",
    "verify {w}/no.h5 {in}",
    "watch {w}/no.h5 --count 1",
    "watch {w}/auto.h5 --count 1",
    "finalize {w}/auto.h5 {w}/no.h5",
    "finalize {w}/live.h5 {w}/final.h5",
    "follow {w}/auto.h5 {w}/no.h5 --until-closed --idle 500ms",
    "repair {w}/no.h5",
    "repair {w}/auto.h5 => auto.h5",
    "info {w}/auto.h5/ANTENNA",
    "info {w}/auto.h5/ANTENA",
    "info {in}/ANTENA",
    "digest {w}/auto.h5/ANTENNA",
    "to-hdf5 {in} {w}/quicklook.h5 --threads 2 --quicklook => quicklook.h5",
    "lint {w}/quicklook.h5",
    "lint {w}/live.h5",
    "lint {w}/single.h5",
    "lint {in}",
    "refs {w}/auto.h5 --url https://example.org/auto.h5",
    "refs {w}/none.h5 --url https://example.org/none.h5",
    "plot {in} --out {w}/waterfall.npy => waterfall.npy",
    "plot {w}/auto.h5 spectrum --out {w}/spectrum.csv => spectrum.csv",
    "plot {in} baselines --out {w}/baselines.png --size 640x480 => baselines.png",
    "plot {in} --x time --y phase --by antenna --out {w}/phase.svg => phase.svg",
    "plot {in} antennas",
    "plot {w}/no.h5",
    "shard plan {in} {w}/shard.h5 --work-bytes 4K --threads 2",
    "shard plan {in} {w}/auto.h5",
    "shard status {w}/shard.h5",
    "shard commit {w}/shard.h5",
    "shard work {w}/shard.h5 --threads 1",
    "shard verify {w}/shard.h5",
    "shard commit {w}/shard.h5 => shard.h5",
    "to-hdf5 {in} {w}/part0.h5 --threads 2 --rows 0..100 => part0.h5",
    "to-hdf5 {in} {w}/part1.h5 --threads 2 --rows 100..210 => part1.h5",
    "join {w}/part0.h5 {w}/part1.h5 {w}/joined.h5",
    "join --virtual {w}/part0.h5 {w}/part1.h5 {w}/joined.h5 --copy-below 0 => joined.h5",
    "join --virtual {w}/part1.h5 {w}/part0.h5 {w}/no.h5",
    "info {w}/joined.h5",
    "verify {in} {w}/joined.h5",
    "verify {in} {w}/joined.h5 --follow-external",
    "batch plan {in} --to {w}/batch-{stem}.h5 --out {w}/m.ndjson",
    "batch plan {in}/no --to {w}/batch-{stem}.h5 --out {w}/no.ndjson",
    "batch status {w}/m.ndjson --ledger {w}/ledger",
    "batch run {w}/m.ndjson --ledger {w}/ledger --retries 0 --threads 2 --min-free 1M => batch-demo.h5",
    "batch run {w}/m.ndjson --ledger {w}/ledger --retries 0 --threads 2 --min-free 1M => batch-demo.h5",
    "batch status {w}/m.ndjson --ledger {w}/ledger",
    "completions bash",
    "completions zsh",
    "completions fish",
];

/// For the table of more than 2^32 rows, of which a few are read.
const HUGE: &[&str] = &[
    "info {in}",
    "ls {in}",
    "to-hdf5 {in} {w}/plan.h5 --dry-run --threads 2",
    "to-hdf5 {in} {w}/last.h5 --threads 2 --rows 4294967290..4294967307 => last.h5",
    "to-hdf5 {in} {w}/restorable.h5 --threads 2 --rows 0..5 --restorable",
    "digest {w}/last.h5",
    "to-ms {w}/last.h5 {w}/last.ms => last.ms",
    "pack {in} {w}/mf.ms --format multifile --crc => mf.ms",
    "unpack {w}/mf.ms {w}/mf.tab => mf.tab",
];

const HUGE_TABLE: &str = "rows64/t.tab";
const DEMO_TABLE: &str = "demo/demo.ms";

/// A scratch directory in which a program is run: a copy of testdata, and outputs.
struct Scratch {
    folder: PathBuf,
    program: PathBuf,
}

impl Scratch {
    fn new(folder: &Path, program: &Path) -> Self {
        copy_tree(&testdata(), &folder.join("testdata"));
        Scratch { folder: folder.to_owned(), program: program.to_owned() }
    }

    /// Runs a command of the tables above for `table`, and gives what it printed and wrote.
    fn run(&self, table: &str, command: &str) -> Outcome {
        let source = format!("testdata/{table}");
        let outputs = format!("out/{table}");
        let (words, written) = match command.split_once(" => ") {
            Some((words, written)) => (words, Some(written)),
            None => (command, None),
        };
        let words = words.split(' ').map(|word| word.replace("{in}", &source).replace("{w}", &outputs));
        let run = Command::new(&self.program).current_dir(&self.folder).arg("--json").args(words).output().unwrap();
        let stdout = String::from_utf8(run.stdout).unwrap();
        let code = run.status.code();
        assert!(code.is_some(), "{table}: {command}: {}: {}", run.status, String::from_utf8_lossy(&run.stderr));
        let paths = [(&*self.folder.to_string_lossy(), "~"), (&source, "{in}"), (&outputs, "{w}")];
        let stdout = paths.into_iter().fold(stdout, |text, (path, name)| text.replace(path, name));
        Outcome {
            code,
            documents: normalised(&stdout, command),
            files: written.map(|written| self.folder.join(outputs).join(written)).filter(|path| path.exists()),
            source: self.folder.join(source),
        }
    }
}

struct Outcome {
    code: Option<i32>,
    /// One or, of `watch`, several.
    documents: Vec<Json>,
    files: Option<PathBuf>,
    source: PathBuf,
}

impl Outcome {
    fn line(&self) -> Json {
        let mut line = Map::new();
        let documented = self.documents.last().and_then(|document| document.get("code"));
        if documented.map_or(self.code != Some(0), |code| *code != json!(self.code)) {
            line.insert("exit".into(), self.code.into());
        }
        for (number, document) in self.documents.iter().enumerate() {
            let name = if number == 0 { "json".into() } else { format!("json{}", number + 1) };
            line.insert(name, condensed(document));
        }
        let written = self.files.as_deref().map(digests);
        if let Some(mut files) = written {
            if self.files.as_ref().is_some_and(|path| path.is_dir()) && files == digests(&self.source) {
                files = AS_SOURCE.into();
            }
            line.insert("files".into(), files);
        }
        line.into()
    }
}

/// The documents of a run, without members that differ from run to run.
fn normalised(stdout: &str, command: &str) -> Vec<Json> {
    let documents = serde_json::Deserializer::from_str(stdout).into_iter::<Json>();
    let mut documents: Vec<Json> = documents.map(|document| document.unwrap()).collect();
    if command.starts_with("shard") {
        documents.iter_mut().for_each(hide_ids);
    }
    for document in documents.iter_mut().filter_map(Json::as_object_mut) {
        // the file system decides how many bytes are shared
        document.retain(|key, _| key != "shared_bytes");
        // another case may have the table open
        if let Some(findings) = document.get_mut("attention").and_then(Json::as_array_mut) {
            findings.retain(|finding| finding["kind"] != "open");
        }
        document.retain(|key, value| key != "attention" || value != &json!([]));
        for (key, value) in document {
            let varies = ["seconds", "time", "commit_age_seconds", "lag_seconds", "work_seconds"].contains(&&**key)
                || key == "peak_memory" && !command.contains("--dry-run");
            if varies && !value.is_null() {
                *value = "~".into();
            }
            // results of items come in any order
            if let Some(results) = value.as_array_mut().filter(|_| key == "results") {
                results.sort_by_key(|result| (result["id"].to_string(), result.to_string()));
            }
            hide_measured(value);
        }
    }
    documents
}

/// Ids of items of `shard` depend on when the table was written.
fn hide_ids(value: &mut Json) {
    match value {
        Json::Object(fields) => fields.values_mut().for_each(hide_ids),
        Json::Array(values) => values.iter_mut().for_each(hide_ids),
        Json::String(text) => {
            let is_id = |word: &str| word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            if text.split(' ').any(is_id) {
                *text = text.split(' ').map(|word| if is_id(word) { "~" } else { word }).collect::<Vec<_>>().join(" ");
            }
        }
        _ => {}
    }
}

/// Hides the seconds and the measured rates of disks in a value, at any depth.
fn hide_measured(value: &mut Json) {
    match value {
        Json::Object(fields) => {
            for (key, value) in fields {
                match ["seconds", "disk_rate"].contains(&&**key) && !value.is_null() {
                    true => *value = "~".into(),
                    false => hide_measured(value),
                }
            }
        }
        Json::Array(values) => values.iter_mut().for_each(hide_measured),
        _ => {}
    }
}

/// A document with its long values digested: tables by column, listings by file. The usual three
/// fields at its end are `"ends": "well"`.
fn condensed(document: &Json) -> Json {
    let Json::Object(fields) = document else { return document.clone() };
    let usual = json!({"status": "done", "code": 0, "warnings": []});
    let is_usual = |name: &str| usual.get(name).is_some();
    let ending: Map<_, _> = fields.clone().into_iter().filter(|(name, _)| is_usual(name)).collect();
    let ends_well = Json::from(ending) == usual && fields.keys().rev().take(3).all(|name| is_usual(name));
    let condense = |(key, value): (&String, &Json)| {
        let short = value.to_string().len() <= VERBATIM;
        let condensed = match (value, &**key) {
            (Json::String(text), _) if is_sha256(text) => text[..16].into(),
            _ if short => value.clone(),
            (Json::Object(_) | Json::Array(_), "tables" | "columns" | "files" | "nested") => parts(value),
            _ => short_digest(value.to_string().as_bytes(), 8).into(),
        };
        (key.clone(), condensed)
    };
    let mut condensed: Map<_, _> =
        fields.iter().filter(|(name, _)| !(ends_well && is_usual(name))).map(condense).collect();
    if ends_well {
        condensed.insert("ends".into(), "well".into());
    }
    condensed.into()
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The items of an object or of an array of named things, each condensed.
fn parts(items: &Json) -> Json {
    let item = |name: String, value: &Json| {
        let has_parts = ["columns", "files", "nested"].iter().any(|key| match value.get(key) {
            Some(Json::Array(items)) => items.iter().any(Json::is_object),
            other => other.is_some_and(Json::is_object),
        });
        let digest = || short_digest(value.to_string().as_bytes(), 8).into();
        (name, if has_parts { condensed(value) } else { digest() })
    };
    match items {
        Json::Object(items) => {
            items.iter().map(|(name, value)| item(name.clone(), value)).collect::<Map<_, _>>().into()
        }
        Json::Array(items) => {
            let name = |(number, value): (usize, &Json)| {
                let name = value.get("name").and_then(Json::as_str);
                item(name.map_or(number.to_string(), Into::into), value)
            };
            let named: Map<_, _> = items.iter().enumerate().map(name).collect();
            // two of one name, or another order of them, must not be lost
            let all = short_digest(Json::from(items.clone()).to_string().as_bytes(), 8);
            json!({ "": all }).as_object().unwrap().clone().into_iter().chain(named).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn short_digest(bytes: &[u8], digits: usize) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text.truncate(digits);
    text
}

/// The digest of a file, or of each file below a directory but locks.
fn digests(path: &Path) -> Json {
    if path.is_file() {
        return short_digest(&fs::read(path).unwrap(), 16).into();
    }
    let files = files_below(path);
    let digest = |(name, path): (String, PathBuf)| (name, short_digest(&fs::read(path).unwrap(), 16).into());
    files.into_iter().map(digest).collect::<Map<_, _>>().into()
}

/// All files below a directory by their relative paths. Directories end with a slash.
fn files_below(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, path);
            }
        }
    }
    found
}

/// Of the tables after the first of a folder, a run that is not long takes every eighth.
const STEP: usize = 8;

/// Paths below testdata of the tables that are converted, and if each is the first of its folder.
fn tables() -> Vec<(String, bool)> {
    let root = testdata();
    let is_main = |path: &PathBuf| !path.parent().unwrap().join("table.dat").exists();
    let below = tables_below(&root).into_iter().filter(is_main);
    let names: Vec<String> = below.map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect();
    let folder = |name: &str| name.split('/').next().unwrap().to_owned();
    let is_first = |number: usize| number == 0 || folder(&names[number]) != folder(&names[number - 1]);
    let all = names.iter().enumerate().map(|(number, name)| (name.clone(), is_first(number)));
    let is_taken = |number: usize, is_first: bool| is_recording() || is_first || number.is_multiple_of(step(STEP));
    all.enumerate().filter(|(number, (_, first))| is_taken(*number, *first)).map(|(_, table)| table).collect()
}

fn is_recording() -> bool {
    std::env::var("H5BRIDGE_NET").is_ok_and(|value| value == "write")
}

/// The commands for a table, and how the lines name them. `first`: of its folder.
fn commands(table: &str, first: bool) -> Vec<(String, &'static str)> {
    let mut commands = if table == HUGE_TABLE { HUGE.to_vec() } else { TABLE.to_vec() };
    if first && table != HUGE_TABLE {
        commands.extend(LIVE);
    }
    if table == DEMO_TABLE {
        commands.extend(DEMO);
    }
    let mut named: Vec<(String, &str)> = Vec::new();
    for command in commands {
        let mut name = label(command);
        while named.iter().any(|(other, _)| *other == name) {
            name += " again";
        }
        named.push((name, command));
    }
    named
}

/// A command as the lines name it: without the words that are the same in all.
fn label(command: &str) -> String {
    let mut words = command.split(" => ").next().unwrap_or(command).split(' ').peekable();
    let mut label = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "{in}" if label.len() == 1 && words.peek().is_some() => {}
            "--threads" => drop(words.next()),
            _ => label.push(word.trim_start_matches("{w}/")),
        }
    }
    label.join(" ")
}

fn observe(scratch: &Scratch) -> BTreeMap<String, Json> {
    let work = tables();
    let next = AtomicUsize::new(0);
    let lines = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((table, first)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outputs = scratch.folder.join("out").join(table);
                    fs::create_dir_all(&outputs).unwrap();
                    for (name, command) in commands(table, *first) {
                        let line = scratch.run(table, command).line();
                        lines.lock().unwrap().insert(format!("{table}: {name}"), line);
                    }
                    fs::remove_dir_all(outputs).unwrap();
                }
            });
        }
    });
    lines.into_inner().unwrap()
}

/// Where `left` and `right` differ, as `path: left, now right`.
fn differences(path: &str, left: &Json, right: &Json, found: &mut Vec<String>) {
    match (left, right) {
        (Json::Object(a), Json::Object(b)) => {
            let before = found.len();
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let inner = if path.is_empty() { name.clone() } else { format!("{path} > {name}") };
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differences(&inner, a, b, found),
                    (Some(a), None) => found.push(format!("{inner}: was {a}, now missing")),
                    (None, Some(b)) => found.push(format!("{inner}: new: {b}")),
                    (None, None) => {}
                }
            }
            if found.len() == before && !a.keys().eq(b.keys()) {
                found.push(format!("{path}: another order"));
            }
        }
        _ if left != right => found.push(format!("{path}: was {left}, now {right}")),
        _ => {}
    }
}

fn in_full(now: &Scratch, before: &Scratch, table: &str, name: &str) -> Vec<String> {
    let outcome = |scratch: &Scratch| {
        let folder = scratch.folder.join("out").join(table);
        fs::create_dir_all(&folder).unwrap();
        let mut last = None;
        for (earlier, command) in commands(table, true) {
            last = Some(scratch.run(table, command));
            if earlier == name {
                break;
            }
        }
        last.unwrap()
    };
    let (left, right) = (outcome(before), outcome(now));
    let mut found = Vec::new();
    differences("exit", &left.code.into(), &right.code.into(), &mut found);
    differences_in_full("json", &left.documents.clone().into(), &right.documents.clone().into(), &mut found);
    let files = |path: &Option<PathBuf>| match path {
        Some(path) if path.is_dir() => files_below(path),
        Some(path) => BTreeMap::from([(String::new(), path.clone())]),
        None => BTreeMap::new(),
    };
    let (left, right) = (files(&left.files), files(&right.files));
    for (name, path) in &left {
        let Some(other) = right.get(name) else { continue };
        let (a, b) = (fs::read(path).unwrap(), fs::read(other).unwrap());
        if let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) {
            found.push(format!("file {name}: {} bytes, now {}; the first difference is at {at}", a.len(), b.len()));
        } else if a.len() != b.len() {
            found.push(format!("file {name}: {} bytes, now {}; one continues the other", a.len(), b.len()));
        }
    }
    for folder in [now, before].map(|scratch| scratch.folder.join("out").join(table)) {
        fs::remove_dir_all(folder).unwrap();
    }
    found
}

/// As `differences`, into arrays too.
fn differences_in_full(path: &str, left: &Json, right: &Json, found: &mut Vec<String>) {
    match (left, right) {
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (number, (a, b)) in a.iter().zip(b).enumerate() {
                differences_in_full(&format!("{path}[{number}]"), a, b, found);
            }
        }
        (Json::Object(a), Json::Object(b)) if a.keys().eq(b.keys()) => {
            for (name, value) in a {
                differences_in_full(&format!("{path} > {name}"), value, &b[name], found);
            }
        }
        _ => differences(path, left, right, found),
    }
}

/// Replaces a value that an earlier case of the same table also has.
const SAME: &str = "same as ";

/// One line for each case, sorted. A long value is written once for each table.
fn text(lines: &BTreeMap<String, Json>) -> String {
    let mut written: BTreeMap<(&str, String), &str> = BTreeMap::new();
    let lines = lines.iter().map(|(name, line)| {
        let (table, command) = name.split_once(": ").unwrap();
        let text = line.to_string();
        let short = text.len() < 60;
        let first = *written.entry((table, text.clone())).or_insert(command);
        (name, if short || first == command { text } else { json!(format!("{SAME}{first}")).to_string() })
    });
    let lines: Vec<String> = lines.map(|(name, text)| format!("{}: {text}", json!(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// The reverse of `text`, in full.
fn parse(text: &str) -> BTreeMap<String, Json> {
    let mut lines: BTreeMap<String, Json> = serde_json::from_str(text).unwrap();
    let same = |(name, line): (&String, &Json)| {
        let (table, _) = name.split_once(": ").unwrap();
        let other = line.as_str()?.strip_prefix(SAME)?;
        Some((name.clone(), lines[&format!("{table}: {other}")].clone()))
    };
    let same: Vec<_> = lines.iter().filter_map(same).collect();
    lines.extend(same);
    lines
}

/// Number of cases that changed, and a report; `in_full` shows those of a case in detail.
fn compare(
    known: &BTreeMap<String, Json>,
    found: &BTreeMap<String, Json>,
    in_full: impl Fn(&str) -> Vec<String>,
) -> (usize, String) {
    let mut report = String::new();
    let mut changed = 0;
    let mut names: Vec<&String> = known.keys().chain(found.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (Some(before), Some(now)) = (known.get(name), found.get(name)) else {
            changed += 1;
            let is_new = found.contains_key(name);
            writeln!(report, "{name}: {}", if is_new { "a new case" } else { "no longer a case" }).unwrap();
            continue;
        };
        let mut list = Vec::new();
        differences("", before, now, &mut list);
        if list.is_empty() {
            continue;
        }
        changed += 1;
        if changed > CASES_SHOWN {
            continue;
        }
        writeln!(report, "{name}").unwrap();
        list.extend(in_full(name));
        for difference in list.iter().take(SHOWN) {
            writeln!(report, "    {difference}").unwrap();
        }
        if list.len() > SHOWN {
            writeln!(report, "    and {} more", list.len() - SHOWN).unwrap();
        }
    }
    (changed, report)
}

#[test]
fn results_are_unchanged() {
    let golden = testdata().join("net.json");
    // in memory if possible: most of the time would be spent waiting for the disk
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = folder.path().canonicalize().unwrap();
    let program = std::env::var_os("H5BRIDGE").map_or(env!("CARGO_BIN_EXE_h5bridge").into(), PathBuf::from);
    let scratch = Scratch::new(&path.join("now"), &program);
    let found = observe(&scratch);

    let taken: BTreeSet<String> = tables().into_iter().map(|(table, _)| table).collect();
    let mut known: BTreeMap<String, Json> = match fs::read_to_string(&golden) {
        Ok(text) => parse(&text),
        Err(_) => BTreeMap::new(),
    };
    // lines of tables that testdata has no more are differences, too
    let is_gone = |table: &str| !testdata().join(table).exists();
    known.retain(|name, _| name.split_once(": ").is_none_or(|(table, _)| taken.contains(table) || is_gone(table)));
    let against = std::env::var_os("H5BRIDGE_AGAINST").map(PathBuf::from);
    let against = against.map(|program| Scratch::new(&path.join("before"), &program));
    let in_full = |name: &str| match (&against, name.split_once(": ")) {
        (Some(against), Some((table, command))) => in_full(&scratch, against, table, command),
        _ => Vec::new(),
    };
    let (changed, report) = compare(&known, &found, in_full);
    eprintln!("{} cases, {changed} changed\n{report}", found.len());
    if is_recording() {
        fs::write(&golden, text(&found)).unwrap();
        return;
    }
    assert!(
        changed == 0,
        "{changed} of {} cases changed (shown above). If that is meant: say why in CHANGELOG.md, and record it with \
         H5BRIDGE_NET=write cargo nextest run -p h5bridge --test net --no-capture",
        found.len()
    );
}
