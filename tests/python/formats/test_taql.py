"""VirtualTaQLColumn: values equal to those that casacore computes, bit by bit, for generated expressions over columns of
every type; expressions that are not supported are named.

200 expressions; H5BRIDGE_LONG=1: 2,000; H5BRIDGE_SEED: support.seeds."""
import os
import random

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import h5bridge

lookalike = pytest.importorskip('h5bridge.casacore', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)

SOURCE = os.path.join(support.TESTDATA, 'virtual_taql', 't.tab')

ROWS = 8
# expressions of one table
EACH = 100
STYLES = ('', 'python', 'glish', 'base0', 'corder')
# a kind of values: the types of columns that can have them
TYPES = {'bool': ('boolean',), 'int': ('int64', 'int', 'uint', 'short', 'uchar'), 'double': ('double', 'float'),
         'complex': ('dcomplex', 'complex'), 'text': ('string',)}
DEFAULTS = {'boolean': False, 'float': 0.0, 'double': 0.0, 'complex': 0j, 'dcomplex': 0j, 'string': ''}


# ---- a table ----------------------------------------------------------------------------------------------------------

def scalar(name, kind, **options):
    return ct.makescacoldesc(name, DEFAULTS.get(kind, 0), valuetype=kind, **options)


def array(name, kind, **options):
    return ct.makearrcoldesc(name, DEFAULTS.get(kind, 0), valuetype=kind, **options)


SCALARS = {'B': 'boolean', 'UC': 'uchar', 'SH': 'short', 'I': 'int', 'UI': 'uint', 'L': 'int64', 'FL': 'float', 'D': 'double',
           'X': 'double', 'SEC': 'double', 'DEG': 'double', 'CF': 'complex', 'CD': 'dcomplex', 'S': 'string', 'N': 'string'}
ARRAYS = {'MB': 'boolean', 'MI': 'int', 'MS': 'short', 'MF': 'float', 'MD': 'double', 'MC': 'dcomplex', 'MT': 'string'}
VECTORS = {'VB': 'boolean', 'VI': 'int', 'VD': 'double', 'VT': 'string'}
SHAPE = [3, 4]      # as numpy has it


def make(path, seed):
    """A table with columns of every type; the last cells of vectors are undefined, the others have 1 to 4 elements."""
    description = [scalar(*item) for item in SCALARS.items()]
    description += [array(name, kind, shape=SHAPE) for name, kind in ARRAYS.items()]
    description += [array(name, kind, ndim=1) for name, kind in VECTORS.items()]
    chance = np.random.default_rng(seed)
    with ct.table(str(path), ct.maketabdesc(description), nrow=ROWS, ack=False) as table:
        for name, kind in {**SCALARS, **ARRAYS}.items():
            shape = (ROWS,) if name in SCALARS else (ROWS, *SHAPE)
            values = some(chance, kind, shape, special=name in ('X', 'L'))
            if kind == 'string' and name in ARRAYS:
                values = {'shape': list(shape), 'array': values.ravel().tolist()}
            table.putcol(name, values)
        for row in range(ROWS - 1):
            for name, kind in VECTORS.items():
                table.putcell(name, row, some(chance, kind, (1 + row % 4,)))
        for name, unit in ('SEC', 's'), ('DEG', 'deg'):
            table.putcolkeyword(name, 'QuantumUnits', [unit])
        table.putkeyword('KI', 7)
        table.putkeyword('KR', {'INNER': {'X': 2.5}})
        table.putcolkeyword('I', 'LIST', [2, -3, 5])
        table.putcolkeyword('S', 'WORD', 'word')


def some(chance, kind, shape, special=False):
    if kind == 'boolean':
        return chance.random(shape) < 0.5
    if kind == 'string':
        words = np.array(['', 'a', ' Ab c', 'x1y ', 'LONGER text', '12', 'no', 'true', 'b%'])
        return chance.choice(words, size=shape)
    if kind in ('complex', 'dcomplex'):
        return (some(chance, 'double', shape) + 1j * some(chance, 'double', shape)).astype('c8' if kind == 'complex' else 'c16')
    if kind in ('float', 'double'):
        values = chance.normal(size=shape) * 10.0 ** chance.integers(-2, 3, size=shape)
        values = np.where(chance.random(shape) < 0.3, np.round(values), values)
        if special:
            values = chance.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, -1e-300, 0.5, -2.5, 1e18], size=shape)
        return values.astype('f4' if kind == 'float' else 'f8')
    dtype = {'uchar': 'u1', 'short': 'i2', 'int': 'i4', 'uint': 'u4', 'int64': 'i8'}[kind]
    if special:
        return chance.choice([2**62, -2**63, 2**53 + 1, -1, 0, 3], size=shape).astype(dtype)
    return chance.integers(0 if dtype[0] == 'u' else -9, 10, size=shape).astype(dtype)


