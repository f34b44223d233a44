//! The description of a column in `table.dat`: name, type, shape, keywords. formats/table.md 2.3.

use bstr::{BString, ByteSlice};

use crate::aipsio::{Decoder, Encoder};
use crate::error::{Context, Error, Result};
use crate::value::{DataType, Element, Record, Shape, Value, Values};

/// Kind of the cells of a column: scalars (records included) or arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Each cell of the column is one element; records count as elements.
    Scalar,
    /// Each cell of the column is an array.
    Array,
}

/// The description of a column; in `table.dat` it has no AipsIO header of its own.
///
/// | field         | type          | present                                |
/// |---------------|---------------|----------------------------------------|
/// | format        | u32 = 1       |                                        |
/// | class         | string        | type padded to 8 characters, no `>`    |
/// | base format   | u32 = 1       |                                        |
/// | name          | string        |                                        |
/// | comment       | string        |                                        |
/// | manager_type  | string        |                                        |
/// | manager_group | string        |                                        |
/// | data_type     | i32           | code of the element                    |
/// | options       | i32           | 1 Direct, 2 Undefined, 4 FixedShape    |
/// | ndim          | i32           | 0 scalar, -1 free                      |
/// | shape         | `IPosition`   | arrays                                 |
/// | max_length    | u32           |                                        |
/// | keywords      | `TableRecord` |                                        |
/// | class format  | u32 = 1       |                                        |
/// | default       | element       | scalars; arrays: a Bool, always False  |
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDesc {
    /// Name of the column, unique within the table.
    pub name: BString,
    /// Comment on the column, free text.
    pub comment: BString,
    /// Type of the data manager that was suggested when the column was described; the table may
    /// store the column in another one.
    pub manager_type: BString,
    /// Name of the data manager (casacore's data manager group) that was suggested when the column
    /// was described.
    pub manager_group: BString,
    /// The type of the elements of the column's cells.
    pub data_type: DataType,
    /// Whether the cells of the column are scalars, also records, or arrays.
    pub kind: ColumnKind,
    /// Casacore's option bits of the column: 1 Direct, 2 Undefined, 4 FixedShape.
    pub options: i32,
    /// Number of axes of each cell of the column; 0 for scalars, -1 if it may differ between cells.
    pub ndim: i32,
    /// The shape of every cell of the column if the description fixes it, first axis fastest;
    /// otherwise empty.
    pub shape: Shape,
    /// Longest string that a cell of the column may hold, in bytes; 0 for any length.
    pub max_length: u32,
    /// Keywords of the column, among them its units and measure.
    pub keywords: Record,
    /// The default value of a scalar column, as described; storage managers ignore it. `None` for
    /// arrays and records.
    pub default: Option<Values>,
}

/// Methods that describe the columns of a new table.
///
/// ```
/// use ctds::{ColumnDesc, value::{Complex32, Shape, Value}};
///
/// let time = ColumnDesc::scalar::<f64>("TIME").unit("s").comment("Modified Julian Day");
/// let uvw = ColumnDesc::array::<f64>("UVW").direct(Shape::from([3])).unit("m");
/// let data = ColumnDesc::array::<Complex32>("DATA").ndim(2); // [corr, chan], each cell its own
/// let flags = ColumnDesc::array::<bool>("FLAG").keyword("ORIGIN", Value::string("none"));
/// # let _ = (time, uvw, data, flags);
/// ```
impl ColumnDesc {
    /// Describes a column of scalars of type `T`.
    pub fn scalar<T: Element>(name: impl Into<BString>) -> Self {
        Self::new(name.into(), T::DATA_TYPE, ColumnKind::Scalar)
    }

    /// Describes a column of arrays with elements of type `T`, of any number of axes and any shape.
    pub fn array<T: Element>(name: impl Into<BString>) -> Self {
        Self::new(name.into(), T::DATA_TYPE, ColumnKind::Array)
    }

    /// Describes a column of scalars or arrays of a type that is known only when the program runs.
    pub fn new(name: BString, data_type: DataType, kind: ColumnKind) -> Self {
        ColumnDesc {
            name,
            comment: BString::default(),
            manager_type: "StandardStMan".into(),
            manager_group: "StandardStMan".into(),
            data_type,
            kind,
            options: 0,
            ndim: if kind == ColumnKind::Array { -1 } else { 0 },
            shape: Shape::scalar(),
            max_length: 0,
            keywords: Record::default(),
            default: None,
        }
    }

    /// Declares that every cell of the array column has `axes` axes; their extents may differ.
    pub fn ndim(mut self, axes: u32) -> Self {
        self.ndim = axes as i32;
        self
    }

    /// Declares that every cell of the column has this shape, first axis fastest; cells that are
    /// never written may stay undefined.
    pub fn fixed_shape(mut self, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        self.options |= FIXED_SHAPE;
        self.ndim = shape.len() as i32;
        self.shape = shape;
        self
    }

    /// Declares that every cell of the column has this shape, first axis fastest, and that the data
    /// manager stores cells like scalars, not in a separate array file (casacore's option Direct):
    /// best for small arrays.
    pub fn direct(self, shape: impl Into<Shape>) -> Self {
        let mut desc = self.fixed_shape(shape);
        desc.options |= DIRECT;
        desc
    }

