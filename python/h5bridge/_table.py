"""Tables and their columns, read into numpy arrays without casacore."""

from __future__ import annotations

import math
import operator
import os
import warnings
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt

from . import _errors, _native
from ._column import Column
from ._fetched import Source, local
from ._indexing import Rows, compact, rows_at, wanted
from ._optional import needed

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa
    from xarray import Dataset

_BATCH_BYTES = 64 << 20


def open_table(
    path: Source,
    *,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    follow_external: bool = False,
) -> Table:
    """Opens a table for reading: a directory, a table in a container (`one.h5/ANTENNA`, `my.mfh5`), or one in a native
    HDF5 file (`my.h5` is its main table, `my.h5/ANTENNA` a subtable). Casacore and h5py are not needed.

    A native file is read where it is at `https://…` and `s3://…`. Other addresses (`gs://…`, `memory://…`,
    `zip://my.h5::my.zip`), those of whole directories, an `UPath` and the result of `fsspec.open` are those of fsspec:
    the file, or all files of the directory, are copied to a folder below `tempfile.gettempdir()`. A file object is
    copied as well, from its beginning, unless it is a file of this machine. The folder takes the size of what is
    copied. It is removed when the table is closed or forgotten, at the latest at the end of Python; datasets of
    `to_xarray` keep it.

    The table is locked for reading, as casacore does it, until it is closed: writers wait. `lock_timeout` is how long a
    writer is waited for, in seconds, None for ever; `lock=False` takes no lock, for read-only media. `follow_external`
    reads elements that a native file keeps in other files below its own directory.

    Raises `NotFoundError` (a `FileNotFoundError`), `FormatError`, `LockedError`; `ImportError` where fsspec is needed
    (`pip install 'h5bridge[fsspec]'`); and what fsspec and file objects raise.

    >>> with open_table("my.ms") as table:
    ...     data = table["DATA"][:100]          # (row, chan, corr)
    """
    return Table(local(path), {"lock_timeout": waiting(lock, lock_timeout), "follow_external": follow_external})


def waiting(lock: bool, lock_timeout: float | None) -> float | None:
    """The seconds for the extension, which takes no lock if there are none."""
    return (math.inf if lock_timeout is None else lock_timeout) if lock else None


