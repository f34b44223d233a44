"""The verbs `ls`, `join`, `repair` and `watch` as functions, and the versions of what is installed."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ._verbs import Path, Progress, Sync, _flag, _locking, _option, call, documents

_PACKAGES = (
    "h5bridge numpy xarray dask distributed matplotlib pyarrow pandas polars duckdb astropy h5py netCDF4 h5netcdf "
    "python-casacore xradio"
).split()


@dataclass(frozen=True)
class File:
    """A file in a container."""

    path: str
    """Its names from the source on: `ANTENNA/table.mf/table.f0`."""
    bytes: int
    stored_bytes: int
    """Bytes that it takes in its container."""


@dataclass(frozen=True)
class Listing:
    """What `ls` found."""

    files: tuple[File, ...]
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints: format, blocks, checksums."""


@dataclass(frozen=True)
class Joined:
    """What `join` did."""

    out: str
    rows: int
    parts: int
    virtual_columns: tuple[str, ...]
    """Columns whose elements stay in the parts."""
    file_bytes: int
    seconds: float
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Repaired:
    """What `repair` did."""

    was_open: bool
    """Whether the file was marked as open by a writer."""
    file_bytes: int
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


def ls(source: Path) -> Listing:
    """The files in a container, in the containers in it, or in a table directory.

    Raises `NotFoundError`, `FormatError`.

    >>> [file.path for file in ls("one.mf").files]
    """
    document = call("ls", [], [source], None)
    return Listing(tuple(_files(document, "")), document)


def _files(document: dict[str, Any], place: str) -> Iterator[File]:
    for file in document.get("files", ()):
        yield File(place + file["name"], file["size"], file["stored_bytes"])
    for nested in document.get("nested", ()):
        yield from _files(nested, f"{place}{nested['name']}/")


def join(
    parts: Iterable[Path],
    out: Path,
    *,
    virtual: bool = False,
    copy_below: int | str = "1M",
    overwrite: bool = False,
    sync: Sync = "behind",
    progress: Progress = None,
) -> Joined:
    """Makes one HDF5 file of native files with ranges of rows of one table, in the order of the rows. Columns of at
    least `copy_below` bytes stay in the parts, as `virtual=True` confirms: HDF5 reads fill values where one is missing.

    Raises `UsageError` if the parts do not fit together, or without `virtual`, and what `to_hdf5` raises.

    >>> join(["part0.h5", "part1.h5"], "joined.h5", virtual=True).rows
    """
    words = _flag("--virtual", virtual) + _option("--copy-below", copy_below)
    words += _flag("--overwrite", overwrite) + _option("--sync", sync)
    document = call("join", words, [*parts, out], progress)
    return Joined(
        document["out"],
        document["rows"],
        document["parts"],
        tuple(str(column) for column in document["virtual_columns"]),
        document["file_bytes"],
        document["seconds"],
        tuple(document.get("warnings", ())),
        document,
    )


def repair(file: Path, *, lock_timeout: float | None = 60.0) -> Repaired:
    """Makes a live file whose writer was killed readable again: rows that were not committed are removed.

    Raises `LockedError` while a writer has it open, `FormatError`.

    >>> repair("live.h5").was_open
    False
    """
    document = call("repair", _locking(True, lock_timeout), [file], None)
    return Repaired(document["was_open"], document["end"], tuple(document.get("warnings", ())), document)


def watch(live: Path, *, interval: float = 1.0, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Looks at a live file every `interval` seconds, `count` times or until the loop ends: rows of each table, rates,
    age of the last commit, flags, as `h5bridge watch --json` prints them. Rules for alerts are those of the command:
    some need a memory of earlier looks.

    Raises `NotFoundError`, `UnsupportedError` for a file that is not live.

    >>> next(watch("live.h5", interval=0.1))["rows_per_second"]
    """
    looked = 0
    while count is None or looked < count:
        # two looks make rates
        lines = documents("watch", ["--count=2", f"--interval={interval}s"], [live], None)
        yield [line for line in lines if line.get("event") == "look"][-1]
        looked += 1


def show_versions() -> None:
    """Prints the versions of this package, of Python, and of packages that it works with, for reports of bugs."""
    print(f"{'python':<15} {platform.python_version()} ({platform.platform()})")
    for package in _PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        print(f"{package:<15} {version}")