    /// Declares the longest string that a cell of the column may hold, in bytes; managers may store
    /// such strings more tightly.
    pub fn max_length(mut self, bytes: u32) -> Self {
        self.max_length = bytes;
        self
    }

    /// Sets the comment of the column, free text.
    pub fn comment(mut self, comment: impl Into<BString>) -> Self {
        self.comment = comment.into();
        self
    }

    /// Sets the unit of all elements of the column: keyword `QuantumUnits`.
    pub fn unit(self, unit: impl Into<BString>) -> Self {
        self.keyword("QuantumUnits", Value::Array(Shape::from([1]), Values::String(vec![unit.into()])))
    }

    /// Sets the keyword `name` of the column to `value`.
    pub fn keyword(mut self, name: impl Into<BString>, value: Value) -> Self {
        self.keywords.set(name, value);
        self
    }
}

const DIRECT: i32 = 1;
const FIXED_SHAPE: i32 = 4;

impl ColumnDesc {
    pub(super) fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let start = d.position();
        expect_version(d, "ColumnDesc")?;
        let class = d.string("column class")?;
        expect_version(d, "BaseColumnDesc")?;
        let name = d.string("column name")?;
        let comment = d.string("column comment")?;
        let manager_type = d.string("data manager type")?;
        let manager_group = d.string("data manager group")?;
        let code = d.i32("data type")?;
        let options = d.i32("options")?;
        let ndim = d.i32("ndim")?;
        let (kind, has_shape) = match class.as_bytes() {
            class if class.starts_with(b"ScalarColumnDesc<") => (ColumnKind::Scalar, false),
            class if class.starts_with(b"ArrayColumnDesc<") => (ColumnKind::Array, true),
            b"ScalarRecordColumnDesc" => (ColumnKind::Scalar, false),
            _ => {
                return Err(Error::unsupported(format!("column {name:?} of class {class:?} is not supported"))
                    .context(Context::offset("TableDesc", start)));
            }
        };
        let data_type = DataType::from_code(code)
            .ok_or_else(|| d.error(format!("column {name:?}: data type code {code}, which no column can have")))?;
        let shape = if has_shape { d.shape("column shape")? } else { Shape::scalar() };
        let max_length = d.u32("maximum string length")?;
        let keywords = d.record()?;
        expect_version(d, "column class")?;
        let default = match kind {
            ColumnKind::Array => {
                d.bool("default")?;
                None
            }
            ColumnKind::Scalar if data_type == DataType::Record => None,
            ColumnKind::Scalar => Some(d.values("default", data_type, 1)?),
        };
        Ok(ColumnDesc {
            name,
            comment,
            manager_type,
            manager_group,
            data_type,
            kind,
            options,
            ndim,
            shape,
            max_length,
            keywords,
            default,
        })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u32(1);
        e.string(self.class()?);
        e.u32(1);
        e.string(&self.name);
        e.string(&self.comment);
        e.string(&self.manager_type);
        e.string(&self.manager_group);
        e.i32(self.data_type.code());
        e.i32(self.options);
        e.i32(self.ndim);
        if self.kind == ColumnKind::Array {
            e.shape(&self.shape);
        }
        e.u32(self.max_length);
        e.record("TableRecord", &self.keywords)?;
        e.u32(1);
        match (self.kind, &self.default) {
            (ColumnKind::Array, _) => e.bool(false),
            (ColumnKind::Scalar, _) if self.data_type == DataType::Record => {}
            (ColumnKind::Scalar, Some(default)) => e.values(default)?,
            (ColumnKind::Scalar, None) => {
                let mut default = Values::new(self.data_type);
                default.extend_default(1);
                e.values(&default)?;
            }
        }
        Ok(())
    }

    /// `ScalarColumnDesc<Int `: element type padded to 8 characters, without closing bracket.
    fn class(&self) -> Result<String> {
        let element = match self.data_type {
            DataType::Bool => "Bool",
            DataType::UChar => "uChar",
            DataType::Short => "Short",
            DataType::UShort => "uShort",
            DataType::Int => "Int",
            DataType::UInt => "uInt",
            DataType::Int64 => "Int64",
            DataType::Float => "float",
            DataType::Double => "double",
            DataType::Complex => "Complex",
            DataType::DComplex => "DComplex",
            DataType::String => "String",
            DataType::Record if self.kind == ColumnKind::Scalar => return Ok("ScalarRecordColumnDesc".into()),
            DataType::Record => return Err(Error::unsupported(format!("column {}: arrays of records", self.name))),
        };
        let class = if self.kind == ColumnKind::Scalar { "Scalar" } else { "Array" };
        Ok(format!("{class}ColumnDesc<{element:8}"))
    }

    /// Whether the cells of the column are arrays that the data manager stores like scalars, not in
    /// a separate array file.
    pub fn is_direct(&self) -> bool {
        self.kind == ColumnKind::Array && self.options & DIRECT != 0
    }

    /// Whether all cells of the array column have the same shape (option FixedShape or Direct).
    pub fn is_fixed_shape(&self) -> bool {
        self.kind == ColumnKind::Array && self.options & (FIXED_SHAPE | DIRECT) != 0
    }
}

fn expect_version(d: &mut Decoder<'_>, what: &str) -> Result<()> {
    match d.u32("version")? {
        1 => Ok(()),
        version => Err(d.error(format!("{what} version {version}, only 1 exists"))),
    }
}
