"""Makes the wheel of an editable h5bridge: its metadata, and the path of python/ instead of a copy of the package.

maturin makes one, too, but compiles everything again for it.
"""
import base64
import hashlib
import os
import sys
import tomllib
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(folder):
    with open(os.path.join(ROOT, 'pyproject.toml'), 'rb') as file:
        project = tomllib.load(file)['project']
    with open(os.path.join(ROOT, 'Cargo.toml'), 'rb') as file:
        version = tomllib.load(file)['workspace']['package']['version']

    metadata = ['Metadata-Version: 2.1', 'Name: ' + project['name'], 'Version: ' + version,
                'Summary: ' + project['description'], 'Requires-Python: ' + project['requires-python']]
    metadata += ['Requires-Dist: ' + needed for needed in project['dependencies']]
    for extra, needs in project['optional-dependencies'].items():
        metadata.append('Provides-Extra: ' + extra)
        metadata += ['Requires-Dist: %s ; extra == "%s"' % (needed, extra) for needed in needs]

    groups = {'console_scripts': project['scripts'], **project['entry-points']}
    entry_points = [line for group, entries in groups.items()
                    for line in ['[%s]' % group, *('%s = %s' % entry for entry in entries.items()), '']]

    info = '%s-%s.dist-info/' % (project['name'], version)
    files = {
        project['name'] + '.pth': [os.path.join(ROOT, 'python')],
        info + 'METADATA': metadata,
        info + 'WHEEL': ['Wheel-Version: 1.0', 'Generator: scripts/setup.d/editable.py', 'Root-Is-Purelib: true', 'Tag: py3-none-any'],
        info + 'entry_points.txt': entry_points,
    }
    record = []
    wheel = os.path.join(folder, '%s-%s-py3-none-any.whl' % (project['name'], version))
    with zipfile.ZipFile(wheel, 'w') as archive:
        for name, lines in files.items():
            data = ''.join(line + '\n' for line in lines).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            record.append('%s,sha256=%s,%d\n' % (name, digest, len(data)))
            archive.writestr(name, data)
        archive.writestr(info + 'RECORD', ''.join(record) + info + 'RECORD,,\n')


if __name__ == '__main__':
    main(sys.argv[1])
