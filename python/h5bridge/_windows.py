"""Many items on the workers of a Dask cluster: a window of batches, whose sizes follow the seconds of those before."""

from __future__ import annotations

import contextlib
import heapq
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from distributed import Client, Future, wait

from ._program import Document

T = TypeVar("T")

Work: TypeAlias = Callable[[list[T]], list[Document]]
"""Does a batch on a worker; returns what became of each item, in any order: `id`, `state`, the rest of a record."""

END = 20.0
"""Seconds that workers have to end what they do when the driver is interrupted."""
MOST_ITEMS = 4096
"""Items of a batch: more would hold the result of the first one back."""
FIRST_BYTES = 2 << 30
FIRST_ITEMS = 32
"""Size of a batch before any time was measured."""
COUNT_SECONDS = 5.0
"""Seconds between two counts of the threads of the cluster."""
MOST_FAILURES = 5
"""Batches that may fail one after the other, other than by the death of their workers."""
PARTS = 16
"""Number of parts of a batch whose workers died."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a window is run."""

    retries: int = 2
    """Repetitions of an item whose state is `retry`."""
    pause: float = 10.0
    """Seconds before the first repetition; later ones are six times as long."""
    batch_seconds: float = 30.0
    window: int | None = None
    """Batches in flight; by default four for each thread of the cluster."""


class Costs:
    """The expected seconds of an item: half by number, half by bytes, so that the sum is right for both."""

    def __init__(self, batch_seconds: float) -> None:
        self._first = batch_seconds
        self._seconds = self._bytes = 0.0
        self._items = 0

    def add(self, items: int, size: float, seconds: float) -> None:
        self._items += items
        self._bytes += size
        self._seconds += seconds

    def of(self, size: float, items: int = 1) -> float:
        if not self._items:
            return max(size / FIRST_BYTES, items / FIRST_ITEMS) * self._first
        by_number = self._seconds / self._items * items
        by_bytes = self._seconds / self._bytes * size if self._bytes else by_number
        return (by_number + by_bytes) / 2


class Window(Generic[T]):
    """Runs `work` on batches of `items`; `identity` and `size` give the id and the bytes of an item."""

    def __init__(
        self,
        client: Client,
        work: Work[T],
        items: Sequence[T],
        identity: Callable[[T], str],
        size: Callable[[T], int],
        settings: Settings,
    ) -> None:
        self._client, self._work, self._settings = client, work, settings
        self._identity, self._size = identity, size
        self._fresh = deque(items)
        self._bytes_left = float(sum(map(size, items)))
        self._again: list[tuple[float, int, list[T]]] = []  # a heap of batches, by the time at which they may start
        self._suspects: deque[T] = deque()  # items whose workers died, perhaps by another item
        self._alone = ""  # key of the batch that runs while no other does
        self._number = 0
        self._tries: dict[str, int] = {}
        self._running: dict[str, tuple[Future[Any], list[T]]] = {}
        self._ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._costs = Costs(settings.batch_seconds)
        self._threads = 1
        self._failures = 0
        self._counted = -COUNT_SECONDS

    def run(self) -> Iterator[Document]:
        """The last document of each item, as they come."""
        while self._fresh or self._again or self._running or self._suspects:
            self._fill()
            try:
                future = self._ended.get(timeout=0.2)
            except queue.Empty:
                if self._client.status in ("closed", "closing"):
                    raise ConnectionError(
                        "the connection to the scheduler is lost; a new run does what the ledger lacks"
                    ) from None
                continue
            yield from self._finish(future)

    def end(self, seconds: float) -> None:
        """Waits for the batches in flight, but not longer than this, and cancels the rest."""
        futures = [future for future, _ in self._running.values()]
        with contextlib.suppress(Exception):
            wait(futures, timeout=seconds)
        with contextlib.suppress(Exception):
            self._client.cancel(futures)

    def _fill(self) -> None:
        now = time.monotonic()
        if now >= self._counted + COUNT_SECONDS:
            # workers come and go
            self._counted, self._threads = now, max(1, sum(self._client.nthreads().values()))
        window = self._settings.window or 4 * self._threads
        while self._again and self._again[0][0] <= now and len(self._running) < window:
            self._submit(heapq.heappop(self._again)[2])
        while self._fresh and len(self._running) < window:
            self._submit(self._next())
        if self._suspects and not (self._again or self._running):
            self._alone = self._submit([self._suspects.popleft()])

    def _next(self) -> list[T]:
        """A batch of fresh items. At the end batches become smaller, so that workers end together."""
        left = self._costs.of(self._bytes_left, len(self._fresh))
        most = min(self._settings.batch_seconds, left / (2 * self._threads))
        batch: list[T] = []
        cost = 0.0
        while self._fresh and len(batch) < MOST_ITEMS:
            size = self._size(self._fresh[0])
            cost += self._costs.of(size)
            if batch and cost > most:
                break
            batch.append(self._fresh.popleft())
            self._bytes_left -= size
        return batch

    def _submit(self, batch: list[T]) -> str:
        key = f"h5bridge-{uuid.uuid4().hex}"
        future = self._client.submit(self._work, batch, key=key, pure=False, retries=0)
        self._running[key] = (future, batch)
        future.add_done_callback(self._ended.put)
        return key

    def _repeat(self, batch: list[T], pause: float) -> None:
        self._number += 1
        heapq.heappush(self._again, (time.monotonic() + pause, self._number, batch))

    def _finish(self, future: Future[Any]) -> Iterator[Document]:
        _, batch = self._running.pop(future.key)
        documents, error = self._result(future)
        if documents is not None:
            self._failures = 0
            seconds = sum(float(document.get("seconds", 0.0)) for document in documents)
            self._costs.add(len(batch), sum(map(self._size, batch)), seconds)
            found = {document["id"]: document for document in documents}
            for item in batch:
                yield from self._item(item, found.get(self._identity(item), {}))
            return
        killed = type(error).__name__ == "KilledWorker"
        self._failures += not killed
        if error is not None and self._failures > MOST_FAILURES:
            # it is not the items
            raise error
        if len(batch) > 1:
            # one of them may be to blame
            step = -(-len(batch) // PARTS)
            for start in range(0, len(batch), step):
                self._repeat(batch[start : start + step], 0.0)
            return
        if killed and future.key != self._alone:
            # another item may have killed the workers: this one has to do it when nothing else runs
            self._suspects.append(batch[0])
            return
        # its workers died, or the work itself failed
        message = repr(error)[:300]
        state = "killed" if killed else "retry"
        code = 137 if killed else 1
        yield from self._item(batch[0], {"state": state, "code": code, "error": message, "driver": True})

    def _result(self, future: Future[Any]) -> tuple[list[Document] | None, BaseException | None]:
        """The documents of a batch, or what it failed with. A result that is lost with its worker is computed again."""
        try:
            return future.result(), None
        except Exception as error:
            return None, error

    def _item(self, item: T, document: Document) -> Iterator[Document]:
        identity = self._identity(item)
        tries = self._tries.get(identity, 0)
        document = {"id": identity, "state": "retry", "error": "the worker has not reported it", **document}
        if document["state"] == "retry" and tries < self._settings.retries:
            self._tries[identity] = tries + 1
            self._repeat([item], self._settings.pause * (6 if tries else 1))
        else:
            yield document
