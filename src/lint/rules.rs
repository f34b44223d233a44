//! The rules of `lint`, each with the readers that it is about, the reason, and what a user can do.

use h5_read::{ByteOrder, Class, Datatype};

use super::facts::{AttributeFacts, DatasetFacts, Facts, FileFacts, LinkFacts, Place};
use crate::h5::{IndexKind, fits_header};
use crate::native::{COMMITTED_ROWS, last_part};

/// A program or library that reads HDF5 files. Rules of `lint` name the readers that do not support
/// what they find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reader {
    /// Reader that a rule of `lint` may name as affected: h5py, the HDF5 package for Python.
    H5py,
    /// Reader that a rule of `lint` may name as affected: xarray with the engine h5netcdf, in
    /// Python.
    XarrayH5netcdf,
    /// Reader that a rule of `lint` may name as affected: xarray with the engine netcdf4, in
    /// Python.
    XarrayNetcdf4,
    /// Reader that a rule of `lint` may name as affected: the Python package netCDF4.
    Netcdf4,
    /// Reader that a rule of `lint` may name as affected: HDFView, The HDF Group's graphical
    /// browser.
    HdfView,
    /// Reader that a rule of `lint` may name as affected: MATLAB from R2021b on, which uses HDF5
    /// 1.10.
    Matlab,
    /// Reader that a rule of `lint` may name as affected: MATLAB up to R2021a, which uses HDF5 1.8.
    OldMatlab,
    /// Reader that a rule of `lint` may name as affected: the package HDF5.jl for Julia.
    Julia,
    /// Reader that a rule of `lint` may name as affected: h5dump and h5ls, the command-line tools,
    /// of HDF5 1.8.
    H5dump18,
    /// Reader that a rule of `lint` may name as affected: h5dump and h5ls, the command-line tools,
    /// of HDF5 1.10.
    H5dump110,
    /// Reader that a rule of `lint` may name as affected: `HDFParser` of the Python package
    /// VirtualiZarr.
    VirtualiZarr,
    /// Reader that a rule of `lint` may name as affected: HSDS, The HDF Group's service for HDF5
    /// files in the cloud.
    Hsds,
    /// Reader that a rule of `lint` may name as affected: pyfive, a Python package without libhdf5.
    Pyfive,
    /// Reader that a rule of `lint` may name as affected: jsfive, a JavaScript package without
    /// libhdf5.
    Jsfive,
    /// Reader that a rule of `lint` may name as affected: IDL (Interactive Data Language).
    Idl,
}

impl Reader {
    /// The name of the reader for users, such as `MATLAB`.
    pub fn name(self) -> &'static str {
        match self {
            Reader::H5py => "h5py",
            Reader::XarrayH5netcdf => "xarray (h5netcdf)",
            Reader::XarrayNetcdf4 => "xarray (netcdf4)",
            Reader::Netcdf4 => "netCDF4",
            Reader::HdfView => "HDFView",
            Reader::Matlab => "MATLAB",
            Reader::OldMatlab => "MATLAB before R2021b",
            Reader::Julia => "HDF5.jl",
            Reader::H5dump18 => "h5dump 1.8",
            Reader::H5dump110 => "h5dump 1.10",
            Reader::VirtualiZarr => "VirtualiZarr",
            Reader::Hsds => "HSDS",
            Reader::Pyfive => "pyfive",
            Reader::Jsfive => "jsfive",
            Reader::Idl => "IDL",
        }
    }
}

/// The kind of requirement that a file does not meet if a rule of `lint` finds something in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// The file does not follow docs/reference/layout.md.
    Layout,
    /// The file is as it should be, but some readers do not support everything in it.
    Reader,
}

/// A rule of `lint`: a flaw that objects of a file may have, the readers that it affects, why it
/// matters, and what can be done.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// Identifier of the rule, such as `chunk-index`, in the output of `h5bridge lint --json`.
    pub name: &'static str,
    /// Whether an object with the flaw of this rule violates docs/reference/layout.md, or only
    /// lacks support in some programs that read HDF5.
    pub requirement: Requirement,
    /// The readers that have difficulties with an object that has the flaw of this rule; empty for
    /// rules of docs/reference/layout.md, which concern all readers.
    pub readers: &'static [Reader],
    /// Sentence for the user: why it matters that an object has the flaw of this rule.
    pub why: &'static str,
    /// Advice for the user: what to do if an object has the flaw of this rule.
    pub next: &'static str,
    check: Check,
}

