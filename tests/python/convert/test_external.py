"""A native file that names other files as the place of its elements: none of them is opened unless asked for."""
import json
import os
import shutil
import subprocess

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support

ROWS = 60
SECRET = b'a line of a file that the user keeps to himself\n' * 200


@pytest.fixture
def folder(tmp_path):
    """A table with its native file `data/my.h5`; a secret beside the folder; a working directory of its own."""
    data = tmp_path / 'data'
    data.mkdir()
    (tmp_path / 'cwd').mkdir()
    (tmp_path / 'secret').write_bytes(SECRET)
    table = ct.table(str(data / 'my.tab'), ct.maketabdesc([
        ct.makescacoldesc('X', 0.), ct.makescacoldesc('N', 0),
        ct.makearrcoldesc('V', 0., shape=[3], options=5)]), nrow=ROWS, ack=False)
    table.putcol('X', np.arange(ROWS) / 4)
    table.putcol('N', np.arange(ROWS, dtype=np.int32))
    table.putcol('V', np.arange(3. * ROWS).reshape(ROWS, 3))
    table.close()
    support.h5bridge('to-hdf5', data / 'my.tab', data / 'my.h5', '--compress', 'none', '--restorable')
    return data


def replace(path, name, make):
    """Puts what MAKE makes of (group, name, old values) in the place of a dataset; its attributes stay."""
    with h5py.File(path, 'r+') as file:
        group = file['MAIN']
        old, attributes = group[name][...], dict(group[name].attrs)
        del group[name]
        make(group, name, old)
        found = group.get(name, getlink=True)
        if isinstance(found, h5py.HardLink):
            for key, value in attributes.items():
                if key not in ('DIMENSION_LIST', 'CLASS', 'NAME', 'REFERENCE_LIST'):
                    group[name].attrs[key] = value
        return old


def external(target):
    return lambda group, name, old: group.create_dataset(name, old.shape, old.dtype, external=[(str(target), 0, old.nbytes)])


def virtual(target, dataset='/d'):
    def make(group, name, old):
        layout = h5py.VirtualLayout(old.shape, old.dtype)
        layout[...] = h5py.VirtualSource(str(target), dataset, old.shape)
        group.create_virtual_dataset(name, layout)
    return make


def pattern(target):
    """A virtual dataset over files %b, without end."""
    def make(group, name, old):
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space = h5py.h5s.create_simple(old.shape, (h5py.h5s.UNLIMITED,) + old.shape[1:])
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (1,), (1,))
        source = h5py.h5s.create_simple((1,))
        layout.set_virtual(space, str(target).encode(), b'/d', source)
        h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(old.dtype), space, layout)
    return make


def external_link(target, dataset='/d'):
    def make(group, name, old):
        group[name] = h5py.ExternalLink(str(target), dataset)
    return make


def other_file(path, values):
    with h5py.File(path, 'w') as file:
        file['d'] = values


# name: (how the dataset X is replaced given the folder, what the message names, the kind that info shows)
OUTSIDE = {
    'absolute': (lambda data: external(data.parent / 'secret'), 'secret', 'external storage'),
    'relative': (lambda data: external('../secret'), '../secret', 'external storage'),
    'of the system': (lambda data: external('/etc/passwd'), '/etc/passwd', 'external storage'),
    'virtual': (lambda data: virtual(data.parent / 'other.h5'), 'other.h5:/d', 'virtual dataset'),
    'virtual pattern': (lambda data: pattern(data.parent / 'other%b.h5'), 'other%b.h5', 'virtual dataset'),
    'external link': (lambda data: external_link(data.parent / 'other.h5'), 'other.h5:/d', 'external link'),
}


def verbs(data, target):
    """Every verb that reads elements of my.h5, with its arguments."""
    file = data / 'my.h5'
    return {
        'to-ms': ['to-ms', file, target],
        'to-ms --exact': ['to-ms', file, target, '--exact'],
        'to-hdf5': ['to-hdf5', file, target],
        'verify': ['verify', data / 'my.tab', file],
        'verify right': ['verify', file, data / 'my.tab'],
        'verify itself': ['verify', file],
        'digest': ['digest', file],
        'finalize': ['finalize', file, target],
        'watch': ['watch', file, '--count', 1],
        'repair': ['repair', file],
        'pack': ['pack', file, target],
    }


