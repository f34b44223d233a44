"""The xarray engine: a table and its subtables as a tree of datasets, read when they are computed.

    import xarray

    tree = xarray.open_datatree("my.ms", engine="h5bridge", chunks={})
    tree["MAIN/DATA"].mean("row").compute()

The tree has the groups, names, dimensions, coordinates and attributes that `h5bridge to-hdf5` gives its files, whether
`my.ms` is a table directory, a table in a container or a native HDF5 file. Nothing is converted. See
docs/reference/xarray.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset, DataTree, Variable, open_dataset
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, CachingFileManager
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from . import _msv4, _native
from ._column import DTYPES
from ._errors import Error, NotFoundError, UsageError
from ._fetched import Fetched
from ._indexing import Rows, runs, wanted
from ._measures import STOKES, fits_calendar
from ._table import waiting

_Array = npt.NDArray[Any]


class _Opened:
    """An open source, its outline, and what was computed of its ragged columns. Threads share it."""

    def __init__(self, path: str, options: tuple[tuple[str, Any], ...], mode: str = "r") -> None:
        self._source: _native.Source | None = _native.Source(path, **dict(options))
        outline = _native.outline(self._source)
        self._known: dict[tuple[str, int, int], Any] = {}
        self._lock = threading.Lock()
        tables = outline["tables"]
        self.groups: dict[str, _Group] = {"/": _Group(outline["attributes"])}
        for table in tables:
            self._add_table(table)
        self._add_names()
        self.default: str = next(table["group"] for table in tables if table["table"] == self._source.table)

    def _add_table(self, table: dict[str, Any]) -> None:
        path = table["group"]
        group = self.groups[path] = _Group(table["attributes"])
        numbers = table["row_numbers"]
        group.scales[table["row"]] = _Count(table["rows"]) if numbers is None else numbers, {}
        for column in table["columns"]:
            home = path
            if column["is_group"]:
                home = f"{path}/{column['link']}"
                self.groups[home] = _Group(column["attributes"])
            for number, dataset in enumerate(column["datasets"]):
                attributes = column["attributes"] if number == 0 and not column["is_group"] else {}
                name = dataset["path"].rsplit("/", 1)[-1]
                self.groups[home].parts[name] = (
                    _Described(table, column, dataset),
                    _once({name: _alone(value) for name, value in attributes.items()}),
                )
        for scale, values, attributes in table["coordinates"]:
            home, _, name = f"{path}/{scale}".rpartition("/")
            self.groups[home].scales[name] = values, attributes

    def _add_names(self) -> None:
        """The coordinates with the names of correlations and antennas."""
        for group in self.groups.values():
            for scale, (values, _) in list(group.scales.items()):
                if scale.startswith("corr_") and not isinstance(values, _Count):
                    group.names[f"{scale}_name"] = scale, np.array([_correlation(int(code)) for code in values])
        antennas = self.groups.get("/ANTENNA")
        if antennas is None or "NAME" not in antennas.parts:
            return
        described = antennas.parts["NAME"][0]
        if described.part != "data" or not described.is_text or len(described.shape) != 1:
            return
        try:
            texts = described.read(self, range(described.rows), (), ())
        except Error:
            # whoever reads the column is told
            return
        names = np.array([*texts, ""], dtype=str)
        for group in self.groups.values():
            for column in sorted(_ANTENNAS & set(group.parts)):
                if group.parts[column][0].is_scalar_int:
                    group.names[f"{column}_NAME"] = column, names

    @property
    def source(self) -> _native.Source:
        source = self._source
        if source is None:
            raise ValueError("the table is closed")
        return source

    def close(self) -> None:
        """Gives back the lock and all files."""
        self._source = None

    def once(self, what: str, table: int, column: int, compute: Callable[[], Any]) -> Any:
        """What `compute` gives, computed the first time."""
        key = what, table, column
        with self._lock:
            if key not in self._known:
                self._known[key] = compute()
            return self._known[key]


class _Group:
    """A group of the tree: what becomes a dataset."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = {name: _alone(value) for name, value in attributes.items()}
        self.scales: dict[str, tuple[_Array | _Count, dict[str, Any]]] = {}
        self.parts: dict[str, tuple[_Described, dict[str, Any]]] = {}
        self.names: dict[str, tuple[str, _Array]] = {}
        """By coordinate: the scale that the names are of; or the column with numbers of the names, whose last is for
        numbers that have none."""


