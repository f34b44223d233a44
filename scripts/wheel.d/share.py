"""share.py WHEEL DIR: the manual and the completions of the command in WHEEL, to DIR/share, where systems look for them."""
import os
import subprocess
import sys
import tempfile
import zipfile

FOLDERS = {
    'man': 'man/man1',
    'bash': 'bash-completion/completions',
    'zsh': 'zsh/site-functions',
    'fish': 'fish/vendor_completions.d',
}
RUN = 'import sys; from h5bridge._native import main; sys.exit(main(["h5bridge", *sys.argv[1:]]))'


def main(wheel, directory):
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        for what, target in FOLDERS.items():
            subprocess.run([sys.executable, '-c', RUN, 'generate', what, os.path.join(directory, 'share', target)],
                           check=True, cwd=folder, stdout=subprocess.DEVNULL)


if __name__ == '__main__':
    main(*sys.argv[1:])
