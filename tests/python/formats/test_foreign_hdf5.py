"""Files of other programs as h5-read reads them, against h5py: structure, attributes, places of chunks and values."""
import collections
import fnmatch
import os
import re

import pytest
import support

foreign_hdf5 = pytest.importorskip('foreign_hdf5', reason='hdf5plugin or netCDF4 is missing', exc_type=ImportError)

DUMP = os.path.join(support.EXAMPLES, 'dump')
MISSING = 'the example dump is missing: cargo build -p h5-read --example dump'

LINKS, TREES, SEEDS = (10000, 150, 100) if support.LONG else (2000, 40, 20)
# group: (what makes its files, least numbers of files, objects and attributes)
GROUPS = {
    'versions': (foreign_hdf5.make_versions, 6, 460, 190),
    'properties': (foreign_hdf5.make_properties, 15, 1100, 480),
    'links': (lambda folder: foreign_hdf5.make_links(folder, LINKS), 19, 7000, 20),
    'attributes': (foreign_hdf5.make_attributes, 18, 70, 3100),
    'storage': (foreign_hdf5.make_storage, 28, 130, 6),
    'chunk indices': (foreign_hdf5.make_chunk_indices, 6, 72, 0),
    'filters': (foreign_hdf5.make_filters, 10, 780, 0),
    'plugins': (foreign_hdf5.make_plugins, 7, 35, 7),
    'types': (foreign_hdf5.make_types, 26, 400, 20),
    'shared': (foreign_hdf5.make_shared, 12, 880, 1000),
    'elsewhere': (foreign_hdf5.make_elsewhere, 9, 40, 10),
    'matlab': (foreign_hdf5.make_matlab, 4, 50, 50),
    'detector': (foreign_hdf5.make_detector, 3, 24, 9),
    'astronomy': (foreign_hdf5.make_astronomy, 6, 70, 45),
    'netcdf': (foreign_hdf5.make_netcdf, 4, 30, 220),
    'trees': (lambda folder: foreign_hdf5.make_random_trees(folder, TREES), 40, 1000, 1800),
}
for first in (0, SEEDS, 2 * SEEDS):
    GROUPS[f'random chunks from {first}'] = (
        lambda folder, first=first: foreign_hdf5.make_random_chunks(folder, first, SEEDS), 20, 200, 0)

# The example prints no checksum of elements of variable length inside others, and of references that h5py gives in
# another size than the file has.
NESTED = foreign_hdf5.NESTED
UNKNOWN = 'the filter is not known'
OF_EVERYTHING = {'*:/g/nested text': NESTED, '*:/g/contiguous@DIMENSION_LIST': NESTED}
# group: {file:object or file:object@attribute: words of the reason for which its elements are not read}. Whatever fits
# has to be refused.
REFUSED = {
    'versions': OF_EVERYTHING,
    'properties': {
        **OF_EVERYTHING,
        'sizes_4_?*.h5:/g/references': NESTED,
        'sizes_4_?*.h5:/g/regions': NESTED,
        'sizes_4_?*.h5:/g/contiguous@reference': NESTED,
        'sizes_4_?*.h5:/g/one unlimited@REFERENCE_LIST': NESTED,
    },
    'plugins': {
        'bitshuffle.h5:/filtered': 'filter 32008 "bitshuffle',
        'blosc.h5:/filtered': f'filter 32001 "blosc": {UNKNOWN}',
        'blosc2.h5:/filtered': f'filter 32026 "blosc2": {UNKNOWN}',
        'bzip2.h5:/filtered': f'filter 307 "bzip2": {UNKNOWN}',
        'lz4.h5:/filtered': 'filter 32004 "HDF5 lz4 filter',
        'zfp.h5:/filtered': 'filter 32013 "H5Z-ZFP',
        'zstd.h5:/filtered': 'filter 32015 "HDF5 zstd filter',
        **({'szip_*.h5:/filtered': f'filter szip: {UNKNOWN}'} if foreign_hdf5.writes_szip() else {}),
    },
    'types': {
        'nested_*.h5:/sequences': NESTED,
        'others_*.h5:/nested text': NESTED,
        'references.h5:/references': NESTED,
    },
    'shared': {pattern.replace('*', 'all_*.h5', 1): reason for pattern, reason in OF_EVERYTHING.items()},
    'elsewhere': {
        'virtual_*.h5:/virtual': 'the elements are in other datasets: it is virtual',
        'external_*.h5:/external': 'the elements are in external files',
    },
    'detector': {'detector_bitshuffle.h5:/entry/data/data': UNKNOWN},
    'netcdf': {'*@DIMENSION_LIST': NESTED},
}