def _alone(value: Any) -> Any:
    """The element of a list or an array that has only one: netCDF does not tell them apart."""
    return value[0] if not isinstance(value, str) and np.ndim(value) and len(value) == 1 else value


_SAID = {"QuantumUnits": "units", "UNIT": "units", "MEASINFO.type": "measure_type", "MEASINFO.Ref": "measure_ref"}
"""Keywords of casacore, and the attributes that say the same."""
_EPOCHS = {"s": "seconds since 1858-11-17", "d": "days since 1858-11-17"}
"""Units of epochs by the conventions CF, which xarray decodes."""
_ANTENNAS = {"ANTENNA1", "ANTENNA2", "ANTENNA_ID"}


def _once(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes without those that repeat another."""
    return {
        name: value
        for name, value in attributes.items()
        if name not in _SAID or _SAID[name] not in attributes or set(np.ravel(value)) != {attributes[_SAID[name]]}
    }


def _correlation(code: int) -> str:
    return STOKES[code] if 0 < code < len(STOKES) else str(code)


class _Described:
    """What the outline says of a dataset; it pickles, and finds its cells again in the source when that is open."""

    def __init__(self, table: dict[str, Any], column: dict[str, Any], dataset: dict[str, Any]) -> None:
        self.table: int = table["table"]
        self.rows: int = table["rows"]
        self.column: int = column["column"]
        self.part: str = dataset["part"]
        self.cube: int = dataset["cube"] or 0
        self.dims: tuple[str, ...] = tuple(dataset["dims"])
        self.shape: tuple[int, ...] = tuple(dataset["shape"])
        self.chunk: tuple[int, ...] | None = None if dataset["chunk"] is None else tuple(dataset["chunk"])
        self.is_text: bool = dataset["type"] == "string"
        self.dtype: np.dtype[Any] = DTYPES[dataset["type"]]
        self.is_scalar_int = self.part == "data" and len(self.shape) == 1 and self.dtype.kind in "iu"
        # one that says which cells are defined is there if some are not
        self.has_undefined = any(other["part"] == "defined" for other in column["datasets"])

    def read(self, opened: _Opened, rows: Rows, start: tuple[int, ...], extent: tuple[int, ...]) -> _Array:
        """A box of the dataset: `rows` of its first axis, and from `start` on `extent` of the others."""
        if not len(rows) or 0 in extent:
            return np.empty((len(rows), *extent), self.dtype)
        if self.part == "data" and not self.is_text and not self.has_undefined:
            cells = opened.source.column(self.table, self.column)
            region = None if extent == self.shape[1:] else (start, extent)
            if isinstance(rows, range):
                return cells.read(rows.start, rows.stop, region)
            return cells.read_at(rows, region)
        blocks = [self._block(opened, run, start, extent) for run in runs(rows)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def _block(self, opened: _Opened, rows: range, start: tuple[int, ...], extent: tuple[int, ...]) -> _Array:
        first, last = rows.start, rows.stop
        if self.part == "data":
            return self._cells(opened, first, last, start, extent)
        if self.part == "cube":
            box = (first, *start), (last - first, *extent)
            return _native.hypercube_part(opened.source, self.table, self.column, self.cube, box)
        if self.part in ("row_cube", "row_index"):
            return self._row_map(opened, first, last)
        if self.part == "offset":
            return self._offsets(opened)[first:last]
        if self.part == "values":
            return self._values(opened, first, last)
        shapes, defined = opened.source.column(self.table, self.column).shapes(first, last)
        if self.part == "defined":
            return np.asarray(defined, dtype=bool)
        padded = np.full((last - first, self.shape[1]), -1, np.int32)
        padded[:, : shapes.shape[1]] = shapes
        return padded[:, start[0] : start[0] + extent[0]]

    def _cells(self, opened: _Opened, first: int, last: int, start: tuple[int, ...], extent: tuple[int, ...]) -> _Array:
        cell = self.shape[1:]
        region = None if extent == cell else (start, extent)
        values = _native.stored_cells(opened.source, self.table, self.column, (first, last), region, cell)
        return values.reshape(last - first, *extent)

    def _row_map(self, opened: _Opened, first: int, last: int) -> _Array:
        def compute() -> _Array:
            runs = _native.hypercube_rows(opened.source, self.table, self.column)
            return np.array(runs, np.int64).reshape(-1, 4)

        runs = opened.once("runs", self.table, self.column, compute)
        rows = np.arange(first, last)
        if not len(runs):
            return np.full(len(rows), -1 if self.part == "row_cube" else 0, self.dtype)
        run = runs[np.searchsorted(runs[:, 0], rows, "right") - 1]
        inside = (rows >= run[:, 0]) & (rows < run[:, 1])
        found = (run[:, 2], -1) if self.part == "row_cube" else (run[:, 3] + rows - run[:, 0], 0)
        return np.where(inside, *found).astype(self.dtype)

    def _offsets(self, opened: _Opened) -> _Array:
        def compute() -> _Array:
            shapes, defined = opened.source.column(self.table, self.column).shapes(0, self.rows)
            counts = np.where(defined, np.where(shapes < 0, 1, shapes).prod(axis=1, dtype=np.int64), 0)
            return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])

        offsets: _Array = opened.once("offsets", self.table, self.column, compute)
        return offsets

    def _values(self, opened: _Opened, first: int, last: int) -> _Array:
        """The elements from `first` up to and without `last`, out of the cells that have them."""
        offsets = self._offsets(opened)
        row = int(np.searchsorted(offsets, first, "right")) - 1
        end = int(np.searchsorted(offsets, last, "left"))
        values = _native.stored_cells(opened.source, self.table, self.column, (row, end))
        begin = int(offsets[row])
        return values[first - begin : last - begin]


class _Count(BackendArray):
    """The numbers from 0 on. Most are never made: an index over all rows is not always wanted."""

    def __init__(self, rows: int) -> None:
        self.shape = (rows,)
        self.dtype = np.dtype(np.int64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        found = range(self.shape[0])[key[0]]
        if isinstance(found, int):
            return np.int64(found)
        return np.arange(found.start, found.stop, found.step, dtype=np.int64)


class _LazyArray(BackendArray):
    """A dataset that is read when it is indexed; from any thread, and after pickling."""

    def __init__(self, manager: Any, described: _Described) -> None:
        self.manager = manager
        self.described = described
        self.shape = described.shape
        self.dtype = described.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        box = wanted(key, self.shape)
        found = self.described.read(self.manager.acquire(), box.rows, box.start, box.extent)
        # each axis by itself: numpy would take several arrays together
        for axis in reversed(range(found.ndim)):
            part = box.rest[axis]
            if isinstance(part, slice):
                found = found[(slice(None),) * axis + (part,)]
            else:
                found = np.take(found, part, axis)
        return found


class _NamesArray(_LazyArray):
    """The names that a column of numbers stands for."""

    def __init__(self, manager: Any, described: _Described, names: _Array) -> None:
        super().__init__(manager, described)
        self.names = names
        self.dtype = names.dtype

    def _read(self, key: tuple[Any, ...]) -> Any:
        numbers = super()._read(key)
        last = len(self.names) - 1
        return self.names[np.where((numbers >= 0) & (numbers < last), numbers, last)]


class _Store(AbstractDataStore):
    """A group of the tree, for xarray's decoders."""

    def __init__(self, manager: Any, path: str) -> None:
        self._manager = manager
        self._path = path

    def _group(self) -> _Group:
        group: _Group = self._manager.acquire().groups[self._path]
        return group

    def get_variables(self) -> dict[str, Variable]:
        group = self._group()
        found: dict[str, Variable] = {}
        for name, (values, of) in group.scales.items():
            lazy = indexing.LazilyIndexedArray(values) if isinstance(values, _Count) else values
            found[name] = Variable((name,), lazy, dict(of))
        for name, (described, attributes) in group.parts.items():
            data = indexing.LazilyIndexedArray(_LazyArray(self._manager, described))
            encoding: dict[str, Any] = {"dtype": str if described.is_text else described.dtype}
            encoding["original_shape"] = described.shape
            if described.chunk is not None:
                encoding["chunksizes"] = described.chunk
                encoding["preferred_chunks"] = dict(zip(described.dims, described.chunk, strict=True))
            found[name] = Variable(described.dims, data, self._with_calendar(described, attributes), encoding)
        for name, (source, names) in group.names.items():
            found[name] = self._named(group, source, names)
        return found

    def _named(self, group: _Group, of: str, names: _Array) -> Variable:
        if of in group.scales:
            return Variable((of,), names, {"long_name": f"names of {of}"})
        described = group.parts[of][0]
        data = indexing.LazilyIndexedArray(_NamesArray(self._manager, described, names))
        return Variable(described.dims, data, {"long_name": f"names of {of}"})

    def _with_calendar(self, described: _Described, attributes: dict[str, Any]) -> dict[str, Any]:
        """Attributes with the unit of epochs as CF has it, unless the first or last is out of its range: xarray, which
        looks at these two, would not open the dataset."""
        unit = attributes.get("units")
        if attributes.get("measure_type") != "epoch" or unit not in _EPOCHS or described.part != "data":
            return dict(attributes)
        start, extent = (0,) * (len(described.shape) - 1), described.shape[1:]
        ends = [range(row, row + 1) for row in {0, described.rows - 1} if described.rows]
        values = [described.read(self._manager.acquire(), row, start, extent) for row in ends]
        has_calendar = all(fits_calendar(value, unit) for value in values)
        return {**attributes, "units": _EPOCHS[unit]} if has_calendar else dict(attributes)

    def get_attrs(self) -> dict[str, Any]:
        return dict(self._group().attributes)

    def get_dimensions(self) -> dict[str, int]:
        group = self._group()
        found = {name: len(values) for name, (values, _) in group.scales.items()}
        for described, _ in group.parts.values():
            found.update(zip(described.dims, described.shape, strict=True))
        return found

    def get_encoding(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._manager.close()


class H5bridgeBackend(BackendEntrypoint):
    """`engine="h5bridge"`: tables (MeasurementSets), also in containers and in native HDF5 files.

    Besides xarray's own arguments (`chunks`, `drop_variables`, `decode_times` …) there are those of `open_table`:
    `lock`, `lock_timeout` and `follow_external`. The tables are locked for reading until the dataset or tree is closed.
    """

    description = "Casacore tables and MeasurementSets, read without casacore or conversion"
    url = "https://github.com/ctds-hdf5/ctds-hdf5"
    supports_groups = True
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "lock",
        "lock_timeout",
        "follow_external",
        "schema",
        "partition_schema",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """False: the engine is named. Other packages claim table directories for views of their own."""
        return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        lock: bool = True,
        lock_timeout: float | None = 60.0,
        follow_external: bool = False,
        **decoders: Any,
    ) -> Dataset:
        """One group: `group` is `MAIN`, `ANTENNA`, `MAIN/DATA` of a column in several datasets, `/` of the root.
        Without it, the table that the path names.

        Raises `NotFoundError` if there is no such group, and what `open_table` raises.
        """
        manager = _manager(filename_or_obj, lock, lock_timeout, follow_external)
        try:
            opened = manager.acquire()
            path = opened.default if group is None else _found(opened, group, filename_or_obj)
            return _dataset(manager, path, drop_variables, decoders)
        except BaseException:
            manager.close()
            raise

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        lock: bool = True,
        lock_timeout: float | None = 60.0,
        follow_external: bool = False,
        schema: str | None = None,
        partition_schema: list[str] | None = None,
        **decoders: Any,
    ) -> dict[str, Dataset]:
        """All groups by their paths; those below `group`, relative to it, if it is given. With `schema="msv4"`, those
        of the processing set that a MeasurementSet is, whose partitions are separated by the columns of
        `partition_schema` as well.
        """
        if schema is not None:
            return _processing_set(
                filename_or_obj, schema, group, partition_schema, drop_variables, lock, lock_timeout, follow_external
            )
        if partition_schema is not None:
            raise UsageError('partition_schema is for schema="msv4"')
        manager = _manager(filename_or_obj, lock, lock_timeout, follow_external)
        try:
            opened = manager.acquire()
            top = "/" if group is None else _found(opened, group, filename_or_obj)
            if group is None and opened.default != "/MAIN":
                top = opened.default
            below = top.rstrip("/") + "/"
            paths = [path for path in opened.groups if path == top or path.startswith(below)]
            return {
                "/" + path[len(below) :] if path != top else "/": _dataset(manager, path, drop_variables, decoders)
                for path in paths
            }
        except BaseException:
            manager.close()
            raise

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """The tree; its arguments are those of `open_groups_as_dict`."""
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree: DataTree = DataTree.from_dict(groups)
        for path, dataset in groups.items():
            tree[path].set_close(dataset._close)
        return tree


