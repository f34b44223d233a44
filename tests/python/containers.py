"""Containers read a second time, without h5bridge: what a table would be if each of its files lay on its own."""
import io
import os
import re
import struct

import h5py
import numpy as np


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
    if 'table.dat_plain' in found:
        found['table.dat'] = found.pop('table.dat_plain')
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


# ---- made by hand ----------------------------------------------------------------------------------------------------

HEADER = '__MultiHDF5_Header__'


def text(value):
    return struct.pack('>I', len(value.encode())) + value.encode()


def framed(name, version, content):
    """An AipsIO object."""
    body = text(name) + struct.pack('>I', version) + content
    return struct.pack('>I', len(body) + 4) + body


def make_multifile_1(files, block):
    """A MultiFile version 1 of these files ([(name, bytes)]), whose blocks lie backwards, and what is in its _hdrext."""
    def numbers(values):
        return framed('Block', 1, struct.pack('>I%dq' % len(values), len(values), *values))

    pieces, entries = [], b''
    for name, content in files:
        cut = [content[at:at + block].ljust(block, b'\0') for at in range(0, len(content), block)]
        pieces += reversed(cut)
        entries += text(name) + numbers([len(pieces) - i for i in range(len(cut))]) + struct.pack('>q', len(content))
    entries = framed('Block', 1, struct.pack('>I', len(files)) + entries)
    # one free block, the last
    body = struct.pack('>I', 0xbebebebe) + framed('MultiFile', 1, struct.pack('>q', len(pieces) + 2) + entries + numbers([len(pieces) + 1]))
    header = struct.pack('>qqq', 24 + len(body), block, 1) + body
    return b''.join([header[:block].ljust(block, b'\0'), *pieces, bytes(block)]), header[block:]


def make_multifile(files, block=512, index=None, free=(), blocks=None, crc=None):
    """The bytes of a MultiFile version 2 with these files ([(name, bytes)], for names may repeat), one after the other.

    INDEX: {name: packed index} in the place of the right one. CRC: {block: CRC}; right ones are in it with CRC={}."""
    def numbers(values):
        return struct.pack('>q%dq' % len(values), len(values), *values)

    counts = [-(-len(content) // block) for _, content in files]
    entries = b''.join(text(name) + struct.pack('>q?', len(content), False) for name, content in files)

    def header(first, checksums):
        starts = [first + sum(counts[:i]) for i in range(len(files))]
        packed = [([start] + ([1 - count] if count > 1 else [])) if count else [] for start, count in zip(starts, counts)]
        packed = [(index or {}).get(name, right) for (name, _), right in zip(files, packed)]
        body = struct.pack('>I', 0xbebebebe) + framed('MultiFile', 2, framed('Block', 1, struct.pack('>I', len(files)) + entries))
        body += b''.join(map(numbers, packed)) + numbers(free)
        body += struct.pack('>q%dI' % len(checksums), len(checksums), *checksums) + bytes(24)
        total = blocks or first + sum(counts)
        fields = struct.pack('>qqq', 0, 0, 1), struct.pack('>qqq', 64 + len(body), block, total)
        head = lambda check: fields[0] + struct.pack('>iI', 2, check) + fields[1] + bytes([crc is not None]) + bytes(7) + body
        return head(crc32(head(0)) if crc is not None else 0)

    content = b''.join(content.ljust(count * block, b'\0') for (_, content), count in zip(files, counts))
    checksums = []
    if crc is not None:
        pieces = [content[at:at + block] for at in range(0, len(content), block)]
        checksums = [0] + [crc.get(n + 1, crc32(piece)) for n, piece in enumerate(pieces)]
    whole = header(1, checksums)
    assert len(whole) <= block, 'larger blocks, please: the header has %d bytes' % len(whole)
    return whole.ljust(block, b'\0') + content


def crc32(data):
    """CRC-32/BZIP2."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ (0x04c11db7 if crc >> 31 else 0)
            crc &= 0xffffffff
    return crc ^ 0xffffffff


def make_multihdf5(group, files, block=512, nested=(), **how):
    """Makes the group of an HDF5 file a MultiHDF5 with these files ({name: bytes}); NESTED are names of groups that are
    to be containers. HOW: options of the datasets."""
    header = group.create_group(HEADER).attrs
    names = [*files, *nested]
    header.create('blockSize', block, dtype='<i8')
    header.create('hdrCounter', 1, dtype='<i8')
    header.create('names', names, dtype=h5py.string_dtype('utf-8'))
    header.create('sizes', [len(files.get(name, b'')) for name in names], dtype='<i8')
    for name, content in files.items():
        rows = -(-len(content) // block)
        data = np.frombuffer(content.ljust(rows * block, b'\0'), 'u1').reshape(rows, block)
        # a name with a slash would be groups
        if '/' not in name and name != '..':
            group.create_group(name).create_dataset('FileData', data=data, chunks=(1, block), maxshape=(None, block), **how)
