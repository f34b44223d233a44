//! The `--json` output of every verb, parsed as its type of `ctds_hdf5::documents` and serialized
//! again. Both texts are equal only if neither the program nor the type has a member that the other
//! lacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ctds_hdf5::documents::*;
use ctds_hdf5_testing::{copy_tree, testdata};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// A scratch directory with the MeasurementSet `my.ms`.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        copy_tree(&testdata().join("demo/demo.ms"), &folder.path().join("my.ms"));
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Standard output of a command line, without the name of the program.
    #[track_caller]
    fn printed(&self, command: &str) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_h5bridge"));
        let output = program.current_dir(&self.0).arg("--json").args(words(command)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        text
    }

    #[track_caller]
    fn check<D: Serialize + DeserializeOwned>(&self, command: &str) -> D {
        let printed = self.printed(command);
        let document: Outcome<D> =
            serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{command}: {error}: {printed}"));
        assert_eq!(serde_json::to_string_pretty(&document).unwrap() + "\n", printed, "{command}");
        match document {
            Outcome::Finished(document) => document,
            Outcome::Failed(failure) => panic!("{command}: {}", failure.error),
        }
    }

    #[track_caller]
    fn fails(&self, command: &str) -> Failure {
        let printed = self.printed(command);
        let Outcome::Failed(failure) = serde_json::from_str::<Outcome<Document<ToHdf5>>>(&printed).unwrap() else {
            panic!("{command}: a failure is expected: {printed}");
        };
        assert_eq!(serde_json::to_string_pretty(&failure).unwrap() + "\n", printed, "{command}");
        failure
    }
}

/// Words in single quotes may have spaces.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let split = |(number, part): (usize, &str)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    parts.flat_map(split).collect()
}

