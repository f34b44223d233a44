//! `watch`: how a live file grows, in the terminal or as events.

mod draw;
mod sample;

use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use ctds_hdf5::ErrorKind;
use ctds_hdf5::live::Reader;
use serde_json::{Value as Json, json};

use self::draw::Screen;
use self::sample::{Kind, Sample, Tick};
use crate::args::{Global, duration};
use crate::exit::Status;
use crate::interrupt::Stop;

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge watch live.h5
  h5bridge watch live.h5 --interval 5s
  h5bridge watch live.h5 --json | jq .rows")]
pub(crate) struct Args {
    /// A live HDF5 file, whether or not it is being written to
    live: PathBuf,
    /// Look this often
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Duration,
    /// Stop after so many looks
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// Looks until told to stop, or until the file is no longer live.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new(global.caller.as_ref())?;
    let mut watched = Watched::open(&args.live)?;
    let mut screen = Screen::new(std::io::stdout().is_terminal());
    let mut looks = 0;
    let reason = loop {
        if args.count.is_some_and(|count| looks >= count) {
            break "count";
        }
        if looks > 0 {
            stop.sleep(args.interval);
        }
        if stop.is_set() {
            break "interrupted";
        }
        let Some(tick) = watched.look()? else { break "replaced" };
        looks += 1;
        if global.json {
            writeln!(out, "{}", event(&args.live, &tick))?;
        } else {
            screen.show(&args.live, &tick, out)?;
        }
        out.flush()?;
    };
    if global.json {
        let status = Status::Done;
        let document = json!({
            "event": "end", "reason": reason, "looks": looks,
            "status": status.name(), "code": status.code(), "warnings": [],
        });
        writeln!(out, "{document}")?;
    } else if reason == "replaced" {
        writeln!(out, "{}: gone, or no longer a live file", args.live.display())?;
    }
    Ok(Status::Done)
}

/// The file at a path, also when another one takes its place.
struct Watched {
    path: PathBuf,
    reader: Reader,
    identity: (u64, u64),
    /// When was the look before, and the rows and bytes that there were.
    before: Option<(SystemTime, u64, f64)>,
    /// When the newest commit was.
    committed: Option<SystemTime>,
}

impl Watched {
    fn open(path: &Path) -> Result<Self> {
        let identity = identity(path)?;
        let reader = Reader::open(path).map_err(|error| {
            let is_foreign = matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Format);
            let error = anyhow::Error::new(error);
            if is_foreign {
                error.context("only live files of h5bridge can be watched; info shows what it is")
            } else {
                error
            }
        })?;
        Ok(Watched { path: path.to_owned(), reader, identity, before: None, committed: None })
    }

    /// `None` if the file is gone, or another one is there that is not live.
    fn look(&mut self) -> Result<Option<Tick>> {
        match identity(&self.path) {
            Ok(identity) if identity == self.identity => {}
            Ok(_) => match Self::open(&self.path) {
                Ok(new) => *self = new,
                Err(_) => return Ok(None),
            },
            Err(_) => return Ok(None),
        }
        let sample = Sample::take(&self.reader, &self.path)?;
        let mut tick = Tick { sample, rows_per_second: None, bytes_per_second: None, age: Duration::ZERO };
        let mut grew = true;
        if let Some((taken, rows, bytes)) = self.before {
            let seconds = tick.sample.taken.duration_since(taken).unwrap_or_default().as_secs_f64().max(1e-3);
            grew = tick.rows() != rows;
            tick.rows_per_second = Some(tick.rows().saturating_sub(rows) as f64 / seconds);
            tick.bytes_per_second = Some((tick.sample.bytes - bytes).max(0.) / seconds);
        }
        // a file that does not grow may be written to nevertheless: old cells
        if grew {
            self.committed = Some(tick.sample.written);
        }
        let age = self.committed.and_then(|committed| tick.sample.taken.duration_since(committed).ok());
        tick.age = age.unwrap_or_default();
        self.before = Some((tick.sample.taken, tick.rows(), tick.sample.bytes));
        Ok(Some(tick))
    }
}

fn identity(path: &Path) -> Result<(u64, u64)> {
    let found = path.metadata().map_err(|error| ctds_hdf5::Error::from(error).context(path.display()));
    let found = found.context("there is no live file; h5bridge follow makes one from a table that is being written")?;
    Ok((found.dev(), found.ino()))
}

/// A tick in JSON, in one line.
fn event(path: &Path, tick: &Tick) -> Json {
    let Sample { taken, is_open, rows, newest, flagged, amplitudes, .. } = &tick.sample;
    let tables: serde_json::Map<_, _> = rows.iter().map(|(name, rows)| (name.clone(), (*rows).into())).collect();
    let newest = newest.map(|seconds| json!({"mjd_seconds": seconds, "utc": draw::utc_of_mjd(seconds)}));
    let amplitudes = amplitudes.as_ref().map(|amplitudes| {
        let by = match amplitudes.kind {
            Kind::Antenna => "antenna",
            Kind::Waterfall => "time and channel",
        };
        let means: Json = match amplitudes.kind {
            Kind::Antenna => amplitudes.means.concat().into(),
            Kind::Waterfall => amplitudes.means.clone().into(),
        };
        json!({"column": amplitudes.column, "by": by, "mean": means})
    });
    json!({
        "event": "look", "time": draw::utc(*taken), "file": path.display().to_string(), "open": is_open, "rows": tick.rows(),
        "tables": tables, "rows_per_second": tick.rows_per_second, "bytes_per_second": tick.bytes_per_second,
        "commit_age_seconds": tick.age.as_secs_f64(), "newest_time": newest, "flagged": flagged, "amplitudes": amplitudes,
    })
}
