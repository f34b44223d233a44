"""Power cuts: all that a live writer asked of the disk is recorded, and the disk is as any part of the unsynced writes would leave it.

After each, plain h5py, `repair` and `finalize` have every row that was committed with `Durability::Disk`, with its values.
"""
import collections
import json
import os
import random
import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest

import support
from support import h5bridge

STATES = 1000 if support.LONG else 25
PAGE_BYTES = 4096

# Logs writes, lengths and syncs of one file: kind, offset, number of bytes, bytes
RECORDER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_recorded(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    /* made under another name beside it */
    return strncmp(path, getenv("RECORDED"), strlen(getenv("RECORDED"))) == 0 && !strstr(path, ".writer");
}
static void note(char kind, uint64_t offset, uint64_t bytes, const void *data) {
    static int file = -1;
    if (file < 0) file = syscall(SYS_openat, AT_FDCWD, getenv("RECORD"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    char head[17];
    head[0] = kind;
    memcpy(head + 1, &offset, 8);
    memcpy(head + 9, &bytes, 8);
    syscall(SYS_write, file, head, sizeof head);
    if (data) syscall(SYS_write, file, data, bytes);
}
ssize_t pwrite64(int file, const void *data, size_t bytes, off_t offset) {
    ssize_t done = syscall(SYS_pwrite64, file, data, bytes, offset);
    if (done > 0 && is_recorded(file)) note('W', offset, done, data);
    return done;
}
ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) { return pwrite64(file, data, bytes, offset); }
ssize_t write(int file, const void *data, size_t bytes) {
    off_t offset = file > 2 && is_recorded(file) ? lseek(file, 0, SEEK_CUR) : -1;
    ssize_t done = syscall(SYS_write, file, data, bytes);
    if (done > 0 && offset >= 0) note('W', offset, done, data);
    return done;
}
int ftruncate64(int file, off_t length) {
    int failed = syscall(SYS_ftruncate, file, length);
    if (!failed && is_recorded(file)) note('T', length, 0, NULL);
    return failed;
}
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }
int fsync(int file) {
    int failed = syscall(SYS_fsync, file);
    if (!failed && is_recorded(file)) note('S', 0, 0, NULL);
    return failed;
}
int fdatasync(int file) {
    int failed = syscall(SYS_fdatasync, file);
    if (!failed && is_recorded(file)) note('S', 0, 0, NULL);
    return failed;
}
void committed(uint64_t rows) { note('C', rows, 0, NULL); }
"""

# Writes rows whose values are their numbers, and ends as by a kill
WRITER = """
import ctypes, os, sys
import numpy as np
from h5bridge.live import Column, Table, Writer

commits, step, chunk = map(int, sys.argv[2:])
committed = ctypes.CDLL(os.environ['LD_PRELOAD']).committed
columns = {'TIME': Column('f8', chunk_rows=chunk), 'DATA': Column('c8', cell=(4, 2), chunk_rows=chunk),
           'FLAG': Column('?', cell=(4, 2), chunk_rows=chunk)}
writer = Writer(sys.argv[1], {'MAIN': Table(columns)}, every=None, fsync=True)
committed(ctypes.c_uint64(0))
for first in range(0, commits * step, step):
    rows = np.arange(first, first + step)
    cells = np.broadcast_to(rows[:, None, None], (step, 4, 2))
    writer.append('MAIN', TIME=rows.astype('f8'), DATA=cells.astype('c8'), FLAG=cells % 2 == 1)
    writer.commit()
    committed(ctypes.c_uint64(first + step))
