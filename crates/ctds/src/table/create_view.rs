//! Declaration of a new view: a reference table or a concatenation, which has no cells of its own.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use super::create::NewTable;
use super::{ColumnInfo, Table, TableKind};
use crate::container::{ContainerMut, Directory};
use crate::error::{Context, Error, Result, ResultExt};
use crate::schema::{ConcatTable, NewRefTable, TableInfo, stored_name};
use crate::suggest::instead;

/// Row numbers that are written at a time.
const BLOCK_ROWS: u64 = 1 << 16;

/// The declaration of a new view, a table that shows rows of other tables and has no cells of its
/// own: a [reference table](NewTable::reference) or a [concatenation](NewTable::concatenate).
#[derive(Debug, Clone)]
#[must_use = "`create` writes the view"]
pub struct NewView {
    info: TableInfo,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Reference(Rows),
    Concatenation(Parts),
}

#[derive(Debug, Clone)]
struct Rows {
    root: PathBuf,
    root_rows: u64,
    /// Numbers in the root.
    numbers: Vec<u64>,
    /// Name in the table that the rows were taken from, and in the root.
    known: Vec<(BString, BString)>,
    /// Name here, and in the table that the rows were taken from; empty for all columns.
    shown: Vec<(BString, BString)>,
}

#[derive(Debug, Clone)]
struct Parts {
    paths: Vec<PathBuf>,
    rows: u64,
    subtables: Vec<BString>,
}

impl NewTable {
    /// Declares a reference table: rows of the table `root`, by their numbers from 0, in any order
    /// and also several times. It shows all columns of `root`, unless [`NewView::column`] chooses
    /// some; keywords and subtables are those of `root`. If `root` is a reference table itself, the
    /// new one refers to the root of that.
    ///
    /// ```
    /// use ctds::{ColumnDesc, NewTable, Table};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let (all, some) = (directory.path().join("all.tab"), directory.path().join("some.tab"));
    /// let mut table = NewTable::new().column(ColumnDesc::scalar::<i32>("SCAN")).create(&all)?;
    /// table.add_rows(3)?;
    /// table.column("SCAN")?.put_scalars(0, vec![7, 8, 9])?;
    /// table.close()?;
    ///
    /// let all = Table::open(&all)?;
    /// NewTable::reference(&all, [2, 0])?.column("NUMBER", "SCAN").create(&some)?;
    /// assert_eq!(Table::open(&some)?.column("NUMBER")?.scalar::<i32>(0)?, 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` if `root` lacks one of the rows; those of reading the row numbers of a reference
    /// table.
    pub fn reference(root: &Table, rows: impl IntoIterator<Item = u64>) -> Result<NewView> {
        let mut numbers: Vec<u64> = rows.into_iter().collect();
        if let Some(row) = numbers.iter().find(|&&row| row >= root.rows()) {
            let message = format!("row {row} does not exist, the table has {} rows", root.rows());
            return Err(Error::usage(message).context(Context::path(root.path())));
        }
        let names = root.columns().iter().map(|info| info.desc.name.clone());
        let rows = match (root.kind(), root.reference()) {
            (TableKind::Reference { root: below }, Some(reference)) => {
                let all = reference.row_numbers(0..root.rows()).with_context(|| Context::path(root.path()))?;
                numbers.iter_mut().for_each(|row| *row = all[*row as usize]);
                let is_present = |name: &BString| root.columns().iter().any(|info| info.desc.name == *name);
                let known = reference.columns.iter().filter(|(name, _)| is_present(name)).cloned().collect();
                let root_rows = reference.root_rows_now();
                Rows { root: below.clone(), root_rows, numbers, known, shown: Vec::new() }
            }
            _ => {
                let known = names.map(|name| (name.clone(), name)).collect();
                Rows { root: root.path().to_owned(), root_rows: root.rows(), numbers, known, shown: Vec::new() }
            }
        };
        Ok(NewView { info: root.info().clone(), body: Body::Reference(rows) })
    }

