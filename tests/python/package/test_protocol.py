"""Tables and columns as mappings and arrays; views; units, measures and times, which astropy and python-casacore judge."""
import os
import pickle

import astropy.time
import astropy.units
import casacore.tables as ct
import numpy as np
import pytest

import h5bridge
import support
from h5bridge import live

DEMO = support.own_copy('demo', 'demo.ms')


@pytest.fixture(scope='module')
def table():
    with h5bridge.open_table(DEMO) as opened:
        yield opened


# ---- I typed, I got --------------------------------------------------------------------------------------------------

NAMES = ct.table(DEMO, ack=False).colnames()
GOT = [
    ('len(table)', len(NAMES)),
    ('table.nrows', 210),
    ('list(table)', NAMES),
    ('list(table.keys())', NAMES),
    ('[name for name, column in table.items() if column.name == name]', NAMES),
    ('[column.name for column in table.values()]', NAMES),
    ('"TIME" in table, "NOPE" in table, 3 in table, None in table', (True, False, False, False)),
    ('table.get("NOPE")', None),
    ('table.get("TIME").name', 'TIME'),
    ('bool(table), table == table, table == dict(table)', (True, True, False)),
    ('table[0:10].nrows, len(table[0:10])', (10, len(NAMES))),
    ('table[-3:]["TIME"].shape', (3,)),
    ('table[[3, -1]].row_numbers.tolist()', [3, 209]),
    ('table[["TIME", "UVW"]].row_numbers.size, list(table[["TIME", "UVW"]])', (210, ['TIME', 'UVW'])),
    ('sorted(table[5]) == sorted(table), table[5]["SCAN_NUMBER"].dtype.kind', (True, 'i')),
    ('table[5]["FLAG_CATEGORY"]', None),
    ('table.attrs is table.keywords, table.attrs["MS_VERSION"]', (True, 2.0)),
    ('table["TIME"].attrs["QuantumUnits"].tolist()', ['s']),
    ('table["TIME"].unit, table["DATA"].unit, table["FLAG"].unit', ('s', 'Jy', None)),
    ('[type(cell) for cell in table["TIME"]][:1]', [np.float64]),
    ('len(list(table["DATA"])), table["DATA"].ndim', (210, 3)),
    ('list(table["FLAG_CATEGORY"])[:2]', [None, None]),
    ('table.subtables["ANTENNA"].nrows', 6),
    ('h5bridge.info(table).tables["."].rows', 210),
    ('h5bridge.info(table).summary["scans"][0]["interval"]', 10.),
    ('h5bridge.info(table.subtables["FIELD"]).summary', None),
]


@pytest.mark.parametrize('typed,got', GOT, ids=[typed for typed, _ in GOT])
def test_i_typed_i_got(typed, got, table):
    assert eval(typed, {'table': table, 'h5bridge': h5bridge}) == got


REFUSED = [
    ('table["ANTENNA"]', KeyError, r"subtables\['ANTENNA'\]"),
    ('table["DAT"]', KeyError, 'did you mean DATA'),
    ('table[["TIME", "DAT"]]', KeyError, 'did you mean DATA'),
    ('table.columns("UVW")["TIME"]', KeyError, 'not in this view'),
    ('table[None]', TypeError, 'not by None'),
    ('table[1.5]', TypeError, 'not by 1.5'),
    ('table[210]', IndexError, '210'),
    ('table[[0, 210]]', IndexError, '210'),
    ('table["TIME"][None]', IndexError, 'read an array'),
    ('table["TIME"].rows', AttributeError, 'rows'),
    ('table["TIME"].time("x")', IndexError, 'x'),
    ('os.fspath(table[0:3])', h5bridge.UsageError, 'view'),
    ('table["UVW"].time()', h5bridge.UsageError, 'uvw'),
    ('table["FLAG"].quantity()', h5bridge.UsageError, 'no unit'),
    ('table["TIME"].__array__(copy=False)', ValueError, 'copy'),
    ('table.subtables["ANTENNA"]["NAME"].__dlpack__()', BufferError, 'string'),
    ('h5bridge.to_hdf5(table, "/nowhere/x.h5", rows=slice(5, None))', h5bridge.UsageError, 'open_table'),
]


@pytest.mark.parametrize('typed,kind,words', REFUSED, ids=[typed for typed, _, _ in REFUSED])
def test_i_typed_and_was_told(typed, kind, words, table):
    with pytest.raises(kind, match=words):
        eval(typed, {'table': table, 'h5bridge': h5bridge, 'os': os})


