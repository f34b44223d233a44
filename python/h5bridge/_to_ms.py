"""Writes a MeasurementSet of version 2 from a tree of the schema MSv4: of xradio, of xarray-ms, or of this package.

The rows of the main table are in the order of time, baseline and partition. They are written in *blocks*, which are
runs of times of all partitions; a block of one time that is still too large is of some baselines. Times are counted
over all partitions, and a *pair* is the number of a baseline over all antennas.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset, DataTree, Variable

from . import _ms_subtables, _ms_tables, _native
from ._errors import UnsupportedError, UsageError
from ._ms_subtables import Appended, Said, Subtables, dictionary, number, texts, time_axis, variable
from ._ms_tables import UNIX_EPOCH, Column
from ._progress import Report

_Array = npt.NDArray[Any]

_BLOCK_BYTES = 12 << 20
# of chunks that are kept, as those of Zarr are read as a whole
_CHUNKS_BYTES = 192 << 20
_TILE_BYTES = 1 << 18

# variable, column and type
_SPECTRAL = {
    "VISIBILITY": ("DATA", "complex"),
    "VISIBILITY_CORRECTED": ("CORRECTED_DATA", "complex"),
    "VISIBILITY_MODEL": ("MODEL_DATA", "complex"),
    "SPECTRUM": ("FLOAT_DATA", "float"),
}
_GRIDDED = {
    "UVW": "UVW",
    "TIME_CENTROID": "TIME_CENTROID",
    "EFFECTIVE_INTEGRATION_TIME": "EXPOSURE",
    "INTEGRATION_TIME": "INTERVAL",
}
_COORDINATES = (
    "time baseline_id antenna_name baseline_antenna1_name baseline_antenna2_name frequency polarization uvw_label "
    "field_name scan_name"
).split()
_ATTRIBUTES = (
    "schema_version creator creation_date type data_groups observation_info processor_info xradio_version"
).split()
_WEATHER = "DEW_POINT H2O IONOS_ELECTRON PRESSURE REL_HUMIDITY TEMPERATURE WIND_DIRECTION WIND_SPEED".split()


@dataclass
class _Partition:
    path: str
    dataset: Dataset
    children: dict[str, tuple[str, Dataset]]
    """Path and dataset by the type of the dataset."""
    second: str
    """The axis of baselines, or of antennas of single dishes."""
    columns: dict[str, str] = field(default_factory=dict)
    """Variables by their columns, the first of which is there always."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of the variables FLAG, WEIGHT and UVW."""
    correlations: list[str] = field(default_factory=list)
    channels: int = 0
    times: _Array = field(default_factory=lambda: np.empty(0))
    """Ascending, in seconds of MJD."""
    order: _Array | None = None
    """Places of the times in the tree; None if these ascend as well."""
    antenna_keys: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    antenna1: _Array = field(default_factory=lambda: np.empty(0, np.int32))
    antenna2: _Array = field(default_factory=lambda: np.empty(0, np.int32))
    pairs: _Array = field(default_factory=lambda: np.empty(0, np.int64))
    shared: dict[str, int] = field(default_factory=dict)
    """Columns that are the same in all rows."""
    fields: _Array = field(default_factory=lambda: np.empty(0, np.int32))
    scans: _Array = field(default_factory=lambda: np.empty(0, np.int32))
    interval: float = float("nan")
    scale: str = "utc"
    window: int = 0
    at: _Array = field(default_factory=lambda: np.empty(0, np.int64))
    """Places of the times among those of all partitions."""

    def row_bytes(self) -> int:
        """Bytes of a row in memory, about."""
        return self.channels * len(self.correlations) * (8 * len(self.columns) + 5) + 128


