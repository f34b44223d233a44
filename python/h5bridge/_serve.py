"""The pages of `h5bridge serve`, for a block of a program or as long as a notebook runs."""

from __future__ import annotations

import atexit
import html
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from typing import Self

from ._program import PROGRAM, environment, failure, parsed
from ._verbs import Path, _option, _repeated

# seconds after which a server that does not end is killed: it ends what it has begun to answer
_PATIENCE = 10.0


class Server:
    """Pages with plots and arrays in a browser, until `close`, the end of the block, or that of Python.

    >>> with serve("my.ms") as pages:
    ...     pages.url
    'http://127.0.0.1:...'
    """

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url: str = url
        """The address, with the token: who has it may read what is served."""
        atexit.register(self.close)

    @property
    def closed(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Ends the server."""
        atexit.unregister(self.close)
        _stop(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<h5bridge.Server {'closed' if self.closed else self.url}>"

    def _repr_html_(self) -> str:
        if self.closed:
            return f"<code>{html.escape(repr(self))}</code>"
        # no frame: the pages forbid it (frame-ancestors), so that other sites cannot lay anything over them
        url = html.escape(self.url)
        return f'<a href="{url}" target="_blank" rel="noopener">{html.escape(self.url.partition("?")[0])}</a>'


def serve(
    source: Path,
    *sources: Path,
    port: int = 0,
    allow_host: Iterable[str] = (),
    allow_origin: Iterable[str] = (),
    base_path: str = "",
    max_response: int | str = "256M",
    max_memory: int | str = "256M",
    alerts: Path | None = None,
    threads: int | None = None,
) -> Server:
    """Shows HDF5 files, live or not, tables, and directories of them in a browser of this machine, as `h5bridge serve`
    does: at 127.0.0.1, with a token. Returns when the server answers.

    `port` 0 takes a free one. `allow_host`, `allow_origin` and `base_path` are for proxies such as Jupyter's, `alerts`
    is a file of rules; docs/reference/serve.md has them. `threads` None: one for each processor.

    Raises `NotFoundError` for a source that does not exist, `LockedError` if another program has the port.

    >>> pages = serve("my.h5", "my.ms")
    >>> pages.close()
    """
    words = _option("--port", port) + _repeated("--allow-host", allow_host) + _repeated("--allow-origin", allow_origin)
    words += _option("--base-path", base_path or None) + _option("--threads", threads)
    words += _option("--max-response", max_response) + _option("--max-memory", max_memory)
    words += _option("--alerts", None if alerts is None else os.fspath(alerts))
    paths = [os.fspath(path) for path in (source, *sources)]
    return Server(*_started(words, paths, [*paths, *([os.fspath(alerts)] if alerts is not None else [])]))


def _started(words: list[str], sources: list[str], files: list[str]) -> tuple[subprocess.Popen[str], str]:
    """The process of a server, and its address. `files` are those that have to exist."""
    line = [*PROGRAM, "serve", "--json", *words]
    if threading.current_thread() is threading.main_thread():
        # also when this process is killed; the system takes the end of another thread for that of the process
        line += ["--end-with", str(os.getpid())]
    # in a group of its own: Ctrl-C and a notebook's interrupt are not for the server
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*line, "--", *sources],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=environment(),
            process_group=0,
        )
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            found = parsed(first)
            if found is not None and "url" in found:
                return process, str(found["url"])
            printed = first + process.stdout.read()
            process.wait()
        except BaseException:
            _stop(process)
            raise
        process.stdout.close()
        said.seek(0)
        raise failure(process.returncode, parsed(printed), said.read(), files)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()