def test_none_counts_as_the_default(tmp_path):
    """None is what an option is without it: no choice of columns, no end of waiting; never no lock."""
    made = h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5', columns=None, exclude=None, tables=None, where=None, rows=None, compress=None,
                            average=None, threads=None, max_memory=None, lock_timeout=None)
    assert made.rows == 210 and h5bridge.verify(DEMO, tmp_path / 'a.h5', where=None, lock_timeout=None)
    assert h5bridge.digest(DEMO, columns=None).main == made.digest
    with h5bridge.open_table(DEMO, lock_timeout=None) as waits, h5bridge.open_table(DEMO, lock=False) as free:
        assert waits._open.source.describe(0)['locked'] and not free._open.source.describe(0)['locked']


def test_chunks_are_bounded(table):
    for name in ('DATA', 'TIME', 'FLAG'):
        column, expected = table[name], table[name][:]
        pieces = list(column.iter_chunks(max_bytes=expected.nbytes // 7))
        assert len(pieces) > 6 and max(block.nbytes for _, block in pieces) <= expected.nbytes // 7
        assert np.concatenate([block for _, block in pieces]).tobytes() == expected.tobytes()
        assert all((block == expected[rows]).all() for rows, block in pieces)
    with pytest.raises(ValueError):
        list(table['FLAG_CATEGORY'].iter_chunks())


def test_other_libraries_take_columns(table):
    for name in ('DATA', 'TIME', 'FLAG', 'ANTENNA1'):
        assert np.from_dlpack(table[name]).tobytes() == table[name][:].tobytes()


def test_live_tables_are_mappings(tmp_path):
    main = live.Table({'TIME': live.Column('f8'), 'A': live.Column('i4')})
    with live.Writer(tmp_path / 'live.h5', {'MAIN': main}, every=None) as writer:
        writer.append('MAIN', TIME=[1., 2., 3.], A=[1, 2, 3])
        writer.commit()
        seen = live.Reader(tmp_path / 'live.h5')['MAIN']
        assert (len(seen), seen.nrows, list(seen), 'A' in seen, seen.get('B')) == (2, 3, ['TIME', 'A'], True, None)
        assert [(name, len(column)) for name, column in seen.items()] == [('TIME', 3), ('A', 3)]
        del seen


# ---- views -----------------------------------------------------------------------------------------------------------

def test_views(table, tmp_path):
    """Rows and columns of rows and columns, in tables and native files, also after pickling."""
    h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5')
    rng = np.random.default_rng(5)
    with h5bridge.open_table(tmp_path / 'a.h5') as native:
        for opened in (table, native):
            numbers = np.arange(210)
            mask = rng.random(210) < 0.3
            chosen = {'slice': slice(20, 150), 'steps': slice(200, 3, -7), 'list': [7, 3, 3, -1], 'mask': mask, 'none': [], 'all': slice(None)}
            for first in chosen.values():
                view, left = opened[first], numbers[first]
                for second in (slice(None), slice(1, None, 2), slice(None, None, -1), [0] if len(left) else []):
                    part, rows = view[second], left[second]
                    assert part.row_numbers.tolist() == rows.tolist() and part.is_view
                    for name in ('DATA', 'TIME', 'FLAG_ROW', 'UVW'):
                        assert part[name][:].tobytes() == opened[name][:][rows].tobytes()
                    assert part['DATA'][:, 2:5, 1].tobytes() == opened['DATA'][:][rows][:, 2:5, 1].tobytes()
                    assert [cell is None for cell in part['SIGMA_SPECTRUM'].cells()] == \
                        [cell is None for cell in opened['SIGMA_SPECTRUM'].cells(rows.tolist())]
                    assert part['SIGMA_SPECTRUM'].defined().tolist() == opened['SIGMA_SPECTRUM'].defined()[rows].tolist()
                    again = pickle.loads(pickle.dumps(part))
                    assert again.row_numbers.tolist() == rows.tolist() and again['TIME'][:].tobytes() == part['TIME'][:].tobytes()
                    again.close()
            assert opened.columns('UVW', 'TIME')[3:5].subtables['ANTENNA'].nrows == 6


# ---- measures --------------------------------------------------------------------------------------------------------

def test_measures_have_frames(table):
    assert table['TIME'].measure == h5bridge.Measure('epoch', 'UTC')
    assert table['UVW'].measure.frame == 'ITRF' and table['FLAG'].measure is None
    frequency = table.subtables['SPECTRAL_WINDOW']['CHAN_FREQ']
    assert frequency.measure.frame is None and frequency.measure.frame_column == 'MEAS_FREQ_REF'
    with ct.table(DEMO + '/SPECTRAL_WINDOW', ack=False) as theirs:
        codes, known = theirs.getcol('MEAS_FREQ_REF'), theirs.getcolkeyword('CHAN_FREQ', 'MEASINFO')
    names = dict(zip(known['TabRefCodes'], known['TabRefTypes']))
    assert frequency.frames().tolist() == [names[code] for code in codes]
    assert table.columns('UVW')['UVW'].frames([0, 1]).tolist() == ['ITRF', 'ITRF']


def epochs(path, unit, values, frames):
    """A table of epochs, with a frame for all rows or for each."""
    columns = [ct.makescacoldesc('T', 0.), ct.makescacoldesc('FRAME', '')]
    known = {'type': 'epoch', 'Ref': frames} if isinstance(frames, str) else {'type': 'epoch', 'VarRefCol': 'FRAME'}
    with ct.table(str(path), ct.maketabdesc(columns), nrow=len(values), ack=False) as made:
        made.putcolkeywords('T', {'QuantumUnits': np.array([unit]), 'MEASINFO': known})
        made.putcol('T', np.asarray(values, float))
        made.putcol('FRAME', [frames] * len(values) if isinstance(frames, str) else frames)
    return h5bridge.open_table(path)


@pytest.mark.parametrize('unit,seconds', [('s', 1), ('d', 86400)])
def test_times_are_those_of_astropy(unit, seconds, tmp_path):
    values = np.random.default_rng(3).uniform(-4e9, 7e9, 200) / seconds
    for number, (frame, scale) in enumerate({'UTC': 'utc', 'TAI': 'tai', 'TT': 'tt', 'TDB': 'tdb', 'UT1': 'ut1'}.items()):
        with epochs(tmp_path / f'{number}.tab', unit, values, frame) as opened:
            column = opened['T']
            expected = astropy.time.Time(values * seconds // 86400, values * seconds % 86400 / 86400, format='mjd', scale=scale)
            assert column.time().scale == scale and abs((column.time() - expected).sec).max() < 1e-6
            assert abs(column.datetime() - column.time().datetime64).max() <= np.timedelta64(1000, 'ns')
            assert column.datetime([0, 5]).tolist() == column.datetime()[[0, 5]].tolist()


def test_missing_times(tmp_path):
    with epochs(tmp_path / 'a.tab', 's', [5e9, np.nan, np.inf], 'UTC') as opened:
        assert np.isnat(opened['T'].datetime()).tolist() == [False, True, True]
    with epochs(tmp_path / 'b.tab', 's', [5e9, 1e12], 'UTC') as opened:
        with pytest.raises(h5bridge.UsageError, match='1678'):
            opened['T'].datetime()
    with epochs(tmp_path / 'c.tab', 's', [5e9, 5e9, 5e9], ['UTC', 'TAI', 'LAST']) as opened:
        assert opened['T'].time(1).scale == 'tai' and opened['T'].time([0]).scale == 'utc'
        with pytest.raises(h5bridge.UsageError, match='time scales'):
            opened['T'].time()
        with pytest.raises(h5bridge.UsageError, match='LAST'):
            opened['T'].time(2)


def test_quantities_are_those_of_astropy(table):
    """Of every column of the demo that has a unit."""
    count = 0
    for opened in (table, *table.subtables.values()):
        for name, column in opened.items():
            if column.unit is None or None in column.shape or not column.defined().all():
                continue
            found = column.quantity()
            assert found.unit == astropy.units.Unit(column.unit) and found.value.tobytes() == column[:].tobytes()
            count += 1
    assert count > 20
    assert table['INTERVAL'].quantity(3).to('min').value == pytest.approx(table['INTERVAL'][3] / 60)


def test_astropy_is_missed_by_name(table, monkeypatch):
    import sys
    for module in ('astropy.units', 'astropy.time'):
        monkeypatch.setitem(sys.modules, module, None)
    for call in (table['TIME'].time, table['TIME'].quantity):
        with pytest.raises(ImportError, match=r"pip install 'h5bridge\[astropy\]'"):
            call()
