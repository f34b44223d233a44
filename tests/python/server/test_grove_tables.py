"""Tables under `/api` of `h5bridge serve` beside their converted files, in the same server: the same answers."""
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import grove
import support
from test_grove import Answer, same, start_h5grove, start_ours, stop

# Writes a MeasurementSet with casacore, integration after integration.
WRITER = os.path.join(support.ROOT, 'scripts', 'demo.d', 'growing_ms.py')

# Of datasets with more elements, selections only.
WHOLE = 200_000

# Every so many tables of testdata; with H5BRIDGE_LONG=1 all.
STEP = 12


def tables():
    """The tables of testdata, each with its folder."""
    found = []
    for case in sorted(os.listdir(support.TESTDATA)):
        folder = os.path.join(support.TESTDATA, case)
        # the file of rows64 would have 86 GB
        if os.path.isdir(folder) and case != 'rows64':
            found += [(case, name) for name in sorted(os.listdir(folder))
                      if os.path.isfile(os.path.join(folder, name, 'table.dat'))]
    return found


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('native')


@pytest.fixture(scope='module')
def ours(folder):
    """A server of testdata and of the folder with converted files."""
    process, base = start_ours(support.TESTDATA, str(folder))
    yield base
    stop(process)


@pytest.fixture(scope='module')
def asked():
    """Counts requests."""
    return {'alike': 0, 'refused': 0}


def is_restore(path):
    """Whether a path is that of strings that HDF5 cannot hold: only their values, all of them, tell which there are."""
    return any(part.startswith('strings.') for part in path.split('/')) and path.startswith('/_ctds/')


def without_strings(document, path):
    """A document of `/meta` or `/paths` of a converted file, without what a table does not show."""
    if isinstance(document, list):
        return [path for path in document if not is_restore(path)]
    if 'children' in document:
        kept = [child for child in document['children'] if not is_restore('%s/%s' % (path.rstrip('/'), child['name']))]
        document = {**document, 'children': kept}
    return document


def selections(shape):
    """Selections of a dataset: rows, parts of cells, strides, nothing."""
    if not shape:
        return []
    axes = len(shape)
    found = ['0:3', '-5::2', '0:0', ','.join(['::3'] * axes), ','.join(['1::2'] * axes), ','.join([':'] * (axes - 1) + ['-1:'])]
    if 0 not in shape:
        found += ['-1', ','.join(['0'] * axes), ','.join([':'] * (axes - 1) + ['0'])]
    return found


def addresses(path, meta, turn):
    """What is asked about an object: (request, parameters). Selections and formats take turns."""
    yield 'meta', {'path': path}
    yield 'attr', {'path': path}
    if meta['kind'] != 'dataset':
        return
    is_text = meta['type']['dtype'] == '|O'
    forms = ['json'] if is_text else ['bin', 'json', 'npy']
    size = int(np.prod(meta['shape'], dtype=np.int64))
    if size <= WHOLE:
        yield 'data', {'path': path, 'format': forms[turn % len(forms)]}
    chosen = selections(meta['shape'])
    for number in range(min(2, len(chosen))):
        yield 'data', {'path': path, 'selection': chosen[(turn + 4 * number) % len(chosen)],
                       'format': forms[(turn + number + 1) % len(forms)]}
    others = [('stats', {}), ('data', {'format': 'csv'}), ('data', {'format': 'bin', 'dtype': 'safe'})]
    if not is_text and size <= WHOLE:
        request, more = others[turn % len(others)]
        yield request, {'path': path, **more}


