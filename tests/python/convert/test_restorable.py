"""Restorable files: the exact original directory comes back, from `to-ms --exact` and from docs/reference/restorable.md alone."""
import json
import os
import random
import shutil
import struct

import blake3
import casacore.tables as ct
import h5py
import numpy as np
import pytest

import layout
import support

SWAPPED = {'big': True, 'little': False}


def recipes(file):
    """(index, [segments of each file]) of a restorable file."""
    group = file['_ctds/restore']
    index = json.loads(group['index'][...].tobytes())
    numbers, start, found = group['segments'][...], 0, []
    for entry in index['files']:
        count = entry['segments']
        fields = numbers[start:start + 6 * count].reshape(6, count)
        found.append(np.cumsum(fields, axis=1).T)
        start += 6 * count
    assert start == len(numbers)
    return index, found


def name_of(path):
    """A path as the index has it; names that are not UTF-8 are {"bytes": hex}."""
    return os.fsdecode(bytes.fromhex(path['bytes'])) if isinstance(path, dict) else path


def rebuild(file, index, entry, segments):
    """The bytes of an original file, as docs/reference/restorable.md describes it."""
    out = np.zeros(entry['bytes'], np.uint8)
    for literal in (False, True):
        for stream, first, rows, count, offset, stride in segments.tolist():
            if (stream == 0) != literal:
                continue
            described = index['streams'][stream]
            dataset = file[described['dataset']]
            across = [-(-extent // box) for extent, box in zip(dataset.shape[1:], described['box'])]
            per_row = int(np.prod(across, dtype=int))
            row = first
            for number in range(count):
                where = np.unravel_index(number % per_row, across) if across else ()
                start = [first + number // per_row * rows, *(int(i) * box for i, box in zip(where, described['box']))]
                box = np.zeros([rows, *described['box']], dataset.dtype)
                inside = dataset[tuple(slice(s, s + n) for s, n in zip(start, box.shape))]
                box[tuple(slice(0, n) for n in inside.shape)] = inside
                if described['encoding'] == 'bits':
                    data = np.packbits(box.ravel().astype(bool), bitorder='little')
                else:
                    data = box.byteswap() if SWAPPED[described['encoding']] else box
                data = np.frombuffer(data.tobytes(), np.uint8)
                out[offset + number * stride:][:len(data)] = data
    return out.tobytes()


def files(folder):
    """{relative path: bytes}, directories with None; symbolic links are followed."""
    found = {}
    for path, directories, names in os.walk(folder, followlinks=True):
        for name in directories:
            found[os.path.relpath(os.path.join(path, name), folder)] = None
        for name in names:
            with open(os.path.join(path, name), 'rb') as f:
                found[os.path.relpath(os.path.join(path, name), folder)] = f.read()
    return found


def check(source, folder, counts, independent=True):
    """Converts a table and restores it in both ways; returns the native file, or None if it cannot be converted."""
    native, back = os.path.join(folder, 'x.h5'), os.path.join(folder, 'back')
    process = support.h5bridge('to-hdf5', '--restorable', '--overwrite', source, native, code=None)
    if process.returncode != support.DONE:
        plain = support.h5bridge('to-hdf5', '--overwrite', source, native, code=None)
        assert plain.returncode == process.returncode, process.stderr
        counts['refusals'] += 1
        return None
    expected = files(source)
    support.h5bridge('to-ms', '--exact', native, back)
    assert files(back) == expected
    shutil.rmtree(back)
    verdict = json.loads(support.h5bridge('verify', '--json', native).stdout)
    assert verdict['equal'] and verdict['compared']['files'] == sum(data is not None for data in expected.values())
    if independent:
        with h5py.File(native) as file:
            index, segments = recipes(file)
            assert {name_of(path) for path in index['directories']} == {p for p, data in expected.items() if data is None}
            for entry, recipe in zip(index['files'], segments):
                data = expected[name_of(entry['path'])]
                assert blake3.blake3(data).hexdigest() == entry['blake3']
                if len(data) < 1 << 22:
                    assert rebuild(file, index, entry, recipe) == data, entry['path']
                    counts['files rebuilt with h5py'] += 1
    counts['tables'] += 1
    counts['files'] += len(expected)
    return native


@pytest.mark.parametrize('case', [case for case in support.cases() if case != 'rows64'])
def test_testdata(case, tmp_path, counts):
    for root in support.some_roots(support.expected(case)['tables']):
        check(os.path.join(support.TESTDATA, case, root), tmp_path, counts)


@pytest.mark.parametrize('seed', range(300, 302))
def test_generated(seed, tmp_path, counts):
    made = support.make_tables(str(tmp_path / 'made'), seed, 8)
    assert made
    for name, tables in made.items():
        for root in support.roots(tables):
            check(os.path.join(tmp_path, 'made', name, root), tmp_path, counts)


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', support.corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    folder = support.unpack(entry, tmp_path)
    for root in support.roots(entry['tables']):
        check(os.path.join(folder, root), tmp_path, counts, independent=False)


@pytest.fixture
def demo(tmp_path):
    """A copy of the demo MeasurementSet."""
    copy = tmp_path / 'demo.ms'
    shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), copy)
    return copy


@pytest.fixture
def restorable(demo, tmp_path):
    native = tmp_path / 'demo.h5'
    support.h5bridge('to-hdf5', '--restorable', demo, native)
    return native


def refused(native, folder, *names, code=support.DAMAGED):
    """`to-ms --exact` fails, names all of NAMES, and leaves nothing."""
    before = sorted(os.listdir(folder))
    process = support.h5bridge('to-ms', '--exact', native, folder / 'back', code=code)
    for name in names:
        assert name in process.stderr, process.stderr
    assert sorted(os.listdir(folder)) == before


def test_odd_files(demo, tmp_path, counts):
    """What is no table is restored too: any names, empty files and directories, what links lead to."""
    (demo / 'empty').mkdir()
    (demo / 'notes' / 'deep').mkdir(parents=True)
    (demo / 'notes' / 'deep' / 'a b"c\n').write_bytes(os.urandom(100))
    (demo / 'nothing').write_bytes(b'')
    (demo / 'zeros').write_bytes(bytes(9 << 20))
    (demo / 'noise').write_bytes(os.urandom(9 << 20))
    with open(os.path.join(os.fsencode(demo), b'not utf-8 \xff\xfe'), 'wb') as f:
        f.write(b'x')
    (tmp_path / 'elsewhere').write_bytes(b'elsewhere')
    (demo / 'link').symlink_to(tmp_path / 'elsewhere')
    check(demo, tmp_path, counts)
    process = support.h5bridge('to-hdf5', '--restorable', '--json', '--overwrite', demo, tmp_path / 'x.h5')
    assert any('link' in warning for warning in json.loads(process.stdout)['warnings'])


def test_links_that_lead_nowhere(demo, tmp_path):
    (demo / 'dangling').symlink_to('nowhere')
    (demo / 'circle').symlink_to('.')
    os.mkfifo(demo / 'pipe')
    process = support.h5bridge('to-hdf5', '--restorable', '--json', demo, tmp_path / 'x.h5')
    warnings = ' '.join(json.loads(process.stdout)['warnings'])
    assert all(name in warnings for name in ('dangling', 'circle', 'pipe'))
    support.h5bridge('to-hdf5', '--restorable', '--strict', '--overwrite', demo, tmp_path / 'x.h5',
                     code=support.WARNINGS)


@pytest.mark.parametrize('seed', range(6))
def test_any_bits_of_the_data(seed, demo, tmp_path, counts):
    """NaN with payloads, padding that is not zero, spare bits: whatever is in the files comes back."""
    random.seed(seed)
    for path in demo.rglob('table.f*_TSM*'):
        data = bytearray(path.read_bytes())
        for _ in range(20):
            at, length = random.randrange(len(data)), random.choice((1, 4, 100))
            data[at:at + length] = os.urandom(len(data[at:at + length]))
        path.write_bytes(data)
    assert check(demo, tmp_path, counts)


def test_the_native_part_is_as_it_was(demo, restorable, tmp_path):
    plain = tmp_path / 'plain.h5'
    support.h5bridge('to-hdf5', demo, plain)
    support.h5bridge('verify', plain, restorable)
    with h5py.File(plain) as a, h5py.File(restorable) as b:
        assert set(layout.tables(a)) == set(layout.tables(b))
        for path, table in layout.tables(a).items():
            assert dict(table.attrs).keys() == dict(layout.tables(b)[path].attrs).keys()
        names = set()
        a.visit(names.add)
        extra = set()
        b.visit(lambda name: extra.add(name) if name not in names else None)
        assert extra == {'_ctds/restore', '_ctds/restore/index', '_ctds/restore/literals', '_ctds/restore/segments'}


# a tiled column, one in buckets, incremental ones and strings that files show not, one of a subtable
@pytest.mark.parametrize('dataset, name', [('MAIN/DATA', 'DATA'), ('MAIN/FLAG', 'FLAG'), ('MAIN/ANTENNA1', 'ANTENNA1'),
                                           ('MAIN/TIME', 'TIME'), ('ANTENNA/NAME', 'NAME'),
                                           ('ANTENNA/POSITION', 'POSITION')])
def test_edits_are_refused(dataset, name, restorable, tmp_path):
    with h5py.File(restorable, 'r+') as file:
        item = file[dataset]
        value = item[0]
        item[0] = b'X01' if item.dtype.kind == 'O' else ~value if item.dtype.kind == 'b' else value + 1
    refused(restorable, tmp_path, name)
    process = support.h5bridge('verify', '--json', restorable, code=support.DIFFERENT)
    assert name in [difference['column'] for difference in json.loads(process.stdout)['differences']]


def test_edit_of_a_cell_that_no_recipe_covers_is_refused(tmp_path):
    """More cells of one shape than cubes are listed: recipes give those that are one tile. The one that is two lies in
    literals, so that its file would come back as it was, without the edit."""
    path, row = str(tmp_path / 'cells.tab'), 5
    description = ct.maketabdesc(ct.makearrcoldesc('C', 0., ndim=2, valuetype='float'))
    managers = {'*1': {'TYPE': 'TiledCellStMan', 'NAME': 'T', 'COLUMNS': ['C'], 'SPEC': {'DEFAULTTILESHAPE': [4, 8]}}}
    values = np.random.default_rng(1).random((70, 8, 4), dtype='f4')
    with ct.table(path, description, nrow=len(values), dminfo=managers, ack=False) as table:
        table.putcol('C', values)
    # of each cube the header has its shape, then that of its tiles; tiles of half the rows lie just as the whole one
    header = open(path + '/table.f0', 'rb').read()
    shape = struct.pack('=2i', 4, 8)
    parts = header.split(shape)
    assert len(parts) == 1 + 2 * len(values)
    pair = 2 * row + 2
    header = shape.join(parts[:pair]) + struct.pack('=2i', 4, 4) + shape.join(parts[pair:])
    open(path + '/table.f0', 'wb').write(header)
    with ct.table(path, ack=False) as table:
        assert np.array_equal(table.getcol('C'), values)
    native = tmp_path / 'cells.h5'
    support.h5bridge('to-hdf5', '--restorable', path, native)
    with h5py.File(native) as file:
        literals = file['_ctds/restore/literals'][...].tobytes()
        assert [values[at].tobytes() in literals for at in (row - 1, row, row + 1)] == [False, True, False]
    with h5py.File(native, 'r+') as file:
        file['MAIN/C'][row, 0, 0] += 1
    refused(native, tmp_path, 'C')


@pytest.mark.parametrize('row', [0, 1])
def test_edit_of_a_cell_that_shares_its_bytes_is_refused(row, tmp_path):
    """Both cells are covered by the recipe of one array, and whichever comes later would hide an edit of the other."""
    path = str(tmp_path / 'shared.tab')
    values = np.random.default_rng(1).random((4, 8, 4), dtype='f4')
    description = ct.maketabdesc(ct.makearrcoldesc('C', 0., ndim=2, valuetype='float'))
    with ct.table(path, description, nrow=len(values), ack=False) as table:
        table.putcol('C', values)
    # the first bucket is places in table.f0i
    data = np.fromfile(path + '/table.f0', 'u1')
    places = data[512:512 + 8 * len(values)].view('=i8')
    assert len(set(np.diff(places))) == 1
    places[1] = places[0]
    data.tofile(path + '/table.f0')
    with ct.table(path, ack=False) as table:
        assert np.array_equal(table.getcol('C'), values[[0, 0, 2, 3]])
    native = tmp_path / 'shared.h5'
    support.h5bridge('to-hdf5', '--restorable', path, native)
    with h5py.File(native, 'r+') as file:
        file['MAIN/C'][row, 0, 0] += 1
    refused(native, tmp_path, 'C')


# (attribute, its new value, of what, what is named)
@pytest.mark.parametrize('path, attribute, value, name', [
    ('MAIN/DATA', 'units', 'K', 'DATA (keywords)'), ('MAIN/TIME', 'note', 'added', 'TIME (keywords)'),
    ('MAIN/DATA', 'long_name', 'edited', 'DATA (comment)'), ('MAIN', 'note', 'added', 'the main table (keywords)'),
    ('MAIN', 'MS_VERSION', 3.0, 'the main table (keywords)'),
    ('ANTENNA', 'table_subtype', 'edited', 'subtable ANTENNA (info)')])
def test_edited_attributes_are_refused(path, attribute, value, name, restorable, tmp_path):
    with h5py.File(restorable, 'r+') as file:
        file[path].attrs[attribute] = value
    refused(restorable, tmp_path, name)
    support.h5bridge('verify', restorable, code=support.DIFFERENT)


def test_edited_shape_of_a_keyword_is_refused(tmp_path):
    path, native = str(tmp_path / 'x.tab'), tmp_path / 'x.h5'
    with ct.table(path, ct.maketabdesc([ct.makescacoldesc('A', 0)]), ack=False) as table:
        table.putkeyword('GRID', np.arange(6, dtype='i4').reshape(2, 3))
    support.h5bridge('to-hdf5', '--restorable', path, native)
    with h5py.File(native, 'r+') as file:
        file['MAIN'].attrs['GRID__shape'] = [3, 2]
    refused(native, tmp_path, 'the main table (keywords)')


def test_added_column_is_refused(restorable, tmp_path):
    with h5py.File(restorable, 'r+') as file:
        file['MAIN'].create_dataset('EXTRA', data=np.arange(len(file['MAIN/row'])))
    refused(restorable, tmp_path, 'EXTRA')


def test_flipped_bytes_are_found(restorable, tmp_path):
    """A flipped bit in the bytes of any dataset is found."""
    places = []
    with h5py.File(restorable) as file:
        scales = {item.name for table in layout.tables(file).values() for item in table.values() if layout.is_scale(item)}

        def counts_for_nothing(item):
            """Where a change need not show: what belongs to cells that are undefined, or to no cell."""
            return (item.name in scales or item.name + '__defined' in file or item.dtype.kind == 'O'
                    or item.name.endswith(('/offset', '/shape', '/row_index')))

        def visit(name, item):
            if isinstance(item, h5py.Dataset) and not counts_for_nothing(item):
                bits = 1 if item.dtype.kind == 'b' else 8       # any byte but 0 is true
                if item.chunks:
                    for number in range(item.id.get_num_chunks()):
                        info = item.id.get_chunk_info(number)
                        places.append((item.name, info.byte_offset, info.size, bits))
                elif item.id.get_offset():
                    places.append((item.name, item.id.get_offset(), item.id.get_storage_size(), bits))
        file.visititems(visit)
    random.seed(1)
    whole = restorable.read_bytes()
    damaged = tmp_path / 'damaged.h5'
    for name, offset, size, bits in random.sample(places, min(len(places), 60)):
        data = bytearray(whole)
        data[offset + random.randrange(size)] ^= 1 << random.randrange(bits)
        damaged.write_bytes(data)
        process = support.h5bridge('verify', damaged, code=None)
        assert process.returncode in (support.DIFFERENT, support.DAMAGED), '%s: %s' % (name, process.stderr)
        if name.startswith('/_ctds/restore/literals'):
            assert 'file' in process.stdout


def replace(native, change):
    """Changes the JSON document of the recipes."""
    with h5py.File(native, 'r+') as file:
        group = file['_ctds/restore']
        index = json.loads(group['index'][...].tobytes())
        change(index)
        del group['index']
        group['index'] = np.frombuffer(json.dumps(index).encode(), np.uint8)


@pytest.mark.parametrize('path', ['../escaped', '/tmp/escaped', 'ANTENNA/../../escaped', 'ANTENNA//table.dat', './x', '',
                                  'ANTENNA', 'table.dat', 'nowhere/x', 'a\0b'])
def test_paths_that_lead_elsewhere(path, restorable, tmp_path):
    replace(restorable, lambda index: index['files'].append(dict(index['files'][-1], path=path, segments=0, bytes=0)))
    refused(restorable, tmp_path, 'restore')
    assert not os.path.exists('/tmp/escaped') and not (tmp_path / 'escaped').exists()


@pytest.mark.parametrize('field, value', [(0, 9999), (1, 1 << 40), (2, 0), (2, 1 << 40), (3, 0), (3, 1 << 50), (4, 1 << 50),
                                          (4, -5), (5, 1 << 60)])
def test_damaged_segments(field, value, restorable, tmp_path):
    with h5py.File(restorable, 'r+') as file:
        index, segments = recipes(file)
        numbers = file['_ctds/restore/segments']
        count = index['files'][0]['segments']
        numbers[field * count + count - 1] = value
    process = support.h5bridge('to-ms', '--exact', restorable, tmp_path / 'back', code=None, timeout=60)
    assert process.returncode == support.DAMAGED and 'panicked' not in process.stderr, process.stderr
    assert not (tmp_path / 'back').exists()
    support.h5bridge('verify', restorable, code=support.DIFFERENT, timeout=60)


def test_random_damage(restorable, demo, tmp_path):
    """Whatever the numbers of the recipes: the right files, or a refusal."""
    random.seed(2)
    expected, damaged = files(demo), tmp_path / 'damaged.h5'
    for _ in range(25):
        shutil.copy(restorable, damaged)
        with h5py.File(damaged, 'r+') as file:
            numbers = file['_ctds/restore/segments']
            for _ in range(random.choice((1, 3))):
                numbers[random.randrange(len(numbers))] = random.choice((0, 1, -1, 255, 1 << 20, -(1 << 62), 1 << 62))
        process = support.h5bridge('to-ms', '--exact', damaged, tmp_path / 'back', code=None, timeout=60)
        assert process.returncode in (support.DONE, support.DAMAGED), process.stderr
        if process.returncode == support.DONE:
            assert files(tmp_path / 'back') == expected
            shutil.rmtree(tmp_path / 'back')
        assert not (tmp_path / 'back').exists()


def test_huge_file_that_nothing_backs(restorable, tmp_path):
    replace(restorable, lambda index: index['files'][0].update(bytes=1 << 60))
    refused(restorable, tmp_path, code=None)
    support.h5bridge('verify', restorable, code=support.DIFFERENT, timeout=60)


@pytest.mark.parametrize('words', [('--columns', 'TIME'), ('--exclude', 'DATA'), ('--rows', '0..3'), ('--tables', 'MAIN'),
                                   ('--no-digest',)])
def test_parts_are_not_restorable(words, demo, tmp_path):
    support.h5bridge('to-hdf5', '--restorable', *words, demo, tmp_path / 'x.h5', code=support.USAGE)
    assert not (tmp_path / 'x.h5').exists()


def test_plain_files_are_not_restorable(demo, tmp_path):
    native = tmp_path / 'x.h5'
    support.h5bridge('to-hdf5', demo, native)
    refused(native, tmp_path, '--restorable', code=support.USAGE)
    assert json.loads(support.h5bridge('verify', '--json', native).stdout)['compared']['files'] == 0
    support.h5bridge('to-hdf5', '--no-digest', '--overwrite', demo, native)
    support.h5bridge('verify', native, code=support.USAGE)


def test_same_input_same_bytes(demo, tmp_path):
    made = [tmp_path / 'a.h5', tmp_path / 'b.h5']
    for threads, native in zip((1, 3), made):
        support.h5bridge('to-hdf5', '--restorable', '--threads', threads, demo, native)
    assert made[0].read_bytes() == made[1].read_bytes()


def test_info_says_what_each_part_costs(restorable, demo, tmp_path):
    cost = json.loads(support.h5bridge('info', '--json', restorable).stdout)['bytes']
    assert cost['file'] == os.path.getsize(restorable)
    assert sum(cost[part] for part in ('datasets', 'recipes', 'literals', 'other')) == cost['file']
    with h5py.File(restorable) as file:
        group = file['_ctds/restore']
        assert cost['literals'] == group['literals'].id.get_storage_size()
        assert cost['recipes'] == sum(group[name].id.get_storage_size() for name in ('index', 'segments'))
    assert 'restorable' in support.h5bridge('info', restorable).stdout
    plain = support.h5bridge('to-hdf5', '--restorable', '--dry-run', demo, tmp_path / 'x.h5').stdout
    assert 'restorable' in plain
    document = json.loads(support.h5bridge('to-hdf5', '--restorable', '--dry-run', '--json', demo, tmp_path / 'x.h5').stdout)
    assert document['restorable'] == {'files': 74, 'bytes': sum(len(d) for d in files(demo).values() if d is not None)}


def test_payload_is_small(big_ms, tmp_path):
    """Of a MeasurementSet whose data is most of it, restoring costs next to nothing."""
    plain, native = tmp_path / 'plain.h5', tmp_path / 'x.h5'
    support.h5bridge('to-hdf5', big_ms, plain)
    support.h5bridge('to-hdf5', '--restorable', big_ms, native)
    assert os.path.getsize(native) < 1.01 * os.path.getsize(plain)
    support.h5bridge('to-ms', '--exact', native, tmp_path / 'back')
    assert files(tmp_path / 'back') == files(big_ms)
