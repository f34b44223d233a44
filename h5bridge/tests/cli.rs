//! The program on bad input: exit codes, one sentence on stderr, nothing left behind.
//!
//! Every run is a child process with limited memory and time, so that an abort, a crash in libhdf5
//! or a hang shows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ctds_hdf5_testing::proptest::sample::select;
use ctds_hdf5_testing::{Copy, find, mutation, property, testdata};

/// Address space of a run in KiB.
const MEMORY_KIB: u64 = 3 << 20;
const SECONDS: u64 = 60;

const STANDARD: &str = "dtypes_all_managers/StandardStMan_little.tab";
const CUBES: &str = "dtypes_tiled/TiledShapeStMan_float_big.tab";
const MEASUREMENT_SET: &str = "demo/demo.ms";

struct Run {
    /// `None`: killed by a signal.
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(arguments: &[&str]) -> Run {
    let script = format!("ulimit -v {MEMORY_KIB}; ulimit -c 0; exec timeout {SECONDS} \"$0\" \"$@\"");
    let output =
        Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_h5bridge")]).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All verbs that read content end with `code`; converting leaves nothing, says one sentence with
/// all of `parts`, and says the same with `--json`.
#[track_caller]
fn refuses(source: &Path, code: i32, parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.h5");
    let converted = run(&["to-hdf5", text(source), text(&target)]);
    let Run { stderr, .. } = &converted;
    assert_eq!(converted.code, Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "one sentence is expected: {stderr}");
    assert!(stderr.starts_with("h5bridge: ") && !stderr.contains("panicked"), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part:?} is not in: {stderr}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");

    let json = run(&["--json", "to-hdf5", text(source), text(&target)]);
    assert_eq!(json.code, Some(code));
    assert!(json.stdout.contains(&format!("\"code\": {code}")), "{}", json.stdout);

    for verb in ["digest", "info"] {
        let other = run(&[verb, text(source)]);
        // info does not read what it does not show
        assert!(other.code == Some(code) || verb == "info" && other.code == Some(0), "{verb}: {:?}", other.code);
    }
    // columns that are not supported are not compared
    if code == 4 {
        return;
    }
    let verified = run(&["verify", text(source), text(source)]);
    assert_eq!(verified.code, Some(code), "verify: {}", verified.stderr);
}

#[test]
fn no_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("notes.txt"), "no table\n").unwrap();
    refuses(
        &path("notes.txt"),
        3,
        &["notes.txt: the source is neither a table directory, nor a container, nor an HDF5 file"],
    );
    fs::write(path("empty"), "").unwrap();
    refuses(&path("empty"), 3, &["empty: the source is neither a table directory, nor a container, nor an HDF5 file"]);
    fs::create_dir(path("folder")).unwrap();
    refuses(&path("folder"), 3, &["folder: not a table: the directory is empty, a file table.dat is expected"]);
    refuses(&path("nothing"), 3, &["nothing"]);
}

#[test]
fn damaged_tables() {
    let damaged = |file: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let copy = Copy::of(STANDARD);
        copy.edit(file, change);
        copy
    };
    let copy = damaged("table.dat", &|bytes| bytes.clear());
    refuses(&copy.path(), 3, &["table.dat at byte 0: the file is empty"]);
    let copy = damaged("table.dat", &|bytes| bytes.truncate(900));
    refuses(&copy.path(), 3, &["table.dat: ", "at byte 4: ", "ends at byte 900"]);
    let copy = damaged("table.f0", &|bytes| bytes.truncate(600));
    refuses(&copy.path(), 3, &["table.f0 (StandardStMan): the header announces ", "but the file has 600"]);
    let copy = damaged("table.lock", &|bytes| bytes[284..288].fill(0x7f));
    refuses(&copy.path(), 3, &["table.f0 (StandardStMan): index at byte ", "is not stored"]);
    let copy = Copy::of(STANDARD);
    copy.remove("table.f0");
    refuses(&copy.path(), 3, &["table.f0: the file is missing"]);
    let copy = damaged("table.dat", &|bytes| {
        let at = find(bytes, b"PlainTable");
        bytes[at..at + 10].copy_from_slice(b"PlainBabel");
    });
    refuses(&copy.path(), 3, &["table.dat: ", "at byte ", "table kind \"PlainBabel\", known are"]);
}

