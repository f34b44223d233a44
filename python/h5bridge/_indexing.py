"""What numpy's indices ask of a column: the rows and the part of each cell that are read, and what is left to numpy."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = range | npt.NDArray[np.uint64]
"""Numbers of rows: a range with step 1, or any."""

Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""A part of each cell: where it begins on each axis, and how far it extends."""


def rows_at(rows: Rows, places: Rows) -> Rows:
    """The rows at `places` of `rows`; a range if one follows the other."""
    if isinstance(rows, range):
        if isinstance(places, range):
            return rows[places.start : places.stop]
        return compact(places + np.uint64(rows.start))
    return compact(rows[places.start : places.stop] if isinstance(places, range) else rows[places.astype(np.intp)])


def compact(rows: npt.NDArray[np.uint64]) -> Rows:
    """A range instead of rows that follow each other."""
    if not len(rows):
        return range(0)
    first = int(rows[0])
    if int(rows[-1]) - first == len(rows) - 1 and bool((np.diff(rows) == 1).all()):
        return range(first, first + len(rows))
    return rows


def runs(rows: Rows) -> Iterator[range]:
    """Rows as ranges, in their order."""
    if isinstance(rows, range):
        yield rows
    elif len(rows):
        numbers = rows.astype(np.int64)
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
            yield range(int(run[0]), int(run[-1]) + 1)


@dataclass
class Wanted:
    """A box of cells that holds what is wanted, and the index that takes it out of the box."""

    rows: Rows
    """The rows of the box, in its order."""
    start: tuple[int, ...]
    """Where the part of each cell begins."""
    extent: tuple[int, ...]
    """How far the part of each cell extends."""
    rest: tuple[Any, ...]
    """What numpy does with the box."""
    has_whole_cells: bool
    """Whether the part of each cell is all of it."""

    @property
    def region(self) -> Box | None:
        """The part of each cell; None for all of it."""
        return None if self.has_whole_cells else (self.start, self.extent)

    @property
    def is_whole(self) -> bool:
        """Whether the box is the result."""
        return all(isinstance(part, slice) and part == slice(None) for part in self.rest)


def split(key: Any, axes: int) -> tuple[Any, ...]:
    """An index for each of `axes` axes, without `...`."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part is None for part in parts):
        raise IndexError("columns have no new axes: read an array, and index that: column[:][:, None]")
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    taken = sum(_axes_of(part) for part in parts if part is not Ellipsis)
    if taken > axes:
        raise IndexError(f"too many indices: the column has {axes} axes, but {taken} were indexed")
    place = dots[0] if dots else len(parts)
    return (*parts[:place], *[slice(None)] * (axes - taken), *parts[place + len(dots) :])


def _axes_of(part: Any) -> int:
    mask = _mask(part)
    return 1 if mask is None else mask.ndim


def _mask(part: Any) -> npt.NDArray[np.bool_] | None:
    if isinstance(part, (bool, np.bool_)):
        raise IndexError("a single bool is no index of a column")
    if isinstance(part, (np.ndarray, list)):
        array = np.asarray(part)
        if array.dtype == bool:
            return array
    return None


def wanted(key: Any, shape: tuple[int, ...]) -> Wanted:
    """What `key` takes of an array of `shape`, of which the first axis is the row."""
    parts = split(key, len(shape))
    if any(mask is not None and mask.ndim != 1 for mask in map(_mask, parts)):
        raise IndexError("masks of several axes: index the array that is read")
    arrays = sum(isinstance(part, (np.ndarray, list)) for part in parts)
    rows, row_rest = _rows(parts[0], shape[0], arrays > 1)
    start, extent, rest = [], [], [row_rest]
    for axis, part in enumerate(parts[1:], 1):
        first, last, left = _box(part, shape[axis], axis)
        start.append(first)
        extent.append(last - first)
        rest.append(left)
    return Wanted(rows, tuple(start), tuple(extent), tuple(rest), tuple(extent) == shape[1:])


def _rows(part: Any, rows: int, with_others: bool) -> tuple[Rows, Any]:
    if isinstance(part, slice):
        taken = range(*part.indices(rows))
        if taken.step == 1 or not taken:
            return range(taken.start, max(taken.start, taken.stop)), slice(None)
        return np.arange(taken.start, taken.stop, taken.step).astype(np.uint64), slice(None)
    if isinstance(part, (np.ndarray, list)):
        chosen = _positions(part, rows, 0)
        flat = chosen.ravel().astype(np.uint64)
        if chosen.ndim == 1 and not with_others:
            return flat, slice(None)
        return flat, np.arange(flat.size).reshape(chosen.shape)
    row = _position(part, rows, 0)
    return range(row, row + 1), 0


def _box(part: Any, length: int, axis: int) -> tuple[int, int, Any]:
    """The first and last positions on an axis of a cell, and the index within them."""
    if isinstance(part, slice):
        taken = range(*part.indices(length))
        if not taken:
            return 0, 0, slice(None)
        first, last = min(taken[0], taken[-1]), max(taken[0], taken[-1])
        step = taken.step
        left = slice(None) if step == 1 else slice(None, None, step)
        # a step back begins at the end of the box, whose last element is wanted
        return first, last + 1, left
    if isinstance(part, (np.ndarray, list)):
        chosen = _positions(part, length, axis)
        if not chosen.size:
            return 0, 0, chosen
        first = int(chosen.min())
        return first, int(chosen.max()) + 1, chosen - first
    place = _position(part, length, axis)
    return place, place + 1, 0


def _position(part: Any, length: int, axis: int) -> int:
    try:
        place = operator.index(part)
    except TypeError:
        raise IndexError(
            f"columns are indexed by integers, slices, ... and arrays of integers or bools, not by {part!r}"
        ) from None
    if not -length <= place < length:
        raise IndexError(f"index {place} is out of bounds for axis {axis} with size {length}")
    return place % length if length else 0


def _positions(part: Any, length: int, axis: int) -> npt.NDArray[np.intp]:
    chosen = np.asarray(part)
    if chosen.dtype == bool:
        if chosen.shape != (length,):
            raise IndexError(f"a mask of {chosen.size} elements for axis {axis} with size {length}")
        return np.flatnonzero(chosen)
    if not chosen.size:
        return chosen.astype(np.intp)
    if chosen.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    beyond = (chosen < -length) | (chosen >= length)
    if beyond.any():
        raise IndexError(f"index {chosen[beyond].flat[0]} is out of bounds for axis {axis} with size {length}")
    return np.where(chosen < 0, chosen + length, chosen).astype(np.intp)