def write(tree: Any, out: str, overwrite: bool, report: Report | None) -> tuple[dict[str, Any], list[str]]:
    """Writes the MeasurementSet; what it holds, and sentences on what was left out."""
    if not isinstance(tree, DataTree):
        raise UsageError(f"the source is a {type(tree).__name__}, expected a path or a DataTree")
    start = time.monotonic()
    said = Said()
    tables = Subtables(said)
    partitions = [_read(path, node, tables) for path, node in _found(tree, said)]
    _finish(partitions, tables)
    columns = _main_columns(partitions, said)
    keywords = {"MS_VERSION": np.float32(2.0)}
    description = {"type": "Measurement Set", "keywords": keywords, "managers": _managers(columns, partitions)}
    described = {**description, "columns": [column.describe() for column in columns]}
    writer = _native.NewTableWriter.create(out, described, overwrite)
    try:
        written = tables.write(writer, partitions[0].scale, _history(partitions[0]))
        written |= _write_times(writer, partitions, tables)
        main = _Main(writer, partitions, columns, report)
        main.write()
        writer.close()
    except BaseException:
        writer.abandon()
        raise
    count = len(columns) + sum(written.values())
    summary = {"out": out, "rows": main.rows, "tables": 1 + len(written), "columns": count, "bytes": main.bytes}
    return {**summary, "seconds": time.monotonic() - start}, said.sentences()


# ---- the tree --------------------------------------------------------------------------------------------------------


def _found(tree: DataTree, said: Said) -> list[tuple[str, DataTree]]:
    """The partitions of a tree, which may be one itself."""
    found = [node for node in tree.subtree if _is_partition(node)]
    if not found:
        expected = "expected is a tree of MSv4"
        raise UsageError(f"{tree.path}: no dataset below has a variable VISIBILITY or SPECTRUM; {expected}")
    parts = [(node.path if node.path != "/" else f"/{node.name or 'MSv4'}", node) for node in found]
    below = {node.path for partition in found for node in partition.subtree}
    for node in tree.subtree:
        if node.path not in below and (node.data_vars or node.coords):
            said.add("the dataset is left out: it belongs to no partition", node.path)
    return parts


def _is_partition(node: DataTree) -> bool:
    return any(name in node.data_vars for name in _SPECTRAL) or "data_groups" in node.attrs


def _of_partition(path: str, node: DataTree, said: Said) -> dict[str, tuple[str, Dataset]]:
    """The datasets below a partition by their type, of each type the first; of fields that of the base group."""
    base = dictionary(node.attrs.get("data_groups")).get("base")
    wanted = str(base.get("field_and_source", "")) if isinstance(base, Mapping) else ""
    found: dict[str, tuple[str, Dataset]] = {}
    for name, child in node.children.items():
        kind = str(child.attrs.get("type", name.removesuffix("_xds")))
        below = f"{path}/{name}"
        # a coordinate that is that of the partition is only there
        content = child.to_dataset()
        if kind.startswith("field_and_source"):
            kind = "field_and_source"
            if wanted == name and kind in found:
                # that of the base group is kept
                (below, content), found[kind] = found[kind], (below, content)
        if kind in found:
            if not content.equals(found[kind][1]):
                said.add("the dataset is left out: the partition has another one of its type", below)
            continue
        if kind not in ("antenna", "field_and_source", "pointing", "system_calibration", "weather"):
            said.add(f"the dataset of type {kind} is left out", below)
            continue
        found[kind] = below, content
    return found


