"""The command line: `h5bridge` and `python -m h5bridge`."""

import sys


def main() -> None:
    """Runs the command line of this process and ends it with its exit code."""
    from ._native import main as run

    sys.exit(run(["h5bridge", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
