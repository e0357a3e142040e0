"""The picture of the layers shows the layers of pyproject.toml, and the ways that calls take."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from architecture import BACKENDS, PICTURE, PURPOSE, WAYS, draw, layers

import tensorplug as tp
import tensorplug_cpu

FOLDERS = {Path(tp.__file__).parent: None, Path(tensorplug_cpu.__file__).parent: BACKENDS}
X, Y = tp.asarray([1.0, 2.0]), tp.asarray([3.0, 4.0])


def squares(x):
    return tp.sum(tp.square(tp.add(x, Y)))


CALLS = {
    "add": lambda: tp.add(X, Y),
    "grad": lambda: tp.grad(squares)(X),
    "compile": lambda: tp.compile(squares)(X),
}


def layers_entered(call):
    """Return the folders of the core, and the backend, in the order of a call."""
    entered = []

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        for root, name in FOLDERS.items():
            if event == "call" and file.is_relative_to(root):
                entered.append(name or file.relative_to(root).parts[0].removesuffix(".py"))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def test_picture_shows_the_layers_of_pyproject():
    assert PICTURE.read_text("utf-8") == draw(), "run: python docs/site/architecture.py"


def test_purposes_are_those_of_layers():
    assert set(PURPOSE) <= {folder for layer in layers() for folder in layer}


def test_design_names_the_folders_in_the_order_of_the_layers():
    table = (
        (PICTURE.parents[1] / "design.md").read_text("utf-8").partition("| folder | holds |")[2]
    )
    named = re.findall(r"`(\w+)/`", "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)))
    package = Path(tp.__file__).parent
    places = {folder: at for at, layer in enumerate(layers()) for folder in layer}
    folders = {folder for folder in places if (package / folder).is_dir()}
    assert set(named) == folders
    heights = [places[folder] for folder in named if folder not in {"array_api", "testing"}]
    assert heights == sorted(heights)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.call)
def test_way_in_the_picture_is_the_way_of_the_call(way):
    entered = iter(layers_entered(CALLS[way.call]))
    assert all(station in entered for station in way.stations), "in this order"


def test_warm_add_enters_nothing_else():
    CALLS["add"]()
    assert tuple(layers_entered(CALLS["add"])) == WAYS[0].stations
