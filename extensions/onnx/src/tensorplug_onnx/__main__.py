"""``python -m tensorplug_onnx``."""

from __future__ import annotations

import sys

from tensorplug_onnx.command_line import main

if __name__ == "__main__":
    sys.exit(main())
