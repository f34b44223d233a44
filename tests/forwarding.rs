//! Types that wrap another of the same trait forward each of its methods.
//!
//! A provided method that a wrapper does not forward is the trait's default again: the results are
//! right, and what the wrapped type does better is lost without a sign. The sources tell: an `impl`
//! for a wrapper must name every `fn` of the trait.

use std::collections::BTreeMap;
use std::path::Path;

/// `&T`, `Arc<T>`, `Box<T>`, and our own.
const WRAPPERS: [&str; 7] = ["&T", "Arc<T>", "Box<T>", "$pointer", "WithContext<M>", "Locked", "Borrowed<'_>"];

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The lines after `lines[start]` that are indented deeper than it.
fn body<'a>(lines: &[&'a str], start: usize) -> Vec<&'a str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let depth = indent(lines[start]);
    lines[start + 1..].iter().take_while(|line| line.is_empty() || indent(line) > depth).copied().collect()
}

/// The functions at the first level of a body.
fn functions(body: &[&str]) -> Vec<String> {
    let depth = body.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    let first_level = |line: &&&str| Some(line.len() - line.trim_start().len()) == depth;
    let name = |line: &&str| line.trim_start().strip_prefix("fn ")?.split(['(', '<']).next().map(str::to_owned);
    body.iter().filter(first_level).filter_map(name).collect()
}

/// Calls `each` with the file, the trait, the type and the functions of every `impl … for …`.
fn missing(files: &[(String, String)]) -> (Vec<String>, usize) {
    let mut traits: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let declaration = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            if let Some(rest) = declaration.strip_prefix("trait ") {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                traits.insert(name.to_owned(), functions(&body(&lines, at)));
            }
        }
    }
    let (mut missing, mut wrappers) = (Vec::new(), 0);
    for (file, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some((head, rest)) = line.split_once(" for ").filter(|(head, _)| head.trim_start().starts_with("impl"))
            else {
                continue;
            };
            let (name, wrapper) = (head.rsplit(' ').next().unwrap(), rest.trim_end_matches(" {"));
            let Some(expected) = traits.get(name).filter(|_| WRAPPERS.contains(&wrapper)) else { continue };
            wrappers += 1;
            let found = functions(&body(&lines, at));
            let absent = expected.iter().filter(|method| !found.contains(method));
            missing.extend(absent.map(|method| format!("{file}: {name} for {wrapper} lacks {method}")));
        }
    }
    (missing, wrappers)
}

#[test]
fn wrappers_forward_every_method_of_their_trait() {
    let mut files = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates"), &mut files);
    let (missing, wrappers) = missing(&files);
    assert!(missing.is_empty(), "{missing:#?}");
    // ReadAt for pointers, ChunkRead for &T, ManagerMut for WithContext, Manager for Locked,
    // ColumnCells for Borrowed
    assert!(wrappers >= 4, "only {wrappers} found: a name in WRAPPERS has changed");
}

#[test]
fn a_method_that_is_left_out_is_found() {
    let text = "pub trait Read {\n    fn len(&self) -> u64;\n\n    fn raw(&self) {\n        fn inner() {}\n    }\n}\n\n\
                impl<T: Read> Read for &T {\n    fn len(&self) -> u64 {\n        (**self).len()\n    }\n}\n";
    let (missing, wrappers) = missing(&[("a.rs".into(), text.into())]);
    assert_eq!((missing, wrappers), (vec!["a.rs: Read for &T lacks raw".to_owned()], 1));
}