def _read(path: str, node: DataTree, tables: Subtables) -> _Partition:
    """What is known of a partition without its large variables."""
    said, dataset = tables.said, node.to_dataset()
    creator = str(dictionary(dataset.attrs.get("creator")).get("software_name", ""))
    # xarray-ms shows names as they are
    tables.has_suffix &= creator != "xarray-ms"
    children = _of_partition(path, node, said)
    for kind in ("antenna", "field_and_source"):
        if kind not in children:
            raise UsageError(f"{path}: no dataset of type {kind!r} is below it; expected is {kind}_xds")
    second = "antenna_name" if "SPECTRUM" in dataset.data_vars else "baseline_id"
    part = _Partition(path, dataset, children, second)
    _read_columns(part, said)
    for name in ("time", "frequency", "polarization", "field_name", "scan_name"):
        if name not in dataset.variables:
            raise UsageError(f"{path}: no coordinate {name}; expected of MSv4")
    part.correlations = _ms_subtables.labels(dataset, path, "polarization", ("polarization",))
    frequency = variable(dataset, path, "frequency", ("frequency",))
    part.channels = len(frequency)
    part.window = tables.add_window(frequency, f"{path}/frequency")
    polarization = tables.add_polarization(part.correlations, path)
    _read_times(part)
    _read_antennas(part, tables)
    names = _ms_subtables.labels(dataset, path, "field_name", ("time",))
    below, of_fields = children["field_and_source"]
    numbers = tables.add_fields(of_fields, below, names, part.window)
    part.fields = _of_times(part, np.array([numbers[name] for name in names], np.int32))
    scan_name = variable(dataset, path, "scan_name", ("time",))
    part.scans = _of_times(part, _scan_numbers(scan_name, path, said))
    key = part.window, polarization
    row = {"SPECTRAL_WINDOW_ID": part.window, "POLARIZATION_ID": polarization}
    half = part.interval / 2 if np.isfinite(part.interval) else 0.0
    time_range = (float(part.times[0] - half), float(part.times[-1] + half)) if len(part.times) else (np.inf, -np.inf)
    antenna_path, antennas = children["antenna"]
    part.shared = {
        "DATA_DESC_ID": tables.descriptions.add(key, lambda: row),
        "OBSERVATION_ID": tables.add_observation(
            dictionary(dataset.attrs.get("observation_info")), _telescope(antennas, antenna_path), time_range, path
        ),
        "PROCESSOR_ID": tables.add_processor(dictionary(dataset.attrs.get("processor_info")), path),
        "STATE_ID": tables.add_state(scan_name),
        **dict.fromkeys(("ARRAY_ID", "FEED1", "FEED2"), 0),
    }
    return part


def _telescope(antennas: Dataset, path: str) -> str:
    named = antennas.attrs.get("overall_telescope_name")
    if not named and "telescope_name" in antennas.variables:
        names = _ms_subtables.labels(antennas, path, "telescope_name", ("antenna_name",))
        named = next(iter(names), "")
    return str(named or "")


def _read_columns(part: _Partition, said: Said) -> None:
    """Finds the variables; what has no column is said."""
    dataset, path = part.dataset, part.path
    groups = {name: dictionary(group) for name, group in dictionary(dataset.attrs.get("data_groups")).items()}
    base = groups.get("base", {})
    for name, (column, _) in _SPECTRAL.items():
        if name in dataset.data_vars:
            part.columns[column] = name
    for name in ("CORRECTED_DATA", "MODEL_DATA"):
        # as xarray-ms names them
        if name in dataset.data_vars:
            part.columns.setdefault(name, name)
    named = str(base.get("correlated_data", ""))
    is_known = {"DATA", "FLOAT_DATA"} & set(part.columns)
    if not is_known and named in dataset.data_vars:
        # of a data group that names its variables differently
        part.columns = {"DATA": named, **part.columns}
        part.second = "antenna_name" if "antenna_name" in dataset[named].dims else part.second
    elif not is_known:
        raise UsageError(f"{path}: no variable VISIBILITY or SPECTRUM, nor that of the data group base")
    for key, column in (("flag", "FLAG"), ("weight", "WEIGHT"), ("uvw", "UVW")):
        name = str(base.get(key) or column)
        if name in dataset.data_vars:
            part.names[column] = name
    _say_unused(part, groups, said)
    for column, name in part.columns.items():
        _check_spectral(part, name, "f" if column == "FLOAT_DATA" else "c", said)
    for column, kinds in (("FLAG", "bui"), ("WEIGHT", "fiu")):
        if column in part.names:
            _check_spectral(part, part.names[column], kinds, said)
        else:
            said.add(f"no variable {column}: {'nothing is flagged' if column == 'FLAG' else 'weights are 1'}", path)
    if "SIGMA_SPECTRUM" in dataset.data_vars:
        _check_spectral(part, "SIGMA_SPECTRUM", "f", said)
    for name in [*_GRIDDED, "_row"]:
        name = part.names.get(name, name)
        if name in dataset.data_vars:
            _check_gridded(part, name)
    if "UVW" not in part.names and part.second == "baseline_id":
        said.add("no variable UVW: its cells are 0", path)


