"""The program without libhdf5: it reads what the usual one writes, and says what it cannot do."""
import os
import subprocess

import h5py
import numpy as np
import pytest

import support
from support import h5bridge

pytestmark = pytest.mark.night('another build of the program')

MS = os.path.join(support.TESTDATA, 'demo', 'demo.ms')


@pytest.fixture(scope='module')
def lite():
    target = os.path.join(support.ROOT, 'target', 'lite')
    command = ['cargo', 'build', '-p', 'h5bridge', '--no-default-features', '--features', 'lite', '--target-dir', target]
    subprocess.run(command, cwd=support.ROOT, check=True, capture_output=True)

    def run(*words, code=support.DONE):
        program = os.path.join(target, 'debug', 'h5bridge')
        process = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=300)
        assert process.returncode == code, process.stderr
        return process
    return run


def test_nothing_but_a_compiler():
    tree = ['cargo', 'tree', '-p', 'h5bridge', '--no-default-features', '--features', 'lite', '--prefix', 'none']
    names = {line.split()[0] for line in subprocess.run(tree, cwd=support.ROOT, check=True, capture_output=True, text=True)
             .stdout.splitlines() if line}
    assert not names & {'hdf5-metno', 'hdf5-metno-sys', 'hdf5-metno-src', 'libz-sys', 'cmake'}


@pytest.mark.parametrize('options', [[], ['--compress', 'none'], ['--compress', 'zstd'], ['--hdf5', '1.8'], ['--appendable']])
def test_native_files(options, lite, tmp_path):
    h5bridge('to-hdf5', MS, tmp_path / 'a.h5', *options)
    for verb in ('digest', 'info', 'lint'):
        same = [run(verb, tmp_path / 'a.h5', '--json').stdout for run in (lite, h5bridge)]
        assert same[0] == same[1], verb
    lite('verify', MS, tmp_path / 'a.h5')
    lite('to-ms', tmp_path / 'a.h5', tmp_path / 'b.ms')
    h5bridge('verify', MS, tmp_path / 'b.ms')
    for run, picture in (lite, 'a.png'), (h5bridge, 'b.png'):
        run('plot', tmp_path / 'a.h5', 'waterfall', '--out', tmp_path / picture)
    assert (tmp_path / 'a.png').read_bytes() == (tmp_path / 'b.png').read_bytes()


def test_containers(lite, tmp_path):
    h5bridge('pack', '--format', 'multihdf5', MS, tmp_path / 'm.ms')
    lite('verify', MS, tmp_path / 'm.ms')
    lite('unpack', tmp_path / 'm.ms', tmp_path / 'u.ms')
    h5bridge('verify', MS, tmp_path / 'u.ms')
    lite('pack', '--format', 'multifile', MS, tmp_path / 'f.ms')
    h5bridge('verify', MS, tmp_path / 'f.ms')


@pytest.mark.parametrize('words', [['to-hdf5'], ['pack', '--format', 'multihdf5'], ['pack', '--single-file']])
def test_hdf5_files_are_not_written(words, lite, tmp_path):
    process = lite(*words, MS, tmp_path / 'out', code=support.UNSUPPORTED)
    assert 'built without libhdf5 (feature `lite`), which writes HDF5 files' in process.stderr
    assert not list(tmp_path.iterdir())


def test_elements_elsewhere_are_named(lite, tmp_path):
    h5bridge('to-hdf5', MS, tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5', 'r+') as file:
        column = file['MAIN/TIME']
        layout = h5py.VirtualLayout(column.shape, column.dtype)
        layout[:] = h5py.VirtualSource('.', '/copy', column.shape)
        file['copy'] = column[...]
        attributes = {name: value for name, value in column.attrs.items() if name != 'DIMENSION_LIST'}
        del file['MAIN/TIME']
        file['MAIN'].create_virtual_dataset('TIME', layout, fillvalue=0)
        for name, value in attributes.items():
            file['MAIN/TIME'].attrs[name] = value
    assert np.any(h5py.File(tmp_path / 'a.h5')['MAIN/TIME'])
    for words, code in ([], support.DONE), (['--strict'], support.WARNINGS):
        said = lite('to-ms', *words, tmp_path / 'a.h5', tmp_path / 'b.ms', '--overwrite', code=code).stderr
        assert 'column TIME is not written' in said and 'which reads these elements' in said