os._exit(0)
"""


@pytest.fixture(scope='module', params=[(40, 10, 8), (300, 3, 2)], ids=['large commits', 'many chunks'])
def log(request, tmp_path_factory):
    """[(kind, offset, bytes)] of a writer."""
    folder = tmp_path_factory.mktemp('power')
    library, record, live = str(folder / 'recorder.so'), folder / 'log', str(folder / 'live.h5')
    subprocess.run(['cc', '-shared', '-fPIC', '-x', 'c', '-', '-o', library], input=RECORDER, text=True, check=True)
    subprocess.run([sys.executable, '-c', WRITER, live, *map(str, request.param)], check=True,
                   env={**os.environ, 'LD_PRELOAD': library, 'RECORDED': live, 'RECORD': str(record)})
    content, at, events = record.read_bytes(), 0, []
    while at < len(content):
        kind, (offset, count) = chr(content[at]), struct.unpack_from('<QQ', content, at + 1)
        at += 17
        count = count if kind == 'W' else 0
        events.append((kind, offset, content[at:at + count]))
        at += count
    # what was recorded is the file
    disk = bytearray()
    for event in events:
        apply(disk, *event)
    assert disk == open(live, 'rb').read()
    kinds = collections.Counter(kind for kind, _, _ in events)
    assert kinds['C'] == request.param[0] + 1 and kinds['S'] > kinds['C'], kinds
    return events


def apply(disk, kind, offset, data):
    if kind == 'W':
        disk.extend(bytes(max(0, offset + len(data) - len(disk))))
        disk[offset:offset + len(data)] = data
    elif kind == 'T':
        del disk[offset:]
        disk.extend(bytes(offset - len(disk)))


def some_pages(events, chosen):
    """Each page in one of the states that it had in memory."""
    pages, kept = collections.defaultdict(list), [event for event in events if event[0] == 'T']
    for _, offset, data in (event for event in events if event[0] == 'W'):
        at = 0
        while at < len(data):
            count = min(len(data) - at, PAGE_BYTES - (offset + at) % PAGE_BYTES)
            pages[(offset + at) // PAGE_BYTES].append(('W', offset + at, data[at:at + count]))
            at += count
    for states in pages.values():
        kept.extend(states[:chosen.choice([0, len(states), chosen.randrange(len(states) + 1)])])
    return kept


def some_writes(events, chosen):
    return [event for event in events if event[0] == 'T' or chosen.random() < 0.5]


def check(rows, cells):
    numbers = np.arange(rows)
    assert (cells('TIME')[:rows] == numbers).all()
    if rows:
        assert (cells('DATA')[:rows].reshape(rows, -1) == numbers[:, None]).all()
        assert ((cells('FLAG')[:rows] != 0).reshape(rows, -1) == numbers[:, None] % 2).all()


@support.needs_compiler
@pytest.mark.parametrize('part', [some_pages, some_writes])
def test_committed_rows_survive(log, part, tmp_path, counts):
    chosen = random.Random('%s %s' % (part.__name__, os.environ.get('H5BRIDGE_SEED', '')))
    first = next(number for number, event in enumerate(log) if event[0] == 'C')
    live, final = str(tmp_path / 'live.h5'), str(tmp_path / 'final.h5')
    for _ in range(STATES):
        cut = chosen.randrange(first + 1, len(log) + 1)
        synced = max((number for number in range(cut) if log[number][0] == 'S'), default=-1)
        disk = bytearray()
        for event in log[:synced + 1] + part(log[synced + 1:cut], chosen):
            apply(disk, *event)
        committed = max(offset for kind, offset, _ in log[:cut] if kind == 'C')
        with open(live, 'wb') as file:
            file.write(disk)
        for name in (live + '.writer', final):
            if os.path.exists(name):
                os.remove(name)

        with h5py.File(live, 'r', swmr=True, locking=False) as file:
            rows = int(file['MAIN/committed_rows'][0])
            assert rows >= committed
            check(rows, lambda column: file['MAIN'][column])
        h5bridge('finalize', live, final)
        with h5py.File(final) as file:
            check(rows, lambda column: file['MAIN'][column])
            assert len(file['MAIN/TIME']) == rows
        document = json.loads(h5bridge('--json', 'repair', live).stdout)
        assert [table['committed_rows'] for table in document['tables']] == [rows]
        counts['torn'] += any('torn' in warning for warning in document.get('warnings', []))
        with h5py.File(live) as file:
            check(rows, lambda column: file['MAIN'][column])
            assert len(file['MAIN/TIME']) == rows
        h5bridge('verify', live, final)
        counts['states'] += 1
        counts['rows'] += rows
    assert counts['rows'] > counts['states']
