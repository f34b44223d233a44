//! The output of `h5bridge info` about sources without tables: arrays, containers, and files in
//! containers.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use ctds_hdf5::blz::Arrays;
use ctds_hdf5::documents::{InfoArrays, InfoContainer, InfoFile};
use ctds_hdf5::pack::{StoredFile, StoredFiles};

use super::screen::{self, Section};
use crate::args::Global;
use crate::command::ls;
use crate::exit::Status;
use crate::report;

pub(super) fn run_arrays(path: &Path, global: &Global, out: &mut impl Write) -> Result<Status> {
    let arrays = Arrays::open(path)?;
    if global.json {
        report::write_document(&InfoArrays::new(path, &arrays)?, out)?;
        return Ok(Status::Done);
    }
    let list = arrays.list()?;
    let lines = |lines: Vec<String>, all: &str| Section {
        rows: lines.into_iter().map(|line| vec![line]).collect(),
        all: Some(all.to_owned()),
        ..Section::default()
    };
    let attributes = arrays.attributes().into_iter().map(|(name, value)| format!("{}: {value}", ls::printable(&name)));
    let sections = vec![
        lines(list.iter().map(ls::array_line).collect(), "--json lists all"),
        lines(attributes.collect(), "--json lists all"),
    ];
    screen::print(sections, Some(screen::LINES), Some(screen::width()), out)?;
    Ok(Status::Done)
}

pub(super) fn run_container(container: &StoredFiles, global: &Global, out: &mut impl Write) -> Result<Status> {
    if global.json {
        report::write_document(&InfoContainer::new(container)?, out)?;
        return Ok(Status::Done);
    }
    let (info, properties) = (container.info(), container.properties()?);
    let (files, bytes) = container.totals()?;
    let bytes = report::bytes(bytes);
    writeln!(out, "{}  {}: {files} files of {bytes}", ls::printable(container.name()), ls::describe(&info))?;
    ls::property_lines(&properties).try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Status::Done)
}

pub(super) fn run_file(path: &Path, file: &StoredFile, global: &Global, out: &mut impl Write) -> Result<Status> {
    let listed = &file.listed;
    if global.json {
        report::write_document(&InfoFile::new(path, listed), out)?;
        return Ok(Status::Done);
    }
    let layout = &listed.layout;
    let stored = format!("{} stored in {} blocks", report::bytes(layout.stored_bytes), layout.blocks);
    writeln!(out, "{}  {} bytes, {stored}", ls::printable(&listed.name), listed.len)?;
    ls::property_lines(&listed.properties).try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Status::Done)
}
