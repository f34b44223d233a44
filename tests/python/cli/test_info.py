"""`info` against python-casacore: every MeasurementSet and calibration table of testdata/ and of the corpus, read from the table and from
its native file. The screen has 40 lines of 100 columns; what `--json` and the text say is the same. And `ls`, sorted and summed up.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time

import casacore.tables as ct
import numpy as np
import pytest

import support
from support import h5bridge, on_terminal

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
TESTDATA_SETS = [('demo', 'demo.ms'), ('twospw', 'twospw.ms')]

STOKES = dict(enumerate('I Q U V RR RL LR LL XX XY YX YY RX RY LX LY XR XL YR YL PP PQ QP QQ'.split(), 1))
FRAMES = 'REST LSRK LSRD BARY GEO TOPO GALACTO LGROUP CMB'.split()


def is_summarized(tables, root):
    """Whether a table of the manifest is one that listobs or listcal would show."""
    columns = tables[root].get('columns', {})
    prefix = '' if root == '.' else root + '/'
    return {'TIME', 'ANTENNA1'} <= set(columns) and any(prefix + name in tables for name in ('ANTENNA', 'FIELD', 'SPECTRAL_WINDOW'))


def corpus_sets():
    """(entry, path of the table in it) of each MeasurementSet and calibration table of the corpus."""
    return [(entry, root) for entry in support.corpus_entries() for root in support.roots(entry['tables'])
            if is_summarized(entry['tables'], root) and not any('error' in entry['tables'][t] for t in (root,))]


@pytest.fixture(scope='module')
def sets(tmp_path_factory):
    """sets(where, table): the paths of a table and of its native file, which is made once; no file if it cannot be converted."""
    folder = tmp_path_factory.mktemp('sets')

    @functools.cache
    def made(where, table):
        if isinstance(where, str):
            source = support.own_copy(where, table)
        else:
            [entry] = [entry for entry in support.corpus_entries() if entry['name'] == where[0]]
            place = folder / where[0]
            if not place.exists():
                place.mkdir()
                support.unpack(entry, place)
            source = os.path.join(place, where[0], table)
        out = folder / (re.sub(r'\W', '_', str(where) + table) + '.h5')
        h5bridge('to-hdf5', source, out, code=None)
        return source, out if out.exists() else None
    return made


def all_sets():
    found = [pytest.param(case, table, id=table) for case, table in TESTDATA_SETS]
    return found + [pytest.param((entry['name'],), root, id=entry['name']) for entry, root in corpus_sets()]


# ---- what python-casacore finds -------------------------------------------------------------------------------------

class Expected:
    """Facts of a table by python-casacore. What it cannot read is None."""

    def __init__(self, path):
        with ct.table(path, ack=False) as main:
            self.rows = main.nrows()
            self.names = main.colnames()
            keywords = main.getkeywords()
            self.paths = {name: value[7:] for name, value in keywords.items() if str(value).startswith('Table: ')}
            wanted = ('TIME', 'INTERVAL', 'SCAN_NUMBER', 'FIELD_ID', 'STATE_ID', 'DATA_DESC_ID', 'SPECTRAL_WINDOW_ID', 'FLAG_ROW')
            self.main = {name: self.column(main, name) for name in wanted}
            self.flags = [self.cell(main, 'FLAG', row) for row in range(main.nrows())] if 'FLAG' in self.names else None

    @staticmethod
    def column(table, name):
        if name not in table.colnames() or not table.nrows():
            return None
        try:
            return np.asarray(table.getcol(name)) if not table.isvarcol(name) else None
        except RuntimeError:
            return None

    @staticmethod
    def cell(table, name, row):
        try:
            return np.asarray(table.getcell(name, row)) if table.iscelldefined(name, row) else None
        except RuntimeError:
            return None

    def cells(self, subtable, name):
        """The cells of a column of a subtable, an empty list without it."""
        if subtable not in self.paths or not os.path.isdir(self.paths[subtable]):
            return []
        with ct.table(self.paths[subtable], ack=False) as table:
            if name not in table.colnames():
                return []
            if table.coldatatype(name) == 'string':
                try:
                    return list(table.getcol(name)) if table.nrows() else []
                except RuntimeError:
                    return [''] * table.nrows()
            return [self.cell(table, name, row) for row in range(table.nrows())]

    def frame(self):
        with ct.table(self.paths['FIELD'], ack=False) as table:
            keywords = table.getcolkeywords('PHASE_DIR').get('MEASINFO', {})
        return keywords.get('Ref', '') if 'VarRefCol' not in keywords else None

    def windows(self):
        """Number of the spectral window of each row."""
        if self.main['DATA_DESC_ID'] is None:
            return self.main['SPECTRAL_WINDOW_ID']
        numbers = [int(number) for number in self.cells('DATA_DESCRIPTION', 'SPECTRAL_WINDOW_ID')]
        return np.array([numbers[i] if 0 <= i < len(numbers) else -1 for i in self.main['DATA_DESC_ID']])

    def correlations(self, window):
        found = []
        types = self.cells('POLARIZATION', 'CORR_TYPE')
        for number, setup in zip(self.cells('DATA_DESCRIPTION', 'SPECTRAL_WINDOW_ID'),
                                 self.cells('DATA_DESCRIPTION', 'POLARIZATION_ID')):
            if number == window and setup < len(types) and types[int(setup)] is not None:
                found += [STOKES[int(code)] for code in types[int(setup)] if STOKES[int(code)] not in found]
        return found

    def flagged(self):
        """(fraction, unit) of what is flagged."""
        if self.flags is None or not any(cell is not None and cell.size for cell in self.flags):
            rows = self.main['FLAG_ROW']
            return None if rows is None else (rows.mean(), 'rows')
        rows = self.main['FLAG_ROW']
        known = [(cell, rows is not None and rows[row]) for row, cell in enumerate(self.flags) if cell is not None]
        return sum(cell.size if row else cell.sum() for cell, row in known) / sum(cell.size for cell, _ in known), 'elements'


def compare(found, expected, counts):
    """Every fact of the summary FOUND with what casacore read."""
    assert found['rows'] == expected.rows
    names = expected.cells('ANTENNA', 'NAME')
    assert [antenna['name'] for antenna in found['antennas']] == names
    diameters = [cell if cell is None else float(cell) for cell in expected.cells('ANTENNA', 'DISH_DIAMETER')]
    assert [antenna['diameter'] for antenna in found['antennas']] == (diameters or [None] * len(names))
    for facts, column in (('telescope', 'TELESCOPE_NAME'), ('observer', 'OBSERVER'), ('project', 'PROJECT')):
        if texts := expected.cells('OBSERVATION', column):
            assert [observation[facts] for observation in found['observations']] == texts
    names, codes = expected.cells('FIELD', 'NAME'), expected.cells('FIELD', 'CODE')
    assert [field['name'] for field in found['fields']] == names
    assert [field['code'] for field in found['fields']] == codes
    for field, cell in zip(found['fields'], expected.cells('FIELD', 'PHASE_DIR')):
        assert cell is None and field['direction'] is None or np.array_equal(field['direction'], cell[0]), field
        assert expected.frame() in (None, field['frame'])
        counts['fields'] += 1
    frequencies, widths = expected.cells('SPECTRAL_WINDOW', 'CHAN_FREQ'), expected.cells('SPECTRAL_WINDOW', 'CHAN_WIDTH')
    spws = found['spectral_windows']
    assert [spw['channels'] for spw in spws] == [int(n or 0) for n in expected.cells('SPECTRAL_WINDOW', 'NUM_CHAN')]
    assert [spw['name'] for spw in spws] == expected.cells('SPECTRAL_WINDOW', 'NAME')
    assert [spw['bandwidth'] for spw in spws] == [n if n is None else float(n) for n in expected.cells('SPECTRAL_WINDOW', 'TOTAL_BANDWIDTH')]
    for n, spw in enumerate(spws):
        counts['spectral windows'] += 1
        if frequencies and frequencies[n] is not None and frequencies[n].size:
            assert (spw['first'], spw['last']) == (frequencies[n][0], frequencies[n][-1])
        if widths and widths[n] is not None and widths[n].size:
            assert spw['width'] == widths[n][0]
        assert spw['correlations'] == expected.correlations(n)
        code = expected.cells('SPECTRAL_WINDOW', 'MEAS_FREQ_REF')[n]
        assert spw['frame'] == (FRAMES[code] if code is not None and 0 <= code < len(FRAMES) else '')
    times, main = expected.main['TIME'], expected.main
    assert found['time_range'] == (None if times is None else [times.min(), times.max()])
    if main['SCAN_NUMBER'] is None:
        assert found['scans'] == []
        return
    modes, windows = expected.cells('STATE', 'OBS_MODE'), expected.windows()
    assert [scan['number'] for scan in found['scans']] == sorted(set(main['SCAN_NUMBER'].tolist()))
    for scan in found['scans']:
        counts['scans'] += 1
        rows = main['SCAN_NUMBER'] == scan['number']
        assert scan['rows'] == rows.sum()
        assert scan['time_range'] == [times[rows].min(), times[rows].max()]
        mean = None if main['INTERVAL'] is None else main['INTERVAL'][rows].mean()
        assert scan['interval'] == (mean if mean is None else pytest.approx(mean, rel=1e-12))
        assert scan['fields'] == [n for n in np.unique(main['FIELD_ID'][rows]).tolist() if n >= 0]
        assert windows is None or scan['spectral_windows'] == [n for n in np.unique(windows[rows]).tolist() if n >= 0]
        if main['STATE_ID'] is not None:
            intents = {mode for state in np.unique(main['STATE_ID'][rows]) if 0 <= state < len(modes)
                       for mode in modes[state].split(',') if mode.strip()}
            assert set(scan['intents']) == {intent.strip() for intent in intents}
    for kind, numbers in (('fields', main['FIELD_ID']), ('spectral_windows', windows)):
        if numbers is not None:
            assert [item['rows'] for item in found[kind]] == [(numbers == n).sum() for n in range(len(found[kind]))]
    flagged = expected.flagged()
    if flagged is not None:
        assert found['flagged']['of'] == flagged[1] and found['flagged']['fraction'] == pytest.approx(flagged[0], abs=1e-12)


@pytest.mark.parametrize('where,table', all_sets())
def test_as_casacore_finds_it(where, table, sets, counts):
    source, native = sets(where, table)
    expected = Expected(source)
    for path in filter(None, (source, native)):
        document = json.loads(h5bridge('info', '--json', path).stdout)
        compare(document['summary'], expected, counts)
        counts['table' if path == source else 'native file'] += 1
        check_screen(h5bridge('info', path).stdout, document)


# ---- the screen -----------------------------------------------------------------------------------------------------

def listed(text, title):
    """(total, lines shown, lines said to be missing) of a list on the screen."""
    lines = text.splitlines()
    [start] = [n for n, line in enumerate(lines) if re.match(re.escape(title) + r' \(', line)]
    total = int(re.match(r'[^(]*\(([\d,]+)', lines[start])[1].replace(',', ''))
    section = []
    for line in lines[start + 1:]:
        if not line.startswith('  '):
            break
        section.append(line)
    more = re.match(r' +\.\.\. (\d+) more; ', section[-1]) if section else None
    return total, section[1:-1] if more else section[1:], int(more[1]) if more else 0


def check_screen(text, document):
    """40 lines of 100 columns, and the facts of the document."""
    lines = text.splitlines()
    assert 2 < len(lines) <= 40 and max(map(len, lines)) <= 100, text
    assert '\x1b' not in text
    main = document['tables']['.']
    rows = 'row' if main['nrow'] == 1 else 'rows'
    assert '%s %s' % (format(main['nrow'], ','), rows) in lines[0]
    if 'summary' not in document:
        return
    summary = document['summary']
    for title, key, name in (('Fields', 'fields', 'name'), ('Spectral windows', 'spectral_windows', 'id'), ('Scans', 'scans', 'number')):
        if not summary[key]:
            assert not re.search('^' + title, text, re.MULTILINE)
            continue
        total, shown, more = listed(text, title)
        assert total == len(summary[key]) == len(shown) + more and shown, text
        for line, item in zip(shown, summary[key]):
            assert str(item[name])[:6] in line, (line, item)
    for observation in summary['observations'][:1]:
        assert observation['telescope'].strip() in text
    if summary['time_range']:
        day, clock = summary['time_range_utc'][0].rstrip('Z').split('T')
        assert '%s %s' % (day, clock) in text
    if summary['antennas']:
        assert re.search(r'Antennas +%d: ' % len(summary['antennas']), text)
    if summary['flagged']:
        assert '%.2f %% of the %s' % (100 * summary['flagged']['fraction'], summary['flagged']['of']) in text
    for finding in document.get('attention', [])[:1]:
        assert finding['text'][:20] in text


@pytest.mark.parametrize('case', support.cases())
def test_every_table_fits_a_screen(case):
    for root in support.roots(support.expected(case)['tables']):
        path = os.path.join(support.TESTDATA, case, root)
        process = h5bridge('info', path, code=None)
        if process.returncode == 0:
            check_screen(process.stdout, json.loads(h5bridge('info', '--json', path).stdout))
            for option in ('--columns', '--storage', '--keywords'):
                assert h5bridge('info', path, option).stdout


@pytest.fixture(scope='module')
def crowded(tmp_path_factory):
    """A MeasurementSet with 300 fields, 130 antennas, 64 windows and 200 scans, and strings that a terminal would obey."""
    path = str(tmp_path_factory.mktemp('crowded') / 'crowded.ms')
    shutil.copytree(DEMO, path)
    def fill(name, rows):
        with ct.table(os.path.join(path, name), ack=False, readonly=False) as table:
            for row in range(table.nrows(), rows):
                table.copyrows(table, 0, row, 1)
            if 'NAME' in table.colnames():
                table.putcol('NAME', ['%s-%03d' % (name.lower(), row) for row in range(rows)])
    fill('FIELD', 300)
    fill('ANTENNA', 130)
    fill('SPECTRAL_WINDOW', 64)
    with ct.table(os.path.join(path, 'OBSERVATION'), ack=False, readonly=False) as table:
        table.putcell('OBSERVER', 0, 'a\x1b[31mred\nline')
    with ct.table(path, ack=False, readonly=False) as table:
        table.putcol('SCAN_NUMBER', np.arange(table.nrows(), dtype='i4'))
    return path


def test_long_lists_are_shortened(crowded, tmp_path, counts):
    h5bridge('to-hdf5', crowded, tmp_path / 'x.h5')
    for path in (crowded, tmp_path / 'x.h5'):
        text = h5bridge('info', path).stdout
        document = json.loads(h5bridge('info', '--json', path).stdout)
        compare(document['summary'], Expected(crowded), counts)
        assert '\x1b' not in text and len(text.splitlines()) == 40
        check_screen(text, document)
        assert listed(text, 'Fields')[2] > 250
        whole = h5bridge('info', path, '--table', 'FIELD', '--table', 'ANTENNA').stdout
        assert len(listed(whole, 'Fields')[1]) == 300 and len(listed(whole, 'Antennas')[1]) == 130
        assert 'field-299' in whole and 'antenna-129' in whole and 'more' not in whole
        assert len(listed(h5bridge('info', path, '--table', 'MAIN').stdout, 'Scans')[1]) == 210


def test_width_and_colour_follow_the_terminal(crowded):
    for columns in (60, 80, 100, 140):
        sent = on_terminal('info', crowded, columns=columns, lines=50)
        assert '\x1b[1m' in sent and '\x1b[31m' not in sent
        plain = re.sub(r'\x1b\[[0-9;]*m', '', sent).splitlines()
        assert max(map(len, plain)) <= columns and len(plain) == 40
        assert on_terminal('info', crowded, columns=columns, lines=50, NO_COLOR='1').splitlines() == plain
    assert '\x1b' not in h5bridge('info', crowded).stdout


# ---- deeper ---------------------------------------------------------------------------------------------------------

def test_options_go_deeper(converted):
    native = converted('demo', 'demo.ms')
    for path in (DEMO, native):
        default = h5bridge('info', path).stdout
        assert 'FLAG_CATEGORY' not in default and 'BUCKETSIZE' not in default and 'EXPOSURE' not in default
        columns = h5bridge('info', path, '--columns').stdout
        with ct.table(DEMO, ack=False) as table:
            for name in table.colnames():
                assert re.search(r'^  %s ' % name, columns, re.MULTILINE), name
        assert re.search(r'^  FLAG_CATEGORY .* empty ', columns, re.MULTILINE)
        assert 'POLARIZATION_ID' in columns
        only = h5bridge('info', path, '--columns', '--table', 'ANTENNA').stdout
        assert 'DISH_DIAMETER' in only and 'POLARIZATION_ID' not in only
        names = re.findall(r'^  (\w+) ', h5bridge('info', path, '--columns', '--table', 'MAIN', '--sort', 'name').stdout, re.MULTILINE)[1:]
        assert names == sorted(names) and len(names) == 24
        keywords = h5bridge('info', path, '--keywords').stdout
        assert re.search(r'MS_VERSION +2', keywords) and 'UVW QuantumUnits' in keywords and 'ANTENNA' in keywords
        missing = h5bridge('info', path, '--table', 'ANTENA', code=support.DAMAGED).stderr
        assert 'no table ANTENA; did you mean ANTENNA?' in missing
        unlike = h5bridge('info', path, '--table', 'XYZ', code=support.DAMAGED).stderr
        assert 'XYZ' in unlike and 'SPECTRAL_WINDOW' in unlike
    storage = h5bridge('info', DEMO, '--storage').stdout
    assert 'BUCKETSIZE=32768' in storage and 'hypercube [210, 16, 4] in tiles [32, 16, 4]' in storage
    storage = h5bridge('info', native, '--storage').stdout
    assert re.search(r'DATA: \[210, 16, 4\] in chunks .*(fixed_array|single|implicit), ', storage)


def test_sizes_are_those_of_the_files():
    """Bytes of each manager, and those of a column that has one of its own."""
    document = json.loads(h5bridge('info', '--json', DEMO).stdout)['tables']['.']
    with ct.table(DEMO, ack=False) as table:
        managers = {m['SEQNR']: m for m in table.getdminfo().values()}
    for manager in document['managers']:
        files = [f for f in os.listdir(DEMO) if re.match(r'table\.f%d(\D|$)' % manager['sequence'], f)]
        assert manager['bytes'] == sum(os.path.getsize(os.path.join(DEMO, f)) for f in files) > 0
        assert managers[manager['sequence']]['NAME'] == manager['name']


# ---- attention ------------------------------------------------------------------------------------------------------

def attention(path):
    """{kind: texts} of the findings; the screen shows the same."""
    found = json.loads(h5bridge('info', '--json', path).stdout).get('attention', [])
    text = h5bridge('info', path).stdout
    assert ('\nAttention\n' in text) == bool(found)
    kinds = {}
    for finding in found:
        assert finding['text'][:20] in text and finding['kind'] in (text if 'part' in finding else finding['kind'])
        kinds.setdefault(finding['kind'], []).append(' '.join([finding.get('part', ''), finding['text']]))
    return kinds


def test_nothing_needs_attention(converted):
    assert attention(support.own_copy('demo', 'demo.ms')) == {}
    assert attention(converted('demo', 'demo.ms')) == {}


def test_not_supported_and_not_converted(tmp_path):
    source = support.unread_expressions(tmp_path / 't.tab')
    kinds = attention(source)
    assert set(kinds) == {'not supported'} and any('VirtualTaQLColumn' in text for text in kinds['not supported'])
    h5bridge('to-hdf5', source, tmp_path / 'x.h5')
    kinds = attention(tmp_path / 'x.h5')
    assert set(kinds) == {'not converted'} and any('VirtualTaQLColumn' in text for text in kinds['not converted'])


def test_damaged():
    source = support.own_copy('demo', 'demo.ms')
    shutil.rmtree(os.path.join(source, 'FIELD'))
    with ct.table(source, ack=False) as table:
        sequence = {m['NAME']: m['SEQNR'] for m in table.getdminfo().values()}['TiledDATA']
    os.remove(os.path.join(source, 'table.f%d' % sequence))
    kinds = attention(source)
    assert set(kinds) == {'damaged'}
    assert any('FIELD' in text for text in kinds['damaged']) and any('MAIN/DATA' in text for text in kinds['damaged'])


def test_open_elsewhere():
    source = support.own_copy('demo', 'demo.ms')
    writer = subprocess.Popen([sys.executable, '-c', 'import casacore.tables as ct, sys; t = ct.table(sys.argv[1], ack=False, readonly=False, '
                               'lockoptions="auto"); t.unlock(); print("open", flush=True); sys.stdin.read()', source],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b'open\n'
    assert set(attention(source)) == {'open'}
    writer.communicate()
    assert attention(source) == {}


def test_stale(tmp_path):
    source = shutil.copytree(DEMO, tmp_path / 'my.ms')
    h5bridge('to-hdf5', source, tmp_path / 'my.h5')
    assert attention(tmp_path / 'my.h5') == {}
    time.sleep(0.02)
    with ct.table(str(source), ack=False, readonly=False) as table:
        table.putcell('EXPOSURE', 0, 7.)
    kinds = attention(tmp_path / 'my.h5')
    assert set(kinds) == {'stale'} and 'my.ms' in kinds['stale'][0]


def test_live(tmp_path):
    source = support.own_copy('demo', 'demo.ms')
    h5bridge('follow', source, tmp_path / 'live.h5', '--until-closed', '--idle', '100ms')
    kinds = attention(tmp_path / 'live.h5')
    assert set(kinds) == {'live'} and 'finalize' in kinds['live'][0]
    document = json.loads(h5bridge('info', '--json', tmp_path / 'live.h5').stdout)
    assert document['kind'] == 'MeasurementSet' and document['summary']['rows'] == 210


def test_other_kinds(tmp_path):
    path = str(tmp_path / 'x.im')
    images = pytest.importorskip('casacore.images')
    image = images.image(path, values=np.zeros((4, 5), 'f4'))
    image.unlock()
    del image
    assert json.loads(h5bridge('info', '--json', path).stdout)['kind'] == 'image'
    text = h5bridge('info', path).stdout
    assert 'image' in text.splitlines()[0] and '[1, 4, 5]' in text or '[4, 5]' in text


# ---- speed ----------------------------------------------------------------------------------------------------------

def test_a_sample_of_flag_row_is_not_combined_with_flag(tmp_path):
    """Of more than 2^20 rows, FLAG_ROW is read in blocks of rows here and there, but FLAG of all rows if the cells are small."""
    path, rows = str(tmp_path / 'long.ms'), 1_100_000
    columns = [ct.makescacoldesc('TIME', 0.), ct.makescacoldesc('ANTENNA1', 0), ct.makescacoldesc('ANTENNA2', 0),
               ct.makescacoldesc('FLAG_ROW', False), ct.makearrcoldesc('FLAG', False, 2, shape=[1, 1])]
    flag_row = np.arange(rows) >= 1_050_000
    with ct.table(path, ct.maketabdesc(columns), nrow=rows, ack=False) as table:
        table.putcol('FLAG', np.zeros((rows, 1, 1), bool))
        table.putcol('FLAG_ROW', flag_row)
        shutil.copytree(os.path.join(DEMO, 'FIELD'), os.path.join(path, 'FIELD'))
        table.putkeyword('FIELD', 'Table: %s/FIELD' % path)
    found = json.loads(h5bridge('info', '--json', path).stdout)['summary']['flagged']
    assert found['of'] == 'rows' and found['fraction'] == pytest.approx(flag_row.mean(), abs=0.02)


def bytes_read(source):
    """By `info`, from any file. A process that has waited for a child counts its bytes."""
    script = '"$0" info "$1" >/dev/null && cat /proc/$$/io'
    process = subprocess.run(['sh', '-c', script, support.H5BRIDGE, source], check=True, capture_output=True, text=True)
    return int(re.search(r'rchar: (\d+)', process.stdout)[1])


@pytest.mark.skipif(not support.LONG, reason='1 GB: H5BRIDGE_LONG=1')
def test_a_gigabyte_is_not_read(tmp_path):
    """Whatever the size: headers, small columns, and samples of large ones."""
    path = str(tmp_path / 'big.ms')
    subprocess.run([sys.executable, os.path.join(support.ROOT, 'scripts', 'bench.d', 'make_ms.py'), path, '800', '28', '64'],
                   check=True, stdout=subprocess.DEVNULL)
    h5bridge('to-hdf5', path, tmp_path / 'big.h5')
    for source in (path, tmp_path / 'big.h5'):
        found = bytes_read(source)
        print('%s: %d bytes read' % (source, found))
        assert 0 < found < 8 << 20


# ---- ls -------------------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp('packed') / 'packed.ms'
    h5bridge('pack', DEMO, path, '--format', 'multifile')
    return path


def sizes(text):
    """[[(size, name)]] of the files of each directory or container in the text."""
    found = []
    for line in text.splitlines():
        file = re.match(r' +(\d+)  (\S+)  ', line + '  ')
        if file:
            found[-1].append((int(file[1]), file[2]))
        else:
            found.append([])
    return found


def test_ls_sorts(packed):
    plain = sizes(h5bridge('ls', packed).stdout)
    assert sum(map(len, plain)) > 50
    by_size = sizes(h5bridge('ls', packed, '-S').stdout)
    assert by_size == [sorted(files, key=lambda file: -file[0]) for files in plain] != plain
    assert sizes(h5bridge('ls', packed, '--sort', 'size', '-r').stdout) == [files[::-1] for files in by_size]
    assert sizes(h5bridge('ls', packed, '--sort', 'name').stdout) == [sorted(files, key=lambda file: file[1]) for files in plain]
    document = json.loads(h5bridge('ls', packed, '--sort', 'stored', '--json').stdout)
    def check(listing):
        stored = [file['stored_bytes'] for file in listing['files']]
        assert stored == sorted(stored, reverse=True)
        list(map(check, listing['nested']))
    check(document)
    h5bridge('ls', packed, '--sort', 'colour', code=support.USAGE)


def test_ls_sums_up():
    """The files and bytes of find and du; without a container, each file takes what it has."""
    found = subprocess.run(['find', '-L', DEMO, '-type', 'f', '-printf', '%s\n'], capture_output=True, text=True, check=True).stdout.split()
    count, total = len(found), sum(map(int, found))
    line = '%12d  total of %d files, %d stored' % (total, count, total)
    assert h5bridge('ls', DEMO, '--summarize').stdout.strip() == line.strip()
    text = h5bridge('ls', DEMO, '-c').stdout
    assert text.splitlines()[-1].strip() == line.strip() and text.startswith(h5bridge('ls', DEMO).stdout)
    human = h5bridge('ls', DEMO, '-S', '--human-readable').stdout
    assert re.search(r'^ +[\d.,]+ KiB  table\.f', human, re.MULTILINE)
