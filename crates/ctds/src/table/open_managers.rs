//! Opens the data managers of a table; a manager from which others take values is opened before
//! them.

use std::cell::{OnceCell, RefCell};
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::open::open_next;
use super::open_chain::OpenChain;
use super::{ColumnInfo, OpenManager};
use crate::container::Container;
use crate::error::{Error, Result};
use crate::lfs;
use crate::schema::{ColumnKind, ColumnSet, TableDesc, resolve};
use crate::stman::{self, ColumnSpec, Columns, Manager, OpenArgs, OtherColumn, TableContext};
use crate::value::{ByteOrder, Record, Shape};

#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) plain: &'a dyn Container,
    /// The container, if any, with the files of all managers that casacore packs.
    pub(super) packed: Option<&'a dyn Container>,
}

pub(super) struct OpenManagers<'a> {
    path: &'a Path,
    files: Files<'a>,
    rows: u64,
    order: ByteOrder,
    desc: &'a TableDesc,
    set: &'a ColumnSet,
    chain: &'a OpenChain<'a>,
    columns: Vec<ColumnInfo>,
    /// Manager of each column, and index among those that [`is_stored`] there.
    bindings: Vec<(usize, usize)>,
    managers: RefCell<Vec<ManagerState>>,
    names: OnceCell<Vec<String>>,
}

#[derive(Debug)]
enum ManagerState {
    Closed,
    /// A request for the manager in this state is an error: its values would come from itself.
    Opening,
    Open(Result<Arc<dyn Manager>>),
}

impl<'a> OpenManagers<'a> {
    pub(super) fn new(
        path: &'a Path,
        files: Files<'a>,
        rows: u64,
        order: ByteOrder,
        desc: &'a TableDesc,
        set: &'a ColumnSet,
        chain: &'a OpenChain<'a>,
    ) -> Self {
        let mut counts = vec![0; set.managers.len()];
        let (mut columns, mut bindings) = (Vec::new(), Vec::new());
        for (desc, binding) in desc.columns.iter().zip(&set.columns) {
            let manager = set.managers.iter().position(|manager| manager.sequence == binding.sequence);
            let manager = manager.expect("decoding checked that it exists");
            let shape = match desc.kind {
                ColumnKind::Scalar => Some(Shape::scalar()),
                ColumnKind::Array if !desc.shape.is_empty() => Some(desc.shape.clone()),
                ColumnKind::Array => binding.shape.clone(),
            };
            let type_name = set.managers[manager].type_name.clone();
            let column = ColumnInfo {
                desc: desc.clone(),
                shape,
                manager: type_name,
                manager_name: BString::default(),
                may_be_undefined: false,
            };
            bindings.push((manager, counts[manager]));
            counts[manager] += usize::from(is_stored(&column));
            columns.push(column);
        }
        // an engine has the cells of its stored column, whatever shape its own description gives
        // them
        for index in 0..columns.len() {
            let stored = columns[index].stored_column();
            let stored = stored.and_then(|name| columns.iter().find(|column| column.desc.name == name));
            if let Some(shape) = stored.and_then(|stored| stored.shape.clone())
                && columns[index].shape.is_some()
            {
                columns[index].shape = Some(shape);
            }
        }
        let managers = RefCell::new(set.managers.iter().map(|_| ManagerState::Closed).collect());
        OpenManagers { path, files, rows, order, desc, set, chain, columns, bindings, managers, names: OnceCell::new() }
    }

    /// Managers that fail to open are errors; columns have the indices of manager and column.
    pub(super) fn finish(self) -> (Vec<ColumnInfo>, Vec<(usize, usize)>, Vec<OpenManager>) {
        let opened: Vec<_> = (0..self.set.managers.len()).map(|manager| self.open(manager)).collect();
        let mut columns = self.columns;
        for (column, (manager, _)) in columns.iter_mut().zip(&self.bindings) {
            if let Ok(opened) = &opened[*manager] {
                column.manager_name = opened.name().to_owned();
            }
        }
        let managers = self.set.managers.iter().zip(opened).map(|(entry, opened)| OpenManager {
            type_name: entry.type_name.clone(),
            sequence: entry.sequence,
            opened,
        });
        (columns, self.bindings, managers.collect())
    }

