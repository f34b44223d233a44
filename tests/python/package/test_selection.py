"""`Table.where`: the rows that python-casacore's `query` selects by the same condition, generated ones included; where views go."""
import os
import random
import sys

import casacore.tables as ct
import h5py
import numpy as np
import pytest
import xarray

import h5bridge
import support

sys.path.insert(0, os.path.join(support.ROOT, 'tests', 'python', 'convert'))
import test_where  # noqa: E402

DEMO = support.own_copy('demo', 'demo.ms')


@pytest.fixture(scope='module')
def opened(tmp_path_factory):
    """The demo as a table and as a native file."""
    native = tmp_path_factory.mktemp('opened') / 'demo.h5'
    h5bridge.to_hdf5(DEMO, native)
    with h5bridge.open_table(DEMO) as table, h5bridge.open_table(native) as file:
        yield table, file


@pytest.mark.parametrize('ours, taql', test_where.CONDITIONS, ids=[ours for ours, _ in test_where.CONDITIONS])
def test_conditions(ours, taql, opened):
    rows = test_where.selected(DEMO, taql)
    for table in opened:
        view = table.where(ours)
        assert view.row_numbers.tolist() == rows and view.nrows == len(rows)
        assert view['TIME'][:].tobytes() == table['TIME'][:][rows].tobytes()


@pytest.mark.parametrize('case, name', support.some_convertible())
def test_generated_conditions(case, name, counts):
    """Of every table of testdata, its subtables, and views of it."""
    seed = int.from_bytes(f'{case}/{name}'.encode(), 'little')
    chance = random.Random(seed)
    path = os.path.join(support.TESTDATA, case, name)
    with h5bridge.open_table(path) as main:
        for table in (main, *main.subtables.values()):
            if table.nrows > 40_000:
                continue
            try:
                theirs = ct.table(table.path, ack=False)
            except RuntimeError:
                continue
            with theirs:
                # in the root table: of a row that a view has twice, rownumbers(theirs) gives the last place only
                own = np.array(theirs.rownumbers(), dtype=int)
                columns = test_where.scalars(theirs)
                for _ in range(8 if columns else 0):
                    ours, taql = test_where.condition(columns, chance)
                    found = theirs.query(taql)
                    rows = table.where(ours).row_numbers.astype(int)
                    expected = found.rownumbers() if found.nrows() else []
                    assert own[rows].tolist() == list(expected), (table.path, ours, taql)
                    part = table[1::2].where(ours)
                    assert part.row_numbers.tolist() == [row for row in rows if row % 2 == 1], ours
                    back = table[::-1].where(ours)
                    assert back.row_numbers.tolist() == rows[::-1].tolist(), ours
                    counts['conditions'] += 1


def test_views_share_the_open_files():
    """A view opens nothing, and closing one closes both."""
    descriptors = lambda: len(os.listdir('/proc/self/fd'))    # noqa: E731
    for close in (0, 1):
        table = h5bridge.open_table(DEMO)
        before = descriptors()
        views = [table[3:9], table.where('ANTENNA1 == 0'), table.columns('TIME'), table[[1, 2]][::-1]]
        assert descriptors() == before
        [table, views[-1]][close].close()
        assert table.closed and all(view.closed for view in views) and descriptors() < before
        with pytest.raises(ValueError, match='is closed'):
            views[0]['TIME'][:]


def bytes_read(call):
    """The result of a call, and how many bytes this process has read by it."""
    def count():
        with open('/proc/self/io') as file:
            return int(dict(line.split(': ') for line in file)['rchar'])
    before = count()
    return call(), count() - before