    /// Declares a concatenation: all rows of `parts`, one table after the other. The parts have the
    /// same columns; keywords are those of the first, and so are the subtables that
    /// [`NewView::subtables`] does not name.
    ///
    /// ```
    /// use ctds::{ColumnDesc, NewTable, Table};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = |name: &str| directory.path().join(name);
    /// for name in ["1.tab", "2.tab"] {
    ///     let mut part = NewTable::new().column(ColumnDesc::scalar::<i32>("SCAN")).create(path(name))?;
    ///     part.add_rows(3)?;
    ///     part.close()?;
    /// }
    /// let parts = [Table::open(path("1.tab"))?, Table::open(path("2.tab"))?];
    /// NewTable::concatenate(&parts)?.create(path("all.tab"))?;
    /// assert_eq!(Table::open(path("all.tab"))?.rows(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` without parts, and if a part has other columns than the first.
    pub fn concatenate<'t>(parts: impl IntoIterator<Item = &'t Table>) -> Result<NewView> {
        let parts: Vec<&Table> = parts.into_iter().collect();
        let first = parts.first().ok_or_else(|| Error::usage("a concatenation needs at least one table"))?;
        for part in &parts {
            same_columns(first, part).with_context(|| Context::path(part.path()))?;
        }
        let mut info = first.info().clone();
        info.readme.extend_from_slice(b"Virtual concatenation of the following tables:\n");
        for part in &parts {
            let name = part.path().file_name().unwrap_or_default();
            info.readme.extend_from_slice(format!("  {}\n", name.to_string_lossy()).as_bytes());
        }
        let rows = parts.iter().map(|part| part.rows()).sum();
        let paths = parts.iter().map(|part| part.path().to_owned()).collect();
        Ok(NewView { info, body: Body::Concatenation(Parts { paths, rows, subtables: Vec::new() }) })
    }
}

/// Fails unless both tables have columns of the same names, types and kinds, in any order.
fn same_columns(first: &Table, part: &Table) -> Result<()> {
    let find = |table: &Table, info: &ColumnInfo| {
        table.columns().iter().find(|other| other.desc.name == info.desc.name).cloned()
    };
    for info in part.columns() {
        let place = || Context::column(info.desc.name.as_bstr());
        match find(first, info) {
            None => return Err(Error::usage("the first table does not have this column").context(place())),
            Some(other) if other.data_type() != info.data_type() || other.desc.kind != info.desc.kind => {
                return Err(Error::usage("the column has another type than in the first table").context(place()));
            }
            Some(_) => {}
        }
    }
    match first.columns().iter().find(|info| find(part, info).is_none()) {
        Some(info) => Err(Error::usage(format!("the table does not have the column {} of the first", info.desc.name))),
        None => Ok(()),
    }
}

impl NewView {
    /// Shows the column `shown` of the table that the rows were taken from, under `name`. Without
    /// any such call a reference table has all columns of that table; a concatenation cannot
    /// choose.
    pub fn column(mut self, name: impl Into<BString>, shown: impl Into<BString>) -> Self {
        if let Body::Reference(rows) = &mut self.body {
            rows.shown.push((name.into(), shown.into()));
        }
        self
    }