@pytest.mark.parametrize('case', OUTSIDE)
def test_refused_by_every_verb(folder, case):
    make, named, kind = OUTSIDE[case]
    old = replace(folder / 'my.h5', 'X', make(folder))
    before = (folder / 'my.h5').read_bytes()
    other_file(folder.parent / 'other.h5', old + 1)
    target = folder / 'out'
    for verb, words in verbs(folder, target).items():
        process = support.h5bridge(*words, code=None)
        said = process.stderr + process.stdout
        # what is no table or no live file is refused for that
        if verb in ('finalize', 'watch', 'pack', 'repair'):
            assert process.returncode in (2, 3, 4) or verb == 'repair', (verb, said)
        else:
            assert process.returncode == support.UNSUPPORTED, (verb, said)
            assert named in said and '/MAIN/X' in said, (verb, said)
        assert not target.exists(), verb
        assert 'a line of a file' not in said
    assert (folder / 'my.h5').read_bytes() == before
    text = support.h5bridge('info', folder / 'my.h5').stdout
    assert kind in text and named in text, text
    document = json.loads(support.h5bridge('info', folder / 'my.h5', '--json').stdout)
    [column] = [column for column in document['tables']['.']['columns'] if column['name'] == 'X']
    [dataset] = column['datasets']
    assert dataset['elsewhere']['kind'] == kind
    assert named in dataset['elsewhere']['targets'][0]
    assert all('elsewhere' not in other for column in document['tables']['.']['columns'] if column['name'] != 'X'
               for other in column['datasets'])


@pytest.mark.parametrize('case', OUTSIDE)
def test_outside_of_the_directory_even_when_asked(folder, case):
    make, named, _ = OUTSIDE[case]
    old = replace(folder / 'my.h5', 'X', make(folder))
    other_file(folder.parent / 'other.h5', old + 1)
    process = support.h5bridge('to-ms', folder / 'my.h5', folder / 'out', '--follow-external', code=support.UNSUPPORTED)
    assert named in process.stderr
    assert not (folder / 'out').exists()


def test_nothing_is_opened(folder):
    """Opening a FIFO without a writer would never return."""
    fifo = folder.parent / 'fifo'
    os.mkfifo(fifo)
    for make in (external(fifo), virtual(fifo), external_link(fifo)):
        shutil.copy(folder / 'my.h5', folder / 'safe.h5')
        replace(folder / 'my.h5', 'X', make)
        for words in (['to-ms', folder / 'my.h5', folder / 'out'], ['digest', folder / 'my.h5'],
                      ['to-ms', folder / 'my.h5', folder / 'out', '--follow-external']):
            support.h5bridge(*words, code=support.UNSUPPORTED, timeout=60)
        support.h5bridge('info', folder / 'my.h5', timeout=60)
        shutil.move(folder / 'safe.h5', folder / 'my.h5')


def x_of(folder, *words, **environment):
    """X of the table that to-ms --follow-external makes."""
    out = folder / 'out'
    shutil.rmtree(out, ignore_errors=True)
    process = subprocess.run([support.H5BRIDGE, 'to-ms', str(folder / 'my.h5'), str(out), '--follow-external', *words],
                             cwd=folder.parent / 'cwd', env={**os.environ, **environment}, capture_output=True, text=True)
    if process.returncode:
        return process.returncode, process.stderr
    table = ct.table(str(out), ack=False)
    return table.getcol('X')


@pytest.mark.parametrize('case', ['external', 'virtual', 'external link', 'absolute'])
def test_followed_below_the_directory(folder, case):
    (folder / 'sub').mkdir()
    make = {'external': external('sub/raw.bin'), 'virtual': virtual('sub/other.h5'),
            'external link': external_link('sub/other.h5'), 'absolute': external(folder / 'sub' / 'raw.bin')}[case]
    # h5py writes to raw.bin relative to the working directory: only its name counts here
    old = replace(folder / 'my.h5', 'X', make)
    values = old * 3 + 1
    values.tofile(folder / 'sub' / 'raw.bin')
    other_file(folder / 'sub' / 'other.h5', values)
    # a file of this name in the working directory is not the one
    (folder.parent / 'cwd' / 'sub').mkdir()
    (values * 0).tofile(folder.parent / 'cwd' / 'sub' / 'raw.bin')
    other_file(folder.parent / 'cwd' / 'sub' / 'other.h5', values * 0)
    assert np.array_equal(x_of(folder), values)
    support.h5bridge('digest', folder / 'my.h5', '--follow-external')
    support.h5bridge('to-hdf5', folder / 'my.h5', folder / 'copy.h5', '--follow-external')
    support.h5bridge('verify', folder / 'my.h5', folder / 'copy.h5', '--follow-external')
    assert 'sub/' in support.h5bridge('info', folder / 'my.h5', '--follow-external').stdout
    support.h5bridge('to-ms', folder / 'my.h5', folder / 'out2', code=support.UNSUPPORTED)


