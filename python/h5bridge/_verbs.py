"""The verbs of the command line as functions: conversions, containers, comparison, what is in a source."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _native
from ._errors import DifferentError, UsageError
from ._progress import following
from ._table import Table, waiting

if TYPE_CHECKING:
    from xarray import DataTree

Path: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[int, int, str, str], object] | bool | None
"""`progress(done_bytes, total_bytes, table, part)`, called at most ten times a second; or True: a bar, in a notebook or
a terminal. What it raises stops the call."""
Sync: TypeAlias = Literal["behind", "end", "never"]
Hash: TypeAlias = Literal["blake3", "sha256"]
Time: TypeAlias = float | str
"""Seconds, or a time in words: `"90s"`, `"3h50m"`."""


@dataclass(frozen=True)
class Summary:
    """What a conversion did."""

    out: str
    """What was written."""
    rows: int
    """Rows of the main table; 0 where files or arrays were converted."""
    tables: int
    columns: int
    bytes: int
    """Bytes of all elements, uncompressed; strings count 16 each."""
    file_bytes: int
    """Bytes of the file; 0 if a directory was written."""
    seconds: float
    digest: str | None = None
    """The CTFP-2 digest of the main table."""
    warnings: tuple[str, ...] = ()
    damage: tuple[dict[str, Any], ...] = ()
    """What `salvage=True` left out: table, column, rows, reason."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Packed:
    """What `pack` or `unpack` did."""

    out: str
    """What was written."""
    files: int
    bytes: int
    """Bytes of the files."""
    stored_bytes: int
    """Bytes that they take in the container, or outside."""
    seconds: float
    warnings: tuple[str, ...] = ()
    damage: tuple[dict[str, Any], ...] = ()
    """What `salvage=True` left out."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


@dataclass(frozen=True)
class Comparison:
    """What `verify` found; true if everything is equal, or intact."""

    equal: bool
    """Whether both hold the same; of one source, whether it is as it was made."""
    differences: tuple[dict[str, Any], ...]
    """The first difference of each column, keyword set or file, or what is damaged."""
    compared: dict[str, int]
    """How many tables, columns, cells, files or bytes were compared."""
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""

    def __bool__(self) -> bool:
        return self.equal

    def check(self) -> Comparison:
        """Raises `DifferentError` unless everything is equal."""
        if self.equal:
            return self
        count = len(self.differences)
        first = "; ".join(str(value) for value in self.differences[0].values()) if self.differences else "unknown"
        error = DifferentError(f"{count} differences; the first: {first}")
        error.comparison = self
        raise error


@dataclass(frozen=True)
class Finding:
    """A rule that a native file breaks, or something in it that a reader cannot read."""

    rule: str
    breaks_layout: bool
    """Whether it breaks docs/reference/layout.md; if not, it is a note about readers."""
    object: str
    """The path of the group or dataset."""
    attribute: str | None
    """The attribute of the object, if it is about one."""
    found: str
    readers: tuple[str, ...]
    """The programs for which it matters."""
    why: str
    next: str
    """What to do."""


@dataclass(frozen=True)
class Findings:
    """What `lint` found; true if the file follows the layout, whatever its notes."""

    follows_layout: bool
    findings: tuple[Finding, ...]
    """Breaks of the layout first, then notes about readers."""
    checked: dict[str, int]
    """How many groups, datasets and attributes were checked."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""

    def __bool__(self) -> bool:
        return self.follows_layout


@dataclass(frozen=True)
class ColumnDigest:
    """The digest of a column, by CTFP-2 or, with `hash="sha256"`, CTFP-1."""

    type: str
    """The type of the elements, by casacore's name."""
    kind: str
    """`scalar` or `array`."""
    sha256: str | None
    """The digest of either hash, in hexadecimal digits; None if the column cannot be read; `error` says why."""
    keywords_sha256: str
    error: str | None = None