class _Open:
    """The open file or directory that a table and its subtables share."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.path = path
        self.options = options
        self.native: _native.Source | None = _native.Source(path, **options)
        self._columns: dict[tuple[int, int], _native.Column] = {}

    def column(self, table: int, number: int) -> _native.Column:
        found = self._columns.get((table, number))
        if found is None:
            found = self._columns[table, number] = self.source.column(table, number)
        return found

    @property
    def source(self) -> _native.Source:
        if self.native is None:
            raise ValueError(f"{self.path} is closed")
        return self.native

    def close(self) -> None:
        """Nothing that is kept here may outlive it: the lock of the table, and a copy, would be held."""
        self._columns.clear()
        self.native = None
        self.path = str(self.path)


class Table(Mapping[str, Column]):
    """A table, open for reading: a mapping of its columns by name, and a context manager. It pickles as its path, how
    it was opened, and what was chosen of it.

    | | |
    |---|---|
    | `table["TIME"]` | a `Column`, which is read when it is indexed |
    | `len(table)`, `list(table)`, `"TIME" in table`, `table.items()` | the columns, as of any mapping |
    | `table.nrows` | the number of rows |
    | `table[10]` | a row: a `dict` of its cells |
    | `table[0:10]`, `table[[3, 1]]`, `table[mask]` | a view of rows, `rows` |
    | `table[["TIME", "DATA"]]` | a view of columns, `columns` |
    | `table.subtables["ANTENNA"]` | a table |

    A view is a `Table` that has only some rows or columns; nothing is read. It shares the open files: closing one
    closes both. Its subtables are those of the table.

    >>> with open_table("my.ms") as table:
    ...     view = table.where("FIELD_ID == '3C286' && SCAN_NUMBER in 3..5").columns("TIME", "DATA")
    ...     to_hdf5(view, "part.h5")
    """

    def __init__(self, path: str, options: dict[str, Any], _open: _Open | None = None, _number: int = -1) -> None:
        self._open = _open if _open is not None else _Open(path, options)
        self._number = _number if _number >= 0 else self._open.source.table
        known = self._open.source.describe(self._number)
        self.path: str = str(path)
        """Where it was opened; the path of the copy, if there is one."""
        self.keywords: dict[str, Any] = known["keywords"]
        """The table keywords; one that names a subtable is the string `Table: ` and where it lies. `attrs` is another
        name for them, which h5py, zarr and xarray have."""
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
        self._numbers = {column["name"]: number for number, column in enumerate(known["columns"])}
        self._subtables: _Subtables | None = None
        self._rows: Rows = range(known["rows"])
        self._columns: tuple[str, ...] = tuple(self._numbers)
        self._selection: Selection | None = None

    @property
    def nrows(self) -> int:
        """The number of rows."""
        return len(self._rows)

    @property
    def attrs(self) -> dict[str, Any]:
        """The table keywords."""
        return self.keywords

    @property
    def row_numbers(self) -> npt.NDArray[np.uint64]:
        """The numbers of the rows in the source, `(row,)`; of a view those that it has."""
        return np.asarray(self._rows, dtype=np.uint64)

    @property
    def is_view(self) -> bool:
        """Whether it has only some rows or columns of the table at its path."""
        return self._selection is not None

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

    def where(self, condition: str) -> Table:
        """The rows that satisfy a condition on scalar columns, as a view: the language of the option `--where`
        (docs/reference/selecting.md). Its columns are read at once.

        Raises `UsageError` if the condition is not one, or does not fit the table.

        >>> open_table("my.ms").where("ANTENNA1 != ANTENNA2 && TIME > '2004-08-23T17:47'").nrows
        """
        found = self._open.source.rows_where(self._number, condition)
        if isinstance(self._rows, range):
            first, last = np.searchsorted(found, [self._rows.start, self._rows.stop])
            rows = compact(found[first:last])
        else:
            rows = compact(self._rows[np.isin(self._rows, found)])
        return self._view(rows, self._columns, self._chosen().where(condition))

    def rows(self, rows: slice | Sequence[int] | npt.NDArray[Any]) -> Table:
        """Rows as a view: a slice, a list or array of numbers (in their order, also from the end), or a mask `(row,)`.

        Raises `IndexError` for rows that do not exist.

        >>> open_table("my.ms").rows(slice(0, 10)).nrows
        10
        """
        places = wanted(rows if isinstance(rows, slice | np.ndarray) else list(rows), (self.nrows,)).rows
        chosen = rows_at(self._rows, places)
        return self._view(chosen, self._columns, self._chosen().rows(chosen, isinstance(places, range)))

    def columns(self, *names: str) -> Table:
        """Columns as a view, in the order of the names.

        Raises `KeyError` for one that does not exist.

        >>> list(open_table("my.ms").columns("TIME", "UVW"))
        ['TIME', 'UVW']
        """
        for name in names:
            self._check(name)
        return self._view(self._rows, tuple(dict.fromkeys(names)), self._chosen().columns(names))

    def _with_all_columns(self) -> Table:
        return self._view(self._rows, tuple(self._numbers), replace(self._chosen(), names=None))

    def to_xarray(self, **options: Any) -> Dataset:
        """The rows and columns as a dataset of the xarray engine (docs/reference/xarray.md), read when they are
        computed; `options` are those of `xarray.open_dataset`: `chunks={}` for dask. Columns whose cells have several
        shapes are not in it. It has files of its own: close it as well.

        Raises `ImportError` without xarray (`pip install 'h5bridge[xarray]'`).

        >>> open_table("my.ms").where("ANTENNA1 == 0").to_xarray(chunks={}).DATA.mean("row").compute()
        """
        needed("xarray", "xarray")
        from .xarray import of_table

        return of_table(self._open.path, self.name, self._open.options, self._rows, self._columns, options)

    def to_batches(self, max_bytes: int = _BATCH_BYTES) -> pa.RecordBatchReader:
        """The rows and columns as record batches of Arrow, of about `max_bytes` bytes each, read as they are asked for.

        Arrays of one shape are nested fixed-size lists, the slowest axis outside; arrays of several shapes lists;
        complex numbers `struct<re, im>`; records JSON; undefined cells null. Where cells have several numbers of axes
        they are `struct<shape, values>`. The fields' metadata have `unit`, `measure` and `frame`.

        Raises `UsageError` for strings that are not UTF-8, and `ImportError` without pyarrow (`pip install
        'h5bridge[arrow]'`).

        >>> sum(batch.num_rows for batch in open_table("my.ms").columns("TIME", "DATA").to_batches())
        """
        from ._arrow import batches

        return batches(self, max_bytes)

    def to_arrow(self) -> pa.Table:
        """The rows and columns as a `pyarrow.Table`, in memory; types and errors are those of `to_batches`.

        >>> open_table("my.ms").columns("TIME", "UVW").to_arrow().schema
        """
        from ._arrow import whole

        return whole(self, _BATCH_BYTES)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows and columns as a `pandas.DataFrame`, in memory: scalars with numpy's types, arrays as objects of
        numpy, None for cells that are undefined. The index has the numbers of the rows in the source.

        Raises `ImportError` without pandas (`pip install 'h5bridge[pandas]'`).

        >>> open_table("my.ms").columns("TIME", "ANTENNA1").to_pandas().groupby("ANTENNA1").TIME.count()
        """
        from ._pandas import frame

        return frame(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The batches of `to_batches`, by which pyarrow, polars, duckdb and pandas take a table."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema of `to_batches`."""
        return self.to_batches().schema.__arrow_c_schema__()

    def _chosen(self) -> Selection:
        return self._selection or Selection()

    def _view(self, rows: Rows, columns: tuple[str, ...], selection: Selection) -> Table:
        # not `copy.copy`, which would open the table again as `__reduce__` says
        view = object.__new__(Table)
        vars(view).update(vars(self))
        view._rows, view._columns, view._selection = rows, columns, selection
        return view

    @property
    def closed(self) -> bool:
        """Whether `close` was called, of this table or of one that it was opened with."""
        return self._open.native is None

    def close(self) -> None:
        """Gives back the lock and all files, those of subtables and views as well."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __fspath__(self) -> str:
        """The path, so that functions take a table where they take a path. Raises `UsageError` for a view, which is
        only a part of what is there."""
        if self.is_view:
            raise _errors.UsageError(
                f"{self.path}: a view of rows or columns has no path; `to_hdf5` of the view writes a file that has one"
            )
        return self.path

    @overload
    def __getitem__(self, key: str, /) -> Column: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice | list[int] | list[bool] | list[str] | npt.NDArray[Any], /) -> Table: ...
    def __getitem__(self, key: Any, /) -> Any:
        if isinstance(key, str):
            self._check(key)
            return self._any_column(key)
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return self.columns(*key)
        if isinstance(key, slice | list | np.ndarray):
            return self.rows(key)
        try:
            row = operator.index(key)
        except TypeError:
            raise TypeError(
                f"tables are indexed by names of columns, numbers of rows, slices, lists and masks, not by {key!r}"
            ) from None
        return {name: column.cell(row) for name, column in self.items()}

    def _any_column(self, name: str) -> Column:
        """A column of the table, also if the view is without it."""
        number = self._numbers.get(name)
        if number is None:
            raise KeyError(_missing(self.path, "column", name, self._numbers))
        return Column(self, number, self._known["columns"][number])

    def _check(self, name: str) -> None:
        if name in self._columns:
            return
        if name in self._numbers:
            raise KeyError(f"column {name!r} of {self.path} is not in this view, which has {', '.join(self._columns)}")
        if name in self.subtables:
            raise KeyError(f"{name!r} is no column but a subtable of {self.path}: subtables[{name!r}]")
        raise KeyError(_missing(self.path, "column", name, self._numbers))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of columns; `nrows` is that of rows."""
        return len(self._columns)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        name = self._open.source.tables()[self._number][0]
        view = (self._rows, self._columns, self._selection) if self._selection is not None else None
        return _reopen, (self._open.path, self._open.options, name, view)

    def __repr__(self) -> str:
        from ._repr import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        from ._repr import table_html

        return table_html(self)


@dataclass(frozen=True)
class Selection:
    """What a view has of its table, as `to_hdf5` takes it."""

    conditions: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    """The range of rows; None for all."""
    names: tuple[str, ...] | None = None
    """The columns; None for all."""
    is_described: bool = True
    """Whether the conditions and the range say which rows there are, and in which order."""

    def where(self, condition: str) -> Selection:
        return replace(self, conditions=(*self.conditions, condition))

    def rows(self, rows: Rows, is_run: bool) -> Selection:
        """`rows` follow each other in the view that they are taken of, if this `is_run`."""
        bounds = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        is_described = self.is_described and is_run or isinstance(rows, range)
        return replace(self, bounds=bounds, is_described=is_described)

    def columns(self, names: tuple[str, ...]) -> Selection:
        return replace(self, names=names)


def _reopen(path: str, options: dict[str, Any], name: str, view: tuple[Any, ...] | None = None) -> Table:
    shared = _Open(path, options)
    for number, (found, _) in enumerate(shared.source.tables()):
        if found == name:
            table = Table(path, options, shared, number)
            return table if view is None else table._view(*view)
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


def _missing(path: str, kind: str, name: str, names: Mapping[str, int]) -> str:
    """The message for a name that the table lacks, with a similar one."""
    return f"{path} has no {kind} {name!r}{_native.instead(str(name), list(names))}"
