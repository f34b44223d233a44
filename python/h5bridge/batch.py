"""Many tables, each the work of a process of its own: the steps of `h5bridge batch`, which docs/reference/batch.md
explains.

    from h5bridge import batch

    batch.plan("archive/**/*.ms", "all.ndjson", to="out/{path}/{stem}.h5", options=["--restorable"])
    batch.run("all.ndjson", "ledger", jobs=4).states
    batch.status("all.ndjson", "ledger").failed

Manifest and ledger are those of the command: each may go on where the other ended.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from . import _program
from ._errors import UsageError
from ._progress import Report, following
from ._verbs import Path, Progress, Time, _flag, _locking, _option, _share, _time, call

__all__ = ["Failure", "Items", "Planned", "Ran", "Status", "Trust", "clean", "plan", "run", "status"]

Items: TypeAlias = Iterable[tuple[Path, Path] | dict[str, Any]]
"""Pairs of a source and its target; or dictionaries with `source`, `target`, and where they differ from those of the
call, `verb` and `options`."""
Trust: TypeAlias = Literal["ledger", "receipt", "digest"]


@dataclass(frozen=True)
class Planned:
    """What `plan` wrote."""

    out: str
    """The manifest."""
    items: int
    bytes: int
    """Size of all sources; 0 with `sizes=False`."""
    repeated: int
    """Sources that were left out because they were named before."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Ran:
    """What `run` did."""

    items: int
    """Items of the share."""
    states: dict[str, int]
    """How many of them are `done`, `skipped` (an earlier run had made the target), `waiting`, `retry`, `failed`,
    `killed`, `conflict`."""
    done_now: int
    """Items that this run has done."""
    with_warnings: int
    """Items that were done with warnings."""
    seconds: float
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Failure:
    """An item that failed, or that the next run tries again."""

    id: str
    state: str
    """`failed`, `killed`, `conflict` or `retry`."""
    source: str
    target: str | None
    code: int
    """Exit code of the last attempt; 128 plus the number of a signal."""
    error: str


@dataclass(frozen=True)
class Status:
    """How far a batch has come."""

    items: int
    bytes: int
    """Size of all sources."""
    finished: int
    """Items that are done or skipped."""
    states: dict[str, int]
    """How many items are in each state, as `Ran` has them."""
    seconds_left: float | None
    """Expected seconds at the rate so far; None if no item is done, or none is left."""
    failed: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


def plan(
    sources: Path | Iterable[Path] | Items,
    out: Path,
    *,
    to: str | None = None,
    verb: str = "to-hdf5",
    options: Sequence[str] = (),
    sizes: bool = True,
) -> Planned:
    """Writes a manifest: the sources, what is done with each, and where the results go.

    `sources` are paths, or patterns of them (`"archive/**/*.ms"`); or pairs of source and target. `to` makes names of
    targets from `{stem}`, `{name}`, `{parent}` and `{path}` of the sources. `verb` and `options` are those of the
    command line. `sizes=False` does not read how large the sources are: shares then have equal numbers of items.

    Raises `ExistsError`, `UsageError` if nothing matches, or two items have one target.

    >>> plan("*.ms", "all.ndjson", to="out/{stem}.h5").items
    1
    """
    words = ["plan", *_option("--out", os.fspath(out)), *_option("--to", to), *_option("--verb", verb)]
    words += _flag("--no-sizes", not sizes)
    listed = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    patterns = [os.fspath(source) for source in listed if isinstance(source, str | os.PathLike)]
    pairs = [item for item in listed if not isinstance(item, str | os.PathLike)]
    if not listed:
        raise UsageError("sources are paths, patterns, or pairs of a source and a target; the list is empty")
    if not pairs:
        # a word that begins with a hyphen would be an option
        words += [f"./{pattern}" if pattern.startswith("-") else pattern for pattern in patterns]
        document = call("batch", words, list(options), None)
    elif patterns:
        raise UsageError("sources are paths, or pairs of a source and a target, not both")
    else:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".ndjson") as file:
            for item in pairs:
                pair = item if isinstance(item, dict) else dict(zip(("source", "target"), item, strict=True))
                file.write(json.dumps(pair, ensure_ascii=False, default=os.fspath) + "\n")
            file.flush()
            document = call("batch", [*words, f"--from={file.name}"], list(options), None)
    return Planned(document["out"], document["items"], document["bytes"], document["repeated"], document)


