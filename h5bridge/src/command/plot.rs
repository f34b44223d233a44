//! `h5bridge plot` plots a MeasurementSet or image, as a picture or as the numbers of the plot.

mod choose;
mod draw;
mod drawings;
mod marks;
mod palette;
mod panel;
mod pixels;
mod png;
mod read;
mod scene;
mod svg;
mod terminal;
mod unicode;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use self::choose::Choice;
use self::drawings::{Drawing, read_panels};
use self::panel::Panel;
use self::terminal::Show;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use ctds_hdf5::{Error, ErrorKind, documents};
use ms_look::{Description, Frame, Image, Kind, Plane, Plot, Request, Session};

use crate::args::{Global, if_exists, size};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report::Ending;

/// Command-line arguments of `h5bridge plot`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge plot my.ms
  h5bridge plot my.ms --x time --y phase --by baseline --antenna m000 --out phase.svg
  h5bridge plot my.ms waterfall --out rfi.png --statistic max --corr XX
  h5bridge plot my.ms --x elevation --y amp --by antenna --out elevation.png
  h5bridge plot my.ms --x time --y phase --panels antenna --out phases.png
  h5bridge plot my.cal --show
  h5bridge plot my.image --plane 0,12 --out channel12.png
  h5bridge plot live.h5 spectrum --spw 1 --out spectrum.csv
  h5bridge plot my.h5 baselines --quantity flagged --out flagged.npy")]
pub(crate) struct Args {
    /// A table directory, a container with a table, an HDF5 file made by to-hdf5, or a live file
    source: PathBuf,
    /// Kind of plot [default: waterfall; if SOURCE is a calibration table, amplitude and phase by
    /// antenna; if SOURCE is an image, one plane of it]
    #[arg(value_parser = kinds())]
    kind: Option<String>,
    /// The x axis, which selects the kind of plot instead of KIND: time, channel, uvdist, u,
    /// antenna, elevation, hour_angle, or a column of numbers
    #[arg(long, value_name = "AXIS")]
    x: Option<String>,
    /// The y axis, which selects the kind of plot instead of KIND: amplitude, phase, real, imag,
    /// flagged, time, v, antenna, elevation, hour_angle, uvdist, or a column of numbers
    #[arg(long, value_name = "AXIS")]
    y: Option<String>,
    /// Draw one line for each correlation, antenna, baseline, field, scan or spectral window, at
    /// most 64
    #[arg(long, value_parser = PossibleValuesParser::new(ms_look::BY))]
    by: Option<String>,
    /// Draw a panel for each correlation, antenna, baseline, field, scan or spectral window, 64 at
    /// most, of the size --size
    #[arg(long, value_name = "BY", value_parser = PossibleValuesParser::new(ms_look::BY))]
    panels: Option<String>,
    /// The file to write; its ending selects the format: .png, .svg, .npy, .csv or .safetensors
    /// [default: KIND.png, unless the plot is shown in the terminal or printed as JSON; --quiet
    /// needs a name]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Show the picture in the terminal; the default without --out
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto", conflicts_with = "json")]
    show: Option<Show>,
    /// Replace the file of --out if it exists
    #[arg(long)]
    overwrite: bool,
    /// Column of visibilities [default: DATA, or the first that exists]
    #[arg(long)]
    column: Option<String>,
    /// DATA_DESC_ID, or the name of a spectral window [default: the spectral window of the newest
    /// row]
    #[arg(long, value_name = "ID")]
    spw: Option<String>,
    /// Only these fields, by name or number from 0: 3C286,2
    #[arg(long, value_name = "FIELD,...")]
    field: Option<String>,
    /// Only these scans, by SCAN_NUMBER: 3,4,7
    #[arg(long, value_name = "SCAN,...")]
    scan: Option<String>,
    /// Names or numbers of correlations [default: the parallel hands; plots against uvdist show the
    /// first of them, plots of flags and of u and v show all correlations]
    #[arg(long, value_name = "CORR,...")]
    corr: Option<String>,
    /// "cross", "auto", "all", or pairs of antennas: m000-m001, or CS-1&CS-2 for names that contain
    /// "-" [default: cross]
    #[arg(long, value_name = "PAIR,...")]
    baseline: Option<String>,
    /// Only baselines with one of these antennas, by name or number from 0: m000,5
    #[arg(long, value_name = "ANTENNA,...")]
    antenna: Option<String>,
    /// Only times in the range A..B, from A up to but without B: UTC such as 2026-11-20T17:30:00,
    /// or MJD in seconds
    #[arg(long, value_name = "A..B")]
    time: Option<String>,
    /// Only channels in the range A..B, from A up to but without B, counted from 0
    #[arg(long, value_name = "A..B")]
    chan: Option<String>,
    /// The quantity to plot: "amp", "phase", "real", "imag" or "flagged"; each kind of plot accepts
    /// some of them
    #[arg(long)]
    quantity: Option<String>,
    /// How amplitudes in one bin of a plot are combined: "mean", or "max" to show short
    /// interference that a mean hides
    #[arg(long)]
    statistic: Option<String>,
    /// How visibilities are averaged: "scalar" (mean of their amplitudes) or "vector" (amplitude of
    /// the mean of the complex numbers)
    #[arg(long)]
    average: Option<String>,
    /// Whether to "omit" or "include" flagged cells
    #[arg(long)]
    flagged: Option<String>,
    /// Unit of the axes of a plot of u and v: "m", or "klambda" (kilowavelengths at the middle of
    /// the band)
    #[arg(long)]
    unit: Option<String>,
    /// Plane of an image to plot, along its first two axes (fastest first, as in casacore): an
    /// index, from 0, on each further axis
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    plane: Vec<u64>,
    /// Stop after reading this many bytes of rows; the plot of a larger source shows an even sample
    /// of its rows
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    max_read: u64,
    /// Print the fields, spectral windows, antennas and columns that can be selected, as JSON, and
    /// draw nothing
    #[arg(long)]
    describe: bool,
    /// Size of the picture in pixels, width x height [default: 960x640, or 480x320 for each of
    /// --panels]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = pixels)]
    size: Option<(usize, usize)>,
    /// Bytes of rows that are read at a time; for tests
    #[arg(long, value_name = "SIZE", value_parser = size, hide = true)]
    block_bytes: Option<u64>,
}

