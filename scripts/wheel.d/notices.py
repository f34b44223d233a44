"""notices.py TARGET: the licences of all that the extension for TARGET is compiled from, with their texts, to stdout."""
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ('license', 'licence', 'copying', 'notice', 'unlicense')


def packages(target):
    """The packages from registries that are linked into the extension: no tests, build scripts or macros' helpers of these."""
    words = ['cargo', 'metadata', '--format-version', '1', '--locked', '--filter-platform', target]
    output = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    metadata = json.loads(output)
    known = {package['id']: package for package in metadata['packages']}
    nodes = {node['id']: node for node in metadata['resolve']['nodes']}
    todo = [package['id'] for package in metadata['packages'] if package['name'] == 'h5bridge-python']
    seen = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]['deps']:
            # the C sources of HDF5 are a dependency of a build script
            is_linked = any(kind['kind'] is None for kind in dependency['dep_kinds']) or dependency['name'] == 'hdf5_metno_src'
            if is_linked and dependency['pkg'] not in seen:
                seen.add(dependency['pkg'])
                todo.append(dependency['pkg'])
    return sorted((known[found] for found in seen if known[found]['source']), key=lambda found: (found['name'], found['version']))


def texts(package):
    """The texts in the package: its own, and those of C sources that it carries."""
    folder = os.path.dirname(package['manifest_path'])
    files = [file for depth in ('*', '*/*', '*/*/*') for file in sorted(glob.glob(os.path.join(folder, depth)))]
    for file in files:
        if os.path.basename(file).lower().startswith(NAMES) and os.path.isfile(file):
            with open(file, encoding='utf-8', errors='replace') as opened:
                yield os.path.relpath(file, folder), opened.read().strip()


def main(target):
    print('h5bridge is under the MIT or the Apache-2.0 licence, at your choice. It contains the following packages of others,\n'
          'each under the licence that its line names. The texts follow; equal ones are printed once.\n')
    holders = {}
    for package in packages(target):
        name = '%s %s' % (package['name'], package['version'])
        found = list(texts(package))
        note = '' if found else ' (its package holds no text)'
        print('%s: %s%s' % (name, package['license'] or 'see the text', note))
        for file, text in found:
            holders.setdefault(text, []).append('%s, %s' % (name, file))
    for text, names in holders.items():
        print('\n%s\n%s\n\n%s' % ('-' * 80, '\n'.join(names), text))


if __name__ == '__main__':
    main(sys.argv[1])
