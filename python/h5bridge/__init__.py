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
    from . import batch as batch
    from . import casacore as casacore
    from . import dask as dask
    from . import live as live
    from . import shard as shard
    from . import virtualizarr as virtualizarr
    from . import xarray as xarray
    from ._column import Column as Column
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
    from ._measures import Measure as Measure
    from ._msv4 import open_processing_set as open_processing_set
    from ._plot import Frame as Frame
    from ._plot import Picture as Picture
    from ._plot import frame as frame
    from ._plot import plot as plot
    from ._serve import Server as Server
    from ._serve import serve as serve
    from ._sharing import Linked as Linked
    from ._sharing import Manifest as Manifest
    from ._sharing import link as link
    from ._sharing import manifest as manifest
    from ._sharing import materialize as materialize
    from ._sharing import refs as refs
    from ._sharing import replace as replace
    from ._table import Table as Table
    from ._table import open_table as open_table
    from ._tools import File as File
    from ._tools import Joined as Joined
    from ._tools import Listing as Listing
    from ._tools import Repaired as Repaired
    from ._tools import join as join
    from ._tools import ls as ls
    from ._tools import repair as repair
    from ._tools import show_versions as show_versions
    from ._tools import watch as watch
    from ._verbs import ColumnDigest as ColumnDigest
    from ._verbs import ColumnInfo as ColumnInfo
    from ._verbs import ColumnPlan as ColumnPlan
    from ._verbs import Comparison as Comparison
    from ._verbs import Digests as Digests
    from ._verbs import Finding as Finding
    from ._verbs import Findings as Findings
    from ._verbs import Followed as Followed
    from ._verbs import Info as Info
    from ._verbs import Packed as Packed
    from ._verbs import Plan as Plan
    from ._verbs import Summary as Summary
    from ._verbs import TableDigest as TableDigest
    from ._verbs import TableInfo as TableInfo
    from ._verbs import TablePlan as TablePlan
    from ._verbs import digest as digest
    from ._verbs import finalize as finalize
    from ._verbs import follow as follow
    from ._verbs import info as info
    from ._verbs import lint as lint
    from ._verbs import pack as pack
    from ._verbs import plan as plan
    from ._verbs import to_hdf5 as to_hdf5
    from ._verbs import to_ms as to_ms
    from ._verbs import unpack as unpack
    from ._verbs import verify as verify

_HOMES = {
    "_column": ("Column",),
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
    "_measures": ("Measure",),
    "_msv4": ("open_processing_set",),
    "_plot": ("Frame", "Picture", "frame", "plot"),
    "_serve": ("Server", "serve"),
    "_sharing": ("Linked", "Manifest", "link", "manifest", "materialize", "refs", "replace"),
    "_table": ("Table", "open_table"),
    "_tools": ("File", "Joined", "Listing", "Repaired", "join", "ls", "repair", "show_versions", "watch"),
    "_verbs": (
        "ColumnDigest",
        "ColumnInfo",
        "ColumnPlan",
        "Comparison",
        "Digests",
        "Finding",
        "Findings",
        "Followed",
        "Info",
        "Packed",
        "Plan",
        "Summary",
        "TableDigest",
        "TableInfo",
        "TablePlan",
        "digest",
        "finalize",
        "follow",
        "info",
        "lint",
        "pack",
        "plan",
        "to_hdf5",
        "to_ms",
        "unpack",
        "verify",
    ),
}
_MODULES = ("batch", "casacore", "dask", "live", "shard", "virtualizarr", "xarray")

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
