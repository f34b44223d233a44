//! Objects: groups, datasets and committed types, which object headers describe. HDF5 File Format
//! Specification 3.0, section IV.A: the messages of a header say what the object is.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::file::File;
use crate::group::Group;
use crate::header::{self, Header, Message, kind};

/// An object of a file. Clones share what is read of it.
#[derive(Debug, Clone)]
pub struct Object {
    pub(crate) file: File,
    pub(crate) header: Arc<Header>,
    kind: ObjectKind,
}

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// Has links to other objects.
    Group,
    /// Has elements.
    Dataset,
    /// A type that other objects refer to, a committed type.
    Type,
}

impl Object {
    pub(crate) fn open(file: &File, address: u64) -> Result<Self> {
        let header = file.header(address)?;
        let kind = kind_of(file, &header)?;
        Ok(Object { file: file.clone(), header: Arc::new(header), kind })
    }

    /// The kind of the object.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// Address of the object's header, which identifies the object in the file.
    pub fn address(&self) -> u64 {
        self.header.address
    }

    /// Number of hard links to the object, as its header says.
    ///
    /// # Errors
    /// `Damaged` if the message that holds the number is too short.
    pub fn link_count(&self) -> Result<u32> {
        self.header.link_count(&self.file)
    }

    /// Blocks of the object's header that could not be read; without any, all messages of the
    /// object are known.
    pub fn damage(&self) -> &[Error] {
        &self.header.damage
    }

    /// The object as a group.
    ///
    /// # Errors
    /// `Missing` if it is not a group.
    pub fn group(&self) -> Result<Group> {
        self.expect(ObjectKind::Group)?;
        Ok(Group::new(self.clone()))
    }

    /// The message of a kind of which an object has one; more are damage.
    pub(crate) fn only<'a>(&'a self, kind: u16, damage: &mut Vec<Error>) -> Option<Message<'a>> {
        let mut found = self.header.messages(&self.file).filter(|message| message.kind == kind);
        let first = found.next();
        if let Some(second) = found.next() {
            damage.push(second.data.error("the object has a second message of this kind"));
        }
        first
    }

    pub(crate) fn expect(&self, kind: ObjectKind) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        let message = format!("the object is a {}, not a {}", self.kind.name(), kind.name());
        Err(Error::new(crate::ErrorKind::Missing, message).within(self.place()))
    }

    /// The words of errors.
    pub(crate) fn place(&self) -> String {
        format!("object at address {}", self.address())
    }
}

impl ObjectKind {
    fn name(self) -> &'static str {
        match self {
            ObjectKind::Group => "group",
            ObjectKind::Dataset => "dataset",
            ObjectKind::Type => "committed type",
        }
    }
}

/// A group has links, a dataset has elements of a type; what has a type alone is a committed type.
fn kind_of(file: &File, header: &Header) -> Result<ObjectKind> {
    let has = |wanted: &[u16]| header.messages(file).any(|message| wanted.contains(&message.kind));
    if has(&[kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK]) {
        Ok(ObjectKind::Group)
    } else if has(&[kind::LAYOUT, kind::DATASPACE]) {
        Ok(ObjectKind::Dataset)
    } else if has(&[kind::DATATYPE]) {
        Ok(ObjectKind::Type)
    } else {
        let message = "the messages are not those of a group, a dataset or a type";
        Err(Error::damaged(message).within(format_args!("object at address {}", header.address)))
    }
}

impl File {
    /// The root group.
    ///
    /// # Errors
    /// Those of [`object`](Self::object); `Missing` if it is not a group.
    pub fn root(&self) -> Result<Group> {
        self.object(self.superblock().root)?.group()
    }

    /// The object whose header is at `address`.
    ///
    /// # Errors
    /// `Damaged` if the header is missing; `Unsupported` for unknown versions and messages; `Io`.
    pub fn object(&self, address: u64) -> Result<Object> {
        Object::open(self, address)
    }

    /// Checks what the extension of the superblock says of the whole file.
    ///
    /// # Errors
    /// `Damaged`; `Unsupported` if the file has an image of a library's memory, in which structures
    /// may be that this crate would not see.
    pub fn check_extension(&self) -> Result<()> {
        let Some(address) = self.superblock().extension else { return Ok(()) };
        let mut header = self.header(address)?;
        if let Some(message) = header.find(self, kind::CACHE_IMAGE) {
            return Err(message.data.unsupported("the file has an image of the metadata cache"));
        }
        header.damage.pop().map_or(Ok(()), Err)
    }

    pub(crate) fn header(&self, address: u64) -> Result<Header> {
        header::open(self, address)
    }
}