def test_environment_does_not_lead_elsewhere(folder):
    for variable, make in (('HDF5_EXTFILE_PREFIX', external('raw.bin')), ('HDF5_VDS_PREFIX', virtual('other.h5')),
                           ('HDF5_EXT_PREFIX', external_link('other.h5'))):
        shutil.copy(folder / 'my.h5', folder / 'safe.h5')
        values = replace(folder / 'my.h5', 'X', make) + 2
        values.tofile(folder / 'raw.bin')
        other_file(folder / 'other.h5', values)
        secret = folder.parent / 'elsewhere'
        secret.mkdir(exist_ok=True)
        (values * 0).tofile(secret / 'raw.bin')
        other_file(secret / 'other.h5', values * 0)
        found = x_of(folder, **{variable: str(secret)})
        if isinstance(found, tuple):
            assert found[0] == support.UNSUPPORTED and variable in found[1]
        else:
            assert variable == 'HDF5_EXT_PREFIX' and np.array_equal(found, values)
        shutil.move(folder / 'safe.h5', folder / 'my.h5')


def test_symbolic_links_do_not_lead_out(folder):
    old = replace(folder / 'my.h5', 'X', external('raw.bin'))
    old.tofile(folder.parent / 'outside.bin')
    (folder / 'raw.bin').symlink_to('../outside.bin')
    code, said = x_of(folder)
    assert code == support.UNSUPPORTED and 'not below' in said
    (folder / 'raw.bin').unlink()
    (folder / 'inside.bin').symlink_to('real.bin')
    old.tofile(folder / 'real.bin')
    (folder / 'raw.bin').symlink_to('inside.bin')
    assert np.array_equal(x_of(folder), old)


def test_nested_references_are_not_followed(folder):
    """A followed source that itself leads elsewhere."""
    replace(folder / 'my.h5', 'X', virtual('other.h5'))
    with h5py.File(folder / 'other.h5', 'w') as file:
        file.create_dataset('d', (ROWS,), 'f8', external=[(str(folder.parent / 'secret'), 0, 8 * ROWS)])
    assert x_of(folder)[0] == support.UNSUPPORTED
    with h5py.File(folder / 'other.h5', 'w') as file:
        file['d'] = h5py.ExternalLink(str(folder.parent / 'third.h5'), '/d')
    other_file(folder.parent / 'third.h5', np.zeros(ROWS))
    assert x_of(folder)[0] == support.UNSUPPORTED


def test_through_a_group(folder):
    """A whole table, and a group on the way, in another file."""
    with h5py.File(folder.parent / 'other.h5', 'w') as other, h5py.File(folder / 'my.h5', 'r+') as file:
        file.copy('MAIN', other)
        file.move('MAIN', 'OLD')
        file['MAIN'] = h5py.ExternalLink('../other.h5', '/MAIN')
    for words in (['to-ms', folder / 'my.h5', folder / 'out'], ['digest', folder / 'my.h5']):
        process = support.h5bridge(*words, code=support.UNSUPPORTED)
        assert 'external link to ../other.h5:/MAIN' in process.stderr + process.stdout
    assert 'external link to ../other.h5:/MAIN' in support.h5bridge('info', folder / 'my.h5').stdout


def test_made_by_hand(folder):
    """A column that no document describes."""
    path = folder / 'hand.h5'
    for make, named in ((external(folder.parent / 'secret'), 'external storage'), (external_link('../other.h5'), 'external link'),
                        (virtual('../other.h5'), 'virtual dataset')):
        with h5py.File(path, 'w') as file:
            file.attrs['format'], file.attrs['format_version'] = 'ctds-hdf5', '1.0'
            file['MAIN/A'] = np.arange(ROWS)
            file['MAIN/X'] = np.arange(float(ROWS))
        replace(path, 'X', make)
        said = support.h5bridge('to-ms', path, folder / 'out', code=support.UNSUPPORTED).stderr
        assert named in said and 'X' in said
        assert named in support.h5bridge('info', path).stdout