@pytest.mark.night('a table of 400 MB')
def test_views_of_ten_million_rows_are_lazy(ten_million):
    """A condition reads its columns and no others, a view nothing."""
    with h5bridge.open_table(ten_million) as table:
        # modules are read at the first use
        repr(table.where('SCAN_NUMBER == 1')[3:7].columns('TIME'))
        for condition, rows, least, most in (('SCAN_NUMBER == 2', 5 * 10**6, 0, 1e5), ('ANTENNA1 == 63', 156250, 4e7, 4.5e7),
                                             ('TIME < 5000000010', 80, 8e7, 9e7)):
            view, read = bytes_read(lambda: table.where(condition))
            assert view.nrows == rows and least <= read < most, (condition, view.nrows, read)
        for make in (lambda: view[::2], lambda: table[10:], lambda: table.rows(np.arange(10**6)), lambda: table.columns('UVW')[::-1],
                     lambda: [table['TIME'].shape, view['UVW'].dtype, table.nrows]):
            _, read = bytes_read(make)
            assert read < 1e4, read


def test_mistakes(opened):
    for table in opened:
        for condition, words in test_where.MISTAKES:
            with pytest.raises(h5bridge.UsageError) as caught:
                table.where(condition)
            assert words in str(caught.value)
        with pytest.raises(h5bridge.UsageError, match='no scalar column TIME in ANTENNA'):
            table.subtables['ANTENNA'].where('TIME > 0')


def test_views_become_files(opened, tmp_path):
    """With the rows, columns and subtables of the view, as h5py finds them."""
    for number, table in enumerate(opened):
        for name, view in {
            'where': table.where('ANTENNA1 == 1'), 'both': table.where('ANTENNA1 == 1').where('SCAN_NUMBER in 1..3 || FLAG_ROW'),
            'rows': table[20:150], 'part': table.where('ANTENNA1 == 1 || ANTENNA2 == 3')[3:-4][2:], 'none': table[5:5],
            'list': table[[7, 8, 9]], 'columns': table[20:150].where('ANTENNA2 == 3').columns('TIME', 'DATA'),
        }.items():
            made = h5bridge.to_hdf5(view, tmp_path / f'{number}{name}.h5')
            planned = h5bridge.plan(view)
            assert (made.rows, planned.tables[0].rows) == (view.nrows, view.nrows)
            with h5py.File(made.out) as file:
                assert file['MAIN/row'][:].tolist() == view.row_numbers.tolist()
                # without rows no cell tells the shape
                assert not view.nrows or file['MAIN/DATA'][:].tobytes() == view['DATA'][:].tobytes()
                assert ('UVW' in file['MAIN']) == ('UVW' in view) and 'ANTENNA/NAME' in file
        further = h5bridge.to_hdf5(table.where('ANTENNA1 == 1'), tmp_path / f'{number}.h5', where='SCAN_NUMBER == 1', rows=(2, 5))
        assert further.rows == 3
        for view in (table[::2], table[[5, 3]], table[::2].where('ANTENNA1 == 1')):
            with pytest.raises(h5bridge.UsageError, match='a condition or a range'):
                h5bridge.to_hdf5(view, tmp_path / 'x.h5')


def test_views_go_everywhere(opened, tmp_path):
    """Into info, plots and xarray."""
    for table in opened:
        view = table.where('ANTENNA1 == 0 && ANTENNA2 == 1').columns('TIME', 'DATA', 'SIGMA_SPECTRUM')
        main = h5bridge.info(view).tables['.']
        assert (main.rows, list(main.columns)) == (view.nrows, ['TIME', 'DATA', 'SIGMA_SPECTRUM'])
        frame, expected = h5bridge.frame(view, 'waterfall'), h5bridge.frame(DEMO, 'waterfall', baseline='0-1')
        assert np.array_equal(frame.arrays['raster'], expected.arrays['raster'], equal_nan=True) and frame.rows == view.nrows
        with view.to_xarray(chunks={}) as lazy, xarray.open_dataset(DEMO, engine='h5bridge') as whole:
            assert set(lazy.data_vars) == {'TIME', 'DATA', 'SIGMA_SPECTRUM', 'SIGMA_SPECTRUM__defined'}
            assert lazy.row.values.tolist() == view.row_numbers.tolist()
            assert (lazy.DATA.values == whole.DATA.values[view.row_numbers.astype(int)]).all()
            assert (lazy.ANTENNA2_NAME == 'A01').all()
        assert table[3:9].subtables['ANTENNA'].to_xarray().NAME.values.tolist() == table.subtables['ANTENNA']['NAME'][:].tolist()
