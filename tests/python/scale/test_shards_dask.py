"""One table on the workers of Dask (docs/reference/shards.md): a real scheduler, workers that die."""
import os
import shutil
import signal
import sys
import threading
import time

import dask
import pytest
from distributed import Client, LocalCluster

import sharing
import support
from sharing import Tiles

sys.path.insert(0, os.path.join(support.ROOT, 'python'))
convert_sharded = pytest.importorskip('h5bridge.dask').convert_sharded

COLUMNS = [Tiles('DATA', 'c8', (64, 4), [4, 64, 16]), Tiles('FLAG', '?', (64, 4), [4, 64, 64])]


@pytest.fixture(scope='module')
def cluster():
    os.environ['PYTHONPATH'] = os.path.join(support.ROOT, 'python')
    with dask.config.set({'distributed.scheduler.allowed-failures': 3}), \
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.night('a scheduler of Dask')
def test_a_table_on_two_workers(tmp_path, cluster):
    """A worker is killed on the way; the file is whole."""
    source = sharing.make(tmp_path / 'my.tab', COLUMNS, rows=3333)
    with Client(cluster) as client:
        def kill():
            time.sleep(0.5)
            os.kill(next(worker.pid for worker in cluster.workers.values() if worker.pid), signal.SIGKILL)
        killer = threading.Thread(target=kill)
        killer.start()
        seen = []
        made = convert_sharded(client, source, tmp_path / 'my.h5', work_bytes='128K', batch_seconds=0.5, check=True,
                               progress=lambda *news: seen.append(news))
        killer.join()
        assert made.rows == 3333 and made.items > 5 and seen[-1][0] == seen[-1][1]
        assert made.file_bytes == os.path.getsize(tmp_path / 'my.h5')
        support.h5bridge('verify', source, tmp_path / 'my.h5')
        # what a call has left is done by the next one, and by the command line
        support.h5bridge('shard', 'plan', source, tmp_path / 'two.h5', '--work-bytes', '512K')
        support.h5bridge('shard', 'work', tmp_path / 'two.h5', '--shard', '0/2')
        convert_sharded(client, source, tmp_path / 'two.h5')
        support.h5bridge('verify', source, tmp_path / 'two.h5')
        # and back
        back = convert_sharded(client, tmp_path / 'my.h5', tmp_path / 'back.tab', work_bytes='128K')
        assert back.rows == 3333 and back.items > 5
        support.h5bridge('verify', source, tmp_path / 'back.tab')
        # a source that changes ends the call
        support.h5bridge('shard', 'plan', source, tmp_path / 'three.h5', '--work-bytes', '512K')
        os.utime(tmp_path / 'my.tab' / 'table.dat')
        with pytest.raises(Exception, match='changed since the plan'):
            convert_sharded(client, source, tmp_path / 'three.h5', retries=0)
        assert not (tmp_path / 'three.h5').exists()
        shutil.rmtree(tmp_path / 'three.h5.shards')