@dataclass(frozen=True)
class TableDigest:
    """The digest of a table, by CTFP-2 or, with `hash="sha256"`, CTFP-1: what it holds, however it is stored."""

    rows: int
    sha256: str | None
    """The digest of either hash, in hexadecimal digits; None if the table cannot be opened; `error` says why."""
    keywords_sha256: str | None
    columns: dict[str, ColumnDigest]
    error: str | None = None


@dataclass(frozen=True)
class Digests:
    """The digests of a source: of its tables, by name (`.` is the main one), or of its files or arrays."""

    tables: dict[str, TableDigest]
    files: dict[str, str]
    """The hash of each file of a container without tables, or of the elements of each array."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""

    @property
    def main(self) -> str | None:
        """The digest of the main table."""
        return self.tables["."].sha256 if "." in self.tables else None


@dataclass(frozen=True)
class ColumnPlan:
    """A column that becomes a dataset."""

    name: str
    dataset: str
    """The name of the dataset or group."""
    type: str
    """The type of the elements, by casacore's name."""
    manager: str
    form: str
    """Shape, chunks and how they are filled, in words."""
    index: str
    """The index of the chunks in HDF5."""
    bytes: int
    """Bytes of all elements, uncompressed."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class TablePlan:
    """A table that becomes a group."""

    name: str
    """`.` for the main table."""
    group: str
    """The path of the group."""
    rows: int
    columns: tuple[ColumnPlan, ...]


@dataclass(frozen=True)
class Plan:
    """What a conversion would do."""

    tables: tuple[TablePlan, ...]
    bytes: int
    """Bytes of all elements, uncompressed."""
    peak_memory: int
    """About how many bytes of memory the conversion will hold."""
    file_bytes: int
    """About how large the file will be."""
    seconds: float
    """About how long it will take."""
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--dry-run --json` prints."""


@dataclass(frozen=True)
class ColumnInfo:
    """A column and how it is stored."""

    name: str
    type: str
    """The type of the elements, by casacore's name."""
    kind: str
    """`scalar` or `array`."""
    shape: tuple[int, ...] | None
    """The shape of all cells, slowest axis first; None if it may differ."""
    manager: str
    manager_name: str
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that is known: hypercubes and tiles, chunks, filters, bytes, engines."""


@dataclass(frozen=True)
class TableInfo:
    """A table and how it is stored."""

    rows: int
    type: str
    subtype: str
    columns: dict[str, ColumnInfo]
    error: str | None = None
    """Why it cannot be opened."""
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that is known: byte order, lock, managers and their parameters."""


@dataclass(frozen=True)
class Info:
    """What is in a source: tables by name (`.` is the main one); or a container's files, or arrays, in `document`."""

    tables: dict[str, TableInfo]
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""

    @property
    def summary(self) -> dict[str, Any] | None:
        """What a MeasurementSet or calibration table observed: `time_range`, `antennas`, `fields`, `spectral_windows`,
        `scans` … (docs/reference/info.md); None for any other source."""
        return self.document.get("summary")


