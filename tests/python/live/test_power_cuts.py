"""After a power cut a live file has all committed rows: for plain h5py, for `repair` and for `finalize`.

States of the disk are made from the calls of a writer, as strace saw them: all that it had synced, and of the writes after that any
subset, or each page of 4 KiB in any of the states that it had in memory. H5BRIDGE_LONG=1: 5,000 states; H5BRIDGE_SEED: support.seeds."""
import ast
import collections
import os
import random
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest

import h5bridge
import support

pytestmark = pytest.mark.skipif(not support.STRACE, reason='strace is missing or may not trace')

PAGE = 4096
# commits, rows of each, rows of a chunk
WRITERS = [(40, 7, 2), (25, 10, 16), (60, 1, 1)]
# Commits rows whose cells are their number, writes down after each commit how many there are, and ends as by a kill
WRITER = """
import os, sys
import numpy as np
from h5bridge.live import Column, Table, Writer

path, marks, commits, rows, chunk = *sys.argv[1:3], *map(int, sys.argv[3:])
columns = {'TIME': Column('f8', chunk_rows=chunk), 'DATA': Column('c8', cell=(8, 2), chunk_rows=chunk),
           'FLAG': Column('?', cell=(8, 2), chunk_rows=chunk), 'NAME': Column(str, string_length=8, chunk_rows=chunk),
           'VARIABLE': Column('f4', shapes=[(3, 2), (5,)], chunk_rows=chunk)}
shapes = (3, 2), (5,)
writer = Writer(path, {'MAIN': Table(columns)}, every=None, fsync=True)
marks = os.open(marks, os.O_WRONLY | os.O_CREAT)
os.write(marks, b'0')
for commit in range(commits):
    numbers = np.arange(commit * rows, (commit + 1) * rows)
    cells = np.broadcast_to(numbers[:, None, None], (rows, 8, 2))
    several = [None if number % 3 == 2 else np.full(shapes[number % 3], number, 'f4') for number in numbers]
    writer.append('MAIN', TIME=numbers.astype('f8'), DATA=cells.astype('c8'), FLAG=cells % 2 == 1,
                  NAME=['row %d' % number for number in numbers], VARIABLE=several)
    writer.commit()
    os.write(marks, b'%d' % ((commit + 1) * rows))
os._exit(0)
"""
CALL = re.compile(r'\d+ +(\w+)\(\d+<(.*?)>(?:, (.*))?\) += \d+$')

# 'write', 'length', 'sync', or 'commit' with the number of rows as OFFSET
Event = collections.namedtuple('Event', 'kind offset content', defaults=(0, b''))


def of_call(name, words):
    """The event of a system call on the live file."""
    if name == 'pwrite64':
        content, _, offset = words
        return Event('write', int(offset), ast.literal_eval('b' + content))
    if name == 'ftruncate':
        return Event('length', int(words[0]))
    assert name in ('fdatasync', 'fsync'), name
    return Event('sync')


def record(folder, writer):
    """What a writer did until it was killed after its last commit."""
    path, marks, log = folder / 'live.h5', folder / 'marks', folder / 'calls'
    subprocess.run([support.STRACE, '-f', '-y', '-xx', '-qq', '-s', '100000000', '-o', log,
                    '-e', 'trace=write,pwrite64,pwritev,ftruncate,fallocate,fdatasync,fsync',
                    sys.executable, '-c', WRITER, path, marks, *map(str, writer)], check=True)
    events = []
    for line in log.read_text().splitlines():
        name, file, words = CALL.match(line).groups(default='')
        file, words = ast.literal_eval('"%s"' % file), words.split(', ')
        if file == str(marks):
            events.append(Event('commit', int(ast.literal_eval(words[0]))))
        elif os.path.basename(file) == path.name:    # it is created in a folder of its own, and renamed
            events.append(of_call(name, words))
    commits, rows, _ = writer
    assert [event.offset for event in events if event.kind == 'commit'] == [rows * n for n in range(commits + 1)]
    # what leads to the rows is on the disk before their number, and that before the commit ends
    assert sum(event.kind == 'sync' for event in events) >= 2 * commits
    return events


def apply(event, image):
    end = event.offset + len(event.content)
    image.extend(bytes(max(0, end - len(image))))
    if event.kind == 'length':
        del image[end:]
    else:
        image[event.offset:end] = event.content