/// Damage in rows that planning does not look at: the file is half written then.
#[test]
fn damage_in_the_middle() {
    let copy = Copy::of("strings_boundaries/StandardStMan_128.tab");
    let original = copy.read("table.f0");
    let mut late = 0;
    for bucket in (512..original.len() - 128).step_by(11 * 128) {
        // as many bytes used as no bucket has
        copy.put("table.f0", bucket + 4, &[0x7f; 4]);
        let plan = run(&["to-hdf5", "--dry-run", text(&copy.path()), text(&copy.beside("out.h5"))]);
        if plan.code == Some(0) && run(&["digest", text(&copy.path())]).code == Some(3) {
            refuses(&copy.path(), 3, &["column ", "table.f0 (StandardStMan): string at byte ", " of 112 bytes"]);
            late += 1;
        }
        copy.write("table.f0", &original);
    }
    assert!(late > 0, "all damage shows while planning");
}

#[test]
fn legal_but_not_supported() {
    // a storage manager that nobody knows
    let copy = Copy::of(STANDARD);
    copy.edit("table.dat", |bytes| {
        // the last mention is the manager that there is, those before are suggestions
        let at = bytes.windows(13).rposition(|window| window == b"StandardStMan").unwrap();
        bytes[at..at + 13].copy_from_slice(b"StandardStMax");
    });
    refuses(&copy.path(), 4, &["StandardStMax", "not supported"]);
}

#[test]
fn subtables() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.h5");
    let copy = Copy::of(MEASUREMENT_SET);
    fs::remove_dir_all(copy.path().join("ANTENNA")).unwrap();
    let lenient = run(&["to-hdf5", text(&copy.path()), text(&target)]);
    assert_eq!(lenient.code, Some(0), "{}", lenient.stderr);
    assert!(lenient.stderr.contains("ANTENNA"), "{}", lenient.stderr);
    let strict = run(&["--strict", "to-hdf5", "--overwrite", text(&copy.path()), text(&target)]);
    assert_eq!(strict.code, Some(6), "{}", strict.stderr);

    let copy = Copy::of(MEASUREMENT_SET);
    fs::write(copy.path().join("FEED/table.dat"), "").unwrap();
    refuses(&copy.path(), 3, &["subtable FEED", "demo.ms/FEED: table.dat", "at byte 0: the file is empty"]);
}

#[test]
fn targets() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.h5");
    let source = testdata().join(STANDARD);
    fs::write(&target, "mine").unwrap();
    assert_eq!(run(&["to-hdf5", text(&source), text(&target)]).code, Some(7));
    assert_eq!(fs::read(&target).unwrap(), b"mine");
    // a damaged source does not take away what is there
    let copy = Copy::of(STANDARD);
    copy.edit("table.f0", |bytes| bytes.truncate(600));
    assert_eq!(run(&["to-hdf5", "--overwrite", text(&copy.path()), text(&target)]).code, Some(3));
    assert_eq!(fs::read(&target).unwrap(), b"mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(run(&["to-ms", text(&source)]).code, Some(2));
}

fn native(name: &str, folder: &Path) -> PathBuf {
    let path = folder.join("native.h5");
    let made = run(&["-q", "to-hdf5", "--overwrite", text(&testdata().join(name)), text(&path)]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    path
}

#[test]
fn truncated_native_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = native(STANDARD, folder.path());
    let whole = fs::read(&path).unwrap();
    for len in [8, 100, 1000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        for verb in ["digest", "info"] {
            let damaged = run(&[verb, text(&path)]);
            assert_eq!(damaged.code, Some(3), "{verb} of {len} bytes: {}", damaged.stderr);
            assert!(damaged.stderr.contains("native.h5: "), "{}", damaged.stderr);
            assert_eq!(damaged.stderr.lines().count(), 1, "{}", damaged.stderr);
        }
    }
    fs::write(&path, &whole[..7]).unwrap();
    refuses(&path, 3, &["native.h5: the source is neither a table directory, nor a container, nor an HDF5 file"]);
}

