"""Attributes by which viewers of NeXus files draw native files, docs/reference/layout.md, "Viewers": h5py reads them by the rules of
NXdata, and the way back has none of them, as python-casacore reads it."""
import os
import shutil

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import TESTDATA, h5bridge

DEMO = os.path.join(TESTDATA, 'demo', 'demo.ms')
SIGNALS = ('DATA', 'CORRECTED_DATA', 'FLOAT_DATA', 'MODEL_DATA', 'CPARAM', 'FPARAM', 'map')
NAMES = ('NX_class', 'signal', 'axes')
TAKEN = NAMES + ('auxiliary_signals',)
ROWS = 5


def draws(group):
    return group.attrs.get('NX_class') == 'NXdata'


def drawn(file):
    """{path: (signal, axes)} of the groups that viewers draw; each follows the rules of NXdata."""
    found = {}

    def visit(path, item):
        if not isinstance(item, h5py.Group) or not draws(item):
            assert not draws(item), path
            return
        signal, axes = item.attrs['signal'], list(item.attrs['axes'])
        shape = item[signal].shape
        assert isinstance(item[signal], h5py.Dataset) and '/' not in signal and item[signal].dtype.kind in 'iufcb', path
        assert len(axes) == len(shape) > 1 and all(shape), path
        for axis, length in zip(axes, shape):
            if axis != '.':
                values = item[axis]
                assert isinstance(values, h5py.Dataset) and '/' not in axis, (path, axis)
                assert values.shape == (length,) and values.dtype.kind in 'iuf', (path, axis)
                # a name without values would be drawn as zeros
                assert b'not a netCDF variable' not in bytes(values.attrs.get('NAME', b'')), (path, axis)
        for other in item.attrs.get('auxiliary_signals', ()):
            assert item[other].shape == shape and item[other].dtype.kind in 'iufcb', (path, other)
        found[path] = signal, axes
    file.visititems(visit)
    return found


def label(dataset):
    """The text that H5Web has at an axis."""
    name, units = dataset.name.rsplit('/', 1)[-1], dataset.attrs.get('units')
    return dataset.attrs.get('long_name', '%s (%s)' % (name, units) if units else name)


# ---- what is written ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case,table', support.some_convertible())
def test_testdata(case, table, converted, counts):
    with h5py.File(converted(case, table)) as file:
        assert file.attrs['default'] == 'MAIN' and isinstance(file['MAIN'], h5py.Group)
        main, found = file['MAIN'], drawn(file)
        arrays = [name for name in SIGNALS if isinstance(main.get(name), h5py.Dataset)]
        arrays = [name for name in arrays if main[name].ndim > 1 and main[name].size and main[name].dtype.kind in 'iufcb']
        assert [signal for signal, _ in found.values()] == arrays[:1] and set(found) <= {'MAIN'}
        for name in NAMES if not arrays else ():
            assert name not in main.attrs
        counts['files'] += 1
        counts['drawn'] += len(found)


def test_axes_of_a_measurement_set(converted):
    with h5py.File(converted('demo', 'demo.ms')) as file:
        assert drawn(file) == {'MAIN': ('DATA', ['TIME', 'chan_0', 'corr_0'])}
        main = file['MAIN']
        assert main['TIME'].attrs['units'] == 's'
        assert [label(main[axis]) for axis in ('chan_0', 'corr_0')] == ['chan_0 (Hz)', 'Stokes code of the correlation']


@pytest.mark.parametrize('options', [('--hdf5', '1.8'), ('--appendable',), ('--compress', 'shared'), ('--columns', 'DATA')])
def test_options(options, tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'a.h5', *options)
    with h5py.File(tmp_path / 'a.h5') as file:
        rows = '.' if '--columns' in options else 'TIME'
        signal, axes = drawn(file)['MAIN']
        assert (signal, axes[0]) == ('DATA', rows)


