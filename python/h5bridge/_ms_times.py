"""The subtables that have rows of times: POINTING, SYSCAL and WEATHER."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset

from . import _ms_subtables, _ms_tables, _native
from ._errors import UsageError
from ._ms_partition import Partition
from ._ms_subtables import Appended, Said, Subtables, time_axis, variable

_Array = npt.NDArray[Any]

_WEATHER = "DEW_POINT H2O IONOS_ELECTRON PRESSURE REL_HUMIDITY TEMPERATURE WIND_DIRECTION WIND_SPEED".split()


def write(writer: _native.NewTableWriter, partitions: list[Partition], tables: Subtables) -> dict[str, int]:
    """Writes POINTING, and what there is of SYSCAL and WEATHER; the number of columns of each."""
    kinds = ("POINTING", "pointing"), ("SYSCAL", "system_calibration"), ("WEATHER", "weather")
    writers = {"POINTING": _write_pointing, "SYSCAL": _write_calibration, "WEATHER": _write_weather}
    written = {}
    for name, kind in kinds:
        having = [part for part in partitions if kind in part.children]
        if having or name in _ms_tables.REQUIRED:
            written[name] = writers[name](writer, having, tables, partitions[0].scale)
    return written


def _antennas_of(part: Partition, dataset: Dataset, path: str, tables: Subtables) -> _Array:
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


def _write_pointing(writer: _native.NewTableWriter, having: list[Partition], tables: Subtables, scale: str) -> int:
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


def _write_calibration(writer: _native.NewTableWriter, having: list[Partition], tables: Subtables, scale: str) -> int:
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


def _is_reversed(part: Partition, found: Dataset) -> bool:
    """Whether the channels of a calibration are those of the partition in the opposite order."""
    if "frequency_system_cal" not in found.variables:
        return False
    of_window, channels = part.dataset.variables["frequency"].values, found.variables["frequency_system_cal"].values
    if len(channels) != len(of_window) or len(channels) < 2:
        return False
    return bool(np.allclose(channels[::-1], of_window, rtol=1e-9) and not np.allclose(channels, of_window, rtol=1e-9))


def _write_weather(writer: _native.NewTableWriter, having: list[Partition], tables: Subtables, scale: str) -> int:
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
