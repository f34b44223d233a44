//! `info` shows the content of a table or file in one screen; options show more details.

mod attention;
mod columns;
mod details;
mod image;
mod msv4;
mod observation;
mod other;
mod overview;
mod screen;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ctds_hdf5::blz::Arrays;
use ctds_hdf5::convert::{DatasetInfo, Source, SourceTable, SpaceUsage, ThinTable, display_name};
use ctds_hdf5::documents::{Attention, Described, Info, InfoTable};
use ctds_hdf5::pack::Contents;
use ctds_hdf5::program::shown_path;
use ctds_hdf5::{Error, ErrorKind};
use ms_look::{Summary, utc_of_mjd};
use serde::Serialize;

use self::details::Sort;
use self::overview::Facts;
use crate::args::{External, Global, SOURCE};
use crate::exit::Status;
use crate::report;

/// Above this number of rows, plugins are looked for in the main table only, to save time.
const LONG: u64 = 10_000;

/// Command-line arguments of `h5bridge info`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge info my.ms
  h5bridge info my.ms --table FIELD
  h5bridge info my.h5 --storage
  h5bridge info my.h5 --json
  h5bridge info my.ms --msv4
  h5bridge info run.sion/TASK3
  h5bridge info s3://bucket/my.h5")]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    /// List the columns of each table, also empty ones, with sizes, units and comments
    #[arg(long)]
    columns: bool,
    /// List storage managers, hypercubes, tiles, datasets, chunks, filters and bytes
    #[arg(long)]
    storage: bool,
    /// List the keywords of tables and columns
    #[arg(long)]
    keywords: bool,
    /// List the partitions of a MeasurementSet as MSv4: their axes, and what they are split by
    #[arg(long, conflicts_with_all = ["columns", "storage", "keywords", "table"])]
    msv4: bool,
    /// Show only this table, whole: MAIN, ANTENNA, A/B; may be repeated
    #[arg(long, value_name = "NAME")]
    table: Vec<String>,
    /// Order of the columns that --columns lists
    #[arg(long, value_name = "ORDER", default_value = "none", requires = "columns")]
    sort: Sort,
    #[command(flatten)]
    external: External,
}

/// Shapes are slowest axis first, as HDF5 and numpy show them.
pub(crate) fn run(mut args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    // a table of a native file may be named by its path
    if let Some((file, table)) = Source::split_path(&args.source) {
        args.table.push(table);
        args.source = file.to_owned();
    }
    if Arrays::are_at(&args.source) {
        return other::run_arrays(&args.source, global, out);
    }
    match Contents::of(&args.source)? {
        Contents::Container(files) => return other::run_container(&files, global, out),
        Contents::File(file) => return other::run_file(&args.source, &file, global, out),
        _ => {}
    }
    // before this process opens it
    let others = attention::use_by_others(&args.source, global.no_lock);
    let source = Source::open_with(&args.source, args.external.open_options(global))?;
    if args.msv4 {
        msv4::print(&args.source, &source, global.json, screen::width(), out)?;
        return Ok(Status::Done);
    }
    let chosen = args.chosen(&source)?;
    if global.json {
        return print_json(&facts(&args.source, &source, others, true)?, out);
    }
    let width = screen::width();
    let wide = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { Some(width) } else { None };
    if !args.columns && !args.storage && !args.keywords {
        let facts = facts(&args.source, &source, others, false)?;
        if args.table.is_empty() {
            screen::print(overview::sections(&facts), Some(screen::LINES), Some(width), out)?;
        }
        for number in chosen.into_iter().filter(|_| !args.table.is_empty()) {
            screen::print(overview::table_sections(&facts, number), None, wide, out)?;
        }
        return Ok(Status::Done);
    }
    for table in chosen.iter().map(|number| &source.tables()[*number]) {
        if args.columns {
            screen::print(vec![details::columns(&source, table, args.sort)], None, wide, out)?;
        }
        if args.storage {
            details::print_storage(table, out)?;
        }
        if args.keywords {
            screen::print(vec![details::keywords(table)], None, wide, out)?;
        }
    }
    Ok(Status::Done)
}

