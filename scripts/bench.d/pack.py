"""`pack` and `unpack` against `cp -r` of the same MeasurementSet, plain and made durable, in turn; prints medians and ratios.

Called by bench.py with --pack. What is unpacked was packed without a turn of its own.
"""
import os
import subprocess

SYNCED = ' + sync'
DURABLE = 'cp -r' + SYNCED

FORMS = {
    'multifile': ['--format', 'multifile'],
    'multihdf5': ['--format', 'multihdf5'],
    'one multifile': ['--format', 'multifile', '--single-file'],
    'one multihdf5': ['--single-file'],
}


def synced(command, written):
    """The command, and then as durable as what h5bridge has written when it ends."""
    return ['sh', '-c', 'out=$0; "$@" && find "$out" -exec sync {} +', written, *command]


def contenders(ms, out):
    """{name: (command, file or folder it writes)}"""
    h5bridge = os.environ['H5BRIDGE']
    copy = ['cp', '-r', ms, out + '.ms']
    found = {'cp -r': (copy, out + '.ms'), DURABLE: (synced(copy, out + '.ms'), out + '.ms')}
    for name, options in FORMS.items():
        packed = packed_path(out, name)
        if not os.path.exists(packed):
            subprocess.run([h5bridge, 'pack', '-q', ms, packed, *options], check=True)
        found['pack ' + name] = ([h5bridge, 'pack', '-q', ms, out + '.packed', *options], out + '.packed')
        found['unpack ' + name] = ([h5bridge, 'unpack', '-q', packed, out + '.ms'], out + '.ms')
    return found


def packed_path(out, name):
    return '%s.%s' % (out, name.replace(' ', '-'))
