"""Manifests: xarray, zarr, kerchunk and VirtualiZarr read the unconverted table through them, and have python-casacore's values."""
import json
import os
import shutil
import subprocess
import time
import warnings

import h5py
import numpy as np
import pytest
import xarray
import casacore.tables as ct

import support
from support import DAMAGED, DIFFERENT, DONE, EXISTS, UNSUPPORTED, USAGE, WARNINGS, h5bridge

zarr = pytest.importorskip('zarr')
pytest.importorskip('kerchunk')

DEMO = support.own_copy('demo', 'demo.ms')
TWOSPW = support.own_copy('twospw', 'twospw.ms')
# more rows than fit in memory, none of them stored
FILES = support.sample([entry for entry in support.convertible() if entry[0] != 'rows64'], 4)


def make(source, out, *options):
    """The document that `manifest --json` prints."""
    return json.loads(h5bridge('manifest', source, out, '--json', *options).stdout)


def open_tree(manifest, **options):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return xarray.open_datatree('reference://', engine='zarr', storage_options={'fo': str(manifest), 'remote_protocol': 'file'},
                                    **options)


def open_group(manifest):
    import fsspec
    filesystem = fsspec.filesystem('reference', fo=str(manifest), remote_protocol='file', asynchronous=True,
                                   remote_options={'asynchronous': True})
    return zarr.open_group(zarr.storage.FsspecStore(filesystem, read_only=True), mode='r', zarr_format=2)


def references(manifest):
    with open(manifest) as f:
        return json.load(f)['refs']


def files_of(manifest):
    """The files that chunks of a manifest are in."""
    return {found[0] for found in references(manifest).values() if isinstance(found, list)}


# ---- the values of casacore --------------------------------------------------------------------------------------------

def has_numbers(table, name):
    return table.coldatatype(name) not in ('string', 'record')


class Cells:
    """The cells of a column of a group of a manifest, as docs/reference/layout.md has them."""

    def __init__(self, group, name):
        self.item = group[name]
        self.is_group = isinstance(self.item, zarr.Group)
        self.defined = group[name + '__defined'][:] if name + '__defined' in group else None
        if not self.is_group:
            self.values = self.item[:]
        elif 'row_cube' in self.item:
            self.cubes = {int(key[4:]): self.item[key][:] for key in self.item.array_keys() if key.startswith('cube')}
            self.row_cube, self.row_index = self.item['row_cube'][:], self.item['row_index'][:]
        else:
            self.values, self.offset, self.shape, self.defined = (
                self.item[key][:] for key in ('values', 'offset', 'shape', 'defined'))

    def cell(self, row):
        if self.defined is not None and not self.defined[row]:
            return None
        if not self.is_group:
            return self.values[row]
        if hasattr(self, 'cubes'):
            return None if self.row_cube[row] < 0 else self.cubes[self.row_cube[row]][self.row_index[row]]
        shape = self.shape[row]
        return self.values[self.offset[row]:self.offset[row + 1]].reshape(shape[shape >= 0])


def same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    expected = expected.astype(found.dtype.newbyteorder('='))
    return found.shape == expected.shape and found.astype(found.dtype.newbyteorder('=')).tobytes() == expected.tobytes()


def check_table(table, group, counts):
    for name in table.colnames():
        if not has_numbers(table, name):
            continue
        cells = Cells(group, name)
        counts['columns'] += 1
        if not cells.is_group and cells.defined is None:
            expected = table.getcol(name) if table.nrows() else np.zeros((0,))
            assert table.nrows() == 0 or same(cells.values, expected), '%s/%s' % (table.name(), name)
            counts['values'] += np.size(expected)
            continue
        for row in range(table.nrows()):
            found = cells.cell(row)
            assert (found is not None) == table.iscelldefined(name, row), (name, row)
            if found is not None:
                assert same(found, table.getcell(name, row)), (name, row)
                counts['values'] += np.size(found)


