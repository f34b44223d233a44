"""Names of antennas and fields: none is invented, a number is a name first, and what may mean two things is refused."""
import json

import numpy as np
import pytest
from casacore.tables import default_ms, makearrcoldesc, table

import support
from support import h5bridge

NAMES = ['5', '', '7', '8', '', '1', '8']


def make(path, names, fields=('', 'target')):
    """A MeasurementSet with antennas of these names."""
    ms = default_ms(str(path))
    ms.addcols(makearrcoldesc('DATA', 0j, ndim=2, valuetype='complex'))
    count = len(names)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    rows = 2 * len(pairs)
    ms.addrows(rows)
    first, second = (np.array([pair[side] for pair in pairs] * 2, np.int32) for side in (0, 1))
    ms.putcol('ANTENNA1', first)
    ms.putcol('ANTENNA2', second)
    ms.putcol('TIME', np.repeat([5e9, 5e9 + 8], len(pairs)))
    ms.putcol('FIELD_ID', np.zeros(rows, np.int32))
    ms.putcol('DATA_DESC_ID', np.zeros(rows, np.int32))
    ms.putcol('DATA', np.ones((rows, 4, 1), np.complex64) * (1 + first)[:, None, None])
    ms.putcol('FLAG', np.zeros((rows, 4, 1), bool))
    ms.close()
    with table(str(path / 'ANTENNA'), readonly=False, ack=False) as antennas:
        antennas.addrows(count)
        antennas.putcol('NAME', list(names))
        antennas.putcol('POSITION', np.arange(3.0 * count).reshape(count, 3) + 1e6)
    with table(str(path / 'FIELD'), readonly=False, ack=False) as found:
        found.addrows(len(fields))
        found.putcol('NAME', list(fields))
    for name in ('SPECTRAL_WINDOW', 'DATA_DESCRIPTION', 'POLARIZATION'):
        with table(str(path / name), readonly=False, ack=False) as sub:
            sub.addrows(1)
            if name == 'SPECTRAL_WINDOW':
                sub.putcol('NUM_CHAN', [4])
                sub.putcell('CHAN_FREQ', 0, np.arange(4) * 1e6 + 1e9)
            if name == 'POLARIZATION':
                sub.putcell('CORR_TYPE', 0, np.array([9], np.int32))


@pytest.fixture
def source(tmp_path):
    make(tmp_path / 'my.ms', NAMES)
    return tmp_path / 'my.ms'


def test_empty_names_stay_empty(source):
    found = json.loads(h5bridge('--json', 'info', source).stdout)
    assert [antenna['name'] for antenna in found['summary']['antennas']] == NAMES
    assert [field['name'] for field in found['summary']['fields']] == ['', 'target']
    text = h5bridge('info', source).stdout
    assert '7: 5 #1 7 8 #4 1 8' in text and '#0' in text
    known = json.loads(h5bridge('plot', source, '--describe').stdout)
    assert [antenna['name'] for antenna in known['antennas']] == NAMES


def test_a_number_is_a_name_first(source, tmp_path):
    out = tmp_path / 'p'
    refused = h5bridge('plot', source, 'amp_time', '--antenna', '6', '--out', out.with_suffix('.png'), code=support.USAGE)
    assert 'no antenna is named 6, and #6 is named 8: write #6, or a name' in refused.stderr
    twice = h5bridge('plot', source, 'amp_time', '--antenna', '8', '--out', out.with_suffix('.png'), code=support.USAGE)
    assert 'antenna 8 is the name of #3 and #6: name one of them' in twice.stderr
    pair = h5bridge('plot', source, 'amp_time', '--baseline', '0&1', '--out', out.with_suffix('.png'), code=support.USAGE)
    assert 'no antenna is named 0, and #0 is named 5: write #0, or a name' in pair.stderr
    for word, antenna in (('7', 2), ('#2', 2), ('1', 5), ('#6', 6), ('#1', 1)):
        shown = h5bridge('--json', 'plot', source, 'amp_time', '--antenna', word, '--overwrite',
                         '--out', out.with_suffix('.png')).stdout
        label = NAMES[antenna] or '#%d' % antenna
        assert 'antenna %s' % label in shown, shown


def test_numbers_are_rows_where_no_name_is_a_number(tmp_path):
    make(tmp_path / 'my.ms', ['a', 'b', 'c'])
    h5bridge('plot', tmp_path / 'my.ms', 'amp_time', '--antenna', '2', '--out', tmp_path / 'p.png')
    h5bridge('plot', tmp_path / 'my.ms', 'amp_time', '--baseline', '#0&b', '--out', tmp_path / 'q.png')