def _say_unused(part: _Partition, groups: Mapping[str, Mapping[str, Any]], said: Said) -> None:
    dataset, path = part.dataset, part.path
    used = {*part.columns.values(), *part.names.values(), *_GRIDDED, "_row", "SIGMA_SPECTRUM"}
    for group, content in groups.items():
        others = {str(content.get(key) or "") for key in ("correlated_data", "flag", "weight", "uvw")} - used - {""}
        if others:
            listed = ", ".join(sorted(others))
            said.add(f"data group {group} is left out: a MeasurementSet has no second {listed}", path)
            used |= others
    for variables, what in ((dataset.data_vars, "variable"), (dataset.coords, "coordinate")):
        for name in variables:
            if name not in used and name not in _COORDINATES:
                said.add(f"{what} {name} is left out: the main table has no column for it", path)
    for attribute in dataset.attrs:
        if attribute not in _ATTRIBUTES:
            said.add(f"attribute {attribute} is left out", path)


def _axes(part: _Partition, name: str) -> tuple[tuple[str, ...], ...]:
    if name in part.names.values() and name == part.names.get("UVW"):
        return ("time",), (part.second,), ("uvw_label",)
    if name in _GRIDDED or name == "_row":
        return ("time",), (part.second,)
    last = ("frequency", ""), ("polarization", "")
    if name == part.names.get("WEIGHT") or name == "SIGMA_SPECTRUM":
        return ("time",), (part.second,), *last
    return ("time",), (part.second,), ("frequency",), ("polarization",)


def _check_axes(part: _Partition, name: str) -> Variable:
    found: Variable = part.dataset.variables[name]
    axes = _axes(part, name)
    known = {axis for names in axes for axis in names}
    if set(found.dims) - known or any(set(names).isdisjoint({*found.dims, ""}) for names in axes):
        dims = ", ".join(map(str, found.dims))
        raise UsageError(f"{part.path}/{name}: axes are ({dims}), expected {_ms_subtables.shown(axes)}")
    return found


def _check_spectral(part: _Partition, name: str, kinds: str, said: Said) -> None:
    found, place = _check_axes(part, name), f"{part.path}/{name}"
    words = {"c": "complex numbers", "f": "floats", "bui": "truth values", "fiu": "numbers"}[kinds]
    if found.dtype.kind not in kinds:
        raise UnsupportedError(f"{place}: type {found.dtype}, expected {words}")
    if found.dtype in (np.complex128, np.float64):
        said.add(f"type {found.dtype} is rounded to half of its bits, as a MeasurementSet has it", place)
    if kinds == "bui" and found.dtype.kind != "b" and (found.dtype != np.uint8 or "flag_bits" in found.attrs):
        said.add(f"type {found.dtype} becomes truth values: each bit flags", place)


def _check_gridded(part: _Partition, name: str) -> None:
    found = _check_axes(part, name)
    if found.dtype.kind not in "fiu":
        raise UnsupportedError(f"{part.path}/{name}: type {found.dtype}, expected numbers")
    if name == part.names.get("UVW") and found.sizes["uvw_label"] != 3:
        raise UsageError(f"{part.path}/{name}: {found.sizes['uvw_label']} places of uvw_label, expected 3")


