"""The stubs say what the package, its public modules and the Tensor have now."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.dispatch import tensor
from tensorplug.testing.stubs import stubs, write

TEXTS = stubs()
METHODS = TEXTS["dispatch/tensor.pyi"]


def test_the_package_has_stubs_beside_it() -> None:
    assert Path(tensor.__file__).with_suffix(".pyi").is_file(), (
        "run python -m tensorplug.testing.stubs"
    )


def test_a_package_gets_the_stubs_of_now_alone(tmp_path: Path) -> None:
    (tmp_path / "nn.pyi").write_text("def gone() -> None: ...\n")
    (tmp_path / "moved.pyi").touch()
    write(tmp_path)
    paths = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.pyi")}
    assert {name: path.read_text("utf-8") for name, path in paths.items()} == TEXTS


def test_the_methods_that_the_stub_declares_are_there() -> None:
    tp.asarray(0)  # the first engine attaches those of extensions
    lines = [line for line in METHODS.splitlines() if line.startswith("    def ")]
    declared = {line.split("def ")[1].split("(")[0] for line in lines}
    assert {"squared_difference", "sum", "conv2d", "topk", "__add__", "__setitem__"} <= declared
    assert [name for name in declared if not hasattr(tp.Tensor, name)] == []


def test_every_public_name_is_declared() -> None:
    text = TEXTS["__init__.pyi"]
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
