"""`python -m hushuffle` is the program `hushuffle`."""

import sys

from hushuffle.cli import main

if __name__ == "__main__":
    sys.exit(main())
