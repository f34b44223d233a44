"""Tables for Arrow: types of columns, and batches that fit in the memory.

| cells | Arrow |
|---|---|
| Bool, numbers, String | bool, int8 … double, string |
| Complex, DComplex | struct<re: float, im: float>, struct<re: double, im: double> |
| record | string: JSON, as in xarray |
| arrays of one shape | fixed-size lists, nested, an axis each, the slowest outside; lists if an axis has length 0 |
| arrays of several shapes | lists, nested as above |
| arrays with several numbers of axes | struct<shape: list<int64>, values: list<…>> |
| undefined | null |
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._errors import UsageError
from ._indexing import Rows, runs
from ._optional import needed

if TYPE_CHECKING:
    import pyarrow as pa

    from ._column import Column
    from ._table import Table

_TYPES = {
    "boolean": "bool",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "int64": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "record": "string",
}
_PARTS = {"complex": "float32", "dcomplex": "float64"}
_MAX_ROWS = 1 << 16
# offsets of lists have 32 bits
_MAX_VALUES = 2**31 - 1
# of a string whose length is not known before it is read
_STRING_BYTES = 64


def batches(table: Table, max_bytes: int) -> pa.RecordBatchReader:
    """The rows in batches of about `max_bytes` bytes, read as they are asked for."""
    pa = needed("pyarrow", "arrow")
    return pa.RecordBatchReader.from_batches(*_schema_and_batches(pa, table, max_bytes))


def whole(table: Table, max_bytes: int) -> pa.Table:
    """All rows. Errors are ours, and not those that Arrow makes of them."""
    pa = needed("pyarrow", "arrow")
    schema, made = _schema_and_batches(pa, table, max_bytes)
    return pa.Table.from_batches(made, schema)


def _schema_and_batches(pa: Any, table: Table, max_bytes: int) -> tuple[Any, Iterator[Any]]:
    columns = [_Cells(pa, column) for column in table.values()]
    fields = [pa.field(cells.column.name, cells.type, metadata=_metadata(cells.column)) for cells in columns]
    schema = pa.schema(fields, metadata={"type": table.type} if table.type else None)

    def made() -> Iterator[Any]:
        for start, stop in _steps(table, columns, max_bytes):
            arrays = [cells.read(start, stop) for cells in columns]
            if arrays:
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return schema, made()


def _metadata(column: Column) -> dict[str, str] | None:
    measure = column.measure
    found = {"unit": column.unit, "measure": measure and measure.type, "frame": measure and measure.frame}
    return {name: value for name, value in found.items() if value} or None


def _steps(table: Table, columns: list[_Cells], max_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that take about so many bytes, and at least one row."""
    start = 0
    while start < table.nrows:
        stop = min(start + _MAX_ROWS, table.nrows)
        sizes = sum((cells.sizes(start, stop) for cells in columns), np.zeros(stop - start))
        fit = int(np.searchsorted(np.cumsum(sizes), max_bytes, "right"))
        stop = start + max(fit, 1)
        yield start, stop
        start = stop


