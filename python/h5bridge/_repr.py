"""How tables and columns look in a terminal and in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._column import Column
    from ._table import Table


def _axes(column: Column) -> str:
    return "(" + ", ".join(["row", *("?" if n is None else str(n) for n in _quick_cell_shape(column))]) + ")"


def _quick_cell_shape(column: Column) -> tuple[int | None, ...]:
    """As `cell_shape`, but cells are not looked for: that may take long."""
    if column._shape is not None or column._known["shape"] is not None or column.is_scalar:
        return column.cell_shape
    if not column._table.closed:
        cubes = column._table._open.source.hypercubes(column._table._number, column._number)
        if len(cubes) == 1:
            return tuple(cubes[0][0][1:])
    return (None,) * max(int(column._known["ndim"]), 1)


def _element(column: Column) -> str:
    return column.type if column.type in ("string", "record") else str(column.dtype)


def _lines(table: Table) -> list[tuple[str, str, str, str, str]]:
    columns = list(table.values()) if not table.closed else []
    return [(c.name, _axes(c), _element(c), c.unit or "", c.manager) for c in columns]


def table_text(table: Table) -> str:
    kind = f", {table.type}" if table.type else ""
    if table.closed:
        return f"<h5bridge.Table {table.path}: closed>"
    lines = _lines(table)
    widths = [max((len(line[field]) for line in lines), default=0) for field in range(5)]
    text = [f"<h5bridge.Table {table.path}{kind}>", f"Rows: {table.nrows}", "Columns:"]
    text += [
        "    " + "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    if table.subtables:
        text.append(f"Subtables: {', '.join(table.subtables)}")
    return "\n".join(text)


def column_text(column: Column) -> str:
    unit = f", {column.unit}" if column.unit else ""
    cells = f"{_axes(column)} {_element(column)}{unit}"
    return f"<h5bridge.Column {column.name}: {cells}, {column._table.nrows} rows, {column.manager}>"


_STYLE = (
    "<style>.h5b{font-family:var(--jp-code-font-family,monospace);font-size:13px}"
    ".h5b table{border-collapse:collapse;margin:0}.h5b td{text-align:left;padding:1px 12px 1px 0}"
    ".h5b summary{cursor:pointer;font-weight:600}.h5b .dim{opacity:.65}</style>"
)


def table_html(table: Table) -> str:
    if table.closed:
        return f"<pre>{html.escape(table_text(table))}</pre>"
    escape = html.escape
    head = f"<b>h5bridge.Table</b> {escape(table.path)} <span class='dim'>{escape(table.type)}</span>"
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(axes)}</td><td>{escape(element)}</td><td>{escape(unit)}</td>"
        f"<td class='dim'>{escape(manager)}</td></tr>"
        for name, axes, element, unit, manager in _lines(table)
    )
    columns = f"<details open><summary>Columns ({len(table)})</summary><table>{rows}</table></details>"
    names = "".join(f"<tr><td>{escape(name)}</td></tr>" for name in table.subtables)
    subtables = f"<details><summary>Subtables ({len(table.subtables)})</summary><table>{names}</table></details>"
    pairs = "".join(
        f"<tr><td>{escape(str(k))}</td><td>{escape(str(v)[:200])}</td></tr>" for k, v in table.keywords.items()
    )
    keywords = f"<details><summary>Keywords ({len(table.keywords)})</summary><table>{pairs}</table></details>"
    return f"{_STYLE}<div class='h5b'>{head}<br>Rows: {table.nrows}{columns}{subtables}{keywords}</div>"