/// Longest side of a picture.
const MAX_PIXELS: usize = 8192;

/// An image has no other plots.
const IMAGE: &str = "image";

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name()).chain([IMAGE]))
}

/// `960x640`.
fn pixels(text: &str) -> Result<(usize, usize), String> {
    let read = || -> Option<(usize, usize)> {
        let (width, height) = text.split_once('x')?;
        Some((width.parse().ok()?, height.parse().ok()?))
    };
    let fits = |&(width, height): &(usize, usize)| (320..=8192).contains(&width) && (240..=8192).contains(&height);
    read().filter(fits).ok_or_else(|| "expected WIDTHxHEIGHT, from 320x240 to 8192x8192".to_owned())
}

/// Format in which a frame, the data of one plot, is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Png,
    Svg,
    Npy,
    Csv,
    Safetensors,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        Ok(match path.extension().and_then(|ending| ending.to_str()) {
            Some("png") => Form::Png,
            Some("svg") => Form::Svg,
            Some("npy") => Form::Npy,
            Some("csv") => Form::Csv,
            Some("safetensors") => Form::Safetensors,
            _ => {
                let message = "the form of --out is not known: its name ends in .png, .svg, .npy, .csv or .safetensors";
                return Err(Error::new(ErrorKind::Usage, message).context(path.display()).into());
            }
        })
    }
}

impl Args {
    fn parameters(&self) -> Vec<(String, String)> {
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
        parameters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
    }

    /// Whether SOURCE decides the kind: a MeasurementSet, a calibration table or an image.
    fn leaves_kind(&self) -> bool {
        self.kind.is_none() && self.x.is_none() && self.y.is_none()
    }

