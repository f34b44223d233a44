//! Reads the facts about all objects of a native file (HDF5 in the layout of
//! docs/reference/layout.md) that the rules of `lint` examine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use h5_read::{Datatype, Reference};

use super::facts::{AttributeFacts, DatasetFacts, Facts, FileFacts, LinkFacts, Place};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, AnyAttribute, AnyDataset, AnyObject, Elsewhere, File, Group, Link, Superblock, Visitor};
use crate::io::FileSource;
use crate::limits;
use crate::native::{self, DIMENSION_LIST, is_scale};
use crate::source::Source;
use crate::table::{OpenOptions, is_table, listed};

/// Elements of columns are not read.
pub(super) fn collect(path: &Path) -> Result<Facts> {
    check_kind(path).context(Context::path(path))?;
    let mut facts = Facts::default();
    let places = check_tables(path, &mut facts)?;
    let read = || -> Result<Facts> {
        let source = FileSource::open(path)?;
        let is_live = Superblock::read(&source).is_ok_and(|superblock| superblock.is_live());
        facts.file = FileFacts { superblock: h5::superblock_version(&source)?, is_live };
        let (seen, scales, references) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut walk = Walk { facts, places, seen, scales, references };
        walk.group(&File::open_shared(path)?.root()?, 0)?;
        Ok(walk.finish())
    };
    read().context(Context::path(path))
}

/// Fails with a hint if `path` is a directory, a casacore table or a path into a native HDF5 file
/// (`my.h5/ANTENNA`).
fn check_kind(path: &Path) -> Result<()> {
    if let Some((file, _)) = Source::split_path(path) {
        let message =
            format!("a path into a native file, which is checked as a whole: `h5bridge lint {}`", file.display());
        return Err(Error::usage(message));
    }
    if is_table(path) {
        let shown = path.display();
        return Err(Error::format(format!(
            "a table directory, a native HDF5 file is expected: `h5bridge to-hdf5 {shown} OUT.h5` makes one"
        )));
    }
    if path.is_dir() {
        let found = match listed(path).as_str() {
            "" => "an empty directory".to_owned(),
            names => format!("a directory with {names}"),
        };
        return Err(Error::format(format!("{found}, a native HDF5 file is expected: name a file")));
    }
    Ok(())
}

/// Opens every column as a conversion does, and records failures in `facts.unreadable`. Returns the
/// groups that are tables or columns.
fn check_tables(path: &Path, facts: &mut Facts) -> Result<BTreeMap<String, Place>> {
    let mut places = BTreeMap::new();
    for entry in native::open(path, OpenOptions::default())? {
        places.insert(entry.group.clone(), Place::Table);
        let table = match entry.table {
            Ok(table) => table,
            Err(error) => {
                facts.unreadable.push((entry.group, error.message().to_owned()));
                continue;
            }
        };
        facts.unreadable.extend_from_slice(table.left_out());
        for index in 0..table.columns().len() {
            let mut check = || -> Result<()> {
                let datasets = table.dataset_paths(index)?;
                if datasets.is_empty() {
                    return Ok(());
                }
                for (_, dataset) in datasets {
                    let group = dataset.rsplit_once('/').map_or("", |(group, _)| group);
                    places.entry(group.to_owned()).or_insert(Place::Column);
                }
                table.cells(index).map(drop)
            };
            if let Err(error) = check() {
                let column = format!("{}/{}", entry.group, table.link(index));
                facts.unreadable.push((column, error.message().to_owned()));
            }
        }
    }
    Ok(places)
}

struct Walk {
    facts: Facts,
    /// Tables and columns by path; other groups are [`Place::Other`].
    places: BTreeMap<String, Place>,
    /// Identities of groups: hard links may form cycles, and each group is read once.
    seen: BTreeSet<u64>,
    /// Addresses of the headers of all scales.
    scales: BTreeSet<u64>,
    /// Addresses to which each dataset's references to scales lead.
    references: Vec<Vec<u64>>,
}

impl Walk {
    fn finish(mut self) -> Facts {
        for (dataset, references) in self.facts.datasets.iter_mut().zip(&self.references) {
            dataset.lost_scales = references.iter().filter(|address| !self.scales.contains(address)).count();
        }
        self.facts
    }

