"""The pip commands in messages: for an index, and for a checkout if tensorplug came from one."""

from __future__ import annotations

import json
import tomllib

import pytest

from tensorplug.engine.settings import Settings
from tensorplug.errors import BackendNotInstalledError
from tensorplug.plugins.metadata import BACKENDS
from tensorplug.plugins.selection import Selection
from tensorplug.system import distributions as distributions_of_ours
from tensorplug.system.distributions import FOLDERS, pip_install

EDITABLE = json.dumps({"url": "file:///home/me/tensorplug/core", "dir_info": {"editable": True}})
FOLDER = json.dumps({"url": "file:///home/me/tensorplug/core", "dir_info": {}})
WHEEL = json.dumps({"url": "file:///home/me/tensorplug.whl", "archive_info": {}})
REPOSITORY = json.dumps({"url": "https://example.org/tensorplug", "vcs_info": {"vcs": "git"}})
BROKEN = ("{", "[]", "null", "3", json.dumps({"dir_info": {}}))


@pytest.mark.parametrize("origin", [EDITABLE, FOLDER])
@pytest.mark.parametrize(
    ("requirements", "options", "index", "checkout"),
    [
        (["tensorplug-cpu"], "", "tensorplug-cpu", "./backends/loops ./backends/cpu"),
        (
            ["tensorplug-opencl[cpu]"],
            "",
            '"tensorplug-opencl[cpu]"',
            './backends/loops "./backends/gpu_opencl[cpu]"',
        ),
        (
            ["tensorplug", "tensorplug-onnx"],
            "--upgrade",
            "--upgrade tensorplug tensorplug-onnx",
            "--upgrade ./core ./extensions/onnx",
        ),
        # A checkout has neither of these.
        (["tensorplug", "acme"], "--upgrade", "--upgrade tensorplug acme", ""),
        (["tensorplug>=2"], "", '"tensorplug>=2"', ""),
    ],
)
def test_a_core_from_a_folder(requirements, options, index, checkout, origin, core_from):
    core_from(origin)
    more = f", or from a checkout: pip install {checkout}" if checkout else ""
    assert pip_install(*requirements, options=options) == f"pip install {index}{more}"


@pytest.mark.parametrize("origin", [None, WHEEL, REPOSITORY, *BROKEN])
def test_a_core_from_elsewhere(origin, core_from):
    core_from(origin)
    assert pip_install("tensorplug-cpu") == "pip install tensorplug-cpu"


def test_the_error_has_both_commands(core_from, monkeypatch):
    core_from(EDITABLE)
    monkeypatch.setattr(distributions_of_ours, "find_spec", lambda _: None)
    with pytest.raises(BackendNotInstalledError) as caught:
        Selection((), Settings()).pick(BACKENDS, "cpu")
    assert str(caught.value) == (
        "backend 'cpu' is not installed. Try: pip install tensorplug-cpu, or from a checkout: "
        "pip install ./backends/loops ./backends/cpu. Installed: none"
    )


def test_the_folders_are_those_of_the_distributions(distributions):
    for name, folder in FOLDERS.items():
        project = tomllib.loads((distributions[name] / "pyproject.toml").read_text("utf-8"))
        assert project["project"]["name"] == name
        assert distributions[name].as_posix().endswith(f"/{folder}")