def test_soft_links(folder):
    """Those that stay in the file are followed; others are an error that says why."""
    def soft(target):
        def make(group, name, old):
            group.file['elsewhere/x'] = old + 1
            group[name] = h5py.SoftLink(target)
        return make
    path = folder / 'my.h5'
    shutil.copy(path, folder / 'safe.h5')
    old = replace(path, 'X', soft('/elsewhere/x'))
    assert np.array_equal(x_of(folder), old + 1)
    for target, code, named in (('/elsewhere/none', support.DAMAGED, 'target is missing'), ('/MAIN/X', support.DAMAGED, 'circle'),
                                ('/out/d', support.UNSUPPORTED, 'other.h5')):
        shutil.copy(folder / 'safe.h5', path)
        replace(path, 'X', soft(target))
        other_file(folder.parent / 'other.h5', old)
        with h5py.File(path, 'r+') as file:
            file['out'] = h5py.ExternalLink('../other.h5', '/')
        shutil.rmtree(folder / 'out')
        said = support.h5bridge('to-ms', path, folder / 'out', code=code).stderr
        assert named in said and 'soft link' in said, said
        (folder / 'out').mkdir()


def test_user_defined_links(folder):
    """libhdf5 writes none without a class: an external link whose class is changed in the file."""
    path = folder / 'hand.h5'
    # headers of version 1 have no checksums
    with h5py.File(path, 'w', libver='earliest') as file:
        file.attrs['format'], file.attrs['format_version'] = 'ctds-hdf5', '1.0'
        file['MAIN/A'] = np.arange(ROWS)
        file['MAIN/X'] = h5py.ExternalLink('a-link-of-a-class', '/d')
    data = bytearray(path.read_bytes())
    at = data.index(b'a-link-of-a-class')
    # a link message: version 1, flags with bit 3 (the type follows), type 64
    [start] = [i for i in range(at - 40, at) if data[i] == 1 and data[i + 1] & 8 and data[i + 2] == 64]
    data[start + 2] = 187
    path.write_bytes(data)
    with h5py.File(path) as file:
        assert file['MAIN'].id.links.get_info(b'X').type == 187
    said = support.h5bridge('to-ms', path, folder / 'out', code=support.UNSUPPORTED).stderr
    assert 'user-defined link' in said and '187' in said
    assert 'user-defined link' in support.h5bridge('info', path).stdout


def test_virtual_datasets_of_the_same_file(folder):
    """Nothing leaves the file: they are read, unless they lead in a circle."""
    path = folder / 'my.h5'

    def within(group, name, old):
        group.file['parts/x'] = old + 1
        virtual('.', '/parts/x')(group, name, old)
    shutil.copy(path, folder / 'safe.h5')
    old = replace(path, 'X', within)
    support.h5bridge('to-ms', path, folder / 'out')
    table = ct.table(str(folder / 'out'), ack=False)
    assert np.array_equal(table.getcol('X'), old + 1)
    table.close()
    shutil.rmtree(folder / 'out')

    # through a second virtual dataset to a file of the user, or round in a circle
    for source, code, named in ((external(folder.parent / 'secret'), support.UNSUPPORTED, 'secret'),
                                (virtual('.', '/MAIN/X'), support.DAMAGED, 'circle'),
                                (external_link('../other.h5'), support.UNSUPPORTED, 'other.h5')):
        shutil.copy(folder / 'safe.h5', path)
        with h5py.File(path, 'r+') as file:
            source(file.create_group('parts'), 'x', np.zeros(ROWS))
        replace(path, 'X', virtual('.', '/parts/x'))
        said = support.h5bridge('to-ms', path, folder / 'out', code=code).stderr
        assert named in said, said


def test_live_files(folder, tmp_path):
    """The writer appends to what is in its file only, and its readers read that."""
    live = folder / 'live.h5'
    process = subprocess.run([support.H5BRIDGE, 'follow', str(folder / 'my.tab'), str(live), '--until-closed'],
                             capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    replace(live, 'X', external(folder.parent / 'secret'))
    before = (folder.parent / 'secret').read_bytes()
    for words in (['watch', live, '--count', 1], ['finalize', live, folder / 'out.h5'], ['repair', live],
                  ['follow', folder / 'my.tab', live, '--until-closed'], ['to-ms', live, folder / 'out'], ['digest', live]):
        process = support.h5bridge(*words, code=None)
        assert process.returncode == support.UNSUPPORTED, (words, process.returncode, process.stderr)
        assert 'secret' in process.stderr + process.stdout
    assert (folder.parent / 'secret').read_bytes() == before
