"""After a power cut the index of chunks may be torn beyond the committed rows, which `repair` and `finalize` have all the same."""
import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

import support
from support import h5bridge

# Commits rows whose values are their numbers, and ends as by a kill
WRITER = """
import os, sys
import numpy as np
from h5bridge.live import Column, Table, Writer

columns = {'TIME': Column('f8', chunk_rows=2), 'DATA': Column('c8', cell=(4, 2), chunk_rows=2)}
writer = Writer(sys.argv[1], {'MAIN': Table(columns)}, every=None)
rows = np.arange(300)
writer.append('MAIN', TIME=rows.astype('f8'), DATA=np.broadcast_to(rows[:, None, None], (300, 4, 2)).astype('c8'))
writer.commit()
os._exit(0)
"""
# Data blocks and super blocks of an extensible array. Its index block has the first four chunks
BLOCKS = b'EADB', b'EASB'


def with_torn_blocks(path, committed):
    """A live file whose counter is COMMITTED, and all blocks of its indices zeros; how many."""
    subprocess.run([sys.executable, '-c', WRITER, path], check=True)
    with h5py.File(path, 'r', swmr=True, locking=False) as file:
        assert int(file['MAIN/committed_rows'][0]) == 300
        counter = file['MAIN/committed_rows'].id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[counter:counter + 8] = committed.to_bytes(8, 'little')
    torn = 0
    for signature in BLOCKS:
        at = content.find(signature)
        while at >= 0:
            content[at:at + 16] = bytes(16)
            torn += 1
            at = content.find(signature, at)
    path.write_bytes(content)
    return torn


@pytest.mark.parametrize('committed', [0, 1, 7, 8])
def test_torn_blocks_beyond_the_committed_rows(committed, tmp_path):
    live, final = tmp_path / 'live.h5', tmp_path / 'final.h5'
    assert with_torn_blocks(live, committed) >= 10

    def check(file):
        numbers = np.arange(committed)
        assert (file['MAIN/TIME'][:] == numbers).all()
        assert (file['MAIN/DATA'][:].reshape(committed, 8) == numbers[:, None]).all()

    h5bridge('finalize', live, final)
    with h5py.File(final) as file:
        check(file)
    document = json.loads(h5bridge('--json', 'repair', live).stdout)
    assert [(table['committed_rows'], table['lost_rows']) for table in document['tables']] == [(committed, 300 - committed)]
    assert any('torn' in warning and '/MAIN/TIME' in warning for warning in document['warnings'])
    with h5py.File(live) as file:
        check(file)
    h5bridge('verify', live, final)


def test_torn_blocks_of_committed_rows_are_damage(tmp_path):
    live = tmp_path / 'live.h5'
    with_torn_blocks(live, 9)
    before = live.read_bytes()
    for words in (['repair', live], ['finalize', live, tmp_path / 'final.h5']):
        process = h5bridge(*words, code=support.DAMAGED)
        assert 'extensible array' in process.stderr
    assert live.read_bytes() == before and not (tmp_path / 'final.h5').exists()
