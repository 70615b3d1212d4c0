"""``python -m nbseed``: the same as the command ``nbseed``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
