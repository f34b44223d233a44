"""Compression: what `--compress` writes and what others compressed, with h5py and hdf5plugin as judges.

h5py reads what this program wrote, bit by bit; this program reads what h5py wrote through each filter. Filters that are
not part of this program come from the plugins of hdf5plugin, through libhdf5."""
import json
import os
import shutil

import h5py
import hdf5plugin
import numpy as np
import pytest

import support
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
PLUGINS = hdf5plugin.PLUGIN_PATH
# --compress, the filters in the file, the plugin that readers need
WRITTEN = [
    ('gzip', [2, 1], None), ('gzip:9', [2, 1], None),
    ('zstd', [2, 32015], ('zstd', 32015)), ('zstd:1', [2, 32015], ('zstd', 32015)), ('zstd:19', [2, 32015], ('zstd', 32015)),
    ('lz4', [2, 32004], ('lz4', 32004)),
]


# columns that are filtered whatever their values are
NUMBERS = ['MAIN/' + name for name in ('DATA', 'UVW', 'FLAG', 'TIME', 'ANTENNA1', 'WEIGHT', 'WEIGHT_SPECTRUM')]


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch):
    """Plugins are found only where a test says so."""
    monkeypatch.setenv('HDF5_PLUGIN_PATH', '/nowhere')


def datasets(path):
    """The datasets of a file, by their paths."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item
    file = h5py.File(path)
    file.visititems(visit)
    return found


def filters(dataset):
    creation = dataset.id.get_create_plist()
    return [creation.get_filter(number) for number in range(creation.get_nfilters())]


def is_equal(a, b):
    """Whether two datasets have the same bytes, or the same strings."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return np.array_equal(a[...], b[...]) if a.dtype.hasobject else a[...].tobytes() == b[...].tobytes()


# ---- written ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('word,ids,plugin', WRITTEN, ids=[row[0] for row in WRITTEN])
@pytest.mark.parametrize('options', [[], ['--appendable'], ['--restorable']], ids=' '.join)
def test_h5py_reads_what_is_written(tmp_path, counts, word, ids, plugin, options):
    h5bridge('to-hdf5', DEMO, tmp_path / 'plain.h5', '--compress', 'none', '--digest', *options)
    process = h5bridge('to-hdf5', DEMO, tmp_path / 'x.h5', '--compress', word, *options)
    plain, packed = datasets(tmp_path / 'plain.h5'), datasets(tmp_path / 'x.h5')
    columns = [name for name in plain if not name.startswith('_ctds')]
    assert set(NUMBERS) <= set(columns)
    assert len(columns) > 100 and sorted(columns) == sorted(name for name in packed if not name.startswith('_ctds'))
    for name in columns:
        found = filters(packed[name])
        # strings have no filters, nor the flags of a column of strings, nor dimension scales, nor what has no elements
        assert [f[0] for f in found] in ([ids] if name in NUMBERS else [ids, []]), name
        assert not (found and packed[name].dtype.hasobject), name
        assert is_equal(plain[name], packed[name]), name
        counts['datasets'] += 1
        counts['filtered'] += bool(found)
    assert [f[0] for f in filters(packed['MAIN/DATA'])] == ids
    if ':' in word:
        assert filters(packed['MAIN/DATA'])[1][2][0] == int(word.split(':')[1])
    # what says how the original is restored needs no plugin, whatever the columns need
    assert all(f[0] in (1, 2) for name in packed if name.startswith('_ctds') for f in filters(packed[name]))
    line = 'readers need the %s filter plugin (%d), e.g. hdf5plugin' % plugin if plugin else 'readers need'
    assert (line in process.stderr) == bool(plugin)
    h5bridge('verify', tmp_path / 'x.h5')
    h5bridge('verify', DEMO, tmp_path / 'x.h5')
    assert support.digest(tmp_path / 'x.h5') == support.digest(DEMO)
    h5bridge('to-ms', tmp_path / 'x.h5', tmp_path / 'back.ms', *(['--exact'] if '--restorable' in options else []))
    h5bridge('verify', DEMO, tmp_path / 'back.ms')


