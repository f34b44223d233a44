//! The description of a column in `table.dat`: name, type, shape, keywords. formats/table.md 2.3.

use bstr::{BString, ByteSlice};

use crate::aipsio::{Decoder, Encoder};
use crate::error::{Context, Error, Result, ResultExt};
use crate::value::{DataType, Element, Record, Shape, TABLE_CODE, Value, Values};

/// Kind of the cells of a column: scalars (records included) or arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Each cell of the column is one element; records count as elements.
    Scalar,
    /// Each cell of the column is an array.
    Array,
}

/// The cells of a column that can be described only: its name and keywords are known.
/// formats/table.md 2.3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    /// Objects of the C++ class with this name, by a virtual column engine of the class's author;
    /// data type 26, casacore's `TpOther`.
    Objects(BString),
    /// Tables: casacore's class `SubTableDesc`, data type 12, which casacore describes and does not
    /// store.
    Tables,
}

impl Foreign {
    const OBJECTS_CODE: i32 = 26;

    /// Casacore's name of the data type, in lower case.
    pub fn name(&self) -> &'static str {
        match self {
            Foreign::Objects(_) => "other",
            Foreign::Tables => "table",
        }
    }

    /// The error of reading the cells.
    pub(crate) fn refusal(&self) -> Error {
        Error::unsupported(match self {
            Foreign::Objects(class) => format!("objects of the C++ class {class} are not read"),
            Foreign::Tables => {
                "the cells are tables (class SubTableDesc), which casacore describes and does not store".to_owned()
            }
        })
    }
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
/// | data_type     | i32           | code of the element, or of a [`Foreign`] |
/// | options       | i32           | 1 Direct, 2 Undefined, 4 FixedShape    |
/// | ndim          | i32           | 0 scalar, -1 free                      |
/// | shape         | `IPosition`   | arrays and subtables                   |
/// | max_length    | u32           |                                        |
/// | keywords      | `TableRecord` |                                        |
/// | class format  | u32 = 1       |                                        |
/// | default       | element       | scalars; arrays: a Bool, always False  |
/// | table         | string, Bool, `TableDesc` | subtables; the last if the Bool is False |
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
    /// The type of the elements of the column's cells; [`Record`](DataType::Record) if they are
    /// `foreign`.
    pub data_type: DataType,
    /// Cells that are not of a type of casacore's: no program without their class can read them.
    /// `None` for every other column.
    pub foreign: Option<Foreign>,
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
            foreign: None,
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
const SUBTABLE: &str = "SubTableDesc";

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
        let (kind, element) = match class.split_once_str("<") {
            Some((b"ScalarColumnDesc", element)) => (ColumnKind::Scalar, element),
            Some((b"ArrayColumnDesc", element)) => (ColumnKind::Array, element),
            None if class == "ScalarRecordColumnDesc" || class == SUBTABLE => (ColumnKind::Scalar, &b""[..]),
            _ => {
                return Err(Error::unsupported(format!("column {name:?} of class {class:?} is not supported"))
                    .context(Context::offset("TableDesc", start)));
            }
        };
        let is_subtable = class == SUBTABLE;
        let foreign = match code {
            TABLE_CODE if is_subtable => Some(Foreign::Tables),
            Foreign::OBJECTS_CODE if !element.is_empty() => Some(Foreign::Objects(element.trim_ascii().into())),
            _ => None,
        };
        let data_type = match foreign {
            Some(_) => Some(DataType::Record),
            None => DataType::from_code(code).filter(|_| !is_subtable),
        };
        let data_type = data_type
            .ok_or_else(|| d.error(format!("column {name:?}: data type code {code}, which no column can have")))?;
        let shape = if kind == ColumnKind::Array || is_subtable { d.shape("column shape")? } else { Shape::scalar() };
        let max_length = d.u32("maximum string length")?;
        let keywords = d.record()?;
        expect_version(d, "column class")?;
        let default = match (kind, &foreign) {
            (_, Some(Foreign::Tables)) => skip_table(d).map(|()| None)?,
            (ColumnKind::Array, _) => d.bool("default").map(|_| None)?,
            // records and objects have no default
            (ColumnKind::Scalar, _) if data_type == DataType::Record => None,
            (ColumnKind::Scalar, _) => Some(d.values("default", data_type, 1)?),
        };
        Ok(ColumnDesc {
            name,
            comment,
            manager_type,
            manager_group,
            data_type,
            foreign,
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
        self.check_class().context(Context::column(&self.name))?;
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

    /// Type of the elements by python-casacore's names: that of `data_type`, or `other` and `table`
    /// of `foreign` cells.
    pub fn type_name(&self) -> &'static str {
        self.foreign.as_ref().map_or(self.data_type.name(), Foreign::name)
    }

    /// Fails if the cells are `foreign`.
    pub(crate) fn check_class(&self) -> Result<()> {
        self.foreign.as_ref().map_or(Ok(()), |foreign| Err(foreign.refusal()))
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

/// The description of the tables in a column, or only its name.
fn skip_table(d: &mut Decoder<'_>) -> Result<()> {
    d.string("name of the table description")?;
    if d.bool("by name")? {
        return Ok(());
    }
    d.start("TableDesc", 1..=2)?;
    d.skip("TableDesc", d.remaining())?;
    d.end()
}

fn expect_version(d: &mut Decoder<'_>, what: &str) -> Result<()> {
    match d.u32("version")? {
        1 => Ok(()),
        version => Err(d.error(format!("{what} version {version}, only 1 exists"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};
    use crate::io::ByteOrder;
    use crate::schema::TableDesc;

    /// Up to the keywords, which are none.
    fn begin(e: &mut Encoder, class: &str, name: &str, code: i32, ndim: i32, shape: Option<&[u64]>) {
        e.u32(1);
        e.string(class);
        e.u32(1);
        for text in [name, "", "StandardStMan", "StandardStMan"] {
            e.string(text);
        }
        for number in [code, 0, ndim] {
            e.i32(number);
        }
        if let Some(shape) = shape {
            e.shape(&Shape::from(shape));
        }
        e.u32(0);
        e.record("TableRecord", &Record::default()).unwrap();
        e.u32(1);
    }

    fn table(count: u32, columns: impl FnOnce(&mut Encoder)) -> Result<TableDesc> {
        let mut e = Encoder::new(ByteOrder::Big);
        e.start("TableDesc", 2);
        for _ in 0..3 {
            e.string("");
        }
        for _ in 0..2 {
            e.record("TableRecord", &Record::default()).unwrap();
        }
        e.u32(count);
        columns(&mut e);
        e.end();
        let bytes = e.into_bytes();
        TableDesc::decode(&mut Decoder::new(&bytes, 0, ByteOrder::Big, "table.dat")?)
    }

    fn subtable(e: &mut Encoder, name: &str, by_name: bool) {
        begin(e, SUBTABLE, name, TABLE_CODE, 1, Some(&[]));
        e.string("inner");
        e.bool(by_name);
        if !by_name {
            let inner = TableDesc { columns: vec![ColumnDesc::scalar::<i32>("A")], ..TableDesc::default() };
            inner.encode(e).unwrap();
        }
    }

    #[test]
    fn columns_of_classes_leave_the_others_readable() {
        let found = table(6, |e| {
            subtable(e, "NESTED", false);
            ColumnDesc::scalar::<f64>("B").encode(e).unwrap();
            begin(e, "ScalarColumnDesc<Quaternion", "Q", 26, 0, None);
            begin(e, "ArrayColumnDesc<StokesVector", "V", 26, -1, Some(&[]));
            e.bool(false);
            subtable(e, "NAMED", true);
            ColumnDesc::array::<i32>("C").encode(e).unwrap();
        });
        let found = found.unwrap();
        let names: Vec<_> = found.columns.iter().map(|column| (column.name.to_string(), column.type_name())).collect();
        let expected = [("NESTED", "table"), ("B", "double"), ("Q", "other"), ("V", "other"), ("NAMED", "table")];
        assert!(
            names.iter().map(|(name, class)| (name.as_str(), *class)).eq(expected.into_iter().chain([("C", "int")]))
        );
        assert_eq!(found.columns[3].foreign, Some(Foreign::Objects("StokesVector".into())));
        assert_eq!([2, 3].map(|index: usize| found.columns[index].kind), [ColumnKind::Scalar, ColumnKind::Array]);
        for (index, words) in [(0, "casacore describes and does not store"), (2, "C++ class Quaternion are not read")] {
            let written = found.columns[index].encode(&mut Encoder::new(ByteOrder::Big));
            written.fails(ErrorKind::Unsupported, words);
        }
    }

    #[test]
    fn unknown_descriptions_are_refused() {
        let unknown = |class: &'static str, code| table(1, |e| begin(e, class, "X", code, 0, None));
        unknown("SparseColumnDesc", 5).fails(ErrorKind::Unsupported, "of class \"SparseColumnDesc\" is not supported");
        unknown(SUBTABLE, 5).fails(ErrorKind::Format, "data type code 5, which no column can have");
        unknown("ScalarColumnDesc<Char    ", 1).fails(ErrorKind::Format, "data type code 1, which no column can have");
    }
}
