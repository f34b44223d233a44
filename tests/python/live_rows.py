"""Live files that tests/tools/live_writer fills, and what it makes of the number of a row."""
import os
import subprocess
import time

import numpy as np

from support import EXAMPLES

CHANNELS, CORRELATIONS = 8, 2


def writer(path, **settings):
    """Starts tests/tools/live_writer; returns the process when the file is there."""
    settings = {'all': 1, 'channels': CHANNELS, 'correlations': CORRELATIONS, 'baselines': 7, 'seconds': 600, **settings}
    command = [os.path.join(EXAMPLES, 'live_writer'), path] + ['%s=%s' % item for item in settings.items()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(path) and process.poll() is None:
        time.sleep(0.001)
    return process


def check_rows(group, start, stop):
    """Compares the rows of the table in GROUP with what tests/tools/live_writer makes of their numbers."""
    row = np.arange(start, stop)
    small = (row % 65536).astype('f4')
    element = np.arange(CHANNELS * CORRELATIONS)
    expected = {
        'row': row,
        'TIME': row / 4,
        'ANTENNA1': row % 97,
        'UVW': np.stack([row, row + 0.5, -row], axis=1),
        'DATA': (small[:, None] + 1j * element[None, :]).reshape(-1, CHANNELS, CORRELATIONS),
        'FLAG': ((row[:, None] + element[None, :]) % 3 == 0).reshape(-1, CHANNELS, CORRELATIONS),
        'NAME': np.char.encode(np.array(['row %d' % r for r in row], dtype='U16')),
        'VARIABLE/row_cube': row % 3 - 1,
    }
    for name, wanted in expected.items():
        found = group[name][start:stop]
        assert np.array_equal(found, wanted), (name, start, stop)
    cube, index = group['VARIABLE/row_cube'][start:stop], group['VARIABLE/row_index'][start:stop]
    for number, (shape, count) in enumerate([((3, 2), 6), ((5,), 5)]):
        rows, positions = row[cube == number], index[cube == number]
        assert np.array_equal(positions, rows // 3)
        if len(positions):
            cells = group['VARIABLE/cube%d' % number][positions[0]:positions[-1] + 1]
            wanted = (rows % 65536).astype('f4')[:, None] + np.arange(count, dtype='f4') / 8
            assert np.array_equal(cells, wanted.reshape(-1, *shape))
    assert np.all(index[cube < 0] == -1)
