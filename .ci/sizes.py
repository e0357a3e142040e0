"""Compare the sizes of folders and modules with the limits in pyproject.toml.

``[tool.tensorplug.lines]`` has the most lines of Python that may lie in a folder. Other limits are
the same everywhere: lines in a module, and modules side by side in a folder.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES = 400
MOST_MODULES = 40


def excess() -> list[str]:
    """Return a line for each limit that is exceeded."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        limits = tomllib.load(file)["tool"]["tensorplug"]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    paths = [Path(name) for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    lines = {path: (ROOT / path).read_bytes().count(b"\n") for path in paths}
    beside = Counter(path.parent for path in paths)
    result = []
    for folder, most in limits["lines"].items():
        size = sum(count for path, count in lines.items() if path.is_relative_to(folder))
        if size > most:
            result.append(f"{folder}: {size:,} lines of Python, at most {most:,}")
    for path, count in lines.items():
        if count > limits["larger"].get(str(path), MOST_LINES):
            result.append(
                f"{path}: {count} lines, at most {MOST_LINES} are allowed: split it by subject"
            )
    for folder, count in beside.items():
        if count > MOST_MODULES:
            result.append(
                f"{folder}: {count} modules, at most {MOST_MODULES} are allowed side by side"
            )
    return result


if __name__ == "__main__":
    problems = excess()
    print(*(problems or ["Sizes: all folders and modules are within their limits."]), sep="\n")
    sys.exit(bool(problems))
