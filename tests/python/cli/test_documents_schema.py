"""What each verb prints with `--json` follows docs/reference/documents.schema.json, and the schema has nothing that no verb prints."""
import collections
import copy
import functools
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time

import h5py
import jsonschema
import numpy as np
import pytest
from casacore import tables

import support

with open(os.path.join(support.ROOT, 'docs', 'reference', 'documents.schema.json'), encoding='utf-8') as opened:
    SCHEMA = json.load(opened)
STREAMS = {'serve', 'watch'}
PARTED = ('batch', 'shard', 'vt')     # verbs with parts, each with documents of its own

# Before each of these blocks `Folder` changes the sources.
COMMANDS = """
to-hdf5 base.tab one.h5 --restorable
to-hdf5 base.tab one.h5
to-hdf5 base.tab plain.h5 --compress none --no-digest
to-hdf5 my.ms cloud.h5 --average time=50s,chan=8 --profile cloud --compress zstd:3
to-hdf5 other.ms no.h5 --average time=20s --profile cloud --compress zstd:3 --dry-run
to-hdf5 base.tab no.h5 --hdf5 1.8 --dry-run --restorable
to-hdf5 base.tab shared.h5 --compress shared
to-hdf5 base.tab old.h5 --hdf5 1.8
to-hdf5 base.tab no.h5 --compress shared --dry-run
to-hdf5 large.tab large.h5 --compress gzip
to-hdf5 large.tab no.h5 --dry-run
to-hdf5 wide.tab no.h5 --compress none --dry-run
to-hdf5 taql.tab taql.h5
to-hdf5 damaged.ms salvaged.h5 --salvage
to-hdf5 base.tab part0.h5 --rows 0..20
to-hdf5 base.tab part1.h5 --rows 20..40
join --virtual part0.h5 part1.h5 joined.h5 --copy-below 0
join --virtual part1.h5 part0.h5 no.h5
to-ms one.h5 values.tab
to-ms taql.h5 taql2.tab
to-ms one.h5 exact.tab --exact
to-hdf5 refs/sel.ref refs/sel.h5
to-ms refs/sel.h5 refs/back.ref
to-hdf5 concats/c.concat concats/c.h5
to-ms concats/c.h5 concats/back.concat
to-ms huge.h5 huge.ms
pack base.tab crc.tab --crc
pack base.tab packed.tab
pack base.tab whole.h5 --single-file --checksum sha256
pack base.tab blake3.h5 --single-file --checksum blake3
pack base.tab table.vt --format vt
pack files run.sion --format sion
pack files files.vt --format vt
pack files plain.files --format hdf5
pack refs/sel.ref sel.ref
pack refs/sel.ref no.ref --strict
pack numbers.h5/a a.bcolz --format bcolz
pack numbers.h5/b b.bcolz --format bcolz
pack numbers.h5/c c.bcolz --format bcolz
pack numbers.h5/a a.blp --format bloscpack
pack a.bcolz a.blz --format blz
pack no new.ms
unpack crc.tab unpacked.tab
unpack no new.ms
to-hdf5 run.sion files.h5
to-hdf5 a.bcolz a.h5
unpack a.h5 again.bcolz
manifest my.ms my.json
manifest taql.tab taql.json
manifest types.h5 types.json
manifest no no.json
follow two.ms live.h5 --until-closed --idle 500ms --poll 1ms
follow now.tab now.h5 --until-closed --idle 500ms --poll 1ms
follow base.tab base.h5 --until-closed --idle 500ms --poll 1ms
follow no no.h5
pack two.ms live.mfh5 --follow --until-closed --idle 500ms
pack base.tab base.mfh5 --follow --until-closed --idle 500ms
pack no no.mfh5 --follow
shard plan my.ms big.h5 --work-bytes 4K
shard plan nulls.ms limited.h5 --work-bytes 4K
shard plan my.ms split.h5 --split 100K
shard plan large.h5 back.tab --work-bytes 1M
shard plan no no.h5
shard status big.h5
shard commit big.h5
shard work big.h5
batch plan base.tab plain.tab no.ms --to '{stem}-all.h5' --out list.ndjson
batch plan my.ms plain.tab --to '{stem}-2.h5' --out big.ndjson
batch plan no.ms --verb verify --out verify.ndjson
batch plan --from no --to '{stem}.h5' --out no.ndjson

to-hdf5 changed.h5 edited.h5 --salvage
to-hdf5 large.h5 lacking.h5 --salvage
unpack bad.tab salvaged.tab --salvage
unpack bad.tab new.tab
info my.ms
info my.ms --msv4
info nulls.ms
info empty.ms
info damaged.ms
info taql.tab
info taql.h5
info chain.tab
info types.h5
info msv4.h5
info zstd.h5
info unknown.h5
info lacking.h5
info joined.h5
info base.h5
info crc.tab
info packed.tab
info big.tab
info whole.h5
info table.vt
info run.sion
info run.sion/TASK0
info files.vt
info plain.files
info a.bcolz
info c.bcolz
info an.image
info a.cal
info no
ls crc.tab
ls whole.h5
ls blake3.h5
ls run.sion
ls files.vt
ls files.h5
ls a.bcolz
ls no
digest base.tab
digest types.h5 --hash sha256
digest damaged.ms
digest taql.tab
digest headless.tab
digest run.sion
digest a.bcolz --hash sha256
digest no
verify base.tab one.h5
verify one.h5
verify base.tab part0.h5
verify one.h5 changed.h5
verify changed.h5
verify my.ms two.ms
verify salvaged.h5
verify --bytes base.tab values.tab
verify --bytes base.tab an.image
verify --bytes crc.tab
verify --bytes bad.tab
verify --bytes base.tab
verify a.bcolz a.h5
verify a.bcolz b.bcolz
verify a.bcolz c.bcolz
verify a.bcolz
verify a.blp
verify my.json
verify no
lint one.h5
lint changed.h5
lint no
refs types.h5
refs no
plot my.ms
plot my.ms spectrum
plot my.ms baselines
plot my.ms antennas --out antennas.png
plot nulls.ms
plot my.ms --describe
plot measurementset.h5 --describe
plot base.h5 --describe
plot empty.ms --describe
plot live.h5 --describe
plot base.tab
plot a.cal
plot no
watch live.h5 --count 2 --interval 1ms --alert 'flagged > 0.1 %'
watch now.h5 --count 1
watch base.h5 --count 1
watch no
repair live.h5
repair no
finalize live.h5 final.h5
finalize live.mfh5 packed.ms
finalize base.mfh5
finalize no
shard verify big.h5
shard status big.h5
shard work big.h5
shard commit big.h5
shard status big.h5
shard status no.h5
shard work no.h5
shard verify no.h5
shard work back.tab
batch run list.ndjson --ledger ledger --retries 0 --min-free 1M
batch run list.ndjson --ledger ledger --retries 0 --min-free 1M
batch run verify.ndjson --ledger ledger --retries 0
batch run no --ledger ledger
batch status list.ndjson --ledger ledger
batch status list.ndjson --ledger ledger --failed
batch status verify.ndjson --ledger ledger --failed
batch status no --ledger ledger
batch clean list.ndjson
batch clean no
vt serve no
serve no
serve one.h5 --no-token --host 0.0.0.0
completions bash
generate man man1
generate man one.h5

to-hdf5 other.ms replaced.h5 --replace
verify other.ms
info other.ms
plot other.ms --describe
link replaced.h5 thin.ms
link no new.ms
materialize thin.ms
materialize no
verify my.json
info large.h5
"""

