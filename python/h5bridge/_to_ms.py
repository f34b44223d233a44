"""Writes a MeasurementSet of version 2 from a tree of the schema MSv4: of xradio, of xarray-ms, or of this package.

The rows of the main table are in the order of time, baseline and partition. They are written in *blocks*, which are
runs of times of all partitions; a block of one time that is still too large is of some baselines. Times are counted
over all partitions, and a *pair* is the number of a baseline over all antennas.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import DataTree, Variable

from . import _ms_partition, _ms_subtables, _ms_tables, _ms_times, _native
from ._errors import UnsupportedError, UsageError
from ._ms_partition import GRIDDED, SPECTRAL, Partition, axes_of
from ._ms_subtables import Said, Subtables, dictionary, texts
from ._ms_tables import UNIX_EPOCH, Column
from ._progress import Report

_Array = npt.NDArray[Any]

_BLOCK_BYTES = 12 << 20
# of chunks that are kept, as those of Zarr are read as a whole
_CHUNKS_BYTES = 192 << 20
_TILE_BYTES = 1 << 18


def write(tree: Any, out: str, overwrite: bool, report: Report | None) -> tuple[dict[str, Any], list[str]]:
    """Writes the MeasurementSet; what it holds, and sentences on what was left out."""
    if not isinstance(tree, DataTree):
        raise UsageError(f"the source is a {type(tree).__name__}, expected a path or a DataTree")
    start = time.monotonic()
    said = Said()
    tables = Subtables(said)
    partitions = [_ms_partition.read(path, node, tables) for path, node in _ms_partition.found_in(tree, said)]
    _finish(partitions, tables)
    columns = _main_columns(partitions, said)
    keywords = {"MS_VERSION": np.float32(2.0)}
    description = {"type": "Measurement Set", "keywords": keywords, "managers": _managers(columns, partitions)}
    described = {**description, "columns": [column.describe() for column in columns]}
    writer = _native.NewTableWriter.create(out, described, overwrite)
    try:
        written = tables.write(writer, partitions[0].scale, _history(partitions[0]))
        written |= _ms_times.write(writer, partitions, tables)
        main = _Main(writer, partitions, columns, report)
        main.write()
        writer.close()
    except BaseException:
        writer.abandon()
        raise
    count = len(columns) + sum(written.values())
    summary = {"out": out, "rows": main.rows, "tables": 1 + len(written), "columns": count, "bytes": main.bytes}
    return {**summary, "seconds": time.monotonic() - start}, said.sentences()


def _finish(partitions: list[Partition], tables: Subtables) -> None:
    """Gives rows their final numbers."""
    scales = {part.scale: part.path for part in partitions}
    if len(scales) > 1:
        (one, first), (other, second) = list(scales.items())[:2]
        raise UnsupportedError(f"{second}/time: scale {other!r}, expected {one!r} as in {first}")
    moved = tables.finish()
    numbers = tables.antenna_numbers()
    times = np.unique(np.concatenate([part.times for part in partitions]))
    for part in partitions:
        pair = [np.array([numbers[key] for key in keys], np.int32) for keys in part.antenna_keys]
        part.antenna1, part.antenna2 = pair
        part.pairs = part.antenna1.astype(np.int64) * len(numbers) + part.antenna2
        part.fields = moved["FIELD"][part.fields]
        part.shared["DATA_DESC_ID"] = int(moved["DATA_DESCRIPTION"][part.shared["DATA_DESC_ID"]])
        part.window = int(moved["SPECTRAL_WINDOW"][part.window])
        part.at = np.searchsorted(times, part.times)


def _history(part: Partition) -> dict[str, Any]:
    creator = dictionary(part.dataset.attrs.get("creator"))
    software = " ".join(texts([creator.get("software_name", ""), creator.get("version", "")])).strip()
    version = part.dataset.attrs.get("schema_version", "")
    message = f"from MSv4 {version}" + (f", made by {software}" if software else "")
    moment = _ms_subtables.seconds(part.dataset.attrs.get("creation_date", ""))
    return {"MESSAGE": message, "ORIGIN": "h5bridge", "APPLICATION": "h5bridge", "PRIORITY": "INFO", "TIME": moment}


# ---- the main table --------------------------------------------------------------------------------------------------


def _main_columns(partitions: list[Partition], said: Said) -> list[Column]:
    found = list(_ms_tables.MAIN)
    for name, (column, kind) in SPECTRAL.items():
        having = [part for part in partitions if column in part.columns]
        if not having:
            continue
        units = {str(part.dataset.variables[part.columns[column]].attrs.get("units", "Jy")) for part in having}
        if len(units) > 1:
            said.add(f"{name} has several units: {', '.join(sorted(units))}; the column has none", having[0].path)
        one = tuple(units) if len(units) == 1 and "" not in units else ()
        found.append(Column(column, kind, 2, units=one))
        for part in partitions:
            if column not in part.columns and column not in ("DATA", "FLOAT_DATA"):
                said.add(f"no variable {name}: its rows have no {column}", part.path)
    for column in ("WEIGHT_SPECTRUM", "SIGMA_SPECTRUM"):
        name = "WEIGHT" if column == "WEIGHT_SPECTRUM" else column
        if any(part.names.get(name, name) in part.dataset.data_vars for part in partitions):
            found.append(Column(column, "float", 2))
    frames = []
    for part in partitions:
        if "UVW" in part.names:
            frame = str(part.dataset.variables[part.names["UVW"]].attrs.get("frame", "fk5")).lower()
            frames.append({"fk5": "J2000", "icrs": "ICRS", "itrs": "ITRF"}.get(frame, frame.upper()))
            if frames[0] != frames[-1]:
                said.add(f"UVW has frame {frames[-1]}; the column has {frames[0]}", part.path)
    found = _ms_tables.referred(found, {"UVW": frames[0]} if frames else {})
    return _ms_subtables.scaled(found, partitions[0].scale)


def _managers(columns: list[Column], partitions: list[Partition]) -> list[dict[str, Any]]:
    largest = max(partitions, key=lambda part: part.channels * len(part.correlations))
    correlations, channels = max(len(largest.correlations), 1), min(max(largest.channels, 1), 1024)

    def rows(cell: int, size: float) -> int:
        return max(int(_TILE_BYTES / max(cell * size, 1)), 1)

    cell = correlations * channels
    sizes = {"complex": 8, "float": 4, "boolean": 1 / 8}
    found: list[dict[str, Any]] = [
        {"type": "IncrementalStMan", "name": "ISMData", "columns": list(_ms_tables.INCREMENTAL), "tile": None},
        {"type": "TiledColumnStMan", "name": "TiledUVW", "columns": ["UVW"], "tile": [rows(3, 8), 3]},
    ]
    for column in columns:
        if column.axes is None or column.name == "UVW":
            continue
        if column.axes == 1:
            tile = [rows(correlations, 4), correlations]
        elif column.axes == 3:
            tile = [rows(cell, 1 / 8), 1, channels, correlations]
        else:
            tile = [rows(cell, sizes[column.type]), channels, correlations]
        found.append({"type": "TiledShapeStMan", "name": f"Tiled{column.name}", "columns": [column.name], "tile": tile})
    return found


class _Kept:
    """The bytes of chunks that are kept, of all partitions."""

    bytes = 0


class _Chunks:
    """Parts of variables of a partition. Of those in chunks, the chunks of some times are kept."""

    def __init__(self, part: Partition, all_kept: _Kept) -> None:
        self._part = part
        self._all_kept = all_kept
        self._kept: dict[str, tuple[int, int, _Array]] = {}

    def read(self, name: str, start: int, stop: int, places: _Array | None) -> _Array:
        """The times `start` to `stop` of a variable, of these places of its second axis; in the order of the axes."""
        part = self._part
        found: Variable = part.dataset.variables[name]
        if part.order is not None:
            return self._array(name, found.isel(time=part.order[start:stop]), places)
        length = self._chunk(found)
        if length <= 1 or stop - start >= len(part.times):
            return self._array(name, found.isel(time=slice(start, stop)), places)
        first, last = start // length * length, min(-(-stop // length) * length, len(part.times))
        kept = self._kept.get(name)
        if kept is None or kept[0] > start or kept[1] < stop:
            size = (last - first) * int(np.prod(found.shape[1:])) * found.dtype.itemsize
            if kept is not None:
                self._drop(name)
            if self._all_kept.bytes + size > _CHUNKS_BYTES:
                return self._array(name, found.isel(time=slice(start, stop)), places)
            kept = first, last, self._array(name, found.isel(time=slice(first, last)), None)
            self._kept[name] = kept
            self._all_kept.bytes += kept[2].nbytes
        array = kept[2][start - kept[0] : stop - kept[0]]
        if stop >= kept[1]:
            self._drop(name)
        return array if places is None else array[:, places]

    def _drop(self, name: str) -> None:
        self._all_kept.bytes -= self._kept.pop(name)[2].nbytes

    def end(self) -> None:
        for name in list(self._kept):
            self._drop(name)

    @staticmethod
    def _chunk(of: Variable) -> int:
        """Times of a chunk that is read as a whole, be it of a file or of dask; 1 if there are none."""
        place = of.dims.index("time")
        if of.chunks is not None:
            return int(of.chunks[place][0])
        stored = of.encoding.get("chunks")
        return int(stored[place]) if stored is not None and len(stored) == len(of.dims) else 1

    def _array(self, name: str, of: Variable, places: _Array | None) -> _Array:
        if places is not None:
            of = of.isel({self._part.second: places})
        values = np.asarray(of.values)
        dims = list(of.dims)
        order = [axis for names in axes_of(self._part, name) for axis in names if axis in dims]
        return values.transpose([dims.index(axis) for axis in order]) if order != dims else values


class _Main:
    """Writes the rows of the main table."""

    def __init__(
        self,
        writer: _native.NewTableWriter,
        partitions: list[Partition],
        columns: list[Column],
        report: Report | None,
    ) -> None:
        self.writer, self.partitions, self.report = writer, partitions, report
        self.columns = {column.name: column for column in columns}
        kept = _Kept()
        self.chunks = [_Chunks(part, kept) for part in partitions]
        self.rows = 0
        self.bytes = 0
        self.total = sum(len(part.times) * len(part.pairs) * part.row_bytes() for part in partitions)

    def write(self) -> None:
        try:
            done = 0
            for ranges in self._blocks():
                found = [
                    _Block(self.partitions[of], self.chunks[of], first, last, places)
                    for of, first, last, places in ranges
                ]
                self._write_block(found)
                done += sum(block.bytes() for block in found)
                if self.report is not None:
                    self.report(min(done, self.total), self.total, ".", "")
        finally:
            for chunks in self.chunks:
                chunks.end()

    def _blocks(self) -> Iterator[list[tuple[int, int, int, _Array | None]]]:
        """Of each block the partitions with the range of their times, and the places of baselines (None: all)."""
        count = max((int(part.at[-1]) + 1 for part in self.partitions if len(part.at)), default=0)
        costs = np.zeros(count)
        for part in self.partitions:
            np.add.at(costs, part.at, len(part.pairs) * part.row_bytes())
        start = 0
        while start < count:
            ends = np.searchsorted(np.cumsum(costs[start : start + 65536]), _BLOCK_BYTES, "right")
            stop = start + max(int(ends), 1)
            ranges = []
            for of, part in enumerate(self.partitions):
                first, last = (int(place) for place in np.searchsorted(part.at, (start, stop)))
                if first < last:
                    ranges.append((of, first, last))
            parts = int(costs[start:stop].sum() // (2 * _BLOCK_BYTES)) + 1
            if parts == 1:
                yield [(of, first, last, None) for of, first, last in ranges]
            else:
                pairs = np.unique(np.concatenate([self.partitions[of].pairs for of, _, _ in ranges]))
                for chosen in np.array_split(pairs, min(parts, max(len(pairs), 1))):
                    places = [np.flatnonzero(np.isin(self.partitions[of].pairs, chosen)) for of, _, _ in ranges]
                    yield [(*of, place) for of, place in zip(ranges, places, strict=True) if len(place)]
            start = stop

    def _write_block(self, blocks: list[_Block]) -> None:
        blocks = [block for block in blocks if block.count]
        count = sum(block.count for block in blocks)
        if not count:
            return
        at, pairs, number = (
            np.concatenate(values)
            for values in zip(
                *((block.at, block.pairs, np.full(block.count, place)) for place, block in enumerate(blocks)),
                strict=True,
            )
        )
        order = np.lexsort((number, pairs, at))
        places = np.empty(count, np.int64)
        places[order] = np.arange(count)
        self.writer.add_rows(count)
        first = self.rows
        self.rows += count
        all_rows = np.arange(first, first + count, dtype=np.uint64)
        scalars = [block.scalars() for block in blocks]
        for name in scalars[0]:
            values = np.concatenate([of[name] for of in scalars])[order]
            self._put(name, all_rows, values)
        begin = 0
        for block in blocks:
            rows = places[begin : begin + block.count] + first
            begin += block.count
            is_sorted = bool((np.diff(rows) > 0).all())
            perm = None if is_sorted else np.argsort(rows)
            rows = (rows if perm is None else rows[perm]).astype(np.uint64)
            for name, values in block.arrays(self.columns):
                self._put(name, rows, values if perm is None else values[perm])

    def _put(self, name: str, rows: _Array, values: _Array) -> None:
        array = self.columns[name].array(values)
        self.bytes += array.nbytes
        self.writer.put(name, rows, array)


class _Block:
    """Some times of a partition, of all baselines or of some. Its rows are the places that are no padding."""

    def __init__(self, part: Partition, chunks: _Chunks, start: int, stop: int, places: _Array | None) -> None:
        self.part, self.chunks, self.range, self.places = part, chunks, (start, stop), places
        self.axis = np.arange(len(part.pairs)) if places is None else places
        self._data: dict[str, _Array] = {}
        column, name = next(iter(part.columns.items()))
        if "_row" in part.dataset.data_vars:
            self.has = self._read("_row") >= 0
        else:
            self._data[column] = self._read(name)
            self.has = ~self._padding(self._data[column])
        time, second = np.nonzero(self.has)
        self.count = len(time)
        self.times, self.second = time + start, self.axis[second]
        self.at, self.pairs = part.at[self.times], part.pairs[self.second]

    def bytes(self) -> int:
        return self.has.size * self.part.row_bytes()

    def _read(self, name: str) -> _Array:
        return self.chunks.read(name, *self.range, self.places)

    def _padding(self, data: _Array) -> _Array:
        has_none: _Array = np.asarray(np.isnan(data).all(axis=(2, 3)))
        if not has_none.any():
            return has_none
        for name in ("UVW", "TIME_CENTROID", "EFFECTIVE_INTEGRATION_TIME"):
            found = self._optional(name)
            if found is not None:
                is_missing = np.isnan(found)
                return np.asarray(has_none & (is_missing.all(axis=2) if is_missing.ndim == 3 else is_missing))
        return has_none

    def _optional(self, name: str) -> _Array | None:
        name = self.part.names.get(name, name)
        return self._read(name) if name in self.part.dataset.data_vars else None

    def _rows(self, values: _Array) -> _Array:
        """The cells of the rows."""
        whole = values.reshape(-1, *values.shape[2:])
        return whole if self.has.all() else whole[self.has.ravel()]

    def scalars(self) -> dict[str, _Array]:
        part = self.part
        found: dict[str, _Array] = {name: np.full(self.count, value, np.int32) for name, value in part.shared.items()}
        found["ANTENNA1"], found["ANTENNA2"] = part.antenna1[self.second], part.antenna2[self.second]
        found["FIELD_ID"], found["SCAN_NUMBER"] = part.fields[self.times], part.scans[self.times]
        times = found["TIME"] = part.times[self.times]
        found["TIME_CENTROID"] = times
        for name in ("TIME_CENTROID", "EFFECTIVE_INTEGRATION_TIME", "INTEGRATION_TIME"):
            values = self._optional(name)
            if values is not None:
                found[GRIDDED[name]] = self._rows(values) + (UNIX_EPOCH if name == "TIME_CENTROID" else 0)
        interval = np.full(self.count, part.interval if np.isfinite(part.interval) else np.nan)
        found.setdefault("INTERVAL", interval)
        found.setdefault("EXPOSURE", found["INTERVAL"])
        found["INTERVAL"] = np.where(np.isnan(found["INTERVAL"]), found["EXPOSURE"], found["INTERVAL"])
        uvw = self._optional("UVW")
        found["UVW"] = np.zeros((self.count, 3)) if uvw is None else self._rows(uvw)
        self._flag = self._flags()
        found["FLAG_ROW"] = np.asarray(self._flag.all(axis=(1, 2)))
        return found

    def _flags(self) -> _Array:
        flags = self._optional("FLAG")
        if flags is None:
            return np.zeros((self.count, self.part.channels, len(self.part.correlations)), np.bool_)
        return self._rows(flags != 0)

    def arrays(self, columns: Mapping[str, Column]) -> Iterator[tuple[str, _Array]]:
        """The columns of channels and correlations; call `scalars` before."""
        part = self.part
        for column, name in part.columns.items():
            values = self._data.pop(column, None)
            yield column, self._rows(self._read(name) if values is None else values)
        yield "FLAG", self._flag
        del self._flag
        for name, column in (("WEIGHT", "WEIGHT_SPECTRUM"), ("SIGMA_SPECTRUM", "SIGMA_SPECTRUM")):
            spectrum = self._spectrum(name)
            if spectrum is not None:
                yield column, spectrum
            if name == "WEIGHT":
                weight = self._means(spectrum)
                yield "WEIGHT", weight
                # as casacore has the sigma of no weight
                has = weight > 0
                yield "SIGMA", np.where(has, 1 / np.sqrt(np.where(has, weight, 1)), -1)

    def _spectrum(self, name: str) -> _Array | None:
        """A variable for all channels and correlations, even if it lacks one of these axes."""
        values = self._optional(name)
        if values is None:
            return None
        part = self.part
        dims = part.dataset.variables[part.names.get(name, name)].dims
        if "frequency" not in dims:
            values = values[:, :, None]
        if "polarization" not in dims:
            values = values[..., None]
        shape = *values.shape[:2], part.channels, len(part.correlations)
        return self._rows(np.broadcast_to(values, shape)).astype(np.float32)

    def _means(self, spectrum: _Array | None) -> _Array:
        """The mean of the channels of each correlation, without those that are NaN."""
        if spectrum is None or not self.part.channels:
            return np.ones((self.count, len(self.part.correlations)))
        means: _Array = spectrum.mean(axis=1, dtype=np.float64)
        rows = np.flatnonzero(np.isnan(means).any(axis=1))
        if len(rows):
            chosen = spectrum[rows]
            has = ~np.isnan(chosen)
            sums = np.where(has, chosen, 0).sum(axis=1, dtype=np.float64)
            means[rows] = np.divide(sums, has.sum(axis=1), out=np.zeros(sums.shape), where=has.any(axis=1))
        return means