    /// Without a kind, the plots that suit SOURCE, which `known` describes.
    fn drawings(&self, known: &Description) -> Result<Vec<Drawing>> {
        let parameters = self.parameters();
        if self.leaves_kind() && known.is_calibration && known.missing.is_none() {
            // a table without rows is shown as such
            let usual = || Some("antenna".to_owned()).filter(|by| self.panels.as_ref() != Some(by));
            let by = self.by.clone().or_else(usual).filter(|_| known.rows > 0);
            let is_complex = self.column.as_ref().or(known.columns.first()).is_some_and(|column| column != "FPARAM");
            let several = known.time_range.is_some_and(|[first, last]| last > first);
            let drawing = |kind: Kind, quantity: Option<&str>| {
                let mut parameters = parameters.clone();
                if let Some(quantity) = quantity.filter(|_| self.quantity.is_none()) {
                    parameters.push(("quantity".to_owned(), quantity.to_owned()));
                }
                Drawing { kind, parameters, by: by.clone(), group: String::new() }
            };
            return Ok(match (several, is_complex) {
                (true, true) => vec![drawing(Kind::AmpTime, None), drawing(Kind::PhaseTime, None)],
                (false, true) => vec![drawing(Kind::Spectrum, None), drawing(Kind::Spectrum, Some("phase"))],
                (true, false) => vec![drawing(Kind::AmpTime, Some("real"))],
                (false, false) => vec![drawing(Kind::Spectrum, Some("real"))],
            });
        }
        let by = self.by.clone().filter(|by| by != "correlation");
        let plain = |kind: Kind| Choice { kind, quantity: None, axes: Vec::new() };
        let (x, y) = (self.x.as_deref(), self.y.as_deref());
        let choice = match (&self.kind, &by) {
            (Some(name), _) if name == Kind::Xy.name() => choose::named(x, y),
            (Some(name), _) if x.is_some() || y.is_some() => {
                let message = format!("--x and --y select the kind of plot, or the axes of xy: KIND is {name}");
                return Err(Error::new(ErrorKind::Usage, message).into());
            }
            (Some(name), _) => plain(Request::parse(name, &[])?.kind()),
            (None, Some(_)) if self.leaves_kind() => plain(Kind::AmpTime),
            (None, _) if self.leaves_kind() => plain(Kind::Waterfall),
            (None, _) => choose::choice_of(x, y)?,
        };
        let parameters = parameters.into_iter().chain(choice.axes).collect();
        let mut drawing = Drawing { kind: choice.kind, parameters, by, group: String::new() };
        match (choice.quantity, &self.quantity) {
            (Some(quantity), Some(given)) if quantity != given => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("--quantity is {given}, and --y is {quantity}; one of them is enough"),
                )
                .into());
            }
            (Some(quantity), None) => drawing.parameters.push(("quantity".to_owned(), quantity.to_owned())),
            _ => {}
        }
        Ok(vec![drawing])
    }

    /// `None` if the picture is not shown in the terminal.
    fn shown(&self, global: &Global) -> Option<Show> {
        let is_terminal = std::io::stdout().is_terminal() && global.caller.is_none();
        let show = match (self.show, &self.out) {
            (None, None) if is_terminal && !global.json => Show::Auto,
            (show, _) => show?,
        };
        Some(if show == Show::Auto { Show::of(|name| std::env::var(name).ok()) } else { show })
    }
}

fn panels(args: &Args, global: &Global, stop: &Stop) -> Result<Vec<Panel>> {
    let image = |image: Image| -> Result<Vec<Panel>> {
        Ok(vec![Panel::new(image.frame(&Plane(args.plane.clone()))?, &args.source)])
    };
    if args.kind.as_deref() == Some(IMAGE) {
        let found = Image::open(&args.source)?;
        let missing =
            || Error::new(ErrorKind::Unsupported, "the source is not an image: it has no column map with coordinates");
        return image(found.ok_or_else(|| missing().context(args.source.display()))?);
    }
    let mut session = Session::open(&args.source)?;
    session.set_read_limit(args.max_read);
    if let Some(bytes) = args.block_bytes {
        session.set_block_bytes(bytes);
    }
    let known = session.describe()?;
    if args.leaves_kind()
        && known.missing.is_some()
        && let Ok(Some(found)) = Image::open(&args.source)
    {
        return image(found);
    }
    if !args.plane.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "--plane is for images; the source has none")
            .context(args.source.display())
            .into());
    }
    let reading = (args.source.as_path(), global, stop);
    let drawings = args.drawings(&known)?;
    let Some(by) = &args.panels else { return read_panels(drawings, &mut session, reading) };
    let each = drawings.into_iter().map(|drawing| drawing.each(by, &session)).collect::<Result<Vec<_>>>()?;
    let panels = read_panels(each.concat(), &mut session, reading)?;
    if panels.is_empty() {
        let message = format!("--panels {by}: the source has none of them, or no row of one is selected");
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    Ok(panels)
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new(global.caller.as_ref())?;
    if args.describe {
        let description = Session::open(&args.source)?.describe()?;
        writeln!(out, "{}", serde_json::to_string_pretty(&description)?)?;
        return Ok(Status::Done);
    }
    let shown = args.shown(global);
    // without --out a file is written only if the picture is shown nowhere else
    let writes = args.out.is_some() || shown.is_none() && !global.json;
    if writes && args.out.is_none() && global.quiet {
        let message = "--quiet names no file that is written: name it with --out FILE, or show the picture with --show";
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    let form = args.out.as_deref().map_or(Ok(Form::Png), Form::of)?;
    let panels = panels(&args, global, &stop)?;
    let Some(first) = panels.first() else { return Ok(Status::Done) };
    let plot = &first.frame.plot;
    let sheet = Sheet::of(&args, panels.len())?;
    let target = writes.then(|| args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.png", plot.kind))));
    if let Some(path) = &target {
        write(path, &bytes(&panels, form, &sheet), args.overwrite)?;
    }
    if let Some(show) = shown {
        out.write_all(picture(&panels, show, &sheet, global.colours(true)).as_bytes())?;
    }
    let mut warnings = Vec::new();
    if let Some(path) = target.as_ref().filter(|_| panels.len() > 1 && !matches!(form, Form::Png | Form::Svg)) {
        warnings.push(format!(
            "{} has one plot, {}, of the {} that .png and .svg show; choose another with --y or --antenna",
            path.display(),
            plot.title,
            panels.len()
        ));
    }
    if first.frame.is_stopped() {
        let (used, rows) = (plot.rows_used, plot.rows);
        warnings.push(format!("an even sample of {used} of {rows} rows is shown; --max-read allows more"));
    }
    let summary = target
        .as_ref()
        .map(|path| format!("{}: {} ({}), {} rows", path.display(), plot.title, plot.note, plot.rows_used));
    Ending { warnings: &warnings, summary: summary.into_iter().collect(), ..Ending::default() }.print(
        global,
        out,
        || {
            let target = target.as_ref().map(|path| path.display().to_string());
            let more = panels[1..].iter().map(|panel| drawing(panel, global)).collect();
            documents::Plot::new(drawing(first, global), target, more)
        },
    )
}

fn drawing<'a>(panel: &'a Panel, global: &Global) -> documents::Drawing<&'a Plot> {
    let frame = &panel.frame;
    documents::Drawing {
        shape: frame.values().map_or(Vec::new(), |values| values.shape.iter().map(|&extent| extent as u64).collect()),
        plot: &frame.plot,
        // the Python package reads the arrays from the file
        arrays: global.caller.is_none().then(|| frame.arrays_json()),
    }
}

