"""Makes values.h5, elements of every class of types: make_values.py [DIRECTORY]. Needs h5py 3.16 (HDF5 2.0.0)."""
import ctypes
import pathlib
import sys

import h5py
import numpy as np
from h5py import h5s


def write(lib, file, name, kind, memory, count, values):
    """A dataset of a type that h5py does not have, from values of the type `memory`"""
    number = ctypes.c_int64
    kind, memory = (number.in_dll(lib, f"H5T_{name}_g") for name in (kind, memory))
    space, default = h5s.create_simple((count,)), number(0)
    lib.H5Dcreate2.restype = number
    dataset = number(lib.H5Dcreate2(number(file.id.id), name, kind, number(space.id), default, default, default))
    assert lib.H5Dwrite(dataset, memory, default, default, default, values) >= 0
    lib.H5Dclose(dataset)


def new_references(lib, file):
    """References in the encoding of HDF5 1.12: an object, a region, an attribute, and one that was never set"""
    values = (ctypes.c_char * 64 * 4)()
    space = h5s.create_simple((6,))
    space.select_hyperslab((1,), (2,))
    number, name = ctypes.c_int64, b"numbers"
    lib.H5Rcreate_object(number(file.id.id), name, number(0), values[0])
    lib.H5Rcreate_region(number(file.id.id), name, number(space.id), number(0), values[1])
    lib.H5Rcreate_attr(number(file.id.id), name, b"unit", number(0), values[2])
    write(lib, file, b"new references", "STD_REF", "STD_REF", 4, values)


def main(directory):
    # h5py has no functions for some types
    (lib,) = pathlib.Path(h5py.__file__).parents[1].glob("h5py.libs/libhdf5-*.so*")
    lib = ctypes.CDLL(str(lib))
    path = directory / "values.h5"
    with h5py.File(path, "w", libver="latest") as file:
        numbers = file.create_dataset("numbers", data=np.arange(6, dtype=">i2"))
        numbers.attrs["unit"] = "Jy"
        file["floats"] = np.array([1.5, -np.inf], dtype="<f2")
        file["long"] = np.array([1.5, -2.25], dtype=np.longdouble)
        two = (ctypes.c_double * 2)(1.5, -2.25)
        # in the order of a VAX, in which HDF5 2.0.0 reads numbers, but does not write them
        write(lib, file, b"vax", "VAX_F32", "VAX_F32", 2, bytes.fromhex("c0400000 10c10000"))
        write(lib, file, b"complex", "COMPLEX_IEEE_F64LE", "NATIVE_DOUBLE_COMPLEX", 1, two)
        file.create_dataset("texts", data=["one", "", "zwölf"], dtype=h5py.string_dtype())
        file["fixed"] = np.array([b"one", b"three"])
        numbers_of = file.create_dataset("sequences", (2,), dtype=h5py.vlen_dtype(np.dtype("<i4")))
        numbers_of[0] = [1, 2, 3]
        colours = h5py.enum_dtype({"RED": 0, "BLUE": 5}, basetype="u1")
        file.create_dataset("colours", data=np.array([5, 0, 1], dtype="u1"), dtype=colours)
        pair = np.dtype([("a", "<u4"), ("b", "<f8", (2,)), ("name", h5py.string_dtype())])
        file.create_dataset("pairs", data=np.array([(7, [0.5, 1.0], "x")], dtype=pair))
        file["opaque"] = np.array([b"\x01\x02"], dtype="V2")
        file.create_dataset("old references", data=[numbers.ref, h5py.Reference()], dtype=h5py.ref_dtype)
        file.create_dataset("regions", data=[numbers.regionref[2:4]], dtype=h5py.regionref_dtype)
        new_references(lib, file)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