impl Args {
    /// All tables without `--table`.
    fn chosen(&self, source: &Source) -> Result<Vec<usize>> {
        if self.table.is_empty() {
            return Ok((0..source.tables().len()).collect());
        }
        let number = |name: &String| {
            let found =
                source.tables().iter().position(|table| table.name == *name || display_name(&table.name) == name);
            found.ok_or_else(|| {
                let names: Vec<&str> = source.tables().iter().map(|table| display_name(&table.name)).collect();
                let message = format!("no table {name}{}", ctds_hdf5::program::instead(name, names));
                anyhow::Error::new(Error::new(ErrorKind::NotFound, message).context(shown_path(&self.source)))
            })
        };
        self.table.iter().map(number).collect()
    }
}

/// `others` is a finding about other programs. Unless `all` is set, only datasets of the main table
/// are described if it has more than [`LONG`] rows.
fn facts<'a>(path: &'a Path, source: &'a Source, others: Option<Attention>, all: bool) -> Result<Facts<'a>> {
    let summary = Summary::of(source);
    let thin = ThinTable::open(path)?;
    // columns of a long main table are compressed like all others
    let is_long = source.tables().first().and_then(|main| main.rows().ok()).is_some_and(|rows| rows > LONG);
    let datasets = datasets(if is_long && !all { &source.tables()[..1] } else { source.tables() });
    let findings = attention::find(others, path, source, summary.as_ref(), thin.as_ref(), &datasets);
    let plugins = datasets.into_iter().flat_map(|(_, dataset)| dataset.plugins).collect();
    let usage = SpaceUsage::of(source)?;
    Ok(Facts { path, source, summary, findings, usage, thin, plugins })
}

/// Serializes as `ctds_hdf5::documents::Summary`.
#[derive(Serialize)]
struct DatedSummary<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    time_range_utc: Option<[String; 2]>,
}

fn print_json(facts: &Facts<'_>, out: &mut impl Write) -> Result<Status> {
    let source = facts.source;
    let mut document = Info::new(shown_path(facts.path));
    document.kind = source.tables().first().map(|main| overview::kind(main, facts.summary.as_ref()).to_owned());
    document.summary = facts
        .summary
        .as_ref()
        .map(|summary| DatedSummary { summary, time_range_utc: summary.time_range.map(|range| range.map(utc_of_mjd)) });
    for table in source.tables() {
        let described = InfoTable::new(table)
            .map_or_else(|error| Described::Unreadable { error: error.to_string() }, Described::Table);
        document.tables.insert(table.name.clone(), described);
    }
    document.plugins = facts.plugins.iter().map(Into::into).collect();
    document.attention = facts.findings.clone();
    document.damage = source.damage().to_vec();
    document.thin = facts.thin.as_ref().map(Into::into);
    document.bytes = facts.usage.as_ref().map(Into::into);
    document.restorable = facts.usage.as_ref().map(|usage| usage.restorable);
    document.schema = source.tables().first().filter(|main| main.is_by_msv4()).map(|_| "msv4".to_owned());
    report::write_document(&document, out)?;
    Ok(Status::Done)
}

/// Named `MAIN/DATA`. Datasets that cannot be described are left out.
fn datasets(tables: &[SourceTable]) -> Vec<(String, DatasetInfo)> {
    let mut found = Vec::new();
    for table in tables {
        for (index, column) in table.columns().unwrap_or_default().iter().enumerate() {
            let name = format!("{}/{}", display_name(&table.name), column.desc.name);
            let datasets = table.storage(index).unwrap_or_default();
            found.extend(datasets.into_iter().map(|dataset| (name.clone(), dataset)));
        }
    }
    found
}
