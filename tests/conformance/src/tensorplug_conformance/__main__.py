"""``python -m tensorplug_conformance``."""

from __future__ import annotations

import sys

from tensorplug_conformance.cli import main

sys.exit(main())