    /// Sets the keywords of a concatenation whose tables are concatenated as well, over all parts.
    pub fn subtables<N: Into<BString>>(mut self, keywords: impl IntoIterator<Item = N>) -> Self {
        if let Body::Concatenation(parts) = &mut self.body {
            parts.subtables = keywords.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Sets type, subtype and readme of the view. By default they are those of the root, or of the
    /// first part with a list of all parts in the readme, as casacore makes it.
    pub fn info(mut self, info: TableInfo) -> Self {
        self.info = info;
        self
    }

    /// Writes the view to the new directory `path`, and makes it durable. Names of other tables are
    /// relative to `path` where these are beside or below it, so that all can be moved together.
    ///
    /// # Errors
    /// `Exists` if `path` exists; `Usage` if chosen columns do not exist or have one
    /// name; `Unsupported` for more row numbers than casacore reads, about 2^30; `Io`, `NoSpace`.
    pub fn create(self, path: impl AsRef<Path>) -> Result<()> {
        let path = std::path::absolute(path.as_ref())?;
        let create = || -> Result<()> {
            let (dat, numbers) = self.table_dat(&path)?;
            fs::create_dir(&path)?;
            let block = |rows: Range<u64>| Ok(numbers[rows.start as usize..rows.end as usize].to_vec());
            let write = || -> Result<()> {
                dat.write(&path, &self.info, &block)?;
                let files = Directory::new(&path);
                ["table.info", "table.dat"].iter().try_for_each(|name| files.edit(name)?.sync())?;
                files.commit()
            };
            write().inspect_err(|_| {
                // nothing can be done about what cannot be removed
                let _ = fs::remove_dir_all(&path);
            })
        };
        create().with_context(|| Context::path(&path))
    }

    /// `table.dat` of a view at `path`, and the row numbers.
    fn table_dat(&self, path: &Path) -> Result<(ViewDat, &[u64])> {
        match &self.body {
            Body::Reference(rows) => {
                let (root, columns) = (stored_name(&rows.root, path), rows.columns()?);
                let new = NewRefTable {
                    root: root.as_bstr(),
                    columns: &columns,
                    root_rows: rows.root_rows,
                    ordered: rows.numbers.is_sorted(),
                    rows: rows.numbers.len() as u64,
                };
                Ok((ViewDat::reference(&new)?, &rows.numbers))
            }
            Body::Concatenation(parts) => {
                let names: Vec<BString> = parts.paths.iter().map(|part| stored_name(part, path)).collect();
                Ok((ViewDat::concatenation(&names, &parts.subtables, parts.rows), &[]))
            }
        }
    }
}

impl Rows {
    /// Name here and in the root.
    fn columns(&self) -> Result<Vec<(BString, BString)>> {
        if self.shown.is_empty() {
            return Ok(self.known.clone());
        }
        let mut columns: Vec<(BString, BString)> = Vec::new();
        for (name, shown) in &self.shown {
            let found = self.known.iter().find(|(known, _)| known == shown).ok_or_else(|| {
                let names = self.known.iter().map(|(known, _)| known.to_str_lossy());
                Error::usage(format!("the table has no column {shown}{}", instead(&shown.to_str_lossy(), names)))
            })?;
            if columns.iter().any(|(other, _)| other == name) {
                return Err(Error::usage(format!("two columns are named {name:?}")));
            }
            columns.push((name.clone(), found.1.clone()));
        }
        Ok(columns)
    }
}

/// `table.dat` of a view that is to be written, but for its row numbers.
#[derive(Debug)]
pub struct ViewDat {
    head: Vec<u8>,
    /// Row numbers after `head`.
    count: u64,
    /// Whether they are u64, else u32.
    is_wide: bool,
}

impl ViewDat {
    /// `Unsupported` for more rows than casacore reads.
    pub fn reference(new: &NewRefTable<'_>) -> Result<Self> {
        Ok(ViewDat { head: new.encode_head()?, count: new.rows, is_wide: new.is_wide() })
    }

    /// As [`ConcatTable::encode`].
    pub fn concatenation(parts: &[BString], subtables: &[BString], rows: u64) -> Self {
        ViewDat { head: ConcatTable::encode(parts, subtables, rows), count: 0, is_wide: false }
    }

    /// Writes `table.info` and then `table.dat` into `directory`. `numbers` returns the row numbers
    /// in the root of each range of rows; `Format` if one of them exceeds the root.
    pub fn write(
        &self,
        directory: &Path,
        info: &TableInfo,
        numbers: &dyn Fn(Range<u64>) -> Result<Vec<u64>>,
    ) -> Result<()> {
        let files = Directory::new(directory);
        files.create("table.info")?.write_at(0, &info.encode())?;
        let file = files.create("table.dat_tmp")?;
        file.write_at(0, &self.head)?;
        let mut at = self.head.len() as u64;
        for start in (0..self.count).step_by(BLOCK_ROWS as usize) {
            let mut bytes = Vec::new();
            for number in numbers(start..self.count.min(start + BLOCK_ROWS))? {
                match (self.is_wide, u32::try_from(number)) {
                    (true, _) => bytes.extend(number.to_be_bytes()),
                    (false, Ok(narrow)) => bytes.extend(narrow.to_be_bytes()),
                    (false, Err(_)) => return Err(Error::format(format!("row {number} exceeds the root table"))),
                }
            }
            file.write_at(at, &bytes)?;
            at += bytes.len() as u64;
        }
        fs::rename(directory.join("table.dat_tmp"), directory.join("table.dat")).context(Context::member("table.dat"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bstr::BString;
    use ctds_hdf5_testing::{Copy, testdata};

    use super::*;
    use crate::error::{ErrorKind, Fails};
    use crate::table::OpenOptions;

    fn copy(case: &str) -> Copy {
        Copy::of_path(&testdata().join(case))
    }

    /// Casacore's bytes, but for the flag of ascending rows, which it sets as it likes.
    fn assert_same_dat(new: &Path, old: &Path, flag: Option<usize>) {
        let [mut new, mut old] = [new, old].map(|path| fs::read(path.join("table.dat")).unwrap());
        assert_eq!(new.len(), old.len());
        for bytes in [&mut new, &mut old] {
            flag.into_iter().for_each(|at| bytes[at] = 0);
        }
        assert_eq!(new, old);
    }

    #[test]
    fn references_are_those_of_casacore() {
        let tables = copy("ref_tables");
        let columns = |names: &[(&str, &str)]| -> Vec<(BString, BString)> {
            names.iter().map(|(name, root)| ((*name).into(), (*root).into())).collect()
        };
        for (name, chosen) in [
            ("sel.ref", columns(&[])),
            ("sorted.ref", columns(&[])),
            ("refofref.ref", columns(&[])),
            ("empty.ref", columns(&[])),
            ("dup.ref", columns(&[])),
            ("cols.ref", columns(&[("S", "S"), ("I", "I")])),
            ("renamed.ref", columns(&[("DD", "D"), ("A", "A")])),
        ] {
            let old = Table::open(tables.path().join(name)).unwrap();
            let TableKind::Reference { root } = old.kind() else { panic!("{name}") };
            let rows = old.reference().unwrap().row_numbers(0..old.rows()).unwrap();
            // the flag stands before the number of rows and the row numbers
            let flag = fs::metadata(old.path().join("table.dat")).unwrap().len() as usize - 4 * rows.len() - 5;
            let new = tables.path().join(format!("new-{name}"));
            let view = NewTable::reference(&Table::open(root).unwrap(), rows).unwrap();
            let view = chosen.iter().fold(view, |view, (name, root)| view.column(name.clone(), root.clone()));
            view.create(&new).unwrap();
            assert_same_dat(&new, old.path(), Some(flag));
            assert_eq!(fs::read(new.join("table.info")).unwrap(), fs::read(old.path().join("table.info")).unwrap());
        }
    }

    #[test]
    fn a_reference_to_a_reference_leads_to_its_root() {
        let tables = copy("ref_tables");
        let path = |name: &str| tables.path().join(name);
        let renamed = Table::open(path("renamed.ref")).unwrap();
        let view = NewTable::reference(&renamed, [3, 0, 3]).unwrap();
        view.column("D", "DD").create(path("new.ref")).unwrap();
        let new = Table::open(path("new.ref")).unwrap();
        assert_eq!(*new.kind(), TableKind::Reference { root: path("base.tab") });
        let first = renamed.reference().unwrap().row_numbers(0..4).unwrap();
        assert_eq!(new.reference().unwrap().row_numbers(0..3).unwrap(), [first[3], first[0], first[3]]);
        let cell = |table: &Table, name: &str, row| table.column(name).unwrap().scalar::<f64>(row).unwrap().to_bits();
        assert_eq!(new.columns().len(), 1);
        assert_eq!(cell(&new, "D", 1), cell(&renamed, "DD", 0));
    }

    #[test]
    fn concatenations_are_those_of_casacore() {
        let tables = copy("concat_tables");
        for (name, parts, subtables) in [
            ("c.concat", ["part1.tab", "part2.tab"], vec![]),
            ("csub.concat", ["part1.tab", "part2.tab"], vec!["SUB"]),
            ("cref.concat", ["sel.ref", "part1.tab"], vec![]),
        ] {
            let parts = parts.map(|part| Table::open(tables.path().join(part)).unwrap());
            let (old, new) = (tables.path().join(name), tables.path().join(format!("new-{name}")));
            let view = NewTable::concatenate(&parts).unwrap().subtables(subtables);
            view.create(&new).unwrap();
            assert_same_dat(&new, &old, None);
            assert_eq!(fs::read(new.join("table.info")).unwrap(), fs::read(old.join("table.info")).unwrap());
        }
    }

    #[test]
    fn wrong_declarations_are_refused() {
        let tables = copy("ref_tables");
        let path = |name: &str| tables.path().join(name);
        let base = Table::open(path("base.tab")).unwrap();
        let reference = |rows: &[u64]| NewTable::reference(&base, rows.iter().copied());
        reference(&[0, 40]).fails(ErrorKind::Usage, "row 40 does not exist, the table has 40 rows");
        let new = || reference(&[0]).unwrap();
        let error = new().column("X", "Q").create(path("new.ref")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("no column Q"), "{error}");
        let twice = new().column("X", "A").column("X", "I").create(path("new.ref"));
        twice.fails(ErrorKind::Usage, "two columns are named \"X\"");
        assert_eq!(new().create(path("sel.ref")).unwrap_err().kind(), ErrorKind::Exists);
        assert!(!path("new.ref").exists());

        NewTable::concatenate([]).fails(ErrorKind::Usage, "a concatenation needs at least one table");
        let narrow = Table::open(path("cols.ref")).unwrap();
        let error = NewTable::concatenate([&narrow, &base]).unwrap_err();
        assert!(error.to_string().ends_with("the first table does not have this column"), "{error}");
        let error = NewTable::concatenate([&base, &narrow]).unwrap_err();
        assert!(error.to_string().contains("the table does not have the column"), "{error}");
    }

    #[test]
    fn a_view_is_opened_as_if_it_were_elsewhere() {
        let tables = copy("ref_tables");
        let inside = tables.path().join("base.tab/deep");
        fs::create_dir(&inside).unwrap();
        for file in ["table.dat", "table.info"] {
            fs::copy(tables.path().join("sel.ref").join(file), inside.join(file)).unwrap();
        }
        let options = OpenOptions::default();
        assert_eq!(Table::open(&inside).unwrap_err().kind(), ErrorKind::Format);
        let table = Table::open_as(&inside, &tables.path().join("new.ref"), options).unwrap();
        assert_eq!(table.rows(), Table::open(tables.path().join("sel.ref")).unwrap().rows());
        // the root would be the view itself
        let circle = Table::open_as(&inside, &tables.path().join("base.tab"), options).unwrap_err();
        assert_eq!(circle.kind(), ErrorKind::Format);
    }
}