def compare(ours, table, file, asked):
    """Compares every answer about a table with that about its file."""
    paths = [Answer(ours, grove.url('/paths', file=name)) for name in (table, file)]
    assert paths[0].status == paths[1].status == 200, paths
    assert paths[0].json() == without_strings(paths[1].json(), '/')
    for turn, path in enumerate(paths[0].json()):
        meta = Answer(ours, grove.url('/meta', file=file, path=path)).json()
        for request, parameters in addresses(path, meta, turn):
            a, b = (Answer(ours, grove.url('/' + request, file=name, **parameters)) for name in (table, file))
            what = (request, parameters, a, b)
            assert (a.status, a.kind, a.disposition) == (b.status, b.kind, b.disposition), what
            if a.status >= 400:
                assert a.json()['message'].replace(table, '') == b.json()['message'].replace(file, ''), what
                asked['refused'] += 1
            elif request == 'meta':
                assert a.json() == without_strings(b.json(), path), what
            else:
                assert a.body == b.body, what
            asked['alike'] += 1


@pytest.mark.parametrize('case, table', tables()[::1 if support.LONG else STEP], ids=lambda part: part)
def test_tables_answer_as_their_files(case, table, folder, ours, asked):
    name = '%s/%s/%s' % (os.path.basename(support.TESTDATA), case, table)
    file = folder / ('%s-%s.h5' % (case, table))
    run = support.h5bridge('to-hdf5', '--compress', 'none', os.path.join(support.TESTDATA, case, table), file, code=None)
    if run.returncode != 0:
        refused = Answer(ours, grove.url('/meta', file=name))
        assert refused.status >= 400 and refused.json()['message'], (run, refused)
        return
    compare(ours, name, '%s/%s' % (folder.name, file.name), asked)


def test_beside_h5grove(folder, ours, asked):
    """The file of a table of every type, asked of h5grove: what the table answers is what h5grove answers about the file."""
    case, table = 'dtypes_all_managers', tables_of('dtypes_all_managers')[0]
    file = folder / 'beside.h5'
    support.h5bridge('to-hdf5', '--compress', 'none', os.path.join(support.TESTDATA, case, table), file)
    process, h5grove = start_h5grove(folder)
    try:
        name = '%s/%s/%s' % (os.path.basename(support.TESTDATA), case, table)
        for path in Answer(ours, grove.url('/paths', file=name)).json():
            for request in ('/meta', '/attr', '/data'):
                mine = Answer(ours, grove.url(request, file=name, path=path))
                if request == '/meta' and mine.json()['kind'] != 'dataset':
                    break
                theirs = Answer(h5grove, grove.url(request, file=file.name, path=path))
                if request == '/data' and theirs.status == 500:
                    # its encoder has no big-endian arrays: scales without values
                    assert Answer(ours, grove.url('/meta', file=name, path=path)).json()['type']['dtype'].startswith('>')
                    continue
                assert same(theirs, mine, request), (path, request, theirs, mine)
                asked['alike'] += 1
    finally:
        stop(process)
    assert asked['alike'] > 100


def test_a_growing_table_is_followed(tmp_path):
    """casacore appends rows, and each answer has the rows of its moment."""
    ms = tmp_path / 'grows.ms'
    writer = subprocess.Popen([sys.executable, WRITER, str(ms), '200', '4', '8', '0.7'])
    process, base = start_ours(tmp_path)
    try:
        seen, end = [0], time.time() + 120
        while len(seen) < 4:
            assert time.time() < end, seen
            meta = Answer(base, grove.url('/meta', file='grows.ms', path='/MAIN/TIME'))
            if meta.status != 200 or meta.json()['shape'] == seen[-1:]:
                # the table is in the making, or has no new rows
                assert seen == [0] or meta.status in (200, 422), meta
                time.sleep(0.05)
                continue
            rows, = meta.json()['shape']
            assert rows > seen[-1]
            newest = Answer(base, grove.url('/data', file='grows.ms', path='/MAIN/TIME', selection=str(rows - 1)))
            if newest.status == 200:
                assert newest.json() > 0
                seen.append(rows)
            else:
                # casacore has not flushed all that belongs to the newest rows
                assert newest.status == 422 and newest.json()['message'], newest
    finally:
        stop(process)
        writer.terminate()
        writer.wait()


def tables_of(case):
    return [table for other, table in tables() if other == case]
