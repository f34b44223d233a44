"""Tables and their columns, read into numpy arrays without casacore."""

from __future__ import annotations

import os
import warnings
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import _errors, _native
from ._indexing import Wanted, split, wanted

DTYPES = {
    "boolean": np.dtype(np.bool_),
    "uchar": np.dtype(np.uint8),
    "short": np.dtype(np.int16),
    "ushort": np.dtype(np.uint16),
    "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32),
    "int64": np.dtype(np.int64),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "complex": np.dtype(np.complex64),
    "dcomplex": np.dtype(np.complex128),
    "string": np.dtype(object),
    "record": np.dtype(object),
}

_CELLS_AT_ONCE = 4096


def open_table(
    path: str | os.PathLike[str],
    *,
    lock: bool = True,
    lock_timeout: float = 60.0,
    follow_external: bool = False,
) -> Table:
    """Opens a table for reading: a directory, a table in a container (`one.h5/ANTENNA`, `my.mfh5`), or one in a native
    HDF5 file (`my.h5` is its main table, `my.h5/ANTENNA` a subtable). Casacore and h5py are not needed.

    The table is locked for reading, as casacore does it, until it is closed: writers wait. `lock_timeout` is how long a
    writer is waited for, in seconds; `lock=False` takes no lock, for read-only media. `follow_external` reads elements
    that a native file keeps in other files below its own directory.

    Raises `NotFoundError` (a `FileNotFoundError`), `FormatError`, `LockedError`.

    >>> with open_table("my.ms") as table:
    ...     data = table["DATA"][:100]          # (row, chan, corr)
    """
    return Table(os.fspath(path), {"lock_timeout": lock_timeout if lock else None, "follow_external": follow_external})


class _Open:
    """The open file or directory that a table and its subtables share."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.path = path
        self.options = options
        self.native: _native.Source | None = _native.Source(path, **options)

    @property
    def source(self) -> _native.Source:
        if self.native is None:
            raise ValueError(f"{self.path} is closed")
        return self.native


class Table:
    """A table, open for reading; a context manager. It pickles as its path and how it was opened.

    `table["TIME"]` is a `Column`, which is read when it is indexed; `table.subtables["ANTENNA"]` a table.
    """

    def __init__(self, path: str, options: dict[str, Any], _open: _Open | None = None, _number: int = -1) -> None:
        self._open = _open if _open is not None else _Open(path, options)
        self._number = _number if _number >= 0 else self._open.source.table
        known = self._open.source.describe(self._number)
        self.path: str = path
        """Where it was opened."""
        self.rows: int = known["rows"]
        """The number of rows."""
        self.keywords: dict[str, Any] = known["keywords"]
        """The table keywords; one that names a subtable is the string `Table: ` and where it lies."""
        self.private_keywords: dict[str, Any] = known.get("private_keywords", {})
        """The keywords of the table description that casacore keeps for itself; none in native files."""
        self.type: str = known["type"]
        """What table.info says: `Measurement Set`."""
        self.subtype: str = known["subtype"]
        """What table.info says."""
        self.readme: str = known["readme"]
        """The lines of table.info after type and subtype."""
        self.kind: str = known.get("kind", "native")
        """`plain`, `reference`, `concatenation`, or `native`: in an HDF5 file."""
        self.managers: list[dict[str, Any]] = known.get("managers", [])
        """The data managers of a table that is not in an HDF5 file: type, name, sequence, parameters."""
        self._known = known
        self._columns = {column["name"]: number for number, column in enumerate(known["columns"])}
        self._subtables: _Subtables | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the table description."""
        return tuple(self._columns)

    @property
    def name(self) -> str:
        """`MAIN`, or the keywords that lead to the table: `ANTENNA`, `A/B`."""
        name = self._open.source.tables()[self._number][0]
        return "MAIN" if name == "." else name

    @property
    def subtables(self) -> Mapping[str, Table]:
        """The tables that this one's keywords name, by these names; each is opened when it is looked up.

        `items()` and `values()` leave out those that cannot be opened, and warn of each.
        """
        if self._subtables is None:
            self._subtables = _Subtables(self)
        return self._subtables

    @property
    def closed(self) -> bool:
        """Whether `close` was called, of this table or of one that it was opened with."""
        return self._open.native is None

    def close(self) -> None:
        """Gives back the lock and all files, those of subtables as well."""
        self._open.native = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Column:
        try:
            number = self._columns[name]
        except KeyError:
            raise KeyError(_missing(self.path, "column", name, self._columns)) from None
        return Column(self, number, self._known["columns"][number])

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return self.rows

    def keys(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._open.path, self._open.options, self._open.source.tables()[self._number][0])

    def __repr__(self) -> str:
        from ._repr import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        from ._repr import table_html

        return table_html(self)


