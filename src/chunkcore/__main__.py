"""``python -m chunkcore`` is the command ``chunkcore``."""

import sys

from chunkcore.cli import main

if __name__ == "__main__":
    sys.exit(main())
