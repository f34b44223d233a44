"""Completions as an interactive shell on a terminal makes them."""
import os
import pty
import re
import select
import time

# (typed before the Tab, the last word after it): a verb, an option, the value of an option, a file, a topic
COMPLETED = [
    ('to-hd', 'to-hdf5'), ('to-hdf5 my.ms my.h5 --rest', '--restorable'), ('to-hdf5 my.ms my.h5 --profile cl', 'cloud'),
    ('info observ', 'observation.h5'), ('info observation.h5 --js', '--json'), ('help environ', 'environment'),
    ('completions fi', 'fish'), ('to-hdf5 my.ms observ', 'observation.h5'),
]


def typed(words, start, line, folder):
    """What an interactive shell makes of LINE, in which Tab completes: the words that its function h5bridge is called with."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        os.environ.update(TERM='dumb', HOME=str(folder), HISTFILE='/dev/null')
        os.execvp(words[0], words)
    said = b''

    def wait_for(mark):
        nonlocal said
        until = time.time() + 30
        while mark not in said:
            assert time.time() < until, (mark, said)
            if select.select([terminal], [], [], 0.2)[0]:
                said += os.read(terminal, 65536)
    try:
        # the quotes keep the echo of the command from being taken for its output
        os.write(terminal, start.encode() + b"; h5bridge() { printf '[%s]' \"$@\"; echo '!'done; }; echo rea''dy\n")
        wait_for(b'ready')
        said = b''
        os.write(terminal, b'h5bridge %s\t\n' % line.encode())
        wait_for(b'!done')
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return re.findall(r'\[([^\[\]]*)\]', said.decode(errors='replace').split('!done')[0].splitlines()[-1])
