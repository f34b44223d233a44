"""What the tests of many tables share: sources, manifests, and what must be true when all is over."""
import collections
import glob
import json
import os
import random
import shutil
import tempfile

import casacore.tables as ct
import h5py
import numpy as np

import support

FINISHED = {'done', 'skipped'}


def make_tables(folder, count, rows=64):
    """The paths of COUNT small tables, each with other values."""
    os.makedirs(folder, exist_ok=True)
    description = ct.maketabdesc([ct.makescacoldesc('TIME', 0.), ct.makearrcoldesc('DATA', 0j, valuetype='complex', shape=[4, 8], options=5)])
    first = os.path.join(folder, '0000.ms')
    paths = [os.path.join(folder, '%04d.ms' % number) for number in range(count)]
    with ct.table(first, description, nrow=rows, ack=False):
        pass
    for path in paths[1:]:
        shutil.copytree(first, path)
    for number, path in enumerate(paths):
        with ct.table(path, readonly=False, ack=False) as table:
            table.putcol('TIME', np.arange(rows) + 1000. * number)
            table.putcol('DATA', np.full((rows, 4, 8), number, 'c8'))
    return paths


def damage(path):
    """Cuts table.dat short."""
    with open(os.path.join(path, 'table.dat'), 'r+b') as file:
        file.truncate(200)


def plan(folder, sources, *words, out='{stem}.h5', more=()):
    """The path of a manifest of these sources, with targets in the folder `out` beside it."""
    folder = str(folder)
    pairs, manifest = os.path.join(folder, 'pairs'), os.path.join(folder, 'm.ndjson')
    with open(pairs, 'w', encoding='utf-8') as file:
        file.writelines(str(source) + '\n' for source in sources)
        file.writelines(json.dumps(pair) + '\n' for pair in more)
    target = ['--to', os.path.join(folder, 'out', out)] if out else []
    support.h5bridge('batch', 'plan', '--from', pairs, *target, '--out', manifest, *words)
    return manifest


def items(manifest):
    """{id: item} of a manifest."""
    with open(manifest, encoding='utf-8') as file:
        found = map(json.loads, file)
        return {item['id']: item for item in found}


def records(ledger):
    """All complete records of a ledger."""
    found = []
    for path in sorted(glob.glob(os.path.join(str(ledger), '*.ndjson'))):
        with open(path, encoding='utf-8') as file:
            found += [json.loads(line) for line in file if line.endswith('\n')]
    return found


def states(manifest, ledger):
    """{id: state} as `batch status --records` gives it: one for each item."""
    lines = support.h5bridge('batch', 'status', manifest, '--ledger', ledger, '--records').stdout.splitlines()
    documents = [json.loads(line) for line in lines]
    assert collections.Counter(document['id'] for document in documents) == collections.Counter(items(manifest).keys())
    return {document['id']: document['state'] for document in documents}


def leftovers(folder):
    """Everything below a folder that is neither a target nor a receipt."""
    return [path for path in glob.glob(os.path.join(str(folder), '**'), recursive=True, include_hidden=True)
            if '.partial' in path or path.endswith('.tmp')]


def check_targets(manifest, found, sample=1):
    """What is done has a target and a receipt that fits; what is not done has no target. Of SAMPLE targets one is compared with its
    source, by h5py and casacore and by `verify`."""
    done = []
    for number, (identity, item) in enumerate(items(manifest).items()):
        target = item['target']
        if found[identity] not in FINISHED:
            assert not os.path.exists(target), item
            continue
        with open(target + '.receipt.json', encoding='utf-8') as file:
            receipt = json.load(file)
        assert receipt['id'] == identity and receipt['file_bytes'] == os.path.getsize(target)
        if number % sample == 0:
            done.append(item)
    for item in done:
        with h5py.File(item['target']) as file, ct.table(item['source'], ack=False) as table:
            for name in ('DATA', 'TIME'):
                assert np.array_equal(file['MAIN'][name][()], table.getcol(name)), (item, name)
    verify_all(done, os.path.dirname(manifest))


def verify_all(done, folder):
    """Compares the targets of items with their sources in one `batch run`, with a target among them that has to be found different."""
    assert done
    with tempfile.TemporaryDirectory(dir=folder) as at:
        wrong = os.path.join(at, 'wrong.h5')
        shutil.copy(done[0]['target'], wrong)
        with h5py.File(wrong, 'r+') as file:
            file['MAIN/DATA'][-1, -1, -1] += 1
        pairs = [(item['source'], item['target']) for item in done] + [(done[0]['source'], wrong)]
        check = plan(at, [], out=None, more=[{'source': source, 'target': target, 'verb': 'verify'} for source, target in pairs])
        support.h5bridge('batch', 'run', check, '--ledger', os.path.join(at, 'l'), '--quiet', '--jobs', '2', '--min-free', '1M',
                         code=support.FAILED, timeout=900)
        known = items(check)
        found = {known[identity]['target']: state for identity, state in states(check, os.path.join(at, 'l')).items()}
    assert found == {target: 'failed' if target == wrong else 'done' for _, target in pairs}


def missing_targets(folder, number):
    """How many of NUMBER targets in a folder have no receipt yet."""
    return number - len(glob.glob(os.path.join(str(folder), '*.receipt.json')))


def lose_half(folder):
    """Removes every second target of a folder, with its receipt, at random."""
    receipts = sorted(glob.glob(os.path.join(str(folder), '*.receipt.json')))
    for receipt in random.sample(receipts, len(receipts) // 2):
        os.remove(receipt)
        os.remove(receipt.removesuffix('.receipt.json'))


def identities(folder):
    """{path: inode and time} of all files below a folder."""
    paths = [path for path in glob.glob(os.path.join(str(folder), '**'), recursive=True) if os.path.isfile(path)]
    return {path: (os.stat(path).st_ino, os.stat(path).st_mtime_ns) for path in paths}


def children_of(pid):
    """The processes that a process has started and that run."""
    found = []
    for path in glob.glob('/proc/[0-9]*/stat'):
        try:
            with open(path) as file:
                fields = file.read().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != 'Z':
            found.append(int(path.split('/')[2]))
    return found