    fn group(&mut self, group: &Group, depth: usize) -> Result<()> {
        limits::depth(depth, "groups")?;
        if !self.seen.insert(group.id()?) {
            return Ok(());
        }
        self.facts.groups += 1;
        self.facts.group_paths.push(group.path().to_owned());
        for name in group.attributes()? {
            self.attribute(group.path(), &name, group.any_attribute(&name)?)?;
        }
        for name in group.link_names()? {
            let path = format!("{}/{name}", group.path().trim_end_matches('/'));
            match group.any_link(&name)? {
                Some(Link::Hard) => self.object(group, &name, path, depth)?,
                Some(link) => self.facts.links.push(LinkFacts { path, elsewhere: elsewhere(&link) }),
                None => {}
            }
        }
        Ok(())
    }

    fn object(&mut self, group: &Group, name: &str, path: String, depth: usize) -> Result<()> {
        match group.any_object(name)? {
            AnyObject::Group(group) => self.group(&group, depth + 1),
            AnyObject::Type(_) => {
                self.facts.types.push(path);
                Ok(())
            }
            AnyObject::Dataset(dataset) => {
                let class = group.header(name)?.attribute("CLASS").ok().flatten();
                let place = self.places.get(group.path()).copied().unwrap_or(Place::Other);
                self.dataset(&dataset, path, place, is_scale(class.as_ref()))
            }
        }
    }

    fn dataset(&mut self, dataset: &AnyDataset, path: String, place: Place, is_scale: bool) -> Result<()> {
        let mut scales = ScaleReferences::default();
        for name in dataset.attributes() {
            let attribute = dataset.any_attribute(&name);
            if let Some(attribute) = attribute.as_ref().filter(|_| name == DIMENSION_LIST) {
                attribute.visit(&mut scales)?;
            }
            self.attribute(&path, &name, attribute)?;
        }
        let read = || -> Result<_> {
            Ok(DatasetFacts {
                path: path.clone(),
                place,
                is_scale,
                element: dataset.element().clone(),
                is_committed: dataset.has_committed_type()?,
                extents: dataset.extents()?,
                index: dataset.index_kind()?,
                plugins: dataset.plugins()?,
                elsewhere: dataset.elsewhere().map(ToString::to_string),
                scales: scales.0.iter().map(Vec::len).collect(),
                lost_scales: 0,
            })
        };
        if is_scale {
            self.scales.insert(dataset.header_address());
        }
        self.facts.datasets.push(read().with_context(|| format!("dataset {path}"))?);
        self.references.push(scales.0.concat());
        Ok(())
    }

    fn attribute(&mut self, path: &str, name: &str, attribute: Option<AnyAttribute>) -> Result<()> {
        let Some(attribute) = attribute else { return Ok(()) };
        let extents = attribute.extents();
        let elements = extents.iter().flatten().fold(1, |product: u64, &extent| product.saturating_mul(extent));
        let bytes = elements.saturating_mul(attribute.element().size());
        self.facts.attributes.push(AttributeFacts { path: path.to_owned(), name: name.to_owned(), extents, bytes });
        Ok(())
    }
}

/// Kind and target in words of a link that leads out of the file.
fn elsewhere(link: &Link) -> Option<String> {
    match link {
        Link::Hard | Link::Soft(_) => None,
        Link::External { file, path } => Some(Elsewhere::Link { file: file.clone(), path: path.clone() }.to_string()),
        Link::UserDefined(class) => Some(Elsewhere::UserDefined(*class).to_string()),
    }
}

/// References in `DIMENSION_LIST`, one element per axis.
#[derive(Default)]
struct ScaleReferences(Vec<Vec<u64>>);

impl Visitor for ScaleReferences {
    fn fixed(&mut self, _: &Datatype, _: &[u8]) {}

    fn text(&mut self, _: &[u8]) {}

    fn reference(&mut self, kind: Reference, bytes: &[u8]) {
        let address = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if let Some(last) = self.0.last_mut().filter(|_| address != 0 && kind == Reference::Object) {
            last.push(address);
        }
    }

    fn begin(&mut self) {
        self.0.push(Vec::new());
    }

    fn end(&mut self) {}
}
