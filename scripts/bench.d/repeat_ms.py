"""Writes a MeasurementSet with the rows of a small one many times, for scripts/bench kinds.

usage: repeat_ms.py SOURCE TARGET TIMES TURNED. Times go on from one repetition to the next and UVW is scaled, and with TURNED 1 DATA changes
in phase. SOURCE is changed.
"""
import os
import shutil
import sys

import casacore.tables as ct
import numpy as np


def repeat(source, target, times, turned):
    """Writes a MeasurementSet with the rows of another one so many times."""
    shutil.rmtree(target, ignore_errors=True)
    with ct.table(source, readonly=False, ack=False) as table:
        forget_missing_subtables(table)
        table.copy(target, deep=True).close()
        # what is inserted, changed for each repetition
        table.copy(source + '.next', deep=True).close()
    with ct.table(target, readonly=False, ack=False) as out, ct.table(source + '.next', readonly=False, ack=False) as rows:
        time, uvw = rows.getcol('TIME'), rows.getcol('UVW')
        data = rows.getcol('DATA') if turned else None
        span = time.max() - time.min() + rows.getcell('INTERVAL', 0)
        columns = ','.join(name for name in rows.colnames() if has_elements(rows, name))
        for number in range(1, times):
            for column in ('TIME', 'TIME_CENTROID'):
                rows.putcol(column, time + number * span)
            rows.putcol('UVW', uvw * (1 + number / 1000))
            if turned:
                rows.putcol('DATA', (data * np.exp(1j * number)).astype(np.complex64))
            rows.flush()
            ct.taql('insert into $1 (%s) select %s from $2' % (columns, columns), tables=[out, rows])


def has_elements(table, column):
    """Whether there is something to insert: casacore refuses cells of FLAG_CATEGORY without elements."""
    return table.iscelldefined(column, 0) and np.size(table.getcell(column, 0)) > 0


def forget_missing_subtables(table):
    """Drops keywords that name tables which the archive lacks: peers refuse such a MeasurementSet."""
    for keyword, value in table.getkeywords().items():
        if isinstance(value, str) and value.startswith('Table: ') and not os.path.exists(value[len('Table: '):]):
            table.removekeyword(keyword)


repeat(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == '1')
