"""Tables by the methods of `casacore.tables`, for programs that read with python-casacore.

    from h5bridge.casacore import table

    t = table("my.ms")
    t.getcol("DATA", 0, 100).shape          # (row, chan, corr)
    table("my.ms::ANTENNA").getcol("NAME")

The results are those of python-casacore 3.8: arrays, lists of strings, `{"shape": …, "array": …}` for strings with
several axes, False for undefined cells in `getvarcol`. Tables in containers and native HDF5 files are read likewise.
Nothing can be written, and there is no TaQL: those methods raise `UnsupportedError`. All other errors are `TableError`,
a `RuntimeError` as in python-casacore. docs/howto/casacore.md says what is there.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from ._column import Column
from ._errors import Error, UnsupportedError, UsageError
from ._indexing import wanted
from ._table import Table, open_table

__all__ = ["TableError", "table", "tablecolumn", "tablerow", "taql"]

_PREFIX = "Table: "
_DIRECT, _FIXED_SHAPE = 1, 4


class TableError(Error, RuntimeError):
    """What python-casacore raises as RuntimeError: no such table, column, keyword, row or cell."""


class _Failing:
    """Errors of the library become `TableError`s, but `UnsupportedError`, which is a RuntimeError already."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (TableError, UnsupportedError)) or not isinstance(error, Error):
            return
        wrapped = TableError(str(error))
        wrapped.kind, wrapped.code = error.kind, error.code
        raise wrapped from error


def taql(*_: object, **__: object) -> NoReturn:
    """There is no TaQL here."""
    raise UnsupportedError("TaQL is not supported: h5bridge.casacore reads tables; select with numpy or xarray")


