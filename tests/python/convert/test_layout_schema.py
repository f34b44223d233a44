"""The documents of native files follow docs/reference/layout.schema.json, and the schema has no member that no file has."""
import copy
import json
import os
import shutil

import h5py
import jsonschema
import pytest
from casacore import tables

import support
from test_views import engine_of_another_shape

with open(os.path.join(support.ROOT, 'docs', 'reference', 'layout.schema.json'), encoding='utf-8') as opened:
    SCHEMA = json.load(opened)
LAYOUT = os.path.join(support.TESTDATA, 'layout')
DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
TWO = os.path.join(support.TESTDATA, 'twospw', 'twospw.ms')


def objects(schema, path=''):
    """Each object of the schema that has members, with its path."""
    if isinstance(schema, dict):
        if schema.get('type') == 'object' and 'properties' in schema:
            yield path, schema
        for key, inside in schema.items():
            yield from objects(inside, '%s/%s' % (path, key))


def strict():
    """The schema without room for members of later versions."""
    schema = copy.deepcopy(SCHEMA)
    for _, inside in objects(schema):
        inside['additionalProperties'] = False
    return schema


def validator(kind, schema=strict()):
    return jsonschema.Draft202012Validator({**schema, '$ref': '#/$defs/' + kind})


def documents(path):
    """Kind and content of each document of a file."""
    found = []
    with h5py.File(path) as file:
        if 'not_followed' in file.attrs:
            found.append(('not_followed', json.loads(file.attrs['not_followed'])))

        def visit(name, item):
            for attribute, text in item.attrs.items():
                kind = attribute.partition('.')[0]
                if isinstance(item, h5py.Group) and kind in ('table', 'column', 'digests'):
                    found.append((kind, json.loads(text)))
        file['_ctds'].visititems(visit)
    assert found
    return found


def members(schema, value, path=''):
    """Paths of the members of the schema that the value has."""
    if '$ref' in schema:
        name = schema['$ref'].rpartition('/')[2]
        yield from members(SCHEMA['$defs'][name], value, '/$defs/' + name)
    for number, inside in enumerate(schema.get('oneOf', ())):
        yield from members(inside, value, '%s/oneOf/%d' % (path, number))
    if isinstance(value, dict):
        for name, inside in value.items():
            if name in schema.get('properties', {}):
                yield '%s/properties/%s' % (path, name)
                yield from members(schema['properties'][name], inside, '%s/properties/%s' % (path, name))
            elif 'additionalProperties' in schema:
                yield from members(schema['additionalProperties'], inside, path + '/additionalProperties')
    if isinstance(value, list):
        each = schema.get('prefixItems') or [schema.get('items') or {}] * len(value)
        for number, (inside, element) in enumerate(zip(each, value)):
            below = 'prefixItems/%d' % number if 'prefixItems' in schema else 'items'
            yield from members(inside, element, '%s/%s' % (path, below))