def add(path, columns):
    """Adds virtual columns, {name: (expression, style, type, is array)}; returns the names of those that casacore accepts."""
    accepted = []
    with ct.table(str(path), ack=False, readonly=False) as table:
        for name, (expression, style, kind, is_array) in columns.items():
            description = (array if is_array else scalar)(name, kind)
            manager = {'TYPE': 'VirtualTaQLColumn', 'NAME': name, 'SPEC': {'TAQLCALCEXPR': expression, 'TAQLSTYLE': style}}
            try:
                table.addcols(ct.maketabdesc([description]), manager)
                accepted.append(name)
            except RuntimeError:
                pass
    return accepted


# ---- expressions ------------------------------------------------------------------------------------------------------

class Expressions:
    """Expressions with values of a kind, of scalars (form ''), arrays of SHAPE ('M') or vectors ('V')."""

    LEAVES = {
        ('bool', ''): ['B', 'T', 'false', 'isdefined(VI)', 'any(MB)', 'all(MB)', 'all(VB)'],
        ('bool', 'M'): ['MB', 'isnan(MD)'],
        ('bool', 'V'): ['VB'],
        ('int', ''): ['UC', 'SH', 'I', 'UI', 'L', '3', '-2', '0x1f', 'rownumber()', 'rowid()', 'KI', '::KI', 'I::LIST[{o}]', 'len(S)',
                      'ndim(MI)', 'ndim(VI)', 'nelements(VI)', 'nelements(I)', 'ntrue(MB)', 'nfalse(VB)', 'sum(VI)', 'max(MI)', 'MI[{o},{o}]'],
        ('int', 'M'): ['MI', 'MS', 'array(I, {s})'],
        ('int', 'V'): ['VI'],
        ('double', ''): ['FL', 'D', 'X', '1.5', '.25e1', '2e-3', 'pi()', 'e()', 'KR.INNER.X', '::KR.INNER.X', 'mean(MI)', 'mean(VD)', 'SEC', 'DEG'],
        ('double', 'M'): ['MF', 'MD', 'array(D, {s})'],
        ('double', 'V'): ['VD'],
        ('complex', ''): ['CF', 'CD', '2i', '1.5j', 'sum(MC)', 'mean(MC)'],
        ('complex', 'M'): ['MC'],
        ('text', ''): ['S', 'N', '"text"', "' it'", '"a"\'"\'', 'S::WORD', 'MT[{o},{o1}]', 'string(I)', 'string(B)'],
        ('text', 'M'): ['MT'],
        ('text', 'V'): ['VT'],
    }
    # {kind: productions}: of the same form, but `scalar` and `any` as said; M, V only for arrays
    ELEMENTS = {
        'bool': ['!{bool}', '({bool} && {bool})', '({bool} || {bool})', '({bool} and {bool})', '({bool} = {bool})', '({bool} != {bool})',
                 '({real} < {real})', '({real} >= {real})', '({real} == {number})', '({number} <> {number})', '({text} < {text})',
                 '({text} == {text})', '({complex} > {complex})', '({real} between {rs} and {rs})', '({real} not between {rs} and {rs})',
                 '({int} in [1, 3, {is}])', '({int} in [1:7:2])', '({int} in [-3:{is}])', '({int} in [{is}:])', '({int} not in [0, 1])',
                 '({real} in [<{rs}, 5}}, {{7, 9>])', '({real} in [{rs} =:= {rs}, 8 <:])', '({real} in [:< {rs}])', '({double} in [1, 2.5, {ds}])',
                 '({text} in ["a", {ts}])', '({text} like "%a_%")', '({text} not like "a%")', '({text} ilike "% C")', '({text} ~ p/*b?c/)',
                 '({text} !~ p/A*/i)', '({real} around 2 in {rs})', '({double} ~= {double})', '({double} !~= {double})', 'near({double}, {double}, 0.2)',
                 'near({int}, {int})', 'nearabs({double}, {double}, 1.5)', 'nearabs({complex}, {complex}, 2)', 'isnan({double})', 'isinf({number})',
                 'isfinite({number})', 'bool({number})', 'bool({text})', 'iif({bool}, {bool}, {bool})', '({int} in VI)'],
        'int': ['-{int}', '~{int}', '({int} + {int})', '({int} - {int})', '({int} * {int})', '({int} % 3)', '({int} % -4)', '({int} & {int})',
                '({int} | {int})', '({int} ^ {int})', '({int} xor 5)', 'abs({int})', 'square({int})', 'cube({int})', 'norm({int})', 'sign({int})',
                'round({int})', 'int({real})', 'integer({bool})', 'min({int}, {int})', 'max({int}, {int})', 'fmod({int}, 4)', 'len({text})',
                'iif({bool}, {int}, {int})', '+{int}'],
        'double': ['-{double}', '({double} + {real})', '({real} - {double})', '({double} * {real})', '({real} / {real})', '({double} % {real})',
                   '({real} // {real})', '({real} ** {real})', '({double} ** 2)', 'sin({real})', 'cos({real})', 'tan({real})', 'asin({real})', 'acos({real})',
                   'atan({real})', 'sinh({real})', 'cosh({real})', 'tanh({real})', 'exp({real})', 'log({real})', 'ln({real})', 'log10({real})',
                   'sqrt(abs({int}) * 1.5)', 'square({double})', 'cube({double})', 'abs({double})', 'abs({complex})', 'amplitude({complex})',
                   'norm({complex})', 'arg({complex})', 'phase({real})', 'real({number})', 'real({bool})', 'imag({number})', 'sign({double})',
                   'round({double})', 'floor({double})', 'ceil({double})', 'fmod({double}, {real})', 'pow({real}, {real})', 'atan2({real}, {real})',
                   'min({double}, {real})', 'max({real}, {double})', 'conj({real})', 'iif({bool}, {double}, {real})', '({double} + {int} - {double})'],
        'complex': ['-{complex}', '({complex} + {number})', '({number} - {complex})', '({complex} * {number})', '({number} / {complex})',
                    'complex({real}, {real})', 'conj({complex})', 'square({complex})', 'cube({complex})', 'exp({complex} / 50)', 'sin({complex} / 50)',
                    'cos({complex} / 50)', 'sinh({complex} / 50)', 'cosh({complex} / 50)', 'min({complex}, {number})', 'max({complex}, {complex})',
                    'iif({bool}, {complex}, {number})'],
        'text': ['({text} + {text})', 'upcase({text})', 'downcase({text})', 'capitalize({text})', 'sreverse({text})', 'trim({text})', 'ltrim({text})',
                 'rtrim({text})', 'substr({text}, {is})', 'substr({text}, 1, {is})', 'replace({text}, "a", "bc")', 'replace({text}, {ts})',
                 'string({number})', 'string({bool})', 'string({double}, 12.3)', 'string({text}, 3)', 'iif({bool}, {text}, {text})'],
    }
    SCALARS = {
        'bool': ['any({M:bool})', 'all({V:bool})', 'anys({M:bool}, {o})[{o}]'],
        'int': ['sum({M:int})', 'product({V:int})', 'sumsqr({M:int})', 'min({M:int})', 'max({M:int})', 'ntrue({M:bool})', 'nfalse({V:bool})',
                '{M:int}[{o}, {o1}]', 'shape({M:double})[{o}]', 'iif(isdefined(VI), VI[{o}], {int})'],
        'double': ['sum({M:double})', 'sum({V:double})', 'product({M:double})', 'sumsqr({M:double})', 'min({M:double})', 'max({M:double})',
                   'mean({M:real})', 'avg({V:real})', 'variance({M:real})', 'samplevariance({M:double})', 'stddev({M:double})', 'samplestddev({M:double})',
                   'avdev({M:double})', 'rms({M:real})', 'median(MD + {is})', 'median(VD)', 'fractile(MF + 0.5, 0.3)', 'variance({M:complex})', 'avdev({M:complex})',
                   '{M:double}[{o}, {o1}]', '{M:double}[-1, {o}]', 'mean([{rs}, {ds}, 4])', 'sum([1.5:4])', 'sum({double})', 'variance({double})'],
        'complex': ['sum({M:complex})', 'mean({M:complex})', 'product({M:complex})', 'sumsqr({M:complex})', '{M:complex}[{o1}, {o}]'],
        'text': ['{M:text}[{o}, {o}]'],
    }
    # arrays of any shape, as results only
    ARRAYS = {
        'bool': ['anys({M:bool}, {o})', 'alls({M:bool}, {o1})', '[B, {bs}]', '{M:bool}[{o}:{o1}, {o}]'],
        'int': ['sums({M:int}, {o})', 'products({M:int}, {o1})', 'sumsqrs({M:int}, {o})', 'mins({M:int}, {o})', 'maxs({M:int}, {o1})',
                'ntrues({M:bool}, {o})', 'nfalses({M:bool}, [{o}, {o1}])', 'shape({M:text})', 'shape({V:double})', '[{is}, {is}, 1:5:2]',
                'transpose({M:int})', 'areverse({M:int}, {o})', 'areverse({V:int})', 'flatten({M:int})', '{M:int}[, {o1}]', '{M:int}[{o1}:, {o}:{o1}]',
                '{M:int}[::2, ]', '[{M:int}, {M:int}]', 'array({int}, 2, 3)', 'array(VI, 2, 3)', 'array({M:int}, 5)', '[[1, {is}], [3, 4]]', '(1, {is}, 3)',
                '[{is}:{is}]', 'VI[{o}:]', 'I::LIST + {int}'],
        'double': ['sums({M:double}, {o})', 'products({M:double}, {o})', 'sumsqrs({M:double}, {o1})', 'mins({M:double}, {o})', 'maxs({M:double}, {o})',
                   'means({M:real}, {o})', 'means({M:double}, [{o}, {o1}])', 'variances({M:double}, {o})', 'samplevariances({M:double}, {o1})',
                   'stddevs({M:double}, {o})', 'samplestddevs({M:double}, {o})', 'avdevs({M:double}, {o})', 'rmss({M:double}, {o})',
                   'medians(MF + {is}, {o})', 'fractiles(MD + {is}, 0.6, {o})', 'variances({M:complex}, {o})', 'transpose({M:double}, {o1})',
                   'transpose(array({M:double}, 2, 3, 2), [{o2}, {o}])', '[{ds}, {rs}]', '[0.5:{rs}:0.75]', '{M:double}[{o}, ]', 'VD[-1:]'],
        'complex': ['sums({M:complex}, {o})', 'means({M:complex}, {o1})', 'products({M:complex}, {o})', '[{cs}, {rs}]', 'transpose({M:complex})'],
        'text': ['[{ts}, {ts}]', '[MT, {text}]', 'transpose({M:text})', '{M:text}[{o}, ]'],
    }
    # units that are converted
    MEASURED = ['SEC + 2min', 'SEC / 60s', 'SEC - DEG', 'sin(DEG)', 'cos(DEG + 1rad)', '(3km + SEC * 1m) * 1', 'min(SEC, 1h)', 'iif(B, SEC, 1d)',
                'SEC/86400 + 1d', '(SEC h)', '(90deg + 1arcmin) rad', 'sqrt(square(SEC * 1m))', 'mean([SEC, 1min])', 'asin(0.5) + 1deg', 'D * 2MHz + 1GHz']

    def __init__(self, seed, style):
        self.chance = random.Random(seed)
        first = 0 if style in ('python', 'base0') else 1
        # first indices, and a shape in the order of the style
        self.words = {'o': first, 'o1': first + 1, 'o2': first + 2, 's': '3, 4' if style in ('python', 'corder') else '4, 3'}

    def of(self, kind, form, depth):
        kind = {'number': ('int', 'double', 'complex'), 'real': ('int', 'double')}.get(kind, (kind,))
        kind = self.chance.choice(kind)
        leaves = self.LEAVES.get((kind, form))
        if depth <= 0 and leaves:
            return self.filled(self.chance.choice(leaves), form, 0)
        if form == 'V' and kind == 'complex':
            return self.filled('complex({double}, {real})', form, depth)
        choices = list(self.ELEMENTS[kind])
        if form == '':
            choices += 2 * self.SCALARS[kind]
        return self.filled(self.chance.choice(choices), form, depth)

    def result(self, kind, is_array, depth):
        """Returns an expression."""
        if not is_array:
            if kind == 'double' and self.chance.random() < 0.1:
                return self.chance.choice(self.MEASURED)
            return self.of(kind, '', depth)
        if self.chance.random() < 0.4:
            return self.filled(self.chance.choice(self.ARRAYS[kind]), 'M', depth)
        return self.of(kind, self.chance.choice('MMV' if kind != 'text' else 'M'), depth)

    def filled(self, production, form, depth):
        """Fills holes: {kind}, of the same form or scalars, {FORM:kind}, {is} and others, scalar constants or columns."""
        text, rest = '', production
        is_first = True
        while '{' in rest:
            before, _, rest = rest.partition('{')
            text += before.replace('}}', '}')
            if rest.startswith('{'):
                text, rest = text + '{', rest[1:]
                continue
            hole, _, rest = rest.partition('}')
            if hole in self.words:
                text += str(self.words[hole])
            elif hole in ('bs', 'is', 'rs', 'ds', 'cs', 'ts'):
                text += self.of({'b': 'bool', 'i': 'int', 'r': 'real', 'd': 'double', 'c': 'complex', 't': 'text'}[hole[0]], '', 0)
            elif ':' in hole:
                text += self.of(hole[2:], hole[0], depth - 1)
            else:
                # one operand has the form, others may be scalars
                of_form = is_first or self.chance.random() < 0.5
                text += self.of(hole, form if of_form else '', depth - 1)
                is_first = False
        return text + rest.replace('}}', '}')


