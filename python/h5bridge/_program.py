"""The program of this package as a process, for what starts processes itself or goes on beside Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ._errors import Error, exception

PROGRAM = (sys.executable, "-m", "h5bridge")
"""The words that start the program."""
Document: TypeAlias = dict[str, Any]
"""What the program prints with `--json`."""

# seconds between two calls of `look`
_LOOK = 1.0
_UNREADABLE = 3
_KINDS = {2: "Usage", _UNREADABLE: "Format", 4: "Unsupported", 7: "Locked", 8: "NoSpace", 130: "Interrupted"}


def environment() -> dict[str, str]:
    """The environment of this process, with this package among the paths of Python."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(words: Sequence[str], paths: Sequence[str], look: Callable[[], object] | None = None) -> Document:
    """The document that the program prints. `look` is called once a second; what it raises, and Ctrl-C, ends the
    program, which removes what it has begun. Raises the `Error` of a program that prints no result."""
    line = [*PROGRAM, "--end-with", str(os.getpid()), *words, "--json", "--", *paths]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environment(), process_group=0
    ) as process:
        try:
            while True:
                try:
                    printed, said = process.communicate(timeout=_LOOK)
                    break
                except subprocess.TimeoutExpired:
                    if look is not None:
                        look()
        except BaseException:
            process.terminate()
            process.communicate()
            raise
    document = parsed(printed)
    if document is None or "error" in document:
        raise failure(process.returncode, document, said, paths)
    return document


def parsed(printed: str) -> Document | None:
    """The document in what was printed; None if nothing was, as when words are wrong."""
    try:
        found: Document = json.loads(printed)
    except json.JSONDecodeError:
        return None
    return found


def failure(code: int, document: Document | None, said: str, paths: Sequence[str]) -> Error:
    """The exception for a program that ended with `code`: what is in its document, or what it `said` on stderr."""
    # after an empty line are words about the use of the command
    message = document["error"] if document else said.strip().partition("\n\n")[0]
    message = message.removeprefix("h5bridge: ").removeprefix("error: ")
    missing = next((path for path in paths if not os.path.exists(path)), None) if code == _UNREADABLE else None
    kind = _KINDS.get(code, "Failed") if missing is None else "NotFound"
    return exception(kind, code, message or f"h5bridge ended with status {code}", missing)