def _read_times(part: _Partition) -> None:
    of = variable(part.dataset, part.path, "time", ("time",))
    _ms_subtables.check_time(of, f"{part.path}/time")
    values = np.asarray(of.values, np.float64)
    if not np.isfinite(values).all():
        raise UsageError(f"{part.path}/time: {int((~np.isfinite(values)).sum())} times are not finite")
    if len(values) > 1 and (np.diff(values) < 0).any():
        part.order = np.argsort(values, kind="stable")
        values = values[part.order]
    part.times = values + UNIX_EPOCH
    part.interval = number(of.attrs.get("integration_time"))
    part.scale = str(of.attrs.get("scale", "utc"))


def _of_times(part: _Partition, values: _Array) -> _Array:
    return values if part.order is None else values[part.order]


def _read_antennas(part: _Partition, tables: Subtables) -> None:
    path, antennas = part.children["antenna"]
    keys = tables.add_antennas(antennas, path, part.correlations, part.window)
    if part.second == "antenna_name":
        pairs = ("antenna_name", "antenna_name")
    else:
        pairs = ("baseline_antenna1_name", "baseline_antenna2_name")
    found: list[list[Any]] = []
    for name in pairs:
        if name not in part.dataset.variables:
            raise UsageError(f"{part.path}: no coordinate {name}; expected of MSv4")
        names = _ms_subtables.labels(part.dataset, part.path, name, (part.second,))
        missing = next((antenna for antenna in names if antenna not in keys), None)
        if missing is not None:
            raise UsageError(f"{part.path}/{name}: antenna {missing!r} is not among those of {path}")
        found.append([keys[antenna] for antenna in names])
    part.antenna_keys = found[0], found[1]


def _scan_numbers(scan_name: Variable, path: str, said: Said) -> _Array:
    names = [str(name) for name in scan_name.values.tolist()]
    try:
        return np.array([int(name) for name in names], np.int64).astype(np.int32, casting="same_kind")
    except (ValueError, TypeError):
        said.add("scan names are no numbers: scans are counted from 1", f"{path}/scan_name")
        places = {name: place for place, name in enumerate(dict.fromkeys(names), 1)}
        return np.array([places[name] for name in names], np.int32)


def _finish(partitions: list[_Partition], tables: Subtables) -> None:
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


def _history(part: _Partition) -> dict[str, Any]:
    creator = dictionary(part.dataset.attrs.get("creator"))
    software = " ".join(texts([creator.get("software_name", ""), creator.get("version", "")])).strip()
    version = part.dataset.attrs.get("schema_version", "")
    message = f"from MSv4 {version}" + (f", made by {software}" if software else "")
    moment = _ms_subtables.seconds(part.dataset.attrs.get("creation_date", ""))
    return {"MESSAGE": message, "ORIGIN": "h5bridge", "APPLICATION": "h5bridge", "PRIORITY": "INFO", "TIME": moment}


# ---- the main table --------------------------------------------------------------------------------------------------


def _main_columns(partitions: list[_Partition], said: Said) -> list[Column]:
    found = list(_ms_tables.MAIN)
    for name, (column, kind) in _SPECTRAL.items():
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


def _managers(columns: list[Column], partitions: list[_Partition]) -> list[dict[str, Any]]:
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


class _Chunks:
    """Parts of variables of a partition. Of those in chunks, the chunks of some times are kept."""

    # over all partitions
    kept_bytes = 0

    def __init__(self, part: _Partition) -> None:
        self._part = part
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
            if _Chunks.kept_bytes + size > _CHUNKS_BYTES:
                return self._array(name, found.isel(time=slice(start, stop)), places)
            kept = first, last, self._array(name, found.isel(time=slice(first, last)), None)
            self._kept[name] = kept
            _Chunks.kept_bytes += kept[2].nbytes
        array = kept[2][start - kept[0] : stop - kept[0]]
        if stop >= kept[1]:
            self._drop(name)
        return array if places is None else array[:, places]

    def _drop(self, name: str) -> None:
        _Chunks.kept_bytes -= self._kept.pop(name)[2].nbytes

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
        order = [axis for names in _axes(self._part, name) for axis in names if axis in dims]
        return values.transpose([dims.index(axis) for axis in order]) if order != dims else values