def check_ms(path, manifest, counts):
    """All numeric columns of a MeasurementSet and of its subtables."""
    tree = open_group(manifest)
    table = ct.table(path, ack=False)
    check_table(table, tree['MAIN'], counts)
    for name, value in table.getkeywords().items():
        if isinstance(value, str) and value.startswith('Table: ') and name in tree:
            with ct.table(os.path.join(path, name), ack=False) as subtable:
                check_table(subtable, tree[name], counts)
    table.close()
    counts['MeasurementSets'] += 1


@pytest.mark.parametrize('path', [DEMO, TWOSPW], ids=['demo', 'twospw'])
def test_casacore(path, tmp_path, counts):
    made = make(path, tmp_path / 'my.json')
    assert made['tiled_columns'] >= 5 and not made['left_out'] and not made['warnings']
    check_ms(path, tmp_path / 'my.json', counts)


def measurement_sets():
    for entry in support.corpus_entries():
        for path, fingerprint in entry['tables'].items():
            columns = fingerprint.get('columns', {})
            if 'UVW' in columns and 'error' not in fingerprint and path + '/ANTENNA' in entry['tables'] and '/' not in path:
                yield pytest.param(entry, path, id=entry['name'])


@pytest.mark.parametrize('entry,path', measurement_sets())
def test_corpus(entry, path, tmp_path, counts):
    table = os.path.join(support.unpack(entry, tmp_path), path)
    out = tmp_path / 'my.json'
    process = h5bridge('manifest', table, out, '--json', code=None)
    if process.returncode != DONE:
        # what cannot be converted has no manifest either
        assert process.returncode == h5bridge('to-hdf5', table, tmp_path / 'my.h5', code=None).returncode
        assert not out.exists()
        counts['refused'] += 1
        return
    made = json.loads(process.stdout)
    if made['left_out']:
        pytest.fail('left out: %s' % made['left_out'])
    check_ms(table, out, counts)
    counts['tiled columns'] += made['tiled_columns']
    inside = os.path.realpath(table) + os.sep
    assert all(name.startswith(inside) or name == str(out) + '.rest.h5' for name in files_of(out))


# ---- the tree of the native file ---------------------------------------------------------------------------------------

def check_same_tree(found, native, counts):
    """The tree FOUND has all arrays that the h5netcdf engine shows of the file NATIVE, but what is under _ctds."""
    with xarray.open_datatree(native, engine='h5netcdf') as expected:
        groups = [node.path for node in expected.subtree if not node.path.startswith('/_ctds')]
        assert sorted(node.path for node in found.subtree) == sorted(groups)
        for path in groups:
            ours, theirs = found[path].to_dataset(inherit=False), expected[path].to_dataset(inherit=False)
            assert set(ours.variables) == set(theirs.variables), path
            assert set(ours.coords) == set(theirs.coords), path
            for name in set(theirs.attrs) - {'source_digest', 'source'}:
                check_same_attribute('%s@%s' % (path, name), ours.attrs[name], theirs.attrs[name])
            for name, variable in theirs.variables.items():
                place = '%s/%s' % (path, name)
                ours_is = ours.variables[name]
                assert (ours_is.dims, ours_is.shape) == (variable.dims, variable.shape), place
                for key, value in variable.attrs.items():
                    check_same_attribute('%s@%s' % (place, key), ours_is.attrs[key], value)
                check_same_values(place, ours_is.values, variable.values)
                counts['elements'] += variable.size
                counts['arrays'] += 1
        counts['trees'] += 1


