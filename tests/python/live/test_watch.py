"""`watch`: on a live file that grows, one that is closed, and what is none."""
import json
import re
import signal
import subprocess

import h5py
import numpy as np
import pytest

from following import Casacore, TABLE, ended, start_follow, wait_for_rows
from support import DAMAGED, H5BRIDGE, UNSUPPORTED, USAGE, h5bridge, on_terminal

TIME = 59000 * 86400.   # 2020-05-31

# A row for each of the antennas 0 to 3 in turn; the amplitude is the antenna's number + 1, a quarter is flagged.
COLUMNS = ["ct.makescacoldesc('TIME', 0.)", "ct.makescacoldesc('ANTENNA1', 0)",
           "ct.makearrcoldesc('DATA', 0j, ndim=2, shape=[4, 2])", "ct.makearrcoldesc('FLAG', False, ndim=2, shape=[4, 2])"]
CELLS = """
def cells(row):
    t.putcell('TIME', row, %r + row / 10); t.putcell('ANTENNA1', row, row %% 4)
    t.putcell('DATA', row, np.full((4, 2), 1j * (row %% 4 + 1)))
    t.putcell('FLAG', row, np.arange(8).reshape(4, 2) < 2)
""" % TIME


@pytest.fixture(scope='module')
def closed(tmp_path_factory):
    """A live file of 40 rows that is closed."""
    folder = tmp_path_factory.mktemp('watch')
    with Casacore() as casacore:
        casacore.run(TABLE + CELLS + 'add(40)', path=str(folder / 'live.tab'), more=COLUMNS)
    ended(start_follow(folder / 'live.tab', folder / 'live.h5'))
    return folder / 'live.h5'


def events(process):
    return [json.loads(line) for line in process.stdout.splitlines()]


def test_closed(closed):
    look, end = events(h5bridge('watch', closed, '--json', '--count', '1'))
    assert look['event'] == 'look' and look['open'] is False and look['rows'] == 40 and look['tables'] == {'MAIN': 40}
    assert look['newest_time'] == {'mjd_seconds': TIME + 3.9, 'utc': '2020-05-31T00:00:03.9Z'}
    assert look['flagged'] == 0.25
    assert look['amplitudes'] == {'column': 'DATA', 'by': 'antenna', 'mean': [1, 2, 3, 4]}
    assert look['rows_per_second'] is None and 0 <= look['commit_age_seconds'] < 600
    assert end['reason'] == 'count' and end['code'] == 0
    lines = h5bridge('watch', closed, '--count', '2', '--interval', '10ms').stdout.splitlines()
    assert len(lines) == 2
    for word in ('MAIN 40', '0.0 rows/s', '25.0 % flagged', 'newest 2020-05-31T00:00:03.9Z', 'closed'):
        assert word in lines[1], lines[1]


def test_by_channel_without_antennas(tmp_path):
    with Casacore() as casacore:
        casacore.run(TABLE + """
def cells(row): t.putcell('DATA', row, np.repeat(np.arange(5.)[:, None], 3, 1) + 10 * (row // 10))
add(60)
""", path=str(tmp_path / 'live.tab'), more=["ct.makearrcoldesc('DATA', 0., ndim=2, shape=[5, 3], valuetype='float')"])
    ended(start_follow(tmp_path / 'live.tab', tmp_path / 'live.h5'))
    look, _ = events(h5bridge('watch', tmp_path / 'live.h5', '--json', '--count', '1'))
    assert look['amplitudes'] == {'column': 'DATA', 'by': 'time and channel',
                                  'mean': [[10 * t + c for c in range(5)] for t in range(6)]}
    assert look['newest_time'] is None and look['flagged'] is None


