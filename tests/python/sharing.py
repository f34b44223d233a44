"""Tables in tiles of many shapes, made by python-casacore, and where HDF5 has what they hold."""
import fcntl
import os
import shutil
import struct
import subprocess

import casacore.tables as ct
import h5py
import numpy as np

MIB = 1 << 20
# Datasets of at least this many bytes begin at a multiple of a MiB: docs/reference/layout.md, "Blocks"
ALIGNED = 4 * MIB


class Tiles:
    """A column in tiles: cells of SHAPE (numpy's order), tiles of TILE (casacore's order, rows last), ROWS rows."""

    def __init__(self, name, dtype, shape, tile, kind='TiledShapeStMan', shapes=(), index='implicit'):
        self.name, self.dtype, self.shape, self.tile, self.kind = name, dtype, shape, tile, kind
        # of some rows, other shapes than SHAPE: more hypercubes
        self.shapes = shapes
        # the index of the dataset in HDF5
        self.index = index

    def shape_of(self, row):
        """The shape of a cell; each block of 100 rows has another of the shapes."""
        all_shapes = (self.shape, *self.shapes)
        return all_shapes[row // 100 % len(all_shapes)]


VALUE_TYPES = {'c8': 'complex', 'c16': 'dcomplex', 'f4': 'float', 'f8': 'double', 'i4': 'int', 'u4': 'uint', 'i2': 'short',
               'u1': 'uchar', '?': 'boolean'}

COLUMNS = [
    # a tile covers the cell: joined along rows, with a row tail
    Tiles('JOINED', 'c8', (64, 4), [4, 64, 16]),
    Tiles('UVW', 'f8', (3,), [3, 1000], kind='TiledColumnStMan', index='single'),
    # several tiles in a cell, tails on the channel axis and on the rows
    Tiles('CHAN_TAIL', 'c8', (50, 4), [4, 20, 50]),
    Tiles('ODD', 'f4', (64, 4), [3, 24, 77]),
    Tiles('SPLIT', 'i2', (64, 4), [2, 16, 512]),
    Tiles('BYTES', 'u1', (33, 2), [2, 11, 700]),
    Tiles('WIDE', 'c16', (30, 2), [2, 7, 31]),
    # rows of a tile beyond those of the cube: one chunk, and several
    Tiles('LONG', 'f4', (8, 4), [4, 8, 5000], index='single'),
    Tiles('LONG_SPLIT', 'u4', (8, 4), [4, 3, 5000]),
    # several hypercubes
    Tiles('CUBES', 'f4', (16, 4), [4, 16, 32], shapes=((8, 4), (12, 4)), index='single'),
    Tiles('CUBES_SPLIT', 'c8', (16, 4), [2, 5, 32], shapes=((8, 4), (40, 2))),
]


def make(path, columns=COLUMNS, rows=1333, order='little', seed=1, together=()):
    """Makes a table at PATH; each column has a manager of its own, but those in TOGETHER share one."""
    descriptions, dminfo = [], {}
    for number, column in enumerate(columns):
        fixed = {'shape': list(column.shape), 'options': 4} if column.kind == 'TiledColumnStMan' else {'ndim': len(column.shape)}
        name = 'together' if column.name in together else 't' + column.name
        descriptions.append(ct.makearrcoldesc(column.name, 0, valuetype=VALUE_TYPES[column.dtype], datamanagertype=column.kind,
                                              datamanagergroup=name, **fixed))
        if name not in {info['NAME'] for info in dminfo.values()}:
            dminfo['*%d' % number] = {'TYPE': column.kind, 'NAME': name, 'COLUMNS': [],
                                      'SPEC': {'DEFAULTTILESHAPE': np.array(column.tile, 'i4')}}
        next(info for info in dminfo.values() if info['NAME'] == name)['COLUMNS'].append(column.name)
    descriptions.append(ct.makescacoldesc('TIME', 0., valuetype='double'))
    rng = np.random.default_rng(seed)
    table = ct.table(str(path), ct.maketabdesc(descriptions), nrow=rows, dminfo=dminfo, endian=order, ack=False)
    for column in columns:
        if not column.shapes:
            table.putcol(column.name, random_values(rng, column.dtype, (rows, *column.shape)))
            continue
        for row in range(rows):
            table.putcell(column.name, row, random_values(rng, column.dtype, column.shape_of(row)))
    table.putcol('TIME', np.arange(rows, dtype='f8'))
    table.close()
    return path


def random_values(rng, dtype, shape):
    if dtype == '?':
        return rng.random(shape) < 0.5
    if dtype.startswith('c'):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.standard_normal(shape) * 100).astype(dtype) if dtype.startswith('f') else rng.integers(0, 100, shape).astype(dtype)


def values_of(table, column):
    """What python-casacore reads: an array, or a list of cells of differing shapes."""
    with ct.table(str(table), ack=False) as opened:
        if not column.shapes:
            return opened.getcol(column.name)
        return [opened.getcell(column.name, row) for row in range(opened.nrows())]


