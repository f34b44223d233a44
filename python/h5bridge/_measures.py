"""Units, measures and times of columns, from the keywords that casacore's TableMeasures writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._errors import FormatError, UsageError
from ._optional import needed

if TYPE_CHECKING:
    from astropy.time import Time
    from astropy.units import Quantity

STOKES = (
    "Undefined I Q U V RR RL LR LL XX XY YX YY RX RY LX LY XR XL YR YL PP PQ QP QQ RCircular LCircular Linear Ptotal "
    "Plinear PFtotal PFlinear Pangle"
).split()
"""Names of correlations; casacore's numbers are the indices."""
FREQUENCY_FRAMES = "REST LSRK LSRD BARY GEO TOPO GALACTO LGROUP CMB".split()
"""Frames of frequencies; casacore's codes are the indices."""

DAY = 86400
"""Seconds."""
# modified Julian dates count from there
_MJD = np.datetime64("1858-11-17", "ns")
_DAYS = {"s": DAY, "d": 1}
_NANOSECONDS = {"s": 10**9, "d": DAY * 10**9}
# of 1678 and 2261, in MJD
_FIRST_DAY, _LAST_DAY = -66063, 147237
_SCALES = {"UTC": "utc", "TAI": "tai", "IAT": "tai", "TT": "tt", "TDT": "tt", "ET": "tt"}
_SCALES |= {"TDB": "tdb", "TCB": "tcb", "TCG": "tcg", "UT1": "ut1", "UT": "ut1"}


@dataclass(frozen=True)
class Measure:
    """What the cells of a column measure, by the column keyword MEASINFO, and in which frame."""

    type: str
    """`epoch`, `direction`, `frequency`, `position`, `uvw` …, as casacore has it."""
    frame: str | None
    """The frame of all rows: `UTC`, `J2000`, `ITRF`; None if each row has its own (`Column.frames`)."""
    frame_column: str | None = None
    """The column with the frame of each row (MEASINFO.VarRefCol)."""
    codes: Mapping[int, str] = field(default_factory=dict, repr=False)
    """The frames that the numbers in that column stand for; empty if it has names."""


def unit_of(keywords: Mapping[str, Any]) -> list[str]:
    """The units in QuantumUnits, of several elements in turn, or in UNIT, which CASA writes for data."""
    found = keywords.get("QuantumUnits", keywords.get("UNIT"))
    return [] if found is None else [str(unit) for unit in np.ravel(found)]


def measure_of(keywords: Mapping[str, Any]) -> Measure | None:
    """The measure in MEASINFO; None if there is none."""
    known = keywords.get("MEASINFO")
    if not isinstance(known, dict) or not isinstance(known.get("type"), str):
        return None
    column = known.get("VarRefCol")
    if column is None:
        return Measure(known["type"], known.get("Ref"))
    codes = dict(zip(map(int, known.get("TabRefCodes", ())), map(str, known.get("TabRefTypes", ())), strict=False))
    if not codes and known["type"].lower() == "frequency":
        codes = dict(enumerate(FREQUENCY_FRAMES))
    return Measure(known["type"], None, str(column), codes)


def named_frames(measure: Measure, found: npt.NDArray[Any], place: str) -> npt.NDArray[Any]:
    """Names of the frames in a column of names or numbers."""
    if found.dtype.kind in "OU":
        return found.astype(object)
    try:
        names = [measure.codes[int(code)] for code in found]
    except KeyError as error:
        raise FormatError(f"{place}: frame {error} has no name in MEASINFO") from None
    return np.array(names, dtype=object)


def quantity(values: npt.NDArray[Any], units: list[str], place: str) -> Quantity:
    """Values with their unit; several elements of a cell may have several."""
    astropy = needed("astropy.units", "astropy")
    if len(set(units)) > 1:
        raise UsageError(f"{place}: elements of a cell have the units {', '.join(units)}; an astropy Quantity has one")
    if not units:
        raise UsageError(f"{place} has no unit")
    try:
        unit = astropy.Unit(units[0])
    except ValueError:
        raise UsageError(f"{place}: astropy does not know the unit {units[0]!r}") from None
    return np.asarray(values) << unit  # shares the memory


def _days(values: npt.NDArray[Any], unit: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Whole modified Julian days and what is left, in the unit; nothing is rounded."""
    with np.errstate(invalid="ignore"):
        whole, rest = np.divmod(np.asarray(values, dtype=np.float64), _DAYS[unit])
    return whole, rest


def datetimes(values: npt.NDArray[Any], unit: str, place: str) -> npt.NDArray[np.datetime64]:
    """Epochs as datetime64[ns]; NaT for those that are not finite."""
    if not fits_calendar(values, unit):
        raise UsageError(f"{place}: some epochs are outside of datetime64[ns], 1678 to 2261: read the numbers")
    whole, rest = _days(values, unit)
    finite = np.isfinite(whole)
    left = np.round(np.where(finite, rest, 0) * _NANOSECONDS[unit]).astype(np.int64)
    days = np.where(finite, whole, 0).astype(np.int64)
    found = _MJD + (days * _NANOSECONDS["d"] + left).astype("timedelta64[ns]")
    return np.where(finite, found, np.datetime64("NaT", "ns"))[()]


def fits_calendar(values: npt.NDArray[Any], unit: str) -> bool:
    """Whether datetime64[ns] has all epochs that are finite."""
    whole, _ = _days(values, unit)
    outside = (whole < _FIRST_DAY) | (whole > _LAST_DAY)
    return not bool((outside & np.isfinite(whole)).any())


def times(values: npt.NDArray[Any], unit: str, frame: str, place: str) -> Time:
    """Epochs as astropy's times, in the time scale of the frame."""
    if frame not in _SCALES:
        raise UsageError(f"{place}: astropy has no time scale {frame}")
    whole, rest = _days(values, unit)
    time = needed("astropy.time", "astropy")
    return time.Time(whole, rest / _DAYS[unit], format="mjd", scale=_SCALES[frame])


def time_unit(units: list[str], measure: Measure | None, place: str) -> str:
    """`s` or `d`. Raises `UsageError` if cells are not epochs."""
    if measure is None or measure.type.lower() != "epoch":
        raise UsageError(f"{place} has no epochs: its measure is {measure.type if measure else None}")
    if len(set(units)) != 1 or units[0] not in _DAYS:
        raise UsageError(f"{place}: epochs have the unit s or d, not {', '.join(units) or None}")
    return units[0]
