"""Casacore tables (MeasurementSets) in numpy and xarray, and to HDF5 and back, without casacore.

    import h5bridge

    with h5bridge.open_table("my.ms") as table:
        data = table["DATA"][:100]              # (row, chan, corr)
    h5bridge.to_hdf5("my.ms", "my.h5")
    xarray.open_datatree("my.ms", engine="h5bridge")

Everything is imported when it is first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import casacore as casacore
    from . import live as live
    from . import xarray as xarray
    from ._errors import DifferentError as DifferentError
    from ._errors import Error as Error
    from ._errors import ExistsError as ExistsError
    from ._errors import FormatError as FormatError
    from ._errors import InterruptedError as InterruptedError
    from ._errors import LimitError as LimitError
    from ._errors import LockedError as LockedError
    from ._errors import NoSpaceError as NoSpaceError
    from ._errors import NotFoundError as NotFoundError
    from ._errors import ReadError as ReadError
    from ._errors import UnsupportedError as UnsupportedError
    from ._errors import UsageError as UsageError
    from ._table import Column as Column
    from ._table import Table as Table
    from ._table import open_table as open_table

_HOMES = {
    "_errors": (
        "DifferentError",
        "Error",
        "ExistsError",
        "FormatError",
        "InterruptedError",
        "LimitError",
        "LockedError",
        "NoSpaceError",
        "NotFoundError",
        "ReadError",
        "UnsupportedError",
        "UsageError",
    ),
    "_table": ("Column", "Table", "open_table"),
}
_MODULES = ("casacore", "live", "xarray")

__all__ = [*(name for names in _HOMES.values() for name in names), *_MODULES]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("h5bridge")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