def test_growing_seen_by_two(tmp_path):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + CELLS + 'add(4)', path=str(table), more=COLUMNS)
        follow = start_follow(table, live)
        wait_for_rows(live, 4, follow)
        watches = [subprocess.Popen([H5BRIDGE, 'watch', str(live), '--json', '--interval', '50ms'],
                                    stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for watch in watches:
            assert json.loads(watch.stdout.readline())['open'] is True
        casacore.run('add(16)')
        for watch in watches:
            look = {'rows': 0}
            while look['rows'] < 20:
                look = json.loads(watch.stdout.readline())
            assert look['rows'] == 20 and look['rows_per_second'] > 0 and look['bytes_per_second'] > 0
            assert look['commit_age_seconds'] < 5
    ended(follow)
    for watch in watches:
        look = {'open': True}
        while look['open']:
            look = json.loads(watch.stdout.readline())
    # it goes on after the end of the writer, until the file is another one, or until it is told to stop
    watches[0].send_signal(signal.SIGINT)
    assert events_after(watches[0])[-1]['reason'] == 'interrupted' and watches[0].wait() == 0
    h5bridge('finalize', live)
    assert events_after(watches[1])[-1]['reason'] == 'replaced' and watches[1].wait() == 0


def events_after(watch):
    return [json.loads(line) for line in watch.communicate(timeout=30)[0].splitlines()]


def test_drawn_in_its_place(closed):
    words = ['watch', closed, '--count', '3', '--interval', '10ms']
    plain = on_terminal(*words, messages=True, NO_COLOR='1')
    assert not re.search(r'\x1b\[[0-9;]*m', plain), 'colours in spite of NO_COLOR'
    pictures = re.split(r'\x1b\[(\d+)A\r', plain)
    assert len(pictures) == 5, 'two are drawn over the one before'
    for picture, above in zip(pictures[::2], pictures[1::2]):
        lines = re.sub(r'\x1b\[[KJ]', '', picture).splitlines()
        assert len(lines) == int(above) and all(len(line) < 80 for line in lines), lines
    text = re.sub(r'\x1b\[[KJ]', '', pictures[0])
    assert 'closed' in text and '2020-05-31 00:00:03.9 UTC' in text and '▃▅▇█' in text, text
    print(text)


def test_files_that_cannot_be_watched(closed, tmp_path):
    process = h5bridge('watch', tmp_path / 'nothing.h5', code=DAMAGED)
    assert 'nothing.h5' in process.stderr and 'h5bridge follow' in process.stderr
    (tmp_path / 'text.h5').write_text('no HDF5')
    h5bridge('watch', tmp_path / 'text.h5', code=DAMAGED)
    with h5py.File(tmp_path / 'other.h5', 'w') as f:
        f['a'] = np.arange(3)
    with h5py.File(tmp_path / 'latest.h5', 'w', libver='latest') as f:
        f['a'] = np.arange(3)
    h5bridge('finalize', closed, tmp_path / 'final.h5')
    for name, codes in [('other.h5', (DAMAGED, UNSUPPORTED)), ('latest.h5', (UNSUPPORTED,)), ('final.h5', (UNSUPPORTED,))]:
        process = h5bridge('watch', tmp_path / name, code=None)
        assert process.returncode in codes and 'only live files' in process.stderr, (name, process.stderr)


def test_alerts(closed, tmp_path):
    rules = tmp_path / 'rules'
    rules.write_text('# a closed file does not grow: this says nothing\nno rows for 1 s\nflagged > 30 %   # holds for none\n')
    words = ['watch', closed, '--count', '2', '--interval', '10ms', '--alert', 'flagged>20%', '--alerts', rules]
    look, alert, again, end = events(h5bridge(*words, '--json'))
    assert [document['event'] for document in (look, alert, again, end)] == ['look', 'alert', 'look', 'end']
    assert alert == {'event': 'alert', 'time': look['time'], 'file': str(closed), 'rule': 'flagged > 20 %', 'active': True,
                     'text': 'flagged 25 % > 20 %', 'since': look['time'], 'revision': look['revision']}
    lines = h5bridge(*words).stdout.splitlines()
    assert len(lines) == 3 and lines[1].endswith('  alert: flagged 25 % > 20 %'), lines
    assert 'flagged 25 % > 20 %, since 20' in on_terminal(*words, messages=True)

    rules.write_text('lag > 20 s\nlag > soon\n')
    for more, expected in [(['--alert', 'flagged'], '< or > after flagged is expected'),
                           (['--alerts', rules], 'rules: line 2: "lag > soon" is not a rule for alerts: a number'),
                           (['--alerts', tmp_path / 'none'], 'none')]:
        process = h5bridge('watch', closed, *more, code=None)
        assert process.returncode in (USAGE, DAMAGED) and expected in process.stderr, process.stderr


def test_alert_that_ends(tmp_path):
    """A casacore table, `follow` and `watch`: the flags of an antenna, by its name, until newer rows come."""
    columns = COLUMNS + ["ct.makescacoldesc('ANTENNA2', 0)"]
    cells = CELLS.rstrip() + "; t.putcell('ANTENNA2', row, 3)\n    if row < 4: t.putcell('FLAG', row, np.ones((4, 2), bool))\n"
    with Casacore() as casacore:
        casacore.run(TABLE + cells + 'add(4)', path=str(tmp_path / 'live.tab'), more=columns)
        follow = start_follow(tmp_path / 'live.tab', tmp_path / 'live.h5')
        wait_for_rows(tmp_path / 'live.h5', 4, follow)
        command = [H5BRIDGE, 'watch', str(tmp_path / 'live.h5'), '--json', '--interval', '50ms', '--alert', 'flagged > 40 % for antenna']
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        def next_alert():
            while True:
                document = json.loads(watch.stdout.readline())
                if document['event'] == 'alert':
                    return document
        begin = next_alert()
        assert begin['active'] and begin['text'] == 'flagged > 40 % for antenna #3 (100 %)', begin
        casacore.run('add(4)')
        end = next_alert()
        assert not end['active'] and end['since'] == begin['since'] and end['revision'] > begin['revision'], (begin, end)
    ended(follow)
    watch.send_signal(signal.SIGINT)
    assert events_after(watch)[-1]['reason'] == 'interrupted' and watch.wait() == 0
