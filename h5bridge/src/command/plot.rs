//! `plot`: a plot of a MeasurementSet, as a picture or as numbers.

mod draw;
mod png;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use ctds_hdf5::Error;
use ctds_hdf5::ErrorKind;
use ctds_hdf5::look::{Frame, Kind, Request, Session};
use serde_json::json;

use crate::args::{Global, if_exists, size};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report::Ending;

/// Time for reading between two looks at signals and two reports of progress.
const STEP: Duration = Duration::from_millis(300);

/// Time for which a writer in the middle of a flush is waited for, with `--no-lock`.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `plot`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge plot my.ms
  h5bridge plot my.ms waterfall --out rfi.png --statistic max --corr XX
  h5bridge plot live.h5 spectrum --spw 1 --out spectrum.csv
  h5bridge plot my.h5 baselines --quantity flagged --out flagged.npy")]
pub(crate) struct Args {
    /// A table directory, a container, or a native or live HDF5 file
    source: PathBuf,
    /// Kind of plot [default: waterfall]
    #[arg(value_parser = kinds())]
    kind: Option<String>,
    /// The file to write; its ending selects the format: .png, .npy, .csv or .safetensors [default: KIND.png]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    overwrite: bool,
    /// Column of visibilities [default: DATA, or the first that exists]
    #[arg(long)]
    column: Option<String>,
    /// DATA_DESC_ID, or the name of a spectral window [default: that of the newest row]
    #[arg(long, value_name = "ID")]
    spw: Option<String>,
    /// Names or numbers of fields
    #[arg(long, value_name = "FIELD,...")]
    field: Option<String>,
    /// Numbers of scans
    #[arg(long, value_name = "SCAN,...")]
    scan: Option<String>,
    /// Names or numbers of correlations [default: the parallel hands, for flags all]
    #[arg(long, value_name = "CORR,...")]
    corr: Option<String>,
    /// "cross", "auto", "all", or pairs of antennas: m000-m001, or CS-1&CS-2 for names that contain "-" [default: cross]
    #[arg(long, value_name = "PAIR,...")]
    baseline: Option<String>,
    /// Only baselines with one of these antennas, by name or number
    #[arg(long, value_name = "ANTENNA,...")]
    antenna: Option<String>,
    /// Times from A up to but without B: UTC such as 2026-11-20T17:30:00, or MJD in seconds
    #[arg(long, value_name = "A..B")]
    time: Option<String>,
    /// Channels from A up to but without B
    #[arg(long, value_name = "A..B")]
    chan: Option<String>,
    /// "amp", "phase", "real", "imag" or "flagged"; not every kind has each
    #[arg(long)]
    quantity: Option<String>,
    /// "mean", or "max" to show short interference that a mean hides
    #[arg(long)]
    statistic: Option<String>,
    /// "scalar": mean of amplitudes; "vector": mean of complex numbers
    #[arg(long)]
    average: Option<String>,
    /// Whether to "omit" or "include" flagged cells
    #[arg(long)]
    flagged: Option<String>,
    /// Unit of uv: "m" or "klambda", at the middle of the band
    #[arg(long)]
    unit: Option<String>,
    /// Most bytes to read; of a larger source an even sample is shown
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    max_read: u64,
    /// Print the fields, spectral windows, antennas and columns that can be selected, as JSON, and draw nothing
    #[arg(long)]
    describe: bool,
    /// Size of the picture in pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "960x640", value_parser = pixels)]
    size: (usize, usize),
    /// Bytes of rows that are read at a time; for tests
    #[arg(long, value_name = "SIZE", value_parser = size, hide = true)]
    block_bytes: Option<u64>,
}

fn kinds() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name()))
}

/// `960x640`
fn pixels(text: &str) -> Result<(usize, usize), String> {
    let read = || -> Option<(usize, usize)> {
        let (width, height) = text.split_once('x')?;
        Some((width.parse().ok()?, height.parse().ok()?))
    };
    let fits = |&(width, height): &(usize, usize)| (320..=8192).contains(&width) && (240..=8192).contains(&height);
    read().filter(fits).ok_or_else(|| "expected WIDTHxHEIGHT, from 320x240 to 8192x8192".to_owned())
}