class _Main:
    """Writes the rows of the main table."""

    def __init__(
        self,
        writer: _native.NewTableWriter,
        partitions: list[_Partition],
        columns: list[Column],
        report: Report | None,
    ) -> None:
        self.writer, self.partitions, self.report = writer, partitions, report
        self.columns = {column.name: column for column in columns}
        self.chunks = [_Chunks(part) for part in partitions]
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

    def __init__(self, part: _Partition, chunks: _Chunks, start: int, stop: int, places: _Array | None) -> None:
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
                found[_GRIDDED[name]] = self._rows(values) + (UNIX_EPOCH if name == "TIME_CENTROID" else 0)
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


# ---- subtables of times and antennas ---------------------------------------------------------------------------------


def _write_times(writer: _native.NewTableWriter, partitions: list[_Partition], tables: Subtables) -> dict[str, int]:
    """Writes POINTING, and what there is of SYSCAL and WEATHER; the number of columns of each."""
    kinds = ("POINTING", "pointing"), ("SYSCAL", "system_calibration"), ("WEATHER", "weather")
    writers = {"POINTING": _write_pointing, "SYSCAL": _write_calibration, "WEATHER": _write_weather}
    written = {}
    for name, kind in kinds:
        having = [part for part in partitions if kind in part.children]
        if having or name in _ms_tables.REQUIRED:
            written[name] = writers[name](writer, having, tables, partitions[0].scale)
    return written


def _antennas_of(part: _Partition, dataset: Dataset, path: str, tables: Subtables) -> _Array:
    """The rows of ANTENNA of a subtable's antennas."""
    antenna_path, antennas = part.children["antenna"]
    keys = tables.keys_of[antenna_path]
    numbers = tables.antenna_numbers()
    names = _ms_subtables.labels(dataset, path, "antenna_name", ("antenna_name",))
    missing = next((name for name in names if name not in keys), None)
    if missing is not None:
        raise UsageError(f"{path}/antenna_name: antenna {missing!r} is not among those of {antenna_path}")
    return np.array([numbers[keys[name]] for name in names], np.int32)


def _said_of(dataset: Dataset, path: str, known: set[str], table: str, said: Said) -> None:
    for name in dataset.data_vars:
        if name not in known:
            said.add(f"variable {name} is left out: {table} has no column for it", path)