    fn open(&self, manager: usize) -> Result<Arc<dyn Manager>> {
        match &self.managers.borrow()[manager] {
            ManagerState::Open(Ok(opened)) => return Ok(opened.clone()),
            ManagerState::Open(Err(error)) => return Err(error.clone()),
            ManagerState::Opening => return Err(Error::format("the values of the column come from the column itself")),
            ManagerState::Closed => {}
        }
        self.managers.borrow_mut()[manager] = ManagerState::Opening;
        let opened = self.open_new(manager);
        let result = match &opened {
            Ok(opened) => Ok(opened.clone()),
            Err(error) => Err(error.clone()),
        };
        self.managers.borrow_mut()[manager] = ManagerState::Open(opened);
        result
    }

    /// Fails if a file of the manager is a pointer of Git LFS.
    fn check_files(&self, sequence: u32) -> Result<()> {
        // a table in a container is complete
        let Some(directory) = self.files.plain.path("") else { return Ok(()) };
        for name in self.names.get_or_init(|| self.files.plain.names().unwrap_or_default()) {
            if stman::sequence_of(name) == Some(sequence) {
                lfs::check(&directory.join(name))?;
            }
        }
        Ok(())
    }

    fn open_new(&self, manager: usize) -> Result<Arc<dyn Manager>> {
        let entry = &self.set.managers[manager];
        self.check_files(entry.sequence)?;
        let bound = || self.columns.iter().zip(&self.bindings).filter(|(_, binding)| binding.0 == manager);
        let members = || bound().filter(|(column, _)| is_stored(column));
        let foreign = bound().find_map(|(column, _)| column.desc.foreign.as_ref());
        if let Some(foreign) = foreign.filter(|_| members().next().is_none()) {
            return Err(foreign.refusal());
        }
        let specs: Vec<ColumnSpec> = members().map(|(column, _)| column.spec()).collect();
        let keywords: Vec<&Record> = members().map(|(column, _)| &column.desc.keywords).collect();
        let args = OpenArgs {
            type_name: entry.type_name.as_bstr(),
            files: self.files.packed.filter(|_| stman::packable(entry.type_name.as_bstr())).unwrap_or(self.files.plain),
            sequence: entry.sequence,
            rows: self.rows,
            order: self.order,
            columns: &specs,
            info: &entry.info,
            private_keywords: &self.desc.private_keywords,
            column_keywords: &keywords,
            table: self,
        };
        stman::open(entry.type_name.as_bstr(), &args).map(Arc::from)
    }

    /// Finds a column by its present name, or else by its original one.
    fn find(&self, name: &BStr) -> Result<usize> {
        let by_name = self.columns.iter().position(|column| column.desc.name == name);
        let found = by_name.or_else(|| self.set.columns.iter().position(|binding| binding.original_name == name));
        found.ok_or_else(|| Error::format(format!("column {name} does not exist")))
    }
}

/// Whether the manager of the column knows it: storage managers store no objects of classes, which
/// engines compute.
fn is_stored(column: &ColumnInfo) -> bool {
    column.desc.foreign.is_none() || stman::is_engine(column.manager.as_bstr())
}

impl Columns for OpenManagers<'_> {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keywords(&self) -> &Record {
        &self.desc.keywords
    }

    fn column(&self, name: &BStr) -> Result<OtherColumn> {
        let found = self.find(name)?;
        let (manager, index) = self.bindings[found];
        let manager = self.open(manager)?;
        self.columns[found].desc.check_class()?;
        manager.readable(index)?;
        Ok(OtherColumn { spec: self.columns[found].spec(), manager, index })
    }
}

impl TableContext for OpenManagers<'_> {
    fn column_keywords(&self, name: &BStr) -> Result<&Record> {
        Ok(&self.columns[self.find(name)?].desc.keywords)
    }

    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>> {
        Ok(Box::new(open_next(&resolve(stored, self.path), self.chain)?))
    }
}
