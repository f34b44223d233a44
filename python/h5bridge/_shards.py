"""One huge table on the workers of a Dask cluster: the steps of `h5bridge shard`."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Client

from ._errors import Error, UsageError
from ._program import PROGRAM, Document, environment
from ._progress import following
from ._verbs import Path, Progress
from ._windows import END, Settings, Window

_USAGE = 2


@dataclass(frozen=True, slots=True)
class ShardSummary:
    """What `convert_sharded` made."""

    out: str
    items: int
    """Ranges of chunks, or of tiles, that workers wrote."""
    rows: int
    """Rows of the main table."""
    file_bytes: int
    """Size of the file, or of all files of the table."""


def convert_sharded(
    client: Client,
    source: Path,
    out: Path,
    *,
    work_bytes: str | None = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    tables: Sequence[str] = (),
    overwrite: bool = False,
    check: bool = False,
    threads: int = 1,
    retries: int = 2,
    retry_wait: float = 10.0,
    batch_seconds: float = 30.0,
    window: int | None = None,
    progress: Progress = None,
) -> ShardSummary:
    """Converts one table to the file `out`, or an HDF5 file to the table `out`, by all workers, as `h5bridge shard`.

    Plan and commit run here; workers, which need the same paths, write items of about `work_bytes` (`"512M"`; without,
    of a size that suits the table). If `out` has a plan already, from a call that was interrupted or from the command
    line, what it lacks is done; `work_bytes`, `columns`, `exclude` and `tables` are then those of the plan. `check`
    reads everything back before the file is published. A table has all that its HDF5 file has: `columns`, `exclude` and
    `tables` are refused. The other options are those of `convert_many`. Use workers of
    one thread each; each does `threads` items at a time.

    >>> convert_sharded(client, "huge.ms", "huge.h5")
    >>> convert_sharded(client, "huge.h5", "huge-again.ms")
    """
    target = os.path.abspath(os.fspath(out))
    if not os.path.isdir(target + ".shards"):
        words = ["plan", os.path.abspath(os.fspath(source)), target]
        words += ["--work-bytes", work_bytes] if work_bytes else []
        for option, names in (("--columns", columns), ("--exclude", exclude), ("--tables", tables)):
            words += [option, ",".join(names)] if names else []
        _run([*words, *(["--overwrite"] if overwrite else [])])
    items = [item for item in _run(["status", target])["items"] if item["state"] != "done"]
    sizes = {item["id"]: item["bytes"] for item in items}
    settings = Settings(retries, retry_wait, batch_seconds, window)
    work = functools.partial(_work, target=target, threads=threads)
    runner = Window(client, work, list(sizes), str, sizes.__getitem__, settings)
    failures, done = [], 0
    with following(progress, "shard") as report:
        try:
            for document in runner.run():
                if document["state"] != "done":
                    failures.append(document)
                    continue
                done += sizes[document["id"]]
                if report:
                    report(done, sum(sizes.values()), "", f"{len(items)} items")
        except BaseException:
            runner.end(END)
            raise
    if failures:
        first = failures[0]
        said = f"{len(failures)} items are not done; item {first['id']}: {first.get('error') or first['state']}"
        raise Error(f"{said}; a new call tries them again")
    words = [*(["--check"] if check else []), *(["--overwrite"] if overwrite else [])]
    made = _run(["commit", target, *words])
    return ShardSummary(target, made["items"], made["rows"], made["file_bytes"])


def _run(words: Sequence[str], codes: Sequence[int] = (0,)) -> Document:
    """Runs a step; returns its document."""
    line = [*PROGRAM, "--end-with", str(os.getpid()), "shard", *words, "--json"]
    process = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment())
    if process.returncode not in codes:
        kind = UsageError if process.returncode == _USAGE else Error
        raise kind(process.stderr.strip().removeprefix("h5bridge: "))
    document: Document = json.loads(process.stdout)
    return document


def _work(items: list[str], target: str, threads: int) -> list[Document]:
    """Does items, on a worker, by a process that ends when the worker does."""
    words = ["work", target, "--ids", ",".join(items), "--threads", str(threads)]
    document = _run(words, range(9))
    done: list[dict[str, Any]] = document.get("results", [])
    if "error" in document:
        raise RuntimeError(document["error"])
    known = {result["id"] for result in done}
    # another process has done what this one found done
    return [*done, *({"id": item, "state": "done"} for item in items if item not in known and not document["code"])]
