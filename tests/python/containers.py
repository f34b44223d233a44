"""Containers read a second time, without h5bridge: what a table would be if each of its files lay on its own."""
import io
import os
import re
import struct

import h5py


def files(folder):
    """{path below a table directory: bytes} of the plain twin, subdirectories included."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            found.update({os.path.join(name, inner): content for inner, content in files(path).items()})
            found.setdefault(name + '/', None)
        else:
            with open(path, 'rb') as f:
                found[name] = f.read()
    return unpacked(found) if 'table.dat' in found else found


def unpacked(found):
    """The same with the files out of the container beside table.dat, and table.dat as it then is."""
    dat = found['table.dat']
    option = storage(dat)
    if option is None:
        return found
    at, rows, kind = option
    if rows <= 0x7fffffff:
        dat = dat[:at] + struct.pack('>iI', -2, rows) + dat[at + 20:]
        found['table.dat'] = dat[:4] + struct.pack('>I', len(dat) - 4) + dat[8:]
    name, read = [('table.mf', multifile), ('table.mfh5', multihdf5)][kind]
    if name in found:
        rest = found.pop(name + '_hdrext', b'')
        found.update(read(found.pop(name), rest))
    return found


def storage(dat):
    """(where the column set begins, rows, kind of container) of a table.dat that says that its files are in a container, else None."""
    hits = list(re.finditer(rb'\xff\xff\xff\xfd(.{8})\0\0\0[\0\1]', dat, re.DOTALL))
    assert len(hits) < 2
    return (hits[0].start(), struct.unpack('>Q', hits[0].group(1))[0], dat[hits[0].end() - 1]) if hits else None


class Stream:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, form):
        values = struct.unpack_from('>' + form, self.data, self.at)
        self.at += struct.calcsize('>' + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        return self.take('%ds' % self.take('I')).decode()

    def object(self, magic=False):
        if magic:
            assert self.take('I') == 0xbebebebe
        self.take('I')
        return self.text(), self.take('I')

    def numbers(self, count):
        return [self.take('q') for _ in range(count)]

    def packed(self):
        numbers = []
        for value in self.numbers(self.take('q')):
            numbers += [value] if value >= 0 else range(numbers[-1] + 1, numbers[-1] + 1 - value)
        return numbers


def multifile(data, rest=b''):
    """{name: bytes} of a MultiFile of either version; REST is its _hdrext file. formats/table.md 5."""
    found = []
    head = struct.unpack_from('>q', data)[0]
    if head:
        size, block = struct.unpack_from('>qq', data)[:2]
        stream = Stream(data[:size] if size <= block else data[:block] + rest, 24)
        assert stream.object(magic=True) == ('MultiFile', 1)
        stream.take('q')
        assert stream.object() == ('Block', 1)
        for _ in range(stream.take('I')):
            name = stream.text()
            assert stream.object() == ('Block', 1)
            numbers = stream.numbers(stream.take('I'))
            found.append((name, stream.take('q'), numbers))
    else:
        following, _, _, _, size, block = struct.unpack_from('>qqiIqq', data, 8)
        header = data[:min(size, block)]
        while len(header) < size:
            start = following * block
            following, = struct.unpack_from('>q', data, start)
            header += data[start + 8:start + block]
        stream = Stream(header[:size], 64)
        assert stream.object(magic=True) == ('MultiFile', 2) and stream.object() == ('Block', 1)
        entries = [(stream.text(), stream.take('q?')[0]) for _ in range(stream.take('I'))]
        found = [(name, size, stream.packed()) for name, size in entries]
    return {name: b''.join(data[n * block:(n + 1) * block] for n in numbers)[:size]
            for name, size, numbers in found if name}


def multihdf5(data, _rest=b''):
    """{name: bytes} of a MultiHDF5. formats/table.md 6."""
    with h5py.File(io.BytesIO(data)) as file:
        header = file['__MultiHDF5_Header__'].attrs
        if header['names'].dtype.names:        # an empty array
            return {}
        names = [n if isinstance(n, str) else n.decode() for n in header['names']]
        return {name: file[name]['FileData'][...].tobytes()[:size] for name, size in zip(names, header['sizes']) if name}
