"""Kernels of one output and of several are dispatched by different functions, plan or no plan."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError
from tensorplug.ops.movement import RESHAPE
from tensorplug.ops.sorting import TOP_K

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_dispatch_refuses_a_kernel_of_multiple_outputs_each_time() -> None:
    x = tp.asarray([1.0, 3.0, 2.0])
    for _ in range(3):
        with pytest.raises(
            ArgumentError, match="TopK has multiple outputs; call dispatch_multiple"
        ):
            dispatch(TOP_K, x, k=2, sorted=True)


def test_dispatch_multiple_refuses_a_kernel_of_one_output() -> None:
    with pytest.raises(ArgumentError, match="Reshape has one output; call dispatch"):
        dispatch_multiple(RESHAPE, tp.asarray([1.0]), shape=(1, 1))
