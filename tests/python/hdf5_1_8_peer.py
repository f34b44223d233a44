"""hdf5_1_8_peer.py FILE...: the version of HDF5, then a line of JSON for each file with all its objects, attributes and values. Runs in
Python 3.6 with h5py 2.7 and in today's, for test_hdf5_1_8.py to compare what they say."""
import hashlib
import json
import sys

import h5py
import numpy as np

POINTERS = ('DIMENSION_LIST', 'REFERENCE_LIST')    # shown as `scales`


def plain(value):
    """Shape, kind of elements, and a hash of them; of strings, which h5py has returned as this or that, their bytes."""
    value = np.asarray(value)
    if value.dtype.kind not in 'OSU':
        return [value.shape, value.dtype.str, hashlib.sha256(value.tobytes()).hexdigest()]
    words = [word.encode('utf-8', 'surrogateescape') if isinstance(word, str) else bytes(word) for word in value.ravel().tolist()]
    return [value.shape, 'string', hashlib.sha256(repr(words).encode()).hexdigest()]


def described(item):
    found = {'attributes': {name: plain(item.attrs[name]) for name in sorted(item.attrs) if name not in POINTERS}}
    if isinstance(item, h5py.Dataset):
        found['values'] = plain(item[()])
        found['chunks'] = item.chunks
        found['scales'] = [[scale.name for scale in axis.values()] for axis in item.dims]
    return found


def content(path):
    found = {}
    with h5py.File(path, 'r') as file:
        found['/'] = described(file)
        file.visititems(lambda name, item: found.update({name: described(item)}))
    return found


print(h5py.version.hdf5_version)
for name in sys.argv[1:]:
    print(json.dumps(content(name), sort_keys=True), flush=True)