def test_the_same_bytes_twice(tmp_path):
    for word in ('zstd', 'lz4'):
        made = []
        for threads in (1, 2):
            out = tmp_path / ('%s-%d.h5' % (word, threads))
            h5bridge('to-hdf5', DEMO, out, '--compress', word, '--threads', threads)
            made.append(out.read_bytes())
        assert made[0] == made[1]


def test_auto_needs_no_plugin(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'x.h5')
    assert {f[0] for dataset in datasets(tmp_path / 'x.h5').values() for f in filters(dataset)} == {1, 2}
    assert 'plugins' not in json.loads(h5bridge('info', '--json', tmp_path / 'x.h5').stdout)


def test_info_and_summaries_name_the_plugin(tmp_path):
    entry = {'filter': 'zstd', 'id': 32015, 'package': 'hdf5plugin'}
    line = 'readers need the zstd filter plugin (32015), e.g. hdf5plugin'
    made = json.loads(h5bridge('to-hdf5', '--json', DEMO, tmp_path / 'x.h5', '--compress', 'zstd:5').stdout)
    assert made['plugins'] == [entry]
    info = json.loads(h5bridge('info', '--json', tmp_path / 'x.h5').stdout)
    assert info['plugins'] == [entry]
    columns = {column['name']: column for column in info['tables']['.']['columns']}
    assert columns['DATA']['filters'] == ['shuffle', 'zstd(5)']
    assert '  ' + line in h5bridge('info', tmp_path / 'x.h5').stdout.splitlines()
    plan = json.loads(h5bridge('to-hdf5', '--json', DEMO, tmp_path / 'y.h5', '--dry-run', '--compress', 'zstd:5').stdout)
    planned = {column['name']: column for column in plan['tables'][0]['columns']}
    assert planned['DATA']['compression'] == 'zstd:5' and planned['DATA']['deflate'] is None
    packed = h5bridge('pack', DEMO, tmp_path / 'p.h5', '--single-file', '--crc', '--compress', 'zstd')
    assert line in packed.stderr
    h5bridge('verify', '--bytes', DEMO, tmp_path / 'p.h5')
    h5bridge('verify', DEMO, tmp_path / 'p.h5')


def test_finalize(tmp_path):
    shutil.copytree(DEMO, tmp_path / 'my.ms')
    h5bridge('follow', tmp_path / 'my.ms', tmp_path / 'live.h5', '--idle', '1s')
    for word, number in (('zstd:2', 32015), ('lz4', 32004)):
        process = h5bridge('finalize', tmp_path / 'live.h5', tmp_path / 'x.h5', '--source', tmp_path / 'my.ms',
                           '--overwrite', '--compress', word)
        assert '(%d), e.g. hdf5plugin' % number in process.stderr
        assert [f[0] for f in filters(datasets(tmp_path / 'x.h5')['MAIN/DATA'])] == [2, number]
        h5bridge('verify', DEMO, tmp_path / 'x.h5')


def test_compressed_files_are_sources(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'x.h5', '--compress', 'zstd')
    h5bridge('to-hdf5', tmp_path / 'x.h5', tmp_path / 'y.h5', '--compress', 'lz4')
    h5bridge('verify', tmp_path / 'y.h5', DEMO)


@pytest.mark.parametrize('word', ['zstd:0', 'zstd:23', 'zstd:', 'lz4:1', 'lzf', 'deflate', 'ZSTD'])
def test_other_words_are_usage_errors(tmp_path, word):
    process = h5bridge('to-hdf5', DEMO, tmp_path / 'x.h5', '--compress', word, code=support.USAGE)
    assert 'levels' in process.stderr or 'gzip[:1-9], zstd[:1-22] or lz4' in process.stderr
    assert not (tmp_path / 'x.h5').exists()


def test_help_lists_the_codecs():
    for verb in ('to-hdf5', 'finalize', 'pack'):
        text = ' '.join(h5bridge(verb, '--help').stdout.split())
        assert 'none, gzip[:1-9], zstd[:1-22] or lz4' in text


# ---- written by others ------------------------------------------------------------------------------------------------

