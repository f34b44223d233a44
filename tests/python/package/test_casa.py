"""CASA's own tools and tasks make the same of a MeasurementSet and of what comes back from HDF5; they take what comes from MSv4."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from casacore import tables

import support
import test_msv4_back as msv4

pytestmark = pytest.mark.night('installs CASA')
ENTRIES = msv4.measurement_sets() or [pytest.param(None, '', marks=pytest.mark.skip(reason='the corpus is missing'))]
# from MJD on, seconds that TAI is ahead of UTC
LEAPS = {41317: 10, 41499: 11, 41683: 12, 42048: 13, 42413: 14, 42778: 15, 43144: 16, 43509: 17, 43874: 18, 44239: 19, 44786: 20, 45151: 21,
         45516: 22, 46247: 23, 47161: 24, 47892: 25, 48257: 26, 48804: 27, 49169: 28, 49534: 29, 50083: 30, 50630: 31, 51179: 32, 53736: 33,
         54832: 34, 56109: 35, 57204: 36, 57754: 37}
# what CASA refuses of the originals: tables that are no MeasurementSets or lack subtables, telescopes that are not in the list
NO_SET = {'flags', 'listobs', 'metadata', 'parted', 'ranges', 'statistics'}
REFUSED = {'dp3_applybeam_tab': NO_SET, 'dp3_gaincal_tab': NO_SET, 'dp3_ndppp': NO_SET, 'dp3_ndppp_bda': 'all', 'katdal_blank': 'all',
           'casacore_mssel_small': {'parted'}, 'lwasv_adp': {'listobs'}, 'vla_multi1': {'listobs'}, 'vla_tdem': {'listobs'}}
ROTATION = ['MJD', 'x', 'Dx', 'y', 'Dy', 'dUT1', 'DdUT1', 'LOD', 'DLOD', 'dPsi', 'DdPsi', 'dEps', 'DdEps', 'dX', 'DdX', 'dY', 'DdY']


def measures_table(path, rows):
    """A table of casacore's data directory."""
    description = tables.maketabdesc([tables.makescacoldesc(name, 0.0) for name in rows[0]])
    with tables.table(path, description, nrow=len(rows), ack=False) as table:
        for name in rows[0]:
            table.putcol(name, np.array([row[name] for row in rows], float))
        table.putkeywords({'VS_CREATE': '2026/01/01/00:00', 'VS_DATE': '2026/01/01/00:00', 'VS_VERSION': '0001.0001',
                           'VS_TYPE': os.path.basename(path)})
        table.putinfo({'type': 'IERS', 'subType': os.path.basename(path), 'readme': ''})


@pytest.fixture(scope='module')
def casa(tmp_path_factory):
    """casa(*paths): what CASA makes of each; None if its process ends. It does not start without tables of the Earth's rotation,
    which come from a server: here they are made, and the Earth turns evenly."""
    python, home = support.peer('casa'), tmp_path_factory.mktemp('casa')
    data = home / 'data' / 'geodetic'
    data.mkdir(parents=True)
    measures_table(str(data / 'TAI_UTC'), [{'MJD': day, 'dUTC': seconds, 'Offset': 0, 'Multiplier': 0} for day, seconds in LEAPS.items()])
    measures_table(str(data / 'IERSeop2000'), [dict(dict.fromkeys(ROTATION, 0), MJD=day) for day in range(37665, 62000)])
    entry = next(entry for entry in support.corpus_entries() if entry['name'] == 'debian_observatories')
    shutil.copytree(os.path.join(support.unpack(entry, tmp_path_factory.mktemp('observatories')), 'Observatories'), data / 'Observatories')
    (home / '.casa').mkdir()
    (home / '.casa' / 'config.py').write_text('measurespath = %r\ndatapath = [measurespath]\nmeasures_auto_update = data_auto_update = False\n'
                                              'nologfile = nogui = True\n' % str(data.parent))

    def judge(*paths):
        done = subprocess.run([python, os.path.join(support.ROOT, 'tests', 'python', 'casa_peer.py'), *map(str, paths)], cwd=home,
                              env=dict(os.environ, HOME=str(home)), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        said = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith('CASA ')]
        assert 'measures data is not available' not in done.stderr
        return said if done.returncode == 0 and len(said) == len(paths) else None
    return judge


def judged(casa, entry, path, made, counts):
    """What CASA makes of the original, and of what was MADE of it: it refuses what REFUSED says of the original, no less and no more."""
    refused = REFUSED.get(entry['name'], set())
    if refused == 'all':
        assert casa(path) is None
        pytest.skip('CASA does not survive the original')
    found = casa(path, *made)
    assert {judge for judge, said in found[0].items() if isinstance(said, str)} == refused
    counts['judgements'] += sum(not isinstance(said, str) for said in found[0].values())
    return found


@pytest.mark.parametrize('entry,name', ENTRIES, ids=lambda value: value['name'] if isinstance(value, dict) else '')
def test_way_back(entry, name, casa, tmp_path, counts):
    """Columns, ranges, metadata, listobs, statistics, flags, and what split makes: from a native file, and from one by MSv4."""
    path = os.path.join(support.unpack(entry, tmp_path), name)
    made = []
    for schema in ('native', 'msv4'):
        (tmp_path / schema).mkdir()
        code = None if schema == 'msv4' else support.DONE    # tables without a column TIME are no MeasurementSets by MSv4
        if support.h5bridge('to-hdf5', '--schema', schema, path, tmp_path / schema / 'my.h5', code=code).returncode == support.DONE:
            made.append(tmp_path / schema / os.path.basename(path))
            support.h5bridge('to-ms', tmp_path / schema / 'my.h5', made[-1])
    expected, *found = judged(casa, entry, path, made, counts)
    assert found == [expected] * len(made)
    counts['tables'] += len(made)


@pytest.mark.parametrize('entry,name', ENTRIES, ids=lambda value: value['name'] if isinstance(value, dict) else '')
def test_zarr_of_xradio(entry, name, casa, tmp_path, tmp_path_factory, counts):
    """From the Zarr that xradio makes: CASA finds the same rows, times and amplitudes."""
    path = os.path.join(support.unpack(entry, tmp_path), name)
    tree = msv4.converted_by_xradio(path, tmp_path, tmp_path_factory)
    made = tmp_path / 'back' / os.path.basename(path)
    made.parent.mkdir()
    msv4.back(tree, made)
    expected, found = judged(casa, entry, path, [made], counts)
    for judge in ('columns', 'listobs', 'metadata', 'statistics', 'flags'):
        assert isinstance(found[judge], str) <= isinstance(expected[judge], str), (judge, found[judge])
    assert found['columns'][0] == expected['columns'][0]
    if not isinstance(expected['ranges'], str):
        assert found['ranges']['times'] == pytest.approx(expected['ranges']['times'], abs=1e-3)
    for one, other in () if isinstance(expected['statistics'], str) else zip(found['statistics'].values(), expected['statistics'].values()):
        assert {name: one[name] for name in ('mean', 'max', 'min', 'npts')} == pytest.approx(
            {name: other[name] for name in ('mean', 'max', 'min', 'npts')}, rel=1e-6, nan_ok=True)
    shutil.rmtree(made)
    counts['tables'] += 1
