"""Pictures of a MeasurementSet with matplotlib."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ._errors import UnsupportedError, UsageError
from ._table import Table, open_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["amplitude", "phase", "waterfall", "uv", "antennas"]
_BLOCK_BYTES = 64 << 20
_MOST_POINTS = 200_000
_MOST_TIMES = 1000


def plot(
    source: str | os.PathLike[str] | Table,
    kind: Kind = "amplitude",
    *,
    column: str = "DATA",
    x: Literal["time", "channel", "uvdist"] = "time",
    correlation: int = 0,
    baseline: tuple[int, int] | None = None,
    rows: slice | None = None,
    flagged: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draws visibilities of a MeasurementSet, a native file or a container; returns matplotlib's axes.

    | kind | shows |
    |---|---|
    | `amplitude`, `phase` | each baseline, averaged over channels against `time` (s from the first) or `uvdist` (m); or averaged over rows against `channel` |
    | `waterfall` | the mean amplitude of each time and channel |
    | `uv` | the coverage of the uv plane, in m |
    | `antennas` | where antennas stand, in m east and north of their mean |

    `correlation` is the number of one, `baseline` the numbers of two antennas. Flagged values are left out unless
    `flagged` is set. Only what is drawn is read, in blocks; of many rows every n-th is taken.

    >>> plot("my.ms", "waterfall", column="CORRECTED_DATA")
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise UnsupportedError("pictures need matplotlib: pip install 'h5bridge[plot]'") from None
    if kind not in ("amplitude", "phase", "waterfall", "uv", "antennas"):
        raise UsageError(f"{kind!r} is not one of amplitude, phase, waterfall, uv, antennas")
    table = source if isinstance(source, Table) else open_table(source)
    try:
        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        if kind == "antennas":
            _antennas(table, ax)
        elif kind == "uv":
            _uv(table, _chosen(table, rows, baseline), ax)
        elif kind == "waterfall":
            _waterfall(table, _chosen(table, rows, baseline), column, correlation, flagged, ax)
        else:
            _visibilities(table, _chosen(table, rows, baseline), column, correlation, flagged, kind, x, ax)
        return ax
    finally:
        if table is not source:
            table.close()


def _chosen(table: Table, rows: slice | None, baseline: tuple[int, int] | None) -> npt.NDArray[np.int64]:
    taken = np.arange(len(table))[rows if rows is not None else slice(None)]
    if baseline is not None and len(taken):
        first, last = int(taken.min()), int(taken.max()) + 1
        pair = (table["ANTENNA1"][first:last] == baseline[0]) & (table["ANTENNA2"][first:last] == baseline[1])
        taken = taken[pair[taken - first]]
    if not len(taken):
        raise UsageError(f"{table.path}: no rows are chosen")
    return taken


def _blocks(
    table: Table, rows: npt.NDArray[np.int64], column: str, correlation: int, flagged: bool
) -> Any:
    """Blocks of rows, each with its visibilities `(row, channel)`; flagged ones are masked."""
    data = table[column]
    row_bytes = max(int(np.prod([n or 1 for n in data.cell_shape])) * data.dtype.itemsize, 1)
    step = max(_BLOCK_BYTES // row_bytes, 1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        cells = data[part, :, correlation]
        mask = np.zeros(cells.shape, dtype=bool)
        if not flagged and "FLAG" in table:
            mask = table["FLAG"][part, :, correlation]
            if "FLAG_ROW" in table:
                mask = mask | table["FLAG_ROW"][part][:, None]
        yield part, np.ma.masked_array(cells, mask=mask)


def _visibilities(
    table: Table,
    rows: npt.NDArray[np.int64],
    column: str,
    correlation: int,
    flagged: bool,
    kind: str,
    x: str,
    ax: Axes,
) -> None:
    measure = np.ma.abs if kind == "amplitude" else _degrees
    if x == "channel":
        total: Any = 0
        count: Any = 0
        for _, block in _blocks(table, rows, column, correlation, flagged):
            total = total + block.filled(0).sum(axis=0)
            count = count + (~np.ma.getmaskarray(block)).sum(axis=0)
        mean = np.ma.masked_array(total, mask=count == 0) / np.maximum(count, 1)
        ax.plot(np.arange(len(mean)), measure(mean))
        ax.set_xlabel("channel")
    elif x in ("time", "uvdist"):
        rows = rows[:: max(len(rows) // _MOST_POINTS, 1)]
        values = np.ma.concatenate(
            [block.mean(axis=1) for _, block in _blocks(table, rows, column, correlation, flagged)]
        )
        if x == "time":
            times = table["TIME"][rows]
            ax.plot(times - times.min(), measure(values), ".", markersize=1)
            ax.set_xlabel("time (s)")
        else:
            uvw = table["UVW"][rows]
            ax.plot(np.hypot(uvw[:, 0], uvw[:, 1]), measure(values), ".", markersize=1)
            ax.set_xlabel("uv distance (m)")
    else:
        raise UsageError(f"{x!r} is not one of time, channel, uvdist")
    ax.set_ylabel(f"{kind} of {column}" + (" (°)" if kind == "phase" else ""))


def _degrees(values: Any) -> Any:
    return np.ma.masked_array(np.angle(np.ma.getdata(values), deg=True), mask=np.ma.getmaskarray(values))


def _waterfall(
    table: Table, rows: npt.NDArray[np.int64], column: str, correlation: int, flagged: bool, ax: Axes
) -> None:
    times = table["TIME"][rows]
    known, place = np.unique(times, return_inverse=True)
    merged = max(len(known) // _MOST_TIMES, 1)
    place = place // merged
    shape = (int(place.max()) + 1, int(table[column].cell_shape[0] or 0))
    if not shape[1]:
        raise UsageError(f"{table.path}: the cells of {column} have different numbers of channels: choose rows")
    total, count = np.zeros(shape), np.zeros(shape)
    done = 0
    for part, block in _blocks(table, rows, column, correlation, flagged):
        where = place[done : done + len(part)]
        np.add.at(total, where, np.ma.abs(block).filled(0))
        np.add.at(count, where, ~np.ma.getmaskarray(block))
        done += len(part)
    mean = np.ma.masked_array(total, mask=count == 0) / np.maximum(count, 1)
    span = float(known[-1] - known[0]) if len(known) > 1 else 1.0
    image = ax.imshow(mean, aspect="auto", origin="lower", extent=(0, shape[1], 0, span), interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label=f"amplitude of {column}")
    ax.set_xlabel("channel")
    ax.set_ylabel("time (s)")


def _uv(table: Table, rows: npt.NDArray[np.int64], ax: Axes) -> None:
    rows = rows[:: max(len(rows) // _MOST_POINTS, 1)]
    uvw = table["UVW"][rows]
    for sign in (1, -1):
        ax.plot(sign * uvw[:, 0], sign * uvw[:, 1], ".", markersize=0.5, color="C0")
    ax.set_aspect("equal")
    ax.set_xlabel("u (m)")
    ax.set_ylabel("v (m)")


def _antennas(table: Table, ax: Axes) -> None:
    antennas = table if "POSITION" in table else table.subtables["ANTENNA"]
    place, names = antennas["POSITION"][:], antennas["NAME"][:]
    middle = place.mean(axis=0)
    longitude = np.arctan2(middle[1], middle[0])
    latitude = np.arctan2(middle[2], np.hypot(middle[0], middle[1]))
    away = place - middle
    east = -np.sin(longitude) * away[:, 0] + np.cos(longitude) * away[:, 1]
    outward = np.cos(longitude) * away[:, 0] + np.sin(longitude) * away[:, 1]
    north = np.cos(latitude) * away[:, 2] - np.sin(latitude) * outward
    ax.plot(east, north, "o")
    for name, at in zip(names, zip(east, north, strict=True), strict=True):
        ax.annotate(name, at, xytext=(3, 3), textcoords="offset points", fontsize="x-small")
    ax.set_aspect("equal")
    ax.set_xlabel("east (m)")
    ax.set_ylabel("north (m)")