/// How panels are put on a picture.
struct Sheet {
    columns: usize,
    /// Width and height of the picture.
    size: (usize, usize),
}

impl Sheet {
    fn of(args: &Args, panels: usize) -> Result<Self> {
        if args.panels.is_none() {
            return Ok(Sheet { columns: 1, size: args.size.unwrap_or((960, 640)) });
        }
        let (width, height) = args.size.unwrap_or((480, 320));
        let columns = (1..).find(|columns| columns * columns >= panels).unwrap_or(1);
        let size = (columns * width, panels.div_ceil(columns) * height);
        if size.0.max(size.1) > MAX_PIXELS {
            let message = format!(
                "{panels} panels of {width}x{height} pixels make a picture of {}x{}, and {MAX_PIXELS} on a side can be; \
                 choose a smaller --size, or fewer panels",
                size.0, size.1
            );
            return Err(Error::new(ErrorKind::Usage, message).into());
        }
        Ok(Sheet { columns, size })
    }

    fn scene(&self, panels: &[Panel]) -> scene::Scene {
        draw::scene(panels, self.columns, self.size)
    }
}

fn bytes(panels: &[Panel], form: Form, sheet: &Sheet) -> Vec<u8> {
    let frame = |write: &dyn Fn(&Frame) -> Vec<u8>| panels.first().map_or(Vec::new(), |panel| write(&panel.frame));
    match form {
        Form::Png => png_of(&sheet.scene(panels)),
        Form::Svg => svg::encode(&sheet.scene(panels)).into_bytes(),
        Form::Npy => frame(&Frame::to_npy),
        Form::Csv => frame(&|frame| frame.to_csv().into_bytes()),
        Form::Safetensors => frame(&Frame::to_safetensors),
    }
}

fn png_of(scene: &scene::Scene) -> Vec<u8> {
    let pixels = pixels::draw(scene);
    png::encode(pixels.width, &pixels.bytes)
}

/// A picture of Unicode characters has the size of the terminal.
fn picture(panels: &[Panel], show: Show, sheet: &Sheet, coloured: bool) -> String {
    match show {
        Show::Kitty => terminal::kitty(&png_of(&sheet.scene(panels))),
        Show::Iterm2 => terminal::iterm2(&png_of(&sheet.scene(panels))),
        Show::Sixel => terminal::sixel(&pixels::draw(&sheet.scene(panels))),
        Show::Unicode | Show::Auto => {
            let terminal = console::Term::stdout();
            let (lines, columns) = terminal.size_checked().unwrap_or((32, 100));
            unicode::text(panels, (columns.into(), lines.into()), coloured)
        }
    }
}

/// Writes a temporary file and renames it; `path` may only exist if `overwrite` is true.
fn write(path: &Path, bytes: &[u8], overwrite: bool) -> Result<()> {
    Ok(ctds_hdf5::program::write_file(path, bytes, if_exists(overwrite))
        .map_err(|error| error.context(path.display()))?)
}
