"""The command line: `h5bridge` and `python -m h5bridge`."""

import signal
import sys


def main() -> None:
    """Runs the command line of this process and ends it with its exit code."""
    # SIGINT belongs to the command line: Python's own handler would be called, too, and raise KeyboardInterrupt
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ._native import main as run

    sys.exit(run(["h5bridge", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
