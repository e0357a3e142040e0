#!/usr/bin/env python3
"""Makes a release: the version everywhere, the changelog, sdists and wheels, a commit and a tag.

All distributions of the repository share one version, that of ``core/pyproject.toml``.
docs/releasing.md describes a release from beginning to end; this script does the steps that need
no decision. It pushes nothing and uploads nothing.

Usage::

    python .ci/release.py --check           # versions agree; build everything, let twine check it
    python .ci/release.py --version 0.2.0   # the same, with the new version, a commit and a tag
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
UNRELEASED: Final = "## Unreleased\n"
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_BOUNDS: Final = re.compile(r"(tensorplug[\w-]*(?:\[\w+\])?>=)\d+\.\d+,<\d+\.\d+")


class ReleaseError(Exception):
    """A release cannot be made from this tree."""


def projects(root: Path) -> list[Path]:
    """Return the ``pyproject.toml`` of each distribution, the core's first."""
    places = ("core", "backends/*", "tests/conformance", "plugins_example/*", "extensions/*")
    return [path for place in places for path in sorted(root.glob(f"{place}/pyproject.toml"))]


def versioned(root: Path) -> dict[Path, re.Pattern[str]]:
    """Return the files that state the version, each with a pattern whose group 1 it is."""
    line = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
    return dict.fromkeys(projects(root), line) | {
        root / "core/src/tensorplug/__init__.py": re.compile(
            r'^__version__ = "([^"]+)"$', re.MULTILINE
        ),
        root / "CITATION.cff": re.compile(r"^version: (\S+)$", re.MULTILINE),
    }


def bounded(root: Path) -> list[Path]:
    """Return the files that say which versions of the distributions go together."""
    templates = root.glob("core/src/tensorplug/command_line/templates/*/pyproject.toml")
    return [*projects(root), *sorted(templates)]


def current_version(root: Path) -> str:
    """Return the version of the distributions.

    Raises:
        ReleaseError: they disagree, or a file does not state one version.

    """
    found = {}
    for path, pattern in versioned(root).items():
        versions = pattern.findall(path.read_text("utf-8"))
        if len(versions) != 1:
            raise ReleaseError(f"{path.relative_to(root)} states {len(versions)} versions")
        found[path] = versions[0]
    wanted = found[projects(root)[0]]
    odd = [f"{path.relative_to(root)}: {is_}" for path, is_ in found.items() if is_ != wanted]
    if odd:
        raise ReleaseError(f"the core is {wanted}, but {'; '.join(odd)}")
    return str(wanted)


def set_version(root: Path, version: str, date: dt.date) -> None:
    """Write a version into all files that state it, and into the changelog.

    Raises:
        ReleaseError: the version is malformed or was released before; or the changelog lists no
            unreleased changes.

    """
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version such as 1.2.3 or 1.2.3rc1")
    current_version(root)
    changelog = root / "CHANGELOG.md"
    before, found, after = changelog.read_text("utf-8").partition(UNRELEASED)
    if f"\n## {version} - " in after:
        raise ReleaseError(f"CHANGELOG.md has a release {version} already")
    if not found or after.lstrip().startswith("## "):
        raise ReleaseError("CHANGELOG.md has nothing under Unreleased")
    changelog.write_text(f"{before}{UNRELEASED}\n## {version} - {date}\n{after}", "utf-8")
    for path, pattern in versioned(root).items():
        text = path.read_text("utf-8")
        start, end = next(pattern.finditer(text)).span(1)
        path.write_text(f"{text[:start]}{version}{text[end:]}", "utf-8")
    citation = root / "CITATION.cff"
    dated = re.sub(
        r"(?m)^date-released: .*$", f"date-released: {date}", citation.read_text("utf-8")
    )
    citation.write_text(dated, "utf-8")
    major, minor = version.split(".")[:2]
    for path in bounded(root):
        limits = rf"\g<1>{major}.{minor},<{major}.{int(minor) + 1}"
        path.write_text(_BOUNDS.sub(limits, path.read_text("utf-8")), "utf-8")


def build(root: Path, out: Path) -> list[Path]:
    """Build an sdist of each distribution, and its wheel from that; let twine check them."""
    shutil.rmtree(out, ignore_errors=True)
    for project in projects(root):
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, project.parent)
    built = sorted(out.iterdir())
    _run(sys.executable, "-m", "twine", "check", "--strict", *built)
    return built


def commit(root: Path, version: str) -> None:
    """Commit what ``set_version`` wrote, and tag it."""
    _run("git", "-C", root, "commit", "--quiet", "--all", "--message", f"Release {version}")
    _run(
        "git", "-C", root, "tag", "--annotate", f"v{version}", "--message", f"tensorplug {version}"
    )


def _run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True)


def main() -> int:
    """Make a release, or check that one can be made."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--check", action="store_true", help="build and check; change nothing")
    wanted.add_argument("--version", help="the version to release")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "dist", help="for the builds")
    given = parser.parse_args()
    try:
        if given.version:
            changed = subprocess.check_output(
                ["git", "-C", ROOT, "status", "--porcelain"], text=True
            )
            if changed:
                raise ReleaseError(f"commit these first:\n{changed}")
            set_version(ROOT, given.version, dt.datetime.now(dt.UTC).date())
        version = current_version(ROOT)
        build(ROOT, given.out)
        if given.version:
            commit(ROOT, version)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{version} is in {given.out}" + (f", and tagged v{version}" if given.version else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