/// `H5BRIDGE_LONG=1` tries more changes, and others each time.
#[test]
fn changed_native_files() {
    let folder = tempfile::tempdir().unwrap();
    let codes = RefCell::new(BTreeMap::new());
    for name in [STANDARD, CUBES, "shapes/shapes.tab"] {
        let path = native(name, folder.path());
        let whole = fs::read(&path).unwrap();
        let changed = folder.path().join("changed.h5");
        property(100, (mutation(), select(&["info", "verify", "digest", "digest"][..])), |(mutation, command)| {
            let mut bytes = whole.clone();
            let what = mutation.apply(&mut bytes);
            fs::write(&changed, &bytes).unwrap();
            let arguments: &[&str] = match command {
                "verify" => &[command, text(&path), text(&changed)],
                _ => &[command, text(&changed)],
            };
            let Run { code, stderr, .. } = run(arguments);
            *codes.borrow_mut().entry(code).or_insert(0) += 1;
            let suitable = matches!(code, Some(0 | 3 | 4 | 5)) && stderr.lines().count() <= 1;
            assert!(suitable, "{command} of {name}, {what}: {code:?} {stderr}");
        });
    }
    println!("changes to 3 native files, exit codes and how often: {:?}", codes.borrow());
}

#[track_caller]
fn generated(what: &str, folder: &Path) -> Vec<PathBuf> {
    let made = run(&["generate", what, text(folder)]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    made.stdout.lines().map(PathBuf::from).collect()
}

#[test]
fn manual_has_a_page_for_each_verb() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("share/man/man1");
    let pages = generated("man", &folder);
    let listed: BTreeMap<_, _> = pages
        .iter()
        .map(|page| (page.file_name().unwrap().to_str().unwrap(), fs::read_to_string(page).unwrap()))
        .collect();
    assert_eq!(listed.len(), fs::read_dir(&folder).unwrap().count());
    let help = run(&["--help"]).stdout;
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // the name of a group stands before its first verb
    let verbs: Vec<_> =
        verbs.filter_map(|line| line[11..].split_whitespace().next()).filter(|verb| *verb != "help").collect();
    assert!(verbs.contains(&"to-hdf5") && !verbs.contains(&"generate"), "{verbs:?}");
    let of_batch = ["clean", "plan", "run", "status"].map(|part| format!("h5bridge-batch-{part}.1"));
    let of_shard = ["plan", "work", "status", "commit", "verify"].map(|part| format!("h5bridge-shard-{part}.1"));
    let parts: Vec<_> = of_batch.into_iter().chain(of_shard).chain(["h5bridge-vt-serve.1".to_owned()]).collect();
    assert!(parts.iter().all(|page| listed[page.as_str()].contains(".SH EXAMPLES")));
    assert_eq!(listed.len(), verbs.len() + 1 + parts.len(), "{:?}", listed.keys());
    for verb in verbs {
        let page = &listed[format!("h5bridge-{verb}.1").as_str()];
        assert!(
            page.starts_with(&format!(".TH h5bridge-{verb} 1 \"\" \"h5bridge {}", env!("CARGO_PKG_VERSION"))),
            "{page}"
        );
        for part in [
            &format!("\\fBh5bridge {}\\fR", verb.replace('-', "\\-")),
            ".SH OPTIONS",
            ".SH EXAMPLES",
            "\n\\fB130\\fR\ninterrupted",
        ] {
            assert!(page.contains(part), "{part:?} is not in {page}");
        }
    }
    assert!(listed["h5bridge.1"].contains("h5bridge\\-to\\-ms"));
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, name) in [("bash", "h5bridge"), ("zsh", "_h5bridge"), ("fish", "h5bridge.fish")] {
        let paths = generated(shell, folder.path());
        assert_eq!(paths, [folder.path().join(name)]);
        let script = fs::read_to_string(&paths[0]).unwrap();
        assert!(script.contains("to-hdf5") && script.contains("lock-timeout"), "{shell}: {script}");
        // only bash is everywhere
        match Command::new(shell).arg("-n").arg(&paths[0]).output() {
            Ok(checked) => assert!(checked.status.success(), "{shell}: {}", String::from_utf8_lossy(&checked.stderr)),
            Err(error) => assert!(shell != "bash", "{error}"),
        }
    }
    let file = folder.path().join("h5bridge");
    let refused = run(&["generate", "man", text(&file)]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.starts_with("h5bridge: ") && refused.stderr.contains(text(&file)), "{}", refused.stderr);
}
