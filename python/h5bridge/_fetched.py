"""Copies of tables that are not on this machine: of file objects, and of what fsspec reads."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from typing import Any, Protocol, TypeAlias

from ._errors import NotFoundError, UsageError
from ._optional import needed

_READ_IN_PLACE = ("http://", "https://", "s3://")


class Readable(Protocol):
    """A file object that reads bytes."""

    def read(self, size: int, /) -> bytes: ...


class Remote(Protocol):
    """An `UPath`, or the result of `fsspec.open`."""

    @property
    def fs(self) -> Any: ...
    @property
    def path(self) -> str: ...


Source: TypeAlias = str | os.PathLike[str] | Readable | Remote


class Fetched(str):
    """The path of a copy, which is removed with the last object that has this path. It pickles as what it is a copy
    of."""

    origin: object

    def __reduce__(self) -> tuple[Any, ...]:
        return local, (self.origin,)


def local(source: Source) -> str:
    """The path or address that the library opens; a `Fetched` one if the source had to be copied."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if "://" not in path or path.startswith(_READ_IN_PLACE):
            return path
        fs, place = needed("fsspec.core", "fsspec").url_to_fs(path)
        return _of_filesystem(fs, place, source)
    if hasattr(source, "read"):
        return _path_of(source) or _of_file(source, source)
    remote: Any = source
    if hasattr(remote, "full_name"):
        with remote as file:
            return _path_of(file) or _of_file(file, source)
    if hasattr(remote, "fs") and hasattr(remote, "path"):
        return _of_filesystem(remote.fs, remote.path, source)
    raise TypeError(f"a table is opened by a path, an address or a file object, not by {source!r}")


def _path_of(file: Any) -> str | None:
    """The path of a file object that is a file of this machine, without compression."""
    if isinstance(file, os.PathLike):
        return str(os.fspath(file))
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO) or not isinstance(raw.name, str):
        return None
    name = os.path.abspath(raw.name)
    return name if os.path.exists(name) and os.path.samestat(os.fstat(raw.fileno()), os.stat(name)) else None


def _of_file(file: Any, origin: object) -> Fetched:
    """A copy of all of a file object."""
    if file.seekable():
        file.seek(0)
    fetched = _place("table", origin)
    with open(fetched, "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
    return fetched


def _of_filesystem(fs: Any, path: str, origin: object) -> str:
    """A copy of a file or of all files of a directory, with the table in it that the path leads to."""
    if isinstance(fs, needed("fsspec.implementations.local", "fsspec").LocalFileSystem):
        return path
    found, inside = path.rstrip("/"), ""
    while found and not fs.exists(found):
        found, _, name = found.rpartition("/")
        inside = f"/{name}{inside}"
    # a wrong name never copies the whole of the directory above
    if not found or inside and fs.isdir(found) and not fs.exists(f"{found}/table.dat"):
        raise NotFoundError(f"{origin}: no such file or table")
    names = fs.find(found) if fs.isdir(found) else [found]
    below = [name.removeprefix(found) for name in names]
    if any(".." in name.split("/") for name in below):
        raise UsageError(f"{origin}: a file in it has .. in its path, which leads out of it")
    fetched = _place(found.rpartition("/")[2] + inside, origin)
    top = fetched.removesuffix(inside)
    targets = [top + name for name in below]
    for folder in {os.path.dirname(target) for target in targets}:
        os.makedirs(folder, exist_ok=True)
    fs.get(names, targets)
    return fetched


def _place(name: str, origin: object) -> Fetched:
    """A path in a new folder."""
    folder = tempfile.mkdtemp(prefix="h5bridge-")
    fetched = Fetched(os.path.join(folder, name))
    fetched.origin = origin
    weakref.finalize(fetched, shutil.rmtree, folder, ignore_errors=True)
    return fetched