/// An object of a file that has a flaw, found by one of the rules of `lint`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The rule of `lint` by which the flaw of the object was found.
    pub rule: &'static Rule,
    /// HDF5 path of the object (group, dataset, link or named type) that has the flaw, or whose
    /// attribute has it; `/` for the root group or the whole file.
    pub object: String,
    /// Name of the attribute of `object` that has the flaw; `None` if `object` itself has it.
    pub attribute: Option<String>,
    /// The flaw that the rule found in the object, in words, such as `a null dataspace`.
    pub found: String,
}

/// The kind of object that a rule examines; functions return the flaw in words.
#[derive(Debug)]
enum Check {
    File(fn(&FileFacts) -> Option<String>),
    Link(fn(&LinkFacts) -> Option<String>),
    Dataset(fn(&DatasetFacts) -> Option<String>),
    Attribute(fn(&AttributeFacts) -> Option<String>),
    /// Names of groups, datasets, links and attributes.
    Name(fn(&str) -> Option<String>),
    /// A finding for each table and column that cannot be read.
    Unreadable,
    /// A finding for each committed (named) type, which docs/reference/layout.md does not allow.
    Type,
}

impl Rule {
    pub(super) fn findings(&'static self, facts: &Facts) -> Vec<Finding> {
        let of = |object: &str, attribute: Option<&str>, found: String| Finding {
            rule: self,
            object: if object.is_empty() { "/".to_owned() } else { object.to_owned() },
            attribute: attribute.map(str::to_owned),
            found,
        };
        match self.check {
            Check::File(check) => check(&facts.file).map(|found| of("/", None, found)).into_iter().collect(),
            Check::Link(check) => {
                facts.links.iter().filter_map(|link| Some(of(&link.path, None, check(link)?))).collect()
            }
            Check::Dataset(check) => {
                facts.datasets.iter().filter_map(|dataset| Some(of(&dataset.path, None, check(dataset)?))).collect()
            }
            Check::Attribute(check) => {
                let check = |one: &AttributeFacts| Some(of(&one.path, Some(&one.name), check(one)?));
                facts.attributes.iter().filter_map(check).collect()
            }
            Check::Name(check) => {
                let datasets = facts.datasets.iter().map(|dataset| &dataset.path);
                let paths = facts.group_paths.iter().chain(datasets).chain(facts.links.iter().map(|link| &link.path));
                let objects = paths.filter_map(|path| Some(of(path, None, check(last_part(path))?)));
                let attribute = |one: &AttributeFacts| Some(of(&one.path, Some(&one.name), check(&one.name)?));
                objects.chain(facts.attributes.iter().filter_map(attribute)).collect()
            }
            Check::Unreadable => facts.unreadable.iter().map(|(path, why)| of(path, None, why.clone())).collect(),
            Check::Type => facts.types.iter().map(|path| of(path, None, "a committed type".to_owned())).collect(),
        }
    }
}

/// Bytes of a name that netCDF readers show: `NC_MAX_NAME` (256) has room for a NUL.
const NETCDF_NAME: usize = 255;

/// Readers that know structures of HDF5 1.8 only.
const OLD_READERS: &[Reader] = &[Reader::H5dump18, Reader::OldMatlab];

