"""`python -m looped COMMAND`: the command line where its script is not on the PATH."""

import sys

from looped.cli import main

if __name__ == "__main__":
    sys.exit(main())