@dataclass(frozen=True)
class Followed:
    """What `follow` did."""

    tables: dict[str, int]
    """Rows of each table of the live file."""
    commits: int
    seconds: float
    warnings: tuple[str, ...] = ()
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that `--json` prints."""


def to_hdf5(
    source: Path,
    out: Path,
    *,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    rows: slice | range | tuple[int, int] | None = None,
    where: str | None = None,
    tables: Iterable[str] | None = None,
    compress: str = "auto",
    average: str | None = None,
    profile: str = "default",
    schema: Literal["native", "msv4"] = "native",
    hdf5: Literal["1.8", "1.10"] = "1.10",
    appendable: bool = False,
    restorable: bool = False,
    checksum: Hash | None = None,
    quicklook: bool = False,
    salvage: bool = False,
    digest: bool | None = None,
    dtype: str | None = None,
    reflink: str = "auto",
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    max_memory: int | str = "256M",
    follow_external: bool = False,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
    publish: Callable[[str], object] | None = None,
) -> Summary:
    """Converts a table and its subtables to a native HDF5 file, which h5py, xarray and netCDF4 open as it is.

    `columns` and `exclude` are names: `DATA` of the main table, `ANTENNA/NAME` of a subtable. `rows` are rows of
    the main table, `where` a condition on its scalar columns: `'FIELD_ID == "3C286" && SCAN_NUMBER in 3..=5'`; both
    count in a view of an open table (`Table.where`), if the source is one.
    `average`, `"time=10s,chan=4"`, averages visibilities. `profile` is `default`, or `cloud` for an object store.
    `schema` `msv4` stores visibilities, flags and weights by time, baseline, frequency and polarization.
    `hdf5` is the oldest HDF5 that reads the file, `1.8` for readers such as pyfive and jsfive.
    `compress` is `auto`, `none`, `shared`, `gzip`, `gzip:1` to `gzip:9`, `zstd`, `lz4` or, for arrays, `keep`; with
    `shared`, `reflink` is `auto`, `always` or `never`. `restorable` keeps what `to_ms(exact=True)` needs, with the
    `checksum` of each file, BLAKE3 by default. `quicklook` adds small versions of the visibilities. `salvage` leaves
    out what is damaged. `digest` None: as the command line decides. `threads` 0: one for each processor.

    The file appears under its name when it is whole. Raises `ExistsError` if there is one and `overwrite` is not set,
    `NoSpaceError`, `FormatError`, `LockedError`; an exception of `progress`, KeyboardInterrupt included, stops the
    conversion, and what it had written is removed.

    `publish` is called with the path of the whole file, to copy it to an object store say. If it raises, the exception
    is passed on, and the file stays.

    >>> to_hdf5("my.ms", "my.h5", columns=["TIME", "UVW", "DATA"]).file_bytes
    """
    source, columns, rows, where = _parts_of(source, columns, rows, where)
    words = _to_hdf5_words(columns, exclude, rows, where, tables, compress, appendable, restorable, salvage, digest)
    words += _option("--checksum", checksum)
    words += _option("--average", average) + _option("--profile", profile) + _option("--hdf5", hdf5)
    words += _option("--schema", schema)
    words += _option("--dtype", dtype) + _option("--reflink", None if reflink == "auto" else reflink)
    words += _flag("--quicklook", quicklook) + _flag("--overwrite", overwrite) + _option("--sync", sync)
    words += _option("--threads", threads) + _option("--max-memory", max_memory)
    words += _flag("--follow-external", follow_external) + _locking(lock, lock_timeout)
    summary = _summary(call("to-hdf5", words, [source, out], progress))
    if publish is not None:
        publish(summary.out)
    return summary


def plan(
    source: Path,
    *,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    rows: slice | range | tuple[int, int] | None = None,
    where: str | None = None,
    tables: Iterable[str] | None = None,
    compress: str = "auto",
    average: str | None = None,
    profile: str = "default",
    schema: Literal["native", "msv4"] = "native",
    hdf5: Literal["1.8", "1.10"] = "1.10",
    appendable: bool = False,
    restorable: bool = False,
    salvage: bool = False,
    threads: int = 0,
    max_memory: int | str = "256M",
    follow_external: bool = False,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
) -> Plan:
    """What `to_hdf5` with these options would do, and how much space, memory and time it would take; writes nothing."""
    source, columns, rows, where = _parts_of(source, columns, rows, where)
    words = _to_hdf5_words(columns, exclude, rows, where, tables, compress, appendable, restorable, salvage, None)
    words += _option("--average", average) + _option("--profile", profile) + _option("--hdf5", hdf5)
    words += _option("--schema", schema)
    words += _option("--threads", threads) + _option("--max-memory", max_memory)
    words += _flag("--follow-external", follow_external) + _locking(lock, lock_timeout)
    document = call("to-hdf5", [*words, "--dry-run"], [source, "plan.h5"], None)
    listed = tuple(
        TablePlan(
            table["name"],
            table["group"],
            table["rows"],
            tuple(
                ColumnPlan(
                    column["name"],
                    column["dataset"],
                    column["dtype"],
                    column["manager"],
                    column["form"],
                    column["index"],
                    column["bytes"],
                    column,
                )
                for column in table["columns"]
            ),
        )
        for table in document["tables"]
    )
    expected = document["expected"]
    warnings = tuple(document.get("warnings", ()))
    return Plan(
        listed,
        document["bytes"],
        document["peak_memory"],
        expected["file_bytes"],
        expected["seconds"],
        warnings,
        document,
    )


def to_ms(
    source: Path | DataTree,
    out: Path,
    *,
    exact: bool = False,
    byte_order: Literal["big", "little"] | None = None,
    plain: bool = False,
    views: Literal["never", "auto", "always"] = "auto",
    parts: Path | None = None,
    salvage: bool = False,
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    follow_external: bool = False,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Summary:
    """Writes a casacore table from a native HDF5 file, or from another table; a MeasurementSet from a tree of MSv4.

    `exact` restores the original directory, every file and every byte, from a file made with `restorable=True`.
    `plain` stores the values of virtual columns, which otherwise compute them again. A native file of a reference
    table or concatenation becomes one again if its tables are in `parts` or, without it, beside the file, and have the
    same values; `views` makes the other case an error ("always"), or copies rows in both ("never"). The directory
    appears under its name when it is whole; errors and interrupts are those of `to_hdf5`.

    A `DataTree` of the schema MSv4, as those of `xarray.open_datatree(…, engine="h5bridge", schema="msv4")`, of
    xradio and of xarray-ms, becomes a MeasurementSet of version 2, whose rows are in the order of time, baseline and
    partition. Some times are in memory at once. Of the options it takes `overwrite` and `progress`. A warning names
    each kind of content that a MeasurementSet has no place for. Raises `UsageError` or `UnsupportedError`, with the
    path of the variable, for what is not MSv4.
    """
    if not isinstance(source, str | os.PathLike):
        others = (exact, byte_order, plain, views != "auto", parts, salvage, threads, follow_external, sync != "behind")
        return _to_ms_of_tree(source, out, any(others), overwrite, progress)
    words = _flag("--exact", exact) + _option("--byte-order", byte_order) + _flag("--plain", plain)
    words += _option("--views", None if views == "auto" else views)
    words += _option("--parts", None if parts is None else os.fspath(parts))
    words += _flag("--salvage", salvage) + _flag("--overwrite", overwrite) + _option("--sync", sync)
    words += _option("--threads", threads) + _flag("--follow-external", follow_external) + _locking(lock, lock_timeout)
    return _summary(call("to-ms", words, [source, out], progress))


def _to_ms_of_tree(tree: DataTree, out: Path, has_others: bool, overwrite: bool, progress: Progress) -> Summary:
    # xarray is imported when there is a tree
    from . import _to_ms

    if has_others:
        raise UsageError("a tree takes only the options overwrite and progress")
    with following(progress, "to-ms") as report:
        found, said = _to_ms.write(tree, os.fspath(out), overwrite, report)
    for sentence in said:
        warnings.warn(sentence, UserWarning, stacklevel=3)
    return Summary(**found, file_bytes=0, warnings=tuple(said))


def pack(
    source: Path,
    out: Path,
    *,
    format: str | None = None,
    single_file: bool = False,
    block_size: int | str | None = None,
    crc: bool = False,
    checksum: Hash | None = None,
    compress: str | None = None,
    salvage: bool = False,
    follow_references: bool = False,
    follow: bool = False,
    until_closed: bool = False,
    idle: float | None = None,
    poll: float | None = None,
    fsync: bool = False,
    overwrite: bool = False,
    sync: Sync = "behind",
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Packed:
    """Puts the files of a table and of its subtables into containers, byte for byte.

    `format` is `multifile` (the default), `multihdf5`, `hdf5`, `vt`, `sion`, `blz`, `bcolz` or `bloscpack`;
    `single_file` puts everything into one file, which records the `checksum` of each, BLAKE3 by default.
    `follow_references` packs also the tables in other places that hold rows, columns or subtables of the source.
    `follow` keeps a single file in step with a table that another program is writing, until Ctrl-C; `until_closed`,
    `idle`, `poll` and `fsync` are those of `follow()`. Errors and interrupts are those of `to_hdf5`.
    """
    words = _option("--format", format) + _flag("--single-file", single_file) + _option("--block-size", block_size)
    words += _flag("--crc", crc) + _option("--checksum", checksum) + _option("--compress", compress)
    words += _flag("--salvage", salvage) + _flag("--follow-references", follow_references)
    words += _flag("--follow", follow) + _flag("--until-closed", until_closed) + _flag("--fsync", fsync)
    words += _option("--idle", None if idle is None else f"{idle}s")
    words += _option("--poll", None if poll is None else f"{poll}s")
    words += _flag("--overwrite", overwrite) + _option("--sync", sync) + _locking(lock, lock_timeout)
    return _packed(call("pack", words, [source, out], progress))


def unpack(
    source: Path,
    out: Path,
    *,
    salvage: bool = False,
    overwrite: bool = False,
    sync: Sync = "behind",
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Packed:
    """Takes the files of a table out of their containers. Errors and interrupts are those of `to_hdf5`."""
    words = _flag("--salvage", salvage) + _flag("--overwrite", overwrite) + _option("--sync", sync)
    return _packed(call("unpack", words + _locking(lock, lock_timeout), [source, out], progress))


def verify(
    left: Path,
    right: Path | None = None,
    *,
    bytes: bool = False,
    where: str | None = None,
    follow_external: bool = False,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Comparison:
    """Compares two sources value by value, however they are stored; or one with the digests and checksums in it.

    `bytes` compares files byte by byte, or checks the checksums of all files of one source. `where` takes rows of the
    left main table, as `to_hdf5` does. Of a manifest alone, the files that it refers to are compared with their
    recorded sizes and times. Differences are a result, not an error: `verify(a, b).check()` raises.

    >>> verify("my.ms", "my.h5").equal
    True
    """
    words = _flag("--bytes", bytes) + _option("--where", where)
    words += _flag("--follow-external", follow_external) + _locking(lock, lock_timeout)
    document = call("verify", words, [left] if right is None else [left, right], progress)
    return Comparison(
        any(document.get(key) for key in ("equal", "intact", "unchanged")),
        tuple(document.get("differences", document.get("damaged", document.get("changed", ())))),
        document.get("compared", document.get("checked", {})),
        tuple(document.get("warnings", ())),
        document,
    )


def lint(file: Path) -> Findings:
    """Compares a native file with its layout, and with what programs that read HDF5 are known to read.

    >>> lint("my.h5").follows_layout
    True
    """
    document = call("lint", [], [file], None)
    findings = (
        Finding(
            found["rule"],
            found["breaks_layout"],
            found["object"],
            found["attribute"],
            found["found"],
            tuple(found["readers"]),
            found["why"],
            found["next"],
        )
        for found in document["findings"]
    )
    return Findings(document["follows_layout"], tuple(findings), document["checked"], document)


def digest(
    source: Path,
    *,
    columns: Iterable[str] | None = None,
    hash: Hash = "blake3",
    follow_external: bool = False,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Digests:
    """The fingerprints of what a source holds, which do not depend on how it is stored.

    `hash` is `blake3` (CTFP-2, which conversions store) or `sha256` (CTFP-1, which older files store).
    """
    words = _repeated("--columns", columns) + _option("--hash", hash)
    words += _flag("--follow-external", follow_external) + _locking(lock, lock_timeout)
    document = call("digest", words, [source], progress)
    tables = {name: _table_digest(table) for name, table in document.get("tables", {}).items()}
    return Digests(tables, document.get("files", {}), document)


def _table_digest(table: dict[str, Any]) -> TableDigest:
    columns = {
        name: ColumnDigest(
            column["dtype"], column["kind"], column.get("sha256"), column["keywords_sha256"], column.get("error")
        )
        for name, column in table.get("columns", {}).items()
    }
    found = table.get("sha256"), table.get("keywords_sha256")
    return TableDigest(table.get("nrow", 0), *found, columns, table.get("error"))


def info(
    source: Path,
    *,
    follow_external: bool = False,
    lock: bool = True,
    lock_timeout: float | None = 60.0,
) -> Info:
    """Tables, columns, data managers, chunks of a source; or the files of a container, or arrays.

    Of a view, the main table has its rows and columns; `document` says how the whole table is stored.

    >>> info("my.ms").tables["."].columns["DATA"].manager
    """
    words = _flag("--follow-external", follow_external) + _locking(lock, lock_timeout)
    document = call("info", words, [source.path if isinstance(source, Table) else source], None)
    tables = {name: _table_info(table) for name, table in document.get("tables", {}).items()}
    if isinstance(source, Table) and source.is_view:
        whole = tables["."]
        tables["."] = replace(whole, rows=source.nrows, columns={name: whole.columns[name] for name in source})
    return Info(tables, document)


def _table_info(table: dict[str, Any]) -> TableInfo:
    columns = {
        column["name"]: ColumnInfo(
            column["name"],
            column["dtype"],
            column["kind"],
            None if column["shape"] is None else tuple(column["shape"]),
            column["manager"],
            column["manager_name"],
            column,
        )
        for column in table.get("columns", ())
    }
    names = table.get("type", ""), table.get("subtype", "")
    return TableInfo(table.get("nrow", 0), *names, columns, table.get("error"), table)


def follow(
    source: Path,
    live: Path,
    *,
    until_closed: bool = False,
    idle: float | None = None,
    poll: float = 0.05,
    fsync: bool = False,
    overwrite: bool = False,
    lock_timeout: float | None = 60.0,
) -> Followed:
    """Keeps a live HDF5 file in step with a table that another program is writing, until Ctrl-C; with `until_closed`
    until no other program has the table open; with `idle` until nothing has changed for so many seconds.

    `poll` is the time between two looks, in seconds; `fsync` waits for the disk at each commit; `overwrite` replaces a
    live file instead of resuming it.
    """
    words = _flag("--until-closed", until_closed) + _option("--idle", None if idle is None else f"{idle}s")
    words += ["--poll", f"{poll}s", *_flag("--fsync", fsync), *_flag("--overwrite", overwrite)]
    document = call("follow", words + _locking(True, lock_timeout), [source, live], None)
    found = document["tables"], document["commits"], document["seconds"]
    return Followed(*found, tuple(document.get("warnings", ())), document)


def finalize(
    live: Path,
    out: Path | None = None,
    *,
    source: Path | None = None,
    restorable: bool = False,
    quicklook: bool = False,
    compress: str | None = None,
    overwrite: bool = False,
    sync: Sync = "behind",
    threads: int = 0,
    max_memory: int | str = "256M",
    lock_timeout: float | None = 60.0,
    progress: Progress = None,
) -> Summary:
    """Makes a file for the archive from a live file that is no longer written to; without `out` it takes its place.

    `source` is the table that was followed: what the live file could not take comes from there. `quicklook` adds small
    versions of the visibilities.
    """
    words = _option("--source", None if source is None else os.fspath(source)) + _flag("--restorable", restorable)
    words += _flag("--quicklook", quicklook) + _option("--compress", compress)
    words += _flag("--overwrite", overwrite) + _option("--sync", sync)
    words += _option("--threads", threads) + _option("--max-memory", max_memory) + _locking(True, lock_timeout)
    return _summary(call("finalize", words, [live] if out is None else [live, out], progress))


_Chosen: TypeAlias = tuple[Path, Iterable[str] | None, slice | range | tuple[int, int] | None, str | None]


def _parts_of(
    source: Path,
    columns: Iterable[str] | None,
    rows: slice | range | tuple[int, int] | None,
    where: str | None,
) -> _Chosen:
    """The path of a view, and what the options say of its columns and rows, those of the call included."""
    if not isinstance(source, Table) or not source.is_view:
        return source, columns, rows, where
    view = source if where is None else source.where(where)
    if rows is not None:
        view = view.rows(slice(*rows) if isinstance(rows, tuple) else slice(rows.start, rows.stop, rows.step))
    chosen = view._chosen()
    if not chosen.is_described:
        raise UsageError(
            f"{view.path}: rows of a file are those of a condition or a range, in their order; read columns of others"
        )
    condition = " && ".join(f"({one})" for one in chosen.conditions) or None
    return view.path, chosen.names if columns is None else columns, chosen.bounds, condition


def _to_hdf5_words(
    columns: Iterable[str] | None,
    exclude: Iterable[str] | None,
    rows: slice | range | tuple[int, int] | None,
    where: str | None,
    tables: Iterable[str] | None,
    compress: str,
    appendable: bool,
    restorable: bool,
    salvage: bool,
    digest: bool | None,
) -> list[str]:
    words = _repeated("--columns", columns) + _repeated("--exclude", exclude) + _repeated("--tables", tables)
    if rows is not None:
        words += ["--rows", _rows(rows)]
    words += _option("--where", where) + _option("--compress", compress)
    words += _flag("--appendable", appendable) + _flag("--restorable", restorable) + _flag("--salvage", salvage)
    return words + _flag("--digest", digest is True) + _flag("--no-digest", digest is False)


def _rows(rows: slice | range | tuple[int, int]) -> str:
    if isinstance(rows, tuple):
        start, stop = rows
    else:
        start, stop = rows.start or 0, rows.stop
        if rows.step not in (None, 1):
            raise UsageError(f"rows have no step: {rows}")
    if start is None or stop is None or start < 0 or stop < start:
        raise UsageError(
            f"rows need a first and a last row, counted from 0, not {rows}; open_table(…).rows needs neither"
        )
    return f"{start}..{stop}"


def _repeated(option: str, values: Iterable[str] | None) -> list[str]:
    if values is None:
        return []
    if isinstance(values, str):
        raise TypeError(f"a list of names is expected, not the string {values!r}")
    return [word for value in values for word in (option, value)]


def _flag(option: str, is_set: bool) -> list[str]:
    return [option] if is_set else []


def _option(option: str, value: object) -> list[str]:
    return [] if value is None else [f"{option}={value}"]


def _time(time: Time | None) -> str | None:
    return time if time is None or isinstance(time, str) else f"{time}s"


def _share(shard: tuple[int, int] | None) -> list[str]:
    return [] if shard is None else [f"--shard={shard[0]}/{shard[1]}"]


def _locking(lock: bool, timeout: float | None) -> list[str]:
    seconds = waiting(lock, timeout)
    return ["--no-lock"] if seconds is None else [f"--lock-timeout={seconds}"]


def call(verb: str, words: list[str], paths: list[Path], progress: Progress) -> dict[str, Any]:
    """The document that a verb prints."""
    parsed: dict[str, Any] = json.loads(_printed(verb, words, paths, progress))
    return parsed


def documents(verb: str, words: list[str], paths: list[Path], progress: Progress) -> list[dict[str, Any]]:
    """The documents that a verb prints, one on a line."""
    return [json.loads(line) for line in _printed(verb, words, paths, progress).splitlines()]


def _printed(verb: str, words: list[str], paths: list[Path], progress: Progress) -> str:
    with following(progress, verb) as report:
        return _native.call([verb, *words, "--", *(os.fspath(path) for path in paths)], report)[1]


def _summary(document: dict[str, Any]) -> Summary:
    return Summary(
        document["out"],
        document.get("rows", 0),
        document.get("tables", 0),
        document.get("columns", 0),
        document.get("bytes", 0),
        document.get("file_bytes", document.get("stored_bytes", 0)),
        document["seconds"],
        document.get("digest"),
        tuple(document.get("warnings", ())),
        tuple(document.get("damage", ())),
        document,
    )


def _packed(document: dict[str, Any]) -> Packed:
    return Packed(
        document["out"],
        document.get("files", document.get("arrays", 0)),
        document.get("bytes", 0),
        document.get("stored_bytes", document.get("file_bytes", 0)),
        document["seconds"],
        tuple(document.get("warnings", ())),
        tuple(document.get("damage", ())),
        document,
    )
