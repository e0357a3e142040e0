"""Groups that write into the memory of their inputs, where nothing else has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import Group, GroupInput, GroupOutput, TensorType, expressions
from tensorplug.plugin import dtypes as dt

RNG = np.random.default_rng(3)
X = RNG.standard_normal((300, 257)).astype(np.float32)


@pytest.fixture(autouse=True)
def _on_opencl() -> Any:
    with tp.use_backend("opencl"):
        yield


def scaled(x: Any) -> Any:
    return tp.abs(x) * 2 + x


HOLDERS: dict[str, Any] = {
    "nobody": lambda _: None,
    "view": lambda x: tp.reshape(x, (-1,)),
    "part": lambda x: x[3:],
    "tensor": lambda x: x[:],
    "array": lambda x: x.numpy(),
}


FREE = {"nobody"}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_donated_argument_becomes_the_result_if_nobody_holds_it(holder: str) -> None:
    f = tp.compile(scaled, donate=0)
    expected = np.abs(X) * 2 + X
    for turn in range(3):
        x = tp.asarray(X)
        held = HOLDERS[holder](x)
        before = None if held is None else np.array(held)
        place = id(x._buffer.memory)
        y = f(x)
        if turn > 0:  # the first run is kernel by kernel as well
            assert (id(y._buffer.memory) == place) == (holder in FREE)
        np.testing.assert_array_equal(y.numpy(), expected)
        if held is not None:
            np.testing.assert_array_equal(np.array(held), before)


def test_values_that_die_are_overwritten() -> None:
    x = tp.asarray(X)
    f = tp.compile(lambda x: scaled(tp.sort(x)))
    for _ in range(3):
        np.testing.assert_array_equal(f(x).numpy(), np.abs(np.sort(X)) * 2 + np.sort(X))
    np.testing.assert_array_equal(x.numpy(), X)
    memory = f.program(x).memory()
    assert memory.peak - memory.constants == 2 * X.nbytes


@pytest.mark.parametrize("shape", [(1,), (777,), (129, 33)])
def test_outputs_into_inputs(backend: Any, shape: tuple[int, ...]) -> None:
    """The bits are those of new memory, with other outputs and repeated inputs beside."""
    whole = (True,) * len(shape)
    last = (*(False,) * (len(shape) - 1), True)
    a, b, c = (expressions.parameter(at, dt.float32) for at in range(3))
    type_ = TensorType(dt.float32, shape)
    row = TensorType(dt.float32, shape[-1:])
    group = Group(
        "test",
        shape,
        (GroupInput(type_, whole), GroupInput(type_, whole), GroupInput(row, last)),
        (),
        tuple(GroupOutput(root, type_, whole) for root in (a * b + c, a - b, b * 2 + a)),
    )
    into = [1, None, 0]
    outputs = [replace(output, into=at) for output, at in zip(group.outputs, into, strict=True)]
    arrays = [RNG.standard_normal(each.type.shape).astype(np.float32) for each in group.inputs]
    results = []
    for chosen in (group, replace(group, outputs=tuple(outputs))):
        call = backend.compile_group(chosen)
        buffers = [backend.from_host(array) for array in arrays]
        actual = call(*buffers)
        results.append([backend.to_host(each) for each in actual])
    for at, each in zip(into, actual, strict=True):
        assert at is None or each is buffers[at]
    for plain, overwritten in zip(*results, strict=True):
        np.testing.assert_array_equal(overwritten, plain)
