"""The tables of a MeasurementSet of version 2, as casacore defines them: columns, units and measures.

https://casacore.github.io/casacore-notes/264.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import _native
from ._measures import FREQUENCY_FRAMES

UNIX_EPOCH = 3506716800.0
"""Seconds from the first day of MJD to 1970-01-01."""

DIRECTIONS = (
    "J2000 JMEAN JTRUE APP B1950 B1950_VLA BMEAN BTRUE GALACTIC HADEC AZEL AZELSW AZELGEO AZELSWGEO JNAT ECLIPTIC "
    "MECLIPTIC TECLIPTIC SUPERGAL ITRF TOPO ICRS"
).split()
"""Frames of directions by their numbers."""

_OBSERVERS = [*FREQUENCY_FRAMES, "Undefined"]
_OBSERVER_CODES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 64]

_DTYPES: dict[str, Any] = {
    "boolean": np.bool_,
    "int": np.int32,
    "float": np.float32,
    "double": np.float64,
    "complex": np.complex64,
    "string": np.str_,
}


@dataclass(frozen=True)
class Column:
    """A column: `axes` is None for scalars, -1 for any number of axes; `shape` is that of all cells."""

    name: str
    type: str
    axes: int | None = None
    shape: tuple[int, ...] | None = None
    units: tuple[str, ...] = ()
    measure: Mapping[str, Any] = field(default_factory=dict)
    comment: str = ""
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """What the extension takes."""
        keywords = dict(self.keywords)
        if self.units:
            keywords["QuantumUnits"] = np.array(self.units)
        if self.measure:
            keywords["MEASINFO"] = dict(self.measure)
        shape = None if self.shape is None else list(self.shape)
        axes = self.axes if self.shape is None else len(self.shape)
        described = {"name": self.name, "type": self.type, "ndim": axes, "shape": shape}
        return {**described, "keywords": keywords, "comment": self.comment}

    def array(self, values: Any) -> Any:
        """Elements in the type of the column, one after the other in memory."""
        return np.asarray(values, dtype=_DTYPES[self.type], order="C")


def _scalars(type_: str, names: str, units: str = "") -> list[Column]:
    return [Column(name, type_, units=(units,) if units else ()) for name in names.split()]


def _arrays(type_: str, axes: int, names: str, units: str = "") -> list[Column]:
    return [Column(name, type_, axes, units=(units,) if units else ()) for name in names.split()]


def _epoch(name: str, shape: tuple[int, ...] | None = None) -> Column:
    return Column(name, "double", None, shape, ("s",), {"type": "epoch", "Ref": "UTC"})


def _direction(name: str, axes: int | None = 2, shape: tuple[int, ...] | None = None) -> Column:
    return Column(name, "double", axes, shape, ("rad", "rad"), {"type": "direction", "Ref": "J2000"})


def _position(name: str) -> Column:
    return Column(name, "double", 1, (3,), ("m", "m", "m"), {"type": "position", "Ref": "ITRF"})


def _frequency(name: str, axes: int | None) -> Column:
    measure = {
        "type": "frequency",
        "VarRefCol": "MEAS_FREQ_REF",
        "TabRefTypes": np.array(_OBSERVERS),
        "TabRefCodes": np.array(_OBSERVER_CODES, np.uint32),
    }
    return Column(name, "double", axes, units=("Hz",), measure=measure)


REQUIRED: dict[str, list[Column]] = {
    "ANTENNA": [
        *(_position("OFFSET"), _position("POSITION")),
        *_scalars("string", "TYPE"),
        *_scalars("double", "DISH_DIAMETER", "m"),
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("string", "MOUNT NAME STATION"),
    ],
    "DATA_DESCRIPTION": [*_scalars("boolean", "FLAG_ROW"), *_scalars("int", "POLARIZATION_ID SPECTRAL_WINDOW_ID")],
    "FEED": [
        *(_position("POSITION"), _direction("BEAM_OFFSET")),
        *_arrays("string", 1, "POLARIZATION_TYPE"),
        *_arrays("complex", 2, "POL_RESPONSE"),
        *_arrays("double", 1, "RECEPTOR_ANGLE", "rad"),
        *_scalars("int", "ANTENNA_ID BEAM_ID FEED_ID"),
        *_scalars("double", "INTERVAL", "s"),
        *_scalars("int", "NUM_RECEPTORS SPECTRAL_WINDOW_ID"),
        _epoch("TIME"),
    ],
    "FIELD": [
        *(_direction("DELAY_DIR"), _direction("PHASE_DIR"), _direction("REFERENCE_DIR")),
        *_scalars("string", "CODE"),
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("string", "NAME"),
        *_scalars("int", "NUM_POLY SOURCE_ID"),
        _epoch("TIME"),
    ],
    "FLAG_CMD": [
        *_scalars("boolean", "APPLIED"),
        *_scalars("string", "COMMAND"),
        *_scalars("double", "INTERVAL", "s"),
        *_scalars("int", "LEVEL"),
        *_scalars("string", "REASON"),
        *_scalars("int", "SEVERITY"),
        _epoch("TIME"),
        *_scalars("string", "TYPE"),
    ],
    "HISTORY": [
        *_arrays("string", 1, "APP_PARAMS CLI_COMMAND"),
        *_scalars("string", "APPLICATION MESSAGE"),
        *_scalars("int", "OBJECT_ID OBSERVATION_ID"),
        *_scalars("string", "ORIGIN PRIORITY"),
        _epoch("TIME"),
    ],
    "OBSERVATION": [
        _epoch("TIME_RANGE", (2,)),
        *_arrays("string", 1, "LOG SCHEDULE"),
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("string", "OBSERVER PROJECT"),
        _epoch("RELEASE_DATE"),
        *_scalars("string", "SCHEDULE_TYPE TELESCOPE_NAME"),
    ],
    "POINTING": [
        _direction("DIRECTION"),
        *_scalars("int", "ANTENNA_ID"),
        *_scalars("double", "INTERVAL", "s"),
        *_scalars("string", "NAME"),
        *_scalars("int", "NUM_POLY"),
        *(_direction("TARGET", -1), _epoch("TIME"), _epoch("TIME_ORIGIN")),
        *_scalars("boolean", "TRACKING"),
    ],
    "POLARIZATION": [
        *_arrays("int", 1, "CORR_TYPE"),
        *_arrays("int", 2, "CORR_PRODUCT"),
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("int", "NUM_CORR"),
    ],
    "PROCESSOR": [
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("int", "MODE_ID"),
        *_scalars("string", "TYPE"),
        *_scalars("int", "TYPE_ID"),
        *_scalars("string", "SUB_TYPE"),
    ],
    "SPECTRAL_WINDOW": [
        *_scalars("int", "MEAS_FREQ_REF"),
        *(_frequency("CHAN_FREQ", 1), _frequency("REF_FREQUENCY", None)),
        *_arrays("double", 1, "CHAN_WIDTH EFFECTIVE_BW RESOLUTION", "Hz"),
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("int", "FREQ_GROUP"),
        *_scalars("string", "FREQ_GROUP_NAME"),
        *_scalars("int", "IF_CONV_CHAIN"),
        *_scalars("string", "NAME"),
        *_scalars("int", "NET_SIDEBAND NUM_CHAN"),
        *_scalars("double", "TOTAL_BANDWIDTH", "Hz"),
    ],
    "STATE": [
        *_scalars("double", "CAL", "K"),
        *_scalars("boolean", "FLAG_ROW"),
        *_scalars("double", "LOAD", "K"),
        *_scalars("string", "OBS_MODE"),
        *_scalars("boolean", "REF SIG"),
        *_scalars("int", "SUB_SCAN"),
    ],
}
"""The subtables that each MeasurementSet has, with their required columns."""

OPTIONAL: dict[str, list[Column]] = {
    "POINTING": [_direction("ENCODER", -1), *_scalars("boolean", "OVER_THE_TOP")],
    "SOURCE": [
        _direction("DIRECTION", 1, (2,)),
        Column("PROPER_MOTION", "double", 1, (2,), ("rad/s",)),
        *_scalars("int", "CALIBRATION_GROUP"),
        *_scalars("string", "CODE"),
        *_scalars("double", "INTERVAL", "s"),
        *_scalars("string", "NAME"),
        *_scalars("int", "NUM_LINES SOURCE_ID SPECTRAL_WINDOW_ID"),
        _epoch("TIME"),
        Column("REST_FREQUENCY", "double", -1, None, ("Hz",), {"type": "frequency", "Ref": "REST"}),
        Column("SYSVEL", "double", -1, None, ("m/s",), {"type": "radialvelocity", "Ref": "LSRK"}),
        *_arrays("string", -1, "TRANSITION"),
    ],
    "WEATHER": [
        *_scalars("int", "ANTENNA_ID"),
        *_scalars("double", "INTERVAL", "s"),
        _epoch("TIME"),
        *_scalars("float", "DEW_POINT", "K"),
        *_scalars("float", "H2O IONOS_ELECTRON", "m-2"),
        *_scalars("float", "PRESSURE", "hPa"),
        *_scalars("float", "REL_HUMIDITY", "%"),
        *_scalars("float", "TEMPERATURE", "K"),
        *_scalars("float", "WIND_DIRECTION", "rad"),
        *_scalars("float", "WIND_SPEED", "m/s"),
        *_scalars("int", "NS_WX_STATION_ID"),
        _position("NS_WX_STATION_POSITION"),
    ],
    "SYSCAL": [
        *_scalars("int", "ANTENNA_ID FEED_ID"),
        *_scalars("double", "INTERVAL", "s"),
        *_scalars("int", "SPECTRAL_WINDOW_ID"),
        _epoch("TIME"),
        *_scalars("float", "PHASE_DIFF", "rad"),
        *_arrays("float", -1, "TANT TCAL TRX TSKY TSYS", "K"),
        *_arrays("float", -1, "TANT_TSYS"),
        *_arrays("float", -1, "TANT_SPECTRUM TCAL_SPECTRUM TRX_SPECTRUM TSKY_SPECTRUM TSYS_SPECTRUM", "K"),
        *_arrays("float", -1, "TANT_TSYS_SPECTRUM"),
    ],
    "ASDM_STATION": _scalars("string", "name"),
}
"""Columns of the subtables that a MeasurementSet may lack, and further columns of required ones."""

MAIN: list[Column] = [
    Column("UVW", "double", 1, (3,), ("m", "m", "m"), {"type": "uvw", "Ref": "J2000"}, "Vector with uvw coordinates"),
    Column("FLAG", "boolean", 2),
    Column("FLAG_CATEGORY", "boolean", 3, keywords={"CATEGORY": np.array([], np.str_)}),
    *_arrays("float", 1, "WEIGHT SIGMA"),
    *_scalars("int", "ANTENNA1 ANTENNA2 ARRAY_ID DATA_DESC_ID"),
    *_scalars("double", "EXPOSURE", "s"),
    *_scalars("int", "FEED1 FEED2 FIELD_ID"),
    *_scalars("boolean", "FLAG_ROW"),
    *_scalars("double", "INTERVAL", "s"),
    *_scalars("int", "OBSERVATION_ID PROCESSOR_ID SCAN_NUMBER STATE_ID"),
    *(_epoch("TIME"), _epoch("TIME_CENTROID")),
]
"""The required columns of the main table."""

INCREMENTAL = (
    "TIME INTERVAL EXPOSURE TIME_CENTROID ARRAY_ID FEED1 FEED2 FIELD_ID FLAG_ROW OBSERVATION_ID PROCESSOR_ID "
    "SCAN_NUMBER STATE_ID"
).split()
"""Columns of the main table that stay the same over many rows."""

Rows = Sequence[Mapping[str, Any]]
"""Cells by the names of their columns; a missing scalar is 0 or empty, a missing array undefined."""


def referred(columns: Iterable[Column], frames: Mapping[str, str]) -> list[Column]:
    """The columns with the frames of their measures, by the names of the columns."""
    return [
        replace(column, measure={**column.measure, "Ref": frames[column.name]}) if column.name in frames else column
        for column in columns
    ]


def by_row(columns: Iterable[Column], references: Mapping[str, str]) -> list[Column]:
    """The columns, of which some have a frame for each row, in another column: `references` has the names of both."""
    found: list[Column] = []
    for column in columns:
        reference = references.get(column.name)
        if reference is None:
            found.append(column)
            continue
        codes = np.arange(len(DIRECTIONS), dtype=np.uint32)
        measure = {"type": "direction", "VarRefCol": reference, "TabRefTypes": np.array(DIRECTIONS)}
        found += [replace(column, measure={**measure, "TabRefCodes": codes}), Column(reference, "int")]
    return found


def write(writer: _native.NewTableWriter, name: str, columns: Sequence[Column], rows: Rows) -> None:
    """Writes a subtable."""
    description = {"type": "", "keywords": {}, "managers": []}
    writer.subtable(name, {**description, "columns": [column.describe() for column in columns]})
    writer.add_rows(len(rows))
    for column in columns:
        _put_cells(writer, column, [row.get(column.name) for row in rows])
    writer.end_subtable()


def _put_cells(writer: _native.NewTableWriter, column: Column, cells: Sequence[Any]) -> None:
    defined = [row for row, cell in enumerate(cells) if cell is not None]
    arrays = [column.array(cells[row]) for row in defined]
    first = 0
    # cells of one shape at once, as most columns have only one
    for end in range(1, len(defined) + 1):
        if end == len(defined) or arrays[end].shape != arrays[first].shape:
            block = np.stack(arrays[first:end])
            writer.put(column.name, np.array(defined[first:end], np.uint64), column.array(block))
            first = end


def corr_products(types: Sequence[str]) -> list[list[int]]:
    """CORR_PRODUCT of correlations by their names: the receptors of both antennas, as XX has (0, 0)."""
    places = {"R": 0, "L": 1, "X": 0, "Y": 1, "P": 0, "Q": 1}
    return [[places.get(letter, 0) for letter in name] if len(name) == 2 else [0, 0] for name in types]