def check_same_attribute(place, ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if theirs.dtype.kind == 'f' and ours.dtype.kind in 'UOT':
        ours = ours.astype(float)    # NaN and infinities are words
    elif theirs.dtype.kind == 'i' and ours.dtype.kind == 'b':
        ours = ours.astype(int)
    assert ours.reshape(-1).tolist() == theirs.reshape(-1).tolist() or ours.tobytes() == theirs.astype(ours.dtype).tobytes(), place


def check_same_values(place, ours, theirs):
    if theirs.dtype == object or ours.dtype.kind == 'T':
        assert (np.asarray(ours, object) == np.asarray(theirs, object)).all(), place
    else:
        ours = ours.astype(ours.dtype.newbyteorder('='))
        assert ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes(), place


@pytest.mark.parametrize('case,table', FILES)
def test_tree(case, table, converted, tmp_path, counts):
    process = h5bridge('manifest', os.path.join(support.TESTDATA, case, table), tmp_path / 'my.json', '--json', code=None)
    if process.returncode == UNSUPPORTED:
        assert 'container' in process.stderr and case == 'multifile'
        counts['containers'] += 1
        return
    made = json.loads(process.stdout)
    native = converted(case, table)
    with h5py.File(native) as file:
        missing = [json.loads(value) for group in [file['_ctds/MAIN']] for key, value in group.attrs.items()
                   if key.startswith('column.') and json.loads(value).get('form') == 'missing']
    assert len([column for column in made['left_out'] if column['table'] == 'MAIN']) == len(missing)
    check_same_tree(open_tree(tmp_path / 'my.json'), native, counts)


@pytest.mark.parametrize('case,table', [('demo', 'demo.ms'), ('twospw', 'twospw.ms'), ('undefined', None), ('shapes', 'shapes.tab')])
def test_native(case, table, converted, tmp_path, counts):
    table = table or support.roots(support.expected(case)['tables'])[0]
    native = converted(case, table)
    made = make(native, tmp_path / 'my.json')
    assert made['companion'] is None and files_of(tmp_path / 'my.json') <= {str(native)}
    check_same_tree(open_tree(tmp_path / 'my.json'), native, counts)


@pytest.mark.parametrize('codec', ['none', 'gzip:9', 'zstd'])
def test_native_codecs(codec, tmp_path, counts):
    h5bridge('to-hdf5', DEMO, tmp_path / 'my.h5', '--compress', codec)
    made = make(tmp_path / 'my.h5', tmp_path / 'my.json')
    assert not made['left_out']
    check_ms(DEMO, tmp_path / 'my.json', counts)


def test_native_of_h5py(tmp_path, counts):
    """Contiguous, compact, big-endian, checksummed, and filled datasets of a file made by hand."""
    numbers = np.arange(5000 * 6, dtype='f8').reshape(5000, 6)
    expected = {}
    with h5py.File(tmp_path / 'my.h5', 'w') as file:
        file.attrs.update(format='ctds-hdf5', format_version='1.0')
        group = file.create_group('MAIN')

        def add(name, values, **options):
            group.create_dataset(name, data=values, **options)
            expected[name] = values
        add('BLOCK', numbers)
        add('BIG', numbers.astype('>f4'))
        add('SUMS', numbers.astype('<i4'), chunks=(700, 6), fletcher32=True, compression=4, shuffle=True)
        add('LZF', numbers[:, 0].copy(), chunks=(500,), compression='lzf')
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_layout(h5py.h5d.COMPACT)
        small = np.arange(5000, dtype='u1')
        dataset = h5py.h5d.create(group.id, b'COMPACT', h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((5000,)), create)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, small)
        expected['COMPACT'] = small
        group.create_dataset('HOLES', (5000, 4), 'i4', chunks=(1000, 4))[2000:3000] = 7
        expected['HOLES'] = np.where(np.arange(5000)[:, None] // 1000 == 2, 7, 0) * np.ones((1, 4), 'i4')
        large = np.arange(5000 * 100, dtype='i4').reshape(5000, 100)
        add('LARGE', large, chunks=(500, 100), compression='lzf')
    made = make(tmp_path / 'my.h5', tmp_path / 'my.json')
    # numcodecs has no LZF: small columns are in the manifest itself
    assert [column['column'] for column in made['left_out']] == ['LARGE']
    assert 'lzf' in made['left_out'][0]['reason'] and any('MAIN/LARGE' in text for text in made['warnings'])
    group = open_group(tmp_path / 'my.json')['MAIN']
    for name, values in expected.items():
        if name != 'LARGE':
            assert (group[name][:] == values).all(), name
            counts['arrays'] += 1
    h5bridge('manifest', tmp_path / 'my.h5', tmp_path / 'other.json', '--strict', code=support.WARNINGS)


# ---- readers -----------------------------------------------------------------------------------------------------------

def test_kerchunk_engine(tmp_path):
    """xarray's engine of kerchunk finds arrays at the root only."""
    make(DEMO, tmp_path / 'main.json', '--table', 'MAIN')
    make(DEMO, tmp_path / 'antenna.json', '--table', 'ANTENNA')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        dataset = xarray.open_dataset(str(tmp_path / 'main.json'), engine='kerchunk', chunks={})
        antenna = xarray.open_dataset(str(tmp_path / 'antenna.json'), engine='kerchunk')
    with ct.table(DEMO, ack=False) as table:
        assert dataset.DATA.dims == ('row', 'chan_0', 'corr_0') and dataset.DATA.chunks is not None
        assert same(dataset.DATA.values, table.getcol('DATA')) and same(dataset.FLAG.values, table.getcol('FLAG'))
        assert same(dataset.DATA[5, 3].values, table.getcell('DATA', 5)[3])
    with ct.table(os.path.join(DEMO, 'ANTENNA'), ack=False) as table:
        assert list(antenna.NAME.values) == list(table.getcol('NAME')) and same(antenna.POSITION.values, table.getcol('POSITION'))


def test_virtualizarr(tmp_path):
    virtualizarr = pytest.importorskip('virtualizarr')
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import KerchunkJSONParser
    make(DEMO, tmp_path / 'my.json')
    registry = ObjectStoreRegistry({'file://': LocalStore()})
    parser = KerchunkJSONParser(group='MAIN')
    with virtualizarr.open_virtual_dataset('file://%s' % (tmp_path / 'my.json'), registry=registry, parser=parser) as dataset:
        assert {'DATA', 'FLAG', 'UVW', 'TIME', 'row', 'chan_0'} <= set(dataset.variables)
    store = parser('file://%s' % (tmp_path / 'my.json'), registry)
    with xarray.open_zarr(store, consolidated=False, zarr_format=3) as dataset, ct.table(DEMO, ack=False) as table:
        for name in ('DATA', 'FLAG', 'UVW', 'TIME', 'ANTENNA1', 'WEIGHT_SPECTRUM'):
            assert same(dataset[name].values, table.getcol(name)), name


@pytest.mark.parametrize('text', [b'ab\xffcde', b'abc\0de', b'\xc3\xa9abcd', b'\xed\xa0\x80abc', b'abcde\xc3'])
def test_strings_that_readers_get_otherwise(text, tmp_path):
    """Strings of a table may be any bytes. Those that Zarr cannot hold are counted, by column and in keywords."""
    path, placeholder = tmp_path / 'odd.tab', '@01234'
    described = ct.maketabdesc([ct.makescacoldesc('ONE', ''), ct.makearrcoldesc('MANY', '', ndim=1), ct.makescacoldesc('PLAIN', '')])
    with ct.table(str(path), described, nrow=2, ack=False) as table:
        table.putcol('ONE', ['before', placeholder])
        table.putcell('MANY', 0, [placeholder, 'between', placeholder])
        table.putcell('MANY', 1, ['end'])
        table.putcol('PLAIN', ['a', 'b'])
        table.putkeyword('NOTE', placeholder)
        table.putcolkeyword('PLAIN', 'record', {'inside': placeholder})
    for name in os.listdir(path):
        content = (path / name).read_bytes()
        (path / name).write_bytes(content.replace(placeholder.encode(), text))
    try:
        is_same = '\0' not in text.decode()
    except UnicodeDecodeError:
        is_same = False
    h5bridge('to-hdf5', path, tmp_path / 'odd.h5')
    for source in (path, tmp_path / 'odd.h5'):
        found = make(source, tmp_path / 'odd.json', '--overwrite')['warnings']
        counts = [('column ONE', '1 strings are'), ('column MANY', '2 strings are'), ('column PLAIN', '1 strings of keywords are'), ('table MAIN', '1 strings of keywords are')]
        assert len(found) == (0 if is_same else len(counts)), found
        for place, count in () if is_same else counts:
            assert any(place in warning and count in warning for warning in found), (place, found)
        read = open_group(tmp_path / 'odd.json')['MAIN/ONE'][:]
        assert list(read) == ['before', text.split(b'\0')[0].decode('utf-8', 'replace')]
    refs = h5bridge('refs', tmp_path / 'odd.h5', '--strict', code=DONE if is_same else WARNINGS)
    assert ('not UTF-8' in refs.stderr) != is_same


def test_base(tmp_path):
    """References below another directory: what is copied there with the manifest is read there."""
    make(DEMO, tmp_path / 'my.json', '--base', tmp_path / 'there')
    os.mkdir(tmp_path / 'there')
    shutil.copytree(DEMO, tmp_path / 'there' / 'demo.ms')
    shutil.move(tmp_path / 'my.json.rest.h5', tmp_path / 'there')
    assert all(name.startswith(str(tmp_path / 'there')) for name in files_of(tmp_path / 'my.json'))
    with ct.table(DEMO, ack=False) as table:
        assert same(open_group(tmp_path / 'my.json')['MAIN/DATA'][:], table.getcol('DATA'))
    make(DEMO, tmp_path / 'url.json', '--base', 's3://archive/2026/')
    assert files_of(tmp_path / 'url.json') == \
        {name.replace(os.path.dirname(DEMO), 's3://archive/2026').replace(str(tmp_path), 's3://archive/2026')
         for name in files_of(tmp_path / 'url.json')}
    # the files that the manifest was made from are found from its directory
    h5bridge('verify', tmp_path / 'url.json')
    recorded = json.load(open(tmp_path / 'url.json'))['h5bridge']['files']
    assert not any(os.path.isabs(file['path']) for file in recorded)


def test_short_and_missing_files_are_errors(tmp_path):
    """Readers never take zeros for elements that are gone."""
    table = shutil.copytree(DEMO, tmp_path / 'my.ms')
    make(table, tmp_path / 'my.json')
    name = [file for file in files_of(tmp_path / 'my.json') if 'TSM' in file][0]
    array = [key for key, found in references(tmp_path / 'my.json').items() if found[0] == name][0].rsplit('/', 1)[0]
    assert open_group(tmp_path / 'my.json')[array][:].size
    os.truncate(name, os.path.getsize(name) - 1)
    with pytest.raises(Exception):
        open_group(tmp_path / 'my.json')[array][:]
    os.remove(name)
    with pytest.raises(Exception):
        open_group(tmp_path / 'my.json')[array][:]


# ---- verify ------------------------------------------------------------------------------------------------------------

def changes(manifest, code):
    return {os.path.basename(found['path']): found['change']
            for found in json.loads(h5bridge('verify', manifest, '--json', code=code).stdout)['changed']}


def test_verify(tmp_path):
    table = shutil.copytree(DEMO, tmp_path / 'my.ms')
    out = tmp_path / 'my.json'
    make(table, out)
    assert changes(out, DONE) == {}
    tiles = sorted(file for file in files_of(out) if 'TSM' in file)
    status = os.stat(tiles[0])
    with open(tiles[0], 'r+b') as f:
        f.write(b'\0')
    os.utime(tiles[0], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    os.truncate(tiles[1], 1)
    os.remove(tiles[2])
    found = changes(out, DIFFERENT)
    assert set(found) == {os.path.basename(file) for file in tiles[:3]}
    assert 'modification time' in found[os.path.basename(tiles[0])] and 'has 1 bytes' in found[os.path.basename(tiles[1])]
    assert 'missing' in found[os.path.basename(tiles[2])]
    process = h5bridge('verify', out, code=DIFFERENT)
    assert tiles[0] in process.stdout and tiles[2] in process.stdout
    os.remove(str(out) + '.rest.h5')
    assert 'my.json.rest.h5' in changes(out, DIFFERENT)


def test_verify_sees_a_write_of_casacore(tmp_path):
    """Also to a column that is in the companion."""
    for column in ('DATA', 'ANTENNA1'):
        table = shutil.copytree(DEMO, tmp_path / (column + '.ms'))
        out = tmp_path / (column + '.json')
        make(table, out)
        with ct.table(str(table), readonly=False, ack=False) as opened:
            opened.putcell(column, 0, opened.getcell(column, 0) + 1)
        assert changes(out, DIFFERENT), column


def test_verify_native(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'my.h5')
    make(tmp_path / 'my.h5', tmp_path / 'my.json')
    assert changes(tmp_path / 'my.json', DONE) == {}
    with h5py.File(tmp_path / 'my.h5', 'r+') as file:
        file['MAIN/TIME'][0] += 1
    assert set(changes(tmp_path / 'my.json', DIFFERENT)) == {'my.h5'}


@pytest.mark.parametrize('text,words', [
    ('{"version": 1, "refs": {}}', 'h5bridge manifest'),
    ('{"version": 1, "refs"', 'not a manifest'),
    ('{"version": 2, "refs": {}}', 'version 2'),
    ('{"version": 1, "h5bridge": {"files": [{"path": "x"}]}, "refs": {}}', 'size'),
])
def test_verify_refuses(text, words, tmp_path):
    (tmp_path / 'my.json').write_text(text)
    process = h5bridge('verify', tmp_path / 'my.json', code=None)
    assert process.returncode in (DAMAGED, UNSUPPORTED) and words in process.stderr and 'my.json' in process.stderr


# ---- what is refused ---------------------------------------------------------------------------------------------------

def test_symbolic_links_are_refused(tmp_path):
    table = shutil.copytree(DEMO, tmp_path / 'my.ms')
    make(table, tmp_path / 'my.json')
    name = sorted(file for file in files_of(tmp_path / 'my.json') if 'TSM' in file)[0]
    os.rename(name, tmp_path / 'elsewhere')
    os.symlink(tmp_path / 'elsewhere', name)
    process = h5bridge('manifest', table, tmp_path / 'other.json', code=UNSUPPORTED)
    assert 'symbolic link' in process.stderr and os.path.basename(name) in process.stderr
    assert sorted(os.listdir(tmp_path)) == ['elsewhere', 'my.json', 'my.json.rest.h5', 'my.ms']


def test_subtables_elsewhere_are_copied(tmp_path):
    """References lead to files of the table that the user named, or to the companion."""
    table = shutil.copytree(DEMO, tmp_path / 'my.ms')
    shutil.move(table / 'SPECTRAL_WINDOW', tmp_path / 'spw')
    os.symlink(tmp_path / 'spw', table / 'SPECTRAL_WINDOW')
    make(table, tmp_path / 'my.json')
    allowed = (str(table) + os.sep, str(tmp_path / 'my.json.rest.h5'))
    assert all(name.startswith(allowed) for name in files_of(tmp_path / 'my.json'))
    assert open_group(tmp_path / 'my.json')['SPECTRAL_WINDOW/CHAN_FREQ'][:].size


@pytest.mark.parametrize('options', [['--format', 'multifile'], ['--single-file']], ids=['multifile', 'single'])
def test_containers_are_refused(options, tmp_path):
    h5bridge('pack', DEMO, tmp_path / 'packed.ms', *options)
    process = h5bridge('manifest', tmp_path / 'packed.ms', tmp_path / 'my.json', code=UNSUPPORTED)
    assert 'container' in process.stderr and 'unpack' in process.stderr
    assert os.listdir(tmp_path) == ['packed.ms']


def test_targets(tmp_path):
    out = tmp_path / 'my.json'
    make(DEMO, out)
    before = out.read_bytes()
    h5bridge('manifest', DEMO, out, code=EXISTS)
    assert out.read_bytes() == before
    h5bridge('manifest', DEMO, out, '--overwrite')
    os.remove(out)
    # nor is a companion replaced
    h5bridge('manifest', DEMO, out, code=EXISTS)
    h5bridge('manifest', DEMO, tmp_path / 'other.json', '--table', 'NOTHING', code=USAGE)
    assert sorted(os.listdir(tmp_path)) == ['my.json.rest.h5']


def test_the_source_is_never_replaced(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'my.h5')
    before = (tmp_path / 'my.h5').read_bytes()
    process = h5bridge('manifest', tmp_path / 'my.h5', tmp_path / 'my.h5', '--overwrite', code=USAGE)
    assert 'replace its source' in process.stderr and (tmp_path / 'my.h5').read_bytes() == before


def test_killed(big_ms, tmp_path):
    """Neither the manifest nor its companion is left, and the next run cleans up."""
    out = tmp_path / 'my.json'
    for delay in (0.02, 0.05, 0.1, 0.2, 0.3):
        process = subprocess.Popen([support.H5BRIDGE, 'manifest', big_ms, out], stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
        assert out.exists() or not os.path.exists(str(out) + '.rest.h5') or process.returncode == 0
        for name in (out, tmp_path / 'my.json.rest.h5'):
            if name.exists():
                os.remove(name)
    make(big_ms, out)
    assert sorted(os.listdir(tmp_path)) == ['my.json', 'my.json.rest.h5']


# ---- size --------------------------------------------------------------------------------------------------------------

def test_a_million_tiles(tmp_path):
    """The JSON is a stream: memory does not grow with the number of tiles."""
    rows = 1 << 20
    path = str(tmp_path / 'my.tab')
    column = ct.makearrcoldesc('DATA', 0., valuetype='float', shape=[2, 2], datamanagertype='TiledColumnStMan',
                               datamanagergroup='T')
    manager = {'*1': {'TYPE': 'TiledColumnStMan', 'NAME': 'T', 'SEQNR': 0, 'COLUMNS': ['DATA'],
                      'SPEC': {'DEFAULTTILESHAPE': np.array([2, 2, 1], np.int32)}}}
    table = ct.table(path, ct.maketabdesc([column]), dminfo=manager, nrow=0, ack=False)
    table.addrows(rows)
    for row in (0, 5, rows - 1):
        table.putcell('DATA', row, np.full((2, 2), row + 1, 'f4'))
    table.close()
    measured = []
    for out in ('my.json', 'other.json'):
        started = time.monotonic()
        process = subprocess.run(['/usr/bin/env', 'bash', '-c', 'ulimit -v 1500000; exec "$@"', 'bash', support.H5BRIDGE, 'manifest',
                                  path, tmp_path / out, '--json'], capture_output=True, text=True, check=True)
        measured.append(time.monotonic() - started)
    made = json.loads(process.stdout)
    assert made['references'] >= rows and min(measured) < 5, measured
    found = references(tmp_path / 'my.json')
    assert found['DATA/.zarray' if 'DATA/.zarray' in found else 'MAIN/DATA/.zarray']
    assert found['MAIN/DATA/%d.0.0' % (rows - 1)][1:] == [16 * (rows - 1), 16]
    assert sum(key.startswith('MAIN/DATA/') for key in found) == rows + 2
