"""`to-hdf5 --quicklook` and `finalize --quicklook`: small versions of the visibilities, read with h5py, against numpy sums over what
python-casacore reads; and that they are no part of the table."""
import os
import shutil

import casacore.tables as ct
import h5py
import numpy as np
import pytest

from support import TESTDATA, digest, h5bridge

DEMO = os.path.join(TESTDATA, 'demo', 'demo.ms')
ARRAYS = ('mean', 'min', 'max', 'flagged')
START = 59000 * 86400.


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Two spectral windows, of which one is large, with times in any order, flags, NaN and autocorrelations."""
    folder = tmp_path_factory.mktemp('quicklook')
    random = np.random.default_rng(5)
    desc = ct.makescacoldesc, ct.makearrcoldesc
    columns = [desc[0]('TIME', 0.)] + [desc[0](name, 0) for name in ('ANTENNA1', 'ANTENNA2', 'DATA_DESC_ID')]
    columns += [desc[0]('FLAG_ROW', False), desc[1]('DATA', 0j, ndim=2, valuetype='complex'), desc[1]('FLAG', False, ndim=2)]
    path = str(folder / 'made.ms')
    rows = [(START + 2. * time, first, second, spw) for time in range(1500) for spw in (0, 1) if spw == 0 or time < 30
            for first in range(2) for second in range(first, 2)]
    rows = [rows[number] for number in random.permutation(len(rows))]
    shapes = [(6, 2), (1100, 1)]
    with ct.table(path, ct.maketabdesc(columns), nrow=len(rows), ack=False) as t:
        for number, name in enumerate(('TIME', 'ANTENNA1', 'ANTENNA2', 'DATA_DESC_ID')):
            t.putcol(name, np.array([row[number] for row in rows], 'f8' if number == 0 else 'i4'))
        flag_row = random.random(len(rows)) < 0.05
        t.putcol('FLAG_ROW', flag_row)
        for number, row in enumerate(rows):
            shape = shapes[row[3]]
            data = (random.normal(size=shape) + 1j * random.normal(size=shape)).astype('c8')
            data[random.random(shape) < 0.02] = np.nan
            t.putcell('DATA', number, data)
            t.putcell('FLAG', number, random.random(shape) < 0.1)
        t.putinfo({'type': 'Measurement Set', 'subType': '', 'readme': ''})
        frequencies = [1e9 + 1e6 * np.arange(6), 2e9 - 1e5 * np.arange(1100)]
        for name, table in [('SPECTRAL_WINDOW', {'CHAN_FREQ': frequencies}), ('POLARIZATION', {'CORR_TYPE': [[9, 12], [1]]}),
                            ('DATA_DESCRIPTION', {'SPECTRAL_WINDOW_ID': [0, 1], 'POLARIZATION_ID': [0, 1]})]:
            parts = [desc[1](column, np.ravel(of[0])[0].item(), ndim=1) if np.ndim(of[0]) else desc[0](column, 0) for column, of in table.items()]
            with ct.table('%s/%s' % (path, name), ct.maketabdesc(parts), nrow=2, ack=False) as s:
                for column, of in table.items():
                    for number, value in enumerate(of):
                        s.putcell(column, number, np.array(value) if np.ndim(value) else value)
            t.putkeyword(name, 'Table: %s/%s' % (path, name))
    return folder, path, frequencies


def check(path, h5, column='DATA', selected=slice(None)):
    """Every level of every spectral window; the number of levels of each."""
    with ct.table(path, ack=False) as t:
        time, first, second = (t.getcol(name)[selected] for name in ('TIME', 'ANTENNA1', 'ANTENNA2'))
        spw, flag_row = t.getcol('DATA_DESC_ID')[selected], t.getcol('FLAG_ROW')[selected]
        numbers = np.arange(t.nrows())[selected]
        levels = {}
        with h5py.File(h5) as f:
            group = f['quicklook'][column]
            assert sorted(group) == ['spw_%d' % number for number in np.unique(spw)]
            for name, window in group.items():
                rows = np.flatnonzero((spw == int(name[4:])) & (first != second))
                assert window.attrs['baselines'] == 'cross'
                data = np.array([t.getcell(column, numbers[row]) for row in rows])
                flag = np.array([t.getcell('FLAG', numbers[row]) for row in rows]) | flag_row[rows][:, None, None]
                amplitude = np.abs(data.astype('c16'))
                good = ~flag & np.isfinite(amplitude)
                for level in sorted(window):
                    check_level(window[level], time[rows], amplitude, good, flag)
                levels[name] = len(window)
    return levels


def check_level(level, time, amplitude, good, flag):
    start, last = level['time_first'][()], level['time_last'][()]
    begin, end = level['channel_first'][()], level['channel_end'][()]
    assert (start[1:] > last[:-1]).all() and begin[0] == 0 and (begin[1:] == end[:-1]).all() and end[-1] == amplitude.shape[1]
    number = np.searchsorted(last, time)
    assert number.max() < len(last) and (time >= start[number]).all()
    count = amplitude.shape[2]
    shape = (count, len(start), len(begin))
    found = {name: level[name][()] for name in ARRAYS}
    assert all(array.shape == shape and array.dtype == '<f4' for array in found.values())
    wanted = {name: np.full(shape, np.nan) for name in ARRAYS}
    for at in range(len(start)):
        rows = number == at
        for place, channels in enumerate(map(slice, begin, end)):
            for corr in range(count):
                values = amplitude[rows, channels, corr][good[rows, channels, corr]]
                flags = flag[rows, channels, corr]
                if len(values):
                    for name, of in [('mean', np.mean), ('min', np.min), ('max', np.max)]:
                        wanted[name][corr, at, place] = of(values)
                if flags.size:
                    wanted['flagged'][corr, at, place] = flags.mean()
    for name in ARRAYS:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, err_msg=name)
        scales = [level[name].dims[axis][0] for axis in range(3)]
        assert [scale.name.rsplit('/')[-1] for scale in scales[:2]] == ['corr', 'time']
        np.testing.assert_allclose(scales[1][()], (start + last) / 2, rtol=0, atol=1e-5)


def test_values(made):
    folder, path, frequencies = made
    h5bridge('to-hdf5', path, folder / 'a.h5', '--quicklook', '--quiet')
    assert check(path, folder / 'a.h5') == {'spw_0': 5, 'spw_1': 4}
    with h5py.File(folder / 'a.h5') as f:
        level = f['quicklook/DATA/spw_1/level_0']
        assert level['mean'].shape == (1, 30, 367) and level['mean'].chunks == (1, 30, 367)
        wanted = [frequencies[1][at:at + 3].mean() for at in range(0, 1100, 3)]
        np.testing.assert_allclose(level['frequency'][()], wanted)
        assert level['frequency'].attrs['units'] == 'Hz' and level['time'].attrs['units'] == 's'
        np.testing.assert_array_equal(f['quicklook/DATA/spw_0/level_0/corr'][()], [9, 12])
        assert f['quicklook/DATA/spw_0/level_0/mean'].shape == (2, 1024, 6)
        assert f['quicklook/DATA/spw_0/level_4/mean'].shape == (2, 64, 6)


def test_parts_of_a_table(made):
    folder, path, _ = made
    h5bridge('to-hdf5', path, folder / 'rows.h5', '--quicklook', '--rows', '100..400', '--quiet')
    check(path, folder / 'rows.h5', selected=slice(100, 400))
    with ct.table(path, ack=False) as t:
        selected = np.flatnonzero(t.getcol('DATA_DESC_ID') == 1)
    h5bridge('to-hdf5', path, folder / 'where.h5', '--quicklook', '--where', 'DATA_DESC_ID == 1', '--quiet')
    assert check(path, folder / 'where.h5', selected=selected) == {'spw_1': 4}
    process = h5bridge('to-hdf5', path, folder / 'none.h5', '--quicklook', '--columns', 'TIME')
    assert 'no visibilities' in process.stderr
    with h5py.File(folder / 'none.h5') as f:
        assert 'quicklook' not in f


def test_quicklook_is_not_part_of_the_table(tmp_path):
    """All that reads the file sees the same tables as without; a copy of it has none."""
    words = ['--digest', '--quiet']
    h5bridge('to-hdf5', DEMO, tmp_path / 'a.h5', '--quicklook', '--restorable', *words)
    h5bridge('to-hdf5', DEMO, tmp_path / 'plain.h5', *words)
    check(DEMO, tmp_path / 'a.h5')
    assert digest(tmp_path / 'a.h5') == digest(tmp_path / 'plain.h5') == digest(DEMO)
    h5bridge('verify', tmp_path / 'a.h5')
    h5bridge('verify', tmp_path / 'a.h5', DEMO)
    h5bridge('to-ms', tmp_path / 'a.h5', tmp_path / 'a.ms', '--quiet')
    assert digest(tmp_path / 'a.ms') == digest(DEMO)
    h5bridge('to-ms', '--exact', tmp_path / 'a.h5', tmp_path / 'exact.ms', '--quiet')
    h5bridge('verify', '--bytes', tmp_path / 'exact.ms', DEMO)
    h5bridge('to-hdf5', tmp_path / 'a.h5', tmp_path / 'again.h5', '--quiet')
    with h5py.File(tmp_path / 'again.h5') as f, h5py.File(tmp_path / 'plain.h5') as plain:
        assert list(f) == list(plain)
    h5bridge('to-hdf5', DEMO, tmp_path / 'b.h5', '--quicklook', '--restorable', *words)
    assert (tmp_path / 'a.h5').read_bytes() == (tmp_path / 'b.h5').read_bytes()


@pytest.mark.parametrize('engine', ['netcdf4', 'h5netcdf'])
def test_xarray_opens_it(engine, tmp_path):
    xarray = pytest.importorskip('xarray')
    h5bridge('to-hdf5', DEMO, tmp_path / 'a.h5', '--quicklook', '--quiet')
    more = {'auto_complex': True} if engine == 'netcdf4' else {}
    with xarray.open_datatree(tmp_path / 'a.h5', engine=engine, **more) as tree:
        level = tree['quicklook/DATA/spw_0/level_0']
        assert level['mean'].dims == ('corr', 'time', 'frequency') and 'time' in level.coords
        assert tree['MAIN/DATA'].shape == (210, 16, 4)
        with h5py.File(tmp_path / 'a.h5') as f:
            np.testing.assert_array_equal(level['mean'].values, f['quicklook/DATA/spw_0/level_0/mean'][()])


def test_a_live_file(tmp_path):
    shutil.copytree(DEMO, tmp_path / 'a.ms')
    h5bridge('follow', tmp_path / 'a.ms', tmp_path / 'live.h5', '--until-closed', '--quiet')
    h5bridge('finalize', tmp_path / 'live.h5', tmp_path / 'a.h5', '--quicklook', '--quiet')
    check(DEMO, tmp_path / 'a.h5')
    h5bridge('verify', tmp_path / 'a.h5', tmp_path / 'live.h5')


def test_from_python(tmp_path):
    package = pytest.importorskip('h5bridge')
    package.to_hdf5(DEMO, tmp_path / 'a.h5', quicklook=True)
    check(DEMO, tmp_path / 'a.h5')
