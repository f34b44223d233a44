//! Answers requests about an HDF5 file, or about a casacore table that is shown as one: objects,
//! attributes, values, statistics.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ctds::error::{Context, Error, Result, ResultExt};
use ctds_hdf5::internals::{AnyObject, Group, Link};

use crate::data::{Data, DataOptions, data};
use crate::entity::{Owner, describe_found};
use crate::limits::Limits;
use crate::read::{self, Values, unresolved};
use crate::resolve::{Found, LinkResolution, OpenFile, Resolver, join};
use crate::stats;
use crate::table::TableFile;

/// Largest selection for statistics, in bytes in the file.
const STATS_BYTES: u64 = 2 << 30;

/// Answers requests about one open HDF5 file or table, within limits on the size of an answer. Make
/// a new `Browser` for each request: it reads only once how many rows of a growing file are
/// committed.
pub struct Browser<'a> {
    resolver: Resolver<'a>,
    limits: &'a Limits,
}

impl fmt::Debug for Browser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Browser").field(&self.resolver.file.name).finish()
    }
}

impl<'a> Browser<'a> {
    /// Opens an HDF5 file for browsing, also one that another process appends to under SWMR. The
    /// file may name other files (external links, virtual datasets): they are opened only if
    /// `is_served` is true for their canonical path.
    ///
    /// # Errors
    /// `NotFound`, `Io`, `Format` if it is not HDF5, `Locked` if a writer keeps others out.
    pub fn open(path: &Path, is_served: &'a (dyn Fn(&Path) -> bool + Sync), limits: &'a Limits) -> Result<Self> {
        let file = OpenFile::open(path).with_context(|| Context::path(path))?;
        Ok(Browser { resolver: Resolver { file, is_served }, limits })
    }

    /// Browses a casacore table as the HDF5 file that `to-hdf5` would make of it. Other files that
    /// the HDF5 file names are opened only if `is_served` is true for their canonical path.
    pub fn of_table(table: &TableFile, is_served: &'a (dyn Fn(&Path) -> bool + Sync), limits: &'a Limits) -> Self {
        Browser { resolver: Resolver { file: Arc::clone(&table.0), is_served }, limits }
    }

    /// Describes the object or link at `path` as JSON: its kind, its attributes (without their
    /// values), the type and shape of a dataset, the members of a group.
    ///
    /// # Errors
    /// `NotFound`, `Limit` for a group of too many members, those of reading.
    pub fn meta(&self, path: &str, links: LinkResolution) -> Result<String> {
        let found = self.resolver.find(path, links)?;
        let entity = describe_found(&self.resolver, found, path, self.limits.children)?;
        self.document(entity.to_string())
    }

    /// The values of the attributes of the object at `path`, as a JSON object; only those in
    /// `names`, or all if it is empty.
    ///
    /// # Errors
    /// `NotFound` also for an attribute that is missing.
    pub fn attributes(&self, path: &str, names: &[String]) -> Result<String> {
        let values = self.owner(path)?.attribute_values(names).with_context(|| path.to_owned())?;
        self.document(String::from_utf8_lossy(&values).into_owned())
    }

