"""Writes tables with this crate from Python: the operations of tests/tools/table_script.rs.

    from writing import Script, column, manager
    with Script(path, columns=[column('A', 'int'), column('D', 'complex', shape=[4, 8])],
                managers=[manager('TiledShapeStMan', 'tiles', ['D'], DEFAULTTILESHAPE=[4, 8, 16])]) as script:
        script.add_rows(3)
        script.put('A', 0, np.arange(3, dtype='i4'))    # scalars of consecutive rows
        script.put_cell('D', 1, np.zeros((8, 4), 'c8')) # an array, slowest axis first as in numpy
    # closed; now python-casacore may judge
"""
import atexit
import json
import os
import subprocess

import numpy as np

import support

SCRIPT = os.environ.get('TABLE_SCRIPT', os.path.join(support.EXAMPLES, 'table_script'))


class ScriptError(Exception):
    """An operation failed; the text begins with the kind of the error."""


def column(name, dtype, shape=None, ndim=None, kind=None, **more):
    """A column: an array where SHAPE (first axis fastest) or NDIM (-1: any) is given, else a scalar."""
    kind = kind or ('scalar' if shape is None and ndim is None else 'array')
    return dict(more, name=name, type=dtype, kind=kind, shape=shape, ndim=None if ndim == -1 else ndim)


def manager(kind, name, columns=(), **parameters):
    return {'type': kind, 'name': name, 'columns': list(columns), 'parameters': parameters}


class Script:
    """A table at PATH that is being written. All columns that no manager names go to a StandardStMan."""

    def __init__(self, path, columns=(), managers=(), order='little', **more):
        if not os.access(SCRIPT, os.X_OK):
            raise FileNotFoundError('%s is missing: scripts/setup-python builds it' % SCRIPT)
        self.types = {c['name']: c['type'] for c in columns}
        self.process = subprocess.Popen([SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        self.do('create', path=str(path), columns=list(columns), managers=list(managers), order=order, **more)

    def do(self, op, **more):
        """Executes an operation; raises ScriptError where it fails, after which the script can go on."""
        print(json.dumps(dict(more, op=op)), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().rstrip('\n')
        if answer != 'ok':
            raise ScriptError(answer.partition('error: ')[2] or 'the script ended')

    def add_rows(self, count):
        self.do('add_rows', count=count)

    def put(self, column, row, values):
        """Scalars of the rows from ROW on."""
        values = elements(values)
        self.do('put', column=column, row=row, rows=len(values), shape=[], values=values)

    def put_cell(self, column, row, array):
        """An array, slowest axis first; it gives the cell its shape."""
        array = np.asarray(array)
        self.do('put', column=column, row=row, rows=1, shape=list(array.shape[::-1]), values=elements(array))

    def put_rows(self, column, row, array):
        """Arrays of one shape for the rows from ROW on; the first axis of ARRAY is the row."""
        array = np.asarray(array)
        self.do('put', column=column, row=row, rows=array.shape[0], shape=list(array.shape[:0:-1]),
                values=elements(array))

    def put_part(self, column, row, start, array):
        """Part of a cell, from START (slowest axis first) on."""
        array = np.asarray(array)
        self.do('put_part', column=column, row=row, start=list(start)[::-1], shape=list(array.shape[::-1]),
                values=elements(array))

    def set_shape(self, column, row, shape):
        """SHAPE as in numpy, slowest axis first."""
        self.do('set_shape', column=column, row=row, shape=list(shape)[::-1])

    def remove_row(self, row):
        self.do('remove_row', row=row)

    def add_column(self, description, manager=None):
        self.do('add_column', column=description, manager=manager)

    def remove_column(self, name):
        self.do('remove_column', column=name)

    def keyword(self, name, value, column=None):
        self.do('keyword', name=name, value=value, column=column)

    def close(self):
        self.do('close')

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def elements(values):
    """The elements in the order in which they are stored, as JSON has them."""
    if isinstance(values, list) and values and isinstance(values[0], dict):
        return values
    array = np.asarray(values)
    if array.dtype.kind == 'c':
        return [[number(z.real), number(z.imag)] for z in array.reshape(-1)]
    if array.dtype.kind == 'f':
        return [number(x) for x in array.reshape(-1)]
    return array.reshape(-1).tolist()


def number(value):
    value = float(value)
    return value if np.isfinite(value) else repr(value)
