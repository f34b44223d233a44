"""Columns, read into numpy arrays without casacore."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _errors, _native
from ._indexing import Box, Rows, Wanted, rows_at, runs, split, wanted
from ._measures import Measure, datetimes, measure_of, named_frames, quantity, time_unit, times, unit_of

if TYPE_CHECKING:
    import pyarrow as pa
    from astropy.time import Time
    from astropy.units import Quantity

    from ._table import Table

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
        """The column keywords; `attrs` is another name for them, which h5py, zarr and xarray have."""
        self.manager: str = known["manager"].rstrip()
        """The type of the data manager that holds it: `TiledColumnStMan`."""
        self.manager_name: str = known["manager_name"]
        """The name of that data manager."""

    @property
    def _native(self) -> _native.Column:
        # kept by what `close` closes alone
        return self._table._open.column(self._table._number, self._number)

    @property
    def attrs(self) -> dict[str, Any]:
        """The column keywords."""
        return self.keywords

    @property
    def _place(self) -> str:
        return f"{self._table.path}: column {self.name}"

    @property
    def unit(self) -> str | None:
        """The unit in the keyword QuantumUnits, or UNIT: `s`, `m`; the first if the elements of a cell have several,
        None if there is none."""
        return next(iter(unit_of(self.keywords)), None)

    @property
    def measure(self) -> Measure | None:
        """What the cells measure and in which frame, by the keyword MEASINFO; None if there is none.

        >>> open_table("my.ms")["TIME"].measure
        Measure(type='epoch', frame='UTC', frame_column=None)
        """
        return measure_of(self.keywords)

    def frames(self, rows: Any = slice(None)) -> npt.NDArray[Any]:
        """The name of the frame of the measures in each of the rows (a slice, a list, a mask), as objects of `str`,
        `(row,)`: the same, or those of the column `measure.frame_column`.

        Raises `UsageError` if the column has no frames, `FormatError` for a number without a name.

        >>> open_table("my.ms/SPECTRAL_WINDOW")["CHAN_FREQ"].frames()
        array(['TOPO'], dtype=object)
        """
        measure = self.measure
        if measure is None or (measure.frame is None and measure.frame_column is None):
            raise _errors.UsageError(f"{self._place} has no frame in the keyword MEASINFO")
        if measure.frame_column is None:
            taken = wanted(rows, (self._table.nrows,)).rows
            return np.full(len(taken), measure.frame, dtype=object)
        column = self._table._any_column(measure.frame_column)
        return named_frames(measure, np.atleast_1d(column[rows]), self._place)

    def quantity(self, key: Any = ()) -> Quantity:
        """What the index `key` takes of the column (the shape is that of `read`), with its unit, as an
        `astropy.units.Quantity`.

        Raises `UsageError` for a unit that is missing, differs between elements, or is unknown to astropy, and
        `ImportError` without astropy (`pip install 'h5bridge[astropy]'`).

        >>> open_table("my.ms")["INTERVAL"].quantity(slice(0, 2))
        <Quantity [10., 10.] s>
        """
        return quantity(self.read(key), unit_of(self.keywords), self._place)

    def datetime(self, key: Any = ()) -> npt.NDArray[np.datetime64]:
        """What the index `key` takes of a column of epochs, as `datetime64[ns]` in the time scale of the column (UTC
        mostly), which numpy does not know; NaT for NaN.

        Raises `UsageError` if the column has no epochs, or some outside of the years 1678 to 2261.

        >>> open_table("my.ms")["TIME"].datetime(0)
        np.datetime64('2004-08-23T17:46:40.000000000')
        """
        unit = time_unit(unit_of(self.keywords), self.measure, self._place)
        return datetimes(self.read(key), unit, self._place)

    def time(self, key: Any = ()) -> Time:
        """What the index `key` takes of a column of epochs, as an `astropy.time.Time` in the time scale of the column.

        Raises `UsageError` if the column has no epochs, or rows of several time scales, and `ImportError` without
        astropy (`pip install 'h5bridge[astropy]'`).

        >>> open_table("my.ms")["TIME"].time(0).isot
        '2004-08-23T17:46:40.000'
        """
        unit = time_unit(unit_of(self.keywords), self.measure, self._place)
        first = split(key, 1)[0] if not isinstance(key, tuple) else (key[0] if key else slice(None))
        frames = set(self.frames(slice(None) if first is Ellipsis else first))
        if len(frames) > 1:
            raise _errors.UsageError(f"{self._place}: rows have the time scales {', '.join(sorted(frames))}")
        return times(self.read(key), unit, next(iter(frames), "UTC"), self._place)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """`(row, ...)`; None for each axis whose length differs between cells, or that is unknown."""
        if self._shape is None:
            self._shape = (self._table.nrows, *self._shape_of_cells())
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
        # of a view without rows, as numpy has it, the shape is that of the others
        rows = self._table._rows if self._table.nrows else range(self._table._known["rows"])
        unknown: tuple[int | None, ...] = (None,) * max(int(self._known["ndim"]), 0)
        if not len(rows):
            return unknown
        if isinstance(rows, range):
            try:
                return tuple(self._native.shape(rows.start, rows.stop))
            except (_errors.NotFoundError, _errors.UsageError):
                pass
        shapes = self._shapes(rows)
        shapes = shapes[self._defined(rows)]
        if not len(shapes):
            return unknown
        same = (shapes == shapes[0]).all(axis=0) & (shapes[0] >= 0)
        return tuple(int(extent) if agree else None for extent, agree in zip(shapes[0], same, strict=True))

    def __len__(self) -> int:
        return self._table.nrows

    def __iter__(self) -> Iterator[Any]:
        """The cells, one after the other: those of `cells`."""
        if self._always_defined():
            for _, block in self.iter_chunks():
                yield from block
        else:
            yield from self.cells()

    def iter_chunks(self, max_bytes: int = 64 << 20) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """The column in pieces that fit in the memory: the rows of each as a slice, and their array `(row, ...)`, of
        about `max_bytes` bytes and whole `chunks` if these are smaller.

        Raises `ValueError` as `read` does where cells are undefined or have several shapes.

        >>> sum(abs(block).sum() for _, block in open_table("my.ms")["DATA"].iter_chunks())
        """
        step = self._rows_in(max_bytes)
        for start in range(0, self._table.nrows, step):
            rows = slice(start, min(start + step, self._table.nrows))
            yield rows, self.read(rows)

    def _rows_in(self, max_bytes: int) -> int:
        """How many rows take about so many bytes."""
        row_bytes = math.prod(extent or 1 for extent in self.cell_shape) * max(self.dtype.itemsize, 1)
        step = max(1, max_bytes // max(row_bytes, 1))
        chunk = (self.chunks or (1,))[0]
        return step // chunk * chunk if step > chunk else step

    def to_arrow(self) -> pa.ChunkedArray:
        """The column as a `pyarrow.ChunkedArray`, in memory; types and errors are those of `Table.to_batches`.

        >>> open_table("my.ms")["TIME"].to_arrow().type
        DataType(double)
        """
        return self._table._view(self._table._rows, (self.name,), self._table._chosen()).to_arrow().column(0)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The array of `to_arrow`, for libraries that take arrays of Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __getitem__(self, key: Any) -> Any:
        # whole cells of rows, which loops ask for again and again
        rows = self._table._rows
        if type(rows) is range:
            if type(key) is int and 0 <= key < len(rows):
                first = rows.start + key
                return self._cells(first, first + 1)[0]
            if type(key) is slice and (key.step is None or key.step == 1):
                taken = rows[key]
                if taken:
                    return self._cells(taken.start, taken.stop)
        return self.read(key)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a column is read into new memory: copy=False cannot be had")
        return np.asarray(self.read(), dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """The column, read into memory, for `from_dlpack` of numpy, torch, jax and others."""
        if self.dtype == object:
            raise BufferError(f"{self._place}: DLPack has numbers and bools, not {self.type}s")
        return self.read().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of the processor."""
        return (1, 0)

    def read(self, key: Any = (), *, out: npt.NDArray[Any] | None = None, missing: Any = None) -> Any:
        """What numpy's index `key` takes of the column: integers, slices with steps, `...`, and lists or arrays of
        integers or bools. All cells that it touches must be defined and have one shape; where they are not, `cells`
        reads them one by one.

        `out` is an array of the result's shape and type that is filled and returned: memory that is used again is the
        fastest. `missing` is a value for the elements of undefined cells.

        Raises `ValueError` that names the first row without a cell, or with one of another shape; `IndexError`.
        """
        box = self._wanted(key, missing is not None)
        if missing is not None and not self._always_defined():
            result = self._read_defined(box, missing)
        elif out is not None and box.is_whole and _can_fill(out, self.dtype, box):
            return self._fetch(box.rows, box.region, out)
        else:
            result = self._fetch(box.rows, box.region, None)
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

    def _at(self, places: Rows) -> Rows:
        """The rows in the source of rows of the table."""
        return rows_at(self._table._rows, places)

    def _wanted(self, key: Any, with_missing: bool) -> Wanted:
        rows = self._table.nrows
        cell = self._known["shape"]
        if cell is None:
            # the cells that are touched decide, not all cells of the column
            first = split(key, 1)[0] if not isinstance(key, tuple) else (key[0] if key else slice(None))
            first = slice(None) if first is Ellipsis else first
            cell = self._cell_shape_of(self._at(wanted(first, (rows,)).rows), with_missing)
        box = wanted(key, (rows, *cell))
        return replace(box, rows=self._at(box.rows))

    def _cell_shape_of(self, rows: Rows, with_missing: bool) -> tuple[int, ...]:
        """The shape of the cells of rows of the source."""
        known = self._shape
        if known is not None and None not in known:
            return tuple(known[1:])  # type: ignore[arg-type]
        if not len(rows):
            return tuple(0 if extent is None else extent for extent in self.cell_shape)
        shape: tuple[int, ...] | None = None
        for run in runs(rows):
            found = self._shape_between(run.start, run.stop, with_missing)
            if found is None:
                continue
            if shape is not None and found != shape:
                raise _errors.UsageError(
                    f"{self._place}: the cell in row {run.start} has shape {found}, others {shape}"
                    "; `cells` reads them one by one"
                )
            shape = found
        return shape if shape is not None else (0,) * max(int(self._known["ndim"]), 0)

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
                f"{self._place}: cells have the shapes {sorted(kinds)}; `cells` reads them one by one"
            )
        return kinds.pop() if kinds else None

    def _uneven(self, error: Exception) -> _errors.UsageError:
        found = _errors.UsageError(f"{error}; `cells` reads cells one by one")
        found.kind, found.code = "Usage", 2
        return found

    def _cells(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Whole cells of rows of the source."""
        try:
            return self._native.read(start, stop)
        except (_errors.NotFoundError, _errors.UsageError) as error:
            raise self._uneven(error) from None

    def _fetch(self, rows: Rows, region: Box | None, out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        try:
            if isinstance(rows, range):
                return self._native.read(rows.start, rows.stop, region, out)
            return self._native.read_at(rows, region, out)
        except (_errors.NotFoundError, _errors.UsageError) as error:
            raise self._uneven(error) from None

    def _read_defined(self, box: Wanted, missing: Any) -> npt.NDArray[Any]:
        rows = np.asarray(box.rows, dtype=np.uint64)
        defined = self._defined(rows)
        if defined.all():
            return self._fetch(box.rows, box.region, None)
        result = np.full((len(rows), *box.extent), missing, dtype=self.dtype)
        if defined.any():
            result[defined] = self._fetch(rows[defined], box.region, None)
        return result

    def _hull(self, rows: npt.NDArray[np.uint64]) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The first row, and shapes and definedness from there to the last."""
        first = int(rows.min())
        shapes, defined = self._native.shapes(first, int(rows.max()) + 1)
        return first, shapes, np.asarray(defined, dtype=bool)

    def _is_dense(self, rows: npt.NDArray[np.uint64]) -> bool:
        return int(rows.max()) - int(rows.min()) < 2 * len(rows)

    def _shapes(self, rows: Rows) -> npt.NDArray[np.int64]:
        if isinstance(rows, range):
            return self._native.shapes(rows.start, rows.stop)[0]
        if not len(rows):
            return self._native.shapes(0, 0)[0]
        if self._is_dense(rows):
            first, shapes, _ = self._hull(rows)
            return shapes[(rows - np.uint64(first)).astype(np.intp)]
        parts = [self._native.shapes(run.start, run.stop)[0] for run in runs(rows)]
        axes = max(part.shape[1] for part in parts)
        padded = [np.pad(part, ((0, 0), (0, axes - part.shape[1])), constant_values=-1) for part in parts]
        return np.concatenate(padded)

    def _defined(self, rows: Rows) -> npt.NDArray[np.bool_]:
        if not len(rows):
            return np.zeros(0, dtype=bool)
        if isinstance(rows, range):
            return np.asarray(self._native.shapes(rows.start, rows.stop)[1], dtype=bool)
        if self._is_dense(rows):
            first, _, defined = self._hull(rows)
            return defined[(rows - np.uint64(first)).astype(np.intp)]
        parts = [self._native.shapes(run.start, run.stop)[1] for run in runs(rows)]
        return np.concatenate([np.asarray(part, dtype=bool) for part in parts])

    def _rows(self, rows: Any) -> Rows:
        return self._at(wanted(rows, (self._table.nrows,)).rows)

    def cell(self, row: int) -> Any:
        """The cell of a row, as an array or, of a scalar column, an element; None if it is undefined."""
        return self._cell(int(self._rows(row)[0]))

    def _cell(self, row: int) -> Any:
        cell = self._native.cell(row)
        return cell[()] if cell is not None and self.is_scalar else cell

    def cells(self, rows: Any = slice(None)) -> Iterator[Any]:
        """The cells of rows (a slice, a list, a mask), one after the other: an array each, or an element of a scalar
        column; None where a cell is undefined."""
        return (self._cell(int(row)) for row in self._rows(rows))

    def shapes(self, rows: Any = slice(None)) -> npt.NDArray[np.int64]:
        """The shapes of the cells of rows, `(row, axis)`, slowest axis first; -1 after the last axis of a cell, and
        everywhere for one that is undefined."""
        return self._shapes(self._rows(rows))

    def defined(self, rows: Any = slice(None)) -> npt.NDArray[np.bool_]:
        """Whether the cells of rows are defined."""
        return self._defined(self._rows(rows))

    def __repr__(self) -> str:
        from ._repr import column_text

        return column_text(self)


def _can_fill(out: npt.NDArray[Any], dtype: np.dtype[Any], box: Wanted) -> bool:
    """Whether what is read can go straight to `out`."""
    shape = (len(box.rows), *box.extent)
    return (
        out.dtype == dtype and dtype != object and out.shape == shape and out.flags.c_contiguous and out.flags.writeable
    )