# What the schema names and none of these commands prints.
NOT_SEEN = {
    '/$defs/peakMemory/type/null',                      # systems other than Linux and macOS
    '/$defs/ending/properties/shared_bytes',            # file systems with reflinks
    '/$defs/List/properties/left_out',                  # archives with symbolic links, which h5bridge does not write
    '/$defs/LeftOut/properties/name',
    '/$defs/LeftOut/properties/what',
    '/$defs/ListChunks/properties/format/oneOf/1',      # `ls` lists chunks of these formats only
    '/$defs/Finalize/properties/digest/oneOf/1',        # `finalize` always computes it
    '/$defs/parameter/type/null',                       # a parameter of a storage manager that is NaN
    '/$defs/dtype/enum/other',                          # columns of C++ classes and of tables: formats/test_left_out.py
    '/$defs/dtype/enum/table',
}

# Members that may be missing, and are in all documents of these commands.
ALWAYS_THERE = {
    '/$defs/Info/properties/kind',                      # missing if the source has no tables, of which none is known
}


def parts(schema, path):
    """Each part of a schema that is a schema itself: keyword, path, part."""
    for keyword in ('allOf', 'anyOf', 'oneOf', 'prefixItems'):
        for number, inside in enumerate(schema.get(keyword, ())):
            yield keyword, '%s/%s/%d' % (path, keyword, number), inside
    for name, inside in schema.get('properties', {}).items():
        yield 'properties', '%s/properties/%s' % (path, name), inside
    for keyword in ('additionalProperties', 'items'):
        if isinstance(schema.get(keyword), dict):
            yield keyword, '%s/%s' % (path, keyword), schema[keyword]


