"""The generated stub says what the chained ops say now."""

from __future__ import annotations

import inspect

import pytest

import tensorplug as tp
from tensorplug.testing import method_stub


def test_the_stub_is_up_to_date() -> None:
    hint = "run python -m tensorplug.testing.method_stub"
    assert method_stub.path().read_text() == method_stub.stub(), hint


def test_what_the_stub_declares_is_there() -> None:
    declared = {
        line.split("def ")[1].split("(")[0]
        for line in method_stub.stub().splitlines()
        if line.startswith("    def ")
    }
    assert {"squared_difference", "sum", "conv2d", "topk"} <= declared
    missing = [name for name in declared if not inspect.isfunction(getattr(tp.Tensor, name, None))]
    assert missing == []


@pytest.mark.parametrize(
    "line",
    [
        "def add(self, b: Any, /) -> Tensor: ...",
        "def max(self, /, axis: Any = ..., *, keepdims: bool = ...) -> Tensor: ...",
        "def take(self, indices: Any, /, axis: int | None = ...) -> Tensor: ...",
        "@overload\n    def permute_dims(self, /, axes: Any = ...) -> Tensor: ...",
        "@overload\n    def permute_dims(self, /, *axes: int) -> Tensor: ...",
        "@overload\n    def reshape(self, /, *shape: int, copy: bool | None = ...) -> Tensor: ...",
    ],
)
def test_the_stub_has_the_methods_own_forms(line: str) -> None:
    assert f"    {line}\n" in method_stub.stub()
