"""tensorplug's own distributions, which messages may tell users to install."""

from __future__ import annotations

from typing import Final

__all__ = ["INSTALL"]

# By backend, what installs it with all that it needs to run on any machine.
INSTALL: Final = {
    "cpu": "pip install tensorplug-cpu",
    "opencl": 'pip install "tensorplug-opencl[cpu]"',
}