def _reopen(path: str, options: dict[str, Any], name: str) -> Table:
    shared = _Open(path, options)
    for number, (found, _) in enumerate(shared.source.tables()):
        if found == name:
            return Table(path, options, shared, number)
    names = [found for found, _ in shared.source.tables()]
    raise _errors.NotFoundError(f"{path}: no table {name}{_native.instead(name, names)}")


class _OpenedItems(ItemsView[str, Table]):
    """The subtables that can be opened; a warning names each other one and says why."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        super().__init__(tables)
        self._tables = tables

    def __iter__(self) -> Iterator[tuple[str, Table]]:
        for name in self._tables:
            try:
                table = self._tables[name]
            except _errors.Error as error:
                warnings.warn(f"subtable {name} is left out: {error}", stacklevel=2)
                continue
            yield name, table


class _OpenedValues(ValuesView[Table]):
    """As `_OpenedItems`, without the names."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        super().__init__(tables)
        self._tables = tables

    def __iter__(self) -> Iterator[Table]:
        return (table for _, table in _OpenedItems(self._tables))


class _Subtables(Mapping[str, Table]):
    def __init__(self, table: Table) -> None:
        self._table = table
        listed = table._open.source.tables()
        own = [(name, number) for number, (name, parent) in enumerate(listed) if parent == table._number]
        self._numbers = {name.rsplit("/", 1)[-1]: number for name, number in own}

    def __getitem__(self, name: str) -> Table:
        try:
            number = self._numbers[name]
        except KeyError:
            raise KeyError(_missing(self._table.path, "subtable", name, self._numbers)) from None
        table = self._table
        return Table(os.path.join(table.path, name), table._open.options, table._open, number)

    def items(self) -> ItemsView[str, Table]:
        return _OpenedItems(self)

    def values(self) -> ValuesView[Table]:
        return _OpenedValues(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<subtables of {self._table.path}: {', '.join(self._numbers) or 'none'}>"


class Column:
    """A column of a table, read when it is indexed as numpy arrays are: `column[:100, ::4]`, `column[[3, 1]]`.

    Cells have numpy's axes: a casacore cell of shape `[corr, chan]` is `(chan, corr)`, and the column
    `(row, chan, corr)`. Large reads use all processors and not the GIL.
    """

    def __init__(self, table: Table, number: int, known: dict[str, Any]) -> None:
        self._table = table
        self._number = number
        self._known = known
        self._shape: tuple[int | None, ...] | None = None
        self.name: str = known["name"]
        """The name."""
        self.type: str = known["type"]
        """The type of the elements, by casacore's name: `boolean`, `double`, `complex`, `string`, `record`."""
        self.dtype: np.dtype[Any] = DTYPES[known["type"]]
        """The numpy type of the elements; strings (`str`) and records (`dict`) are objects."""
        self.is_scalar: bool = known["scalar"]
        """Whether a cell is one element."""
        self.comment: str = known["comment"]
        """What the table description says about it."""
        self.keywords: dict[str, Any] = known["keywords"]
        """The column keywords."""
        self.manager: str = known["manager"].rstrip()
        """The type of the data manager that holds it: `TiledColumnStMan`."""
        self.manager_name: str = known["manager_name"]
        """The name of that data manager."""

    @property
    def _native(self) -> _native.Column:
        # made for each call: what outlives `close` must not keep the lock
        return self._table._open.source.column(self._table._number, self._number)

    @property
    def unit(self) -> str | None:
        """The first unit in the keyword QuantumUnits: `s`, `m`."""
        units = self.keywords.get("QuantumUnits")
        if units is None:
            return None
        return str(units) if isinstance(units, str) else next((str(unit) for unit in np.ravel(units)), None)

    @property
    def measure(self) -> str | None:
        """The kind of measure in the keyword MEASINFO: `epoch`, `uvw`, `frequency`."""
        known = self.keywords.get("MEASINFO")
        return known.get("type") if isinstance(known, dict) else None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """`(row, ...)`; None for each axis whose length differs between cells, or that is unknown."""
        if self._shape is None:
            self._shape = (self._table.rows, *self._shape_of_cells())
        return self._shape

    @property
    def cell_shape(self) -> tuple[int | None, ...]:
        """The axes of a cell; () of a scalar, None as in `shape`."""
        return self.shape[1:]

    @property
    def ndim(self) -> int:
        """The number of axes, that of the rows included."""
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """The number of elements; None if `shape` has a None."""
        shape = self.shape
        return None if None in shape else int(np.prod(shape, dtype=np.int64))  # type: ignore[arg-type]

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of the pieces in which the column is stored, tiles or chunks, `(row, ...)`; None if it has none, or
        several kinds of them."""
        source = self._table._open.source
        tiles = {tuple(tile) for _, tile in source.hypercubes(self._table._number, self._number)}
        if not tiles and self._table.kind == "native":
            listed = source.datasets(self._table._number, self._number)
            tiles = {tuple(chunk) for _, _, chunk in listed if chunk is not None and len(listed) == 1}
        return tiles.pop() if len(tiles) == 1 else None

    def _shape_of_cells(self) -> tuple[int | None, ...]:
        if self._known["shape"] is not None:
            return tuple(self._known["shape"])
        rows = self._table.rows
        try:
            if rows:
                return tuple(self._native.shape(0, rows))
        except (_errors.NotFoundError, _errors.UsageError):
            pass
        if not rows:
            return (None,) * max(int(self._known["ndim"]), 0)
        shapes, defined = self._native.shapes(0, rows)
        shapes = shapes[np.asarray(defined)]
        if not len(shapes):
            return (None,) * max(int(self._known["ndim"]), 0)
        same = (shapes == shapes[0]).all(axis=0) & (shapes[0] >= 0)
        return tuple(int(extent) if agree else None for extent, agree in zip(shapes[0], same, strict=True))

    def __len__(self) -> int:
        return self._table.rows

    def __getitem__(self, key: Any) -> Any:
        return self.read(key)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a column is read into new memory: copy=False cannot be had")
        return np.asarray(self.read(), dtype=dtype)

    def read(self, key: Any = (), *, out: npt.NDArray[Any] | None = None, missing: Any = None) -> Any:
        """What numpy's index `key` takes of the column: integers, slices with steps, `...`, and lists or arrays of
        integers or bools. All cells that it touches must be defined and have one shape; where they are not, `cells`
        reads them one by one.

        `out` is an array of the result's shape and type that is filled and returned: memory that is used again is the
        fastest. `missing` is a value for the elements of undefined cells.

        Raises `ValueError` that names the first row without a cell, or with one of another shape; `IndexError`.
        """
        if isinstance(key, slice) and out is None and missing is None:
            rows = range(*key.indices(self._table.rows))
            if rows and rows.step == 1:
                return self._fetch(Wanted(rows, (), (), (), has_whole_cells=True), None)
        box = self._wanted(key, missing is not None)
        if missing is not None and not self._always_defined():
            result = self._read_defined(box, missing)
        elif out is not None and box.is_whole and _can_fill(out, self.dtype, box):
            return self._fetch(box, out)
        else:
            result = self._fetch(box, None)
        if not box.is_whole:
            result = result[box.rest]
        if out is None:
            return result
        if out.shape != np.shape(result):
            raise ValueError(f"the array to be filled has shape {out.shape}, what is read {np.shape(result)}")
        out[...] = result
        return out

    def _always_defined(self) -> bool:
        return self.is_scalar and self.type != "record" and self._table.kind != "native"

    def _wanted(self, key: Any, with_missing: bool) -> Wanted:
        rows = self._table.rows
        cell = self._known["shape"]
        if cell is None:
            # the cells that are touched decide, not all cells of the column
            first = split(key, 1)[0] if not isinstance(key, tuple) else (key[0] if key else slice(None))
            first = slice(None) if first is Ellipsis else first
            taken = wanted(first, (rows,)).rows
            cell = self._cell_shape_of(taken, with_missing)
        return wanted(key, (rows, *cell))

    def _cell_shape_of(self, rows: range | npt.NDArray[np.uint64], with_missing: bool) -> tuple[int, ...]:
        known = self._shape
        if known is not None and None not in known:
            return tuple(known[1:])  # type: ignore[arg-type]
        if not len(rows):
            whole = self.cell_shape
            return tuple(0 if extent is None else extent for extent in whole)
        runs = [(rows.start, rows.stop)] if isinstance(rows, range) else [(int(row), int(row) + 1) for row in rows]
        shape: tuple[int, ...] | None = None
        for start, stop in runs:
            found = self._shape_between(start, stop, with_missing)
            if found is None:
                continue
            if shape is not None and found != shape:
                raise _errors.UsageError(
                    f"{self._table.path}: column {self.name}: the cell in row {start} has shape {found}, others {shape}"
                    "; `cells` reads them one by one"
                )
            shape = found
        return shape if shape is not None else (0,) * max(self._known["ndim"], 0)

    def _shape_between(self, start: int, stop: int, with_missing: bool) -> tuple[int, ...] | None:
        try:
            return tuple(self._native.shape(start, stop))
        except (_errors.NotFoundError, _errors.UsageError) as error:
            if not with_missing:
                raise self._uneven(error) from None
        shapes, defined = self._native.shapes(start, stop)
        kinds = {tuple(int(extent) for extent in shape if extent >= 0) for shape in shapes[np.asarray(defined)]}
        if len(kinds) > 1:
            raise _errors.UsageError(
                f"{self._table.path}: column {self.name}: cells have the shapes {sorted(kinds)}; "
                "`cells` reads them one by one"
            )
        return kinds.pop() if kinds else None

    def _uneven(self, error: Exception) -> _errors.UsageError:
        found = _errors.UsageError(f"{error}; `cells` reads cells one by one")
        found.kind, found.code = "Usage", 2
        return found

    def _fetch(self, box: Wanted, out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        region = None if box.has_whole_cells else (box.start, box.extent)
        try:
            if isinstance(box.rows, range):
                return self._native.read(box.rows.start, box.rows.stop, region, out)
            return self._native.read_at(box.rows, region, out)
        except (_errors.NotFoundError, _errors.UsageError) as error:
            raise self._uneven(error) from None

    def _read_defined(self, box: Wanted, missing: Any) -> npt.NDArray[Any]:
        rows = np.asarray(box.rows, dtype=np.uint64)
        defined = self._defined(rows)
        if defined.all():
            return self._fetch(box, None)
        result = np.full((len(rows), *box.extent), missing, dtype=self.dtype)
        if defined.any():
            result[defined] = self._fetch(replace(box, rows=rows[defined]), None)
        return result

    def _defined(self, rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        if not len(rows):
            return np.zeros(0, dtype=bool)
        first, last = int(rows.min()), int(rows.max())
        if last - first < 2 * len(rows):
            return np.asarray(self._native.shapes(first, last + 1)[1], dtype=bool)[
                (rows - np.uint64(first)).astype(np.intp)
            ]
        return np.array([self._native.shapes(int(row), int(row) + 1)[1][0] for row in rows], dtype=bool)

    def _rows(self, rows: Any) -> range | npt.NDArray[np.uint64]:
        key = slice(*rows.indices(self._table.rows)) if isinstance(rows, slice) else rows
        return wanted(key, (self._table.rows,)).rows

    def cell(self, row: int) -> Any:
        """The cell of a row, as an array or, of a scalar column, an element; None if it is undefined."""
        row = int(wanted(row, (self._table.rows,)).rows[0])
        cell = self._native.cell(row)
        return cell[()] if cell is not None and self.is_scalar else cell

    def cells(self, rows: Any = slice(None)) -> Iterator[Any]:
        """The cells of rows (a slice, a list, a mask), one after the other: an array each, or an element of a scalar
        column; None where a cell is undefined."""
        for row in self._rows(rows):
            cell = self._native.cell(int(row))
            yield cell[()] if cell is not None and self.is_scalar else cell

    def shapes(self, rows: Any = slice(None)) -> npt.NDArray[np.int64]:
        """The shapes of the cells of rows, `(row, axis)`, slowest axis first; -1 after the last axis of a cell, and
        everywhere for one that is undefined."""
        taken = self._rows(rows)
        if isinstance(taken, range):
            return self._native.shapes(taken.start, taken.stop)[0]
        if not len(taken):
            return self._native.shapes(0, 0)[0]
        first = int(taken.min())
        return self._native.shapes(first, int(taken.max()) + 1)[0][(taken - np.uint64(first)).astype(np.intp)]

    def defined(self, rows: Any = slice(None)) -> npt.NDArray[np.bool_]:
        """Whether the cells of rows are defined."""
        return self._defined(np.asarray(self._rows(rows), dtype=np.uint64))

    def __repr__(self) -> str:
        from ._repr import column_text

        return column_text(self)


def _can_fill(out: npt.NDArray[Any], dtype: np.dtype[Any], box: Wanted) -> bool:
    """Whether what is read can go straight to `out`."""
    shape = (len(box.rows), *box.extent)
    return (
        out.dtype == dtype and dtype != object and out.shape == shape and out.flags.c_contiguous and out.flags.writeable
    )


def _missing(path: str, kind: str, name: str, names: Mapping[str, int]) -> str:
    """The message for a name that the table lacks, with a similar one."""
    return f"{path} has no {kind} {name!r}{_native.instead(str(name), list(names))}"