def expressions(seed, count):
    """{column: (expression, style, type, is array)}"""
    chance = random.Random(seed)
    found = {}
    for number in range(count):
        kind, is_array, style = chance.choice(list(TYPES)), chance.random() < 0.5, chance.choice(STYLES)
        text = Expressions(chance.random(), style).result(kind, is_array, chance.choice((0, 1, 1, 2, 2, 3)))
        found['V%d' % number] = (text, style, chance.choice(TYPES[kind]), is_array)
    return found


# ---- values -----------------------------------------------------------------------------------------------------------

def cell(table, name, row):
    """The cell, or None where the table has none."""
    try:
        return table.getcell(name, row)
    except RuntimeError:
        return None


def is_same(one, other):
    """Whether two cells have equal bits, and NaN in the same places."""
    if isinstance(one, dict) or isinstance(other, dict):
        return isinstance(one, dict) and isinstance(other, dict) and list(one['shape']) == list(other['shape']) and one['array'] == other['array']
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind in 'US' or b.dtype.kind in 'US':
        return a.shape == b.shape and a.tolist() == b.tolist()
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == 'c':
        return is_same(a.real, b.real) and is_same(a.imag, b.imag)
    if a.dtype.kind == 'f':
        return np.array_equal(np.isnan(a), np.isnan(b)) and bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a)))
    return np.array_equal(a, b)


