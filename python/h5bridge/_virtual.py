"""References of a manifest as a store of VirtualiZarr.

Chunks that are in a document of references itself, or in a companion that is not kept, are *held*: the store has their
bytes, and variables of which it holds a chunk are loaded.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from obspec_utils.registry import ObjectStoreRegistry
from virtualizarr.codecs import zarr_codec_config_to_v3
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from virtualizarr.manifests.utils import create_v3_array_metadata
from xarray import Dataset, DataTree

from ._errors import UsageError
from ._native import instead
from ._sharing import manifest, refs

_HELD = "memory://h5bridge"
_TEXT = np.dtypes.StringDType()

_References = dict[str, Any]
"""By key of Zarr: the text of metadata, the base64 of a chunk, or address, offset and length of a chunk."""


def store(url: str, registry: Any, table: str | None, **locking: Any) -> Any:
    """The store of a table, or with None of all tables of a source."""
    held = _Held()
    references, left_out = _references(url, registry, table, held, locking)
    for column in left_out:
        if table in (None, column["table"]):
            warnings.warn(f"{column['table']}/{column['column']} is left out: {column['reason']}", stacklevel=3)
    stores = ObjectStoreRegistry({_HELD: held})
    stores.map = {**registry.map, **stores.map}
    nodes: dict[str, dict[str, Any]] = {}
    for key, value in references.items():
        path, _, name = key.rpartition("/")
        nodes.setdefault(path, {})[name] = value
    return _Store(_group(nodes, "", held), stores, held, "")


def _references(
    url: str, registry: Any, table: str | None, held: _Held, locking: dict[str, Any]
) -> tuple[_References, list[dict[str, str]]]:
    """References, and the columns that are left out of them."""
    place = urlsplit(url)
    source = unquote(place.path) if place.scheme in ("", "file") else url
    if place.path.endswith(".json"):
        found, key = registry.resolve(url)
        document = json.loads(bytes(found.get(unquote(key)).bytes()))
        return _below(document["refs"], table, url), document.get("h5bridge", {}).get("left_out", [])
    if not os.path.isdir(source):
        document = refs(source, table=table, **locking)
        return document["refs"], document["h5bridge"]["left_out"]
    with tempfile.TemporaryDirectory(prefix="h5bridge-") as folder:
        out = os.path.join(folder, "my.json")
        made = manifest(source, out, table=table, sync="never", **locking)
        with open(out, "rb") as file:
            references = json.load(file)["refs"]
        if made.companion is not None:
            held.take(references, os.path.join(folder, os.path.basename(made.companion)))
    return references, list(made.left_out)


def _below(references: _References, table: str | None, url: str) -> _References:
    """References of a table, with keys relative to its group."""
    if table is None:
        return references
    if f"{table}/.zgroup" not in references:
        tables = [key.removesuffix("/.zgroup") for key in references if key.endswith("/.zgroup")]
        hint = instead(table, tables) if tables else "; it has one table: table=None"
        raise UsageError(f"{url}: no table {table}{hint}")
    start = f"{table}/"
    return {key.removeprefix(start): value for key, value in references.items() if key.startswith(start)}


class _Held:
    """Bytes that have an address in one store only. It pickles."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.arrays: set[str] = set()
        """Paths of the arrays that have a held chunk."""

    def hold(self, chunk: bytes) -> int:
        """The offset of a chunk that is added."""
        self.bytes += chunk
        return len(self.bytes) - len(chunk)

    def take(self, references: _References, path: str) -> None:
        """Adds a file, and leads the references into it here."""
        with open(path, "rb") as file:
            first = self.hold(file.read())
        for key, value in references.items():
            if isinstance(value, list) and value[0] == path:
                references[key] = [_HELD, first + value[1], value[2]]

    async def get_range_async(self, _: str, *, start: int, end: int) -> bytes:
        """Part of the bytes, as stores of obstore have it."""
        return bytes(self.bytes[start:end])


