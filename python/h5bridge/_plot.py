"""Plots of a MeasurementSet: the frames of the command `plot`, as numbers, and drawn with matplotlib."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ._errors import UsageError
from ._table import Table
from ._verbs import Path, Progress, call, to_hdf5

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind: TypeAlias = Literal[
    "waterfall",
    "amp_time",
    "phase_time",
    "spectrum",
    "amp_uvdist",
    "phase_uvdist",
    "uv",
    "flag_antenna",
    "flag_channel",
    "flag_time",
    "baselines",
    "xy",
    "antennas",
    "image",
]
Parameter: TypeAlias = str | int | float | Sequence[str | int | float]
"""A value as docs/reference/plots.md has it: `spw=1`, `corr=["XX", "YY"]`, `baseline="m000-m001"`; two ends of a range,
`chan=(10, 20)`."""

_RANGES = ("time", "chan")
# a map is drawn as points if a smaller part of its cells have some
_FEW = 0.1
_DTYPES = {"F32": "<f4", "F64": "<f8", "U32": "<u4", "U8": "|u1"}
# cells all of whose data are flagged
_FLAGGED = "#f0a090"
# modified Julian dates count from 1858-11-17
_MJD = np.datetime64("1858-11-17T00:00:00", "us")


@dataclass(frozen=True)
class Frame:
    """A plot as numbers, and the words beside it."""

    kind: str
    title: str
    note: str
    """What is averaged, and what is left out."""
    rows: int
    """Rows of the source that were read."""
    x: dict[str, Any]
    """`label`, `unit` and `scale` (linear, log; time: seconds of MJD; category: numbers of `names`) of the axis."""
    y: dict[str, Any]
    z: dict[str, Any] | None
    """The same of the colours of a raster, with `low` and `high`: 0.5 % and 99.5 % of its values; None for lines."""
    series: tuple[str, ...] | None
    """Names of the lines; None for a raster."""
    arrays: dict[str, npt.NDArray[Any]] = field(repr=False)
    """`raster` with shape (y, x) and the edges `x` and `y` of its cells; or `x` with shape (n,) and `y` with shape
    (line, n), with the smallest and largest of each bin as `low` and `high` where a bin has several, and with the
    numbers `segment`: lines join values of one segment."""
    document: dict[str, Any] = field(repr=False)
    """All that the frame says of itself; docs/reference/plots.md."""


@dataclass(frozen=True)
class Picture:
    """A PNG file; notebooks show it."""

    png: bytes = field(repr=False)
    title: str

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, path: Path) -> None:
        """Writes the file."""
        with open(path, "xb") as file:
            file.write(self.png)


def frame(
    source: Path | Table, kind: Kind = "waterfall", *, progress: Progress = None, **parameters: Parameter
) -> Frame:
    """The numbers of a plot of visibilities: of a MeasurementSet, a native file, a live file or a container.

    The rows of a view of a table (`Table.where`) are written to a temporary file first. The parameters are the options
    of `h5bridge plot`: `column`, `spw`, `field`, `scan`, `corr`, `baseline`, `antenna`,
    `time`, `chan`, `quantity`, `statistic`, `average`, `flagged`, `unit`, `x`, `y`, `by`, `plane`, `max_read`.

    >>> frame("my.ms", "flag_antenna").arrays["y"]
    """
    return _decode(_plotted(source, kind, "safetensors", progress, parameters))


def plot(
    source: Path | Table,
    kind: Kind = "waterfall",
    *,
    ax: Axes | None = None,
    progress: Progress = None,
    **parameters: Parameter,
) -> Axes | Picture:
    """Draws visibilities of a MeasurementSet, a native file, a live file or a container; returns matplotlib's axes.

    Without matplotlib it returns the picture of the command, which a notebook shows. Parameters are those of `frame`.

    | kind | shows |
    |---|---|
    | `waterfall` | the mean amplitude of each time and frequency; `statistic="max"` shows interference |
    | `amp_time`, `phase_time` | a line for each correlation |
    | `spectrum` | the newest integration, or the mean of `time` |
    | `amp_uvdist`, `phase_uvdist`, `uv` | how many points there are |
    | `flag_antenna`, `flag_channel`, `flag_time` | how much is flagged, in % |
    | `baselines` | the mean amplitude of each pair of antennas |
    | `xy` | axes by name: `x="elevation", y="amp"`, or columns of numbers |
    | `antennas` | where the antennas are |
    | `image` | a plane of an image of casacore |

    >>> plot("my.ms", "waterfall", column="DATA", corr="XX")
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        if ax is not None:
            raise UsageError("axes to draw in need matplotlib: pip install 'h5bridge[plot]'") from None
        return Picture(_plotted(source, kind, "png", progress, parameters), kind)
    return _draw(frame(source, kind, progress=progress, **parameters), ax)


def _plotted(
    source: Path | Table, kind: str, ending: str, progress: Progress, parameters: dict[str, Parameter]
) -> bytes:
    """The file that `h5bridge plot` writes."""
    with tempfile.TemporaryDirectory(prefix="h5bridge") as folder:
        path: Path = source
        if isinstance(source, Table) and source.is_view:
            path = os.path.join(folder, os.path.basename(source.path) + ".h5")
            to_hdf5(source._with_all_columns(), path, compress="none")
        out = os.path.join(folder, "plot." + ending)
        options = [f"--{name.replace('_', '-')}={_word(name, value)}" for name, value in parameters.items()]
        call("plot", [f"--out={out}", *options], [path, kind], progress)
        with open(out, "rb") as file:
            return file.read()


