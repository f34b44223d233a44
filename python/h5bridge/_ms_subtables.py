"""The rows of the subtables of a MeasurementSet, collected from the partitions of an MSv4 tree.

A *shown* name is that of the tree, to which h5bridge and xradio append the number of its row: `3C286_0`. Rows of equal
content are one row, whichever partitions they are from. Numbers of rows are provisional until `finish`.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset, Variable

from . import _ms_tables, _native
from ._errors import UnsupportedError, UsageError
from ._measures import STOKES
from ._ms_tables import DIRECTIONS, UNIX_EPOCH, Column

_Array = npt.NDArray[Any]

_FRAMES = {"fk5": "J2000", "fk4": "B1950", "icrs": "ICRS", "altaz": "AZELGEO", "itrs": "ITRF", "app": "APP"}
_OBSERVERS = {"rest": 0, "lsrk": 1, "lsrd": 2, "bary": 3, "icrs": 3, "gcrs": 4, "geo": 4, "topo": 5}
_OBSERVERS |= {"galacto": 6, "lgroup": 7, "cmb": 8, "undefined": 64}
# as they are at all times
_FOREVER = 1e30
_SUFFIX = re.compile(r"(.+)_(\d+)", re.DOTALL)

TEMPERATURES = {"TCAL": "TCAL", "TRX": "TRX", "TSKY": "TSKY", "TSYS": "TSYS", "TANT": "TANT", "TANT_SYS": "TANT_TSYS"}
"""Variables of system calibrations, and their columns."""


class Said:
    """What the tables do not hold, by kind, with the paths where it was found."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, kind: str, path: str) -> None:
        paths = self._found.setdefault(kind, [])
        if path not in paths:
            paths.append(path)

    def sentences(self) -> list[str]:
        def named(paths: list[str]) -> str:
            return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"

        return [f"{named(paths)}: {kind}" for kind, paths in self._found.items()]


class Merged:
    """Rows of a subtable by their content."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[Hashable, int] = {}

    def add(self, key: Hashable, row: Callable[[], dict[str, Any]]) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(row())
        return self._numbers[key]

    def sort(self, key: Callable[[dict[str, Any]], Any]) -> _Array:
        """Brings the rows in order; the new number of each old one."""
        order = sorted(range(len(self.rows)), key=lambda number: key(self.rows[number]))
        self.rows = [self.rows[number] for number in order]
        places = np.empty(len(order), np.int32)
        places[order] = np.arange(len(order))
        return places


def document(value: Any) -> Any:
    """A nested attribute, which files of HDF5 hold as JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def dictionary(value: Any) -> dict[str, Any]:
    found = document(value)
    return dict(found) if isinstance(found, Mapping) else {}


def number(value: Any) -> float:
    """A quantity of the schema, which nests it: {"data": 1.0, "attrs": …}; NaN if there is none."""
    found = document(value)
    while isinstance(found, Mapping):
        found = found.get("data")
    try:
        return float(np.asarray(found, dtype=np.float64).ravel()[0])
    except (TypeError, ValueError, IndexError):
        return float("nan")


def texts(value: Any) -> list[str]:
    found = document(value)
    if found is None:
        return []
    return [found] if isinstance(found, str) else [str(text) for text in np.asarray(found).ravel().tolist()]


def seconds(date: Any) -> float:
    """Seconds of MJD of a date of ISO 8601; 0 if it is none."""
    try:
        moment = datetime.datetime.fromisoformat(str(date))
    except ValueError:
        return 0.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    unix = (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)).total_seconds()
    found = unix + UNIX_EPOCH
    # so that no reader who rounds down finds the millisecond before
    return found if found - UNIX_EPOCH >= unix else float(np.nextafter(found, np.inf))


def variable(dataset: Dataset, path: str, name: str, *axes: tuple[str, ...]) -> Variable:
    """A variable of these axes, in their order; of each axis one of several names, of which `""` may be missing."""
    if name not in dataset.variables:
        raise UsageError(f"{path}: no variable {name}; expected is one of axes {shown(axes)}")
    found: Variable = dataset.variables[name]
    order = [next((axis for axis in names if axis in found.dims), "") for names in axes]
    wanted = [axis for axis in order if axis]
    is_missing = any(not axis and "" not in names for axis, names in zip(order, axes, strict=True))
    if is_missing or set(wanted) != set(found.dims):
        raise UsageError(f"{path}/{name}: axes are ({', '.join(map(str, found.dims))}), expected {shown(axes)}")
    return found.transpose(*wanted) if tuple(found.dims) != tuple(wanted) else found


