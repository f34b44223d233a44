"""One copy of the data for several readers: thin tables, and manifests for readers of Zarr."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from ._verbs import Path, Progress, Sync, _flag, _locking, _option, call


@dataclass(frozen=True)
class Linked:
    """A table of which the files with large tiles are links into an HDF5 file."""

    table: str
    """The directory of the table."""
    tables: int
    columns: int
    links: int
    """Files that are links."""
    linked_bytes: int
    """Bytes to which the links lead."""
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Manifest:
    """References to the chunks of a table."""

    out: str
    tables: int
    columns: int
    references: int
    """Chunks that the manifest refers to."""
    companion: str | None
    """The HDF5 file of numbers that are not in tiles."""
    left_out: tuple[dict[str, str], ...] = ()
    """Columns that are not in the manifest: table, column and reason of each."""
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


def link(
    source: Path,
    out: Path,
    *,
    writable: bool = False,
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    progress: Progress = None,
) -> Linked:
    """Makes the table `out`, whose large tiles stay in the native file `source`.

    That file was made by `to_hdf5(compress="shared")`. `writable` lets programs write to cells of the table, and by
    that into the HDF5 file. Errors and interrupts are those of `to_hdf5`; `UnsupportedError` if no dataset can be
    linked.

    >>> link("my.h5", "thin.ms").links
    """
    words = _flag("--writable", writable) + _flag("--overwrite", overwrite) + _option("--sync", sync)
    words += _option("--threads", threads)
    return _linked(os.fspath(out), call("link", words, [source, out], progress))


def replace(
    table: Path,
    out: Path,
    *,
    writable: bool = False,
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Linked:
    """Converts `table` to the HDF5 file `out`, compares the two, and makes `table` a thin table of it, in one step.

    `overwrite` replaces `out` if it exists. Errors and interrupts are those of `to_hdf5`; `table` is then as it was.

    >>> replace("my.ms", "my.h5").linked_bytes
    """
    words = ["--replace", *_flag("--writable", writable), *_flag("--overwrite", overwrite), *_option("--sync", sync)]
    words += _option("--threads", threads) + _locking(lock, lock_timeout)
    return _linked(os.fspath(table), call("to-hdf5", words, [table, out], progress))


def materialize(
    table: Path, *, threads: int = 0, lock: bool = True, lock_timeout: float | None = 60.0, progress: Progress = None
) -> int:
    """Copies the tiles of a thin table into files of its own; returns the bytes of its elements.

    Raises `UsageError` if the table is not thin, and `FormatError` if its HDF5 file was moved or rewritten.

    >>> materialize("thin.ms")
    """
    words = _option("--threads", threads) + _locking(lock, lock_timeout)
    return int(call("materialize", words, [table], progress)["bytes"])


def manifest(
    source: Path,
    out: Path,
    *,
    table: str | None = None,
    base: str | None = None,
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Manifest:
    """Writes references to the tiles of a table, or the chunks of a native file, which xarray opens through kerchunk.

    `table` takes one table only (`MAIN`, `ANTENNA`); `base` is the directory or URL in which readers find the files.
    Errors and interrupts are those of `to_hdf5`. `verify(out)` compares the files with their recorded sizes and times.

    >>> manifest("my.ms", "my.json").references
    """
    words = _option("--table", table) + _option("--base", base) + _flag("--overwrite", overwrite)
    words += _option("--sync", sync) + _option("--threads", threads) + _locking(lock, lock_timeout)
    document = call("manifest", words, [source, out], progress)
    return Manifest(
        document["out"],
        document["tables"],
        document["columns"],
        document["references"],
        document["companion"],
        tuple(document["left_out"]),
        tuple(document.get("warnings", ())),
        document,
    )


def refs(
    source: Path,
    *,
    url: str | None = None,
    table: str | None = None,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
) -> dict[str, Any]:
    """References to the chunks of a native file, as kerchunk has them; fsspec takes the document as `fo`.

    `url` is the address at which readers find the file, `table` takes one table only (`MAIN`, `ANTENNA`). Raises
    `UsageError` if the source is not a native file.

    >>> refs("my.h5", url="s3://bucket/my.h5")["version"]
    1
    """
    words = _option("--url", url) + _option("--table", table) + _locking(lock, lock_timeout)
    return call("refs", words, [source], None)


def _linked(table: str, document: dict[str, Any]) -> Linked:
    return Linked(
        table,
        document["tables"],
        document["columns"],
        document["links"],
        document["linked_bytes"],
        tuple(document.get("warnings", ())),
        document,
    )
