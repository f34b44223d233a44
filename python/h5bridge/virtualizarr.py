"""A parser for VirtualiZarr: tables and native HDF5 files as virtual datasets. Needs `virtualizarr`:
`pip install 'h5bridge[virtualizarr]'`.

    import virtualizarr
    from h5bridge.virtualizarr import Parser
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    dataset = virtualizarr.open_virtual_dataset("my.ms", registry=registry, parser=Parser("MAIN"))
    tree = virtualizarr.open_virtual_datatree("my.ms", registry=registry, parser=Parser(table=None))

Groups, names, axes and attributes are those of a manifest (docs/howto/share.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._optional import needed

if TYPE_CHECKING:
    from obspec_utils.registry import ObjectStoreRegistry
    from virtualizarr.manifests import ManifestStore

__all__ = ["Parser"]


@dataclass(frozen=True)
class Parser:
    """Makes the references of a table, for `open_virtual_dataset`, `open_virtual_mfdataset` and, with `table=None`,
    `open_virtual_datatree` of VirtualiZarr.

    The URL is that of a table directory on a local disk; of a native HDF5 file, also `https://…` or `s3://…`; or of a
    manifest, a name with `.json` at its end. Chunks in tiles of the table, in the file, or in the manifest's companion
    are virtual. Bytes that have no place in these are loaded, as `loadable_variables` are: strings (bytes that are not
    UTF-8 are U+FFFD), and, of a table directory without a manifest, Bools and numbers that are not in tiles, which the
    store holds in memory, compressed.

    >>> Parser("ANTENNA")
    Parser(table='ANTENNA', lock=True, lock_timeout=60.0)
    """

    table: str | None = "MAIN"
    """`MAIN`, or a subtable: `ANTENNA`. None for all tables, each in a group; and for a manifest of one table."""
    lock: bool = True
    """Whether a table is locked while it is parsed, as `open_table` locks it."""
    lock_timeout: float | None = 60.0
    """Seconds to wait for a writer; None for ever."""

    def __call__(self, url: str, registry: ObjectStoreRegistry) -> ManifestStore:
        """The store of the table at the URL; `registry` has the stores that its chunks are read from.

        Warns of each column that is left out, and, where one dataset is opened, of each that has several shapes: it is
        a group of several arrays, in the tree only. Raises `UsageError` if the table does not exist,
        `UnsupportedError` for a container, and `ImportError` without virtualizarr.
        """
        needed("virtualizarr", "virtualizarr")
        from ._virtual import store

        return store(url, registry, self.table, lock=self.lock, lock_timeout=self.lock_timeout)
