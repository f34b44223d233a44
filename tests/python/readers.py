"""What programs make of native files. test_readers.py runs this as a process of its own, which no plugin of HDF5 has been loaded into:

    python readers.py READER EXPECTED.npz FILE...

prints {"version": …, "first": verdicts, "rest": verdicts} as JSON: on the first dataset in each of the files, and on the other ones in the first
of the files that the reader reads. EXPECTED has the values by the paths of the datasets."""
import functools
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np


def h5py(path, name):
    import h5py
    with h5py.File(path) as file:
        dataset = file[name]
        return dataset.asstr()[...] if h5py.check_string_dtype(dataset.dtype) else dataset[...]


def xarray(path, name, **options):
    import xarray
    group, name = name.split('/')
    with xarray.open_dataset(path, group=group, decode_times=False, mask_and_scale=False, **options) as dataset:
        return dataset[name].values


def xarray_h5netcdf(path, name):
    return xarray(path, name, engine='h5netcdf')


def xarray_netcdf4(path, name):
    return xarray(path, name, engine='netcdf4')


def xarray_netcdf4_complex(path, name):
    return xarray(path, name, engine='netcdf4', auto_complex=True)


def netcdf4(path, name):
    import netCDF4
    with netCDF4.Dataset(path) as file:
        return np.asarray(file[name][...])


def virtualizarr(path, name):
    import xarray
    group, name = name.split('/')
    with virtual_store(path, group) as store:
        return xarray.open_zarr(store, consolidated=False, zarr_format=3, decode_times=False, mask_and_scale=False)[name].values


def virtual_store(path, group, drop=()):
    """A group of a file as VirtualiZarr shows it to zarr."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser
    parser = HDFParser(group=group, drop_variables=list(drop) or None)
    return parser(url='file://%s' % path, registry=ObjectStoreRegistry({'file://': LocalStore()}))


def pyfive(path, name):
    import pyfive
    with pyfive.File(path) as file:
        return as_text(file[name][...])


def jsfive(path, name):
    found = jsfive_datasets(path)['/' + name]
    if 'error' in found:
        raise ValueError(found['error'])
    values = np.array(found['values'])
    try:
        values = values.astype('f8')
    except ValueError:
        pass            # strings
    return values.reshape(found['shape'])


@functools.cache
def jsfive_datasets(path):
    """{path: {shape, values} or {error}} of all datasets, from the installation in JSFIVE."""
    script = os.path.join(os.environ['JSFIVE'], 'read.cjs')
    return json.loads(subprocess.run(['node', script, str(path)], check=True, capture_output=True, text=True).stdout)


def h5dump(path, name):
    """Numbers as h5dump writes them in binary; of strings its text."""
    with tempfile.NamedTemporaryFile() as out:
        run = subprocess.run(['h5dump', '-d', '/' + name, '-b', 'FILE', '-o', out.name, path], capture_output=True, text=True)
        data = np.fromfile(out.name, np.uint8)
    expected = EXPECTED[name]
    if expected.dtype.kind != 'U':
        if run.returncode or 'error' in run.stderr:
            raise ValueError(run.stderr)
        return data.view(expected.dtype).reshape(expected.shape)
    text = subprocess.run(['h5dump', '-y', '-d', '/' + name, path], capture_output=True, text=True, check=True).stdout
    return np.array(text.split('DATA {')[1].split('}')[0].replace('"', '').replace(',', '').split())


def as_text(values):
    return np.array([value.decode() if isinstance(value, bytes) else value for value in values.ravel()],
                    object).reshape(values.shape) if values.dtype == object else values


# name: (function, the packages or the command whose versions count)
READERS = {
    'h5py': (h5py, ['h5py']),
    'xarray (h5netcdf)': (xarray_h5netcdf, ['xarray', 'h5netcdf']),
    'xarray (netcdf4)': (xarray_netcdf4, ['xarray', 'netCDF4']),
    'xarray (netcdf4, auto_complex=True)': (xarray_netcdf4_complex, ['xarray', 'netCDF4']),
    'netCDF4': (netcdf4, ['netCDF4']),
    'VirtualiZarr': (virtualizarr, ['virtualizarr']),
    'h5dump': (h5dump, 'h5dump'),
    'pyfive': (pyfive, ['pyfive']),
    'jsfive': (jsfive, 'jsfive'),
}


def version(source):
    if source == 'h5dump':
        text = subprocess.run(['h5dump', '--version'], capture_output=True, text=True, check=True).stdout
        return '.'.join(text.split()[-1].split('.')[:2])
    if source == 'jsfive':
        with open(os.path.join(os.environ['JSFIVE'], 'node_modules', 'jsfive', 'package.json')) as file:
            return json.load(file)['version']
    return ', '.join(importlib.metadata.version(package) for package in source)


def missing(reader):
    """Why a reader cannot run here, or ''."""
    if reader == 'h5dump' and not shutil.which('h5dump'):
        return 'h5dump is missing (Debian: hdf5-tools)'
    if reader == 'jsfive' and not os.environ.get('JSFIVE'):
        return 'jsfive is missing'
    return ''


def verdict(read, path, name):
    """yes, what is shown instead, or no."""
    expected = EXPECTED[name]
    try:
        values = np.asarray(read(path, name))
    except Exception as error:
        print('%s %s: %s: %s' % (path, name, type(error).__name__, str(error)[:300]), file=sys.stderr)
        return 'no'
    shown = 'yes'
    if values.dtype.names:
        parts, shown = values, 'as r and i'
        values = np.empty(parts.shape, expected.dtype)
        values.real, values.imag = parts['r'], parts['i']
    elif expected.dtype == bool and values.dtype != bool:
        shown = 'as 0 and 1'
    if expected.dtype.kind == 'U':
        values = values.astype(str)
    return shown if np.array_equal(values, expected) else 'wrong'


if __name__ == '__main__':
    reader, expected, *files = sys.argv[1:]
    EXPECTED = dict(np.load(expected))
    function, source = READERS[reader]
    first = next(iter(EXPECTED))
    read = [verdict(function, path, first) for path in files]
    rest = [verdict(function, files[read.index('yes')], name) for name in EXPECTED if name != first] if 'yes' in read else []
    print(json.dumps({'version': version(source), 'first': read, 'rest': rest}))
