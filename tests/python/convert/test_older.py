"""Files of this program and of an older one, made from the same table, hold the same: each program's `verify` says so of the
other's file.

H5BRIDGE_OLDER names the older program (`git worktree add ../older COMMIT`, built there)."""
import json
import os
import subprocess

import pytest

import support

OLDER = os.environ.get('H5BRIDGE_OLDER')
MODES = {'default': (), 'gzip:1': ('--compress', 'gzip:1'), 'none': ('--compress', 'none')}

pytestmark = pytest.mark.skipif(not OLDER, reason='H5BRIDGE_OLDER does not name an older program')


def older(*words):
    return subprocess.run([OLDER, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def check(folder, tables, out, modes, counts):
    """Converts each table with both programs; compares exit codes, and the files both ways."""
    for root in support.roots(tables):
        source, theirs, ours = os.path.join(folder, root), out / 'theirs.h5', out / 'ours.h5'
        for mode in modes:
            old = older('to-hdf5', '--overwrite', *MODES[mode], source, theirs)
            new = support.h5bridge('to-hdf5', '--overwrite', *MODES[mode], source, ours, code=None)
            assert old.returncode == new.returncode, (source, old.stderr[-1000:], new.stderr[-1000:])
            if new.returncode != support.DONE:
                counts['refused by both'] += 1
                continue
            pairs = [support.h5bridge('verify', '--json', theirs, ours), older('verify', '--json', ours, theirs)]
            for process in pairs:
                assert process.returncode == support.DONE, process.stderr[-1000:]
                verdict = json.loads(process.stdout)
                assert verdict['equal'] is True and verdict['differences'] == [], verdict
            counts['pairs of files'] += 1
            counts['cells'] += verdict['compared']['cells']


@pytest.mark.parametrize('case', support.cases())
def test_testdata(case, tmp_path, counts):
    check(os.path.join(support.TESTDATA, case), support.expected(case)['tables'], tmp_path, MODES, counts)


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', support.corpus_entries() or [None], ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    check(support.unpack(entry, tmp_path), entry['tables'], tmp_path, ['default'], counts)
