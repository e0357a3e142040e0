"""What a release needs: one version, metadata for an index, and builds that pass its checks."""

from __future__ import annotations

import datetime as dt
import importlib.util
import re
import shutil
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)

PROJECTS = release.projects(ROOT)
CHANGES = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.0.9 - 2026-01-01\n\n- old\n"
TODAY = dt.date(2027, 1, 31)
PYTHONS = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOREIGN = {
    "https://www.dask.org",
    "https://www.w3.org/TR/WGSL/#floating-point-evaluation",
}
"""Pages of others that a README may lead to; those of an index are not among them."""


@pytest.fixture
def tree(tmp_path):
    """A copy of all files that a release writes."""
    for path in {*release.versioned(ROOT), *release.bounded(ROOT), ROOT / "CHANGELOG.md"}:
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES, "utf-8")
    return tmp_path


def about(path):
    return tomllib.loads(path.read_text("utf-8"))["project"]


def test_all_distributions_have_one_version():
    assert len(PROJECTS) == 16
    version = release.current_version(ROOT)
    assert {about(path)["version"] for path in PROJECTS} == {version}


def test_a_release_writes_the_version_everywhere(tree):
    release.set_version(tree, "1.7.2", TODAY)
    assert release.current_version(tree) == "1.7.2"
    for path in release.bounded(tree):
        text = path.read_text("utf-8")
        bounds = set(re.findall(r"tensorplug[\w-]*(?:\[\w+\])?(>=[^\"]+)\"", text))
        assert bounds <= {">=1.7,<1.8"}, path
    changelog = (tree / "CHANGELOG.md").read_text("utf-8")
    assert changelog == CHANGES.replace("- new", "## 1.7.2 - 2027-01-31\n\n- new")
    assert "date-released: 2027-01-31\n" in (tree / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.2", "'1.2' is not a version such as 1.2.3 or 1.2.3rc1"),
        ("0.0.9", "has a release 0.0.9 already"),
    ],
)
def test_a_version_that_is_refused(tree, version, message):
    with pytest.raises(release.ReleaseError, match=message):
        release.set_version(tree, version, TODAY)


def test_a_release_needs_something_new(tree):
    (tree / "CHANGELOG.md").write_text("## Unreleased\n\n## 0.1.0 - 2026-11-24\n", "utf-8")
    with pytest.raises(release.ReleaseError, match="nothing under Unreleased"):
        release.set_version(tree, "1.0.0", TODAY)


def test_versions_that_disagree_are_named(tree):
    project = tree / "backends" / "cpu" / "pyproject.toml"
    project.write_text(
        re.sub(r'(?m)^version = ".*"', 'version = "9.9.9"', project.read_text("utf-8"))
    )
    with pytest.raises(release.ReleaseError, match=r"backends/cpu/pyproject\.toml: 9\.9\.9"):
        release.current_version(tree)


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_metadata(path):
    project = about(path)
    assert project["requires-python"] == ">=3.11"
    assert set(project["classifiers"]) >= PYTHONS
    assert set(project["urls"]) == {"Documentation", "Repository", "Issues", "Changelog"}
    assert (path.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_links_of_a_readme_work_on_an_index(path):
    """An index shows the text alone, so links are absolute; those to our files lead to such."""
    urls = about(PROJECTS[0])["urls"]
    for link in LINK.findall((path.parent / "README.md").read_text("utf-8")):
        ours = (urls["Documentation"], f"{urls['Repository']}/", "#")
        assert link.startswith(ours) or link in FOREIGN, link
        inside = re.fullmatch(
            rf"{re.escape(urls['Repository'])}/(?:blob|tree|raw)/main/([^#]*).*", link
        )
        if inside:
            assert (ROOT / inside[1]).exists(), link
        page = re.fullmatch(rf"{re.escape(urls['Documentation'])}(.+)\.html.*", link)
        if page:
            assert (ROOT / "docs" / f"{page[1]}.md").exists(), link


@pytest.mark.packaging
@pytest.mark.timeout(600)
def test_everything_is_built_and_checked(built):
    sdists = [path for path in built if path.name.endswith(".tar.gz")]
    assert (len(sdists), len(built)) == (len(PROJECTS), 2 * len(PROJECTS))
    for path in sdists:
        with tarfile.open(path) as archive:
            files = {member.name.partition("/")[2] for member in archive}
        assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= files, path.name
