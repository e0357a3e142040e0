"""The generated stub says what the chained ops say now."""

from __future__ import annotations

import inspect

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
