"""`h5bridge serve` beside h5grove 4.0: the same requests to both, answers compared by what they mean."""
import concurrent.futures
import io
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import h5py
import numpy as np
import pytest
import tifffile

import grove
import support

H5GROVE = os.path.join(support.ROOT, 'scripts', 'bench.d', 'peer_h5grove.py')

# Where the two differ on purpose: which requests, what h5grove answers and what h5bridge does, why, and a check of our body where
# both have one. A difference that is not here fails, and so does one that is no more.
NUMBERS = 'i1|u1|i2|u2|i8|u8|be_i2|be_u8|bool|boolscalar|enum|be_enum|int_scalar|bitfield|cube'
TEXTS = 'vlen_str|vlen_ascii|fixed_str|fixed_utf8|spaces|bad_utf8|str_scalar|arr_str'
OTHERS = 'compound|nested|text_compound|opaque|vlen|vlen_vlen|ref|refs|regions|empty'
ONE_AXIS = 'nonfinite|nonfinite4|c8nan|enum|be_enum|bitfield'
DIFFERENCES = [
    (r'attr key missing', 500, 404, 'h5grove fails on an attribute that is missing'),
    (r'attr /links/broken|paths /links/broken|data /links/(extbroken|broken)', 500, 404, 'it has no words for a link that leads nowhere'),
    (r'(data|stats) (group|root)|paths rev /z', 500, 422, 'it has no words for a group where a dataset is needed, or the reverse'),
    (r'(data|stats) committed.*', 500, 422, 'a type has no values'),
    (r'not hdf5', 500, 422, 'it has no words for a file that is not HDF5'),
    (r'inner traversal', 200, 404, 'it follows .. in the name of a file'),
    (r'loop (meta /self all|paths all|data)|paths links all', 500, 404, 'it has no words for links in a circle, or to files that are missing'),
    (r'loop (meta / .*|meta /self only_valid|paths)', 500, 200, 'a link in a circle takes the whole group with it', 'loop'),
    (r'data spaces bin', 200, 200, 'it gives the strings of h5py, padded with NUL, for the bytes of the file', b'ab    c   '),
    (r'data regions (json|flat)', 200, 200, 'h5py leaves out a bracket',
     ['<HDF5 region reference>', '<HDF5 region reference (null)>']),
    (r'data f16 tiff', 200, 422, 'numbers of 128 bits, which programs that show images do not read'),
    (r'data cube tiff', 200, 422, 'an image has two axes: it writes several'),
    (r'data cube csv( safe)?|sel \[::2,::2,1::2\] cube csv', 500, 422, 'a table has two axes'),
    (r'sel \[(0|-1|0,:|9|:,-1)\] image tiff', 500, 422, 'an image has two axes'),
    (r'sel \[(5:2|0,0:0)\] image tiff', 200, 422, 'an image without points is not one'),
    (r'data (be_\w+) (json|flat)', 500, 200, 'its encoder has no big-endian arrays', 'h5py'),
    (r'data bad_utf8 (json|flat)', 500, 200, 'its encoder has no strings that are not UTF-8', ['��', 'd']),
    (r'data (%s) tiff' % ONE_AXIS, 500, 422, 'an image has two axes'),
    (r'data (vlen_str|vlen_ascii|str_scalar|vlen|vlen_vlen|ref|refs|regions|text_compound|empty) bin', 200, 422,
     'it gives pointers of its process as bytes, and the text of a scalar'),
    (r'data noelem tiff', 200, 422, 'an image without points is not one'),
    (r'stats (%s|%s)' % (TEXTS, OTHERS), 500, 422, 'it has no words for what is not a number'),
    (r'stats (c8|c16|be_c8|cplx_scalar)', 200, 422, 'it drops the imaginary part, and cuts the real one to an integer'),
    (r'stats c8nan', 500, 422, 'it has no integer for NaN'),
    (r'stats (%s)' % NUMBERS, 200, 200, 'it cuts the mean and the deviation of integers to integers', 'integers'),
    (r'stats (nonfinite|nonfinite4|f16)', 200, 200, 'its squares overflow in the type of the file', 'overflow'),
    (r'sel \[(::-1|0,0,0|\.\.\.|a|0\.5|1,|0:1:0|)\] .*|sel \[9\] json', 500, 422, 'it has no words for a wrong selection'),
    (r'sel \[(0,0,0,0)\] cube.*|sel \[.*\] on scalar|sel \[0,0\] on array|sel \[.*\] on empty', 500, 422, 'as above'),
]


