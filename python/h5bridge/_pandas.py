"""Tables for pandas, by numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._optional import needed

if TYPE_CHECKING:
    import pandas

    from ._column import Column
    from ._table import Table


def frame(table: Table) -> pandas.DataFrame:
    """The rows and columns of a table."""
    pandas = needed("pandas", "pandas")
    rows = table._rows
    index = pandas.RangeIndex(rows.start, rows.stop) if isinstance(rows, range) else pandas.Index(rows)
    return pandas.DataFrame({name: _values(column) for name, column in table.items()}, index=index)


def _values(column: Column) -> Any:
    if not column.defined().all() or None in column.shape or column.type == "record":
        cells: list[Any] = list(column.cells())
    elif column.is_scalar:
        return column[:]
    else:
        cells = list(column[:])
    # numpy would make one array of arrays of one shape
    found = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        found[row] = cell
    return found