@pytest.fixture(scope='module')
def files(tmp_path_factory, converted):
    """Native files of every kind."""
    folder = tmp_path_factory.mktemp('schema')
    paths = [os.path.join(LAYOUT, name) for name in sorted(os.listdir(LAYOUT)) if name.endswith('.h5')]
    paths += [converted(case, table) for case, table in support.some_convertible()]
    paths.append(os.path.join(support.TESTDATA, 'older', 'native.h5'))

    def convert(source, *options):
        paths.append(folder / ('%d.h5' % len(paths)))
        support.h5bridge('to-hdf5', source, paths[-1], *options, code=None)

    def damage(path, dataset):
        with h5py.File(path) as file:
            chunk = file[dataset].id.get_chunk_info(0)
        shutil.copyfile(path, folder / 'damaged.h5')
        with open(folder / 'damaged.h5', 'r+b') as file:
            file.seek(chunk.byte_offset)
            file.write(b'\1' * chunk.size)
        convert(folder / 'damaged.h5', '--salvage')

    convert(DEMO, '--average', 'time=30s')
    convert(os.path.join(support.TESTDATA, 'ref_tables', 'renamed.ref'))
    convert(os.path.join(support.TESTDATA, 'concat_tables', 'csub.concat'))
    with tables.table(str(folder / 'large'), tables.maketabdesc([tables.makescacoldesc('A', 0.)]), nrow=300_000, ack=False):
        pass
    convert(folder / 'large', '--compress', 'gzip')
    damage(paths[-1], 'MAIN/A')
    shutil.copytree(DEMO, folder / 'unnamed.ms')
    shutil.copytree(folder / 'large', folder / 'unnamed.ms/FIELD/EPHEM0_Moon.tab')
    convert(folder / 'unnamed.ms')
    shutil.copytree(TWO, folder / 'reversed.ms')
    with tables.table(str(folder / 'reversed.ms/SPECTRAL_WINDOW'), readonly=False, ack=False) as windows:
        windows.putcell('CHAN_FREQ', 0, windows.getcell('CHAN_FREQ', 0)[::-1].copy())
    convert(folder / 'reversed.ms', '--schema', 'msv4')
    shutil.copytree(DEMO, folder / 'demo.ms')
    os.truncate(folder / 'demo.ms/table.f1', os.path.getsize(folder / 'demo.ms/table.f1') // 2)
    convert(folder / 'demo.ms', '--salvage')
    convert(engine_of_another_shape(folder / 'engine'))
    convert(DEMO, '--compress', 'none', '--digest')
    damage(paths[-1], 'MAIN/DATA')
    for case, table in [('demo', 'demo.ms'), ('shapes', support.roots(support.expected('shapes')['tables'])[0])]:
        shutil.copytree(os.path.join(support.TESTDATA, case, table), folder / ('followed-' + case))
        paths.append(folder / ('live-%s.h5' % case))
        support.h5bridge('follow', folder / ('followed-' + case), paths[-1], '--idle', '1s', code=None)
    return paths


def test_documents_follow_the_schema(files, counts):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    seen = set()
    for path in files:
        for kind, document in documents(path):
            validator(kind).validate(document)
            seen.update(members({'$ref': '#/$defs/' + kind}, document))
            counts['documents'] += 1
    stated = {'%s/properties/%s' % (path, name) for path, inside in objects(SCHEMA) for name in inside['properties']}
    assert stated - seen == {'/$defs/value/properties/comment'}    # python-casacore gives none to fields


@pytest.mark.parametrize('kind, change', [
    ('table', lambda of: of.pop('keywords')),
    ('table', lambda of: of.pop('rows')),
    ('table', lambda of: of.update(rows=-1)),
    ('table', lambda of: of.update(unknown=1)),
    ('table', lambda of: of['keywords'].append(['A', {'type': 'int', 'value': 1.5}])),
    ('table', lambda of: of['keywords'].append(['A', {'type': 'int', 'shape': [1], 'value': 1}])),
    ('table', lambda of: of['keywords'].append(['A', {'type': 'string', 'value': {'bytes': 'f'}}])),
    ('table', lambda of: of['keywords'].append(['A', {'type': 'complex', 'value': [1, 'inf']}])),
    ('table', lambda of: of['keywords'].append(['A', {'type': 'table', 'value': '././A'}])),
    ('table', lambda of: of['keywords'].append(['A'])),
    ('column', lambda of: of.update(form='sparse')),
    ('column', lambda of: of.update(dtype='bool')),
    ('column', lambda of: of.update(shape=[-1])),
    ('digests', lambda of: of.update(blake3='0')),
    ('digests', lambda of: of.pop('columns')),
])
def test_other_documents_do_not(kind, change):
    document = next(document for of, document in documents(os.path.join(LAYOUT, 'types.h5')) if of == kind)
    validator(kind).validate(document)
    change(document)
    assert not validator(kind).is_valid(document)
