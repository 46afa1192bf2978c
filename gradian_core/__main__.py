"""``python -m gradian_core`` is ``gradian``."""

import sys

from gradian_core.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
