"""MeasurementSets in the schema MSv4 of xradio, as trees of datasets that are read when they are computed.

The structure is that of the crate msv4; here are its arrays. Used by the engine of xarray.py.
"""

from __future__ import annotations

import datetime
import os
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset, DataTree, Variable
from xarray.backends import BackendArray, CachingFileManager
from xarray.core import indexing

from . import _native
from ._column import DTYPES
from ._errors import UsageError
from ._indexing import wanted

_CHUNK_BYTES = 64 << 20


class _Opened:
    """An open MeasurementSet and its datasets by their paths. Threads share it."""

    def __init__(
        self, path: str, options: tuple[tuple[str, Any], ...], schema: tuple[Any, ...], mode: str = "r"
    ) -> None:
        source = _native.Source(path, **dict(options))
        name, partition_schema, date = schema
        self.set: _native.Msv4 | None = _native.Msv4(source, name, list(partition_schema), date)
        self.datasets: dict[str, dict[str, Any]] = {of["path"]: of for of in self.set.datasets()}

    def close(self) -> None:
        """Gives back the lock and all files."""
        self.set = None


class _OnGrid(BackendArray):
    """A variable of times and baselines; from any thread, and after pickling."""

    def __init__(self, manager: Any, place: tuple[int, int, int], shape: tuple[int, ...], dtype: Any) -> None:
        self.manager = manager
        self.place = place
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        opened = self.manager.acquire().set
        if opened is None:
            raise ValueError("the MeasurementSet is closed")
        times = wanted((key[0],), self.shape[:1])
        baselines = wanted((key[1],), self.shape[1:2])
        box = wanted((slice(None), *key[2:]), (1, *self.shape[2:]))
        found: npt.NDArray[Any] = opened.read(
            *self.place, list(times.rows), list(baselines.rows), list(box.start), list(box.extent)
        )
        # each axis by itself: numpy would take several arrays together
        rest = (times.rest[0], baselines.rest[0], *box.rest[1:])
        for axis in reversed(range(found.ndim)):
            part = rest[axis]
            if isinstance(part, slice):
                found = found[(slice(None),) * axis + (part,)]
            else:
                found = np.take(found, part, axis)
        return found


def _variable(manager: Any, place: tuple[int, int], number: int, of: dict[str, Any]) -> Variable:
    axes, attributes = tuple(of["axes"]), dict(of["attributes"])
    if "values" in of:
        return Variable(axes, of["values"], attributes)
    shape, dtype = tuple(of["shape"]), DTYPES[of["type"]]
    data = indexing.LazilyIndexedArray(_OnGrid(manager, (*place, number), shape, dtype))
    # whole times, as they are stored one after the other
    per_time = max(int(np.prod(shape[1:])) * dtype.itemsize, 1)
    chunk = min(max(_CHUNK_BYTES // per_time, 1), max(shape[0], 1)), *shape[1:]
    encoding = {"preferred_chunks": dict(zip(axes, chunk, strict=True))}
    return Variable(axes, data, attributes, encoding)


def _dataset(manager: Any, of: dict[str, Any], dropped: set[str]) -> Dataset:
    place = of["place"]
    coordinates, variables = (
        {
            variable["name"]: _variable(manager, place, number, variable)
            for number, variable in enumerate(of[key])
            if variable["name"] not in dropped
        }
        for key in ("coordinates", "variables")
    )
    return Dataset(variables, coordinates, dict(of["attributes"]))


def groups(
    path: Any, options: tuple[tuple[str, Any], ...], partition_schema: list[str] | None, dropped: set[str]
) -> tuple[dict[str, Dataset], Any]:
    """The datasets of a processing set by their paths, and what closes them all."""
    named = os.fspath(path)
    if "://" not in named:
        named = os.path.abspath(os.path.expanduser(named))
    name = os.path.splitext(os.path.basename(named.rstrip("/")))[0]
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "")
    schema = name, tuple(partition_schema or ()), date
    manager = CachingFileManager(_Opened, named, options, schema, mode="r")
    try:
        opened = manager.acquire()
        if opened.set is not None:
            for warning in opened.set.warnings():
                warnings.warn(warning, UserWarning, stacklevel=4)
        found = {"/": Dataset(attrs={"type": "processing_set"})}
        for below, of in opened.datasets.items():
            found[f"/{below}"] = _dataset(manager, of, dropped)
        return found, manager.close
    except BaseException:
        manager.close()
        raise


def open_processing_set(
    ps_store: str | os.PathLike[str],
    scan_intents: list[str] | None = None,
    array_backend: str = "dask",
    *,
    partition_schema: list[str] | None = None,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    follow_external: bool = False,
) -> DataTree:
    """A MeasurementSet as a processing set of xradio: a tree with a dataset for each partition.

    The first arguments are those of `xradio.measurement_set.open_processing_set`. `ps_store` is a MeasurementSet that
    h5bridge reads: a directory, a container or a native HDF5 file. `scan_intents` leaves out partitions that have none
    of these intents. `array_backend` is "dask" or "xarray"; both are lazy. `partition_schema` lists columns by which
    rows are separated further: FIELD_ID, SCAN_NUMBER, STATE_ID, SOURCE_ID, SUB_SCAN_NUMBER, ANTENNA1, ARRAY_ID or
    INTERVAL.

    Raises what `open_table` raises, and `UnsupportedError` for other tables.
    """
    import xarray

    if array_backend not in ("dask", "xarray"):
        raise UsageError(f"array_backend is {array_backend!r}; it can be 'dask' or 'xarray'")
    tree: DataTree = xarray.open_datatree(
        ps_store,
        engine="h5bridge",
        schema="msv4",
        partition_schema=partition_schema,
        chunks={} if array_backend == "dask" else None,
        lock=lock,
        lock_timeout=lock_timeout,
        follow_external=follow_external,
    )
    if scan_intents is None:
        return tree
    intents = set(scan_intents)
    kept = {
        name: child for name, child in tree.children.items() if intents & set(child.scan_name.attrs["scan_intents"])
    }
    closing = tree.close
    chosen: DataTree = DataTree(tree.to_dataset(), children=kept)
    chosen.set_close(closing)
    return chosen
