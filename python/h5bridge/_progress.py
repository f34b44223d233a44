"""Bars that show how far a call has come, in a notebook or a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[int, int, str, str], object]


@contextmanager
def following(progress: Report | bool | None, what: str) -> Iterator[Report | None]:
    """The function that is called, and a bar that is taken away afterwards."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        bar: _Notebook | _Terminal = _Notebook(what) if _in_notebook() else _Terminal(what)
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield progress


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and "IPKernelApp" in getattr(found, "config", {})


def _text(what: str, start: float, done: int, total: int, table: str, part: str) -> tuple[str, float]:
    part_done = min(done / total, 1.0) if total else 0.0
    seconds = time.monotonic() - start
    rate = done / seconds if seconds else 0.0
    left = f", {(total - done) / rate:.0f} s left" if rate and total > done else ""
    place = part if table in ("", ".") else f"{table}/{part}"
    return (
        f"{what} {part_done:4.0%} {done / 1e6:.0f} of {total / 1e6:.0f} MB, {rate / 1e6:.0f} MB/s{left} {place}",
        part_done,
    )


class _Terminal:
    def __init__(self, what: str) -> None:
        self._what, self._start = what, time.monotonic()
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int, table: str, part: str) -> None:
        if self._shown:
            text, _ = _text(self._what, self._start, done, total, table, part)
            print(f"\r\x1b[K{text[:110]}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Notebook:
    def __init__(self, what: str) -> None:
        from IPython.display import HTML, display

        self._what, self._start, self._html = what, time.monotonic(), HTML
        self._display: Any = display(HTML(""), display_id=True)

    def __call__(self, done: int, total: int, table: str, part: str) -> None:
        import html

        text, part_done = _text(self._what, self._start, done, total, table, part)
        bar = f"<progress value='{part_done:.3f}' max='1' style='width:16em'></progress> {html.escape(text)}"
        self._display.update(self._html(bar))

    def close(self) -> None:
        self._display.update(self._html(""))
