"""Moving elements: what can be a view is one, and large results."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops import extents, joining
from tensorplug.ops import movement as ops


def named(parameter):
    return getattr(parameter, "name", "")


def same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("spec", "attributes"),
    [
        (ops.IDENTITY, {}),
        (ops.RESHAPE, {"shape": (6,)}),
        (ops.TRANSPOSE, {"perm": (1, 0)}),
        (ops.BROADCAST_TO, {"shape": (4, 2, 3)}),
        (extents.SLICE, {"begin": (0, 1), "size": (2, 1)}),
    ],
    ids=named,
)
def test_views_share_the_memory(context, spec, attributes):
    from tensorplug.dispatch.calls import dispatch
    from tensorplug.dispatch.context import use_context
    from tensorplug.ops.creation import asarray

    allocation = context.device.backend.allocation
    with use_context(context):
        x = asarray(np.zeros((2, 3), "float32"))
        result = dispatch(spec, x, **attributes)
        assert allocation(result._buffer) == allocation(x._buffer) == (id(x._buffer), 24)


@pytest.mark.parametrize(
    ("dtype", "constant", "error"),
    [("uint8", 256, ArgumentError), ("int32", 0.5, DTypeError), ("float32", 1j, DTypeError)],
)
def test_pad_refuses_a_constant_that_does_not_fit(call, dtype, constant, error):
    with pytest.raises(error, match=dtype):
        call(extents.PAD_V2, np.ones(2, dtype), paddings=((1, 1),), constant_value=constant)


LARGE = np.arange(3 * 811 * 257, dtype=np.int64).reshape(3, 811, 257)  # 5 MB


def test_large_results(call):
    """Only their rim is filled, and what is joined goes straight into recycled memory."""
    paddings = ((0, 1), (2, 0), (1, 3))
    expected = np.full((4, 813, 261), -7)
    expected[:3, 2:, 1:258] = LARGE
    for _ in range(2):  # the second time into memory that holds something
        same(call(extents.PAD_V2, LARGE, paddings=paddings, constant_value=-7), expected)
        both = call(joining.CONCAT, [LARGE, LARGE[:, :5]], axis=1)
        same(both, np.append(LARGE, LARGE[:, :5], axis=1))
