"""Epilogues: which products of a program take their bias and activation with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(5)
X, W, ROW = (RNG.standard_normal(s).astype(np.float32) for s in ((4, 5), (5, 3), (3,)))
IMAGES, FILTER, DEPTHWISE = (
    RNG.standard_normal(s).astype(np.float32) for s in ((2, 6, 6, 3), (1, 1, 3, 3), (1, 1, 3, 1))
)
SQUARE = RNG.standard_normal((4, 4)).astype(np.float32)


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _dense(x: Any, w: Any, b: Any) -> Any:
    return np.asarray(x, np.float64) @ w + b


def _twice(x: Any, w: Any, b: Any) -> Any:
    y = x @ w
    return tp.nn.relu(y + b) @ y.T


def _doubled(x: Any, w: Any) -> Any:
    y = x @ w
    return y + y


def _returned(x: Any, w: Any) -> Any:
    y = x @ w
    return y, tp.nn.relu(y)


# The function, its arguments, the kernels of its program, and the result in double precision.
# A convolution with a window of one pixel is a product along the channels.
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], list[str], Any]] = {
    "bias": (lambda x, w, b: x @ w + b, (X, W, ROW), ["_FusedMatMul"], _dense),
    "bias first": (lambda x, w, b: b + x @ w, (X, W, ROW), ["_FusedMatMul"], _dense),
    "activation": (
        lambda x, w: tp.nn.relu(x @ w),
        (X, W),
        ["_FusedMatMul"],
        lambda x, w: _relu(_dense(x, w, 0)),
    ),
    "both": (
        lambda x, w, b: tp.nn.relu6(x @ w + b),
        (X, W, ROW),
        ["_FusedMatMul"],
        lambda x, w, b: np.clip(_dense(x, w, b), 0, 6),
    ),
    "transposed": (
        lambda x, w, b: tp.nn.sigmoid(tp.linalg.matmul(x, w, transpose_a=True) + b),
        (X.T, W, ROW),
        ["_FusedMatMul"],
        lambda x, w, b: 1 / (1 + np.exp(-_dense(x.T, w, b))),
    ),
    "leak": (
        lambda x, w, b: tp.nn.leaky_relu(x @ w + b, 0.3),
        (X, W, ROW),
        ["_FusedMatMul"],
        lambda x, w, b: np.where(_dense(x, w, b) < 0, 0.3, 1) * _dense(x, w, b),
    ),
    "slopes": (
        lambda x, w, b: tp.nn.prelu(x @ w, b),
        (X, W, ROW),
        ["_FusedMatMul"],
        lambda x, w, b: np.where(_dense(x, w, 0) < 0, b, 1) * _dense(x, w, 0),
    ),
    "convolution": (
        lambda x, w, b: tp.nn.elu(tp.nn.conv2d(x, w) + b),
        (IMAGES, FILTER, ROW),
        ["FusedConv2D"],
        lambda x, w, b: np.where(
            _dense(x, w[0, 0], b) < 0, np.expm1(_dense(x, w[0, 0], b)), _dense(x, w[0, 0], b)
        ),
    ),
    "depthwise": (
        lambda x, w, b: tp.nn.relu(tp.nn.depthwise_conv2d(x, w) + b),
        (IMAGES, DEPTHWISE, ROW),
        ["FusedDepthwiseConv2D"],
        lambda x, w, b: _relu(x.astype(np.float64) * w[0, 0, :, 0] + b),
    ),
    "chain": (
        lambda x, w, b: tp.nn.relu(tp.nn.relu(x @ w + b) @ w.T + 1),
        (X, W, ROW),
        ["_FusedMatMul", "_FusedMatMul"],
        lambda x, w, b: _relu(_relu(_dense(x, w, b)) @ w.T + 1),
    ),
    # The group of the elementwise calls adds the bias.
    "more calls": (
        lambda x, w, b: tp.exp(x @ w + b),
        (X, W, ROW),
        ["BatchMatMul", "Add", "Exp"],
        lambda x, w, b: np.exp(_dense(x, w, b)),
    ),
    "used twice": (
        _twice,
        (X, W, ROW),
        ["BatchMatMul", "Add", "Relu", "BatchMatMul"],
        lambda x, w, b: _relu(_dense(x, w, b)) @ _dense(x, w, 0).T,
    ),
    "added to itself": (
        _doubled,
        (X, W),
        ["BatchMatMul", "Add"],
        lambda x, w: 2 * _dense(x, w, 0),
    ),
    "returned": (
        _returned,
        (X, W),
        ["BatchMatMul", "Relu"],
        lambda x, w: (_dense(x, w, 0), _relu(_dense(x, w, 0))),
    ),
    "a whole tensor": (
        lambda x, w: x @ w + x[:, :3],
        (X, W),
        ["BatchMatMul", "Slice", "Add"],
        lambda x, w: _dense(x, w, x[:, :3]),
    ),
    "more rows": (
        lambda x, w: x[:1] @ w + x[:, :3],
        (X, W),
        ["Slice", "BatchMatMul", "Slice", "Add"],
        lambda x, w: _dense(x[:1], w, x[:, :3]),
    ),
    "integers": (
        lambda x: tp.nn.relu(x @ x),
        (np.array([[1, -2], [3, 4]], np.int32),),
        ["BatchMatMul", "Relu"],
        lambda x: _relu(x @ x),
    ),
    # A vector that is added lies along the last axis, which is not that of the channels.
    "channels first": (
        lambda x, w, b: tp.nn.conv2d(x, w, data_format="NCHW") + b[:1] * SQUARE[0],
        (RNG.standard_normal((2, 3, 4, 4)).astype(np.float32), FILTER, ROW),
        ["Conv2D", "Slice", "Multiply", "Add"],
        lambda x, w, b: np.einsum("nchw,ck->nkhw", x, w[0, 0]) + b[0] * SQUARE[0],
    ),
}


def _leaves(result: Any) -> list[tp.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", PROGRAMS)
def test_endings_join_their_products(name: str) -> None:
    f, arrays, kernels, formula = PROGRAMS[name]
    tensors = [tp.asarray(array) for array in arrays]
    compiled = tp.compile(f)
    result = [call.plan.spec.name for call in compiled.program(*tensors).calls]
    assert result == kernels
    compiled(*tensors)  # the first run is kernel by kernel
    expected = formula(*arrays)
    for ours, theirs in zip(
        _leaves(compiled(*tensors)), expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):  # fmt: skip
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


def test_gradients_of_what_became_one_call() -> None:
    def loss(x: Any, w: Any, b: Any) -> Any:
        return tp.sum(tp.nn.relu(x @ w + b) ** 2)

    arrays = [tp.asarray(array, dtype=tp.float64) for array in (X, W, ROW)]
    y = _relu(_dense(X, W, ROW))
    expected = (2 * y @ W.T, 2 * X.T @ y, 2 * y.sum(0))
    inside = tp.compile(tp.grad(loss, (0, 1, 2)))
    for actual in (inside(*arrays), tp.grad(tp.compile(loss), (0, 1, 2))(*arrays)):
        for ours, theirs in zip(actual, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-9)
    kernels = [call.plan.spec.name for call in inside.program(*arrays).calls]
    assert kernels[0] == "_FusedMatMul"
    assert "Relu" not in kernels


def _product(a, b):
    return a @ b


def _relu_of(x):
    return np.maximum(x, 0)


def _fused(a, b, bias, prelu_activation_weights):
    raise AssertionError("this kernel is not the backend's own")


@pytest.mark.parametrize(
    ("name", "kernel"), [("BatchMatMul", _product), ("Relu", _relu_of), ("_FusedMatMul", _fused)]
)
def test_a_kernel_in_place_of_the_backends_is_left_alone(name: str, kernel: Any) -> None:
    tensors = [tp.asarray(array) for array in (X, W, ROW)]
    with tp.register_kernel(name, "cpu", kernel, override=True):
        program = tp.compile(lambda x, w, b: tp.nn.relu(x @ w + b)).program(*tensors)
    assert [call.plan.spec.name for call in program.calls] == ["BatchMatMul", "Add", "Relu"]


def test_a_backend_without_the_fused_kernel_runs_its_own() -> None:
    with tp.use_backend("minimal"):
        tensors = [tp.asarray(array) for array in (X, W, ROW)]
        program = tp.compile(lambda x, w, b: x @ w + b).program(*tensors)
    assert [call.plan.spec.name for call in program.calls] == ["BatchMatMul", "Add"]
