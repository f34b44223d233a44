"""Live tables: rows are appended to an HDF5 file (SWMR mode) that h5py, xarray, dashboards and `Reader` read meanwhile.

>>> data = Column("c8", cell=(64, 4), axes=("chan", "corr"))
>>> tables = {"MAIN": Table({"TIME": Column("f8", unit="s"), "DATA": data})}
>>> with Writer("live.h5", tables) as writer:
...     writer.append("MAIN", TIME=[5e9], DATA=np.zeros((1, 64, 4)))
...     writer.commit()
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import _native
from ._column import DTYPES
from ._indexing import wanted

_TYPES = {dtype: name for name, dtype in DTYPES.items() if dtype != object}


@dataclass(frozen=True)
class Column:
    """A column of a table that will grow."""

    dtype: npt.DTypeLike
    """The type of the elements; `str` for strings."""
    cell: tuple[int, ...] = ()
    """The shape of all cells, slowest axis first; () for one element."""
    shapes: Sequence[tuple[int, ...]] | None = None
    """The shapes that cells can have if they differ, instead of `cell`; cells may then be undefined."""
    unit: str | None = None
    """The unit: `s`, `m`, `Hz`."""
    comment: str = ""
    axes: tuple[str, ...] = ()
    """What the axes of a cell mean, slowest first: `("chan", "corr")`. Without, those of a MeasurementSet."""
    string_length: int = 64
    """The most bytes of UTF-8 that a string has."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Column keywords."""
    chunk_rows: int | None = None
    """Rows of a chunk; None: as many as make about 512 KiB, at most 4096."""

    def _document(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": _type_name(self.dtype),
            "cell": list(self.cell) if self.cell else None,
            "shapes": None if self.shapes is None else [list(shape) for shape in self.shapes],
            "unit": self.unit,
            "comment": self.comment,
            "axes": list(self.axes),
            "string_length": self.string_length,
            "keywords": dict(self.keywords),
            "chunk_rows": self.chunk_rows,
        }