    /// Lists the paths of the group at `path` and of all objects below it, as a JSON list. Soft and
    /// external links are listed, but not the objects below their targets. `links` does not change
    /// the list: with `LinkResolution::All`, each link below `path` is followed to check that it
    /// leads to an object.
    ///
    /// # Errors
    /// `Usage` if the object at `path` is not a group, `NotFound` if it is missing or a checked
    /// link leads nowhere, `Limit` for too many paths, those of reading.
    pub fn paths(&self, path: &str, links: LinkResolution) -> Result<String> {
        let Owner::Group(file, group) = self.owner(path)? else {
            return Err(Error::usage(format!("{path} is not a group")));
        };
        let mut paths = vec![path.to_owned()];
        let mut bytes = 0;
        let mut seen = BTreeSet::from([group.id()?]);
        if group.link_total()? > self.limits.paths {
            let (members, most) = (group.link_total()?, self.limits.paths);
            return Err(Error::limit(format!("{path} has {members} members, the limit is {most}")));
        }
        let mut open = vec![sorted_names(&group, path.to_owned())?];
        while let Some((group, base, names)) = open.last_mut() {
            let Some(name) = names.pop() else {
                open.pop();
                continue;
            };
            let path = join(base, &name);
            bytes += path.len() as u64 + 3;
            if paths.len() as u64 >= self.limits.paths || bytes > self.limits.json_bytes {
                return Err(Error::limit(format!(
                    "more than {} objects are below {}: ask for the paths below one of its groups",
                    paths.len(),
                    paths[0]
                )));
            }
            let below = match group.any_link(&name)? {
                Some(Link::Hard) if group.group_id(&name)?.is_some_and(|id| seen.insert(id)) => {
                    match group.any_object(&name)? {
                        AnyObject::Group(group) => Some(group),
                        _ => None,
                    }
                }
                Some(_) if links == LinkResolution::All => {
                    self.resolver.member(&file, group, &name, links, &path)?;
                    None
                }
                _ => None,
            };
            if let Some(below) = below {
                let most = self.limits.paths;
                if below.link_total()? > most {
                    return Err(Error::limit(format!(
                        "{path} has {} members, the limit is {most}",
                        below.link_total()?
                    )));
                }
                open.push(sorted_names(&below, path.clone())?);
            }
            paths.push(path);
        }
        self.document(serde_json::Value::from(paths).to_string())
    }

    /// Computes statistics of the finite values in a dataset, as JSON: minimum, maximum, mean,
    /// standard deviation, least value of 0 or more, least value above 0. `selection` has an index
    /// (from 0) or slice for each axis, slowest first, as in numpy: `0,:,2:8:2`. Axes left out at
    /// the end, and all axes with `None`, are taken whole.
    ///
    /// # Errors
    /// `Usage` for a wrong selection, and for elements that are not real numbers.
    pub fn stats(&self, path: &str, selection: Option<&str>) -> Result<String> {
        let values = self.values(path, selection)?;
        Ok(stats::stats(&values, STATS_BYTES).with_context(|| path.to_owned())?.to_string())
    }

    /// The selected values of the dataset at `path`, encoded in the format that `options` ask for.
    ///
    /// # Errors
    /// `Usage` for a wrong selection, and for a format that these values do not have; `Limit` for
    /// too many, with how to choose less; `Unsupported` if they are in files that are not served.
    pub fn data(&self, path: &str, options: &DataOptions<'_>) -> Result<Data> {
        data(&|| self.values(path, options.selection), options, self.limits).with_context(|| path.to_owned())
    }

    fn values(&self, path: &str, selection: Option<&str>) -> Result<Values> {
        let member = read::member(self.resolver.find(path, LinkResolution::OnlyValid)?, path)?;
        let is_served = |path: &Path| (self.resolver.is_served)(path);
        Values::open(&member, &read::served(&member, &is_served), selection)
    }

    fn owner(&self, path: &str) -> Result<Owner> {
        match self.resolver.find(path, LinkResolution::OnlyValid)? {
            Found::Target(target) => Owner::open(target),
            Found::Link(_, why) => Err(unresolved(path, why)),
        }
    }

    fn document(&self, text: String) -> Result<String> {
        let (bytes, most) = (text.len() as u64, self.limits.json_bytes);
        if bytes > most {
            return Err(Error::limit(format!(
                "the answer has {bytes} bytes, the limit is {most}: ask for a part of it"
            )));
        }
        Ok(text)
    }
}

/// Names in descending order: popping from the end lists them in ascending order.
fn sorted_names(group: &Group, path: String) -> Result<(Group, String, Vec<String>)> {
    let mut names = group.link_names()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok((group.clone(), path, names))
}
