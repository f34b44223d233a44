"""Opening: `info`, a native MeasurementSet, and files of many datasets, beside h5py and HDF5's own tools, in turn, in the page cache.

`info` counts what it takes over `--version`, which starts the same program. A MeasurementSet is open when the package knows its columns;
h5py has then visited all objects. Of files of many datasets every shape, type and attribute is read: here by `examples/list` of h5-read, a
process that prints them, there by h5py in a process that has started.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import h5py
import numpy as np

import h5bridge

RELEASE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'target', 'release')
H5BRIDGE = os.environ.get('H5BRIDGE', os.path.join(RELEASE, 'h5bridge'))
LIST = os.path.join(RELEASE, 'examples', 'list')

parser = argparse.ArgumentParser(prog='scripts/bench open', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('table', help='a small MeasurementSet with its subtables')
parser.add_argument('--rounds', type=int, default=15)
parser.add_argument('--datasets', type=int, default=10000)


def process(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def visit(path):
    """All that describes the objects of a file, by h5py."""
    def look(_, item):
        dict(item.attrs)
        if isinstance(item, h5py.Dataset):
            item.shape, item.dtype, item.chunks
    with h5py.File(path) as file:
        file.visititems(look)


def datasets(path, count, libver):
    with h5py.File(path, 'w', libver=libver) as file:
        for number in range(count):
            name = f'{number // 100}/{number}'
            file[name] = np.arange(3)
            file[name].attrs['unit'] = 'Jy'


def in_turn(rounds, calls):
    """Median seconds of each call; the first round only warms."""
    taken = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def main():
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        native = os.path.join(folder, 'native.h5')
        process(H5BRIDGE, 'to-hdf5', options.table, native, '--quiet')
        found = in_turn(options.rounds, {
            'nothing': lambda: process(H5BRIDGE, '--version'),
            'info': lambda: process(H5BRIDGE, 'info', native),
            'h5dump -H': lambda: process('h5dump', '-H', native),
            'open_table': lambda: h5bridge.open_table(native).columns,
            'h5py': lambda: visit(native),
        })
        print(f'{os.path.getsize(native) / 1e3:.0f} kB: info {1e3 * (found["info"] - found["nothing"]):.1f} ms over --version '
              f'({1e3 * found["nothing"]:.1f} ms); h5dump -H {1e3 * found["h5dump -H"]:.1f} ms')
        print(f'open_table {1e3 * found["open_table"]:.2f} ms; h5py, all objects {1e3 * found["h5py"]:.1f} ms')
        for libver in 'earliest', 'v110':
            path = os.path.join(folder, libver)
            datasets(path, options.datasets, libver)
            found = in_turn(3, {'h5-read': lambda: process(LIST, path), 'h5py': lambda: visit(path)})
            print(f'{options.datasets} datasets, {libver}: h5-read {found["h5-read"]:.3f} s, h5py {found["h5py"]:.3f} s: '
                  f'{found["h5py"] / found["h5-read"]:.1f} times as fast')


main()