/// First the rules of docs/reference/layout.md, then those about programs that read HDF5.
pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "unreadable",
        requirement: Requirement::Layout,
        readers: &[],
        why: "a table or column that is not stored as the layout says cannot be read by h5bridge",
        next: "correct the datasets that are named, or make the file again with `h5bridge to-hdf5`",
        check: Check::Unreadable,
    },
    Rule {
        name: "other-file",
        requirement: Requirement::Layout,
        readers: &[],
        why: "a native file has all of its elements itself; the other file may be moved or changed",
        next: "copy the file with `h5bridge to-hdf5 --follow-external`",
        check: Check::Link(|link| link.elsewhere.clone()),
    },
    Rule {
        name: "elements-elsewhere",
        requirement: Requirement::Layout,
        readers: &[],
        why: "a native file has all of its elements itself; the other file may be moved or changed",
        next: "copy the file with `h5bridge to-hdf5 --follow-external`",
        check: Check::Dataset(|dataset| dataset.elsewhere.clone()),
    },
    Rule {
        name: "element-type",
        requirement: Requirement::Layout,
        readers: &[],
        why: "a column has little-endian numbers, booleans, complex numbers or strings, of the types that casacore has",
        next: "store the column with one of the types in docs/reference/layout.md, in h5py for example with `astype`",
        check: Check::Dataset(foreign_type),
    },
    Rule {
        name: "committed-type",
        requirement: Requirement::Layout,
        readers: &[],
        why: "netCDF4 and h5netcdf refuse a file with such a type",
        next: "delete the committed type, and create the datasets that use it again",
        check: Check::Type,
    },
    Rule {
        name: "type-reference",
        requirement: Requirement::Layout,
        readers: &[],
        why: "netCDF4 and h5netcdf refuse a file with such a type",
        next: "create the dataset again with a type that is not committed",
        check: Check::Dataset(|dataset| dataset.is_committed.then(|| "a committed type".to_owned())),
    },
    Rule {
        name: "null-dataspace",
        requirement: Requirement::Layout,
        readers: &[],
        why: "netCDF4 and h5netcdf refuse a file with a null dataspace (h5py.Empty)",
        next: "delete the dataset, or give it an axis of length 0",
        check: Check::Dataset(|dataset| dataset.extents.is_none().then(|| "a null dataspace".to_owned())),
    },
    Rule {
        name: "null-attribute",
        requirement: Requirement::Layout,
        readers: &[],
        why: "an attribute without a value (h5py.Empty) is not a keyword",
        next: "delete the attribute, or give it a value",
        check: Check::Attribute(|attribute| attribute.extents.is_none().then(|| "a null dataspace".to_owned())),
    },
    Rule {
        name: "attribute-axes",
        requirement: Requirement::Layout,
        readers: &[],
        why: "netCDF attributes have at most one axis; the shape of a keyword is an attribute of its own",
        next: "store the values with one axis, casacore's order, and their shape as the attribute NAME__shape",
        check: Check::Attribute(|attribute| {
            let axes = attribute.extents.as_ref().map_or(0, Vec::len);
            (axes > 1).then(|| format!("an attribute of {axes} axes"))
        }),
    },
    Rule {
        name: "hdf5-1.10",
        requirement: Requirement::Reader,
        readers: OLD_READERS,
        why: "the superblock is of HDF5 1.10, and HDF5 1.8 does not open the file",
        next: "h5bridge to-hdf5 --hdf5 1.8",
        check: Check::File(|file| {
            (file.superblock >= 3).then(|| format!("a superblock of version {}", file.superblock))
        }),
    },
    Rule {
        name: "chunk-index",
        requirement: Requirement::Reader,
        readers: &[Reader::Pyfive, Reader::Jsfive, Reader::H5dump18, Reader::OldMatlab],
        why: "these readers find chunks by version 1 B-trees only",
        next: "h5bridge to-hdf5 --hdf5 1.8",
        check: Check::Dataset(|dataset| match dataset.index {
            IndexKind::None | IndexKind::BtreeV1 => None,
            newer => Some(format!("chunk index {newer}")),
        }),
    },
    Rule {
        name: "lost-scale",
        requirement: Requirement::Reader,
        readers: &[Reader::H5py, Reader::XarrayH5netcdf, Reader::XarrayNetcdf4, Reader::Netcdf4],
        why: "a reference to the scale of an axis leads nowhere, as when objects were copied from another file one by one",
        next: "h5bridge to-hdf5 FILE OUT.h5 makes a copy with scales; h5py: copy whole files",
        check: Check::Dataset(|dataset| match dataset.lost_scales {
            0 => None,
            1 => Some("a reference to a scale that is not in the file".to_owned()),
            count => Some(format!("{count} references to scales that are not in the file")),
        }),
    },
    Rule {
        name: "long-name",
        requirement: Requirement::Reader,
        readers: &[Reader::XarrayNetcdf4, Reader::Netcdf4],
        why: "names of netCDF have less than 256 bytes",
        next: "rename the object or attribute; the attribute ctds_name keeps the long name of a column",
        check: Check::Name(|name| (name.len() > NETCDF_NAME).then(|| format!("a name of {} bytes", name.len()))),
    },
    Rule {
        name: "growing",
        requirement: Requirement::Reader,
        readers: &[Reader::H5py, Reader::XarrayH5netcdf, Reader::XarrayNetcdf4, Reader::Netcdf4, Reader::H5dump110],
        why: "a writer has the file open under SWMR, or did not close it: it opens for SWMR reading only",
        next: "h5py.File(path, swmr=True), or wait for the writer; then h5bridge finalize. If the writer was killed: h5bridge repair",
        check: Check::File(|file| file.is_live.then(|| "a live file".to_owned())),
    },
    Rule {
        name: "plugin",
        requirement: Requirement::Reader,
        readers: &[
            Reader::H5py,
            Reader::XarrayH5netcdf,
            Reader::HdfView,
            Reader::Matlab,
            Reader::Julia,
            Reader::H5dump110,
            Reader::Pyfive,
            Reader::Jsfive,
            Reader::Idl,
        ],
        why: "the filter is a plugin of HDF5, which these readers lack until it is installed; pyfive and jsfive never have it",
        next: "h5bridge to-hdf5 --compress gzip, or install the plugin: in Python `import hdf5plugin`",
        check: Check::Dataset(|dataset| {
            let names: Vec<&str> = dataset.plugins.iter().map(|plugin| plugin.filter.as_str()).collect();
            (!names.is_empty()).then(|| format!("filter {}", names.join(", ")))
        }),
    },
    Rule {
        name: "complex",
        requirement: Requirement::Reader,
        readers: &[Reader::XarrayNetcdf4, Reader::Netcdf4, Reader::HdfView, Reader::Matlab, Reader::Idl],
        why: "these readers show complex numbers as a structure with the members r and i",
        next: "auto_complex=True in xarray.open_datatree(engine=\"netcdf4\") and netCDF4.Dataset; elsewhere x.r + 1i*x.i",
        check: Check::Dataset(|dataset| complex(dataset).then(|| "complex numbers".to_owned())),
    },
    Rule {
        name: "complex-unread",
        requirement: Requirement::Reader,
        readers: &[Reader::Jsfive],
        why: "jsfive does not read compound types",
        next: "read the file with h5wasm, or leave the column out with `h5bridge to-hdf5 --exclude`",
        check: Check::Dataset(|dataset| complex(dataset).then(|| "complex numbers".to_owned())),
    },
    Rule {
        name: "boolean",
        requirement: Requirement::Reader,
        readers: &[Reader::XarrayNetcdf4, Reader::Netcdf4, Reader::Pyfive, Reader::Jsfive],
        why: "these readers show booleans as the numbers 0 and 1",
        next: "values.astype(bool), or engine=\"h5netcdf\" in xarray",
        check: Check::Dataset(|dataset| {
            let is_enum = matches!(dataset.element.class, Class::Enum { .. }) && in_table(dataset);
            is_enum.then(|| "booleans".to_owned())
        }),
    },
    Rule {
        name: "strings",
        requirement: Requirement::Reader,
        readers: &[Reader::VirtualiZarr],
        why: "VirtualiZarr does not open a group in which a dataset has strings of variable length",
        next: "HDFParser(group=..., drop_variables=[...]) with the names of these datasets",
        check: Check::Dataset(|dataset| {
            let is_text = matches!(dataset.element.class, Class::VariableString(_));
            (is_text && in_table(dataset)).then(|| "strings of variable length".to_owned())
        }),
    },
    Rule {
        name: "no-scale",
        requirement: Requirement::Reader,
        readers: &[Reader::XarrayH5netcdf, Reader::XarrayNetcdf4, Reader::Netcdf4],
        why: "an axis without a dimension scale has no name; these readers guess it by the length, or call it phony_dim_0",
        next: "attach a scale in h5py: data.dims[0].attach_scale(file[\"MAIN/row\"])",
        check: Check::Dataset(|dataset| {
            let axes = dataset.extents.as_ref().map_or(0, Vec::len);
            let missing = (0..axes).find(|&axis| dataset.scales.get(axis).copied().unwrap_or(0) == 0)?;
            (in_table(dataset) && !dataset.is_scale).then(|| format!("axis {missing} has no dimension scale"))
        }),
    },
    Rule {
        name: "large-attribute",
        requirement: Requirement::Reader,
        readers: &[Reader::H5dump18, Reader::OldMatlab],
        why: "the attribute is too large for the object headers of HDF5 1.8; with --hdf5 1.8 the keyword is only under _ctds",
        next: "nothing is lost: h5bridge to-ms writes the keyword of either file",
        check: Check::Attribute(|attribute| {
            let is_large = !fits_header(&attribute.name, attribute.bytes);
            is_large.then(|| format!("an attribute of {} bytes", attribute.bytes))
        }),
    },
];