def run(
    manifest: Path,
    ledger: Path,
    *,
    shard: tuple[int, int] | None = None,
    jobs: int = 0,
    threads: int = 0,
    stop_after: Time | None = None,
    limit_read: int | str | None = None,
    min_free: int | str = "1G",
    retries: int = 2,
    retry_wait: Time = 10.0,
    again: bool = False,
    trust: Trust | None = None,
    ignore_ledger: bool = False,
    checksums: Iterable[str] = (),
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Ran:
    """Does the items of a manifest that are not done, `jobs` at a time, each in a process of `threads` threads.

    `ledger` is the directory in which each process records what it has done. `shard=(k, n)` does one of n shares,
    counted from 0. `stop_after` begins no item later than that; `limit_read` is in bytes per second. An item that fails
    for a reason that may pass is repeated `retries` times, first after `retry_wait`; `again` also tries what failed for
    good. `trust`, `ignore_ledger` and `checksums` (`["md5", "crc32c"]`) are those of docs/reference/batch.md.

    Items that fail are a result, not an error. Ctrl-C, and what `progress` raises, ends the processes, which remove
    what they have begun. Raises `NotFoundError`, `FormatError` for the manifest.

    >>> run("all.ndjson", "ledger", min_free="1M").states["done"]
    1
    """
    path = os.fspath(manifest)
    words = ["batch", "run", *_option("--ledger", os.fspath(ledger)), *_share(shard), *_option("--jobs", jobs)]
    words += _option("--threads", threads) + _option("--stop-after", _time(stop_after))
    words += _option("--limit-read", limit_read) + _option("--min-free", min_free) + _option("--retries", retries)
    words += _option("--retry-wait", _time(retry_wait)) + _flag("--again", again) + _option("--trust", trust)
    words += _flag("--ignore-ledger", ignore_ledger) + _option("--checksums", ",".join(checksums) or None)
    with following(progress, "batch") as report:
        look = None if report is None else _look(path, ledger, report)
        document = _program.run(words + _locking(lock, lock_timeout), [path], look)
        if look is not None:
            look()
    return Ran(
        document["items"],
        document["states"],
        document["done_now"]["items"],
        document["with_warnings"],
        document["seconds"],
        tuple(document.get("warnings", ())),
        document,
    )


def _look(manifest: str, ledger: Path, report: Report) -> Callable[[], object]:
    """Reports how far the batch, of which other processes may do parts, has come."""

    def look() -> None:
        found = status(manifest, ledger)
        done = sum(found.document["states"][state]["bytes"] for state in ("done", "skipped"))
        report(done, found.bytes, "", f"{found.finished}/{found.items} items")

    return look


def status(manifest: Path, ledger: Path) -> Status:
    """How far a batch has come, and which items failed.

    >>> status("all.ndjson", "ledger").finished
    1
    """
    words = ["status", "--failed", *_option("--ledger", os.fspath(ledger))]
    document = call("batch", words, [manifest], None)
    names = "id", "state", "source", "target", "code", "error"
    return Status(
        document["items"],
        document["bytes"],
        document["finished"],
        {state: count["items"] for state, count in document["states"].items()},
        document["seconds_left"],
        tuple(Failure(**{name: failure[name] for name in names}) for failure in document["failed"]),
        tuple(document.get("warnings", ())),
        document,
    )


def clean(manifest: Path, *, older_than: Time = "1h") -> tuple[str, ...]:
    """Removes the unfinished outputs that killed processes have left beside the targets and that have not changed for
    a time; returns their paths.

    >>> clean("all.ndjson")
    ()
    """
    document = call("batch", ["clean", *_option("--older-than", _time(older_than))], [manifest], None)
    return tuple(document["removed"])
