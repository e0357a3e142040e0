"""TensorFlow.js's behaviour, scenarios 16 to 20, and the gradients that it has wrong.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor, total

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = [2.0, 3.0]


def square(x: tp.Tensor) -> tp.Tensor:
    return x * x


# Scenarios 16 and 17 --------------------------------------------------------------------


def test_scenario_16_value_and_gradients_of_a_layer() -> None:
    a, b = tensor([[-1, 2, -3], [10, -20, 30]]), tensor([[2, -3], [4, -1], [2, -3]])
    value, (da, db) = tp.value_and_grad(lambda a, b: tp.sum(tp.nn.relu(a @ b)), (0, 1))(a, b)
    same(value, 10)
    same(da, [[-3, -1, -3], [0, 0, 0]])
    same(db, [[0, -1], [0, 2], [0, -3]])


def test_scenario_17_dy_is_multiplied_in() -> None:
    same(tp.grad(square)(tensor(X), dy=tensor([10, 100])), [40, 600])


ERRORS = {  # TensorFlow.js checks dy's shape only after the backward pass
    "dy of integers": (
        lambda x: tp.grad(square)(x, dy=tp.asarray([10, 100])),
        ArgumentError,
        r"dy is int32\[2\], but the result is float32\[2\]",
    ),
    "dy of a wrong shape": (
        lambda x: tp.grad(square)(x, dy=tensor([10])),
        ArgumentError,
        r"dy is float32\[1\], but the result is float32\[2\]",
    ),
    "x is not connected": (
        tp.grad(lambda _: tensor(1.0)),
        NotConnectedError,
        r"from the result \(float32\[\]\) back to argument 0",
    ),
    "one of two is not connected": (
        lambda x: tp.grad(total(lambda a, _b: square(a)), (0, 1))(x, x),
        NotConnectedError,
        "back to argument 1",
    ),
    "no tensor": (
        tp.grad(lambda _: 1.0),
        ArgumentError,
        "must return a tensor, got float",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_scenario_17_five_errors(what: str) -> None:
    call, error, message = ERRORS[what]
    context = current_context()
    with pytest.raises(error, match=message):
        call(tensor(X))
    assert current_context() is context
    same(tp.grad(total(square))(tensor(X)), [4, 6])


def test_row_65_the_identity_is_connected() -> None:
    """TensorFlow.js says that f(x) = x cannot be differentiated."""
    same(tp.grad(total(lambda x: x))(tensor(X)), [1, 1])


# Scenario 18 ----------------------------------------------------------------------------


def test_scenario_18_higher_orders() -> None:
    second = tp.grad(total(tp.grad(total(lambda x: x**3))))
    x = tensor([0.1, 0.2])
    second(x)  # caches its constants
    gc.collect()
    before = live()
    result = second(x)
    assert live() == before + 1
    same(result, [0.6, 1.2])
    same(tp.grad(total(tp.grad(total(tp.grad(total(lambda x: x**4))))))(tensor(2)), 48)


# Scenario 19: where TensorFlow.js lacks a gradient and so raises on the path, ours states that
# booleans end it: the error says what is not connected, and zeros may be asked for.


def as_number(x: tp.Tensor) -> tp.Tensor:
    return tp.astype(tp.logical_and(x > 0, x > 2.5), tp.float32)


def test_scenario_19_a_logical_op_beside_the_path() -> None:
    same(tp.grad(total(lambda x: (as_number(x), x + 1.0)[1]))(tensor(X)), [1, 1])
    same(tp.grad(total(lambda x: x * as_number(x)))(tensor(X)), [0, 1])


def test_scenario_19_a_logical_op_on_the_path() -> None:
    with pytest.raises(NotConnectedError, match="not only through comparisons"):
        tp.grad(total(as_number))(tensor(X))
    same(tp.grad(total(as_number), unconnected="zeros")(tensor(X)), [0, 0])


COMPARISONS = ["greater", "greater_equal", "less", "less_equal", "equal", "not_equal"]


@pytest.mark.parametrize("name", COMPARISONS)
def test_row_75_a_comparison_in_where(name: str) -> None:
    """All but greaterEqual raise in TensorFlow.js."""
    compare = getattr(tp, name)
    chosen = {"greater": [0, 0, 1], "less": [1, 0, 0], "equal": [0, 1, 0]}
    chosen |= {"greater_equal": [0, 1, 1], "less_equal": [1, 1, 0], "not_equal": [1, 0, 1]}
    gradient = tp.grad(lambda x: tp.sum(tp.where(compare(x, 2.0), x, 0.0)))
    same(gradient(tensor([1, 2, 3])), chosen[name])


# Scenario 20 ----------------------------------------------------------------------------


def test_scenario_20_the_user_disposes_of_an_intermediate() -> None:
    def loss(x: tp.Tensor) -> tp.Tensor:
        y = x * x
        z = y * y
        y.dispose()
        return z

    same(tp.grad(loss)(tensor(3)), 108)


def test_scenario_20_an_exception_in_the_forward_pass() -> None:
    """Row 74: TensorFlow.js keeps what it had saved until then."""
    x, context = tensor(X), current_context()
    same(tp.grad(total(square))(x), [4, 6])
    gc.collect()
    before = live()

    def fails(x: tp.Tensor) -> tp.Tensor:
        raise ZeroDivisionError(str(square(square(x)).shape))

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            tp.grad(total(fails))(x)
    gc.collect()  # the tracebacks
    assert live() == before
    assert current_context() is context


def test_row_68_the_callers_dy_is_never_disposed_of() -> None:
    """The gradient of mod may be dy itself, and TensorFlow.js then frees the caller's."""
    dy = tensor([1, 1])
    for f in (lambda x: tp.remainder(x, x), lambda x: x, lambda x: tp.reshape(x, (2,))):
        gradient = tp.grad(f)(tensor(X), dy=dy)
        gradient.dispose()
        same(dy, [1, 1])


