"""The generated stubs say what the package, its public modules and the Tensor have now."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.dispatch import tensor
from tensorplug.testing.stubs import stubs

TEXTS = stubs()
METHODS = TEXTS[Path(tensor.__file__).with_suffix(".pyi")]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_the_stubs_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == TEXTS[path], (
        "run python -m tensorplug.testing.stubs"
    )


def test_every_stub_is_written_anew() -> None:
    assert set(Path(tp.__file__).parent.rglob("*.pyi")) == set(TEXTS)


def test_the_methods_that_the_stub_declares_are_there() -> None:
    lines = [line for line in METHODS.splitlines() if line.startswith("    def ")]
    declared = {line.split("def ")[1].split("(")[0] for line in lines}
    assert {"squared_difference", "sum", "conv2d", "topk", "__add__", "__setitem__"} <= declared
    assert [name for name in declared if not hasattr(tp.Tensor, name)] == []


def test_every_public_name_is_declared() -> None:
    text = TEXTS[Path(tp.__file__).with_suffix(".pyi")]
    declared = [
        line.split()[-1] for line in text.splitlines() if line.startswith(("from ", "import "))
    ]
    constants = [line.split(":")[0] for line in text.splitlines() if ": " in line]
    assert set(tp.__all__) <= {*declared, *constants}


@pytest.mark.parametrize(
    "line",
    [
        "def add(self, b: ArrayLike, /) -> Tensor:",
        "def max(self, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:",
        "def __add__(self, other: Operand) -> Tensor:",
        "def __getitem__(self, key: Index) -> Tensor:",
        "@overload\n    def permute_dims(self, /, axes: Axis | None = None) -> Tensor:",
        "@overload\n    def permute_dims(self, /, *axes: SupportsIndex) -> Tensor:",
        "@overload\n    def broadcast_to(self, /, *shape: SupportsIndex) -> Tensor:",
    ],
)
def test_the_stub_has_the_methods_own_forms(line: str) -> None:
    assert f"    {line}" in METHODS


def test_the_stub_has_the_summaries_that_editors_show() -> None:
    summary = inspect.getdoc(tp.sum).partition("\n")[0]
    assert METHODS.split("def sum(self, /")[1].splitlines()[1] == f'        """{summary}"""'
