//! Writes manifests (lists of jobs) of `h5bridge batch` from patterns of the paths of sources, or
//! from lists of sources.

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::path::{Component, Path, PathBuf};

use ctds_hdf5::program::sorted_entries;
use ctds_hdf5::{Error, ErrorKind, Result};
use glob::{MatchOptions, Pattern};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::item::{Effect, Id, Item, Verb};
use super::manifest::each_line;
use super::receipt::size_of;

/// Extension of unfinished outputs, which wildcards do not match.
const PARTIAL: &str = "partial";

/// A `*` matches neither a slash nor a leading dot, as in a shell.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// A line of a list for `batch plan`, or of a manifest, whose id is computed again. Missing fields
/// have the values of the command line, `bytes` the size of the source.
#[derive(Deserialize)]
struct Pair {
    source: String,
    target: Option<String>,
    verb: Option<String>,
    options: Option<Vec<String>>,
    bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planned {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    /// Left out because an equal item came before.
    pub(crate) repeated: u64,
}

pub(crate) struct Plan<'a, W> {
    verb: Verb,
    template: Option<String>,
    options: Vec<String>,
    with_sizes: bool,
    out: &'a mut W,
    ids: HashSet<Id>,
    targets: HashSet<[u8; 16]>,
    planned: Planned,
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl<'a, W: Write> Plan<'a, W> {
    /// Jobs run `verb` with `options` unless a list names others; `template` gives the targets, if
    /// any. `Usage` for a `verb` that a batch cannot run.
    pub(crate) fn new(verb: &str, template: Option<String>, options: Vec<String>, out: &'a mut W) -> Result<Self> {
        let verb = Verb::find(verb)?;
        Ok(Plan {
            verb,
            template,
            options,
            with_sizes: true,
            out,
            ids: HashSet::new(),
            targets: HashSet::new(),
            planned: Planned::default(),
        })
    }

    /// Sizes are recorded as 0: shards then have equal numbers of items, not of bytes.
    pub(crate) fn without_sizes(mut self) -> Self {
        self.with_sizes = false;
        self
    }

    /// One item for each match of a pattern such as `/archive/**/*.ms`; `Usage` without a match.
    pub(crate) fn add_pattern(&mut self, pattern: &str) -> Result<()> {
        let before = self.planned.items + self.planned.repeated;
        let path = absolute(pattern)?;
        if path.symlink_metadata().is_ok() {
            let base = path.parent().unwrap_or(&path).to_owned();
            self.add_source(&path, &base)?;
        } else {
            let (base, parts) = split(&path)?;
            walk(&base, &parts, &mut HashSet::new(), &mut |found| self.add_source(found, &base))?;
        }
        if self.planned.items + self.planned.repeated == before {
            return Err(usage(format!("nothing matches {pattern:?}")));
        }
        Ok(())
    }

    /// Each line is a path, or a JSON object with `source` and, if they differ from the command
    /// line, `target`, `verb`, `options`, `bytes`. `Format` for other lines.
    pub(crate) fn add_list(&mut self, list: &mut impl BufRead) -> Result<()> {
        each_line(list, |number, line| {
            let line = line.trim_ascii();
            let add = || match line.first() {
                None => Ok(()),
                Some(b'{') => self.add_pair(line),
                Some(_) => {
                    let text = std::str::from_utf8(line).map_err(|_| usage("the path is not UTF-8"))?;
                    self.add_source(&absolute(text)?, Path::new("/"))
                }
            };
            let mut add = add;
            add().map_err(|error| error.context(format!("line {number}")))
        })
    }

    fn add_pair(&mut self, line: &[u8]) -> Result<()> {
        let pair: Pair = serde_json::from_slice(line)
            .map_err(|error| Error::new(ErrorKind::Format, format!("the line is not a path or an item: {error}")))?;
        let source = absolute(&pair.source)?;
        let verb = pair.verb.map_or(Ok(self.verb), |verb| Verb::find(&verb))?;
        let target = match (&pair.target, &self.template) {
            (Some(target), _) => Some(text(&absolute(target)?)?),
            (None, Some(template)) => Some(expand(template, &source, Path::new("/"))?),
            (None, None) => None,
        };
        let bytes = pair.bytes.map_or_else(|| self.size(&source), Ok)?;
        let options = pair.options.unwrap_or_else(|| self.options.clone());
        self.add(verb, &source, target, options, bytes)
    }

    fn add_source(&mut self, source: &Path, base: &Path) -> Result<()> {
        let template = self.template.as_ref();
        let target = template.map(|template| expand(template, source, base)).transpose()?;
        let bytes = self.size(source)?;
        self.add(self.verb, source, target, self.options.clone(), bytes)
    }

    /// 0 if the source is missing, which its conversion will report.
    fn size(&self, source: &Path) -> Result<u64> {
        if self.with_sizes { Ok(size_of(source).unwrap_or(0)) } else { Ok(0) }
    }

    fn add(&mut self, verb: Verb, source: &Path, to: Option<String>, options: Vec<String>, bytes: u64) -> Result<()> {
        let item = Item::new(verb.name.into(), text(source)?, to, options, bytes);
        item.check().map_err(|error| error.context(source))?;
        if !self.ids.insert(item.id) {
            self.planned.repeated += 1;
            return Ok(());
        }
        if let Some(target) = item.target.as_ref().filter(|_| verb.effect == Effect::Writes) {
            if *target == item.source {
                return Err(usage("the target is the source").context(source));
            }
            let digest = Sha256::digest(target.as_bytes());
            let digest = digest[..16].try_into().expect("a SHA-256 has 32 bytes");
            if !self.targets.insert(digest) {
                let message = format!(
                    "{target} is the target of two items; {{path}} in --to keeps the directories of sources apart"
                );
                return Err(usage(message).context(source));
            }
        }
        let mut line = serde_json::to_vec(&item).expect("an item is valid JSON");
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.planned.items += 1;
        self.planned.bytes += bytes;
        Ok(())
    }

    /// Flushes `out`; the caller closes it and gives a file its name.
    pub(crate) fn finish(self) -> Result<Planned> {
        self.out.flush()?;
        Ok(self.planned)
    }
}

fn absolute(path: &str) -> Result<PathBuf> {
    if path.is_empty() {
        return Err(usage("the path is empty"));
    }
    Ok(std::path::absolute(path)?)
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| usage("the path is not UTF-8, as manifests need it").context(path))
}

