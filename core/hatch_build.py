"""Adds the sources of two examples to wheel and sdist, for ``python -m tensorplug new``."""  # noqa: INP001  # a script

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TEMPLATES: Final = "tensorplug/command_line/templates"
EXAMPLES: Final = {"backend": "minimal_backend", "extension": "op_package"}


class TemplateSources(BuildHookInterface[Any]):
    """Adds ``plugins_example/*/src`` of the repository; an sdist already has these files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folders to copy, and where to."""
        if version == "editable":
            return  # then `new` reads them from the repository
        root = Path(self.root)
        target = TEMPLATES if self.target_name == "wheel" else f"src/{TEMPLATES}"
        for kind, example in EXAMPLES.items():
            if (root / "src" / TEMPLATES / kind / "src").is_dir():
                continue
            sources = root.parent / "plugins_example" / example / "src"
            if not sources.is_dir():
                raise FileNotFoundError(f"the sources of a template are missing: {sources}")
            build_data["force_include"][str(sources)] = f"{target}/{kind}/src"
