"""Makes the small files of the tests of crates/h5-read: make.py [DIRECTORY]. Needs h5py 3.16 (HDF5 2.0.0)."""
import ctypes
import pathlib
import sys

import h5py
import numpy as np
from h5py import h5f, h5g, h5p


def links(group, count):
    """Links of each kind and `count` hard ones"""
    child = group.create_group("child")
    child["soft"] = h5py.SoftLink("/child")
    group["relative"] = h5py.SoftLink("child/soft")
    group["dangling"] = h5py.SoftLink("/nowhere")
    group["loop"] = h5py.SoftLink("loop")
    group["other"] = h5py.ExternalLink("other.h5", "/x")
    for number in range(count):
        group[f"name {number}"] = child


def attributes(thing, count):
    """Attributes of each shape, of a committed type, and `count` more"""
    thing.attrs["scalar"] = np.int32(-7)
    thing.attrs["array"] = np.arange(6, dtype=">f8").reshape(2, 3)
    thing.attrs["text"] = np.bytes_("text")
    thing.attrs["null"] = h5py.Empty("i2")
    for number in range(count):
        thing.attrs[f"name {number}"] = np.int16(number)


def committed(file):
    file["type"] = np.dtype("<i8")
    file.attrs.create("typed", 5, dtype=file["type"])


def old_links(file):
    # external links are stored by newer groups only
    child = file.create_group("child")
    child["soft"] = h5py.SoftLink("/child")
    file["relative"] = h5py.SoftLink("child/soft")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file["loop"] = h5py.SoftLink("loop")
    for number in range(12):
        file[f"name {number}"] = child


def make(directory):
    with h5py.File(directory / "old.h5", "w", libver="earliest") as file:
        old_links(file)
        attributes(file, 0)
        committed(file)
    with h5py.File(directory / "compact.h5", "w", libver="latest", track_order=True) as file:
        links(file, 1)
        attributes(file, 0)
        committed(file)
    with h5py.File(directory / "dense.h5", "w", libver="latest", track_order=True) as file:
        links(file, 12)
        attributes(file, 12)
        committed(file)
        # a huge object of its heap
        file.attrs["huge"] = np.arange(2100, dtype="i2")
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    plist = h5p.create(h5p.FILE_CREATE)
    # h5py has no functions for these
    (library,) = pathlib.Path(h5py.__file__).parents[1].glob("h5py.libs/libhdf5-*.so*")
    library = ctypes.CDLL(str(library))
    share = library.H5Pset_shared_mesg_index
    assert library.H5Pset_shared_mesg_nindexes(ctypes.c_int64(plist.id), 2) >= 0
    assert share(ctypes.c_int64(plist.id), 0, 1 << 1 | 1 << 3 | 1 << 5, 1) >= 0
    assert share(ctypes.c_int64(plist.id), 1, 1 << 12, 1) >= 0
    with h5py.File(h5f.create(bytes(directory / "shared.h5"), h5f.ACC_TRUNC, plist, access)) as file:
        for name in "ab":
            group = file.create_group(name)
            attributes(group, 0)
        attributes(file["b"], 9)
    with h5py.File(directory / "filtered.h5", "w", libver="latest") as file:
        plist = h5p.create(h5p.GROUP_CREATE)
        assert library.H5Pset_fletcher32(ctypes.c_int64(plist.id)) >= 0
        group = h5py.Group(h5g.create(file.id, b"group", None, plist))
        for number in range(12):
            group[f"name {number}"] = h5py.SoftLink("/group")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent)