def choices(schema, path):
    """Types and values of which a value has one: path, keyword, choice."""
    for keyword in ('type', 'enum'):
        if isinstance(schema.get(keyword), list):
            yield from (('%s/%s/%s' % (path, keyword, choice), keyword, choice) for choice in schema[keyword])


def stated(schema, path):
    """Paths of the members and alternatives that the schema names."""
    yield from (where for where, _, _ in choices(schema, path))
    for keyword, where, inside in parts(schema, path):
        if keyword in ('anyOf', 'oneOf', 'properties'):
            yield where
        yield from stated(inside, where)


def optional(schema, path):
    """Objects and members that they need not have: path of the object, path of the member."""
    for keyword, where, inside in parts(schema, path):
        if keyword == 'properties' and where.rpartition('/')[2] not in schema.get('required', ()):
            yield path, where
        yield from optional(inside, where)


def strict(schema):
    """The schema without room for members of later versions."""
    def close(part, path):
        if part.get('type') == 'object' and ('properties' in part or 'allOf' in part):
            part['unevaluatedProperties'] = False
        for _, where, inside in parts(part, path):
            close(inside, where)
    closed = copy.deepcopy(schema)
    for inside in closed['$defs'].values():
        close(inside, '')
    return closed


class Judge:
    """Validates documents by the strict form of a schema, and counts what they have of it."""

    def __init__(self, schema=SCHEMA):
        self.definitions, self.seen, self.validators = strict(schema)['$defs'], collections.Counter(), {}

    def validator(self, schema, path):
        if path not in self.validators:
            self.validators[path] = jsonschema.Draft202012Validator({**schema, '$defs': self.definitions})
        return self.validators[path]

    def add(self, verb, document):
        root = {'$ref': '#/$defs/' + verb}
        self.validator(root, verb).validate(document)
        self.count(root, document, verb)

    def count(self, schema, value, path):
        self.seen[path] += 1
        if '$ref' in schema:
            name = schema['$ref'].rpartition('/')[2]
            self.count(self.definitions[name], value, '/$defs/' + name)
        for where, keyword, choice in choices(schema, path):
            self.seen[where] += self.validator({}, '').is_type(value, choice) if keyword == 'type' else value == choice
        for keyword, where, inside in parts(schema, path):
            name = where.rpartition('/')[2]
            if keyword == 'allOf' or keyword in ('anyOf', 'oneOf') and self.validator(inside, where).is_valid(value):
                found = [value]
            elif isinstance(value, dict) and keyword in ('properties', 'additionalProperties'):
                found = value.values() if keyword == 'additionalProperties' else [value[name]] if name in value else []
            elif isinstance(value, list) and keyword in ('items', 'prefixItems'):
                found = value if keyword == 'items' else [value[int(name)]]
            else:
                found = []
            for inner in found:
                self.count(inside, inner, where)

    def paths(self, function):
        return [found for name, schema in self.definitions.items() for found in function(schema, '/$defs/' + name)]

    def not_seen(self):
        """Members and alternatives that no document had."""
        return {where for where in self.paths(stated) if not self.seen[where]}

    def always_there(self):
        """Members that no document lacked although it may."""
        return {member for of, member in self.paths(optional) if self.seen[member] and self.seen[member] == self.seen[of]}