def refusals(found):
    """(path, reason) of whatever the example says it has not read; of these elements FOUND then has None."""
    for where, described in found.items():
        for key in [key for key in described if key == 'unread' or key.endswith('error')]:
            if key in ('unread', 'data_error'):
                described['data'] = None
            yield where, described.pop(key)
        if described.get('data') == NESTED:
            described['data'] = None
            yield where, NESTED
        for name, value in described['attrs'].items():
            if value[2] is not None and not re.fullmatch('[0-9a-f]{8}', value[2]):
                reason, value[2] = value[2], None
                yield f'{where}@{name}', reason


def comparable(datatype):
    """The name of a type, without the places of members if h5py gives those in memory."""
    if not re.search(r'v\(|vs|r\d+[or]', datatype):
        return datatype
    return re.sub(r'@\d+:', '@:', re.sub(r'c\d+{', 'c{', datatype))


def differences(found, expected):
    """Lines, one for each difference of an object or attribute."""
    for where in sorted(found.keys() | expected.keys()):
        if where not in found or where not in expected:
            yield f'{where}: {"not in the file" if where in found else "missing"}'
            continue
        ours, theirs = dict(found[where]), dict(expected[where])
        if 'data' in ours and ours['data'] is None:
            theirs['data'] = None
        if theirs.get('layout') == 'chunked' and 'chunks' not in theirs:
            ours.pop('chunks')
        attributes, other_attributes = ours.pop('attrs'), theirs.pop('attrs')
        for values in (ours, theirs):
            values['dtype'] = comparable(values.get('dtype', ''))
        pairs = [(key, ours.get(key), theirs.get(key)) for key in ours.keys() | theirs.keys()]
        for name in attributes.keys() | other_attributes.keys():
            mine, its = attributes.get(name), other_attributes.get(name)
            if mine and its:
                its = [comparable(its[0]), its[1], None if mine[1:] == [its[1], None] else its[2]]
                mine = [comparable(mine[0]), *mine[1:]]
            pairs.append((f'attribute {name}', mine, its))
        yield from (f'{where}: {key}: {mine}, not {its}' for key, mine, its in pairs if mine != its)


def check_file(path, refused, counts):
    """Compares a file; returns the patterns of REFUSED that it needs."""
    expected = foreign_hdf5.by_h5py(path)
    for described in expected.values():
        if 'index' in described:
            counts[f'indices: {described.pop("index")}'] += 1
    found = foreign_hdf5.by_dump(DUMP, path)
    reasons = {f'{path.name}:{where}': reason for where, reason in refusals(found)}
    problems = list(differences(found, expected))
    used = set()
    places = [f'{path.name}:{where}' for where in expected]
    places += [f'{path.name}:{where}@{name}' for where, described in expected.items() for name in described['attrs']]
    for place in sorted({*places, *reasons}):
        patterns = [pattern for pattern in refused if fnmatch.fnmatchcase(place, pattern)]
        used.update(patterns)
        reason = reasons.get(place)
        if reason is None and patterns:
            problems.append(f'{place}: is listed as refused, but is read')
        elif reason is not None and not any(refused[pattern] in reason for pattern in patterns):
            problems.append(f'{place}: is refused: {reason}')
    assert not problems, '\n'.join([f'{path.name}: {len(problems)} differences', *problems[:40]])
    attributes = sum(len(described['attrs']) for described in expected.values())
    counts.update(files=1, objects=len(expected), attributes=attributes, refused=len(reasons))
    return used


@pytest.mark.skipif(not os.path.exists(DUMP), reason=MISSING)
@pytest.mark.parametrize('group', GROUPS)
def test_as_h5py_reads_it(group, tmp_path, counts):
    make, *least = GROUPS[group]
    make(tmp_path)
    refused = REFUSED.get(group, {})
    compared, used = collections.Counter(), set()
    for path in sorted(tmp_path.glob('*.h5')):
        used |= check_file(path, refused, compared)
    counts.update(compared)
    assert used == set(refused)
    for kind, number in zip(('files', 'objects', 'attributes'), least, strict=True):
        assert compared[kind] >= number, kind
    if group == 'chunk indices':
        assert {f'indices: {name}' for name in foreign_hdf5.INDICES} <= set(compared)


def test_there_are_enough():
    files, objects, attributes = (sum(group[place] for group in GROUPS.values()) for place in (1, 2, 3))
    assert files >= 200 and objects >= 5000 and attributes >= 3000
