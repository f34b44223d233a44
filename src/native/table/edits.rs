//! The attributes of a table and its columns that a user has edited, found by comparing them with
//! those that the file was written with.

use bstr::{BStr, ByteSlice};

use super::super::attributes::{self, Attributes, Changes, OF_COLUMN, OF_TABLE, Object, TABLE_SUBTYPE, TABLE_TYPE};
use super::super::form::{FormKind, StoredForm};
use super::super::names::{MAIN_TABLE, table_path};
use super::super::notes::{ATTRIBUTES, GROUP};
use super::super::unread;
use super::{NativeTable, Written};
use crate::error::{Error, Result};
use crate::table::ColumnInfo;
use crate::value::Values;

impl NativeTable {
    /// Sentences for the user: edits since the file was made, and parts of it that no table has.
    /// `coordinates` gives values by the role of an axis; other scales' values are not compared.
    /// Fails if attributes could not be read, also when the table was opened.
    pub(crate) fn edits(&self, coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        self.written()?;
        let mut notes = self.notes.texts.clone();
        if self.group.path() == table_path(MAIN_TABLE) {
            notes.append(&mut unread::in_root(&self.group.root()?)?);
        }
        notes.append(&mut unread::in_table(&self.group, &self.forms, &self.row, &coordinates())?);
        Ok(notes)
    }

    /// `None` if no attributes have been edited.
    pub(crate) fn written(&self) -> Result<Option<&Written>> {
        self.written.as_ref().map(Option::as_ref).map_err(Error::clone)
    }

    /// Applies edited attributes to info, keywords and comments of the table, and notes that.
    pub(super) fn apply_edits(&mut self) -> Result<Option<Written>> {
        let expressions: Vec<&str> = self.forms.iter().filter_map(|form| form.expression.as_deref()).collect();
        let object = Object::Group(self.group.clone());
        // attributes that are missing as damaged have not been removed
        let damage = object.damage();
        let changes = match damage {
            Some(_) => Changes::none(&self.keywords),
            None => attributes::diff(&object, &self.written_attributes(), &self.keywords, &OF_TABLE, &expressions)?,
        };
        self.notes.missing(damage, None, GROUP);
        let mut of_columns = Vec::new();
        for (info, form) in self.columns.iter().zip(&self.forms).take(self.described) {
            let object = match form.kind {
                FormKind::Missing => None,
                _ => match self.object(form) {
                    // the column cannot be read either
                    Err(error) if error.is_damage() => None,
                    object => Some(object?),
                },
            };
            let damage = object.as_ref().and_then(Object::damage);
            let object = object.filter(|_| damage.is_none());
            self.notes.missing(damage, Some(&info.desc.name.to_str_lossy()), ATTRIBUTES);
            let expected = self.written_column_attributes(info, form);
            let diff = |object| attributes::diff(&object, &expected, &info.desc.keywords, &OF_COLUMN, &[]);
            of_columns.push(object.map(diff).transpose()?);
        }
        if changes.notes.is_empty() && of_columns.iter().flatten().all(|changes| changes.notes.is_empty()) {
            return Ok(None);
        }
        let comments = self.columns.iter().map(|info| info.desc.comment.clone()).collect();
        let written = Written { info: self.info.clone(), comments };
        self.keywords = changes.keywords;
        self.notes.texts.extend(changes.notes);
        for (name, text) in changes.own {
            match name {
                TABLE_TYPE => self.info.table_type = text,
                TABLE_SUBTYPE => self.info.sub_type = text,
                _ => self.info.readme = text,
            }
        }
        for (info, changes) in self.columns.iter_mut().zip(of_columns) {
            let Some(changes) = changes else { continue };
            let desc = &mut info.desc;
            desc.keywords = changes.keywords;
            attributes::apply_own(&changes.own, &mut desc.comment, &mut desc.keywords);
            self.notes.texts.extend(changes.notes.into_iter().map(|note| format!("column {}: {note}", desc.name)));
        }
        Ok(Some(written))
    }

    pub(super) fn written_attributes(&self) -> Attributes {
        let exact_name = self.exact_name.as_ref().map(|name| name.as_bstr());
        Attributes::of_table(exact_name, &self.info, &self.keywords, &|stored| self.path_of(stored))
    }

    pub(super) fn written_column_attributes(&self, info: &ColumnInfo, form: &StoredForm) -> Attributes {
        let desc = &info.desc;
        let exact_name = (form.link != desc.name.to_str_lossy()).then(|| desc.name.as_bstr());
        Attributes::of_column(exact_name, desc.comment.as_bstr(), &desc.keywords, &|stored| self.path_of(stored))
    }

    /// Path of the subtable's group; `stored` itself if the file lacks it.
    fn path_of(&self, stored: &BStr) -> String {
        self.groups.get(stored).cloned().unwrap_or_else(|| stored.to_string())
    }

    /// Opens the dataset or group that carries the attributes of a column.
    pub(super) fn object(&self, form: &StoredForm) -> Result<Object> {
        Ok(match form.kind {
            FormKind::Dense | FormKind::Record => Object::Dataset(self.group.header(&form.link)?),
            _ => Object::Group(self.group.group(&form.link)?),
        })
    }
}