def nbit():
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_OPTIONAL)
    return creation


# the filter, how h5py is told, the column; '' if this program or libhdf5 has it, else the name in the message
OURS = {
    'zstd': (dict(hdf5plugin.Zstd(clevel=7)), 'DATA'),
    'zstd, shuffled, with checksums': (dict(hdf5plugin.Zstd(), shuffle=True, fletcher32=True), 'UVW'),
    'lz4': (dict(hdf5plugin.LZ4()), 'DATA'),
    'lz4 in small blocks': (dict(hdf5plugin.LZ4(nbytes=1000)), 'DATA'),
    'lz4, shuffled': (dict(hdf5plugin.LZ4(), shuffle=True), 'UVW'),
    'lzf': (dict(compression='lzf'), 'UVW'),
    'lzf, shuffled': (dict(compression='lzf', shuffle=True), 'DATA'),
    'gzip with checksums': (dict(compression='gzip', fletcher32=True), 'DATA'),
    'scaleoffset': (dict(scaleoffset=0), 'ANTENNA2'),
    'scaleoffset and gzip': (dict(scaleoffset=0, compression='gzip'), 'ANTENNA1'),
    'checksums': (dict(fletcher32=True), 'UVW'),
    'blosc': (dict(hdf5plugin.Blosc(cname='lz4')), 'DATA'),
    'blosc with zstd': (dict(hdf5plugin.Blosc(cname='zstd')), 'UVW'),
    'blosc with zlib and bits': (dict(hdf5plugin.Blosc(cname='zlib', shuffle=2)), 'UVW'),
    'big-endian in zstd': (dict(hdf5plugin.Zstd(), dtype='>f8'), 'UVW'),
    'big-endian in lz4': (dict(hdf5plugin.LZ4(), dtype='>f8'), 'UVW'),
    'big-endian in lzf': (dict(compression='lzf', dtype='>i4'), 'ANTENNA1'),
}
PLUGGED = {
    'blosc2': (dict(hdf5plugin.Blosc2()), 'DATA', 'blosc2 (number 32026)'),
    'bitshuffle': (dict(hdf5plugin.Bitshuffle()), 'DATA', 'bitshuffle (number 32008)'),
    'bitshuffle with zstd': (dict(hdf5plugin.Bitshuffle(cname='zstd')), 'UVW', 'bitshuffle (number 32008)'),
    'bzip2': (dict(hdf5plugin.BZip2()), 'UVW', 'bzip2 (number 307)'),
    'zfp': (dict(hdf5plugin.Zfp(reversible=True)), 'UVW', 'zfp (number 32013)'),
}


def rewritten(folder, column, options):
    """A native file of the demo in which h5py replaced the dataset of a column by one of these options."""
    path = folder / 'native.h5'
    h5bridge('to-hdf5', DEMO, path, '--compress', 'none', '--digest')
    with h5py.File(path, 'r+') as file:
        old = file['MAIN/' + column]
        attributes = {name: old.attrs[name] for name in old.attrs if name != 'DIMENSION_LIST'}
        scales = [[scale.name for scale in axis.values()] for axis in old.dims]
        options = {'dtype': old.dtype, 'chunks': old.chunks or old.shape, **options}
        data = old[...]
        del file['MAIN/' + column]
        new = file.create_dataset('MAIN/' + column, data=data, **options)
        for name, value in attributes.items():
            new.attrs[name] = value
        for axis, names in zip(new.dims, scales):
            for name in names:
                axis.attach_scale(file[name])
        # every chunk went through all filters
        masks = [new.id.get_chunk_info(i).filter_mask for i in range(new.id.get_num_chunks())]
        assert masks and not any(masks)
    return path


def check_reads(path, folder):
    h5bridge('verify', path)
    h5bridge('verify', DEMO, path)
    assert support.digest(path) == support.digest(DEMO)
    h5bridge('to-ms', path, folder / 'back.ms')
    h5bridge('verify', DEMO, folder / 'back.ms')
    shutil.rmtree(folder / 'back.ms')