def test_quicklook(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'a.h5', '--quicklook')
    with h5py.File(tmp_path / 'a.h5') as file:
        found = drawn(file)
        level = file[file.attrs['default']]
        assert level.name == '/quicklook/DATA/spw_0/level_0' and found.pop('MAIN')[0] == 'DATA'
        levels = ['quicklook/DATA/spw_0/' + name for name in file['quicklook/DATA/spw_0']]
        assert found == {path: ('mean', ['corr', 'time', 'frequency']) for path in levels} and len(levels) > 0
        assert sorted(level.attrs['auxiliary_signals']) == ['flagged', 'max', 'min']
        assert [label(level[axis]) for axis in ('time', 'frequency')] == ['time (s)', 'frequency (Hz)']
    h5bridge('to-ms', '--strict', tmp_path / 'a.h5', tmp_path / 'a.ms')
    h5bridge('to-hdf5', '--strict', tmp_path / 'a.h5', tmp_path / 'again.h5')
    with h5py.File(tmp_path / 'again.h5') as file:
        assert file.attrs['default'] == 'MAIN' and list(drawn(file)) == ['MAIN']


def test_a_live_file(tmp_path):
    shutil.copytree(DEMO, tmp_path / 'a.ms')
    h5bridge('follow', tmp_path / 'a.ms', tmp_path / 'live.h5', '--until-closed', '--quiet')
    with h5py.File(tmp_path / 'live.h5') as file:
        assert file.attrs['default'] == 'MAIN'
        # while rows are appended, TIME may be shorter than DATA
        assert drawn(file) == {'MAIN': ('DATA', ['.', 'chan_0', 'corr_0'])}
    h5bridge('finalize', tmp_path / 'live.h5', tmp_path / 'a.h5', '--quiet')
    with h5py.File(tmp_path / 'a.h5') as file:
        assert drawn(file) == {'MAIN': ('DATA', ['TIME', 'chan_0', 'corr_0'])}


# ---- the way back ---------------------------------------------------------------------------------------------------

def make(path, keywords):
    """A table with visibilities and these keywords, also of the columns."""
    columns = [ct.makescacoldesc('TIME', 0.), ct.makearrcoldesc('DATA', 0j, shape=[3, 2], valuetype='complex')]
    with ct.table(path, ct.maketabdesc(columns), nrow=ROWS, ack=False) as table:
        table.putcol('TIME', 4.6e9 + np.arange(ROWS))
        table.putcol('DATA', (np.arange(ROWS * 6) + 1j).reshape(ROWS, 3, 2).astype('c8'))
        for name, value in keywords.items():
            table.putkeyword(name, value)
            table.putcolkeyword('DATA', name, value)
            table.putcolkeyword('TIME', name, value)
    return path


def keywords_of(path):
    with ct.table(str(path), ack=False) as table:
        return [table.getkeywords(), table.getcolkeywords('DATA'), table.getcolkeywords('TIME')]


def check_back(native, source, folder):
    """The table made of a file is the source, without a warning."""
    shutil.rmtree(folder / 'back', ignore_errors=True)
    h5bridge('to-ms', '--strict', native, folder / 'back')
    h5bridge('verify', source, folder / 'back')
    assert keywords_of(folder / 'back') == keywords_of(source)


CLASHES = {
    'none': {}, 'signal': {'signal': 'strong'}, 'axes': {'axes': ['x', 'y', 'z']}, 'one number': {'axes': 3},
    'class': {'NX_class': 'NXdata'}, 'class and signal': {'NX_class': 'NXdata', 'signal': 'DATA'},
    'all': {'NX_class': 'NXentry', 'signal': 7, 'axes': ['.', '.', '.']},
    'auxiliary': {'auxiliary_signals': ['TIME']}, 'others': {'default': 'MAIN', 'long_name': 'words', 'signal_indices': 1},
}


