"""Programs that are packed: the core has no metadata there, and perhaps no backend has."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

import tensorplug

# The environment of the tests has metadata of all; it is hidden.
PROGRAM = """
import json, sys
import importlib_metadata
hidden = sys.argv[1:]
found, one_found = importlib_metadata.distributions, importlib_metadata.distribution
def distributions(**context):
    return [one for one in found(**context) if one.metadata["Name"] not in hidden]
def distribution(name):
    if name in hidden:
        raise importlib_metadata.PackageNotFoundError(name)
    return one_found(name)
importlib_metadata.distributions = distributions
importlib_metadata.distribution = sys.modules["importlib_metadata"].distribution = distribution

import tensorplug as tp
answer = [tp.__file__]
try:
    x = tp.asarray([1.0, 2.0])
    answer += [(x + x).numpy().tolist(), tp.get_backend()]
except tp.errors.BackendNotInstalledError as error:
    answer += [str(error)]
print(json.dumps(answer))
"""
MISSING = (
    "no backend is installed. The package tensorplug_cpu is here, but its metadata "
    "(tensorplug_cpu-*.dist-info), which names the plugin, is not: a program that is packed, for "
    "instance by zipapp or PyInstaller (--copy-metadata), must contain both"
)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zipapp of the program and the core, as ``python -m zipapp`` makes it."""
    folder = tmp_path_factory.mktemp("packed")
    shutil.copytree(Path(tensorplug.__file__).parent, folder / "app" / "tensorplug")
    (folder / "app" / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    zipapp.create_archive(folder / "app", folder / "app.pyz")
    return folder / "app.pyz"


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        (["tensorplug"], [[2.0, 4.0], "cpu"]),
        (["tensorplug", "tensorplug-cpu"], [MISSING]),
    ],
)
def test_a_zipapp(hidden, expected, archive, distributions):
    others = set(distributions) - {"tensorplug", "tensorplug-cpu"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(archive), *hidden, *others],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    origin, *answer = json.loads(done.stdout)
    assert origin.startswith(str(archive))
    assert answer == expected
