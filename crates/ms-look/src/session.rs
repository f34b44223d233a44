//! Sessions: a session polls a file or table that may grow, reports its state, and keeps the sums
//! of requested plots up to date. A selection is one of rows, correlations and channels; a live
//! file is an HDF5 file that is read while rows are appended to it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ctds::clock::Clock;
use ctds::error::Result;

use crate::axes::Axes;
use crate::describe::Description;
use crate::fold::{BlockLayout, Fold, Read};
use crate::frame::Frame;
use crate::plots::{self, Progress, antennas};
use crate::request::Request;
use crate::rows::{Rows, Served};
use crate::sample::{Look, Sample, SampleOptions};
use crate::selection::Selection;
use crate::sky::Sky;

/// Most selections whose sums are kept, by default; the least recently used are discarded.
const SELECTIONS: usize = 8;
/// Average bytes of the sums of a selection: all sums share this size times the selections.
const SUMS_BYTES: usize = 12 << 20;
/// Rows read for one plot are added to other sums only if one of this many last requests used them.
const RECENT: u64 = 32;
/// Bytes read for a plot by default; the parameter `more` multiplies the limit by 1 + `more`.
const READ_LIMIT: u64 = 8 << 30;
/// Rows whose scan numbers are read at a time.
const SCAN_ROWS: u64 = 1 << 20;
/// Default time limit for reading rows in one call of [`Session::frame`].
pub(crate) const BUDGET: Duration = Duration::from_millis(250);
/// A write that no committed row follows within this time has overwritten cells.
const COMMITTED_BY: Duration = Duration::from_secs(2);
/// Sums with overwritten cells are discarded after this time without a write, and made again.
const QUIET: Duration = Duration::from_secs(10);

/// Why a file or table is no longer polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Nothing exists any more at the path of the file or table.
    Gone,
    /// Another kind of file or directory, or one that cannot be opened, is now at the path.
    Replaced,
}

impl Ended {
    /// The name of the reason why polling has ended: `gone` or `replaced`.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Gone => "gone",
            Ended::Replaced => "replaced",
        }
    }
}

/// Polls a file or table, to report its state and to plot it: a live file, a native HDF5 file that
/// does not grow, or a table directory. It does not acquire any lock that a writer would wait for.
pub struct Session {
    path: PathBuf,
    identity: (u64, u64),
    rows: Rows,
    known: Description,
    /// `None` before the first plot that needs it, and after the subtables have changed.
    sky: Option<Arc<Sky>>,
    folds: Vec<Fold>,
    /// `None` before the first plot.
    layout: Option<BlockLayout>,
    requests: u64,
    /// Unix time in milliseconds at which the session began, as in `Frame::session`.
    session: u64,
    revision: u64,
    state: WrittenState,
    before: Option<Before>,
    /// Modification time of the file when it was last seen with new rows.
    committed: Option<SystemTime>,
    ended: Option<Ended>,
    budget: Duration,
    limit: u64,
    block_bytes: Option<u64>,
    /// Most selections whose sums are kept.
    selections: usize,
    sample: SampleOptions,
    clock: Clock,
}

/// State at the previous poll, and the values that were read from the newest rows.
struct Before {
    taken: SystemTime,
    rows: u64,
    bytes: f64,
    written: SystemTime,
    is_open: bool,
    sample: Sample,
    options: SampleOptions,
}