/// An array of bytes in the form of bcolz, one chunk that is stored as it is.
fn write_array(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.join("meta")).unwrap();
    fs::create_dir_all(path.join("data")).unwrap();
    fs::write(path.join("meta/storage"), format!(r#"{{"dtype": "uint8", "chunklen": {}}}"#, bytes.len())).unwrap();
    fs::write(path.join("meta/sizes"), format!(r#"{{"shape": [{}]}}"#, bytes.len())).unwrap();
    let mut file = b"blpk\x01\0\0\0\x01\0\0\0\0\0\0\0\x02\x01\x02\x01".to_vec();
    for number in [bytes.len(), bytes.len(), bytes.len() + 16] {
        file.extend((number as u32).to_le_bytes());
    }
    file.extend(bytes);
    fs::write(path.join("data/__0.blp"), file).unwrap();
}

#[test]
fn conversions() {
    let folder = Folder::new();
    let document: Document<ToHdf5DryRun> = folder.check("to-hdf5 my.ms no.h5 --dry-run --restorable --appendable");
    assert!(document.content.restorable.is_some() && document.content.sharing.is_none());
    let document: Document<ToHdf5DryRun> = folder.check("to-hdf5 my.ms no.h5 --dry-run --compress shared");
    assert!(document.content.sharing.is_some());
    let averaged = "to-hdf5 my.ms averaged.h5 --average time=20s,chan=2 --profile cloud --compress zstd:3";
    let document: Document<ToHdf5DryRun> = folder.check(&format!("{averaged} --dry-run"));
    assert!(document.content.averaged.is_some() && document.content.profile.is_some());
    let document: Document<ToHdf5> = folder.check(averaged);
    assert!(document.content.averaged.is_some() && !document.plugins.is_empty());
    let document: Document<ToHdf5> = folder.check("to-hdf5 my.ms my.h5 --restorable");
    assert_eq!((document.code, &*document.status, document.content.rows), (0, "done", 210));
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms shared.h5 --compress shared");
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms old.h5 --hdf5 1.8");
    folder.check::<Document<ToMs>>("to-ms my.h5 values.ms");
    folder.check::<Document<ToMsExact>>("to-ms my.h5 exact.ms --exact");
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms part0.h5 --rows 0..100");
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms part1.h5 --rows 100..210");
    let document: Document<Join> = folder.check("join --virtual part0.h5 part1.h5 joined.h5 --copy-below 0");
    assert!(!document.content.virtual_columns.is_empty() && !document.warnings.is_empty());
    folder.check::<Info>("info joined.h5");
    for file in ["my.h5", "old.h5"] {
        folder.check::<Document<Lint>>(&format!("lint {file}"));
    }
    assert_eq!(folder.fails("to-hdf5 my.ms/no no.h5").code, 3);
    assert_eq!(folder.fails("to-hdf5 my.ms my.h5").code, 7);
}

#[test]
fn comparisons() {
    let folder = Folder::new();
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms my.h5");
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms some.h5 --exclude DATA --rows 1..200");
    folder.check::<Document<Pack>>("pack my.ms packed.ms --crc");
    folder.check::<Document<VerifyTables>>("verify my.ms my.h5");
    folder.check::<Document<VerifyTables>>("verify my.h5");
    let document: Document<VerifyTables> = folder.check("verify my.ms some.h5");
    assert!(!document.content.equal && document.code == 5 && !document.content.differences.is_empty());
    folder.check::<Document<VerifyBytes>>("verify --bytes my.ms packed.ms");
    fs::write(folder.path("my.ms/ANTENNA/table.info"), "Type = \n").unwrap();
    let document: Document<VerifyBytes> = folder.check("verify --bytes my.ms packed.ms");
    assert_eq!(document.content.differences.len(), 1);
    folder.check::<Document<VerifyStored>>("verify --bytes packed.ms");
    let mut bytes = fs::read(folder.path("packed.ms/table.mf")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.path("packed.ms/table.mf"), bytes).unwrap();
    let document: Document<VerifyStored> = folder.check("verify --bytes packed.ms");
    assert!(document.content.intact == Some(false) && !document.content.damaged.is_empty());
    folder.check::<Digest>("digest my.ms");
    let document: Digest = folder.check("digest my.h5 --hash sha256 --columns DATA,FLAG");
    let Described::Table(main) = &document.tables["."] else { panic!("the main table can be read") };
    assert_eq!((main.nrow, main.columns.len(), &*document.format), (210, 2, "CTFP-1"));
}

#[test]
fn stored_in_place() {
    let folder = Folder::new();
    folder.check::<Document<Manifest>>("manifest my.ms my.json");
    folder.check::<Document<VerifyManifest>>("verify my.json");
    for entry in fs::read_dir(folder.path("my.ms")).unwrap().map(Result::unwrap) {
        let file = fs::File::open(entry.path()).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let document: Document<VerifyManifest> = folder.check("verify my.json");
    assert!(!document.content.unchanged && !document.content.changed.is_empty());
    folder.check::<Document<Replace>>("to-hdf5 my.ms replaced.h5 --replace");
    folder.check::<Document<VerifyThin>>("verify my.ms");
    let document: Info = folder.check("info my.ms");
    assert!(document.thin.is_some());
    folder.check::<Document<Link>>("link replaced.h5 thin.ms");
    folder.check::<Document<Materialize>>("materialize thin.ms");
}

#[test]
fn descriptions() {
    let folder = Folder::new();
    let document: Info = folder.check("info my.ms");
    let summary = document.summary.unwrap();
    assert_eq!((summary.rows, summary.antennas.len(), document.kind.as_deref()), (210, 6, Some("MeasurementSet")));
    folder.check::<Document<ToHdf5>>("to-hdf5 my.ms my.h5 --restorable");
    let document: Info = folder.check("info my.h5");
    assert!(document.bytes.is_some() && document.restorable == Some(true));
    folder.check::<Document<Pack>>("pack my.ms packed.ms");
    folder.check::<Document<Pack>>("pack my.ms whole.h5 --single-file --crc");
    folder.check::<Document<Pack>>("unpack packed.ms unpacked.ms");
    for source in ["packed.ms", "whole.h5"] {
        folder.check::<Info>(&format!("info {source}"));
        folder.check::<List>(&format!("ls {source}"));
    }
    folder.check::<List>("ls my.ms");
    // files without a table
    fs::create_dir(folder.path("streams")).unwrap();
    fs::write(folder.path("streams/TASK0"), "abc").unwrap();
    folder.check::<Document<Pack>>("pack streams run.sion --format sion");
    let document: InfoContainer = folder.check("info run.sion");
    assert_eq!((document.files, document.bytes), (1, 3));
    folder.check::<InfoFile>("info run.sion/TASK0");
    folder.check::<DigestFiles>("digest run.sion");
    folder.check::<DigestFiles>("digest run.sion/TASK0");
    folder.check::<Document<Pack>>("to-hdf5 run.sion files.h5");
    fs::remove_dir_all(folder.path("my.ms/ANTENNA")).unwrap();
    fs::write(folder.path("my.ms/FIELD/table.dat"), "damaged").unwrap();
    let document: Info = folder.check("info my.ms");
    assert!(!document.attention.is_empty());
    let document: Document<ToHdf5> = folder.check("to-hdf5 my.ms salvaged.h5 --salvage");
    assert!(!document.damage.is_empty() && document.code == 6);
    let document: Info = folder.check("info salvaged.h5");
    assert!(!document.damage.is_empty());
    folder.check::<Digest>("digest my.ms");
}

#[test]
fn arrays() {
    let folder = Folder::new();
    write_array(&folder.path("a.bcolz"), b"abcd");
    write_array(&folder.path("b.bcolz"), b"abcx");
    folder.check::<InfoArrays>("info a.bcolz");
    folder.check::<DigestFiles>("digest a.bcolz");
    let document: Document<VerifyStoredArrays> = folder.check("verify a.bcolz");
    assert_eq!((document.content.intact, document.content.checked.decoded), (None, 1));
    folder.check::<Document<ToHdf5Arrays>>("to-hdf5 a.bcolz a.h5");
    folder.check::<Document<VerifyArrays>>("verify a.bcolz a.h5");
    let document: Document<VerifyArrays> = folder.check("verify a.bcolz b.bcolz");
    assert_eq!(document.content.differences.len(), 1);
    folder.check::<Document<PackArrays>>("unpack a.h5 again.bcolz");
    folder.check::<Document<PackArrays>>("pack a.bcolz a.blz --format blz");
    let printed = folder.printed("ls a.bcolz");
    let document: ListChunks = serde_json::from_str(&printed).unwrap();
    assert_eq!(document.chunks.len(), 1);
    // each chunk is printed on a line of its own
    let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(serde_json::to_string(&document).unwrap(), value.to_string());
}

#[test]
fn live_files() {
    let folder = Folder::new();
    let document: Document<Follow> = folder.check("follow my.ms live.h5 --until-closed --idle 500ms --poll 1ms");
    assert_eq!(document.content.tables["MAIN"], 210);
    let printed = folder.printed("watch live.h5 --count 2 --interval 1ms --alert 'flagged > 0.1 %'");
    let lines: Vec<WatchLine> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, text) in lines.iter().zip(printed.lines()) {
        assert_eq!(serde_json::to_string(line).unwrap(), text);
    }
    assert!(matches!(
        lines.as_slice(),
        [WatchLine::Look(_), WatchLine::Alert(_), WatchLine::Look(_), WatchLine::End(end)] if end.looks == 2
    ));
    folder.check::<Info>("info live.h5");
    folder.check::<Document<Repair>>("repair live.h5");
    folder.check::<Document<Finalize>>("finalize live.h5 final.h5");
    let document: Document<PackFollow> = folder.check("pack my.ms live.mfh5 --follow --until-closed --idle 500ms");
    assert_eq!((document.content.commits, document.content.generations, document.content.replaced_bytes), (1, 1, 0));
    folder.check::<Document<Pack>>("finalize live.mfh5 packed.ms");
}

#[test]
fn plots() {
    let folder = Folder::new();
    for kind in ["", "spectrum", "baselines --out baselines.png", "antennas"] {
        let document: Document<Plot> = folder.check(&format!("plot my.ms {kind}"));
        assert!(document.content.first.arrays.is_some(), "{kind}");
    }
}

#[test]
fn shards() {
    let folder = Folder::new();
    let plan = "shard plan my.ms big.h5 --work-bytes 4K";
    let document: Document<ShardPlan> = folder.check(plan);
    let items = document.content.items;
    let document: Document<ShardStatus> = folder.check("shard status big.h5");
    assert_eq!((document.content.counts.waiting, document.content.items.len() as u64), (items, items));
    let document: Document<ShardWork> = folder.check("shard work big.h5");
    assert_eq!(document.content.results.len() as u64, items);
    folder.check::<Document<ShardVerify>>("shard verify big.h5 --source");
    folder.check::<Document<ShardStatus>>("shard status big.h5");
    folder.check::<Document<ShardCommit>>("shard commit big.h5");
    folder.check::<Document<ShardStatus>>("shard status big.h5");
    folder.check::<Document<ShardSplit>>("shard plan my.ms split.h5 --split 100K");
}

#[test]
fn batches() {
    let folder = Folder::new();
    fs::create_dir(folder.path("no.ms")).unwrap();
    folder.check::<Document<BatchPlan>>("batch plan my.ms no.ms --to out-{stem}.h5 --out list.ndjson");
    let printed = folder.printed("batch run list.ndjson --ledger ledger --retries 0 --min-free 1M");
    let document: Document<BatchRun> = serde_json::from_str(&printed).unwrap();
    assert_eq!(serde_json::to_string_pretty(&document).unwrap() + "\n", printed);
    assert_eq!((document.content.states["done"], document.content.states["failed"]), (1, 1));
    let document: Document<BatchStatus> = folder.check("batch status list.ndjson --ledger ledger --failed");
    assert_eq!(document.content.failed.unwrap().len(), 1);
    folder.check::<Document<BatchStatus>>("batch status list.ndjson --ledger ledger");
    folder.check::<Document<BatchClean>>("batch clean list.ndjson");
}

#[test]
fn views_written_again() {
    let folder = Folder::new();
    copy_tree(&testdata().join("ref_tables"), &folder.path("refs"));
    folder.check::<Document<ToHdf5>>("to-hdf5 refs/sel.ref refs/sel.h5");
    let document: Document<ToMs> = folder.check("to-ms refs/sel.h5 refs/back.ref");
    let view = document.content.view.unwrap();
    assert_eq!((&*view.kind, view.tables.len()), ("reference", 1));
    let document: Document<ToMs> = folder.check("to-ms refs/sel.h5 refs/plain.tab --views never");
    assert!(document.content.view.is_none());
}

#[test]
fn packed_with_references_is_refused_under_strict() {
    let folder = Folder::new();
    copy_tree(&testdata().join("ref_tables"), &folder.path("refs"));
    let document: Document<Pack> = folder.check("pack refs/sel.ref packed.ref");
    assert!(!document.content.elsewhere.is_empty());
    folder.check::<Document<PackRefused>>("pack refs/sel.ref refused.ref --strict");
}

#[test]
fn program() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        folder.check::<Completions>(&format!("completions {shell}"));
    }
    folder.check::<Generate>("generate man man1");
}
