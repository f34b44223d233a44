//! Appends rows to a live file at full speed, as a correlator would; every cell is made from the
//! number of its row.
//!
//! `live_writer FILE [NAME=NUMBER ...]`; see [`Settings`] for the names. Prints `rows seconds` at
//! the end, and with `report=1` also `committed_rows microseconds-of-the-monotonic-clock` after
//! each commit.

use std::time::{Duration, Instant};

use ctds_hdf5::ColumnDesc;
use ctds_hdf5::IfExists;
use ctds_hdf5::live::{Block, ColumnSpec, CommitPolicy, Durability, Schema, TableSpec, Writer};
use ctds_hdf5::value::{BString, Complex32, Shape, Values};

type Failure = Box<dyn std::error::Error>;

struct Settings {
    /// Rows of an integration, appended at a time.
    baselines: u64,
    channels: u64,
    correlations: u64,
    integrations: u64,
    /// Ends after so many seconds, if that is earlier.
    seconds: f64,
    /// Seconds between commits; 0: a commit for each integration.
    every: f64,
    /// Seconds between integrations; 0: as fast as can be.
    pace: f64,
    /// Waits for the disk.
    sync: bool,
    /// Appends to a file that is there.
    reopen: bool,
    /// Also writes strings and cells of several shapes.
    all: bool,
    /// Also writes ANTENNA2, without which nothing is plotted.
    plots: bool,
    /// Further columns of one number a row, to count what many datasets cost.
    more: u64,
    report: bool,
    /// Makes the cells once and not from the row, so that only writing is timed.
    same: bool,
    /// Returns without closing the file, as if killed, after the last commit.
    abandon: bool,
}

impl Settings {
    fn new(words: &[String]) -> Result<Self, Failure> {
        let number = |name: &str, default: f64| {
            let found = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.map_or(Ok(default), str::parse)
        };
        Ok(Settings {
            baselines: number("baselines", 378.)? as u64,
            channels: number("channels", 64.)? as u64,
            correlations: number("correlations", 4.)? as u64,
            integrations: number("integrations", 1e18)? as u64,
            seconds: number("seconds", 10.)?,
            every: number("every", 1.)?,
            pace: number("pace", 0.)?,
            sync: number("sync", 0.)? > 0.,
            reopen: number("reopen", 0.)? > 0.,
            all: number("all", 0.)? > 0.,
            plots: number("plots", 0.)? > 0.,
            more: number("more", 0.)? as u64,
            report: number("report", 0.)? > 0.,
            same: number("same", 0.)? > 0.,
            abandon: number("abandon", 0.)? > 0.,
        })
    }

    fn open(&self, path: &str) -> Result<Writer, Failure> {
        let durability = if self.sync { Durability::Disk } else { Durability::PageCache };
        let policy = CommitPolicy::manual().durability(durability);
        let policy = match self.every > 0. {
            true => policy.every(Duration::from_secs_f64(self.every)),
            false => policy.every_rows(1),
        };
        if self.reopen {
            return Ok(Writer::reopen(path, policy)?);
        }
        let cell = [self.correlations, self.channels];
        let mut main = TableSpec::new("MAIN")
            .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
            .column(ColumnDesc::scalar::<i32>("ANTENNA1"))
            .column(ColumnDesc::array::<f64>("UVW").fixed_shape([3]).unit("m"))
            .column(ColumnDesc::array::<Complex32>("DATA").fixed_shape(cell))
            .column(ColumnDesc::array::<bool>("FLAG").fixed_shape(cell))
            .coordinate("corr", Values::Int((9..9 + self.correlations as i32).collect()))
            .coordinate("chan", Values::Double((0..self.channels).map(|i| 1e9 + 1e6 * i as f64).collect()));
        main.info.table_type = "Measurement Set".into();
        if self.all {
            let shapes = [Shape::from([2, 3]), Shape::from([5])];
            main = main
                .column(ColumnDesc::scalar::<BString>("NAME").max_length(16))
                .column(ColumnSpec::from(ColumnDesc::array::<f32>("VARIABLE")).shapes(shapes));
        }
        if self.plots {
            main = main.column(ColumnDesc::scalar::<i32>("ANTENNA2"));
        }
        for number in 0..self.more {
            main = main.column(ColumnDesc::scalar::<i64>(format!("MORE{number}")));
        }
        let antenna = TableSpec::new("ANTENNA").column(ColumnDesc::scalar::<BString>("NAME").max_length(8));
        let schema = Schema::new().table(main).table(antenna).if_exists(IfExists::Replace);
        let mut writer = schema.commit(policy).create(path)?;
        let names = [BString::from("A0"), BString::from("A1")];
        let mut antennas = writer.table("ANTENNA")?.batch(2);
        antennas.set("NAME", &names[..])?;
        antennas.append()?;
        writer.commit()?;
        Ok(writer)
    }
}