def is_empty(value):
    """Whether casacore has a cell of no elements, where a cell that the expression uses is undefined."""
    return np.asarray(value['array'] if isinstance(value, dict) else value).size == 0


# ---- tests ------------------------------------------------------------------------------------------------------------

def test_columns_of_the_sample():
    with ct.table(SOURCE, ack=False) as theirs, lookalike.table(SOURCE, ack=False) as ours:
        for name in 'AVBSW':
            for row in range(theirs.nrows()):
                assert is_same(ours.getcell(name, row), theirs.getcell(name, row)), (name, row)


@pytest.mark.parametrize('seed', support.seeds(0, 2, 20))
def test_generated_expressions(seed, tmp_path, counts):
    """As many cells as casacore reads without an error are equal; casacore accepts nearly all expressions, and this program all of
    them."""
    path, columns = str(tmp_path / 't.tab'), expressions(seed, EACH)
    make(path, seed)
    accepted = add(path, columns)
    assert len(accepted) > 0.9 * EACH, seed
    compared, failed = 0, 0
    with ct.table(path, ack=False) as theirs, lookalike.table(path, ack=False) as ours:
        for name in accepted:
            for row in range(ROWS):
                try:
                    expected = theirs.getcell(name, row)
                except (RuntimeError, IndexError, ValueError):
                    failed += 1     # such as an index beyond the array
                    continue
                found = ours.getcell(name, row)
                is_equal = is_same(found, expected) or is_empty(found) and is_empty(expected)
                assert is_equal, 'seed %d, row %d of %s: %r, expected %r' % (seed, row, columns[name], found, expected)
                compared += 1
    assert failed < 0.2 * compared, seed
    counts['cells'] += compared