def ms_of(folder, name):
    shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), folder / name)
    return lambda table='', **options: tables.table(str(folder / name / table), ack=False, readonly=False, **options)


def make_sources(folder):
    for source, name in [('twospw/twospw.ms', 'two.ms'), ('ref_tables', 'refs'), ('concat_tables', 'concats'),
                         ('ref_tables/base.tab', 'base.tab'),
                         ('ref_tables/base64.tab', 'plain.tab'), ('undefined/big.tab', 'big.tab'),
                         ('engine_forms/chain.tab', 'chain.tab')]:
        shutil.copytree(os.path.join(support.TESTDATA, source), folder / name)
    for name in ('types.h5', 'msv4.h5', 'zstd.h5', 'measurementset.h5'):
        shutil.copy(os.path.join(support.TESTDATA, 'layout', name), folder / name)
    support.unread_expressions(str(folder / 'taql.tab'))
    with ms_of(folder, 'my.ms')() as of:
        of.copy(str(folder / 'empty.ms'), deep=True, copynorows=True).close()
    opened = ms_of(folder, 'other.ms')
    for table, columns in [('ANTENNA', ['POSITION']), ('FIELD', ['PHASE_DIR', 'REFERENCE_DIR']),
                           ('', ['WEIGHT', 'WEIGHT_SPECTRUM', 'SIGMA', 'SIGMA_SPECTRUM'])]:
        with opened(table) as of:
            of.removecols(columns)
    ms_of(folder, 'damaged.ms')
    shutil.rmtree(folder / 'damaged.ms/ANTENNA')
    (folder / 'damaged.ms/FIELD/table.dat').write_text('damaged')
    os.truncate(folder / 'damaged.ms/table.f1', os.path.getsize(folder / 'damaged.ms/table.f1') // 2)
    opened = ms_of(folder, 'nulls.ms')
    for table, column in [('ANTENNA', 'POSITION'), ('FIELD', 'PHASE_DIR'), ('SPECTRAL_WINDOW', 'CHAN_FREQ'), ('SPECTRAL_WINDOW', 'CHAN_WIDTH'),
                          ('SPECTRAL_WINDOW', 'TOTAL_BANDWIDTH'), ('', 'TIME')]:
        with opened(table) as of:
            of.putcell(column, 0, of.getcell(column, 0) * np.nan)
    with opened() as of:
        of.putcol('SCAN_NUMBER', np.arange(210, dtype='i4'))
        of.putcol('DATA', of.getcol('DATA') * np.nan)
        of.removecols(['FLAG'])
    scalar, array = tables.makescacoldesc, tables.makearrcoldesc
    for name, columns, rows in [
            ('large.tab', [array('A', 0., shape=[1000], options=5, datamanagertype='TiledColumnStMan', datamanagergroup='A')], 300), ('headless.tab', [scalar('A', 0)], 1),
            ('an.image', [scalar('A', 0)], 1),
            ('wide.tab', [array('A', 0., shape=[100, 100], options=5)], 220),
            ('now.tab', [scalar('TIME', 0.), array('DATA', 0j, shape=[2, 3]), array('FLAG', False, shape=[2, 3])], 2),
            ('a.cal', [scalar('TIME', 0.), *(scalar(column, 0) for column in ('FIELD_ID', 'SPECTRAL_WINDOW_ID', 'ANTENNA1', 'ANTENNA2', 'SCAN_NUMBER')),
                       array('CPARAM', 0j, ndim=2), array('FLAG', False, ndim=2)], 2)]:
        with tables.table(str(folder / name), tables.maketabdesc(columns), nrow=rows, ack=False) as table:
            if name == 'now.tab':
                table.putcol('TIME', 40587 * 86400 + time.time() - np.arange(2.))
                table.putcol('DATA', np.ones((2, 2, 3), 'c16'))
                table.putcol('FLAG', np.zeros((2, 2, 3), bool))
            if name == 'an.image':
                table.putinfo({'type': 'Image', 'subType': '', 'readme': ''})
            if name == 'a.cal':
                table.putcol('TIME', [5e9, 5e9 + 1])
                table.putcol('CPARAM', np.ones((2, 1, 2), 'c16'))
                table.putcol('FLAG', np.zeros((2, 1, 2), bool))
                table.putinfo({'type': 'Calibration', 'subType': 'G Jones', 'readme': ''})
                with tables.table(str(folder / name / 'ANTENNA'), tables.maketabdesc([scalar('NAME', '')]), nrow=1, ack=False) as antennas:
                    antennas.putcell('NAME', 0, 'A')
                    table.putkeyword('ANTENNA', antennas)
    os.remove(folder / 'headless.tab/table.f0')
    (folder / 'no.ms').mkdir()
    (folder / 'files').mkdir()
    (folder / 'files/TASK0').write_text('abc')
    (folder / 'base-all.h5').write_text('in the way')
    with h5py.File(folder / 'numbers.h5', 'w') as file:
        for name, values in [('a', np.arange(1000.)), ('b', np.arange(1000.) + 1), ('c', np.arange(0.))]:
            file[name] = values
    with h5py.File(folder / 'huge.h5', 'w') as file:
        file.attrs['format'], file.attrs['format_version'] = 'ctds-hdf5', '1.0'
        file.create_dataset('MAIN/X', shape=(10**13,), dtype='f8', chunks=(10**6,))


def damage_targets(folder):
    def overwrite(path, offset, data):
        with open(path, 'r+b') as file:
            file.seek(offset)
            file.write(data)
    shutil.copy(folder / 'one.h5', folder / 'changed.h5')
    with h5py.File(folder / 'changed.h5', 'r+') as file:
        file['MAIN/D'][3] += 1
        file['MAIN'].attrs['large'] = np.zeros(20_000)
    shutil.copy(folder / 'large.h5', folder / 'unknown.h5')
    with h5py.File(folder / 'unknown.h5', 'r+') as file, h5py.File(folder / 'files.h5', 'r+') as files:
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_chunk((10, 1000))
        created.set_filter(32999, h5py.h5z.FLAG_OPTIONAL)
        del file['MAIN/A']
        h5py.h5d.create(file['MAIN'].id, b'A', h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((300, 1000)), created)
        data, kept = files['TASK0'][()], dict(files['TASK0'].attrs)
        del files['TASK0']
        files.create_dataset('TASK0', data=data, chunks=data.shape, fletcher32=True).attrs.update(kept)
    before = os.stat(folder / 'large.h5')
    with h5py.File(folder / 'large.h5') as file:
        chunk = file['MAIN/A'].id.get_chunk_info(0)
    overwrite(folder / 'large.h5', chunk.byte_offset, b'\1' * chunk.size)
    os.utime(folder / 'large.h5', ns=(before.st_atime_ns, before.st_mtime_ns))
    shutil.copytree(folder / 'crc.tab', folder / 'bad.tab')
    overwrite(folder / 'bad.tab/table.mf', os.path.getsize(folder / 'bad.tab/table.mf') // 2, b'bad')
    planned = folder / 'big.h5.shards/big.h5'
    with h5py.File(planned) as file:
        at = file['MAIN/UVW'].id.get_chunk_info(0).byte_offset
    overwrite(planned, at, b'bad')


def change_origin(folder):
    for table in ('my.ms', 'large.tab'):
        os.utime(folder / table / 'table.dat', (time.time() + 60,) * 2)


class Run:
    """Runs commands in a folder, and hands their documents to a judge."""

    def __init__(self, folder, judge):
        self.folder, self.judge = folder, judge

    def judged(self, line, text):
        words = shlex.split(line)
        verb = '-'.join(words[:2]) if words[0] in PARTED else words[0]
        found = [json.loads(part) for part in (text.splitlines() if verb in STREAMS else [text])]
        assert found, line
        for document in found:
            try:
                self.judge.add(verb, document)
            except jsonschema.ValidationError as error:
                raise AssertionError('%s: %s' % (line, error)) from error

    def command(self, line, **options):
        process = self.start(line, **options)
        text, said = process.communicate(timeout=300)
        assert process.returncode in range(9), (line, said)
        self.judged(line, text)

    def start(self, line, stdout=subprocess.PIPE, **options):
        return subprocess.Popen([support.H5BRIDGE, '--json', *shlex.split(line)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=stdout, stderr=subprocess.PIPE, text=True, **options)

    def until(self, line, folder=None, end=lambda process: process.send_signal(signal.SIGINT)):
        """Ends a command when it has made a folder, or printed something."""
        with open(self.folder / 'printed', 'w+', encoding='utf-8') as printed:
            process = self.start(line, printed)
            while not (os.path.exists(self.folder / folder) if folder else os.fstat(printed.fileno()).st_size):
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.01)
            end(process)
            process.communicate(timeout=60)
            printed.seek(0)
            self.judged(line, printed.read())


def run_all(folder, run):
    for block, change in zip(COMMANDS.split('\n\n'), (make_sources, damage_targets, change_origin)):
        change(folder)
        for line in block.strip().splitlines():
            run.command(line)
    run.until('serve one.h5 --port 0')
    (folder / 'served').mkdir()
    run.until('vt serve served --port 0')
    run.until('watch live.h5')
    run.until('watch base.h5 --interval 10ms', end=lambda process: os.remove(folder / 'base.h5'))
    with tables.table(str(folder / 'base.tab'), ack=False):
        run.command('info base.tab')
    # files of at most 40 kB: an error, or a signal that kills
    limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    for name, restored in [('retry', False), ('killed', True)]:
        run.command('batch run big.ndjson --ledger %s --retries 0 --min-free 1M' % name, preexec_fn=limited, restore_signals=restored)
        run.command('batch status big.ndjson --ledger %s --failed' % name)
    run.command('shard work limited.h5', preexec_fn=limited, restore_signals=False)
    run.until('batch run big.ndjson --ledger waiting --min-free 1000000G', 'waiting')


def verbs():
    """Those of `--help`, of `batch`, `shard` and `vt` each part, as the schema names them. `help` prints text."""
    def listed(*words):
        text = support.h5bridge(*words, '--help').stdout.partition('Commands:\n')[2].partition('\n\n')[0]
        return re.findall(r'^  (?:[A-Z]\w+ +| {9})?([a-z][a-z0-9-]*)  ', text, re.MULTILINE)
    found = set(listed()) - {'help', *PARTED} | {'%s-%s' % (verb, part) for verb in PARTED for part in listed(verb)}
    assert len(found) > 25
    return found


def test_documents_follow_the_schema(tmp_path, counts):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    judge = Judge()
    run_all(tmp_path, Run(tmp_path, judge))
    printed = {verb: judge.seen[verb] for verb in SCHEMA['$defs'] if judge.seen[verb]}
    counts['documents'] += sum(printed.values())
    assert set(printed) == verbs() | {'generate'}
    assert judge.not_seen() - NOT_SEEN == set()
    assert judge.always_there() - ALWAYS_THERE == set()


@functools.cache
def printed_by(verb):
    return support.h5bridge('--json', verb, os.path.join(support.TESTDATA, 'layout', 'measurementset.h5')).stdout


@pytest.mark.parametrize('verb, change', [
    ('info', lambda of: of.pop('tables')),
    ('info', lambda of: of.update(unknown=1)),
    ('info', lambda of: of.update(kind='Table')),
    ('info', lambda of: of['tables'].update(A={})),
    ('info', lambda of: of['tables']['.'].update(locked=True)),
    ('info', lambda of: of['tables']['.']['columns'][0].update(dtype='bool')),
    ('info', lambda of: of['tables']['.']['columns'][0].update(shape=[-1])),
    ('info', lambda of: of['tables']['.']['columns'][0].pop('chunk')),
    ('info', lambda of: of['summary'].update(time_range=[1])),
    ('digest', lambda of: of['tables']['.'].update(sha256='0')),
    ('digest', lambda of: of.update(format='CTFP-3')),
    ('verify', lambda of: of.pop('code')),
    ('verify', lambda of: of.update(status='complete')),
    ('verify', lambda of: of.update(damage=[])),
    ('verify', lambda of: of['compared'].update(cells='1')),
    ('verify', lambda of: of['compared'].update(unknown=1)),
    ('lint', lambda of: of.update(findings=[{}])),
])
def test_other_documents_do_not(verb, change):
    document = json.loads(printed_by(verb))
    validator = Judge().validator({'$ref': '#/$defs/' + verb}, verb)
    validator.validate(document)
    change(document)
    assert not validator.is_valid(document)