@pytest.mark.parametrize('case', OURS)
def test_filters_of_others_without_plugins(tmp_path, case):
    options, column = OURS[case]
    check_reads(rewritten(tmp_path, column, options), tmp_path)


@pytest.mark.parametrize('case', PLUGGED)
def test_filters_in_plugins(tmp_path, monkeypatch, case):
    options, column, name = PLUGGED[case]
    path = rewritten(tmp_path, column, options)
    # info needs no element
    plugins = json.loads(h5bridge('info', '--json', path).stdout)['plugins']
    assert ['%s (number %d)' % (plugin['filter'], plugin['id']) for plugin in plugins] == [name]
    for words in (['digest', path], ['to-ms', path, tmp_path / 'back.ms'], ['verify', DEMO, path]):
        process = h5bridge(*words, code=None)
        assert process.returncode != support.DONE, words
        said = process.stderr + process.stdout
        assert name in said and '/MAIN/' + column in said and 'hdf5plugin' in said, said
        assert not (tmp_path / 'back.ms').exists()
    monkeypatch.setenv('HDF5_PLUGIN_PATH', PLUGINS)
    check_reads(path, tmp_path)


def test_szip(tmp_path):
    """szip is an option of libhdf5 that the one linked statically does not have."""
    if not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip('this h5py has no szip')
    path = rewritten(tmp_path, 'ANTENNA1', dict(compression='szip'))
    process = h5bridge('digest', path, code=None)
    if process.returncode == support.DONE:
        check_reads(path, tmp_path)
    else:
        assert 'szip (number 4)' in process.stderr + process.stdout and 'h5repack' in process.stderr + process.stdout


def test_nbit(tmp_path):
    path = tmp_path / 'native.h5'
    h5bridge('to-hdf5', DEMO, path, '--compress', 'none', '--digest')
    with h5py.File(path, 'r+') as file:
        old = file['MAIN/ANTENNA1']
        attributes, data = {n: v for n, v in old.attrs.items() if n != 'DIMENSION_LIST'}, old[...]
        del file['MAIN/ANTENNA1']
        creation = nbit()
        creation.set_chunk(data.shape)
        space = h5py.h5s.create_simple(data.shape)
        h5py.h5d.create(file['MAIN'].id, b'ANTENNA1', h5py.h5t.NATIVE_INT32, space, creation)
        new = file['MAIN/ANTENNA1']
        new[...] = data
        new.attrs.update(attributes)
        new.dims[0].attach_scale(file['MAIN/row'])
        assert [f[0] for f in filters(new)] == [h5py.h5z.FILTER_NBIT]
    check_reads(path, tmp_path)


@pytest.mark.parametrize('lie', ['length', 'cut', 'noise'])
@pytest.mark.parametrize('word', ['gzip', 'zstd', 'lz4'])
def test_chunks_that_lie(tmp_path, word, lie):
    """Stored chunks that declare lengths they do not have, or are no chunks: an error, and little memory."""
    path = tmp_path / 'x.h5'
    h5bridge('to-hdf5', DEMO, path, '--compress', word)
    with h5py.File(path, 'r+') as file:
        data = file['MAIN/DATA']
        _, chunk = data.id.read_direct_chunk((0,) * data.ndim)
        chunk = bytearray(chunk)
        if lie == 'length' and word == 'lz4':
            chunk[0:8] = (1 << 60).to_bytes(8, 'big')
        elif lie == 'length' and word == 'zstd':
            # a frame header that states 2^60 bytes: magic, descriptor with 8 bytes of length, window
            chunk[0:] = b'\x28\xb5\x2f\xfd\xe0' + (1 << 60).to_bytes(8, 'little') + bytes(chunk[6:])
        elif lie == 'noise':
            chunk = bytearray(np.random.default_rng(1).integers(0, 256, 500, dtype='u1').tobytes())
        else:
            chunk = chunk[:len(chunk) // 2]
        data.id.write_direct_chunk((0,) * data.ndim, bytes(chunk))
    process = h5bridge('digest', path, code=None)
    assert process.returncode not in (support.DONE, 101) and 'DATA' in process.stderr + process.stdout
    assert 'panicked' not in process.stderr