@dataclass(frozen=True)
class Table:
    """A table to which rows will be appended."""

    columns: Mapping[str, Column]
    type: str = ""
    """`Measurement Set` for the main table of one."""
    subtype: str = ""
    readme: str = ""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Table keywords."""
    coordinates: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    """The values of axes by what they mean: `{"chan": frequencies}`."""

    def _document(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": self.type,
            "subtype": self.subtype,
            "readme": self.readme,
            "keywords": dict(self.keywords),
            "columns": [column._document(of) for of, column in self.columns.items()],
            "coordinates": [(role, np.asarray(values)) for role, values in self.coordinates.items()],
        }


def _type_name(dtype: npt.DTypeLike) -> str:
    found = np.dtype(dtype)
    if found.kind in "UOT" or dtype is str:
        return "string"
    try:
        return _TYPES[found.newbyteorder("=")]
    except KeyError:
        raise TypeError(f"a table has no elements of type {found}") from None


class Writer:
    """Appends rows to a live file, which appears with its tables and no rows; a context manager that commits, closes.

    Rows become visible to readers once a second, after each `every` seconds or `rows` rows, or when `commit` is
    called; `every=None, rows=None` leaves it to `commit`. `fsync` waits for the disk at each commit. `overwrite`
    replaces a file.

    Raises `ExistsError`, `LockedError` if another writer has the file, `NoSpaceError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tables: Mapping[str, Table],
        *,
        every: float | None = 1.0,
        rows: int | None = None,
        fsync: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        documents = [table._document(name) for name, table in tables.items()]
        self._native = _native.LiveWriter.create(self.path, documents, (every, rows, fsync), overwrite)
        self._columns = _known(_native.LiveReader(self.path))

    @classmethod
    def reopen(
        cls, path: str | os.PathLike[str], *, every: float | None = 1.0, rows: int | None = None, fsync: bool = False
    ) -> Writer:
        """Goes on with a live file that its writer has closed, or that `h5bridge repair` has mended."""
        writer = cls.__new__(cls)
        writer.path = os.fspath(path)
        writer._native = _native.LiveWriter.reopen(writer.path, (every, rows, fsync))
        writer._columns = _known(_native.LiveReader(writer.path))
        return writer

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._native.tables())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know: the file is on a network file system."""
        return tuple(self._native.warnings())

    def rows(self, table: str = "MAIN") -> int:
        """Rows of a table, with those that are not yet committed."""
        return self._native.rows(table)[0]

    def committed_rows(self, table: str = "MAIN") -> int:
        """Rows of a table that readers see."""
        return self._native.rows(table)[1]

    def append(self, table: str, cells: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Appends rows: for each column its cells, an array `(row, ...)`, by name. All have the same number of rows.
        Cells of a column of several shapes are a list of arrays, None where undefined.

        >>> writer.append("MAIN", TIME=[5e9, 5e9 + 1], DATA=np.zeros((2, 64, 4)))
        """
        given = {**(cells or {}), **more}
        blocks = [self._block(table, name, block) for name, block in given.items()]
        counts = {name: count for name, (count, _) in zip(given, blocks, strict=True)}
        if len(set(counts.values())) > 1:
            raise ValueError(f"table {table}: columns have different numbers of rows: {counts}")
        if blocks:
            self._native.append(table, blocks[0][0], [block for _, block in blocks])

    def rewrite(self, table: str, column: str, first_row: int, cells: Any) -> None:
        """Overwrites cells from `first_row` on that were appended before. Readers may see old ones beside new ones."""
        count, (name, of, block, shapes) = self._block(table, column, cells)
        if shapes is not None:
            raise TypeError(f"column {name} has cells of several shapes: they are not written again")
        self._native.rewrite(table, name, of, (first_row, count), block)

    def commit(self) -> None:
        """Lets readers see all rows that were appended."""
        self._native.commit()

    def commit_if_due(self) -> None:
        """Commits if it is time; for writers that have nothing to append at the moment."""
        self._native.commit_if_due()

    def close(self) -> None:
        """Commits and closes the file."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._native.abandon()

    def __repr__(self) -> str:
        return f"<h5bridge.live.Writer {self.path}>"

    def _block(self, table: str, name: str, cells: Any) -> tuple[int, tuple[str, str, Any, list[int | None] | None]]:
        columns = self._columns.get(table)
        if columns is None:
            raise KeyError(f"{self.path} has no table {table!r}{_native.instead(str(table), list(self._columns))}")
        if name not in columns:
            meant = _native.instead(str(name), list(columns))
            raise KeyError(f"{self.path}: table {table} has no column {name!r}{meant}")
        known = columns[name]
        of = known["type"]
        if known["shapes"] is not None:
            return _several(name, of, cells, [tuple(shape) for shape in known["shapes"]])
        if of == "string":
            strings = np.asarray(cells, dtype=object)
            return len(strings), (name, of, [str(text) for text in strings.ravel().tolist()], None)
        given = np.asarray(cells)
        dtype = DTYPES[of]
        if given.dtype != dtype and not np.can_cast(given.dtype, dtype, "same_kind"):
            raise TypeError(f"column {name} has elements of type {dtype}, not {given.dtype}")
        array = np.ascontiguousarray(given, dtype=dtype)
        if not np.ndim(cells):
            raise ValueError(f"column {name}: the first axis of cells is the row, but there is none")
        return len(array), (name, of, array, None)


def _known(reader: _native.LiveReader) -> dict[str, dict[str, dict[str, Any]]]:
    tables = enumerate(reader.tables())
    return {table: {column["name"]: column for column in reader.columns(number)} for number, table in tables}


def _several(
    name: str, of: str, cells: Any, shapes: list[tuple[int, ...]]
) -> tuple[int, tuple[str, str, Any, list[int | None] | None]]:
    numbers: list[int | None] = []
    parts = []
    for place, cell in enumerate(cells):
        if cell is None:
            numbers.append(None)
            continue
        array = np.asarray(cell)
        if array.shape not in shapes:
            raise ValueError(f"column {name}: cell {place} has shape {array.shape}; declared are {shapes}")
        numbers.append(shapes.index(array.shape))
        parts.append(array.ravel())
    if of == "string":
        return len(numbers), (name, of, [str(text) for part in parts for text in part.tolist()], numbers)
    flat = np.concatenate(parts) if parts else np.zeros(0)
    return len(numbers), (name, of, np.ascontiguousarray(flat, dtype=DTYPES[of]), numbers)


class Reader(Mapping[str, "LiveTable"]):
    """Reads the tables of a live file, whether or not somebody appends to it: `Reader("live.h5")["MAIN"]`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._native = _native.LiveReader(self.path)
        self._tables = {name: LiveTable(self, number, name) for number, name in enumerate(self._native.tables())}

    @property
    def is_being_written(self) -> bool:
        """Whether a writer has the file open, or ended without closing it."""
        return self._native.is_being_written()

    def __getitem__(self, name: str) -> LiveTable:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<h5bridge.live.Reader {self.path}: {', '.join(self._tables)}>"


class LiveTable(Mapping[str, "LiveColumn"]):
    """A table of a live file: a mapping of its columns, as `h5bridge.Table` is. Its rows are those that were committed
    when `refresh` or `wait` last looked."""

    def __init__(self, reader: Reader, number: int, name: str) -> None:
        self.name = name
        """`MAIN`, `ANTENNA`, `A/B`."""
        self.nrows = 0
        """Rows that were committed at the last look."""
        self._reader = reader
        self._number = number
        self._known = {column["name"]: column for column in reader._native.columns(number)}
        self.refresh()

    def refresh(self) -> int:
        """Looks how many rows are committed now, and returns their number."""
        self.nrows = self._reader._native.refresh(self._number)
        return self.nrows

    def wait(self, timeout: float | None = None, *, poll: float = 0.01) -> int:
        """Waits until there are more rows than at the last look, at most `timeout` seconds; returns their number.
        `poll` is the time between two looks, in seconds."""
        before = self.nrows
        end = None if timeout is None else time.monotonic() + timeout
        while self.refresh() <= before:
            if end is not None and time.monotonic() >= end:
                break
            time.sleep(poll)
        return self.nrows

    def __getitem__(self, name: str) -> LiveColumn:
        return LiveColumn(self, self._known[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        """The number of columns; `nrows` is that of rows."""
        return len(self._known)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<h5bridge.live.LiveTable {self.name}: {self.nrows} rows, columns {', '.join(self._known)}>"


class LiveColumn:
    """A column of a live file, read when it is indexed: `table["DATA"][-100:]`."""

    def __init__(self, table: LiveTable, known: dict[str, Any]) -> None:
        self._table = table
        self._known = known
        self.name: str = known["name"]
        self.dtype: np.dtype[Any] = DTYPES[known["type"]]
        """The numpy type of the elements; strings are objects."""

    @property
    def shape(self) -> tuple[int | None, ...]:
        """`(row, ...)`; None where cells have several shapes."""
        cell = self._known["cell"]
        return (self._table.nrows, *(cell if cell is not None else (None,) * len(self._known["shapes"][0])))

    def __len__(self) -> int:
        return self._table.nrows

    def __getitem__(self, key: Any) -> Any:
        cell = self._known["cell"]
        if cell is None:
            raise ValueError(f"column {self.name} has cells of several shapes: `cell` reads them one by one")
        box = wanted(key, (self._table.nrows, *cell))
        first, last = _hull(box.rows)
        block = self._table._reader._native.read(self._table._number, self.name, first, last)
        rows = np.asarray(box.rows, dtype=np.intp) - first
        block = block if isinstance(box.rows, range) else block[rows]
        part = tuple(slice(start, start + extent) for start, extent in zip(box.start, box.extent, strict=True))
        return block[(slice(None), *part)][box.rest]

    def cell(self, row: int) -> Any:
        """The cell of a row; None if it is undefined."""
        rows = self._table.nrows
        if not -rows <= row < rows:
            raise IndexError(f"row {row} of {rows}")
        cell = self._table._reader._native.cell(self._table._number, self.name, row % rows)
        return cell[()] if cell is not None and self._known["scalar"] else cell

    def __repr__(self) -> str:
        return f"<h5bridge.live.LiveColumn {self.name}: {self.shape} {self.dtype}>"


def _hull(rows: range | npt.NDArray[np.uint64]) -> tuple[int, int]:
    if isinstance(rows, range):
        return rows.start, rows.stop
    return (int(rows.min()), int(rows.max()) + 1) if len(rows) else (0, 0)