def of_pages(writes, rng):
    """WRITES as they reach the disk if each page does in one of its states."""
    pages = collections.defaultdict(list)
    for write in writes:
        at = 0
        while at < len(write.content):
            end = min(len(write.content), at + PAGE - (write.offset + at) % PAGE)
            pages[(write.offset + at) // PAGE].append(Event('write', write.offset + at, write.content[at:end]))
            at = end
    return [part for parts in pages.values() for part in parts[:rng.choice([0, len(parts), rng.randint(0, len(parts))])]]


def after_a_cut(events, rng):
    """The content of the disk after a power cut at a random moment, and how many rows were committed."""
    first = next(number for number, event in enumerate(events) if event.kind == 'commit')
    cut = rng.randint(first + 1, len(events))
    synced = max(number for number, event in enumerate(events[:cut]) if event.kind == 'sync')
    image = bytearray()
    pending = [event for event in events[synced:cut] if event.kind in ('write', 'length')]
    writes = [event for event in pending if event.kind == 'write']
    kept = rng.choice([lambda: [write for write in writes if rng.random() < 0.5], lambda: of_pages(writes, rng)])()
    for event in [*(event for event in events[:synced] if event.kind in ('write', 'length')),
                  *(event for event in pending if event.kind == 'length'), *kept]:
        apply(event, image)
    return image, max(event.offset for event in events[:cut] if event.kind == 'commit')


def check_variable(group, numbers):
    """Cells of two shapes and undefined ones: in hypercubes; in a finalized file one after the other, or as an array if they have one shape."""
    counts = 6, 5, 0
    if isinstance(group, h5py.Dataset):
        assert (group[:].reshape(len(numbers), counts[0]) == numbers[:, None]).all()
        return
    sizes = np.array(counts)[numbers % 3]
    if 'offset' in group:
        assert (group['offset'][:] == np.append(0, np.cumsum(sizes))).all() and (group['defined'][:] == (numbers % 3 < 2)).all()
        assert (group['values'][:] == np.repeat(numbers, sizes)).all()
        return
    cube, index = group['row_cube'][:len(numbers)], group['row_index'][:len(numbers)]
    assert (cube == np.where(sizes, numbers % 3, -1)).all()
    for number in range(2):
        rows = numbers[cube == number]
        assert (index[cube == number] == np.arange(len(rows))).all()
        assert (group['cube%d' % number][:len(rows)].reshape(len(rows), counts[number]) == rows[:, None]).all()


def check(file, committed):
    """Has FILE all rows that were committed, with their values? How many it has."""
    main = file['MAIN']
    rows = int(main['committed_rows'][0]) if 'committed_rows' in main else len(main['TIME'])
    assert rows >= committed
    numbers = np.arange(rows)
    assert (main['TIME'][:rows] == numbers).all()
    assert (main['DATA'][:rows].reshape(rows, 16) == numbers[:, None]).all()
    assert (main['FLAG'][:rows].reshape(rows, 16) == (numbers % 2 == 1)[:, None]).all()
    assert main['NAME'].asstr()[:rows].tolist() == ['row %d' % number for number in numbers]
    check_variable(main['VARIABLE'], numbers)
    return rows


@pytest.mark.parametrize('writer', WRITERS, ids=lambda writer: '%d times %d rows in chunks of %d' % writer)
def test_all_committed_rows_are_there(writer, tmp_path):
    events = record(tmp_path, writer)
    live, final = tmp_path / 'cut.h5', tmp_path / 'final.h5'
    counts = collections.Counter()
    for seed in support.seeds(0, 20, 1700):
        image, committed = after_a_cut(events, random.Random(seed))
        live.write_bytes(image)
        with h5py.File(live, 'r', swmr=True, locking=False) as file:
            rows = check(file, committed)
        h5bridge.finalize(live, final, overwrite=True)
        with h5py.File(final) as file:
            assert check(file, committed) == rows
        repaired = h5bridge.repair(live)
        with h5py.File(live) as file:
            assert check(file, committed) == rows
        counts['torn' if repaired.warnings else 'whole'] += 1
        counts['more than committed'] += rows > committed
    print(counts)