class _Cells:
    """A column as Arrow has it."""

    def __init__(self, pa: Any, column: Column) -> None:
        self.pa = pa
        self.column = column
        self.shape: tuple[int | None, ...] | None = _axes(column)
        """Axes of the cells, None where their lengths differ; None if even their number does."""
        self.is_even = self.shape is not None and None not in self.shape
        self.element = self._element()
        self.type = self._type()

    def _element(self) -> Any:
        pa, part = self.pa, _PARTS.get(self.column.type)
        if part is None:
            return pa.type_for_alias(_TYPES[self.column.type])
        return pa.struct([("re", pa.type_for_alias(part)), ("im", pa.type_for_alias(part))])

    def _type(self) -> Any:
        pa, found = self.pa, self.element
        if self.shape is None:
            return pa.struct([("shape", pa.list_(pa.int64())), ("values", pa.list_(found))])
        is_fixed = self.is_even and 0 not in self.shape
        for extent in reversed(self.shape):
            found = pa.list_(found, extent) if is_fixed else pa.list_(found)
        return found

    def sizes(self, start: int, stop: int) -> npt.NDArray[np.float64]:
        """About how many bytes each of the rows takes."""
        element = max(self.column.dtype.itemsize, 1) if self.column.dtype != object else _STRING_BYTES
        if self.shape is not None and self.is_even:
            return np.full(stop - start, float(element * math.prod(extent or 0 for extent in self.shape)))
        shapes = self.column.shapes(slice(start, stop))
        counts = np.where(shapes < 0, 1, shapes).prod(axis=1)
        return np.asarray(counts * element, dtype=np.float64)

    def read(self, start: int, stop: int) -> Any:
        """The cells of rows as an array of Arrow's."""
        rows = slice(start, stop)
        defined = self._defined(rows)
        if self.is_even:
            return self._even(rows, defined)
        cells = [np.ravel(np.asarray(cell, self.column.dtype)) for cell in self.column.cells(rows) if cell is not None]
        values = self._values(np.concatenate(cells or [np.empty(0, self.column.dtype)]))
        shapes = self.column.shapes(rows)
        return self._lists(values, shapes, defined) if self.shape is not None else self._shaped(values, shapes, defined)

    def _defined(self, rows: slice) -> npt.NDArray[np.bool_] | None:
        """Which cells are defined; None if all are."""
        if self.column._always_defined():
            return None
        found = self.column.defined(rows)
        return None if found.all() else found

    def _even(self, rows: slice, defined: npt.NDArray[np.bool_] | None) -> Any:
        pa, column = self.pa, self.column
        assert self.shape is not None
        if column.type == "record":
            values = _records(column, rows)
        elif defined is None:
            values = column.read(rows)
        else:
            values = column.read(rows, missing="" if column.dtype == object else 0)
        mask = None if defined is None else ~defined
        if not self.shape:
            return self._values(values, mask)
        if 0 in self.shape:
            shapes = np.tile(np.asarray(self.shape, dtype=np.int64), (rows.stop - rows.start, 1))
            if defined is not None:
                shapes[~defined] = -1
            return self._lists(self._values(np.ravel(values)), shapes, defined)
        found = self._values(np.ravel(values))
        for extent in reversed(self.shape[1:]):
            found = pa.FixedSizeListArray.from_arrays(found, extent)
        outer = None if mask is None else pa.array(mask)
        return pa.FixedSizeListArray.from_arrays(found, self.shape[0], mask=outer)

    def _values(self, flat: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None = None) -> Any:
        """Elements without axes."""
        pa = self.pa
        if self.column.type in _PARTS:
            parts = [pa.array(np.ascontiguousarray(part)) for part in (flat.real, flat.imag)]
            return pa.StructArray.from_arrays(
                parts, fields=list(self.element), mask=None if mask is None else pa.array(mask)
            )
        try:
            return pa.array(flat, type=self.element, mask=mask)
        except (UnicodeEncodeError, pa.ArrowInvalid) as error:
            if self.column.dtype != object:
                raise
            raise UsageError(
                f"{self.column._place}: strings that are not UTF-8, which Arrow does not have; leave the column out: "
                "table.columns(…)"
            ) from error

    def _lists(self, values: Any, shapes: npt.NDArray[np.int64], defined: npt.NDArray[np.bool_] | None) -> Any:
        """Nested lists: from the innermost axis on, the lists of each cell's axes before."""
        assert self.shape is not None
        pa, axes = self.pa, len(self.shape)
        cells = np.zeros((len(shapes), axes), dtype=np.int64)
        # without defined cells there are no axes
        cells[:, : shapes.shape[1]] = np.maximum(shapes, 0)
        for axis in reversed(range(axes)):
            # so many lists of this axis has each cell, all of one length
            counts = cells[:, :axis].prod(axis=1, dtype=np.int64)
            lengths = np.repeat(cells[:, axis], counts)
            mask = pa.array(~defined) if axis == 0 and defined is not None else None
            values = _list_of(pa, values, lengths, mask)
        return values

    def _shaped(self, values: Any, shapes: npt.NDArray[np.int64], defined: npt.NDArray[np.bool_] | None) -> Any:
        pa = self.pa
        known = np.ones(len(shapes), dtype=bool) if defined is None else defined
        counts = np.where(known, np.where(shapes < 0, 1, shapes).prod(axis=1, dtype=np.int64), 0)
        axes = (shapes >= 0).sum(axis=1)
        parts = [
            _list_of(pa, pa.array(shapes[shapes >= 0].astype(np.int64)), axes),
            _list_of(pa, values, counts),
        ]
        mask = None if defined is None else pa.array(~defined)
        return pa.StructArray.from_arrays(parts, fields=list(self.type), mask=mask)


def _list_of(pa: Any, values: Any, counts: npt.NDArray[Any], mask: Any = None) -> Any:
    """Lists of so many values each."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if offsets[-1] > _MAX_VALUES:
        raise UsageError(f"a batch has lists of {offsets[-1]} values, Arrow has {_MAX_VALUES} at most: fewer max_bytes")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=mask)


def _records(column: Column, rows: slice) -> npt.NDArray[Any]:
    """Records as JSON."""
    table = column._table
    taken: Rows = column._rows(rows)
    parts = [
        _native.stored_cells(table._open.source, table._number, column._number, (run.start, run.stop), None, [])
        for run in runs(taken)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=object)


def _axes(column: Column) -> tuple[int | None, ...] | None:
    """Axes of the cells, None where their lengths differ; None if their number does, or no cell says it."""
    if column.is_scalar:
        return ()
    ndim = int(column._known["ndim"])
    shape = column.cell_shape
    if ndim > 0 or (shape and None not in shape):
        return shape
    numbers = set((column.shapes()[column.defined()] >= 0).sum(axis=1).tolist())
    return shape if len(numbers) == 1 else None
