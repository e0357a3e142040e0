"""The pip commands that messages recommend, for tensorplug's own backends."""

from __future__ import annotations

from typing import Final

__all__ = ["INSTALL"]

# By backend: the command that installs it so that it runs on any machine.
INSTALL: Final = {
    "cpu": "pip install tensorplug-cpu",
    "opencl": 'pip install "tensorplug-opencl[cpu]"',
}
