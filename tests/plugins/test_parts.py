"""Public names that extensions of the project bring, with and without these extensions."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tensorplug as tp
from tensorplug.plugins import metadata, parts
from tensorplug.system.distributions import EXTENSIONS, FOLDERS

EDITABLE = json.dumps({"url": "file:///home/me/tensorplug/core", "dir_info": {"editable": True}})

LEFT_OUT = """
import json
import tensorplug as tp
from tensorplug import *
names = json.loads({names!r})
print(json.dumps([sorted(set(names) & {{*tp.__all__, *dir(tp)}}),
                  [name for name in names if hasattr(tp, name)], float(tp.sum(asarray([1.0])))]))
try:
    asarray([1.0]).nanmean()
except AttributeError as error:
    print(error)
"""


def extension(name):
    return EXTENSIONS[name].partition(":")[0].partition(".")[0].removeprefix("tensorplug_")


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_installed_extension_is_found(name):
    result = parts.find(name)
    part, dot, last = name.rpartition(".")
    owner = getattr(tp, part) if part else tp
    assert last in parts.installed(part + dot)
    assert last in dir(owner)
    assert getattr(owner, last).__doc__ == result.__doc__


@pytest.mark.parametrize("name", EXTENSIONS)
def test_without_it_the_error_says_what_to_install(name, core_from, monkeypatch):
    core_from(EDITABLE)
    monkeypatch.setattr(metadata, "candidates", lambda: ())
    distribution = f"tensorplug-{extension(name)}"
    assert parts.installed() == []
    with pytest.raises(AttributeError) as caught:
        parts.find(name)
    assert str(caught.value) == (
        f"tensorplug.{name} is in the distribution {distribution}, which is not installed. Try: "
        f"pip install {distribution}, or from a checkout: pip install ./{FOLDERS[distribution]}"
    )


def test_a_disabled_extension_is_left_out():
    names = [name for name in EXTENSIONS if "." not in name]
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OUT.format(names=json.dumps(names))],
        capture_output=True,
        text=True,
        check=True,
        env={"TENSORPLUG_DISABLE_PLUGINS": ",".join({extension(name) for name in names})},
    )
    first, hint = done.stdout.splitlines()
    assert json.loads(first) == [[], [], 1.0]
    assert hint == "'Tensor' object has no attribute 'nanmean'; write tensorplug.nanmean(x)"


def test_a_disabled_extension_says_so(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_DISABLE_PLUGINS", "train")
    with pytest.raises(AttributeError, match="TENSORPLUG_DISABLE_PLUGINS=train disables it"):
        parts.find("train")


def test_a_generator_says_what_to_install_for_a_draw(monkeypatch):
    monkeypatch.setattr(metadata, "candidates", lambda: ())
    monkeypatch.delattr(tp.random.Generator, "laplace", raising=False)  # of an earlier use
    with pytest.raises(
        AttributeError, match=r"random\.laplace is in .* tensorplug-science, which"
    ):
        tp.random.Generator(0).laplace()


def test_a_misspelt_name_of_an_extension_has_a_hint():
    with pytest.raises(AttributeError, match=r"'tensorplug.train' has .* did you mean .*\.adamw"):
        tp.train.adamm  # noqa: B018  # what is tried
