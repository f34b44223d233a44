"""check.py FILE [--native]: what is promised of a wheel or source archive of h5bridge; says why not, or prints what it is.

Runs in the environment of scripts/wheel, for auditwheel and its reader of ELF, and for the reader of Mach-O.
"""
import argparse
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# bytes of a wheel, and of a source archive, which has the built pages of the server; docs/explanation/decisions/0007-python-package.md
LIMIT = 12_000_000
ARCHIVE_LIMIT = 3_000_000
EXPORTED = {'PyInit__native'}
LIBRARIES = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'libdl.so.2', 'librt.so.1', 'libgcc_s.so.1', 'ld-linux-x86-64.so.2',
             'ld-linux-aarch64.so.1'}
# of macOS: the C library with iconv and its character sets, and the frameworks that know its certificates
LIBRARIES_MACOS = re.compile(r'/usr/lib/lib(System\.B|iconv\.2|charset\.1|objc\.A)\.dylib'
                             r'|/System/Library/Frameworks/(CoreFoundation|Security)\.framework/\S+')
IN_WHEEL = [r'h5bridge/__init__\.py', r'h5bridge/__main__\.py', r'h5bridge/py\.typed', r'h5bridge/_native\.abi3\.so',
            r'h5bridge-\S+\.dist-info/entry_points\.txt', r'h5bridge-\S+\.dist-info/licenses/LICENSE-MIT',
            r'h5bridge-\S+\.dist-info/licenses/LICENSE-APACHE', r'h5bridge-\S+\.dist-info/licenses/THIRD-PARTY\.txt',
            r'h5bridge-\S+\.data/data/share/man/man1/h5bridge\.1', r'h5bridge-\S+\.data/data/share/man/man1/h5bridge-to-hdf5\.1',
            r'h5bridge-\S+\.data/data/share/bash-completion/completions/h5bridge',
            r'h5bridge-\S+\.data/data/share/zsh/site-functions/_h5bridge',
            r'h5bridge-\S+\.data/data/share/fish/vendor_completions\.d/h5bridge\.fish']
IN_ARCHIVE = [r'python/h5bridge/__init__\.py', r'python/src/lib\.rs', r'src/lib\.rs', r'h5bridge/src/main\.rs', r'Cargo\.lock', r'PKG-INFO',
              r'h5bridge/page/dist/index\.html\.gz']
NOT_WANTED = re.compile(r'(^|/)(testdata|target|\.git|\.venv|__pycache__|corpus)(/|$)|\.(pyc|h5|ms|whl)$')


def exports_and_libraries(data):
    """The functions and data that an ELF library shows to others, and the libraries that it needs."""
    from elftools.elf.elffile import ELFFile
    elf = ELFFile(io.BytesIO(data))
    names = {symbol.name for symbol in elf.get_section_by_name('.dynsym').iter_symbols()
             if symbol['st_shndx'] != 'SHN_UNDEF' and symbol.name}
    return names, {tag.needed for tag in elf.get_section_by_name('.dynamic').iter_tags('DT_NEEDED')}


def exports_and_libraries_macos(path):
    """The same of a Mach-O program or library, without those libraries that every macOS has."""
    from macholib.MachO import MachO
    from macholib.SymbolTable import SymbolTable
    library = MachO(path)
    names = {name.decode().removeprefix('_') for _, name in SymbolTable(library).extdefsyms if name}
    needed = {loaded for header in library.headers for _, _, loaded in header.walkRelocatables()}
    return names, {loaded for loaded in needed if not LIBRARIES_MACOS.fullmatch(loaded)}


def wheel(path, is_native):
    """What is wrong with a wheel."""
    name = os.path.basename(path)
    is_macos = '-macosx_' in name
    tag = 'macosx_11_0' if is_macos else 'linux' if is_native else 'manylinux_2_17'
    if not re.fullmatch(r'h5bridge-\S+-cp311-abi3-(?:\S+\.)?%s_\S+\.whl' % tag, name):
        yield 'its name is not that of a wheel for cp311-abi3-%s' % tag
    if os.path.getsize(path) >= LIMIT:
        yield '%d bytes; less than %d are allowed' % (os.path.getsize(path), LIMIT)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        yield from missing(names, IN_WHEEL, 'wheel')
        extensions = [found for found in names if '.so' in found]
        if len(extensions) != 1:
            yield 'libraries: %s; one is wanted' % extensions
            return
        if is_macos:
            with tempfile.TemporaryDirectory() as folder:
                shown, needed = exports_and_libraries_macos(archive.extract(extensions[0], folder))
        else:
            shown, needed = exports_and_libraries(archive.read(extensions[0]))
    if shown != EXPORTED:
        yield 'the extension exports %s' % sorted(shown)
    if needed - LIBRARIES:
        yield 'the extension needs %s' % sorted(needed - LIBRARIES)
    if not is_native and not is_macos:
        shown = subprocess.run([sys.executable, '-m', 'auditwheel', 'show', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, check=False).stdout
        if 'manylinux_2_17' not in shown.replace('\n', ' '):
            yield 'auditwheel says: ' + shown
        print(' '.join(shown.split()))


def source_archive(path):
    """What is wrong with a source archive."""
    if os.path.getsize(path) >= ARCHIVE_LIMIT:
        yield '%d bytes; less than %d are allowed' % (os.path.getsize(path), ARCHIVE_LIMIT)
    with tarfile.open(path) as archive:
        names = [found.partition('/')[2] for found in archive.getnames()]
    yield from missing(names, IN_ARCHIVE, 'archive')


def missing(names, wanted, what):
    for expression in wanted:
        if not any(re.fullmatch(expression, name) for name in names):
            yield 'the %s has no %s' % (what, expression)
    for name in names:
        if NOT_WANTED.search(name):
            yield 'the %s has %s' % (what, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('file')
    parser.add_argument('--native', action='store_true', help='built for the libc of this machine')
    arguments = parser.parse_args()
    faults = list(source_archive(arguments.file) if arguments.file.endswith('.tar.gz') else wheel(arguments.file, arguments.native))
    print('%s: %d bytes' % (arguments.file, os.path.getsize(arguments.file)))
    for fault in faults:
        print('%s: %s' % (os.path.basename(arguments.file), fault), file=sys.stderr)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