/// `{name}` is the file name of the source, `{stem}` the name without extension, `{parent}` the
/// name of its directory, `{path}` its directory relative to `base` (in patterns, the directory
/// before the first wildcard).
fn expand(template: &str, source: &Path, base: &Path) -> Result<String> {
    let parent = source.parent().unwrap_or(Path::new("/"));
    let piece = |name: &str| -> Result<String> {
        let part = match name {
            "path" => parent
                .strip_prefix(base)
                .unwrap_or(parent)
                .strip_prefix("/")
                .unwrap_or(parent.strip_prefix(base).unwrap_or(parent)),
            "parent" => parent.file_name().map_or(Path::new(""), Path::new),
            "stem" => source.file_stem().map_or(Path::new(""), Path::new),
            "name" => source.file_name().map_or(Path::new(""), Path::new),
            _ => {
                let message =
                    format!("{{{name}}} is unknown in --to: expected {{path}}, {{parent}}, {{stem}} or {{name}}");
                return Err(usage(message));
            }
        };
        text(part)
    };
    let (mut target, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(|| usage("--to has a { without }"))?;
        target += before;
        target += &piece(name)?;
        rest = after;
    }
    target += rest;
    text(&absolute(&target)?)
}

/// A pattern's part between two slashes.
enum Part {
    /// `**`: any number of nested directories.
    Directories,
    /// A name, or a pattern with wildcards.
    Name(Pattern),
}

/// Directory before the first part with a wildcard, and the parts from it on.
fn split(path: &Path) -> Result<(PathBuf, Vec<Part>)> {
    let (mut base, mut parts) = (PathBuf::new(), Vec::new());
    for component in path.components() {
        let name = text(Path::new(component.as_os_str()))?;
        match component {
            Component::Normal(_) if !parts.is_empty() || name.contains(['*', '?', '[']) => {
                let pattern =
                    || Pattern::new(&name).map_err(|error| usage(format!("{name:?} is not a pattern: {error}")));
                parts.push(if name == "**" { Part::Directories } else { Part::Name(pattern()?) });
            }
            Component::ParentDir if !parts.is_empty() => {
                let message =
                    format!("{path:?} has .. after a wildcard, where it is not followed; name the directory instead");
                return Err(usage(message));
            }
            _ => base.push(component),
        }
    }
    Ok((base, parts))
}

/// Name, path, and whether it is a directory, sorted by name, without unfinished outputs.
fn entries(directory: &Path) -> Result<Vec<(String, PathBuf, bool)>> {
    let mut found = Vec::new();
    let at = |error: std::io::Error| Error::from(error).context(directory);
    for entry in sorted_entries(directory).map_err(at)? {
        let (path, kind) = (entry.path(), entry.file_type().map_err(at)?);
        if path.extension().is_none_or(|extension| extension != PARTIAL) {
            found.push((entry.file_name().to_string_lossy().into_owned(), path, kind.is_dir()));
        }
    }
    Ok(found)
}

