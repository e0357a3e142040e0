"""Writes the stubs, and adds the sources of two examples for ``python -m tensorplug new``."""  # noqa: INP001  # a script

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TEMPLATES: Final = "tensorplug/command_line/templates"
EXAMPLES: Final = {"backend": "minimal_backend", "extension": "op_package"}


class GeneratedFiles(BuildHookInterface[Any]):
    """Completes the sources: wheel, sdist and editable install have files that are not in git."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs; name the folders of the examples to copy, and where to."""
        root = Path(self.root)
        _write_stubs(root / "src", root.parent / "extensions")
        if version == "editable":
            return  # then `new` reads the examples from the repository
        target = TEMPLATES if self.target_name == "wheel" else f"src/{TEMPLATES}"
        for kind, example in EXAMPLES.items():
            if (root / "src" / TEMPLATES / kind / "src").is_dir():
                continue
            sources = root.parent / "plugins_example" / example / "src"
            if not sources.is_dir():
                raise FileNotFoundError(f"the sources of a template are missing: {sources}")
            build_data["force_include"][str(sources)] = f"{target}/{kind}/src"


def _write_stubs(source: Path, extensions: Path) -> None:
    """Write them by the package itself, in a process that imports it from its source.

    They declare what the extensions of the repository bring, so they are written where these are.
    An sdist already has them.
    """
    if not extensions.is_dir() and (source / "tensorplug" / "__init__.pyi").is_file():
        return
    sources = [str(source), *map(str, sorted(extensions.glob("*/src")))]
    # Not by PYTHONPATH: an isolated build drops from it what is an editable install already.
    script = f"import sys; sys.path[:0] = {sources!r}; from tensorplug.testing import stubs; "
    script += f"from pathlib import Path; stubs.write(Path({str(source / 'tensorplug')!r}))"
    environment = {**os.environ, "TENSORPLUG_AUTOLOAD": "0"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)  # noqa: S603
