"""The partitions of a tree of MSv4: their variables by the columns that these become, and values that rows share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset, DataTree, Variable

from . import _ms_subtables
from ._errors import UnsupportedError, UsageError
from ._ms_subtables import Said, Subtables, dictionary, number, variable
from ._ms_tables import UNIX_EPOCH

_Array = npt.NDArray[Any]

# variable, column and type
SPECTRAL = {
    "VISIBILITY": ("DATA", "complex"),
    "VISIBILITY_CORRECTED": ("CORRECTED_DATA", "complex"),
    "VISIBILITY_MODEL": ("MODEL_DATA", "complex"),
    "SPECTRUM": ("FLOAT_DATA", "float"),
}
GRIDDED = {
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


@dataclass
class Partition:
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


def found_in(tree: DataTree, said: Said) -> list[tuple[str, DataTree]]:
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
    return any(name in node.data_vars for name in SPECTRAL) or "data_groups" in node.attrs


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


def read(path: str, node: DataTree, tables: Subtables) -> Partition:
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
    part = Partition(path, dataset, children, second)
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


def _read_columns(part: Partition, said: Said) -> None:
    """Finds the variables; what has no column is said."""
    dataset, path = part.dataset, part.path
    groups = {name: dictionary(group) for name, group in dictionary(dataset.attrs.get("data_groups")).items()}
    base = groups.get("base", {})
    for name, (column, _) in SPECTRAL.items():
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
    for name in [*GRIDDED, "_row"]:
        name = part.names.get(name, name)
        if name in dataset.data_vars:
            _check_gridded(part, name)
    if "UVW" not in part.names and part.second == "baseline_id":
        said.add("no variable UVW: its cells are 0", path)


def _say_unused(part: Partition, groups: Mapping[str, Mapping[str, Any]], said: Said) -> None:
    dataset, path = part.dataset, part.path
    used = {*part.columns.values(), *part.names.values(), *GRIDDED, "_row", "SIGMA_SPECTRUM"}
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


def axes_of(part: Partition, name: str) -> tuple[tuple[str, ...], ...]:
    if name in part.names.values() and name == part.names.get("UVW"):
        return ("time",), (part.second,), ("uvw_label",)
    if name in GRIDDED or name == "_row":
        return ("time",), (part.second,)
    last = ("frequency", ""), ("polarization", "")
    if name == part.names.get("WEIGHT") or name == "SIGMA_SPECTRUM":
        return ("time",), (part.second,), *last
    return ("time",), (part.second,), ("frequency",), ("polarization",)


def _check_axes(part: Partition, name: str) -> Variable:
    found: Variable = part.dataset.variables[name]
    axes = axes_of(part, name)
    known = {axis for names in axes for axis in names}
    if set(found.dims) - known or any(set(names).isdisjoint({*found.dims, ""}) for names in axes):
        dims = ", ".join(map(str, found.dims))
        raise UsageError(f"{part.path}/{name}: axes are ({dims}), expected {_ms_subtables.shown(axes)}")
    return found


def _check_spectral(part: Partition, name: str, kinds: str, said: Said) -> None:
    found, place = _check_axes(part, name), f"{part.path}/{name}"
    words = {"c": "complex numbers", "f": "floats", "bui": "truth values", "fiu": "numbers"}[kinds]
    if found.dtype.kind not in kinds:
        raise UnsupportedError(f"{place}: type {found.dtype}, expected {words}")
    if found.dtype in (np.complex128, np.float64):
        said.add(f"type {found.dtype} is rounded to half of its bits, as a MeasurementSet has it", place)
    if kinds == "bui" and found.dtype.kind != "b" and (found.dtype != np.uint8 or "flag_bits" in found.attrs):
        said.add(f"type {found.dtype} becomes truth values: each bit flags", place)


def _check_gridded(part: Partition, name: str) -> None:
    found = _check_axes(part, name)
    if found.dtype.kind not in "fiu":
        raise UnsupportedError(f"{part.path}/{name}: type {found.dtype}, expected numbers")
    if name == part.names.get("UVW") and found.sizes["uvw_label"] != 3:
        raise UsageError(f"{part.path}/{name}: {found.sizes['uvw_label']} places of uvw_label, expected 3")


def _read_times(part: Partition) -> None:
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


def _of_times(part: Partition, values: _Array) -> _Array:
    return values if part.order is None else values[part.order]


def _read_antennas(part: Partition, tables: Subtables) -> None:
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
