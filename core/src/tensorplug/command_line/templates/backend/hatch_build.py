"""Marks a wheel that holds compiled code with the platform that it is for."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = {".so", ".dylib", ".dll", ".pyd"}


class TaggedByPlatform(BuildHookInterface[Any]):
    """A library of C is for any Python (ctypes loads it), but for one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the platform if there is a library in the sources."""
        if any(path.suffix in LIBRARIES for path in Path(self.root, "src").rglob("*")):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
