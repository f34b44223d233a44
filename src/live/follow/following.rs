//! A live file that is being filled from a casacore table, step by step.

use super::table::{Activity, Followed};
use crate::call::polling::{Pace, Steps, last_steps};
use crate::error::Result;
use crate::live::Writer;

/// A casacore table and its subtables that are being copied to a live file; from
/// [`Follow::start`](super::Follow::start).
#[derive(Debug)]
pub struct Following {
    writer: Writer,
    tables: Vec<Followed>,
    missing: Vec<String>,
    resumed: bool,
    commits: u64,
    rewritten: u64,
}

/// Summary of copying a casacore table, while another program wrote it, to an HDF5 file that others
/// read (a live file). From [`Follow::run`](super::Follow::run) or [`Following::finish`], when the
/// copying has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowSummary {
    /// Name (`MAIN`, `ANTENNA`, `A/B`) and number of rows of each table in the live HDF5 file.
    pub tables: Vec<(String, u64)>,
    /// Sentences for the user, as from [`Following::notes`], about content of the casacore table
    /// that is not in the live HDF5 file, and rows that were not compared at the end.
    pub notes: Vec<String>,
    /// Number of commits that added rows to the live HDF5 file.
    pub commits: u64,
    /// Number of blocks (4096 rows of a column, or fewer) that were overwritten in the live HDF5
    /// file because cells of the casacore table had changed.
    pub rewritten: u64,
}

impl Following {
    pub(super) fn new(writer: Writer, tables: Vec<Followed>, missing: Vec<String>, resumed: bool) -> Self {
        Following { writer, tables, missing, resumed, commits: 0, rewritten: 0 }
    }

    /// Copies the new rows of the casacore table and its subtables to the live HDF5 file,
    /// overwrites cells there that have changed in the tables, and commits: readers then see the
    /// rows.
    ///
    /// # Errors
    /// Those of reading the tables, and of [`Writer::commit`](crate::live::Writer::commit);
    /// `Unsupported` if rows or columns were removed; `NotFound` if a table was removed or made
    /// again.
    pub fn step(&mut self) -> Result<Activity> {
        let mut all = Activity::default();
        for table in &mut self.tables {
            table.check_same()?;
            let step = table.step(&mut self.writer);
            // rows of another table, or an error because it is another one
            table.check_same()?;
            let one = step?;
            all.rows += one.rows;
            all.rewritten += one.rewritten;
            all.more |= one.more;
            all.waiting |= one.waiting;
        }
        if all.rows > 0 || all.rewritten > 0 {
            self.writer.commit()?;
        }
        self.commits += u64::from(all.rows > 0);
        self.rewritten += all.rewritten;
        Ok(all)
    }

    /// Whether another program has the casacore table or one of its subtables open. After this
    /// call, other programs no longer see the tables as opened by this one, so that two programs
    /// that copy a table do not wait for each other to end.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_in_use(&self) -> Result<bool> {
        // no short circuit: `is_in_use` also withdraws our own in-use mark from each table
        self.tables.iter().try_fold(false, |in_use, table| Ok(table.is_in_use()? || in_use))
    }

    /// Whether rows are appended to a live HDF5 file that existed before, instead of a new one.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Name (`MAIN`, `ANTENNA`, `A/B`) and number of committed rows, which readers see, of each
    /// table in the live HDF5 file.
    pub fn committed_rows(&self) -> Vec<(String, u64)> {
        let rows = |table: &Followed| (table.name.clone(), self.writer.committed_rows(&table.name));
        self.tables.iter().map(rows).collect()
    }

    /// Sentences for the user: warnings about the live HDF5 file, and content of the casacore
    /// tables that it does not store (unsuitable columns, cells that do not fit, later keywords).
    /// [`Finalize::source`](crate::live::Finalize::source) copies that.
    pub fn notes(&self) -> Vec<String> {
        let counted = |table: &Followed| {
            let name = table.name.clone();
            let note = move |(note, count): (&String, &u64)| match count {
                1 => format!("{name}: {note}"),
                count => format!("{name}: {note} ({count} times)"),
            };
            table.notes.iter().map(note).collect::<Vec<_>>()
        };
        let warnings = self.writer.warnings().iter().chain(&self.missing).cloned();
        warnings.chain(self.tables.iter().flat_map(counted)).collect()
    }

    /// Copies the remaining rows of the casacore tables to the live HDF5 file, as far as the tables
    /// can be read now, and closes the file. Stops after about 10 s, even if rows remain.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(mut self) -> Result<FollowSummary> {
        last_steps(&mut self)?;
        let tables = self.committed_rows();
        let mut notes = self.notes();
        for table in self.tables.iter().filter(|table| table.has_suspects()) {
            notes.push(format!("{}: not all old rows were compared that may have been written again", table.name));
        }
        self.writer.close()?;
        Ok(FollowSummary { tables, notes, commits: self.commits, rewritten: self.rewritten })
    }
}

impl Steps for Following {
    type Step = Activity;

    fn step(&mut self) -> Result<Activity> {
        self.step()
    }

    fn pace(step: &Activity) -> Pace {
        let Activity { rows, rewritten, more, waiting } = *step;
        Pace { changed: rows > 0 || rewritten > 0, at_once: rows > 0, more, waiting }
    }

    fn is_in_use(&self) -> Result<bool> {
        self.is_in_use()
    }

    fn notes(&self) -> Vec<String> {
        self.notes()
    }
}