class table:
    """A table, open for reading."""

    def __init__(
        self,
        tablename: str | os.PathLike[str] | Sequence[str],
        tabledesc: Any = False,
        nrow: int = 0,
        readonly: bool = True,
        lockoptions: Any = "default",
        ack: bool = True,
        dminfo: Any = None,
        endian: str = "aipsrc",
        memorytable: bool = False,
        concatsubtables: Sequence[str] = (),
    ) -> None:
        """`tablename` may lead to a subtable: `my.ms::ANTENNA`. `lockoptions` that read without a lock (`autonoread`,
        `usernoread`) are heeded; the others lock for reading."""
        if isinstance(tablename, (list, tuple)):
            raise UnsupportedError("several tables cannot be opened as one: open each, and concatenate the arrays")
        if tabledesc or memorytable or not readonly:
            raise UnsupportedError("tables cannot be made or written: h5bridge.casacore reads them")
        option = lockoptions.get("option", "default") if isinstance(lockoptions, dict) else lockoptions
        self._locks = "noread" not in str(option)
        # python-casacore gives the name of a subtable as the keyword has it
        parts = os.fspath(tablename).removeprefix(_PREFIX).split("::")  # type: ignore[arg-type]
        path = os.path.abspath(os.path.expanduser(parts[0]))
        with _Failing():
            self._table: Table = open_table(path, lock=self._locks)
            for part in parts[1:]:
                found = _subtable_path(self._table, part)
                if found is None:
                    raise TableError(f"{path}: no subtable {part}")
                self._table.close()
                path = found
                self._table = open_table(path, lock=self._locks)
        self._path = path
        self._has_changed = True
        if ack:
            print(f"{path}: open for reading, {self.ncols()} columns, {self.nrows()} rows")

    # the table

    def close(self) -> None:
        """Gives back the lock and all files."""
        self._table.close()

    done = close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._table.nrows

    def __str__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"<h5bridge.casacore.table {self._path}: {self.ncols()} columns, {self.nrows()} rows>"

    def name(self) -> str:
        """The absolute path."""
        return self._path

    def nrows(self) -> int:
        """The number of rows."""
        return self._table.nrows

    def ncols(self) -> int:
        """The number of columns."""
        return len(self._table)

    def colnames(self) -> list[str]:
        """The names of the columns."""
        return list(self._table)

    def info(self) -> dict[str, str]:
        """`type`, `subType` and `readme`."""
        return {"type": self._table.type, "subType": self._table.subtype, "readme": self._table.readme}

    def partnames(self, recursive: bool = False) -> list[str]:
        """The tables that this one is made of; its own name of a plain table."""
        parts = [os.path.abspath(part) for part in self._table._known.get("parts", ())]
        if not parts or self._table.kind in ("plain", "native"):
            return [self._path]
        if not recursive:
            return parts
        return [name for part in parts for name in table(part, ack=False).partnames(True)]

    def endianformat(self) -> str:
        """`little` or `big`; `little` of a native HDF5 file."""
        return str(self._table._known.get("byte_order", "little"))

    def iswritable(self) -> bool:
        """False."""
        return False

    def ismultiused(self, checksubtables: bool = False) -> bool:
        """False: other programs are not looked for."""
        return False

    def haslock(self, write: bool = True) -> bool:
        """Whether the table is locked by this object; it never is for writing."""
        return not write and self._locks

    def lockoptions(self) -> dict[str, Any]:
        """As python-casacore opens by default."""
        return {"option": "auto" if self._locks else "autonoread", "interval": 5.0, "maxwait": 0}

    def lock(self, write: bool = True, nattempts: int = 0) -> None:
        """Nothing for reading, which has its lock."""
        if write:
            self._refuse("lock for writing")

    def unlock(self) -> None:
        """Nothing: the lock is given back by `close`."""

    def flush(self, recursive: bool = False) -> None:
        """Nothing."""

    def resync(self) -> None:
        """Opens the table again, to see what was written since."""
        self._table.close()
        with _Failing():
            self._table = open_table(self._path, lock=self._locks)
        self._has_changed = True

    def datachanged(self) -> bool:
        """True the first time, and after `resync`."""
        changed, self._has_changed = self._has_changed, False
        return changed

    def setmaxcachesize(self, columnname: str, nbytes: int) -> None:
        """Nothing: caches are small and look after themselves."""

    def rownumbers(self, table: Any = None) -> list[int]:
        """The numbers of the rows, of a table that is no selection of another."""
        if table is not None or self._table.kind not in ("plain", "native"):
            self._refuse("row numbers of selections")
        return list(range(self.nrows()))

    # rows and columns as objects

    def __getattr__(self, name: str) -> Any:
        """A column, a keyword, or a subtable: `t.DATA`, `t.MS_VERSION`, `t.ANTENNA`; `t.keys` are all keywords."""
        if name.startswith("_") and name != "_":
            raise AttributeError(name)
        if name in self._table:
            return tablecolumn(self, name)
        keywords = self.getkeywords()
        if name in keywords:
            value = keywords[name]
            if isinstance(value, str) and value.startswith(_PREFIX):
                return table(value, ack=False, lockoptions="auto" if self._locks else "autonoread")
            return value
        if name in ("_", "keys"):
            return keywords
        raise AttributeError(f"{self._path} has no column or keyword {name}")

    def __getitem__(self, key: int | slice) -> Any:
        """A row as a dict, or a list of rows."""
        return tablerow(self)[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(tablerow(self))

    def col(self, columnname: str) -> tablecolumn:
        """A column."""
        return tablecolumn(self, columnname)

    def row(self, columnnames: str | Sequence[str] = (), exclude: bool = False) -> tablerow:
        """Rows of some columns, or of all but some."""
        return tablerow(self, columnnames, exclude)

    # cells

    def _column(self, columnname: str) -> Column:
        try:
            return self._table[columnname]
        except KeyError as error:
            raise TableError(str(error.args[0])) from None

    def _row(self, columnname: str, rownr: int) -> Column:
        column = self._column(columnname)
        if not 0 <= operator.index(rownr) < self.nrows():
            raise TableError(f"{self._path}: no row {rownr}; there are {self.nrows()}")
        return column

    def _rows(self, startrow: int, nrow: int, rowincr: int) -> slice:
        rows = self.nrows()
        if not 0 <= startrow <= rows or (startrow == rows and nrow > 0):
            raise TableError(f"{self._path}: no row {startrow}; there are {rows}")
        if rowincr <= 0:
            raise TableError(f"rows go on by 1 or more, not by {rowincr}")
        left = -(-(rows - startrow) // rowincr)
        count = left if nrow < 0 else min(nrow, left)
        return slice(startrow, startrow + (count - 1) * rowincr + 1 if count else startrow, rowincr)

    def iscelldefined(self, columnname: str, rownr: int) -> bool:
        """Whether a cell has a value."""
        with _Failing():
            return bool(self._row(columnname, rownr).defined([rownr])[0])

    def getcell(self, columnname: str, rownr: int) -> Any:
        """A cell: a number, bool or string, or an array; strings as described above."""
        with _Failing():
            column = self._row(columnname, rownr)
            cell = column.cell(rownr)
            if cell is None:
                raise TableError(f"{self._path}: column {columnname}: the cell in row {rownr} is undefined")
            if column.is_scalar:
                return cell if isinstance(cell, (str, dict)) else cell.item()
            return _strings(cell) if column.type == "string" else _widened(cell)

    def getcellslice(
        self, columnname: str, rownr: int, blc: Sequence[int], trc: Sequence[int], inc: Sequence[int] = ()
    ) -> Any:
        """A part of a cell: from `blc` to `trc`, both included, in steps of `inc`; -1 is the first or last."""
        cell = self.getcell(columnname, rownr)
        if self.isscalarcol(columnname):
            raise TableError(f"{self._path}: column {columnname} has scalars, which have no parts")
        array = _array(cell)
        part = array[_box(array.shape, blc, trc, inc)]
        return _strings(part) if array.dtype == object else part.copy()

    def getcol(self, columnname: str, startrow: int = 0, nrow: int = -1, rowincr: int = 1) -> Any:
        """The cells of rows as an array, `(row, …)`; all must be defined, of one shape. Scalar strings are a list."""
        return self._many(columnname, self._rows(startrow, nrow, rowincr), None)

    def getcolslice(
        self,
        columnname: str,
        blc: Sequence[int],
        trc: Sequence[int],
        inc: Sequence[int] = (),
        startrow: int = 0,
        nrow: int = -1,
        rowincr: int = 1,
    ) -> Any:
        """The same part of each cell: see `getcellslice`."""
        if self.isscalarcol(columnname):
            raise TableError(f"{self._path}: column {columnname} has scalars, which have no parts")
        return self._many(columnname, self._rows(startrow, nrow, rowincr), (blc, trc, inc))

    def _many(self, columnname: str, rows: slice, part: tuple[Any, Any, Any] | None) -> Any:
        column = self._column(columnname)
        if column.type == "record":
            self._refuse("columns of records")
        if rows.start == rows.stop:
            return [] if column.type == "string" else _widened(np.empty(0, column.dtype))
        with _Failing():
            found = column.read(rows) if part is None else self._parts(column, rows, part)
        return _strings(found) if column.type == "string" else _widened(found)

    def _parts(self, column: Column, rows: slice, part: tuple[Any, Any, Any]) -> npt.NDArray[Any]:
        """A part of each cell, also of cells whose shapes differ if the parts have one."""
        taken = wanted(rows, (self.nrows(),)).rows
        try:
            shape = column._cell_shape_of(taken, False)
        except UsageError:
            # as in casacore, the first cell says where the last element is
            cells = [_array(self.getcell(column.name, int(row))) for row in taken]
            box = _box(cells[0].shape, *part)
            shapes = {cell[box].shape if cell.ndim == len(box) else None for cell in cells}
            if len(shapes) > 1 or any(
                part.stop > extent for cell in cells for part, extent in zip(box, cell.shape, strict=True)
            ):
                raise
            return np.stack([cell[box] for cell in cells])
        found: npt.NDArray[Any] = column.read((rows, *_box(shape, *part)))
        return found

    def getvarcol(self, columnname: str, startrow: int = 0, nrow: int = -1, rowincr: int = 1) -> dict[str, Any]:
        """The cells of rows one by one, by the keys `r1`, `r2` …: each an array with an axis of length 1 in front;
        False where a cell is undefined."""
        rows = self._rows(startrow, nrow, rowincr)
        column = self._column(columnname)
        if column.type == "record" and rows.start < rows.stop:
            self._refuse("columns of records")
        found: dict[str, Any] = {}
        with _Failing():
            for number, cell in zip(range(rows.start, rows.stop, rowincr), column.cells(rows), strict=True):
                value: Any = False
                if cell is not None:
                    array = np.empty(1, object) if column.is_scalar and column.type == "string" else np.asarray([cell])
                    if column.is_scalar and column.type == "string":
                        array[0] = cell
                    elif column.is_scalar:
                        array = array.astype(column.dtype)
                    value = _strings(array) if column.type == "string" else _widened(array)
                found[f"r{number + 1}"] = value
        return found

    def getcolnp(
        self, columnname: str, nparray: npt.NDArray[Any], startrow: int = 0, nrow: int = -1, rowincr: int = 1
    ) -> None:
        """As `getcol`, into an array of the right shape."""
        self._fill(nparray, self._rows_into(columnname, nparray, startrow, nrow, rowincr))

    def getcolslicenp(
        self,
        columnname: str,
        nparray: npt.NDArray[Any],
        blc: Sequence[int],
        trc: Sequence[int],
        inc: Sequence[int] = (),
        startrow: int = 0,
        nrow: int = -1,
        rowincr: int = 1,
    ) -> None:
        """As `getcolslice`, into an array of the right shape."""
        self._fill(nparray, self.getcolslice(columnname, blc, trc, inc, startrow, nrow, rowincr))

    def getcellnp(self, columnname: str, rownr: int, nparray: npt.NDArray[Any]) -> None:
        """As `getcell`, into an array of the right shape."""
        self._fill(nparray, self.getcell(columnname, rownr))

    def getcellslicenp(
        self,
        columnname: str,
        nparray: npt.NDArray[Any],
        rownr: int,
        blc: Sequence[int],
        trc: Sequence[int],
        inc: Sequence[int] = (),
    ) -> None:
        """As `getcellslice`, into an array of the right shape."""
        self._fill(nparray, self.getcellslice(columnname, rownr, blc, trc, inc))

    def _rows_into(self, columnname: str, out: npt.NDArray[Any], startrow: int, nrow: int, rowincr: int) -> Any:
        column = self._column(columnname)
        rows = self._rows(startrow, nrow, rowincr)
        fits = out.dtype == column.dtype and out.flags.c_contiguous and out.flags.writeable and rows.start != rows.stop
        if column.type in ("string", "record") or not fits:
            return self.getcol(columnname, startrow, nrow, rowincr)
        with _Failing():
            shape = column._cell_shape_of(wanted(rows, (self.nrows(),)).rows, False)
            count = len(range(rows.start, rows.stop, rows.step))
            if out.shape != (count, *shape):
                raise TableError(f"the array has shape {out.shape}, what is read {(count, *shape)}")
            # straight to the memory of the array
            column.read(rows, out=out)
        return out

    @staticmethod
    def _fill(out: npt.NDArray[Any], found: Any) -> None:
        if not isinstance(out, np.ndarray) or not out.flags.writeable:
            raise TableError("a numpy array that can be written to is needed")
        if found is out:
            return
        array = _array(found)
        if array.shape != out.shape:
            raise TableError(f"the array has shape {out.shape}, what is read {array.shape}")
        out[...] = array

    # descriptions

    def isscalarcol(self, columnname: str) -> bool:
        """Whether the cells are scalars."""
        return self._column(columnname).is_scalar

    def isvarcol(self, columnname: str) -> bool:
        """Whether the cells are arrays whose shapes may differ."""
        column = self._column(columnname)
        return not column.is_scalar and not column._known["options"] & _FIXED_SHAPE

    def coldatatype(self, columnname: str) -> str:
        """`boolean`, `uchar`, `short`, `ushort`, `int`, `uint`, `int64`, `float`, `double`, `complex`, `dcomplex`,
        `string` or `record`."""
        return self._column(columnname).type

    def colarraytype(self, columnname: str) -> str:
        """How the arrays of a column are kept: `Direct, fixed sized arrays` and so on."""
        column = self._column(columnname)
        if column.is_scalar:
            raise TableError(f"{self._path}: column {columnname} is a scalar column")
        options = column._known["options"]
        direct = "Direct" if options & _DIRECT else "Indirect"
        return f"{direct}, {'fixed' if options & _FIXED_SHAPE else 'variable'} sized arrays"

    def getcolshapestring(
        self, columnname: str, startrow: int = 0, nrow: int = -1, rowincr: int = 1, reverseaxes: bool = False
    ) -> list[str]:
        """The shape of each cell as text, `[chan, corr]`; only one if all have the same by description."""
        column = self._column(columnname)
        if column.is_scalar:
            raise TableError(f"{self._path}: column {columnname} has scalars")
        rows = self._rows(startrow, nrow, rowincr)
        if not self.isvarcol(columnname):
            return [_text(column._known["shape"] or (), reverseaxes)]
        with _Failing():
            shapes, defined = column.shapes(rows), column.defined(rows)
        if not defined.all():
            row = range(rows.start, rows.stop, rows.step)[int(np.flatnonzero(~defined)[0])]
            raise TableError(f"{self._path}: column {columnname}: the cell in row {row} is undefined")
        return [_text([int(extent) for extent in shape if extent >= 0], reverseaxes) for shape in shapes]

    def getcoldesc(self, columnname: str, actual: bool = True) -> dict[str, Any]:
        """The description of a column."""
        self._check_actual(actual)
        known = self._column(columnname)._known
        found: dict[str, Any] = {
            "valueType": known["type"],
            "dataManagerType": known["manager"],
            "dataManagerGroup": known["manager_name"],
            "option": known["options"],
            "maxlen": known["max_length"],
            "comment": known["comment"],
        }
        if not known["scalar"]:
            found["ndim"] = known["ndim"]
            if known["shape"] is not None and known["options"] & _FIXED_SHAPE:
                found["ndim"] = len(known["shape"])
                found["shape"] = np.array(known["shape"], np.int64)
            found["_c_order"] = True
        found["keywords"] = self._like_casacore(known["keywords"])
        return found

    def coldesc(self, columnname: str, actual: bool = True) -> dict[str, Any]:
        """Name and description of a column, as python-casacore wants them for a table description."""
        return {"name": columnname, "desc": self.getcoldesc(columnname, actual)}

    def getdesc(self, actual: bool = True) -> dict[str, Any]:
        """The descriptions of all columns, and the keywords. Hypercolumn definitions are not known, and left empty."""
        self._check_actual(actual)
        found: dict[str, Any] = {name: self.getcoldesc(name) for name in self._table}
        found["_define_hypercolumn_"] = {}
        found["_keywords_"] = self.getkeywords()
        found["_private_keywords_"] = self._like_casacore(self._table.private_keywords)
        return found

    def getdminfo(self, columnname: str | None = None) -> dict[str, Any]:
        """The data managers by `*1`, `*2` …, with the columns of each; or that of a column. None of native files."""
        listed, numbered = self._managers()
        found: dict[str, dict[str, Any]] = {}
        for number, manager in enumerate(listed):
            own = sorted(name for name, of in numbered.items() if of == number)
            info: dict[str, Any] = {
                "TYPE": manager["type"].rstrip(),
                "NAME": manager["name"],
                "SEQNR": manager["sequence"],
            }
            info["SPEC"] = self._like_casacore(_of_casacore(manager["parameters"]))
            if columnname is not None and columnname in own:
                return info
            if own:
                found[f"*{len(found) + 1}"] = {**info, "COLUMNS": own}
        if columnname is not None:
            self._column(columnname)
            self._refuse("data managers of native files")
        return found

    def _managers(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The data managers, and the number of that of each column; those of a view are its first part's."""
        columns = self._table._known["columns"]
        if self._table.kind in ("plain", "native"):
            return self._table.managers, {column["name"]: column.get("manager_number") for column in columns}
        with table(self.partnames(True)[0], ack=False, lockoptions="auto" if self._locks else "autonoread") as part:
            listed = part._table.managers
        # a column of a view may have a name of its own
        keys = [(manager["type"].rstrip(), manager["name"]) for manager in listed]
        named = {column["name"]: (column["manager"].rstrip(), column["manager_name"]) for column in columns}
        return listed, {name: keys.index(key) for name, key in named.items() if key in keys}

    @staticmethod
    def _check_actual(actual: bool) -> None:
        if not actual:
            raise UnsupportedError("only the actual description is known")

    # keywords

    def getkeywords(self) -> dict[str, Any]:
        """The table keywords; subtables are strings, `Table: /path/my.ms/ANTENNA`."""
        return self._like_casacore(self._table.keywords)

    def getcolkeywords(self, columnname: str) -> dict[str, Any]:
        """The keywords of a column."""
        return self._like_casacore(self._column(columnname).keywords)

    def getkeyword(self, keyword: str | int) -> Any:
        """A keyword by name or number; `outer.inner` is one in a record."""
        return _keyword(self.getkeywords(), keyword, self._path)

    def getcolkeyword(self, columnname: str, keyword: str | int) -> Any:
        """A keyword of a column."""
        return _keyword(self.getcolkeywords(columnname), keyword, f"{self._path}: column {columnname}")

    def keywordnames(self) -> list[str]:
        """The names of the table keywords."""
        return list(self._table.keywords)

    def colkeywordnames(self, columnname: str) -> list[str]:
        """The names of the keywords of a column."""
        return list(self._column(columnname).keywords)

    def fieldnames(self, keyword: str = "") -> list[str]:
        """The names of the fields of a keyword that is a record; without one, those of the keywords."""
        return _fields(self.getkeywords(), keyword, self._path)

    def colfieldnames(self, columnname: str, keyword: str = "") -> list[str]:
        """The names of the fields of a keyword of a column."""
        return _fields(self.getcolkeywords(columnname), keyword, f"{self._path}: column {columnname}")

    def getsubtables(self) -> list[str]:
        """The paths of the subtables."""
        values = self.getkeywords().values()
        return [value[len(_PREFIX) :] for value in values if isinstance(value, str) and value.startswith(_PREFIX)]

    def _like_casacore(self, record: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in record.items():
            if isinstance(value, dict):
                value = self._like_casacore(value)
            elif isinstance(value, np.ndarray):
                value = _strings(value) if value.dtype == object else _widened(value)
            elif isinstance(value, str) and value.startswith(_PREFIX):
                value = _PREFIX + _resolved(self._table, self._path, name, value[len(_PREFIX) :])
            found[name] = value
        return found

    # what only python-casacore can do

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(f"{self._path}: {what}: not supported: h5bridge.casacore only reads")


def _refusing(name: str, what: str) -> Any:
    def method(self: table, *_: object, **__: object) -> NoReturn:
        self._refuse(what)

    method.__name__ = name
    method.__doc__ = "Raises `UnsupportedError`: tables are only read."
    return method


_WRITING = (
    "addcols addreadmeline addrows copy copyrows putcell putcellslice putcol putcolkeyword putcolkeywords putcolslice "
    "putinfo putkeyword putkeywords putvarcol removecolkeyword removecols removekeyword removerows rename renamecol "
    "setdmprop"
)
_SELECTING = "browse calc getdmprop index iter query select selectrows showstructure sort summary toascii view"
for _name in _WRITING.split():
    setattr(table, _name, _refusing(_name, f"{_name} writes"))
for _name in _SELECTING.split():
    setattr(table, _name, _refusing(_name, f"{_name} is a query or a view"))


def _of_casacore(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a data manager without what only this project keeps of TiledDataStMan."""
    cubes = parameters.get("HYPERCUBES")
    if not isinstance(cubes, dict):
        return parameters
    cubes = {
        name: {key: value for key, value in cube.items() if key != "Extensible"} if isinstance(cube, dict) else cube
        for name, cube in cubes.items()
    }
    return {key: cubes if key == "HYPERCUBES" else value for key, value in parameters.items() if key != "ROWMAP"}


class tablecolumn:
    """A column: the methods of `table` without the name of the column."""

    def __init__(self, table: table, columnname: str) -> None:
        table._column(columnname)
        self._table = table
        self._name = columnname

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def name(self) -> str:
        """The name."""
        return self._name

    def table(self) -> table:
        """The table."""
        return self._table

    def isscalar(self) -> bool:
        """Whether the cells are scalars."""
        return self._table.isscalarcol(self._name)

    def isvar(self) -> bool:
        """Whether the cells are arrays whose shapes may differ."""
        return self._table.isvarcol(self._name)

    def datatype(self) -> str:
        """The type of the elements."""
        return self._table.coldatatype(self._name)

    def arraytype(self) -> str:
        """How the arrays are kept."""
        return self._table.colarraytype(self._name)

    def nrows(self) -> int:
        """The number of rows."""
        return self._table.nrows()

    def getshapestring(self, startrow: int = 0, nrow: int = -1, rowincr: int = 1) -> list[str]:
        """See `table.getcolshapestring`."""
        return self._table.getcolshapestring(self._name, startrow, nrow, rowincr)

    def iscelldefined(self, rownr: int) -> bool:
        """See `table.iscelldefined`."""
        return self._table.iscelldefined(self._name, rownr)

    def getcell(self, rownr: int) -> Any:
        """See `table.getcell`."""
        return self._table.getcell(self._name, rownr)

    def getcellslice(self, rownr: int, blc: Sequence[int], trc: Sequence[int], inc: Sequence[int] = ()) -> Any:
        """See `table.getcellslice`."""
        return self._table.getcellslice(self._name, rownr, blc, trc, inc)

    def getcol(self, startrow: int = 0, nrow: int = -1, rowincr: int = 1) -> Any:
        """See `table.getcol`."""
        return self._table.getcol(self._name, startrow, nrow, rowincr)

    def getvarcol(self, startrow: int = 0, nrow: int = -1, rowincr: int = 1) -> dict[str, Any]:
        """See `table.getvarcol`."""
        return self._table.getvarcol(self._name, startrow, nrow, rowincr)

    def getcolslice(
        self,
        blc: Sequence[int],
        trc: Sequence[int],
        inc: Sequence[int] = (),
        startrow: int = 0,
        nrow: int = -1,
        rowincr: int = 1,
    ) -> Any:
        """See `table.getcolslice`."""
        return self._table.getcolslice(self._name, blc, trc, inc, startrow, nrow, rowincr)

    def keywordnames(self) -> list[str]:
        """See `table.colkeywordnames`."""
        return self._table.colkeywordnames(self._name)

    def fieldnames(self, keyword: str = "") -> list[str]:
        """See `table.colfieldnames`."""
        return self._table.colfieldnames(self._name, keyword)

    def getkeyword(self, keyword: str | int) -> Any:
        """See `table.getcolkeyword`."""
        return self._table.getcolkeyword(self._name, keyword)

    def getkeywords(self) -> dict[str, Any]:
        """See `table.getcolkeywords`."""
        return self._table.getcolkeywords(self._name)

    def getdesc(self) -> dict[str, Any]:
        """See `table.getcoldesc`."""
        return self._table.getcoldesc(self._name)

    def getdminfo(self) -> dict[str, Any]:
        """See `table.getdminfo`."""
        return self._table.getdminfo(self._name)

    def __len__(self) -> int:
        return self.nrows()

    def __getitem__(self, key: int | slice) -> Any:
        found = _chosen(key, self.nrows())
        return self.getcell(found) if isinstance(found, int) else [self.getcell(row) for row in found]

    def __iter__(self) -> Iterator[Any]:
        return (self.getcell(row) for row in range(self.nrows()))

    def __getattr__(self, name: str) -> Any:
        """A keyword of the column; `keys` are all of them."""
        if name.startswith("_") and name != "_":
            raise AttributeError(name)
        keywords = self.getkeywords()
        if name in keywords:
            return keywords[name]
        if name in ("_", "keys"):
            return keywords
        if name in ("index", "iter") or name.startswith(("put", "remove")):
            return lambda *_, **__: self._table._refuse(f"{name} of a column")
        raise AttributeError(f"column {self._name} has no keyword {name}")


class tablerow:
    """Rows as dicts of cells by the names of columns."""

    def __init__(self, table: table, columnnames: str | Sequence[str] = (), exclude: bool = False) -> None:
        named = [columnnames] if isinstance(columnnames, str) else list(columnnames)
        for name in named:
            table._column(name)
        if exclude or not named:
            named = [name for name in table.colnames() if name not in named]
        self._table = table
        self._names = [name for name in named if table.coldatatype(name) != "record"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __len__(self) -> int:
        return self._table.nrows()

    def iswritable(self) -> bool:
        """False."""
        return False

    def get(self, rownr: int) -> dict[str, Any]:
        """The cells of a row. An undefined one is an array without elements, as in casacore."""
        found: dict[str, Any] = {}
        for name in self._names:
            column = self._table._row(name, rownr)
            if self._table.iscelldefined(name, rownr):
                found[name] = self._table.getcell(name, rownr)
            else:
                axes = max(column._known["ndim"], 0)
                if column.type == "string":
                    found[name] = [] if axes == 1 else {"shape": [0] * axes, "array": []}
                else:
                    found[name] = _widened(np.empty((0,) * max(axes, 1), column.dtype))
        return found

    def put(self, *_: object, **__: object) -> NoReturn:
        """Raises `UnsupportedError`: tables are only read."""
        self._table._refuse("put writes")

    def __getitem__(self, key: int | slice) -> Any:
        found = _chosen(key, len(self))
        return self.get(found) if isinstance(found, int) else [self.get(row) for row in found]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.get(row) for row in range(len(self)))


def _chosen(key: int | slice, rows: int) -> int | range:
    if isinstance(key, slice):
        return range(*key.indices(rows))
    row = operator.index(key)
    if not -rows <= row < rows:
        raise IndexError(f"no row {row}; there are {rows}")
    return row % rows


def _strings(array: npt.NDArray[Any]) -> Any:
    """Strings as python-casacore has them: a list of one axis, else a dict with their shape."""
    if array.ndim == 1:
        return array.tolist()
    return {"shape": list(array.shape), "array": array.ravel().tolist()}


def _widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """uChar arrays are uint16 in python-casacore."""
    return array.astype(np.uint16) if array.dtype == np.uint8 else array


def _array(found: Any) -> npt.NDArray[Any]:
    """The inverse of `_strings`; others as they are."""
    if isinstance(found, dict):
        return np.array(found["array"], object).reshape(found["shape"])
    return np.array(found, object) if isinstance(found, list) else np.asarray(found)


def _box(shape: Sequence[int], blc: Sequence[int], trc: Sequence[int], inc: Sequence[int]) -> tuple[slice, ...]:
    axes = len(shape)
    # anything that has elements: python-casacore takes arrays as well
    first, last = list(blc), list(trc)
    steps = list(inc) or [1] * axes
    if not len(first) == len(last) == len(steps) == axes:
        raise TableError(f"cells have {axes} axes: blc, trc and inc need as many numbers")
    box = []
    for extent, low, high, step in zip(shape, first, last, steps, strict=True):
        low, high = max(low, 0), extent - 1 if high < 0 else high
        if high >= extent or low > high or step < 1:
            raise TableError(f"from {low} to {high} in steps of {step} is no part of an axis of {extent}")
        box.append(slice(int(low), int(high) + 1, int(step)))
    return tuple(box)


def _text(shape: Sequence[int], reverse: bool) -> str:
    extents = list(shape)[::-1] if reverse else list(shape)
    return f"[{', '.join(str(extent) for extent in extents)}]"


def _keyword(keywords: dict[str, Any], keyword: str | int, place: str) -> Any:
    if isinstance(keyword, int):
        if not 0 <= keyword < len(keywords):
            raise TableError(f"{place}: no keyword {keyword}; there are {len(keywords)}")
        return list(keywords.values())[keyword]
    found: Any = keywords
    for part in keyword.split("."):
        if not isinstance(found, dict) or part not in found:
            raise TableError(f"{place}: no keyword {keyword}")
        found = found[part]
    return found


def _fields(keywords: dict[str, Any], keyword: str, place: str) -> list[str]:
    found = _keyword(keywords, keyword, place) if keyword else keywords
    if not isinstance(found, dict):
        raise TableError(f"{place}: keyword {keyword} is no record")
    return list(found)


def _subtable_path(of: Table, keyword: str) -> str | None:
    value = of.keywords.get(keyword)
    if not isinstance(value, str) or not value.startswith(_PREFIX):
        return None
    return _resolved(of, of.path, keyword, value[len(_PREFIX) :])


def _resolved(of: Table, path: str, keyword: str, stored: str) -> str:
    """The absolute path of a subtable: `./` is beside the table that names it, `././` inside."""
    if of.kind == "native":
        return os.path.join(path, keyword)
    if of.kind == "reference":
        # the keywords of a reference table are those of the table that it refers to
        path = os.path.abspath(of._known["parts"][0])
    if stored.startswith("././"):
        return os.path.normpath(os.path.join(path, stored[4:]))
    if stored.startswith("./"):
        return os.path.normpath(os.path.join(os.path.dirname(path), stored[2:]))
    return os.path.normpath(os.path.join(path, stored))