@pytest.mark.parametrize('clash', CLASHES)
def test_keywords_of_the_same_name(clash, tmp_path):
    keywords = CLASHES[clash]
    source, native = make(str(tmp_path / 'x.tab'), keywords), tmp_path / 'x.h5'
    h5bridge('to-hdf5', source, native)
    h5bridge('verify', source, native)
    with h5py.File(native) as file:
        attributes = file['MAIN'].attrs
        if set(TAKEN) & set(keywords):
            # those of the keywords, and no other
            assert {name for name in attributes if name.split('__')[0] in TAKEN} == set(TAKEN) & set(keywords)
            for name in set(TAKEN) & set(keywords):
                assert np.array_equal(attributes[name], keywords[name])
        else:
            assert drawn(file) == {'MAIN': ('DATA', ['TIME', '.', '.'])}
    check_back(native, source, tmp_path)
    # by way of another native file
    h5bridge('to-hdf5', '--strict', native, tmp_path / 'again.h5')
    check_back(tmp_path / 'again.h5', source, tmp_path)


def remove(file):
    """A program that knows no NeXus, and a file from before the attributes were written."""
    del file.attrs['default']
    for name in NAMES:
        del file['MAIN'].attrs[name]


def change(file):
    """Another column is drawn."""
    file.attrs['default'] = 'quicklook'
    file['MAIN'].attrs['signal'] = 'TIME'
    file['MAIN'].attrs['axes'] = ['row']


@pytest.mark.parametrize('edit', [remove, change])
def test_edits_are_not_those_of_keywords(edit, tmp_path):
    source, native = make(str(tmp_path / 'x.tab'), {}), tmp_path / 'x.h5'
    h5bridge('to-hdf5', source, native)
    with h5py.File(native, 'r+') as file:
        edit(file)
    h5bridge('verify', native)
    check_back(native, source, tmp_path)


def test_without_the_class_they_are_keywords(tmp_path):
    """As any attribute that a user adds."""
    source, native = make(str(tmp_path / 'x.tab'), {}), tmp_path / 'x.h5'
    h5bridge('to-hdf5', source, native)
    with h5py.File(native, 'r+') as file:
        remove(file)
        file['MAIN'].attrs['signal'] = 'strong'
    said = h5bridge('to-ms', native, tmp_path / 'back').stderr
    assert 'attribute signal was added' in said and keywords_of(tmp_path / 'back')[0] == {'signal': 'strong'}


@pytest.mark.parametrize('has_class', [False, True])
def test_files_made_by_hand(has_class, tmp_path):
    attributes = {'signal': 'DATA', 'mine': 3, **({'NX_class': 'NXdata'} if has_class else {})}
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file.attrs.update(format='ctds-hdf5', format_version='1.0', default='MAIN')
        file['MAIN/TIME'], file['MAIN/DATA'] = np.arange(4.), np.ones((4, 2), 'f4')
        file['MAIN'].attrs.update(attributes)
        file['MAIN'].attrs['axes'] = ['TIME', '.']
    h5bridge('to-ms', tmp_path / 'x.h5', tmp_path / 'back')
    expected = {'mine': 3} if has_class else {'signal': 'DATA', 'mine': 3, 'axes': ['TIME', '.']}
    assert keywords_of(tmp_path / 'back')[0] == expected


def test_an_older_file(tmp_path):
    native = os.path.join(TESTDATA, 'older', 'native.h5')
    with h5py.File(native) as file:
        assert 'default' not in file.attrs and not drawn(file)
    assert 'attribute' not in h5bridge('to-ms', native, tmp_path / 'back').stderr
    h5bridge('verify', native, tmp_path / 'back')


# ---- other readers --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('engine', ['netcdf4', 'h5netcdf', 'h5bridge'])
def test_xarray(engine, converted):
    xarray = pytest.importorskip('xarray')
    if engine == 'h5bridge':
        pytest.importorskip('h5bridge', exc_type=ImportError)
    more = {'auto_complex': True} if engine == 'netcdf4' else {}
    with xarray.open_datatree(converted('demo', 'demo.ms'), engine=engine, **more) as tree:
        main = tree['MAIN'] if 'MAIN' in tree.children else tree
        assert main.DATA.dims == ('row', 'chan_0', 'corr_0') and list(main.attrs['axes']) == ['TIME', 'chan_0', 'corr_0']
        assert main.attrs['signal'] == 'DATA' and main.chan_0.attrs['units'] == 'Hz'


def test_lint_is_content(converted):
    assert 'follows the layout' in h5bridge('lint', converted('demo', 'demo.ms')).stderr
