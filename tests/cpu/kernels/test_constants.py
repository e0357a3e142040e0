"""Constants of programs: kernels prepare them once, and give the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import convolution, matrices, multiplication

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setenv(JIT, "always")
    monkeypatch.setattr(matrices, "_LONG", 0)  # products by native loops on any processor
    with tp.use_backend("cpu"):
        yield


def _drawn(*shape):
    return RNG.standard_normal(shape)


X, ROWS = _drawn(2, 9, 8, 16), _drawn(3, 24, 40)
FILTER, DEPTHWISE, MATRIX = _drawn(3, 3, 16, 48), _drawn(3, 3, 16, 2), _drawn(40, 48)
BIAS, SLOPES = _drawn(48), _drawn(48)

# A function of an input and of what is constant.
CALLS = {
    "convolution": (lambda x, w: tp.nn.conv2d(x, w, 2, "same"), X, (FILTER,)),
    "channels first": (
        lambda x, w: tp.nn.conv2d(x, w, data_format="NCHW"),
        np.moveaxis(X, -1, 1),
        (FILTER,),
    ),
    "filter with other strides": (
        lambda x, w: tp.nn.conv2d(x, tp.permute_dims(w, (2, 3, 1, 0))),
        X,
        (np.ascontiguousarray(FILTER.transpose(3, 2, 0, 1)),),
    ),
    "bias and relu": (
        lambda x, w, b: tp.nn.fused_conv2d(x, w, bias=b, activation="relu"),
        X,
        (FILTER, BIAS),
    ),
    "slopes": (
        lambda x, w, b, s: tp.nn.fused_conv2d(
            x, w, bias=b, activation="prelu", prelu_activation_weights=s
        ),
        X,
        (FILTER, BIAS, SLOPES),
    ),
    "leak": (
        lambda x, w: tp.nn.fused_conv2d(x, w, activation="leakyrelu", leakyrelu_alpha=0.3),
        X,
        (FILTER,),
    ),
    "depthwise": (
        lambda x, w, b: tp.nn.fused_depthwise_conv2d(x, w, bias=b, activation="relu6"),
        X,
        (DEPTHWISE, BIAS[:32]),
    ),
    "product": (tp.matmul, ROWS, (MATRIX,)),
    "product by a transposed matrix": (
        lambda a, b: tp.linalg.matmul(a, b, transpose_b=True),
        ROWS,
        (np.ascontiguousarray(MATRIX.T),),
    ),
    "product with bias and relu": (
        lambda a, b, c: tp.nn.fused_matmul(a, b, bias=c, activation="relu"),
        ROWS,
        (MATRIX, BIAS),
    ),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits_as_without_constants(name, dtype):
    f, array, others = CALLS[name]
    x, other_x = tp.asarray(array.astype(dtype)), tp.asarray(-2 * array.astype(dtype))
    constants = [tp.asarray(one.astype(dtype)) for one in others]
    compiled = tp.compile(lambda x: f(x, *constants))
    expected = [tp.compile(f)(one, *constants).numpy() for one in (x, other_x, x)]
    found = [compiled(one).numpy() for one in (x, other_x, x)]
    for ours, right in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(ours, right)
    assert not np.array_equal(found[0], found[1])


@pytest.mark.parametrize("name", [name for name in CALLS if name != "depthwise"])
def test_filters_are_packed_once(name, monkeypatch):
    f, array, others = CALLS[name]
    x = tp.asarray(array.astype("f4"))
    constants = [tp.asarray(one.astype("f4")) for one in others]
    compiled = tp.compile(lambda x: f(x, *constants))
    packed = []
    for module in (convolution, multiplication):

        def counted(filter, *others, to_panels=module.to_panels):
            packed.append(filter)
            return to_panels(filter, *others)

        monkeypatch.setattr(module, "to_panels", counted)
    compiled(x)
    assert packed
    packed.clear()
    compiled(x)
    assert not packed