/// The cells of some rows.
#[derive(Default)]
struct Cells {
    time: Vec<f64>,
    antenna: Vec<i32>,
    uvw: Vec<f64>,
    data: Vec<Complex32>,
    flag: Vec<bool>,
    name: Vec<BString>,
    variable: Vec<f32>,
    shapes: Vec<Option<usize>>,
    more: Vec<i64>,
}

impl Cells {
    fn new(rows: std::ops::Range<u64>, settings: &Settings) -> Self {
        let mut cells = Cells::default();
        let elements = settings.channels * settings.correlations;
        for row in rows {
            cells.time.push(row as f64 / 4.);
            cells.antenna.push((row % 97) as i32);
            cells.uvw.extend([row as f64, row as f64 + 0.5, -(row as f64)]);
            cells.data.extend((0..elements).map(|i| Complex32::new((row % 65536) as f32, i as f32)));
            cells.flag.extend((0..elements).map(|i| (row + i) % 3 == 0));
            cells.more.push(row as i64);
            if settings.all {
                cells.name.push(format!("row {row}").into());
                let (shape, count) = [(None, 0), (Some(0), 6), (Some(1), 5)][(row % 3) as usize];
                cells.shapes.push(shape);
                cells.variable.extend((0..count).map(|i| (row % 65536) as f32 + i as f32 / 8.));
            }
        }
        cells
    }
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, words @ ..] = words.as_slice() else { return Err("usage: live_writer FILE [NAME=NUMBER ...]".into()) };
    let settings = Settings::new(words)?;
    let mut writer = settings.open(path)?;
    let more: Vec<String> = (0..settings.more).map(|number| format!("MORE{number}")).collect();
    let first = writer.table("MAIN")?.rows();
    let mut cells = Cells::new(0..settings.baselines, &settings);
    let start = Instant::now();
    let mut reported = first;
    for integration in 0..settings.integrations {
        if start.elapsed().as_secs_f64() >= settings.seconds {
            break;
        }
        if settings.pace > 0. {
            let due = Duration::from_secs_f64(settings.pace * integration as f64);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        let row = writer.table("MAIN")?.rows();
        if !settings.same {
            cells = Cells::new(row..row + settings.baselines, &settings);
        }
        let mut rows = writer.table("MAIN")?.batch(settings.baselines);
        rows.set("TIME", &cells.time)?.set("ANTENNA1", &cells.antenna)?.set("UVW", &cells.uvw)?;
        rows.set("DATA", &cells.data)?.set("FLAG", &cells.flag)?;
        if settings.all {
            rows.set("NAME", &cells.name)?;
            rows.set("VARIABLE", Block::from(&cells.variable).with_shapes(&cells.shapes))?;
        }
        let others: Vec<i32> = cells.antenna.iter().map(|antenna| (antenna + 1) % 97).collect();
        if settings.plots {
            rows.set("ANTENNA2", &others)?;
        }
        for name in &more {
            rows.set(name, &cells.more)?;
        }
        rows.append()?;
        let committed = writer.table("MAIN")?.committed_rows();
        if settings.report && committed != reported {
            reported = committed;
            println!("{committed} {}", monotonic_micros());
        }
    }
    writer.commit()?;
    let rows = writer.table("MAIN")?.rows() - first;
    let seconds = start.elapsed().as_secs_f64();
    if settings.abandon {
        println!("{rows} {seconds}");
        std::process::abort();
    }
    writer.close()?;
    println!("{rows} {} {seconds}", start.elapsed().as_secs_f64());
    Ok(())
}

/// CLOCK_MONOTONIC, which other processes share.
fn monotonic_micros() -> i64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000)
}