def _processing_set(
    path: Any,
    schema: str,
    group: str | None,
    partition_schema: list[str] | None,
    drop_variables: str | Iterable[str] | None,
    lock: bool,
    lock_timeout: float | None,
    follow_external: bool,
) -> dict[str, Dataset]:
    if schema != "msv4":
        raise UsageError(f"schema is {schema!r}; it can be 'msv4'")
    if group is not None:
        raise UsageError('schema="msv4" has no groups to choose from: index the tree')
    dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    found, close = _msv4.groups(path, _options(lock, lock_timeout, follow_external), partition_schema, dropped)
    for dataset in found.values():
        dataset.set_close(close)
    return found


def _manager(path: Any, lock: bool, lock_timeout: float | None, follow_external: bool) -> Any:
    """Opens the source when it is needed, once for all who ask for it; pickles as path and options."""
    options = _options(lock, lock_timeout, follow_external)
    name = os.fspath(path)
    if "://" not in name and not isinstance(name, Fetched):
        name = os.path.abspath(os.path.expanduser(name))
    return CachingFileManager(_Opened, name, options, mode="r")


def _options(lock: bool, lock_timeout: float | None, follow_external: bool) -> tuple[tuple[str, Any], ...]:
    return ("lock_timeout", waiting(lock, lock_timeout)), ("follow_external", follow_external)


