"""The exceptions of this package: what kind of failure, and the exit code that the command line has for it."""

from __future__ import annotations

import builtins
import errno
import re


class Error(Exception):
    """What went wrong: the message says where, what was found and what was expected."""

    kind: str = "Failed"
    """What the caller can do about it: `Format`, `NotFound`, `Exists`, `Locked` and so on."""
    code: int = 1
    """The exit code of the command line for it."""

    def __str__(self) -> str:
        # that of OSError would print number and name of the file, which the message has
        return str(self.args[0]) if self.args else ""


class FormatError(Error, ValueError):
    """The bytes contradict the format: the file is damaged, or is something else."""


class UnsupportedError(Error, NotImplementedError):
    """Legal, but not implemented here."""


class LimitError(Error, MemoryError):
    """More memory, nesting or indirection than the limits allow: the source is damaged, or made to exhaust readers."""


class UsageError(Error, ValueError):
    """The call is wrong."""


class NotFoundError(Error, FileNotFoundError):
    """What was asked for is not there."""


class ExistsError(Error, FileExistsError):
    """The target exists already."""


class LockedError(Error, BlockingIOError):
    """Another program keeps the table locked."""


class NoSpaceError(Error, OSError):
    """The disk is full."""


class ReadError(Error, OSError):
    """The operating system refused or failed."""


class InterruptedError(Error, builtins.InterruptedError):
    """The call was stopped; what it had begun to write is removed."""


class DifferentError(Error):
    """Two sources differ; `comparison` says where."""

    kind = "Different"
    code = 5
    comparison: object = None


_CLASSES: dict[str, tuple[type[Error], int | None]] = {
    "Format": (FormatError, None),
    "Unsupported": (UnsupportedError, None),
    "Limit": (LimitError, None),
    "Usage": (UsageError, None),
    "NotFound": (NotFoundError, errno.ENOENT),
    "Exists": (ExistsError, errno.EEXIST),
    "Locked": (LockedError, errno.EAGAIN),
    "NoSpace": (NoSpaceError, errno.ENOSPC),
    "Io": (ReadError, errno.EIO),
    "Interrupted": (InterruptedError, errno.EINTR),
}


_COMMAND = re.compile(r"`h5bridge ([a-z][a-z0-9-]*)((?: [^`]*)?)`")
_WORDS = re.compile(
    r"(?<![\w/.-])--([a-z][a-z0-9-]*)(?:[ =](shared|none|keep|gzip|cloud|msv4|always|1\.8|0(?![/.]))\b)?"
)
_NAMED = re.compile(r"(?<![\w/.-])--(columns|exclude|tables) ([A-Z][\w/]*)")
_VALUED = frozenset(
    "columns exclude tables rows where average compress profile hdf5 schema dtype reflink threads max-memory checksum "
    "block-size lock-timeout format url table sync hash source idle poll copy-below interval count alert "
    "byte-order port allow-host allow-origin base-path alerts max-response split work-bytes shard ids to verb jobs "
    "min-free retries retry-wait stop-after limit-read trust checksums older-than".split()
)
# modules of functions
_STEPS = ("batch", "shard")


def spoken(message: str) -> str:
    """A message of the command line with the arguments and functions of this package for its options and verbs:
    `overwrite=True` for `--overwrite`."""
    return _WORDS.sub(_argument, _NAMED.sub(r'\1=["\2"]', _COMMAND.sub(_function, message)))


def _argument(found: re.Match[str]) -> str:
    option, value = found[1], found[2]
    name = option.replace("-", "_")
    if option.startswith("no-"):
        return f"{name[3:]}=False"
    if value is not None:
        return f"{name}={value}" if value.isdigit() else f'{name}="{value}"'
    return f"{name}=…" if option in _VALUED else f"{name}=True"


def _function(found: re.Match[str]) -> str:
    verb, text = found[1].replace("-", "_"), found[2].replace(" --json", "")
    if verb in _STEPS:
        step, _, text = text.strip().partition(" ")
        verb += f".{step}"
    words = _WORDS.sub(_argument, text).split()
    arguments = [word for word in words if "=" in word]
    paths = [f'"{word}"' for word in words if "=" not in word]
    return f"`h5bridge.{verb}({', '.join([*paths, *arguments])})`"


def exception(kind: str, code: int, message: str, path: str | None) -> Error:
    """The exception for a failure of the library; called by the extension."""
    found, number = _CLASSES.get(kind, (Error, None))
    error = found(spoken(message))
    error.kind = kind
    error.code = code
    if isinstance(error, OSError):
        # with one argument `str` is the message; what programs look at is set beside it
        error.errno = number
        error.filename = path
    return error
