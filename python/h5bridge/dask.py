"""Many tables on the workers of a Dask cluster. Needs `distributed`: `pip install 'h5bridge[distributed]'`.

    from distributed import Client
    from h5bridge.dask import convert_many

    records = convert_many(Client("tcp://scheduler:8786"), "all.ndjson", "ledger")

Manifest, ledger and receipts are those of `h5bridge batch`, which can go on where this ended, and the reverse.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, NamedTuple, TypeAlias

from distributed import Client

from . import batch
from ._errors import Error
from ._program import PROGRAM, Document, environment
from ._progress import following
from ._shards import ShardSummary, convert_sharded
from ._verbs import Path, Progress
from ._windows import END, Settings, Window
from .batch import Trust

__all__ = ["Record", "ShardSummary", "convert_many", "convert_sharded"]

Items: TypeAlias = Path | batch.Items
"""The path of a manifest; or pairs of a source and its target; or dictionaries with `source`, `target`, and where they
differ from `verb` and `options` of the call, these."""

_FINISHED = ("done", "skipped")
_FINAL = ("failed", "killed", "conflict")
_MANY = 10_000
_LOOK = 1.0
"""Seconds between two looks of a worker for the file that stops it."""


@dataclass(frozen=True, slots=True)
class Record:
    """What became of an item."""

    id: str
    state: str
    """`done`, `skipped` (it was done before), `failed`, `killed`, `conflict`, or `retry`: a new call tries again."""
    code: int = 0
    """Exit code of its last attempt."""
    error: str | None = None
    seconds: float = 0.0
    digest: str | None = None
    """The CTFP-1 digest of the main table."""


class _Line(NamedTuple):
    """An item: a line of a manifest."""

    id: str
    bytes: int
    offset: int
    length: int


def convert_many(
    client: Client,
    items: Items,
    ledger: Path,
    *,
    verb: str = "to-hdf5",
    options: Sequence[str] = (),
    retries: int = 2,
    retry_wait: float = 10.0,
    batch_seconds: float = 30.0,
    window: int | None = None,
    jobs_per_worker: int = 1,
    threads: int = 1,
    trust: Trust | None = None,
    checksums: Sequence[str] = (),
    min_free: str = "1G",
    again: bool = False,
    progress: Progress = None,
) -> dict[str, Record]:
    """Does the items of a manifest on the workers, and returns the last record of each by its id.

    `items` is the path of a manifest, or pairs of source and target, for which `verb` and `options` are those of the
    command line. `ledger` is a directory that all workers reach under this path, as they do the sources and targets. A
    new call does only what is missing; `again` also tries what failed for good. `trust`, `retries`, `checksums` and
    `min_free` are those of `h5bridge batch run`.

    Batches of items take about `batch_seconds`, and `window` of them are in flight, by default four for each thread of
    the cluster. A batch whose workers died is divided until the item that kills them is alone: its state is `killed`.
    Use workers of one thread each; each does `jobs_per_worker` items at a time, with `threads` threads.

    Ctrl-C, and what `progress` raises, ends the children on the workers, which remove what they had begun.

    >>> convert_many(client, [("my.ms", "my.h5")], "ledger")
    """
    with _manifest(items, verb, options) as (path, lines):
        states = _states(path, ledger)
        if trust is None:
            trust = "ledger" if len(lines) > _MANY else "receipt"
        skip = (*(_FINISHED if trust == "ledger" else ()), *(() if again else _FINAL))
        todo = [line for line in lines if states.get(line.id, _WAITING).state not in skip]
        stop = os.path.join(os.path.abspath(ledger), f".stop-{uuid.uuid4().hex}")
        words = ["--ledger", os.path.abspath(ledger), "--ignore-ledger"]
        words += ["--records", "--quiet", "--retries", "0"]
        words += ["--jobs", str(jobs_per_worker), "--threads", str(threads), "--min-free", min_free]
        words += ["--trust", "digest" if trust == "digest" else "receipt"]
        words += ["--checksums", ",".join(checksums)] if checksums else []
        settings = Settings(retries, retry_wait, batch_seconds, window)
        with open(path, "rb") as manifest, following(progress, "batch") as report:
            runner = Window(
                client,
                functools.partial(_run_batch, words=words, stop=stop),
                [_Text(line, manifest) for line in todo],
                _Text.identity,
                _Text.size,
                settings,
            )
            count, total = 0, sum(line.bytes for line in todo)
            done, sizes = 0, {line.id: line.bytes for line in todo} if report else {}
            try:
                for document in runner.run():
                    states[document["id"]] = _record(document)
                    if document.pop("driver", False):
                        _append(ledger, document)
                    count += 1
                    if report:
                        done += sizes[document["id"]]
                        report(done, total, "", f"{count}/{len(todo)} items")
            except BaseException:
                # what runs now ends, and what it has begun is removed
                os.makedirs(ledger, exist_ok=True)
                with open(stop, "wb"):
                    pass
                runner.end(END)
                raise
            finally:
                with contextlib.suppress(OSError):
                    os.remove(stop)
        return {line.id: states.get(line.id, _WAITING) for line in lines}


_WAITING = Record("", "waiting")


class _Text:
    """An item on its way to a worker: its line is read when it is sent."""

    __slots__ = ("_file", "line")

    def __init__(self, line: _Line, file: Any) -> None:
        self.line, self._file = line, file

    def identity(self) -> str:
        return self.line.id

    def size(self) -> int:
        return self.line.bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return bytes, (os.pread(self._file.fileno(), self.line.length, self.line.offset),)


def _record(document: Document) -> Record:
    return Record(
        document["id"],
        document["state"],
        document.get("code", 0),
        document.get("error"),
        document.get("seconds", 0.0),
        document.get("digest"),
    )


@contextlib.contextmanager
def _manifest(items: Items, verb: str, options: Sequence[str]) -> Iterator[tuple[str, list[_Line]]]:
    """The path of a manifest, which may be one for the time being, and its different items."""
    with tempfile.TemporaryDirectory(prefix="h5bridge-") as folder:
        if isinstance(items, str | os.PathLike):
            path = os.fspath(items)
        else:
            path, pairs = os.path.join(folder, "manifest.ndjson"), list(items)
            if not pairs:
                yield os.devnull, []
                return
            batch.plan(pairs, path, verb=verb, options=options)
        lines, seen, offset = [], set(), 0
        with open(path, "rb") as manifest:
            for text in manifest:
                if text.strip():
                    item = json.loads(text)
                    if item["id"] not in seen:
                        seen.add(item["id"])
                        lines.append(_Line(item["id"], item.get("bytes", 0), offset, len(text)))
                offset += len(text)
        yield path, lines


def _states(manifest: str, ledger: Path) -> dict[str, Record]:
    """The last records of the items that have one."""
    if manifest == os.devnull:
        return {}
    words = [*PROGRAM, "batch", "status", manifest, "--ledger", os.fspath(ledger), "--records"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        documents = (json.loads(line) for line in process.stdout)
        found = {document["id"]: _record(document) for document in documents if document["state"] != "waiting"}
    if process.returncode:
        raise Error(f"h5bridge batch status ended with status {process.returncode}")
    return found


def _append(ledger: Path, document: Document) -> None:
    """Writes a record of the driver: workers that died could not."""
    host, pid = socket.gethostname(), os.getpid()
    entry = {"attempt": 1, "seconds": 0.0, "bytes": 0, "host": host, "time": time.time()}
    entry |= {"version": version("h5bridge"), **document}
    os.makedirs(ledger, exist_ok=True)
    with open(os.path.join(ledger, f"{host}-{pid}-driver.ndjson"), "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def _run_batch(lines: list[bytes], words: Sequence[str], stop: str) -> list[Document]:
    """Does a batch, on a worker, by a process that ends when the worker does."""
    if os.path.exists(stop):
        return []
    line = [*PROGRAM, "--end-with", str(os.getpid()), "batch", "run", "-", *words]
    text: bytes | None = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
        while True:
            try:
                printed, said = process.communicate(text, timeout=_LOOK)
                break
            except subprocess.TimeoutExpired:
                text = None  # it is being sent
                if os.path.exists(stop):
                    process.terminate()
    documents = [json.loads(record) for record in printed.splitlines()]
    if process.returncode not in (0, 1, 6, 130) or (process.returncode and not documents):
        raise RuntimeError(f"h5bridge batch run: status {process.returncode}: {said.decode(errors='replace')[-500:]}")
    keep = ("id", "state", "code", "error", "seconds", "digest")
    return [{name: document[name] for name in keep if name in document} for document in documents]
