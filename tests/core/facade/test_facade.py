"""The package's face: its names, and that nothing takes their place."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tensorplug as tp

SHADOWS = """
import importlib, json, pkgutil, types
import tensorplug as tp

public = {name: getattr(tp, name) for name in tp.__all__}
for info in pkgutil.walk_packages(tp.__path__, "tensorplug."):
    importlib.import_module(info.name)
print(json.dumps({
    "changed": [name for name, value in public.items() if getattr(tp, name) is not value],
    "modules": sorted(n for n, v in public.items() if isinstance(v, types.ModuleType)),
}))
"""

EARLY = """
import json, sys
import tensorplug
print(json.dumps([name for name in sys.modules if name.startswith("tensorplug")]))
"""


def run(code: str):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_no_module_takes_the_place_of_a_public_name():
    """A module sets its name in the package when it is imported, which may be late."""
    named = "algorithms einops errors fft image linalg losses nn plugin ragged random signal"
    submodules = [*named.split(), "sparse", "special", "strings", "testing", "train"]
    assert run(SHADOWS) == {"changed": [], "modules": submodules}


def test_what_few_programs_need_is_loaded_late():
    loaded = set(run(EARLY))
    assert "tensorplug.dispatch.tensor" in loaded
    late = {
        "engine.engine",
        "tensors.files",
        "observers.profiler",
        "autodiff.derivatives",
    }
    assert not loaded & {"tensorplug_train", *(f"tensorplug.{name}" for name in late)}


MODULES = (
    *("fft", "image", "linalg", "losses", "nn", "ragged"),
    *("random", "signal", "sparse", "special", "strings", "train"),
)


@pytest.mark.parametrize("name", MODULES)
def test_completion_in_a_module_offers_its_public_names(name):
    module = getattr(tp, name)
    assert dir(module) == sorted(module.__all__)
    assert not {"annotations", "ops", "TYPE_CHECKING"} & set(dir(module))


def test_every_public_name_is_listed_and_is_there():
    assert set(tp.__all__) <= set(dir(tp))
    assert len(tp.__all__) == len(set(tp.__all__))
    for name in tp.__all__:
        assert getattr(tp, name) is getattr(tp, name)