def _word(name: str, value: Parameter) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    if name in _RANGES:
        if len(value) != 2:
            raise UsageError(f"{name}: expected two ends, found {len(value)}")
        return "..".join(str(end) for end in value)
    return ",".join(str(one) for one in value)


def _decode(file: bytes) -> Frame:
    start = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:start])
    words = json.loads(header.pop("__metadata__")["plot"])
    arrays = {}
    for name, of in header.items():
        first, last = (start + end for end in of["data_offsets"])
        arrays[name] = np.frombuffer(file[first:last], dtype=_DTYPES[of["dtype"]]).reshape(of["shape"])
    return Frame(
        kind=words["kind"],
        title=words["title"],
        note=words["note"],
        rows=words["rows_used"],
        x=words["x"],
        y=words["y"],
        z=words["z"],
        series=None if words["series"] is None else tuple(words["series"]),
        arrays=arrays,
        document=words,
    )


def _draw(of: Frame, ax: Axes | None) -> Axes:
    import matplotlib.pyplot as plt
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if ax is None:
        ax = plt.subplots(layout="constrained")[1]
    if of.series is None:
        _draw_raster(of, ax)
    else:
        _draw_lines(of, of.series, ax)
    for shown, axis in ((ax.xaxis, of.x), (ax.yaxis, of.y)):
        shown.set_label_text(_label(axis))
        if axis["scale"] == "category":
            shown.set_ticks(range(len(axis["names"])), axis["names"])
        elif axis["scale"] == "time":
            locator = AutoDateLocator(maxticks=6)
            shown.set_major_locator(locator)
            shown.set_major_formatter(ConciseDateFormatter(locator))
    if of.x["scale"] == "category":
        ax.tick_params(axis="x", rotation=90)
    if of.kind in ("uv", "antennas"):
        ax.set_aspect("equal")
    ax.set_title(f"{of.title}\n{of.note}", fontsize="small")
    return ax


def _draw_raster(of: Frame, ax: Axes) -> None:
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    assert of.z is not None
    raster = np.ma.masked_invalid(of.arrays["raster"].astype(float))
    is_log = of.z["scale"] == "log"
    if is_log:
        raster = np.ma.masked_less_equal(raster, 0)
    low, high = of.z["low"], of.z["high"]
    norm = LogNorm(low or None, high) if is_log and raster.count() else Normalize(low, high)
    x, y = _places(of.x, of.arrays["x"]), _places(of.y, of.arrays["y"])
    if of.y["scale"] == "log" and raster.size:
        ax.set_yscale("log")
    if of.arrays["raster"].dtype == np.uint32:
        raster = np.ma.masked_equal(raster, 0)
        if raster.count() < _FEW * raster.size:
            _draw_points(x, y, raster, norm, ax)
            ax.figure.colorbar(ax.collections[-1], ax=ax, label=_label(of.z))
            return
    mesh = ax.pcolormesh(x, y, raster, norm=norm)
    if of.arrays.get("flagged", np.zeros(1)).any():
        flagged = np.ma.masked_equal(of.arrays["flagged"].astype(float), 0)
        ax.pcolormesh(x, y, flagged, cmap=ListedColormap([_FLAGGED]))
    ax.figure.colorbar(mesh, ax=ax, label=_label(of.z))


def _draw_points(x: npt.NDArray[Any], y: npt.NDArray[Any], counts: Any, norm: Any, ax: Axes) -> None:
    """Draws the cells of a map that have points, each large enough to be seen."""
    lines, columns = np.nonzero(counts.filled(0))
    order = np.argsort(counts.data[lines, columns])
    lines, columns = lines[order], columns[order]
    centres = ((edges[:-1] + edges[1:]) / 2 for edges in (x, y))
    across, up = (of[at] for of, at in zip(centres, (columns, lines), strict=True))
    ax.scatter(across, up, s=9, c=counts.data[lines, columns], marker="s", norm=norm, linewidths=0)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])


def _draw_lines(of: Frame, series: tuple[str, ...], ax: Axes) -> None:
    x = _places(of.x, of.arrays["x"])
    for number, (name, y) in enumerate(zip(series, of.arrays["y"], strict=True)):
        if of.x["scale"] == "category":
            ax.bar(x, y, label=name)
            continue
        segments = of.arrays["segment"][number] if "segment" in of.arrays else np.arange(len(x))
        _draw_line(x, y, segments, name, of.y["label"] != "phase", ax)
    if of.kind == "antennas":
        for name, at, y in zip(series, x, of.arrays["y"].diagonal(), strict=True):
            ax.annotate(name, (at, y))
    elif len(series) > 1:
        ax.legend()


def _draw_line(
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    segments: npt.NDArray[Any],
    name: str,
    joins: bool,
    ax: Axes,
) -> None:
    """Points, and lines between those of one segment."""
    at = np.flatnonzero(np.isfinite(y))
    ends = np.flatnonzero(np.diff(segments[at])) + 1
    # a value that is NaN before each new segment
    x, y = np.insert(x[at], ends, x[at][ends]), np.insert(y[at].astype(float), ends, np.nan)
    ax.plot(x, y, ".-" if joins else ".", markersize=3, linewidth=1, label=name)


def _places(axis: dict[str, Any], numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if axis["scale"] != "time":
        return numbers
    return _MJD + np.round(numbers * 1e6).astype("timedelta64[us]")


def _label(axis: dict[str, Any]) -> str:
    return f"{axis['label']} ({axis['unit']})" if axis["unit"] else str(axis["label"])