def test_rows_at_once_and_files(tmp_path):
    """Cells read together, from the table and from the native file, are those read one by one."""
    path, columns = str(tmp_path / 't.tab'), expressions(1, EACH)
    make(path, 1)
    names = add(path, columns)
    readable = []
    with lookalike.table(path, ack=False) as table:
        for name in names:
            if all(cell(table, name, row) is not None for row in range(ROWS)):
                readable.append(name)
    assert len(readable) > EACH // 2
    h5bridge('to-hdf5', '--columns', ','.join([*SCALARS, *ARRAYS, *VECTORS, *readable]), path, tmp_path / 't.h5')
    h5bridge('verify', path, tmp_path / 't.h5', code=None)
    with lookalike.table(path, ack=False) as table, lookalike.table(str(tmp_path / 't.h5'), ack=False) as file:
        for name in readable:
            for row in range(ROWS):
                assert is_same(table.getcell(name, row), file.getcell(name, row)), (columns[name], row)
            if not columns[name][3]:
                at_once = np.asarray(table.getcol(name))
                assert is_same(at_once, np.asarray([table.getcell(name, row) for row in range(ROWS)], at_once.dtype)), columns[name]
    with h5py.File(tmp_path / 't.h5') as file:
        for name in readable:
            assert file['MAIN'][name].attrs['_VirtualTaQLEngine_CalcExpr'] == columns[name][0]