# What TensorFlow.js has wrong -------------------------------------------------------------
# Each of these gives another number there, given in the comment, or raises.

NUMBERS: dict[str, tuple[Any, Any, Any]] = {
    "maximum, broadcast": (  # raises
        lambda a: tp.sum(tp.maximum(a, tensor([0, 5, 0]))),
        [[1.0, 1, 1], [2, 2, 2]],
        [[1, 0, 1], [1, 0, 1]],
    ),
    "minimum, the broadcast operand": (  # raises
        lambda b: tp.sum(tp.minimum(tensor([[0, 9, 9], [9, 9, 9]]), b)),
        [1.0, 2, 3],
        [1, 2, 2],
    ),
    "squared difference, the broadcast operand": (  # raises
        lambda b: tp.sum(tp.squared_difference(tensor(np.ones((2, 3))), b)),
        [3.0, 1, 0],
        [8, 0, -4],
    ),
    "matmul, the broadcast batch": (  # raises
        lambda b: tp.sum(tp.matmul(tensor(np.ones((2, 2, 3))), b)),
        np.ones((1, 3, 2)),
        np.full((1, 3, 2), 4),
    ),
    "dilated convolution": (  # raises
        lambda x: tp.sum(tp.nn.conv2d(x, tensor(np.ones((2, 2, 1, 1))), 1, "valid", dilations=2)),
        np.ones((1, 3, 3, 1)),
        np.float32([1, 0, 1, 0, 0, 0, 1, 0, 1]).reshape(1, 3, 3, 1),
    ),
    "dilated depthwise convolution, channels first": (  # raises, for either reason
        lambda x: tp.sum(
            tp.nn.depthwise_conv2d(
                x, tensor(np.ones((2, 2, 1, 1))), data_format="NCHW", dilations=2
            )
        ),
        np.ones((1, 1, 3, 3)),
        np.float32([1, 0, 1, 0, 0, 0, 1, 0, 1]).reshape(1, 1, 3, 3),
    ),
    "dilated convolution of a volume": (  # raises
        lambda x: tp.sum(tp.nn.conv3d(x, tensor(np.ones((1, 1, 2, 1, 1))), dilations=2)),
        np.ones((1, 1, 1, 5, 1)),
        np.float32([1, 1, 2, 1, 1]).reshape(1, 1, 1, 5, 1),
    ),
    "convolution with rounding up": (  # the gradient rounds down: raises
        lambda x: tp.sum(
            tp.nn.conv2d(x, tensor(np.ones((2, 2, 1, 1))), 2, 0, dim_rounding_mode="ceil")
        ),
        np.ones((1, 3, 3, 1)),
        np.ones((1, 3, 3, 1)),
    ),
    "transposed convolution of a volume": (  # no gradient
        lambda x: tp.sum(
            tp.nn.conv3d_transpose(x, tensor(np.ones((1, 1, 2, 1, 1))), (1, 1, 1, 4, 1), 2)
        ),
        np.ones((1, 1, 1, 2, 1)),
        np.full((1, 1, 1, 2, 1), 2),
    ),
    "fused convolution with a sigmoid": (  # its kernel has no gradient
        lambda x: tp.sum(tp.nn.fused_conv2d(x, tensor([[[[2]]]]), activation="sigmoid")),
        np.zeros((1, 1, 1, 1)),
        np.full((1, 1, 1, 1), 0.5),
    ),
    "gather of rows of words": (  # no gradient
        lambda x: tp.sum(tp.gather_nd(x, [[0, 1], [2, 0], [0, 1]]) * tensor([1, 2, 4])),
        np.ones((3, 2)),
        [[0, 5], [0, 0], [2, 0]],
    ),
    "scatter": (  # no gradient
        lambda x: tp.sum(tp.scatter_nd([[2], [0], [2]], x, (3,)) * tensor([1, 2, 4])),
        [1.0, 1, 1],
        [4, 1, 4],
    ),
    "scatter over a tensor": (  # no gradient; the first update is written over
        lambda x: tp.sum(tp.tensor_scatter_update(tensor([9, 9]), [[1], [1]], x) ** 2),
        [1.0, 3],
        [0, 6],
    ),
    "the default of a dense tensor": (  # no gradient
        lambda x: tp.sum(tp.sparse_to_dense([1, 3], tensor([5, 6]), (5,), x)),
        1.0,
        3,
    ),
    "weights of a count": (  # no gradient
        lambda x: tp.sum(tp.bincount([0, 2, 9, 2], x, 3) * tensor([1, 2, 4])),
        np.ones(4),
        [1, 4, 0, 4],
    ),
    "gather with two batch axes": (  # raises
        lambda x: tp.sum(tp.gather(x, [[[1, 1]], [[0, 1]]], axis=2, batch_dims=2)),
        np.ones((2, 1, 2)),
        [[[0, 2]], [[1, 1]]],
    ),
    "maximum of equals": (tp.max, [1.0, 1, 0.5], [0.5, 0.5, 0]),  # [1, 1, 0]
    "minimum of equals": (tp.min, [1.0, 0.5, 0.5], [0, 0.5, 0.5]),  # [0, 1, 1]
    "abs at 0": (tp.abs, [0.0], [0]),  # -1
    "abs of complex numbers": (  # the sign of the real part, if anything
        lambda x: tp.abs(tp.complex(x, tensor([4.0, 0]))),
        [3.0, 0],
        [0.6, 0],
    ),
    "division by 0 without NaN": (  # no gradient
        lambda x: tp.div_no_nan(x, tensor([2.0, 0])),
        [1.0, 1],
        [0.5, 0],
    ),
    "clip at its bounds": (lambda x: tp.clip_by_value(x, -1, 1), [-1.0, 1, 2], [1, 1, 0]),
    "average pool with padding": (  # [[0.25, 0.5], [0.5, 1]]
        lambda x: tp.sum(tp.nn.avg_pool(x, 2, 1, "same")),
        np.ones((1, 2, 2, 1)),
        np.float32([0.25, 0.75, 0.75, 2.25]).reshape(1, 2, 2, 1),
    ),
    "average pool of a volume with padding": (  # divided by 8
        lambda x: tp.sum(tp.nn.avg_pool3d(x, 2, 2, "same")),
        np.ones((1, 1, 1, 1, 2)),
        np.ones((1, 1, 1, 1, 2)),
    ),
    "average pool with rounding up": (  # 0 at the last
        lambda x: tp.sum(tp.nn.avg_pool(x, (1, 2), 2, 0, dim_rounding_mode="ceil")),
        np.ones((1, 1, 3, 1)),
        np.float32([0.5, 0.5, 1]).reshape(1, 1, 3, 1),
    ),
    "max pool of a volume, channels first": (  # the gradient takes it for channels last
        lambda x: tp.sum(tp.nn.max_pool3d(x, 1, 1, data_format="NCDHW")),
        np.ones((1, 2, 1, 1, 3)),
        np.ones((1, 2, 1, 1, 3)),
    ),
    "place of the largest": (  # no gradient
        lambda x: tp.sum(tp.nn.max_pool_with_argmax(x, 2, 2)[0]),
        np.float32([1, 4, 3, 2]).reshape(1, 2, 2, 1),
        np.float32([0, 1, 0, 0]).reshape(1, 2, 2, 1),
    ),
    "batch norm without scale": (  # raises
        lambda x: tp.sum(tp.nn.batch_norm(x, [0.0], [0.75], variance_epsilon=0.25)),
        [[1.0], [2.0]],
        [[1], [1]],
    ),
    "prelu of less than its slopes": (  # raises
        lambda x: tp.sum(tp.nn.prelu(x, [0.5, 2.0])),
        [-2.0],
        [2.5],
    ),
    "max pool with rounding up": (  # 0 at the last
        lambda x: tp.sum(tp.nn.max_pool(x, 2, 2, 0, dim_rounding_mode="ceil")),
        np.arange(9.0).reshape(1, 3, 3, 1),
        np.float32([0, 0, 0, 0, 1, 1, 0, 1, 1]).reshape(1, 3, 3, 1),
    ),
    "broadcast to rank 5": (  # raises
        lambda x: tp.sum(tp.broadcast_to(x, (2, 1, 3, 1, 2))),
        [1.0, 2],
        [6, 6],
    ),
    "mirrored cells": (  # [1, 1, 1]
        lambda x: tp.sum(tp.mirror_pad(x, [(1, 1)], "reflect")),
        [1.0, 2, 3],
        [1, 3, 1],
    ),
    "tile of rank 5": (  # raises
        lambda x: tp.sum(tp.tile(x, (2, 1, 1, 1, 3))),
        np.ones((1, 1, 1, 1, 2)),
        np.full((1, 1, 1, 1, 2), 6),
    ),
    "bilinear resizing of half pixels": (  # [1, 1.5, 1.5]
        lambda x: tp.sum(
            tp.image.resize_bilinear(x, (1, 2), half_pixel_centers=True)
            * np.float32([1, 3]).reshape(1, 2, 1)
        ),
        np.zeros((1, 3, 1)),
        np.float32([0.75, 1, 2.25]).reshape(1, 3, 1),
    ),
    "nearest resizing of half pixels": (  # [1, 3, 0]
        lambda x: tp.sum(
            tp.image.resize_nearest_neighbor(x, (1, 2), half_pixel_centers=True)
            * np.float32([1, 3]).reshape(1, 2, 1)
        ),
        np.zeros((1, 3, 1)),
        np.float32([1, 0, 3]).reshape(1, 3, 1),
    ),
    "split into one part": (lambda x: tp.sum(tp.split(x, 1)[0]), [1.0, 2], [1, 1]),  # raises
    "unstack of an axis of length 1": (  # raises
        lambda x: tp.sum(tp.unstack(x)[0]),
        [[1.0, 2]],
        [[1, 1]],
    ),
    "strided slice": (  # no gradient
        lambda x: tp.sum(tp.strided_slice(x, [3], [0], [-2]) * tensor([10, 1])),
        [1.0, 2, 3, 4],
        [0, 1, 0, 10],
    ),
    "depth to space": (  # no gradient
        lambda x: tp.sum(tp.depth_to_space(x, 2)[0, 0] * tensor([[5], [7]])),
        np.ones((1, 1, 1, 4)),
        np.float32([5, 7, 0, 0]).reshape(1, 1, 1, 4),
    ),
    "diagonal matrix": (  # no gradient
        lambda x: tp.sum(tp.diag(x) * tensor([[2, 9], [9, 3]])),
        [1.0, 1],
        [2, 3],
    ),
    "product over a negative axis": (  # raises
        lambda x: tp.sum(tp.prod(x, axis=-1)),
        [[2.0, 3], [4, 5]],
        [[3, 2], [5, 4]],
    ),
    "running sum along the first axis": (  # [[4, 3], [6, 4]]
        lambda x: tp.sum(tp.cumsum(x, axis=0) * tensor([[1, 2], [3, 4]])),
        [[1.0, 1], [1, 1]],
        [[4, 6], [3, 4]],
    ),
    "running sum along a negative axis": (  # no data
        lambda x: tp.sum(tp.cumsum(x, axis=-1)),
        np.ones((1, 2, 3)),
        [[[3, 2, 1], [3, 2, 1]]],
    ),
    "running product with a zero": (  # no gradient
        lambda x: tp.sum(tp.cumprod(x)),
        [2.0, 0, 3],
        [1, 8, 0],
    ),
    "the largest": (  # no gradient
        lambda x: tp.sum(tp.topk(x, 2)[0] * tensor([5, 7])),
        [1.0, 3, 2],
        [0, 5, 7],
    ),
    "the different values": (  # no gradient
        lambda x: tp.sum(tp.unique(x).values * tensor([5, 7])),
        [1.0, 3, 1],
        [5, 7, 0],
    ),
    "an Einstein sum": (  # no gradient
        lambda x: tp.sum(tp.einsum("ij,jk->ik", x, tensor([[1, 2], [3, 4]]))),
        np.ones((1, 2)),
        [[3, 7]],
    ),
    "a norm at the vector of zeros": (tp.linalg.norm, [0.0, 0], [0, 0]),  # NaN
    "the power of a spectrum": (  # no gradient
        lambda x: tp.sum(tp.abs(tp.fft.rfft(x)) ** 2),
        [1.0, 2, 3],
        [9, 12, 15],  # 2 sum(x) of the first, 3 x - sum(x) of the second
    ),
    "gathered ragged rows": (  # no gradient
        lambda x: tp.ragged.ragged_gather([[0, 1, 3]], x, [1, 1])[1][2],
        [1.0, 2, 3],
        [0, 1, 0],
    ),
    "a dense tensor of ragged rows": (  # no gradient
        lambda x: tp.sum(tp.ragged.ragged_tensor_to_tensor(-1, x, 0, [[0, 1, 3]], ["ROW_SPLITS"])),
        [1.0, 2, 3],
        [1, 1, 1],
    ),
    "a range's delta": (  # no gradient
        lambda x: tp.sum(tp.ragged.ragged_range(0.0, 5.0, x).rt_dense_values),
        2.0,
        0 + 1 + 2,
    ),
    "filled rows, the default": (  # no gradient
        lambda x: tp.sum(tp.sparse.sparse_fill_empty_rows([[1]], [5.0], [3], x).output_values),
        0.0,
        2,
    ),
    "sums of picked rows": (  # no gradient
        lambda x: tp.sparse.sparse_segment_sum(x, [2, 0, 2], [0, 1, 1])[1],
        [1.0, 2, 3],
        [1, 0, 1],
    ),
    "means of picked rows": (  # no gradient
        lambda x: tp.sparse.sparse_segment_mean(x, [2, 0, 2], [0, 1, 1])[1],
        [1.0, 2, 3],
        [0.5, 0, 0.5],
    ),
    "x**0 at 0": (lambda x: x**0, [0.0, 2], [0, 0]),  # NaN
    "softmax cross-entropy, the labels": (  # labels - softmax: [0.231, -0.231]
        lambda t: tp.sum(tp.losses.softmax_cross_entropy(t, tensor([[1, 2]]))),
        [[0.5, 0.5]],
        [[np.log1p(np.e), np.log1p(np.e) - 1]],  # minus the logarithm of the softmax
    ),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_section_2_4_gradients_that_tensorflow_js_has_wrong(what: str) -> None:
    f, x, gradient = NUMBERS[what]
    same(tp.grad(total(f))(tensor(x)), gradient)


def test_section_2_4_floor_division_has_no_gradient() -> None:
    """TensorFlow.js gives that of the true division."""
    with pytest.raises(NotConnectedError):
        tp.grad(total(lambda x: x // tensor([2, 3])))(tensor(X))


def test_section_2_4_indices_are_not_differentiated() -> None:
    with pytest.raises(DTypeError, match=r"argument 1 is int32\[1\]; only floating and"):
        tp.grad(lambda x, at: tp.sum(tp.gather(x, at)), (0, 1))(tensor(X), tp.asarray([0]))


SECOND = {  # no second derivatives in TensorFlow.js
    "power": lambda x: tp.abs(x) ** 2.5,
    "max": lambda x: tp.max(x, axis=1) ** 2,
    "min": lambda x: tp.min(x, axis=0) ** 2,
    "maximum": lambda x: tp.maximum(x, 0.3) ** 2,
    "prod": lambda x: tp.prod(x, axis=1),
    "clip": lambda x: tp.clip_by_value(x, -1, 1) ** 3,
    "convolution": lambda x: tp.nn.conv2d(
        tp.reshape(x, (1, 2, 3, 1)), tp.reshape(x, (2, 3, 1, 1)), 1, "same"
    ),
    "max pool": lambda x: tp.nn.max_pool(tp.reshape(x, (1, 2, 3, 1)), 2, 1, "same") ** 3,
    "average pool": lambda x: tp.nn.avg_pool(tp.reshape(x, (1, 2, 3, 1)), 2, 1, "same") ** 3,
    "elu": tp.nn.elu,
    "selu": tp.nn.selu,
    "leaky relu": lambda x: tp.nn.leaky_relu(x) ** 3,
    "prelu": lambda x: tp.nn.prelu(x, 0.3) ** 3,
    "relu6": lambda x: tp.nn.relu6(x) ** 3,
    "local response normalization": lambda x: tp.nn.local_response_normalization(x, 1),
}


@pytest.mark.parametrize("what", SECOND)
def test_row_72_second_derivatives_that_tensorflow_js_lacks(what: str) -> None:
    x = np.array([[0.5, -1.2, 2.0], [1.4, 0.9, -0.7]])
    check_grads(lambda x: tp.sum(SECOND[what](x)), [x], order=2)