def _group(nodes: dict[str, dict[str, Any]], path: str, held: _Held) -> Any:
    start = f"{path}/" if path else ""
    below = {key.removeprefix(start): key for key in nodes if key and key.rpartition("/")[0] == path}
    return ManifestGroup(
        {name: _array(nodes[key], key, held) for name, key in below.items() if ".zarray" in nodes[key]},
        {name: _group(nodes, key, held) for name, key in below.items() if ".zgroup" in nodes[key]},
        json.loads(nodes[path].get(".zattrs", "{}")),
    )


def _array(node: dict[str, Any], path: str, held: _Held) -> Any:
    known, attributes = json.loads(node.pop(".zarray")), json.loads(node.pop(".zattrs"))
    shape, chunks = known["shape"], known["chunks"]
    grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))
    if 0 in grid:
        # VirtualiZarr writes no array without chunks
        held.arrays.add(path)
    paths = np.full(grid, "", _TEXT)
    offsets, lengths = np.zeros(grid, np.uint64), np.zeros(grid, np.uint64)
    for name, value in node.items():
        if isinstance(value, str):
            chunk = base64.b64decode(value.removeprefix("base64:"))
            value = [_HELD, held.hold(chunk), len(chunk)]
        if value[0] == _HELD:
            held.arrays.add(path)
        index = tuple(int(number) for number in name.split("."))
        address, offsets[index], lengths[index] = value
        paths[index] = f"file://{address}" if address.startswith("/") else address
    filters = [*(known["filters"] or ()), *filter(None, [known["compressor"]])]
    codecs = [
        {"name": "vlen-utf8"} if codec["id"] == "vlen-utf8" else zarr_codec_config_to_v3(codec) for codec in filters
    ]
    metadata = create_v3_array_metadata(
        tuple(shape),
        _TEXT if known["dtype"] == "|O" else np.dtype(known["dtype"]),
        tuple(chunks),
        fill_value=known["fill_value"],
        codecs=codecs,
        dimension_names=attributes.pop("_ARRAY_DIMENSIONS"),
        attributes=attributes,
    )
    manifest = ChunkManifest.from_arrays(paths=paths, offsets=offsets, lengths=lengths, validate_paths=False)
    return ManifestArray(metadata, manifest)


class _Store(ManifestStore):  # type: ignore[misc]
    """The store of a group, which loads variables of which it holds chunks, and those of indices."""

    def __init__(self, group: Any, registry: Any, held: _Held, path: str) -> None:
        super().__init__(group, registry=registry)
        self._held = held
        self._path = path

    def to_virtual_dataset(
        self, group: str = "", loadable_variables: Iterable[str] | None = None, decode_times: bool | None = None
    ) -> Dataset:
        """The arrays of the group as a dataset, as `ManifestStore` has it."""
        for name in self._group.groups:
            text = f"{name} is not in the dataset but a group of arrays, which open_virtual_datatree has"
            warnings.warn(text, stacklevel=3)
        return self._dataset(loadable_variables, decode_times)

    def to_virtual_datatree(
        self, group: str = "", *, loadable_variables: Iterable[str] | None = None, decode_times: bool | None = None
    ) -> DataTree:
        """The groups as a tree, as `ManifestStore` has it."""
        stores = dict(self._stores())
        return DataTree.from_dict(
            {f"/{path}": found._dataset(loadable_variables, decode_times) for path, found in stores.items()}
        )

    def _stores(self) -> Iterator[tuple[str, _Store]]:
        """Stores of this group and of those below it, by path."""
        yield self._path, self
        for name, group in self._group.groups.items():
            path = f"{self._path}/{name}" if self._path else name
            yield from _Store(group, self._registry, self._held, path)._stores()

    def _dataset(self, loadable: Iterable[str] | None, decode_times: bool | None) -> Dataset:
        arrays = self._group.arrays
        if loadable is None:
            loadable = [name for name, array in arrays.items() if array.metadata.dimension_names == (name,)]
        start = f"{self._path}/" if self._path else ""
        held = [name for name in arrays if start + name in self._held.arrays]
        found: Dataset = super().to_virtual_dataset("", [*loadable, *held], decode_times)
        return found