UNSUPPORTED = [
    ('A + day(mjdtodate(A))', 'int', False, 'the function mjdtodate is not supported'),
    ('A + year(2014-04-22)', 'int', False, 'the date or time 2014-04-22 is not supported'),
    ('string(A) ~ m/[02468]$/', 'boolean', False, 'the regular expression m/[02468]$/ is not supported'),
    ('runningmin(array(A, 3, 3), 1)', 'int', True, 'the function runningmin is not supported'),
    ('sum(array(A, 3)[[T, F, T]])', 'int', False, 'a mask as a subscript is not supported'),
    ('string(A, "%05d")', 'string', False, 'the function string: a format is not supported'),
    ('sqrt(A + 1i)', 'dcomplex', False, 'the function sqrt: Complex values are not supported'),
]


@pytest.mark.parametrize('expression, kind, is_array, named', UNSUPPORTED, ids=[named for *_, named in UNSUPPORTED])
def test_unsupported_expressions_are_named(expression, kind, is_array, named, tmp_path):
    path = tmp_path / 't.tab'
    with ct.table(str(path), ct.maketabdesc([ct.makescacoldesc('A', 0)]), nrow=3, ack=False) as table:
        table.putcol('A', np.arange(3, dtype='i4'))
    assert add(path, {'V': (expression, '', kind, is_array), 'W': ('A + 1', '', 'int', False)})[-1] == 'W'
    with ct.table(str(path), ack=False) as table:
        if 'V' not in table.colnames():
            pytest.skip('this casacore does not have it')
    done = h5bridge('to-hdf5', '--strict', path, tmp_path / 't.h5', code=support.WARNINGS)
    warning, = [line for line in done.stderr.splitlines() if 'warning' in line]
    assert 'column V is not converted: VirtualTaQLColumn: the expression %s is not evaluated: ' % expression in warning and named in warning
    with h5py.File(tmp_path / 't.h5') as file:
        assert file['MAIN/W'][...].tolist() == [1, 2, 3] and file['MAIN'].attrs['V__taql'] == expression
    with lookalike.table(str(path), ack=False) as table, pytest.raises(RuntimeError, match='is not evaluated'):
        table.getcell('V', 0)