/// Times of writes, to detect those without new rows, which have overwritten cells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct WrittenState {
    /// Time at which a write was seen that no new row has followed so far.
    suspect: Option<Instant>,
    /// Newest write that overwrote cells after they were read; `None` if the sums are up to date.
    stale: Option<Instant>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("path", &self.path).field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a file or table for polls and plots: a native HDF5 file, a live file, a table
    /// directory, or a container with a packed table.
    ///
    /// # Errors
    /// Those of opening it; a source without plots is opened, and [`describe`](Self::describe) says
    /// what it lacks.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_served(path, Arc::new(|_| true))
    }

    /// Opens a file or table like [`open`](Self::open), for a server: other tables to which it
    /// refers are opened only if `served` allows their paths.
    ///
    /// # Errors
    /// As [`open`](Self::open); `Unsupported` if the cells of a column are in a table that is not
    /// served.
    pub fn open_served(path: &Path, served: Served) -> Result<Self> {
        Self::new(path, Rows::open(path, served)?)
    }

    /// Opens a live file, to which rows are appended in SWMR mode while others read it; any other
    /// kind of source is an error.
    ///
    /// # Errors
    /// `Unsupported` and `Format` if it is another file.
    pub fn open_live(path: &Path) -> Result<Self> {
        Self::new(path, Rows::open_live(path)?)
    }

    fn new(path: &Path, rows: Rows) -> Result<Self> {
        let known = Description::of(&rows)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Session {
            path: path.to_owned(),
            identity: Rows::identity(path)?,
            rows,
            known,
            sky: None,
            folds: Vec::new(),
            layout: None,
            requests: 0,
            session: since.as_millis() as u64,
            revision: 0,
            state: WrittenState::default(),
            before: None,
            committed: None,
            ended: None,
            budget: BUDGET,
            limit: READ_LIMIT,
            block_bytes: None,
            selections: SELECTIONS,
            sample: SampleOptions::default(),
            clock: Clock::default(),
        })
    }

    /// Sets the time limit for reading rows in one call of [`frame`](Self::frame), by default 250
    /// ms. At least one block of rows is read.
    pub fn set_budget(&mut self, budget: Duration) {
        self.budget = budget;
    }

    /// Sets the limit of the bytes that are read for a plot, by default 8 GiB; the parameter `more`
    /// of a request multiplies the limit by 1 + `more`.
    pub fn set_read_limit(&mut self, bytes: u64) {
        self.limit = bytes.max(1);
    }

    /// Sets the maximum number of selections whose sums are kept: 8 by default, and never fewer. A
    /// block of rows that is read for one plot is also added to the recently used sums of other
    /// plots that need this block next.
    pub fn set_selections(&mut self, count: usize) {
        self.selections = count.max(SELECTIONS);
    }

    /// Sets the approximate bytes of visibilities and flags that are read at a time, by default 4
    /// MiB. Discards the sums of all plots, for which the rows are then read again.
    pub fn set_block_bytes(&mut self, bytes: u64) {
        self.block_bytes = Some(bytes);
        self.layout = None;
        self.folds.clear();
    }

    /// Sets the maximum bytes of newest cells of each column that a poll reads, by default 4 MiB.
    pub fn set_sample_bytes(&mut self, bytes: u64) {
        self.sample.bytes = bytes.max(1);
    }

    /// Sets whether the result of each poll includes a summary of the newest integration: flags by
    /// antenna and the mean amplitude. Rules for [alerts](crate::Alerts) can need it; by default it
    /// is off.
    pub fn set_integration(&mut self, wanted: bool) {
        self.sample.integration = wanted;
    }

    /// Describes what can be selected and plotted, as of the last [`refresh`](Self::refresh):
    /// antennas, fields, spectral windows, columns.
    ///
    /// # Errors
    /// None today; a source that cannot be described has failed to open.
    pub fn describe(&self) -> Result<Description> {
        Ok(self.known.clone())
    }

    /// The lowest scan numbers of the main table, `most` at most, in ascending order.
    ///
    /// # Errors
    /// Those of reading SCAN_NUMBER.
    pub fn scans(&self, most: usize) -> Result<Vec<i64>> {
        let mut found = BTreeSet::new();
        let rows = self.rows.rows();
        for start in (0..rows).step_by(SCAN_ROWS as usize) {
            found.extend(self.rows.integers("SCAN_NUMBER", start..rows.min(start + SCAN_ROWS))?);
            while found.len() > most {
                found.pop_last();
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Why [`refresh`](Self::refresh) has returned `None` (the file was removed or replaced);
    /// `None` if it has not.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Number of changes of the file or table that polls have seen since it was opened.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Polls the file or table, and returns the state of its committed rows. `None` if it was
    /// removed or replaced by something else; [`ended`](Self::ended) says which. Cheap if nothing
    /// has changed since the last poll.
    ///
    /// # Errors
    /// Those of reading.
    pub fn refresh(&mut self) -> Result<Option<Look>> {
        match Rows::identity(&self.path) {
            Ok(identity) if identity == self.identity => {}
            Ok(_) => {
                if self.reopen().is_err() {
                    self.ended = Some(Ended::Replaced);
                    return Ok(None);
                }
            }
            Err(_) => {
                self.ended = Some(Ended::Gone);
                return Ok(None);
            }
        }
        let is_open = self.rows.is_open()?;
        let tables = self.rows.tables()?;
        let change = self.rows.refresh()?;
        let now = self.rows.tables()?;
        let all: u64 = now.iter().map(|(_, rows)| rows).sum();
        let written = self.rows.written()?;
        let subtables_grew = tables.get(1..) != now.get(1..);
        if subtables_grew || self.known.missing.is_some() && change.grew {
            let known = Description::of(&self.rows)?;
            if known.spectral_windows != self.known.spectral_windows {
                self.folds.clear();
            }
            self.known = known;
            self.sky = None;
        } else if change.grew || change.rewritten {
            self.known.update(&self.rows);
        }
        let grew = self.before.as_ref().is_none_or(|before| before.rows != all);
        let was_written = self.before.as_ref().is_some_and(|before| before.written != written);
        let was_closed = self.before.as_ref().is_some_and(|before| before.is_open && !is_open);
        let stale_before = self.state.stale.is_some();
        self.watch_writes(grew, was_written && !was_closed, change.rewritten)?;
        let changed = grew || was_written || was_closed || stale_before != self.state.stale.is_some();
        self.revision += u64::from(changed && self.before.is_some());
        let sample = match self.before.take() {
            Some(before) if !changed && before.options == self.sample => (before.sample.clone(), Some(before)),
            before => (Sample::take(&self.rows, &self.known, self.sample)?, before),
        };
        Ok(Some(self.look(sample, now, is_open, written, grew)?))
    }

    fn look(
        &mut self,
        (sample, before): (Sample, Option<Before>),
        tables: Vec<(String, u64)>,
        is_open: bool,
        written: SystemTime,
        grew: bool,
    ) -> Result<Look> {
        let field = sample
            .field
            .map(|field| usize::try_from(field).map_or_else(|_| field.to_string(), |field| self.known.field(field)));
        let mut look = sample.clone().look(&self.path, self.rows.kind());
        look.rows = tables;
        look.is_open = is_open;
        look.field = field;
        look.revision = self.revision;
        look.stale = self.state.stale.is_some();
        let rows = look.all_rows();
        look.bytes = match &before {
            Some(before) if before.rows == rows => before.bytes,
            _ => self.rows.bytes()?,
        };
        if let Some(before) = &before {
            let seconds = look.taken.duration_since(before.taken).unwrap_or_default().as_secs_f64().max(1e-3);
            look.rows_per_second = Some(rows.saturating_sub(before.rows) as f64 / seconds);
            look.bytes_per_second = Some((look.bytes - before.bytes).max(0.) / seconds);
        }
        // a file that does not grow may be written to nevertheless: old cells
        if grew {
            self.committed = Some(written);
        }
        let age = self.committed.and_then(|committed| look.taken.duration_since(committed).ok());
        look.age = age.unwrap_or_default();
        let options = self.sample;
        self.before = Some(Before { taken: look.taken, rows, bytes: look.bytes, written, is_open, sample, options });
        Ok(look)
    }

    /// Discards all sums `QUIET` after the last write that overwrote cells. `written`: the file was
    /// modified since the previous poll; `grew`, `rewritten`: as in `Change`.
    fn watch_writes(&mut self, grew: bool, written: bool, rewritten: bool) -> Result<()> {
        let now = self.clock.now();
        let is_file = self.rows.kind() == "hdf5";
        let state = &mut self.state;
        match self.rows.kind() {
            // the counters of a table tell for certain
            "table" => state.stale = if rewritten { Some(now) } else { state.stale },
            _ if grew => state.suspect = None,
            _ if written && (state.stale.is_some() || is_file) => state.stale = Some(now),
            _ if written => state.suspect = Some(state.suspect.unwrap_or(now)),
            _ => {}
        }
        if state.suspect.is_some_and(|since| now.duration_since(since) >= COMMITTED_BY) {
            state.stale = state.suspect.take();
        }
        if state.stale.is_some_and(|since| now.duration_since(since) >= QUIET) {
            *state = WrittenState::default();
            self.folds.clear();
            if is_file {
                self.reopen()?;
            }
        }
        Ok(())
    }

    /// Used after another source was put at the path, or cells were overwritten: discards all sums.
    /// `Unsupported` if the source is of another kind now.
    fn reopen(&mut self) -> Result<()> {
        let rows = match self.rows.kind() {
            "live" => Rows::open_live(&self.path)?,
            _ => Rows::open(&self.path, self.rows.served())?,
        };
        if rows.kind() != self.rows.kind() {
            return Err(ctds::Error::unsupported("the source is of another kind now"));
        }
        self.known = Description::of(&rows)?;
        self.sky = None;
        self.identity = Rows::identity(&self.path)?;
        self.rows = rows;
        self.folds.clear();
        self.layout = None;
        self.state = WrittenState::default();
        self.before = None;
        self.revision += 1;
        Ok(())
    }

    /// Makes a plot of the rows that the last [`refresh`](Self::refresh) has found. Rows that the
    /// plot does not contain yet are read first, until the time limit is reached; the frame's
    /// `rows_used` says how many have been read, and the next call continues.
    ///
    /// # Errors
    /// `Usage` if the source lacks what the request names (of scans this is known when all rows are
    /// read); `Unsupported` if it has no plots; those of reading.
    pub fn frame(&mut self, request: &Request) -> Result<Frame> {
        let Some(plot) = &request.kind().plot().rows else {
            let state = (self.session, self.revision, self.rows.rows());
            return Ok(antennas::frame(&self.known, state));
        };
        let selection = Selection::new(request, &self.known)?;
        let selection = Selection { axes: Axes::of(request, &self.rows, &mut self.sky)?, ..selection };
        let sums = (plot.sums)(request);
        let layout = match self.layout.take().filter(|layout| layout.rows > 0) {
            Some(layout) => BlockLayout { rows: self.rows.rows(), ..layout },
            None => BlockLayout::of(&self.rows, &self.known, self.block_bytes),
        };
        self.layout = Some(layout);
        self.requests += 1;
        let found = self.folds.iter().position(|fold| fold.is_for(&selection, sums));
        let index = found.unwrap_or_else(|| {
            self.folds.push(Fold::new(selection, sums, &self.known, &layout));
            self.folds.len() - 1
        });
        self.folds[index].used = self.requests;
        let index = self.evict(index);
        self.folds.iter_mut().for_each(|fold| fold.extend(&layout));
        let deadline = Instant::now() + self.budget;
        let mut stopped = false;
        while let Some(block) = self.folds[index].next().cloned() {
            stopped = self.folds[index].is_at_limit(request, self.limit);
            if stopped {
                break;
            }
            let (requests, recent) = (self.requests, RECENT.max(self.selections as u64));
            let waits = |fold: &Fold| fold.next() == Some(&block) && requests - fold.used <= recent;
            let waiting: Vec<usize> =
                (0..self.folds.len()).filter(|&at| at == index || waits(&self.folds[at])).collect();
            let folds = &self.folds;
            let read = self.rows.at_one_moment(|rows| {
                let waiting: Vec<&Fold> = waiting.iter().map(|&at| &folds[at]).collect();
                Read::new(rows, &block, &waiting)
            })?;
            // a writer is in the middle of a flush: the next call goes on
            let Some(read) = read else { break };
            for (number, &at) in waiting.iter().enumerate() {
                read.fold(number, &mut self.folds[at]);
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        self.folds[index].check_scans()?;
        let progress = Progress {
            session: self.session,
            revision: self.revision,
            rows: self.rows.rows(),
            stale: self.state.stale.is_some(),
            stopped,
        };
        Ok(plots::frame(request, plot, &self.folds[index], &self.known, &progress))
    }

    /// Discards sums, the least recently used first, down to `self.selections` selections and
    /// `SUMS_BYTES` for each. The sums at `kept` always stay; returns their new index.
    fn evict(&mut self, kept: usize) -> usize {
        let used = self.folds[kept].used;
        loop {
            let mut selections: Vec<&Selection> = Vec::new();
            for fold in &self.folds {
                if !selections.contains(&&fold.selection) {
                    selections.push(&fold.selection);
                }
            }
            let bytes: usize = self.folds.iter().map(|fold| fold.sums.bytes()).sum();
            if selections.len() <= self.selections && bytes <= self.selections * SUMS_BYTES {
                break;
            }
            // a selection is as recent as the newest of its sums
            let recent = |selection: &Selection| {
                self.folds.iter().filter(|fold| fold.selection == *selection).map(|fold| fold.used).max()
            };
            let oldest = match selections.len() > self.selections {
                true => {
                    selections.iter().min_by_key(|selection| recent(selection)).map(|selection| (*selection).clone())
                }
                false => None,
            };
            let before = self.folds.len();
            match oldest {
                Some(oldest) => self.folds.retain(|fold| fold.selection != oldest || fold.used == used),
                None => {
                    let oldest = self.folds.iter().map(|fold| fold.used).filter(|&other| other != used).min();
                    self.folds.retain(|fold| Some(fold.used) != oldest);
                }
            }
            if self.folds.len() == before {
                break;
            }
        }
        self.folds.iter().position(|fold| fold.used == used).unwrap_or(0)
    }
}

// the writer is in the process of the readers: one more than the machine's libhdf5 permits
#[cfg(all(test, feature = "static-hdf5"))]
mod tests {
    use ctds::error::{ErrorKind, Fails};
    use ctds::value::{BString, Complex32};
    use ctds_hdf5::ColumnDesc;
    use ctds_hdf5::live::{CommitPolicy, Schema, TableSpec, Writer};

    use super::*;
    use crate::{Kind, Numbers};

    /// Rows of an integration: three baselines and an autocorrelation.
    const PAIRS: [(i32, i32); 4] = [(0, 1), (0, 2), (1, 2), (1, 1)];

    fn begin(path: &Path) -> Writer {
        let main = TableSpec::new("MAIN")
            .column(ColumnDesc::scalar::<f64>("TIME"))
            .column(ColumnDesc::scalar::<i32>("ANTENNA1"))
            .column(ColumnDesc::scalar::<i32>("ANTENNA2"))
            .column(ColumnDesc::array::<f64>("UVW").fixed_shape([3]))
            .column(ColumnDesc::array::<Complex32>("DATA").fixed_shape([2, 3]))
            .column(ColumnDesc::array::<bool>("FLAG").fixed_shape([2, 3]));
        let antenna = TableSpec::new("ANTENNA").column(ColumnDesc::scalar::<BString>("NAME").max_length(8));
        let schema = Schema::new().table(main).table(antenna).commit(CommitPolicy::manual());
        let mut writer = schema.create(path).unwrap();
        let names = ["a", "b", "c"].map(BString::from);
        let mut batch = writer.table("ANTENNA").unwrap().batch(3);
        batch.set("NAME", &names[..]).unwrap();
        batch.append().unwrap();
        writer.commit().unwrap();
        writer
    }

    /// The amplitude of element `i` of row `r` is `r + i`, a small integer.
    fn append(writer: &mut Writer, integrations: u64) {
        let first = writer.table("MAIN").unwrap().rows();
        let count = integrations * PAIRS.len() as u64;
        let rows: Vec<u64> = (first..first + count).collect();
        let of_rows = |each: &dyn Fn(u64) -> f64| rows.iter().map(|&row| each(row)).collect::<Vec<f64>>();
        let pairs = |first: bool| -> Vec<i32> {
            let pair = |row: &u64| PAIRS[(row % 4) as usize];
            rows.iter().map(pair).map(|pair| if first { pair.0 } else { pair.1 }).collect()
        };
        let uvw: Vec<f64> = rows.iter().flat_map(|&row| [row as f64, 2. * row as f64, 0.]).collect();
        let data: Vec<Complex32> =
            rows.iter().flat_map(|row| (0..6).map(move |i| Complex32::new((row + i) as f32, 0.))).collect();
        let flags: Vec<bool> = rows.iter().flat_map(|row| (0..6).map(move |i| (row + i) % 5 == 0)).collect();
        let (times, first, second) = (of_rows(&|row| (row / 4) as f64), pairs(true), pairs(false));
        let mut batch = writer.table("MAIN").unwrap().batch(count);
        batch.set("TIME", &times).unwrap().set("ANTENNA1", &first).unwrap().set("ANTENNA2", &second).unwrap();
        batch.set("UVW", &uvw).unwrap().set("DATA", &data).unwrap().set("FLAG", &flags[..]).unwrap();
        batch.append().unwrap();
        writer.commit().unwrap();
    }

    fn request(kind: Kind) -> Request {
        Request::parse(kind.name(), &[]).unwrap()
    }

    /// Elements of all arrays by their bits, because NaN differs from itself.
    fn bits(frame: &Frame) -> Vec<Vec<u64>> {
        let bits = |numbers: &Numbers| match numbers {
            Numbers::F32(numbers) => numbers.iter().map(|number| u64::from(number.to_bits())).collect(),
            Numbers::F64(numbers) => numbers.iter().map(|number| number.to_bits()).collect(),
            Numbers::U32(numbers) => numbers.iter().map(|&number| number.into()).collect(),
            Numbers::U8(numbers) => numbers.iter().map(|&number| number.into()).collect(),
        };
        frame.arrays.iter().map(|array| bits(&array.numbers)).collect()
    }

    #[test]
    fn a_session_can_go_to_another_thread() {
        fn check<T: Send>() {}
        check::<Session>();
    }

    #[test]
    fn sums_that_grow_are_those_of_all_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let mut writer = begin(&path);
        let mut session = Session::open(&path).unwrap();
        assert_eq!(session.describe().unwrap().antennas.len(), 3);
        // the antennas are known before the first row
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Antennas) {
            let empty = session.frame(&request(kind)).unwrap();
            assert!(empty.is_complete() && empty.plot.note.contains("the table has no rows"), "{kind:?}");
        }
        session.set_block_bytes(700);
        let mut etags = std::collections::BTreeSet::new();
        for integrations in [1, 1, 7, 300, 2, 1500, 1] {
            append(&mut writer, integrations);
            let look = session.refresh().unwrap().unwrap();
            let rows = writer.table("MAIN").unwrap().committed_rows();
            assert_eq!(look.rows[0], ("MAIN".to_owned(), rows));
            for kind in Kind::ALL {
                session.set_budget(Duration::from_secs(60));
                let frame = session.frame(&request(kind)).unwrap();
                assert!(frame.is_complete() && !frame.plot.stale);
                assert_eq!((frame.plot.rows, frame.plot.rows_used), (rows, rows), "{kind:?}");
                let mut fresh = Session::open(&path).unwrap();
                fresh.set_budget(Duration::from_secs(60));
                let other = fresh.frame(&request(kind)).unwrap();
                // lines that were merged may have other ends, because the order of the blocks is
                // another
                let merged = rows > 4000 && kind == Kind::Waterfall;
                if !merged {
                    assert_eq!(bits(&frame), bits(&other), "{kind:?} after {rows} rows");
                }
                assert!(etags.insert(format!("{kind:?} {}", frame.revision())), "a frame that differs says so");
                assert_eq!(frame.revision(), session.frame(&request(kind)).unwrap().revision());
            }
        }
        writer.close().unwrap();
        let look = session.refresh().unwrap().unwrap();
        assert!(!look.stale && !look.is_open);
        std::fs::remove_file(&path).unwrap();
        assert!(session.refresh().unwrap().is_none());
        assert_eq!(session.ended(), Some(Ended::Gone));
    }

    #[test]
    fn a_budget_and_a_limit_end_a_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let mut writer = begin(&path);
        append(&mut writer, 100);
        let mut session = Session::open(&path).unwrap();
        session.set_block_bytes(1200);
        session.set_budget(Duration::ZERO);
        let mut used = Vec::new();
        loop {
            let frame = session.frame(&request(Kind::AmpTime)).unwrap();
            used.push(frame.plot.rows_used);
            if frame.is_complete() {
                break;
            }
        }
        assert!(
            used.len() > 20 && used.windows(2).all(|pair| pair[0] < pair[1]) && used[used.len() - 1] == 400,
            "{used:?}"
        );
        let mut session = Session::open(&path).unwrap();
        session.set_budget(Duration::from_secs(60));
        session.set_block_bytes(1200);
        session.set_read_limit(4000);
        let frame = session.frame(&request(Kind::AmpTime)).unwrap();
        assert!(frame.is_stopped() && !frame.is_complete() && frame.plot.rows_used > 0);
        let more = Request::parse("amp_time", &[("more".into(), "3".into())]).unwrap();
        let further = session.frame(&more).unwrap();
        assert!(further.is_stopped() && further.plot.rows_used > 2 * frame.plot.rows_used);
        let all = Request::parse("amp_time", &[("more".into(), "1000".into())]).unwrap();
        assert!(session.frame(&all).unwrap().is_complete());
    }

    #[test]
    fn the_selections_used_last_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        append(&mut begin(&path), 3);
        let mut session = Session::open(&path).unwrap();
        for number in 0..20 {
            let query = [("chan".to_owned(), format!("0..{}", number % 11 + 1))];
            let request = Request::parse("waterfall", &query).unwrap();
            assert!(session.frame(&request).unwrap().is_complete());
            assert!(session.folds.len() <= SELECTIONS);
        }
        let kept: Vec<_> = session.folds.iter().map(|fold| fold.used).collect();
        assert_eq!(kept, (13..=20).collect::<Vec<u64>>());
    }

    #[test]
    fn overwritten_cells_are_folded_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let mut writer = begin(&path);
        append(&mut writer, 4);
        let mut session = Session::open(&path).unwrap();
        session.clock = Clock::standing();
        let flagged = |session: &mut Session| {
            let frame = session.frame(&request(Kind::FlagTime)).unwrap();
            (frame.values().unwrap().numbers.get(0).unwrap(), frame.plot.stale)
        };
        session.refresh().unwrap();
        let before = flagged(&mut session);
        assert!(before.0 < 50. && !before.1);
        writer.table("MAIN").unwrap().rewrite("FLAG", 0, 4, &vec![true; 24][..]).unwrap();
        writer.commit().unwrap();
        let touched = SystemTime::now() + Duration::from_secs(5);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(touched).unwrap();
        assert!(!session.refresh().unwrap().unwrap().stale, "these may be rows that are not yet committed");
        session.clock.advance(COMMITTED_BY);
        let look = session.refresh().unwrap().unwrap();
        assert!(look.stale);
        assert_eq!(flagged(&mut session), (before.0, true));
        session.clock.advance(QUIET);
        let again = session.refresh().unwrap().unwrap();
        assert!(!again.stale && again.revision > look.revision);
        assert_eq!(flagged(&mut session), (100., false));
    }

    #[test]
    fn unsupported_requests_and_sources_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let mut writer = begin(&path);
        append(&mut writer, 1);
        let mut session = Session::open(&path).unwrap();
        let mut frame = |corr: &str| {
            let parameters = [("corr".to_owned(), corr.to_owned())];
            session.frame(&Request::parse("waterfall", &parameters).unwrap())
        };
        frame("70").fails(ErrorKind::Usage, "corr: 70, where a cell has fewer correlations");
        frame("1,0,1").fails(ErrorKind::Usage, "corr names 1 twice");
        writer.close().unwrap();

        let table = folder.path().join("a.ms");
        let new = ctds::NewTable::new().column(ctds::ColumnDesc::scalar::<f64>("TIME"));
        new.create(&table).unwrap().close().unwrap();
        let mut session = Session::open(&table).unwrap();
        std::fs::remove_dir_all(&table).unwrap();
        std::fs::rename(&path, &table).unwrap();
        session.reopen().fails(ErrorKind::Unsupported, "the source is of another kind now");
    }
}
