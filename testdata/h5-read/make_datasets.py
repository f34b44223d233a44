"""Makes files of datasets for the tests of crates/h5-read: make_datasets.py [DIRECTORY]. Needs h5py 3.16 (HDF5 2.0.0).

Element number n, the last axis fastest, is n + 1 in all datasets; 7 was never written."""
import ctypes
import pathlib
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

UNLIMITED = None


def dataset(file, name, shape, most=None, chunks=None, filtered=False, edges_are_plain=False, early=False, written=None):
    """Writes the elements of the box `written`, all without it"""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_fill_value(np.array(7, ">u2"))
    if chunks == "compact":
        plist.set_layout(h5d.COMPACT)
    elif chunks:
        plist.set_chunk(chunks)
    if filtered:
        plist.set_shuffle()
        plist.set_fletcher32()
    if edges_are_plain:
        # h5py has no function for this
        (library,) = pathlib.Path(h5py.__file__).parents[1].glob("h5py.libs/libhdf5-*.so*")
        assert ctypes.CDLL(str(library)).H5Pset_chunk_opts(ctypes.c_int64(plist.id), 2) >= 0
    if early:
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    most = tuple(h5s.UNLIMITED if extent is None else extent for extent in most or shape)
    space = h5s.create_simple(shape, most)
    made = h5py.Dataset(h5d.create(file.id, name.encode(), h5t.STD_U16BE, space, plist))
    values = (np.arange(np.prod(shape)) + 1).reshape(shape)
    box = written if written is not None else tuple(slice(None) for _ in shape)
    made[box] = values[box]


def old(file):
    dataset(file, "compact", (2, 3), chunks="compact")
    dataset(file, "contiguous", (2, 3))
    dataset(file, "unwritten", (2, 3), written=(slice(0, 0),) * 2)
    dataset(file, "tree", (5, 4), chunks=(2, 3), most=(UNLIMITED, 4))
    dataset(file, "filtered tree", (5, 4), chunks=(2, 3), filtered=True, written=(slice(1, 5), slice(0, 2)))


def new(file):
    dataset(file, "compact", (2, 3), chunks="compact")
    dataset(file, "contiguous", (2, 3))
    filtered = {"filtered": True}
    for suffix, more in (("", {}), (" filtered", filtered), (" plain edges", filtered | {"edges_are_plain": True})):
        dataset(file, "single" + suffix, (5, 4), chunks=(5, 4), **more)
        dataset(file, "fixed" + suffix, (5, 4), most=(9, 8), chunks=(2, 3), written=(slice(1, 5), slice(0, 2)), **more)
        dataset(file, "extensible" + suffix, (15, 4), most=(UNLIMITED, 8), chunks=(2, 3), **more)
        dataset(file, "late" + suffix, (3, 2, 9), most=(5, 7, UNLIMITED), chunks=(2, 1, 3), **more)
        dataset(file, "tree" + suffix, (5, 4), most=(UNLIMITED, UNLIMITED), chunks=(2, 3), **more)
    dataset(file, "implicit", (5, 4), most=(9, 8), chunks=(2, 3), early=True)


def make(directory):
    for name, version, fill in (("datasets_old.h5", h5f.LIBVER_EARLIEST, old), ("datasets_new.h5", h5f.LIBVER_LATEST, new)):
        plist = h5p.create(h5p.FILE_CREATE)
        access = h5p.create(h5p.FILE_ACCESS)
        access.set_libver_bounds(version, h5f.LIBVER_LATEST)
        with h5py.File(h5f.create(bytes(directory / name), h5f.ACC_TRUNC, plist, access)) as file:
            fill(file)


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent)