def start(command, ready):
    """Starts a server and returns it when READY(process) has its address."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return process, ready(process)
    except BaseException:
        process.kill()
        raise


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=10)
    finally:
        process.kill()
        process.communicate()


def start_h5grove(folder):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]

    def ready(process):
        base = 'http://127.0.0.1:%d' % port
        for _ in range(600):
            assert process.poll() is None, process.communicate()
            try:
                urllib.request.urlopen(base + '/').close()
                return base
            except OSError:
                time.sleep(0.1)
        raise AssertionError('h5grove does not begin')
    return start([sys.executable, H5GROVE, str(folder), str(port)], ready)


def start_ours(folder, *words):
    def ready(process):
        line = process.stdout.readline()
        assert line, process.communicate()
        return json.loads(line)['url'].rstrip('/') + '/api'
    return start([support.H5BRIDGE, 'serve', str(folder), '--no-token', '--port', '0', '--json', *words], ready)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('served')
    grove.make(folder)
    return folder


@pytest.fixture(scope='module')
def h5grove(folder):
    process, base = start_h5grove(folder)
    yield base
    stop(process)


@pytest.fixture(scope='module')
def ours(folder):
    process, base = start_ours(folder)
    yield base
    stop(process)


class Answer:
    def __init__(self, base, address, method='GET'):
        request = urllib.request.Request(base + address, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            self.status, self.body = answer.status, answer.read()
            self.kind = (answer.headers.get('content-type') or '').split(';')[0]
            self.disposition = answer.headers.get('content-disposition')

    def json(self):
        def twice(pairs):
            assert len({key for key, _ in pairs}) == len(pairs), pairs
            return dict(pairs)
        return json.loads(self.body, object_pairs_hook=twice)

    def __repr__(self):
        return '%d %s %r' % (self.status, self.kind, self.body[:200])


def same_json(a, b, tolerance):
    """By value: numbers as float32 or better, whatever the order of keys."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None or isinstance(a, str):
        return type(a) is type(b) and a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        with np.errstate(over='ignore'):
            alike = np.float32(a) == np.float32(b) and np.isfinite(np.float32(a))
        return a == b or bool(alike) or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(same_json(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and set(a) == set(b) and all(same_json(a[key], b[key], tolerance) for key in a)
    return False


def csv_numbers(text):
    number = r'[-+]?(?:nan|inf|[0-9.]+(?:e[-+][0-9]+)?)'
    return [[[float(n) for n in re.findall(number, cell)] for cell in line.split(',')] for line in text.decode().splitlines()]


def same(theirs, ours, address):
    """Whether two answers mean the same."""
    if theirs.status >= 400 or ours.status >= 400:
        return theirs.status == ours.status
    if (theirs.kind, theirs.disposition) != (ours.kind, ours.disposition):
        return address == '/' and theirs.body == ours.body
    if 'json' in theirs.kind:
        stats = address.startswith('/stats')
        document = theirs.json()
        if address.startswith('/meta') and 'children' in document:
            # names that begin with _ are last here: a reader looks for others
            document['children'].sort(key=lambda child: child['name'].startswith('_'))
        return same_json(document, ours.json(), 1e-2 if stats and 'f2' in address else 1e-5 if stats else 0)
    if 'tiff' in theirs.kind:
        a, b = (tifffile.imread(io.BytesIO(answer.body)) for answer in (theirs, ours))
        return np.array_equal(a, b, equal_nan=True)
    if 'csv' in theirs.kind:
        return str(csv_numbers(theirs.body)) == str(csv_numbers(ours.body))
    if theirs.body[:6] == b'\x93NUMPY':
        a, b = (np.load(io.BytesIO(answer.body)) for answer in (theirs, ours))
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return theirs.body == ours.body


def plain(value):
    """What JSON makes of a value of h5py."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, (complex, np.complexfloating)):
        return [plain(value.real), plain(value.imag)]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_ours(check, name, theirs, ours, folder):
    """Whether our answer is right where h5grove has another one."""
    if check == 'h5py':
        with h5py.File(folder / grove.FILE, 'r') as file:
            values = file['types'][name.split()[1]][()]
        return same_json(plain(values.ravel() if name.endswith('flat') else values), ours.json(), 0)
    if check in ('integers', 'overflow'):
        with h5py.File(folder / grove.FILE, 'r') as file:
            values = np.asarray(file['types'][name.split()[1]][()]).astype('g').ravel()
        values = values[np.isfinite(values)]
        with np.errstate(over='ignore'):
            expected = {'mean': plain(float(values.mean())), 'std': plain(float(values.std()))}
        found = ours.json()
        if check == 'overflow' and found['std'] is None:
            # above what a double holds when it is squared
            expected['std'] = None
        rest = {key: value for key, value in found.items() if key not in expected}
        others = {key: value for key, value in theirs.json().items() if key not in expected}
        return same_json(rest, others, 1e-6) and same_json(expected, {key: found[key] for key in expected}, 1e-6)
    if check == 'loop':
        found = ours.json()
        children = {child['name']: child['kind'] for child in found.get('children', [])} if isinstance(found, dict) else {}
        link = {'kind': 'soft_link', 'name': 'self', 'target_path': '/self'}
        return found in (['/', '/one', '/self'], link) or children == {'one': 'dataset', 'self': 'soft_link'}
    return (ours.body if isinstance(check, bytes) else ours.json()) == check


def difference(name):
    found = [entry for entry in DIFFERENCES if re.fullmatch(entry[0], name)]
    assert len(found) <= 1, (name, found)
    return found[0] if found else None


def test_same_answers_as_h5grove(h5grove, ours, folder, counts):
    wrong, used = [], set()
    for name, address in grove.cases():
        method = 'POST' if name == 'post' else 'GET'
        a, b = Answer(h5grove, address, method), Answer(ours, address, method)
        if b.status >= 400 and not (b.kind == 'application/json' and b.json().get('message')):
            wrong.append('%s: no message in %s' % (name, b))
        listed = difference(name)
        if same(a, b, address):
            counts['alike'] += 1
        elif listed and listed[1:3] == (a.status, b.status) and (
                len(listed) == 4 or check_ours(listed[4], name, a, b, folder)):
            counts['different on purpose'] += 1
            used.add(listed[0])
        else:
            wrong.append('%s (%s): %s / %s' % (name, address, a, b))
    assert not wrong, '%d\n%s' % (len(wrong), '\n'.join(wrong))
    assert used == {entry[0] for entry in DIFFERENCES}


def paths_below(base, file):
    return Answer(base, grove.url('/paths', file=file)).json()


def check_file(h5grove, ours, file, counts):
    """Compares everything in a file."""
    paths = Answer(h5grove, grove.url('/paths', file=file))
    assert same(paths, Answer(ours, grove.url('/paths', file=file)), '/paths')
    for path in paths.json():
        addresses = [grove.url(request, file=file, path=path) for request in ('/meta', '/attr')]
        meta = Answer(h5grove, addresses[0]).json()
        if meta['kind'] == 'dataset' and 0 < np.prod(meta['shape']) < 200_000:
            rows = {'selection': '-7::2'} if meta['shape'] else {}
            addresses += [grove.url('/data', file=file, path=path, **rows)]
            if meta['type']['dtype'] != '|O':
                addresses += [grove.url('/data', file=file, path=path, format='bin', **more)
                              for more in ({}, rows, {'selection': ':,::2'} if len(meta['shape']) > 1 else {})]
        for address in addresses:
            a, b = Answer(h5grove, address), Answer(ours, address)
            # its encoder has no big-endian arrays
            is_big = meta['kind'] == 'dataset' and str(meta['type']['dtype']).startswith('>')
            if is_big and address.startswith('/data') and 'format' not in address:
                assert a.status == 500 and b.status == 200, (address, a, b)
            else:
                assert same(a, b, address), (address, a, b)
            counts[address.split('?')[0]] += 1



def converted_cases():
    """Tables of testdata of different forms: the first of each folder is enough."""
    found = []
    for case in sorted(os.listdir(support.TESTDATA)):
        folder = os.path.join(support.TESTDATA, case)
        if os.path.isdir(folder):
            tables = [name for name in sorted(os.listdir(folder)) if os.path.isfile(os.path.join(folder, name, 'table.dat'))]
            found += [(case, name) for name in tables[:1]]
    return found[::4]


@pytest.mark.parametrize('case, table', converted_cases(), ids=lambda part: part)
def test_converted_files(case, table, converted, folder, h5grove, ours, counts):
    name = '%s-%s.h5' % (case, table)
    shutil.copy(converted(case, table), folder / name)
    check_file(h5grove, ours, name, counts)


def test_large_values_come_whole(folder, ours):
    """Many pieces: of contiguous values, of chunks that pieces cut, of strings; selections with strides on every axis."""
    values = np.random.default_rng(2).normal(size=(1200, 50, 60)).astype('f4')
    texts = np.array(['row %d' % row + row % 7 * 'ä' for row in range(30_000)], dtype=object)
    with h5py.File(folder / 'large.h5', 'w') as file:
        file['plain'] = values
        file.create_dataset('chunks', data=values, chunks=(100, 20, 60), compression='gzip', compression_opts=1)
        file.create_dataset('texts', data=texts, dtype=h5py.string_dtype())
        file['complex'] = values[:100].astype('c8') * (1 + 0.5j)
    for path in ['/plain', '/chunks']:
        address = grove.url('/data', file='large.h5', path=path, format='bin')
        assert Answer(ours, address).body == values.tobytes()
        for selection, index in [('3:1100:7,::3,5::2', np.s_[3:1100:7, ::3, 5::2]), (':,7', np.s_[:, 7]), (':,:,-1', np.s_[:, :, -1]),
                                 ('1199', np.s_[1199])]:
            address = grove.url('/data', file='large.h5', path=path, format='bin', selection=selection)
            assert Answer(ours, address).body == values[index].tobytes(), (path, selection)
        address = grove.url('/data', file='large.h5', path=path, selection='::2')
        found = np.array(Answer(ours, address).json(), 'f4')
        assert np.array_equal(found, values[::2])
        stats = Answer(ours, grove.url('/stats', file='large.h5', path=path)).json()
        assert math.isclose(stats['std'], values.astype('f8').std(), rel_tol=1e-9)
        assert math.isclose(stats['mean'], values.astype('f8').mean(), rel_tol=1e-9) and stats['max'] == values.max()
    assert Answer(ours, grove.url('/data', file='large.h5', path='/texts')).json() == list(texts)
    numbers = np.array(Answer(ours, grove.url('/data', file='large.h5', path='/complex', flatten='true')).json(), 'f4')
    assert np.array_equal(numbers.view('c8').ravel(), (values[:100].astype('c8') * (1 + 0.5j)).ravel())


def test_limits_say_how_to_choose_less(folder, ours):
    with h5py.File(folder / 'limits.h5', 'w') as file:
        file.create_dataset('big', (100_000, 1000), 'f4', chunks=(1000, 1000))
        file.create_dataset('many', (4_000_001,), 'i1', chunks=(1000,))
        file.create_dataset('nothing', (2**40, 0), 'i1', chunks=(10, 10), maxshape=(None, None))
        group = file.create_group('members')
        for number in range(20_001):
            group['%d' % number] = h5py.SoftLink('/big')
    for path, parameters in [('/big', {'format': 'bin'}), ('/big', {'format': 'npy'}), ('/big', {'format': 'csv'}), ('/many', {}),
                             ('/big', {'format': 'tiff'})]:
        answer = Answer(ours, grove.url('/data', file='limits.h5', path=path, **parameters))
        assert answer.status == 413, answer
        message = answer.json()['message']
        assert re.search(r'\b\d{7,}\b', message) and 'selection=0:' in message, message
        selection = re.search(r'selection=(\S+)', message)[1]
        if path == '/many':
            answer = Answer(ours, grove.url('/data', file='limits.h5', path=path, selection=selection, **parameters))
            assert answer.status == 200
    assert Answer(ours, grove.url('/data', file='limits.h5', path='/nothing')).status == 413
    answer = Answer(ours, grove.url('/meta', file='limits.h5', path='/members'))
    assert answer.status == 413 and '20001' in answer.json()['message'], answer
    assert len(Answer(ours, grove.url('/meta', file='limits.h5')).json()['children']) == 4


def test_other_files_only_where_they_are_served(tmp_path):
    """Links, sources and storage that lead out of the served folder."""
    served, outside = tmp_path / 'served', tmp_path / 'outside'
    served.mkdir()
    outside.mkdir()
    secret = np.arange(777, 781, dtype='i4')
    with h5py.File(outside / 'secret.h5', 'w') as file:
        file['d'] = secret
    (outside / 'raw').write_bytes(secret.tobytes())
    with h5py.File(served / 'inside.h5', 'w') as file:
        file['d'] = np.arange(4, dtype='i4')
    (served / 'raw').write_bytes(np.arange(4, dtype='i4').tobytes())
    (served / 'link.h5').symlink_to(outside / 'secret.h5')
    targets = {'inside': 'inside.h5', 'absolute': str(outside / 'secret.h5'), 'up': '../outside/secret.h5', 'symlink': 'link.h5'}
    with h5py.File(served / 'my.h5', 'w') as file:
        for name, target in targets.items():
            file['link_' + name] = h5py.ExternalLink(target, '/d')
            layout = h5py.VirtualLayout((4,), 'i4', maxshape=(None,) if name == 'up' else None)
            layout[:] = h5py.VirtualSource(target, 'd', (4,))
            file.create_virtual_dataset('virtual_' + name, layout)
            raw = target.replace('secret.h5', 'raw').replace('inside.h5', 'raw').replace('link.h5', '../outside/raw')
            file.create_dataset('raw_' + name, (4,), 'i4', external=[(raw, 0, 16)])
    process, base = start_ours(served)
    try:
        meta = Answer(base, grove.url('/meta', file='my.h5')).json()
        kinds = {child['name']: child for child in meta['children']}
        for name in targets:
            for kind in ['link', 'virtual', 'raw']:
                path = '%s_%s' % (kind, name)
                answer = Answer(base, grove.url('/data', file='my.h5', path=path))
                if name == 'inside':
                    assert answer.json() == [0, 1, 2, 3], (path, answer)
                else:
                    assert answer.status == 422 and b'777' not in answer.body, (path, answer)
                    assert 'served' in answer.json()['message'] and str(tmp_path) not in answer.json()['message'].replace(
                        str(outside), ''), answer
                refused = kind == 'link' and name != 'inside'
                assert kinds[path]['kind'] == ('external_link' if refused else 'dataset'), kinds[path]
                if not refused:
                    assert kinds[path]['shape'] == [4]
        assert Answer(base, grove.url('/meta', file='my.h5', path='/link_up', resolve_links='all')).status == 404
    finally:
        stop(process)


# ---- files that grow ------------------------------------------------------------------------------------------------

def shape_of(base, file, path):
    return Answer(base, grove.url('/meta', file=file, path=path)).json()['shape']


def test_only_committed_rows_are_shown(folder, ours, tmp_path):
    """Rows after committed_rows are not whole yet: they are neither counted nor read, in any dataset of the table."""
    writer = os.path.join(support.EXAMPLES, 'live_writer')
    path = folder / 'closed.h5'
    subprocess.run([writer, path, 'all=1', 'channels=8', 'correlations=2', 'baselines=7', 'integrations=20'], check=True,
                   stdout=subprocess.DEVNULL)
    with h5py.File(path, 'r+') as file:
        assert file['MAIN/committed_rows'][0] == 140
        file['MAIN/committed_rows'][0] = 101
    rows = np.arange(101)
    expected = {'row': 101, 'TIME': 101, 'DATA': 101, 'NAME': 101, 'VARIABLE/row_cube': 101, 'VARIABLE/row_index': 101,
                'VARIABLE/cube0': int((rows % 3 == 1).sum()), 'VARIABLE/cube1': int((rows % 3 == 2).sum()), 'committed_rows': 1}
    with h5py.File(path, 'r') as file:
        positions = [name for name in file['MAIN/VARIABLE'] if name.startswith('position')]
        assert all(file['MAIN'][name].shape[0] > extent for name, extent in expected.items() if name != 'committed_rows')
        assert len(positions) == 2
        expected['VARIABLE/' + positions[0]] = expected['VARIABLE/cube0']
        expected['VARIABLE/' + positions[1]] = expected['VARIABLE/cube1']
        for name, extent in expected.items():
            found = Answer(ours, grove.url('/data', file='closed.h5', path='/MAIN/' + name, format='bin')).body
            assert found == file['MAIN'][name][:extent].tobytes(), name
            last = Answer(ours, grove.url('/data', file='closed.h5', path='/MAIN/' + name, format='bin', selection='-1')).body
            assert last == file['MAIN'][name][extent - 1:extent].tobytes(), name
    for name, extent in expected.items():
        assert shape_of(ours, 'closed.h5', '/MAIN/' + name)[0] == extent, name
    beyond = grove.url('/data', file='closed.h5', path='/MAIN/TIME', selection='101')
    assert Answer(ours, beyond).status == 422


def test_a_live_file_of_ours(folder, ours):
    """Answers while rows are appended: whole rows, the same number of them in all columns of one answer."""
    writer = os.path.join(os.path.dirname(support.H5BRIDGE), 'examples', 'live_writer')
    path = folder / 'live.h5'
    process = subprocess.Popen([writer, path, 'all=1', 'channels=8', 'correlations=2', 'baselines=7', 'seconds=60', 'every=0.02',
                                'pace=0.002', 'report=1'], stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(3):
            process.stdout.readline()
        committed = lambda: h5_committed(path)
        seen = set()
        for _ in range(40):
            before = committed()
            main = Answer(ours, grove.url('/meta', file='live.h5', path='/MAIN')).json()
            rows = {child['shape'][0] for child in main['children'] if child['kind'] == 'dataset'
                    and child['name'] in ('row', 'TIME', 'DATA', 'FLAG', 'UVW', 'NAME')}
            after = committed()
            assert len(rows) == 1 and before <= min(rows) <= after, (before, rows, after)
            seen |= rows
            numbers = Answer(ours, grove.url('/data', file='live.h5', path='/MAIN/row', selection='-50:')).json()
            assert before <= numbers[-1] + 1 <= committed()
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            first = max(0, before - 20)
            found = Answer(ours, grove.url('/data', file='live.h5', path='/MAIN/DATA', format='bin',
                                           selection='%d:%d' % (first, before))).body
            row = np.arange(first, before)
            wanted = ((row % 65536).astype('f4')[:, None] + 1j * np.arange(16)[None, :]).astype('c8')
            assert found == wanted.tobytes()
        assert len(seen) > 5
    finally:
        process.kill()
        process.communicate()
    # the writer was killed: what it committed stays
    rows = committed()
    assert shape_of(ours, 'live.h5', '/MAIN/TIME') == [rows]
    times = np.frombuffer(Answer(ours, grove.url('/data', file='live.h5', path='/MAIN/TIME', format='bin')).body)
    assert np.array_equal(times, np.arange(rows) / 4)


def test_a_live_file_that_is_plotted(folder, ours):
    """The live plot keeps the file open; what others ask for is nevertheless what is in the file, also in chunks (4096 rows of TIME) that are newer."""
    writer = os.path.join(os.path.dirname(support.H5BRIDGE), 'examples', 'live_writer')
    process = subprocess.Popen([writer, folder / 'plotted.h5', 'plots=1', 'channels=4', 'baselines=378', 'seconds=60', 'every=0.01',
                                'pace=0.02', 'report=1'], stdout=subprocess.PIPE, text=True)
    try:
        chunks = set()
        while len(chunks) < 4:
            process.stdout.readline()
            plot = Answer(ours.removesuffix('/api'), grove.url('/live/plot/amp_time', file='plotted.h5'))
            assert plot.status == 200, plot
            times = np.frombuffer(Answer(ours, grove.url('/data', file='plotted.h5', path='/MAIN/TIME', format='bin')).body)
            assert np.array_equal(times, np.arange(len(times)) / 4), len(times)
            chunks.add(len(times) // 4096)
    finally:
        process.kill()
        process.communicate()


def h5_committed(path):
    with h5py.File(path, 'r', swmr=True, locking=False) as file:
        return int(file['MAIN/committed_rows'][0])


def test_swmr_files_of_other_programs(folder, ours):
    """h5py appends; each answer has what was flushed before it was asked for."""
    with h5py.File(folder / 'swmr.h5', 'w', libver='latest') as file:
        data = file.create_dataset('d', (0, 3), 'i4', chunks=(16, 3), maxshape=(None, 3))
        file['fixed'] = np.arange(3)
        file.swmr_mode = True
        for number in range(1, 30):
            data.resize(number * 5, axis=0)
            data[-5:] = np.arange(15).reshape(5, 3) + 15 * (number - 1)
            data.flush()
            assert shape_of(ours, 'swmr.h5', '/d') == [number * 5, 3]
            last = Answer(ours, grove.url('/data', file='swmr.h5', path='/d', selection='-1')).json()
            assert last == [15 * number - 3, 15 * number - 2, 15 * number - 1]
        assert Answer(ours, grove.url('/data', file='swmr.h5', path='/fixed')).json() == [0, 1, 2]
    assert shape_of(ours, 'swmr.h5', '/d') == [145, 3]
    # nothing keeps a writer from going on
    with h5py.File(folder / 'swmr.h5', 'r+') as file:
        file['d'].resize(146, axis=0)
    assert shape_of(ours, 'swmr.h5', '/d') == [146, 3]


def test_many_at_once(folder, ours):
    """Requests about several files at the same time get what they get one after the other."""
    addresses = [address for name, address in grove.cases() if name.startswith(('data', 'meta', 'sel', 'layout'))][::3]
    expected = [Answer(ours, address).body for address in addresses]

    def ask(address):
        for _ in range(200):
            answer = Answer(ours, address)
            if answer.status != 503:
                return answer.body
            time.sleep(0.05)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, addresses)) == expected