def _write_pointing(writer: _native.NewTableWriter, having: list[_Partition], tables: Subtables, scale: str) -> int:
    columns = _ms_tables.REQUIRED["POINTING"]
    datasets = [(part, *part.children["pointing"]) for part in having]
    datasets = [of for of in datasets if "POINTING_BEAM" in of[2].data_vars]
    further = {"ENCODER": "POINTING_DISH_MEASURED", "OVER_THE_TOP": "POINTING_OVER_THE_TOP"}
    optional = {column.name: column for column in _ms_tables.OPTIONAL["POINTING"]}
    # all rows have a column, as a scalar is never undefined
    everywhere = [name for name, of in further.items() if all(of in found.data_vars for *_, found in datasets)]
    present = everywhere if datasets else []
    columns = [*columns, *(optional[name] for name in present)]
    frames = {}
    for name, of in (("DIRECTION", "POINTING_BEAM"), ("ENCODER", "POINTING_DISH_MEASURED")):
        named = [tables.frame(found.variables[of], path) for _, path, found in datasets if of in found.data_vars]
        if named:
            frames[name] = named[0]
        if len(set(named)) > 1:
            tables.said.add(f"{of} has several frames; the column has {named[0]}", datasets[0][1])
    frames["TARGET"] = frames.get("DIRECTION", "J2000")
    columns = _ms_subtables.scaled(_ms_tables.referred(columns, frames), scale)
    terms = {found.sizes.get("n_polynomial", 1) for *_, found in datasets}
    table = Appended(writer, "POINTING", columns)
    for part, path, found in datasets:
        known = {"POINTING_BEAM", *(further[name] for name in present)}
        _said_of(found, path, known, "POINTING", tables.said)
        times, axis = time_axis(found, path, "time_pointing")
        antennas = _antennas_of(part, found, path, tables)
        sky, by_antenna = ("local_sky_dir_label", "sky_dir_label"), ("antenna_name",)
        beam = variable(found, path, "POINTING_BEAM", (axis,), by_antenna, sky, ("n_polynomial", "")).values
        beam = beam[..., None] if beam.ndim == 3 else beam
        cells = np.moveaxis(beam, 3, 2).reshape(len(times) * len(antennas), beam.shape[3], beam.shape[2])
        has = np.isfinite(cells).any(axis=(1, 2))
        if len(terms) > 1:
            # cells of one shape
            more = max(terms) - cells.shape[1]
            cells = np.concatenate([cells, np.zeros((len(cells), more, cells.shape[2]))], axis=1)
        time_, antenna = np.repeat(times, len(antennas))[has], np.tile(antennas, len(times))[has]
        values: dict[str, Any] = {"TIME": time_, "ANTENNA_ID": antenna, "TIME_ORIGIN": time_}
        values |= {"DIRECTION": cells[has], "TARGET": cells[has], "TRACKING": True, "NUM_POLY": cells.shape[1] - 1}
        values["INTERVAL"] = _ms_subtables.step(times) or (part.interval if np.isfinite(part.interval) else 0.0)
        for name in present:
            last = (sky,) if name == "ENCODER" else ()
            further_cells = variable(found, path, further[name], (axis,), by_antenna, *last).values
            values[name] = further_cells.reshape(-1, *further_cells.shape[2:])[has]
        table.append((antenna, time_), values)
    table.end()
    return len(columns)


def _write_calibration(writer: _native.NewTableWriter, having: list[_Partition], tables: Subtables, scale: str) -> int:
    of_column: dict[str, str] = {}
    kinds = {"PHASE_DIFFERENCE": "PHASE_DIFF", **_ms_subtables.TEMPERATURES}
    for part in having:
        path, found = part.children["system_calibration"]
        _said_of(found, path, set(kinds), "SYSCAL", tables.said)
        for name, column in kinds.items():
            if name in found.data_vars:
                spectral = {"frequency_system_cal", "frequency"} & set(found[name].dims)
                of_column[f"{column}_SPECTRUM" if spectral else column] = name
    index = "ANTENNA_ID FEED_ID INTERVAL SPECTRAL_WINDOW_ID TIME".split()
    chosen = [column for column in _ms_tables.OPTIONAL["SYSCAL"] if column.name in (*index, *of_column)]
    columns = _ms_subtables.scaled(chosen, scale)
    table = Appended(writer, "SYSCAL", columns)
    for part in having:
        path, found = part.children["system_calibration"]
        times, axis = time_axis(found, path, "time_system_cal")
        antennas = _antennas_of(part, found, path, tables)
        cells: dict[str, _Array] = {}
        has = np.zeros(len(times) * len(antennas), np.bool_)
        for column, name in of_column.items():
            if name not in found.data_vars or column.endswith("_SPECTRUM") != (found[name].ndim == 4):
                continue
            axes: list[tuple[str, ...]] = [("antenna_name",), (axis,)]
            if column.endswith("_SPECTRUM"):
                axes.append(("frequency_system_cal", "frequency"))
            axes += [] if column == "PHASE_DIFF" else [("receptor_label",)]
            of_grid = variable(found, path, name, *axes).values
            if column.endswith("_SPECTRUM") and _is_reversed(part, found):
                of_grid = of_grid[:, :, ::-1]
            cells[column] = of_grid.reshape(-1, *of_grid.shape[2:])
            has |= np.isfinite(cells[column]).reshape(len(has), -1).any(axis=1)
        antenna, time_ = np.repeat(antennas, len(times))[has], np.tile(times, len(antennas))[has]
        window = np.full(len(time_), part.window)
        values: dict[str, Any] = {"TIME": time_, "ANTENNA_ID": antenna, "SPECTRAL_WINDOW_ID": window, "FEED_ID": 0}
        values["INTERVAL"] = _ms_subtables.step(times)
        values |= {column: of[has] for column, of in cells.items()}
        table.append((antenna, window, time_), values)
    table.end()
    return len(columns)