/// Calls `visit` for each match below a directory. Matching directories are tables, so nothing
/// inside them is searched; `matched` keeps them, since `**` might search them.
fn walk(
    directory: &Path,
    parts: &[Part],
    matched: &mut HashSet<PathBuf>,
    visit: &mut dyn FnMut(&Path) -> Result<()>,
) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    match parts {
        [] => {
            matched.insert(directory.to_owned());
            visit(directory)
        }
        [Part::Directories] => entries(directory)?.iter().try_for_each(|(_, path, _)| visit(path)),
        [Part::Directories, Part::Directories, ..] => walk(directory, &parts[1..], matched, visit),
        [Part::Directories, Part::Name(pattern)] => {
            for (name, path, is_directory) in entries(directory)? {
                if pattern.matches_with(&name, OPTIONS) {
                    visit(&path)?;
                } else if is_directory && !name.starts_with('.') {
                    walk(&path, parts, matched, visit)?;
                }
            }
            Ok(())
        }
        [Part::Directories, rest @ ..] => {
            walk(directory, rest, matched, visit)?;
            for (name, path, is_directory) in entries(directory)? {
                if is_directory && !name.starts_with('.') && !matched.contains(&path) {
                    walk(&path, parts, matched, visit)?;
                }
            }
            Ok(())
        }
        [Part::Name(pattern), rest @ ..] => {
            for (name, path, _) in entries(directory)? {
                if pattern.matches_with(&name, OPTIONS) {
                    if rest.is_empty() {
                        matched.insert(path.clone());
                        visit(&path)?;
                    } else {
                        walk(&path, rest, matched, visit)?;
                    }
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn plan(add: impl FnOnce(&mut Plan<'_, Vec<u8>>) -> Result<()>, to: &str) -> Result<Vec<Item>> {
        let mut out = Vec::new();
        let mut plan = Plan::new("to-hdf5", Some(to.into()), Vec::new(), &mut out)?;
        add(&mut plan)?;
        plan.finish()?;
        Ok(out
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect())
    }

    #[test]
    fn patterns_find_tables_and_not_what_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for table in [
            "2019/a.ms",
            "2020/x/b.ms",
            "2020/x/b.ms/SUB.ms",
            "2020/x/b.ms/x/SUB.ms",
            "c.ms",
            ".d/e.ms",
            "f.ms.1-abcdefgh.partial/f.ms",
        ] {
            fs::create_dir_all(at(table)).unwrap();
            fs::write(at(table).join("table.dat"), b"12345").unwrap();
        }
        let pattern = |text: &str| at(text).to_str().unwrap().to_owned();
        let sources = |text: &str| -> Vec<String> {
            let items = plan(|plan| plan.add_pattern(&pattern(text)), "/out/{path}/{stem}.h5").unwrap();
            assert!(items.iter().all(|item| item.bytes >= 5));
            items.into_iter().map(|item| item.target.unwrap()).collect()
        };
        assert_eq!(sources("**/*.ms"), ["/out/2019/a.h5", "/out/2020/x/b.h5", "/out/c.h5"]);
        assert_eq!(sources("**/x/*.ms"), ["/out/2020/x/b.h5"]);
        assert_eq!(sources("20[12]9/*"), ["/out/2019/a.h5"]);
        assert_eq!(sources("2019/a.ms"), ["/out/a.h5"]);
        assert_eq!(plan(|plan| plan.add_pattern(&pattern("no/*.ms")), "/o").unwrap_err().kind(), ErrorKind::Usage);
        let error = plan(|plan| plan.add_pattern(&pattern("20??/../*.ms")), "/o").unwrap_err();
        assert!(error.to_string().contains(".. after a wildcard"), "{error}");
        // two sources with one target
        let error = plan(|plan| plan.add_pattern(&pattern("**/*.ms")), "/out/x.h5").unwrap_err();
        assert!(error.to_string().contains("{path}"), "{error}");
        let error = plan(|plan| plan.add_pattern(&pattern("c.ms")), "/out/{year}.h5").unwrap_err();
        assert!(error.to_string().contains("{year}"), "{error}");
        let error = plan(|plan| plan.add_pattern(&pattern("c.ms")), &pattern("{name}")).unwrap_err();
        assert!(error.to_string().contains("the target is the source"), "{error}");
    }

    #[test]
    fn lists_have_paths_and_items() {
        let list = b"/a/b.ms\n\n{\"source\": \"/c.ms\", \"target\": \"/d.h5\", \"options\": [\"--digest\"], \"bytes\": 9}\n/a/b.ms";
        let items = plan(|plan| plan.add_list(&mut &list[..]), "/out/{parent}-{name}.h5").unwrap();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].target.as_deref(), Some("/out/a-b.ms.h5"));
        assert_eq!(
            (items[1].target.as_deref(), items[1].options[0].as_str(), items[1].bytes),
            (Some("/d.h5"), "--digest", 9)
        );
        let error = plan(|plan| plan.add_list(&mut &b"/a\n{\"sauce\": 1}\n"[..]), "/o").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