def shown(axes: Sequence[tuple[str, ...]]) -> str:
    return "(" + ", ".join(names[0] if "" not in names else f"[{names[0]}]" for names in axes) + ")"


def labels(dataset: Dataset, path: str, name: str, *axes: tuple[str, ...]) -> list[str]:
    values = variable(dataset, path, name, *axes).values
    return [str(text) for text in values.ravel().tolist()]


def unique(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def without_suffix(names: Sequence[str], has_suffix: bool) -> tuple[list[str], list[int]]:
    """Names without the numbers of their rows, where that leaves them unique; and these numbers, if all have one."""
    found = [_SUFFIX.fullmatch(name) if has_suffix else None for name in names]
    numbers = [int(match[2]) for match in found if match]
    if len(numbers) < len(names) or not unique([str(of) for of in numbers]):
        return list(names), list(range(len(names)))
    short = [match[1] for match in found if match]
    kept = [name if short.count(part) > 1 else part for name, part in zip(names, short, strict=True)]
    return (kept if unique(kept) else list(names)), numbers


class Subtables:
    """All subtables but those of times and antennas."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.antennas: list[dict[str, Any]] = []
        self._antenna_keys: list[Hashable] = []
        self.windows, self.polarizations, self.fields = Merged(), Merged(), Merged()
        self.states, self.observations, self.processors, self.descriptions = Merged(), Merged(), Merged(), Merged()
        # receptors by antenna and window; sources by shown name and window
        self._feeds: dict[Hashable, dict[int, dict[str, Any]]] = {}
        self._sources: dict[str, dict[int, dict[str, Any]]] = {}
        self.keys_of: dict[str, dict[str, Hashable]] = {}
        """Of each dataset of antennas their keys by their shown names."""
        self.has_suffix = True
        self.time_range = [np.inf, -np.inf]

    # ---- antennas ----------------------------------------------------------------------------------------------------

    def add_antennas(
        self, dataset: Dataset, path: str, correlations: Sequence[str], window: int
    ) -> dict[str, Hashable]:
        """The keys of the antennas of a partition by their shown names."""
        axis = ("antenna_name",)
        names = labels(dataset, path, "antenna_name", axis)
        if not unique(names):
            raise UsageError(f"{path}/antenna_name: names repeat; expected are different ones")

        def optional(name: str, missing: str) -> list[str]:
            return labels(dataset, path, name, axis) if name in dataset.variables else [missing] * len(names)

        stations, mounts = optional("station_name", ""), optional("mount", "")
        position = variable(dataset, path, "ANTENNA_POSITION", axis, ("cartesian_pos_label", "xyz_label"))
        positions = position.values
        if positions.shape != (len(names), 3):
            raise UsageError(f"{path}/ANTENNA_POSITION: shape {positions.shape}, expected ({len(names)}, 3)")
        diameters = np.zeros(len(names))
        if "ANTENNA_DISH_DIAMETER" in dataset.variables:
            diameters = variable(dataset, path, "ANTENNA_DISH_DIAMETER", axis).values
        kept = self._names_without_stations(dataset, names, stations)
        keys: dict[str, Hashable] = {}
        before = -1
        receptors = self._receptors(dataset, path, len(names), correlations)
        for place, name in enumerate(names):
            row = {
                "NAME": kept[place],
                "STATION": stations[place],
                "MOUNT": mounts[place],
                "TYPE": "GROUND-BASED",
                "POSITION": positions[place],
                "DISH_DIAMETER": float(diameters[place]),
                "OFFSET": np.zeros(3),
            }
            key = (kept[place], stations[place], mounts[place], positions[place].tobytes(), float(diameters[place]))
            if key not in self._antenna_keys:
                # after the one that it follows here, so that the order is that of all partitions
                self._antenna_keys.insert(before + 1, key)
                self.antennas.insert(before + 1, row)
            before = self._antenna_keys.index(key)
            keys[name] = key
            self._feeds.setdefault(key, {}).setdefault(window, receptors[place])
        for other in dataset.data_vars:
            if other not in ("ANTENNA_POSITION", "ANTENNA_DISH_DIAMETER", "ANTENNA_RECEPTOR_ANGLE"):
                self.said.add(f"variable {other} is left out: ANTENNA and FEED have no column for it", path)
        self.keys_of[path] = keys
        return keys

    def _names_without_stations(self, dataset: Dataset, names: list[str], stations: list[str]) -> list[str]:
        """Names as ANTENNA has them: those of antennas that are moved are shown with their stations."""
        if not self.has_suffix or not dataset.attrs.get("relocatable_antennas"):
            return names
        short = [name.removesuffix(f"_{station}") for name, station in zip(names, stations, strict=True)]
        has_all = all(len(part) < len(name) and part for part, name in zip(short, names, strict=True))
        return short if has_all and unique(short) else names

    def _receptors(self, dataset: Dataset, path: str, count: int, correlations: Sequence[str]) -> list[dict[str, Any]]:
        axes = ("antenna_name",), ("receptor_label",)
        if "polarization_type" in dataset.variables:
            types = np.asarray(variable(dataset, path, "polarization_type", *axes).values, dtype=str)
        else:
            letters = list(dict.fromkeys("".join(name for name in correlations if len(name) == 2)))[:2] or ["X", "Y"]
            types = np.tile(letters, (count, 1))
        angles = np.zeros(types.shape)
        if "ANTENNA_RECEPTOR_ANGLE" in dataset.variables:
            angles = variable(dataset, path, "ANTENNA_RECEPTOR_ANGLE", *axes).values
            if angles.shape != types.shape:
                raise UsageError(f"{path}/ANTENNA_RECEPTOR_ANGLE: shape {angles.shape}, expected {types.shape}")
        of_antenna = zip(types, angles, strict=True)
        return [{"POLARIZATION_TYPE": letters, "RECEPTOR_ANGLE": angle} for letters, angle in of_antenna]

    def antenna_numbers(self) -> dict[Hashable, int]:
        return {key: place for place, key in enumerate(self._antenna_keys)}

    # ---- what rows of the main table refer to ------------------------------------------------------------------------

    def add_window(self, frequency: Variable, path: str) -> int:
        attributes = frequency.attrs
        channels = np.asarray(frequency.values, np.float64)
        observer = str(attributes.get("observer", "TOPO"))
        code = _OBSERVERS.get(observer.lower())
        if code is None:
            self.said.add(f"observer {observer!r} is unknown to casacore; the frame is said to be undefined", path)
            code = 64
        name = str(attributes.get("spectral_window_name", ""))
        steps = np.diff(channels)
        width = number(attributes.get("channel_width"))
        if not np.isfinite(width):
            width = float(np.median(np.abs(steps))) if len(steps) else 0.0
        reference = number(attributes.get("reference_frequency"))
        group = str(attributes.get("frequency_group_name", ""))
        intents = [intent for intent in texts(attributes.get("spectral_window_intents")) if intent != "UNSPECIFIED"]
        if intents:
            self.said.add("spectral_window_intents are left out", path)
        if attributes.get("doppler"):
            self.said.add("attribute doppler is left out", path)

        def row() -> dict[str, Any]:
            # a descending axis has negative widths
            widths = np.full(len(channels), -width if len(steps) and channels[-1] < channels[0] else width)
            return {
                "NAME": name,
                "CHAN_FREQ": channels,
                "CHAN_WIDTH": widths,
                "EFFECTIVE_BW": np.abs(widths),
                "RESOLUTION": np.abs(widths),
                "REF_FREQUENCY": reference if np.isfinite(reference) else channels[0],
                "MEAS_FREQ_REF": code,
                "NUM_CHAN": len(channels),
                "TOTAL_BANDWIDTH": float(np.abs(widths).sum()),
                "NET_SIDEBAND": 1,
                "FREQ_GROUP_NAME": group,
            }

        return self.windows.add((name, channels.tobytes(), code, width, reference, group), row)

    def add_polarization(self, correlations: Sequence[str], path: str) -> int:
        codes = []
        for name in correlations:
            if name in STOKES:
                codes.append(STOKES.index(name))
            elif name.isdigit():
                codes.append(int(name))
            else:
                raise UsageError(f"{path}/polarization: {name!r}, expected are {', '.join(STOKES[1:13])} …")

        def row() -> dict[str, Any]:
            products = _ms_tables.corr_products(correlations)
            return {"CORR_TYPE": codes, "CORR_PRODUCT": products, "NUM_CORR": len(codes)}

        return self.polarizations.add(tuple(codes), row)

    def add_state(self, scan_name: Variable) -> int:
        mode = ",".join(texts(scan_name.attrs.get("scan_intents")))
        return self.states.add(mode, lambda: {"OBS_MODE": mode, "SIG": True, "REF": False})

    def add_processor(self, info: Mapping[str, Any], path: str) -> int:
        kind, sub = str(info.get("type", "")), str(info.get("sub_type", ""))
        for name in info:
            if name not in ("type", "sub_type"):
                self.said.add(f"processor_info: {name} is left out", path)
        row = {"TYPE": kind, "SUB_TYPE": sub, "TYPE_ID": -1, "MODE_ID": -1}
        return self.processors.add((kind, sub), lambda: row)

    def add_observation(
        self, info: Mapping[str, Any], telescope: str, time_range: tuple[float, float], path: str
    ) -> int:
        schedule = [
            f"{kind} {info[name]}"
            for name, kind in (("scheduling_block_UID", "SchedulingBlock"), ("execution_block_UID", "ExecBlock"))
            if info.get(name)
        ]
        known = ("observer", "project_UID", "release_date", "observing_log", "scheduling_block_UID")
        for name in info:
            if name not in (*known, "execution_block_UID"):
                self.said.add(f"observation_info: {name} is left out", path)
        log = str(info.get("observing_log") or "")
        row = {
            "TELESCOPE_NAME": telescope,
            "OBSERVER": ", ".join(texts(info.get("observer"))),
            "PROJECT": str(info.get("project_UID") or info.get("project") or ""),
            "RELEASE_DATE": seconds(info.get("release_date", "")),
            "SCHEDULE": schedule,
            "LOG": log.split("\n") if "observing_log" in info else [],
        }
        key = tuple(str(value) for value in row.values())
        place = self.observations.add(key, lambda: {**row, "TIME_RANGE": np.array(time_range)})
        found = self.observations.rows[place]["TIME_RANGE"]
        found[:] = min(found[0], time_range[0]), max(found[1], time_range[1])
        self.time_range = [min(self.time_range[0], time_range[0]), max(self.time_range[1], time_range[1])]
        return place

    def frame(self, of: Variable, path: str) -> str:
        frame = str(of.attrs.get("frame", "fk5"))
        known = _FRAMES.get(frame.lower(), frame.upper())
        if known in DIRECTIONS:
            return known
        self.said.add(f"frame {frame!r} is unknown to casacore; J2000 is written", path)
        return "J2000"

    def add_fields(self, dataset: Dataset, path: str, names: Sequence[str], window: int) -> dict[str, int]:
        """The numbers of the fields with these shown names."""
        is_moving = "field_name" not in dataset.dims
        axis = ("time", "field_name") if is_moving else ("field_name", "time")
        all_names = labels(dataset, path, "field_name", axis)
        directions: dict[str, tuple[_Array, str]] = {}
        columns = ("FIELD_PHASE_CENTER_DIRECTION", "PHASE_DIR"), ("FIELD_REFERENCE_CENTER_DIRECTION", "REFERENCE_DIR")
        for name, column in columns:
            if name in dataset.variables:
                of = variable(dataset, path, name, axis, ("sky_dir_label",))
                directions[column] = of.values[..., :2], self.frame(of, f"{path}/{name}")
        if not directions:
            raise UsageError(f"{path}: no variable FIELD_PHASE_CENTER_DIRECTION or FIELD_REFERENCE_CENTER_DIRECTION")
        if is_moving:
            self.said.add("the ephemeris is left out: FIELD has the first direction of each field", path)
        either = next(iter(directions.values()))
        phase, reference = directions.get("PHASE_DIR", either), directions.get("REFERENCE_DIR", either)
        sources = self._add_sources(dataset, path, all_names, axis, window)
        found = {}
        for name in dict.fromkeys(names):
            if name not in all_names:
                raise UsageError(f"{path}/field_name: no field {name!r}, which the partition names")
            place = all_names.index(name)
            cells: dict[str, Any] = {"NAME": name, "SOURCE": sources[place], "CODE": ""}
            for column, (values, frame) in (("PHASE_DIR", phase), ("REFERENCE_DIR", reference), ("DELAY_DIR", phase)):
                cells[column] = np.asarray(values[place], np.float64)[None, :]
                cells[f"{column} FRAME"] = frame
            key = tuple(cell.tobytes() if isinstance(cell, np.ndarray) else cell for cell in cells.values())
            found[name] = self.fields.add(key, lambda row=cells: row)  # type: ignore[misc]
        known = {"FIELD_PHASE_CENTER_DIRECTION", "FIELD_REFERENCE_CENTER_DIRECTION", "SOURCE_DIRECTION"}
        known |= {"LINE_REST_FREQUENCY", "LINE_SYSTEMIC_VELOCITY"}
        for other in dataset.data_vars:
            if other not in known:
                self.said.add(f"variable {other} is left out: FIELD and SOURCE have no column for it", path)
        return found

    def _add_sources(
        self, dataset: Dataset, path: str, fields: Sequence[str], axis: tuple[str, ...], window: int
    ) -> list[str]:
        """The shown name of the source of each field; empty if it has none."""
        if "source_name" not in dataset.variables:
            return [""] * len(fields)
        names = labels(dataset, path, "source_name", axis)
        names = ["" if name.lower() == "unknown" else name for name in names]
        direction = frequency = velocity = transition = None
        if "SOURCE_DIRECTION" in dataset.variables:
            direction = variable(dataset, path, "SOURCE_DIRECTION", axis, ("sky_dir_label",))
        if "LINE_REST_FREQUENCY" in dataset.variables:
            frequency = variable(dataset, path, "LINE_REST_FREQUENCY", axis, ("line_label",))
        if "LINE_SYSTEMIC_VELOCITY" in dataset.variables:
            velocity = variable(dataset, path, "LINE_SYSTEMIC_VELOCITY", axis, ("line_label",))
        for name in ("line_name", "line_names"):
            if name in dataset.variables:
                transition = variable(dataset, path, name, axis, ("line_label",))
        for place, name in enumerate(names):
            if not name:
                continue
            row: dict[str, Any] = {"NAME": name, "NUM_LINES": 0, "FRAME": "J2000", "OBSERVER": "REST"}
            row["DIRECTION"] = np.zeros(2) if direction is None else np.asarray(direction.values[place, :2])
            if direction is not None:
                row["FRAME"] = self.frame(direction, f"{path}/SOURCE_DIRECTION")
            if frequency is not None:
                has = np.isfinite(frequency.values[place])
                row["NUM_LINES"] = int(has.sum())
                row["REST_FREQUENCY"] = frequency.values[place][has]
                if velocity is not None:
                    row["SYSVEL"] = velocity.values[place][has]
                if transition is not None:
                    row["TRANSITION"] = np.asarray(transition.values[place], dtype=str)[has]
                observer = str(frequency.attrs.get("observer", "REST")).upper()
                row["OBSERVER"] = {"GCRS": "GEO", "ICRS": "BARY"}.get(observer, observer)
            self._sources.setdefault(name, {}).setdefault(window, row)
        return names

    # ---- writing -----------------------------------------------------------------------------------------------------

    def finish(self) -> dict[str, _Array]:
        """Brings the rows in their final order; the new numbers of the old ones."""
        moved = {}
        for name, merged in (("SPECTRAL_WINDOW", self.windows), ("FIELD", self.fields)):
            shown_names = [row["NAME"] for row in merged.rows]
            kept, numbers = without_suffix(shown_names, self.has_suffix)
            for row, name_kept, place in zip(merged.rows, kept, numbers, strict=True):
                row["NAME"], row["PLACE"] = name_kept, place
            moved[name] = merged.sort(lambda row: row["PLACE"])
        for row in self.descriptions.rows:
            row["SPECTRAL_WINDOW_ID"] = int(moved["SPECTRAL_WINDOW"][row["SPECTRAL_WINDOW_ID"]])
        order = self.descriptions.sort(lambda row: (row["SPECTRAL_WINDOW_ID"], row["POLARIZATION_ID"]))
        moved["DATA_DESCRIPTION"] = order
        short, numbers = without_suffix(list(self._sources), self.has_suffix)
        ids = dict(zip(self._sources, numbers, strict=True))
        # SOURCE_ID tells sources of one name apart
        if self.has_suffix and all(_SUFFIX.fullmatch(name) for name in self._sources):
            short = [name.rpartition("_")[0] for name in self._sources]
        names = dict(zip(self._sources, short, strict=True))
        windows = moved["SPECTRAL_WINDOW"]
        self.sources = [
            {**row, "NAME": names[name], "SOURCE_ID": ids[name], "SPECTRAL_WINDOW_ID": window}
            for name, rows in sorted(self._sources.items(), key=lambda item: ids[item[0]])
            for window, row in _of_windows(rows, windows)
        ]
        for row in self.fields.rows:
            row["SOURCE_ID"] = ids.get(row["SOURCE"], -1)
        self.feeds = [
            {**row, "ANTENNA_ID": antenna, "SPECTRAL_WINDOW_ID": window}
            for key, antenna in self.antenna_numbers().items()
            for window, row in _of_windows(self._feeds[key], windows)
        ]
        return moved

    def write(self, writer: _native.NewTableWriter, scale: str, history: Mapping[str, Any]) -> dict[str, int]:
        """Writes them; the number of columns of each."""
        middle = float(np.mean(self.time_range)) if np.isfinite(self.time_range).all() else 0.0
        forever = {"TIME": middle, "INTERVAL": _FOREVER}
        feeds = []
        for row in self.feeds:
            count = len(row["POLARIZATION_TYPE"])
            response, offset = np.eye(count, dtype=np.complex64), np.zeros((count, 2))
            of_feed = {"NUM_RECEPTORS": count, "POL_RESPONSE": response, "BEAM_OFFSET": offset, "BEAM_ID": -1}
            feeds.append({**row, **of_feed, **forever, "POSITION": np.zeros(3)})
        rows: dict[str, _ms_tables.Rows] = {
            "ANTENNA": self.antennas,
            "DATA_DESCRIPTION": self.descriptions.rows,
            "FEED": feeds,
            "FIELD": [{**row, "TIME": middle} for row in self.fields.rows],
            "FLAG_CMD": [],
            "HISTORY": [{"APP_PARAMS": [""], "CLI_COMMAND": [""], "OBJECT_ID": -1, "OBSERVATION_ID": -1, **history}],
            "OBSERVATION": self.observations.rows,
            "POLARIZATION": self.polarizations.rows,
            "PROCESSOR": self.processors.rows,
            "SPECTRAL_WINDOW": self.windows.rows,
            "STATE": self.states.rows,
        }
        columns = dict(_ms_tables.REQUIRED)
        references = {"PHASE_DIR": "PhaseDir_Ref", "DELAY_DIR": "DelayDir_Ref", "REFERENCE_DIR": "RefDir_Ref"}
        rows["FIELD"], columns["FIELD"] = _framed(rows["FIELD"], columns["FIELD"], references)
        if self.sources:
            frames = {row["FRAME"] for row in self.sources}
            if len(frames) > 1:
                self.said.add(f"SOURCE has one frame, that of the first of {', '.join(sorted(frames))}", "SOURCE")
            measures = {"DIRECTION": self.sources[0]["FRAME"], "REST_FREQUENCY": self.sources[0]["OBSERVER"]}
            columns["SOURCE"] = _ms_tables.referred(_ms_tables.OPTIONAL["SOURCE"], measures)
            fixed = {"PROPER_MOTION": np.zeros(2), "CALIBRATION_GROUP": -1}
            rows["SOURCE"] = [{**row, **fixed, **forever} for row in self.sources]
        for name, of in rows.items():
            _ms_tables.write(writer, name, scaled(columns[name], scale), of)
        return {name: len(columns[name]) for name in rows}


def scaled(columns: Sequence[Column], scale: str) -> list[Column]:
    """The columns, with times in this scale."""
    times = [column.name for column in columns if column.measure.get("type") == "epoch"]
    return _ms_tables.referred(columns, dict.fromkeys(times, scale.upper()))


def _of_windows(rows: Mapping[int, dict[str, Any]], windows: _Array) -> list[tuple[int, dict[str, Any]]]:
    """A row for each spectral window; one for all, -1, if they are equal."""

    def content(row: Mapping[str, Any]) -> list[Any]:
        return [np.asarray(value).tolist() for value in row.values()]

    first = next(iter(rows.values()))
    if all(content(row) == content(first) for row in rows.values()):
        return [(-1, first)]
    return sorted(((int(windows[window]), row) for window, row in rows.items()), key=lambda pair: pair[0])


def _framed(
    rows: _ms_tables.Rows, columns: Sequence[Column], references: Mapping[str, str]
) -> tuple[_ms_tables.Rows, list[Column]]:
    """Rows and columns of directions: with one frame, or with one for each row."""
    found = [dict(row) for row in rows]
    frames, varying = {}, {}
    for column, reference in references.items():
        of_rows = [row[f"{column} FRAME"] for row in found]
        if len(set(of_rows)) <= 1:
            frames[column] = of_rows[0] if of_rows else "J2000"
            continue
        varying[column] = reference
        for row, frame in zip(found, of_rows, strict=True):
            row[reference] = DIRECTIONS.index(frame)
    return found, _ms_tables.by_row(_ms_tables.referred(columns, frames), varying)


class Appended:
    """A subtable to which the cells of one partition after the other are appended, each key once."""

    def __init__(self, writer: _native.NewTableWriter, name: str, columns: Sequence[Column]) -> None:
        self._writer = writer
        self._columns = {column.name: column for column in columns}
        self._seen: _Array | None = None
        self.rows = 0
        description = {"type": "", "keywords": {}, "managers": []}
        writer.subtable(name, {**description, "columns": [column.describe() for column in columns]})

    def append(self, keys: Sequence[_Array], cells: Mapping[str, Any]) -> None:
        """Rows with keys such as antenna and time. Of each column the cells of all rows, or one for all."""
        key = np.stack([np.asarray(part, np.float64) for part in keys], axis=1)
        first = np.sort(np.unique(key, axis=0, return_index=True)[1])
        if self._seen is not None:
            both = np.concatenate([self._seen, key[first]])
            places = np.unique(both, axis=0, return_index=True)[1]
            first = first[np.sort(places[places >= len(self._seen)]) - len(self._seen)]
        if not len(first):
            return
        self._seen = key[first] if self._seen is None else np.concatenate([self._seen, key[first]])
        self._writer.add_rows(len(first))
        rows = np.arange(self.rows, self.rows + len(first), dtype=np.uint64)
        for name, values in cells.items():
            array = np.asarray(values)
            array = np.full(len(first), values) if array.ndim == 0 else array[first]
            self._writer.put(name, rows, self._columns[name].array(array))
        self.rows += len(first)

    def end(self) -> None:
        self._writer.end_subtable()


def step(times: _Array) -> float:
    """The usual distance of times; 0 of a single one."""
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def time_axis(dataset: Dataset, path: str, name: str) -> tuple[_Array, str]:
    """The times of a subtable in seconds of MJD, and the name of their axis; `time` if they are interpolated."""
    axis = name if name in dataset.variables else "time"
    times = variable(dataset, path, axis, (axis,))
    check_time(times, f"{path}/{axis}")
    return np.asarray(times.values, np.float64) + UNIX_EPOCH, axis


def check_time(times: Variable, path: str) -> None:
    if times.dtype.kind not in "fiu":
        raise UsageError(f"{path}: type {times.dtype}, expected are seconds as floats")
    format_ = str(times.attrs.get("format", "unix")).lower()
    units = times.attrs.get("units", "s")
    units = units[0] if isinstance(units, list) and units else units
    if format_ != "unix" or units != "s":
        raise UnsupportedError(f"{path}: format {format_!r} in {units!r}, expected 'unix' in 's'")
