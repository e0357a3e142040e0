"""The sources of two examples are those that ``python -m tensorplug new`` writes, by other names.

``python -m tests.plugins.example_sources`` writes them again after a change of the templates.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tensorplug.command_line.new import rendered
from tensorplug.command_line.new_names import Names

EXAMPLES: Final = Path(__file__).parents[2] / "plugins_example"

# The folder of an example, the kind of template it comes from, and its names.
DERIVED: Final = {
    "minimal_backend": (
        "backend",
        Names("minimal", "tensorplug-example-minimal", "tensorplug_example_minimal"),
    ),
    "op_package": (
        "extension",
        Names("swish", "tensorplug-example-swish", "tensorplug_example_swish"),
    ),
}


def sources(folder):
    """Return the files below an example's ``src`` as they must be, by path."""
    texts = rendered(*DERIVED[folder], "The tensorplug developers")
    return {
        EXAMPLES / folder / path: _sorted(text, EXAMPLES / folder / path)
        for path, text in texts.items()
        if path.startswith("src/")
    }


def _sorted(text, path):
    """Sort imports as this repository does, where all of its packages are first parties."""
    if path.suffix != ".py":
        return text
    command = [sys.executable, "-m", "ruff", "check", "--select", "I", "--fix", "--quiet"]
    return subprocess.run(
        [*command, "--stdin-filename", str(path), "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    for item in DERIVED:
        for path, text in sources(item).items():
            path.write_text(text, "utf-8")