/// How the frame is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Png,
    Npy,
    Csv,
    Safetensors,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        Ok(match path.extension().and_then(|ending| ending.to_str()) {
            Some("png") => Form::Png,
            Some("npy") => Form::Npy,
            Some("csv") => Form::Csv,
            Some("safetensors") => Form::Safetensors,
            _ => {
                let message = "the form of --out is not known: its name ends in .png, .npy, .csv or .safetensors";
                return Err(Error::new(ErrorKind::Usage, message).context(path.display()).into());
            }
        })
    }
}

impl Args {
    fn request(&self) -> Result<Request> {
        let parameters = [
            ("column", &self.column),
            ("spw", &self.spw),
            ("field", &self.field),
            ("scan", &self.scan),
            ("corr", &self.corr),
            ("baseline", &self.baseline),
            ("antenna", &self.antenna),
            ("time", &self.time),
            ("chan", &self.chan),
            ("quantity", &self.quantity),
            ("statistic", &self.statistic),
            ("average", &self.average),
            ("flagged", &self.flagged),
            ("unit", &self.unit),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        Ok(Request::parse(self.kind.as_deref().unwrap_or("waterfall"), &given.collect::<Vec<_>>())?)
    }
}

/// Reads all rows, or as many as are allowed, and writes the plot.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new(global.caller.as_ref())?;
    let request = args.request()?;
    if args.describe {
        let description = Session::open(&args.source)?.describe()?;
        writeln!(out, "{}", serde_json::to_string_pretty(&description)?)?;
        return Ok(Status::Done);
    }
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.png", request.kind().name())));
    let form = Form::of(&path)?;
    let mut session = Session::open(&args.source)?;
    session.set_budget(STEP);
    session.set_read_limit(args.max_read);
    if let Some(bytes) = args.block_bytes {
        session.set_block_bytes(bytes);
    }
    let shows_progress = std::io::stderr().is_terminal() && !global.quiet && !global.json;
    let of_source = |error: Error| error.context(args.source.display());
    let mut frame = session.frame(&request).map_err(of_source)?;
    let (patience, mut waiting) = (global.open_options().lock_timeout.unwrap_or(PATIENCE), Duration::ZERO);
    while !frame.is_complete() && !frame.is_stopped() {
        if stop.is_set() {
            bail!(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        if shows_progress {
            eprint!("\r{} of {} rows ", frame.plot.rows_used, frame.plot.rows);
        }
        let before = frame.plot.rows_used;
        frame = session.frame(&request).map_err(of_source)?;
        if frame.plot.rows_used == before {
            if waiting >= patience {
                bail!(
                    Error::new(ErrorKind::Locked, "another program has been writing to the table all the time")
                        .context(args.source.display())
                );
            }
            // a writer is in the middle of a flush
            stop.sleep(STEP);
            waiting += STEP;
            session.refresh()?;
        }
    }
    if shows_progress {
        eprint!("\r\x1b[K");
    }
    write(&path, &bytes(&frame, form, args.size), args.overwrite)?;
    let plot = &frame.plot;
    let mut warnings = Vec::new();
    if frame.is_stopped() {
        let (used, rows) = (plot.rows_used, plot.rows);
        warnings.push(format!("an even sample of {used} of {rows} rows is shown; --max-read allows more"));
    }
    let shape: Vec<usize> = frame.values().map_or(Vec::new(), |values| values.shape.clone());
    Ending {
        warnings: &warnings,
        summary: vec![format!("{}: {} ({}), {} rows", path.display(), plot.title, plot.note, plot.rows_used)],
        fields: json!({"target": path.display().to_string(), "shape": shape, "plot": plot}),
        ..Ending::default()
    }
    .print(global, out)
}

fn bytes(frame: &Frame, form: Form, size: (usize, usize)) -> Vec<u8> {
    match form {
        Form::Png => draw::picture(frame, size),
        Form::Npy => frame.to_npy(),
        Form::Csv => frame.to_csv().into_bytes(),
        Form::Safetensors => frame.to_safetensors(),
    }
}

/// Writes a file under a temporary name and renames it to `path`.
fn write(path: &Path, bytes: &[u8], overwrite: bool) -> Result<()> {
    Ok(ctds_hdf5::look::write_file(path, bytes, if_exists(overwrite)).map_err(|error| error.context(path.display()))?)
}
