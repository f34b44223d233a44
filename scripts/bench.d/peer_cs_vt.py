"""The vt peer of `scripts/bench containers`: packs a directory into a new store with cs.vt 20190309.

Prints the seconds without Python's start and imports. Its own `vt pack` command fails in this release, so this calls what it calls.
"""
import collections
import collections.abc
import os
import sys
import time

# the release is from before Python 3.10, which removed these names
for name in collections.abc.__all__:
    setattr(collections, name, getattr(collections.abc, name))

from cs.buffer import CornuCopyBuffer  # noqa: E402
from cs.vt.archive import FilePathArchive  # noqa: E402
from cs.vt.dir import Dir  # noqa: E402
from cs.vt.store import DataDirStore  # noqa: E402


def add(directory, path):
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name)
        if os.path.isdir(inner):
            add(directory.mkdir(name), inner)
        else:
            with open(inner, 'rb') as f:
                directory.file_frombuffer(name, CornuCopyBuffer.from_file(f))


def main():
    source, target = sys.argv[1:]
    started = time.perf_counter()
    store = os.path.join(target, 'store')
    os.makedirs(store)
    opened = DataDirStore('store', store)
    opened.init()
    with opened:
        directory = Dir(os.path.basename(source))
        add(directory, source)
        FilePathArchive(os.path.join(target, 'a.vt')).update(directory)
    print('%.3f s' % (time.perf_counter() - started), flush=True)


main()