/// Not under `_ctds` or in another group.
fn in_table(dataset: &DatasetFacts) -> bool {
    dataset.place != Place::Other
}

fn complex(dataset: &DatasetFacts) -> bool {
    in_table(dataset) && is_complex(&dataset.element)
}

fn is_complex(element: &Datatype) -> bool {
    match &element.class {
        Class::Compound(members) => match members.as_slice() {
            [r, i] => r.name == b"r" && i.name == b"i" && is_float(&r.datatype) && r.datatype == i.datatype,
            _ => false,
        },
        _ => false,
    }
}

fn is_float(element: &Datatype) -> bool {
    matches!(&element.class, Class::Float(layout) if layout.order == ByteOrder::Little) && matches!(element.size, 4 | 8)
}

/// The type in words, if docs/reference/layout.md does not allow it. Dimension scales,
/// `committed_rows` and datasets outside tables are not checked.
fn foreign_type(dataset: &DatasetFacts) -> Option<String> {
    // scales without values are of netCDF's type
    if !in_table(dataset) || dataset.is_scale || dataset.path.ends_with(&format!("/{COMMITTED_ROWS}")) {
        return None;
    }
    let Datatype { size, class } = &dataset.element;
    let known = match class {
        Class::Integer { order, is_signed, .. } => {
            let sign = if *size == 1 { !is_signed } else { *is_signed || *size < 8 };
            sign && (*order == ByteOrder::Little || *size == 1) && matches!(size, 1 | 2 | 4 | 8)
        }
        Class::Float(_) => is_float(&dataset.element),
        Class::Compound(_) => is_complex(&dataset.element),
        Class::Enum { values, .. } => {
            matches!(values.as_slice(), [no, yes] if *size == 1 && no.0 == b"FALSE" && yes.0 == b"TRUE")
        }
        Class::String(_) | Class::VariableString(_) => true,
        _ => false,
    };
    let name = || match class {
        Class::Integer { order, is_signed, .. } => {
            let sign = if *is_signed { "" } else { "unsigned " };
            format!("{}{sign}integers of {} bits", adjective(*order), 8 * size)
        }
        Class::Float(layout) => format!("{}floating-point numbers of {} bits", adjective(layout.order), 8 * size),
        Class::Compound(_) => "a compound type".to_owned(),
        Class::Enum { .. } => "an enumeration".to_owned(),
        Class::Sequence(_) => "elements of variable length".to_owned(),
        Class::Array { .. } => "arrays as elements".to_owned(),
        Class::Reference(_) => "references".to_owned(),
        Class::Complex(_) => "complex numbers of HDF5 2.0".to_owned(),
        Class::Bitfield { .. } => "bit fields".to_owned(),
        Class::Opaque { .. } => "opaque elements".to_owned(),
        Class::Time { .. } => "times of HDF5".to_owned(),
        _ => "a type that is not known".to_owned(),
    };
    (!known).then(name)
}

/// Adjective with a space after it; empty for little-endian, the usual order.
fn adjective(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "",
        ByteOrder::Big => "big-endian ",
        ByteOrder::Vax => "mixed-endian ",
    }
}
