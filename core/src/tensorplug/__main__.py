"""``python -m tensorplug``."""

from __future__ import annotations

import sys

from tensorplug.command_line.running import run

if __name__ == "__main__":
    sys.exit(run())
