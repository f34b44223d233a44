"""One huge table by many processes: the steps of `h5bridge shard`, which docs/reference/shards.md explains.

    from h5bridge import shard

    shard.plan("huge.ms", "huge.h5")
    shard.work("huge.h5")                   # on each machine, at the same time
    shard.status("huge.h5").done
    shard.commit("huge.h5")                 # huge.h5 appears

A plan for an HDF5 file makes a table. `h5bridge.dask.convert_sharded` does all steps on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ._verbs import Path, Progress, Sync, Time, _flag, _locking, _option, _repeated, _rows, _share, _time, call

__all__ = [
    "Committed",
    "Item",
    "Planned",
    "Result",
    "Status",
    "Verified",
    "Worked",
    "commit",
    "plan",
    "status",
    "verify",
    "work",
]


@dataclass(frozen=True)
class Planned:
    """What `plan` made."""

    out: str
    """The file or table that will be written; with `split` the manifest for `batch.run`."""
    items: int
    """Ranges of chunks or tiles; with `split` files."""
    rows: int
    """Rows of the main table; with `split` of each file."""
    bytes: int
    """Bytes of all items, uncompressed."""
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Result:
    """What became of an item in `work`."""

    id: str
    state: str
    """`done`; `retry` if the reason of the failure may pass, `failed` if not."""
    error: str | None
    seconds: float


@dataclass(frozen=True)
class Worked:
    """What `work` did."""

    out: str
    items: int
    """Items that this call has written."""
    bytes: int
    """Their bytes, uncompressed."""
    left: int
    """Items of the plan that are not done."""
    results: tuple[Result, ...]
    """Items that this call has written or failed to write."""
    seconds: float
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Item:
    """A range of chunks or tiles."""

    id: str
    name: str
    """Dataset or column, and the range, in words."""
    bytes: int
    """Bytes, uncompressed."""
    state: str
    """`done`, `failed` or `waiting`."""
    attempts: int
    error: str | None
    """The message of the last attempt."""


@dataclass(frozen=True)
class Status:
    """How far a plan has come."""

    out: str
    published: bool
    """Whether `commit` has published the file or table."""
    done: int
    """Items that are written."""
    failed: int
    """Items whose last attempt failed."""
    waiting: int
    """Items without an attempt."""
    items: tuple[Item, ...]
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Committed:
    """What `commit` published."""

    out: str
    items: int
    rows: int
    """Rows of the main table."""
    file_bytes: int
    ranges: str
    """The record of all items, which `verify` reads: move it with the file or table."""
    seconds: float
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Verified:
    """What `verify` found; true if all compared items are as they were written."""

    equal: bool
    items: int
    """Items that were compared."""
    skipped: int
    """Chosen items that are not done."""
    differences: tuple[dict[str, Any], ...]
    """Identifier, name and difference of each item that differs."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""

    def __bool__(self) -> bool:
        return self.equal


def plan(
    source: Path,
    out: Path,
    *,
    work_bytes: int | str | None = None,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    rows: slice | range | tuple[int, int] | None = None,
    tables: Iterable[str] | None = None,
    split: int | str | None = None,
    overwrite: bool = False,
    threads: int = 0,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Planned:
    """Writes all but the large datasets, or hypercubes, and divides these into items of about `work_bytes`.

    The plan is in the directory `OUT.shards`. `columns`, `exclude`, `rows` and `tables` are those of `to_hdf5`, and
    refused for tables. `split` (`"500G"`) plans independent files of that size instead: a manifest for `batch.run`.

    Raises `ExistsError` for a plan or target that exists, and what `to_hdf5` raises.

    >>> plan("my.ms", "big.h5", work_bytes="64K").items
    """
    words = ["plan", *_option("--work-bytes", work_bytes), *_repeated("--columns", columns)]
    words += _repeated("--exclude", exclude) + _repeated("--tables", tables) + _option("--split", split)
    words += ["--rows", _rows(rows)] if rows is not None else []
    words += _flag("--overwrite", overwrite) + _option("--threads", threads) + _locking(lock, lock_timeout)
    document = call("shard", words, [source, out], progress)
    found = document["out"], document["items"], document["rows"], document["bytes"]
    return Planned(*found, tuple(document.get("warnings", ())), document)


def work(
    out: Path,
    *,
    shard: tuple[int, int] | None = None,
    ids: Iterable[str] | None = None,
    stop_after: Time | None = None,
    threads: int = 0,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Worked:
    """Writes the items of the plan for `out` that are not done, `threads` at a time; on many machines at once.

    `shard=(k, n)` takes every n-th item, from k on, `ids` those that are named; without them each call leaves out what
    others are doing. `stop_after` begins no item later than that. Items that fail are a result, not an error: the next
    call tries them again.

    Raises `NotFoundError` without a plan. It can be stopped and repeated at any time.

    >>> work("big.h5").left
    0
    """
    words = ["work", *_chosen(shard, ids, threads), *_option("--stop-after", _time(stop_after))]
    document = call("shard", words + _locking(lock, lock_timeout), [out], progress)
    return Worked(
        document["out"],
        document["items"],
        document["bytes"],
        document["left"],
        tuple(Result(**result) for result in document["results"]),
        document["seconds"],
        tuple(document.get("warnings", ())),
        document,
    )


def status(out: Path) -> Status:
    """How many items of the plan for `out` are done, and which failed.

    >>> status("big.h5").published
    False
    """
    document = call("shard", ["status"], [out], None)
    names = "id", "name", "bytes", "state", "attempts", "error"
    counts = document["counts"]
    return Status(
        document["out"],
        document["published"],
        counts["done"],
        counts["failed"],
        counts["waiting"],
        tuple(Item(**{name: item[name] for name in names}) for item in document["items"]),
        document,
    )


def commit(
    out: Path,
    *,
    check: bool = False,
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    progress: Progress = None,
) -> Committed:
    """Publishes the file or table when all items are done. `check` reads everything back and compares it first.

    Raises `UsageError` if an item is not done, or the source has changed, `FormatError` if bytes are damaged or
    missing, `ExistsError`.

    >>> commit("big.h5").out
    'big.h5'
    """
    words = ["commit", *_flag("--check", check), *_flag("--overwrite", overwrite), *_option("--sync", sync)]
    document = call("shard", words + _option("--threads", threads), [out], progress)
    names = "out", "items", "rows", "file_bytes", "ranges", "seconds"
    return Committed(**{name: document[name] for name in names}, document=document)


def verify(
    out: Path,
    *,
    source: bool = False,
    shard: tuple[int, int] | None = None,
    ids: Iterable[str] | None = None,
    threads: int = 0,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Verified:
    """Reads back what was written and compares it with the recorded hashes, before or after `commit`; with `source`
    also what the source gives now. `shard` and `ids` are those of `work`.

    >>> verify("big.h5", source=True).equal
    True
    """
    words = ["verify", *_flag("--source", source), *_chosen(shard, ids, threads), *_locking(lock, lock_timeout)]
    document = call("shard", words, [out], progress)
    found = document["equal"], document["items"], document["skipped"], tuple(document["differences"])
    return Verified(*found, document)


def _chosen(shard: tuple[int, int] | None, ids: Iterable[str] | None, threads: int) -> list[str]:
    named = [] if ids is None else _option("--ids", ",".join(ids))
    return _share(shard) + named + _option("--threads", threads)