def cells_in(item):
    """All cells of a column of a native file, as values_of has them."""
    if isinstance(item, h5py.Dataset):
        return item[...]
    cubes = {name: item[name][...] for name in item if name.startswith('cube')}
    rows = zip(item['row_cube'][...], item['row_index'][...])
    return [cubes['cube%d' % cube][position] for cube, position in rows]


def same(found, expected):
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for row, (a, b) in enumerate(zip(found, expected)):
            np.testing.assert_array_equal(a, b, err_msg='row %d' % row)
    else:
        np.testing.assert_array_equal(found, expected)


def blocks(item):
    """The datasets of a column that are blocks."""
    if isinstance(item, h5py.Dataset):
        return [item]
    return [item[name] for name in sorted(item) if name.startswith('cube')]


def check_block(dataset):
    """One allocation, chunks in row-major order, aligned if it is large; returns address and bytes."""
    chunk = int(np.prod(dataset.chunks)) * dataset.dtype.itemsize
    counts = [-(-extent // part) for extent, part in zip(dataset.shape, dataset.chunks)]
    number = dataset.id.get_num_chunks()
    assert number == np.prod(counts), dataset.name
    infos = [dataset.id.get_chunk_info(n) for n in range(number)]
    base = min(info.byte_offset for info in infos)
    for info in infos:
        index = [start // part for start, part in zip(info.chunk_offset, dataset.chunks)]
        assert info.byte_offset == base + chunk * np.ravel_multi_index(index, counts), '%s: chunk %s' % (dataset.name, index)
        assert info.size == chunk and info.filter_mask == 0
    assert dataset.compression is None and not dataset.shuffle and dataset.maxshape == dataset.shape
    assert dataset.id.get_create_plist().get_alloc_time() == h5py.h5d.ALLOC_TIME_EARLY
    assert dataset.id.get_create_plist().get_fill_time() == h5py.h5d.FILL_TIME_NEVER
    assert chunk * number < ALIGNED or base % MIB == 0, '%s at %d' % (dataset.name, base)
    assert base + chunk * number <= os.path.getsize(dataset.file.filename)
    return base, chunk * number


# ---- file systems that share ---------------------------------------------------------------------------------------

FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC, FIEMAP_EXTENT_LAST, FIEMAP_EXTENT_SHARED = 1, 1, 0x2000


def shared_extents(path):
    """[(offset, bytes)] of the parts of a file that it shares with other files, as the file system knows them."""
    found, start = [], 0
    with open(path, 'rb') as f:
        while True:
            buffer = bytearray(struct.pack('=QQLLLL', start, (1 << 64) - 1 - start, FIEMAP_FLAG_SYNC, 0, 128, 0) + bytes(56 * 128))
            fcntl.ioctl(f, FS_IOC_FIEMAP, buffer)
            count = struct.unpack_from('=L', buffer, 20)[0]
            for number in range(count):
                logical, _, length, _, _, flags = struct.unpack_from('=QQQQQL', buffer, 32 + 56 * number)
                if flags & FIEMAP_EXTENT_SHARED:
                    found.append((logical, length))
                if flags & FIEMAP_EXTENT_LAST:
                    return found
                start = logical + length
            if count == 0:
                return found


def is_shared(path, start, size):
    """Whether whole blocks of 4 KiB from START on are shared; the last block may not be whole."""
    end = (start + size) // 4096 * 4096
    for logical, length in sorted(shared_extents(path)):
        if logical <= start < logical + length:
            start = logical + length
    return start >= end


class FileSystem:
    """A file system in an image below FOLDER, mounted; `why` says why it is not."""

    def __init__(self, folder, kind, size):
        self.image, self.path, self.mounted = folder / (kind + '.img'), folder / kind, False
        self.why = self.mount(kind, size)

    def mount(self, kind, size):
        if os.geteuid() != 0:
            return 'only root may mount a %s image' % kind
        if shutil.which('mkfs.' + kind) is None:
            return 'mkfs.%s is missing (%s)' % (kind, 'xfsprogs' if kind == 'xfs' else 'btrfs-progs')
        self.path.mkdir()
        with open(self.image, 'wb') as f:
            f.truncate(size)
        for words in (['mkfs.' + kind, '-q', self.image], ['mount', '-o', 'loop', self.image, self.path]):
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                return '%s may not be used here: %s' % (words[0], done.stderr.strip().splitlines()[-1:])
        self.mounted = True
        return None

    def used(self):
        """Bytes in use."""
        subprocess.run(['sync', '-f', self.path], check=True)
        state = os.statvfs(self.path)
        return (state.f_blocks - state.f_bfree) * state.f_frsize

    def unmount(self):
        if self.mounted:
            subprocess.run(['umount', self.path], check=True)