def _found(opened: _Opened, group: str, path: Any) -> str:
    wanted_path = "/" + group.strip("/")
    if wanted_path not in opened.groups:
        raise NotFoundError(f"{path}: no group {group}; there are {', '.join(sorted(opened.groups))}")
    return wanted_path


def _dataset(manager: Any, path: str, drop_variables: str | Iterable[str] | None, decoders: dict[str, Any]) -> Dataset:
    dataset = StoreBackendEntrypoint().open_dataset(_Store(manager, path), drop_variables=drop_variables, **decoders)
    shown = dataset.set_coords([name for name in manager.acquire().groups[path].names if name in dataset])
    shown.set_close(dataset._close)
    return shown


def of_table(
    path: str, group: str, opening: dict[str, Any], rows: Rows, columns: tuple[str, ...], options: dict[str, Any]
) -> Dataset:
    """Rows and columns of the table that is a group of the source at `path`."""
    timeout = opening["lock_timeout"]
    locking = {"lock": timeout is not None, "lock_timeout": timeout, "follow_external": opening["follow_external"]}
    whole = open_dataset(path, engine=H5bridgeBackend, group=group, **locking, **options)
    kept = [name for name in whole.data_vars if str(name).removesuffix("__defined") in columns]
    chosen = slice(rows.start, rows.stop) if isinstance(rows, range) else rows.astype(np.int64)
    found = whole[kept].isel(row=chosen)
    found.set_close(whole.close)
    return found
