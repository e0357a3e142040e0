"""``python -m tensorplug``."""

from __future__ import annotations

import sys

from tensorplug.command_line.commands import main

if __name__ == "__main__":
    sys.exit(main())