def _is_reversed(part: _Partition, found: Dataset) -> bool:
    """Whether the channels of a calibration are those of the partition in the opposite order."""
    if "frequency_system_cal" not in found.variables:
        return False
    of_window, channels = part.dataset.variables["frequency"].values, found.variables["frequency_system_cal"].values
    if len(channels) != len(of_window) or len(channels) < 2:
        return False
    return bool(np.allclose(channels[::-1], of_window, rtol=1e-9) and not np.allclose(channels, of_window, rtol=1e-9))


def _write_weather(writer: _native.NewTableWriter, having: list[_Partition], tables: Subtables, scale: str) -> int:
    """Stations are pads of antennas, where all are; else they are those of ASDM_STATION, as ALMA has them."""
    stations: dict[str, tuple[str, Dataset, int]] = {}
    present: set[str] = set()
    for part in having:
        path, found = part.children["weather"]
        _said_of(found, path, {*_WEATHER, "STATION_POSITION"}, "WEATHER", tables.said)
        present |= {name for name in _WEATHER if name in found.data_vars}
        for place, name in enumerate(_ms_subtables.labels(found, path, "station_name", ("station_name",))):
            stations.setdefault(name, (path, found, place))
    pads = [row["STATION"] for row in tables.antennas]
    of_antenna = {name: pads.index(name) for name in stations if pads.count(name) == 1}
    is_alma = len(of_antenna) < len(stations)
    places = {name: place for place, name in enumerate(stations)} if is_alma else of_antenna
    index = {"ANTENNA_ID", "INTERVAL", "TIME"} | ({"NS_WX_STATION_ID", "NS_WX_STATION_POSITION"} if is_alma else set())
    chosen = [column for column in _ms_tables.OPTIONAL["WEATHER"] if column.name in index | present]
    columns = _ms_subtables.scaled(chosen, scale)
    if is_alma:
        _ms_tables.write(writer, "ASDM_STATION", _ms_tables.OPTIONAL["ASDM_STATION"], [{"name": of} for of in stations])
    table = Appended(writer, "WEATHER", columns)
    for part in having:
        path, found = part.children["weather"]
        times, axis = time_axis(found, path, "time_weather")
        names = _ms_subtables.labels(found, path, "station_name", ("station_name",))
        cells: dict[str, _Array] = {}
        has = np.zeros(len(times) * len(names), np.bool_)
        for name in present & set(found.data_vars):
            values = variable(found, path, str(name), ("station_name",), (axis,)).values.ravel()
            has |= np.isfinite(values)
            units = found.variables[name].attrs.get("units", "Pa")
            # hPa are the unit of the definition
            cells[str(name)] = values / 100 if name == "PRESSURE" and units in ("Pa", ["Pa"]) else values
        station = np.repeat([places[name] for name in names], len(times)).astype(np.int32)[has]
        time_ = np.tile(times, len(names))[has]
        row: dict[str, Any] = {"TIME": time_, "INTERVAL": _ms_subtables.step(times), "ANTENNA_ID": station}
        if is_alma:
            positions = np.full((len(names), 3), np.nan)
            if "STATION_POSITION" in found.data_vars:
                axes = ("station_name",), ("cartesian_pos_label",)
                positions = variable(found, path, "STATION_POSITION", *axes).values
            row |= {"ANTENNA_ID": -1, "NS_WX_STATION_ID": station}
            row["NS_WX_STATION_POSITION"] = np.repeat(positions, len(times), axis=0)[has]
        row |= {name: values[has] for name, values in cells.items()}
        table.append((station, time_), row)
    table.end()
    return len(columns)
