"""The files of a release.

files.py sums DIR: writes DIR/SHA256SUMS, and lists the files with sizes and checksums.

files.py pack FOLDER OUT.tar.gz: an archive of a folder whose bytes depend on its files and on SOURCE_DATE_EPOCH alone.

files.py pypi ARTEFACTS OUT, files.py page ARTEFACTS OUT: collects in OUT what is published at PyPI or on the page of the release,
from ARTEFACTS, which has what `scripts/release VERSION --dry-run` made on each machine, in a folder SYSTEM-PROCESSOR. Nothing is
collected if a file is missing or differs from its checksum.
"""
import gzip
import hashlib
import os
import re
import shutil
import sys
import tarfile

# What is the same for all processors is made by each machine and taken from this one.
COMMON = 'Linux-X64'
PACKAGE = r'h5bridge-\d+\.\d+\.\d+'
WHEELS = [PACKAGE + r'-cp311-abi3-\S*%s\.whl' % platform for platform in (
    'manylinux2014_x86_64', 'manylinux2014_aarch64', r'macosx_\d+_\d+_x86_64', r'macosx_\d+_\d+_arm64')]
PROGRAMS = [PACKAGE + r'-%s\.tar\.gz' % target for target in (
    'x86_64-unknown-linux-gnu', 'aarch64-unknown-linux-gnu', 'x86_64-apple-darwin', 'aarch64-apple-darwin')]
DEBIAN = [r'h5bridge_\S+_%s\.deb' % processor for processor in ('amd64', 'arm64')]
SOURCE = PACKAGE + r'\.tar\.gz'
WANTED = {
    'pypi': [*WHEELS, SOURCE],
    'page': [*WHEELS, *PROGRAMS, *DEBIAN, SOURCE, PACKAGE + r'-docs\.tar\.gz', r'notes\.md'],
}
SUMS = 'SHA256SUMS'


def checksum(path):
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def sums(folder):
    """Writes the checksums of the files in a folder; returns (name, checksum) of each."""
    found = [(name, checksum(os.path.join(folder, name))) for name in sorted(os.listdir(folder)) if name != SUMS]
    with open(os.path.join(folder, SUMS), 'w') as file:
        file.writelines('%s  %s\n' % (digest, name) for name, digest in found)
    return found


def pack(folder, out):
    time = int(os.environ.get('SOURCE_DATE_EPOCH', '0'))

    def of_nobody(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ''
        entry.mtime = time
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with open(out, 'wb') as file, gzip.GzipFile('', 'wb', fileobj=file, mtime=time) as packed:
        with tarfile.open(fileobj=packed, mode='w') as archive:      # its entries are sorted
            archive.add(folder, os.path.basename(os.path.abspath(folder)), filter=of_nobody)


def made(artefacts):
    """{name: path} of what all machines made, whose checksums are right."""
    paths = {}
    for folder, folders, names in os.walk(artefacts):
        folders.sort()
        if SUMS not in names:
            continue
        with open(os.path.join(folder, SUMS)) as file:
            listed = dict(reversed(line.rstrip('\n').split('  ', 1)) for line in file)
        machine = os.path.relpath(folder, artefacts).split(os.sep)[0]
        for name, digest in listed.items():
            path = os.path.join(folder, name)
            if name not in names:
                sys.exit('%s: the file is missing, %s lists it' % (path, SUMS))
            if checksum(path) != digest:
                sys.exit('%s: the checksum is %s, %s says %s' % (path, checksum(path), SUMS, digest))
            if name not in paths or machine == COMMON:
                paths[name] = path
    return paths


def collect(what, artefacts, out):
    """Copies what is published to a new folder; returns the names."""
    paths = made(artefacts)
    chosen, missing = set(), []
    for expression in WANTED[what]:
        names = {name for name in paths if re.fullmatch(expression, name)}
        chosen |= names
        if len(names) != 1:
            missing.append('%s matches %s, one file is expected' % (expression, ', '.join(sorted(names)) or 'nothing'))
    if missing:
        sys.exit('%s: %s' % (artefacts, '\n'.join(missing)))
    os.makedirs(out)
    for name in sorted(chosen):
        shutil.copyfile(paths[name], os.path.join(out, name))
    return chosen


def listed(folder):
    for name, digest in sums(folder):
        print('%10d  %s  %s' % (os.path.getsize(os.path.join(folder, name)), digest, name))


def main(*words):
    match words:
        case ['sums', folder]:
            listed(folder)
        case ['pack', folder, out]:
            pack(folder, out)
        case ['pypi', artefacts, out]:
            collect('pypi', artefacts, out)
            print('\n'.join(sorted(os.listdir(out))))
        case ['page', artefacts, out]:
            collect('page', artefacts, out)
            # the text of the page is no file to take from it
            os.rename(os.path.join(out, 'notes.md'), out.rstrip('/') + '.md')
            listed(out)
        case _:
            sys.exit(__doc__.strip())


if __name__ == '__main__':
    main(*sys.argv[1:])
