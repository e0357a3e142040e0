"""Operators on each element: versions, dtypes, special values, gradients that stay finite."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
from tensorplug_onnx import NodeError

from .one_operator import WAYS, assert_same, model_of, outputs_of

NAN, INF, LARGEST = math.nan, math.inf, np.finfo(np.float32).max


def f32(*numbers):
    return np.array(numbers, np.float32)


def i8(*numbers):
    return np.array(numbers, np.int8)


def i32(*numbers):
    return np.array(numbers, np.int32)


def i64(*numbers):
    return np.array(numbers, np.int64)


# What is asked, by name: operator, inputs, attributes, opset, expected output.
CASES = {
    "Add 6, at an axis": ("Add", [f32(1, 2, 3, 4).reshape(2, 2), f32(10, 20)],
                          {"broadcast": 1, "axis": 0}, 6, f32(11, 12, 23, 24).reshape(2, 2)),
    "Sub 6, at the end": ("Sub", [f32(1, 2, 3, 4).reshape(2, 2), f32(1, 2)], {"broadcast": 1}, 6,
                          f32(0, 0, 2, 2).reshape(2, 2)),
    "Div 6": ("Div", [f32(1, 2), f32(2, 4)], {}, 6, f32(0.5, 0.5)),
    "Pow 6": ("Pow", [f32(3, 2), f32(2)], {"broadcast": 1}, 6, f32(9, 4)),
    "PRelu 6": ("PRelu", [f32(-1, -1, -1, -1).reshape(1, 2, 2), f32(2, 3)], {}, 6,
                f32(-2, -2, -3, -3).reshape(1, 2, 2)),
    "Pow of integers by floats": ("Pow", [i32(5, 7, 2, -3), f32(3, 2, 0.5, 3)], {}, 12,
                                  i32(125, 49, 1, -27)),
    "Pow of large integers": ("Pow", [i32(12345), f32(2)], {}, 12, i32(152399025)),
    "Pow of floats by integers": ("Pow", [f32(2, -3, 0.5), i64(10, 3, -2)], {}, 15,
                                  f32(1024, -27, 4)),
    "Pow of integers": ("Pow", [i32(3, -2), i64(4, 5)], {}, 13, i32(81, -32)),
    "Pow of halves": ("Pow", [f32(3).astype(ml_dtypes.bfloat16), i32(3)], {}, 15,
                      f32(27).astype(ml_dtypes.bfloat16)),
    "Mod": ("Mod", [i8(-7, 7, -128, -6), i8(3, -3, 3, 3)], {}, 10, i8(2, -2, 1, 0)),
    "Mod as in C": ("Mod", [i8(-7, 7, -128, -6), i8(3, -3, 3, 3)], {"fmod": 1}, 13,
                    i8(-1, 1, -2, 0)),
    "Mod of floats as in C": ("Mod", [f32(-7.5, 7.5, -6, 5), f32(2, -2, 3, INF)], {"fmod": 1}, 10,
                              f32(-1.5, 1.5, -0.0, 5)),
    "Div towards zero": ("Div", [i32(-7, 7, -7, 7, -6), i32(2, -2, -2, 2, 2)], {}, 7,
                         i32(-3, -3, 3, 3, -3)),
    "Clip 6": ("Clip", [f32(-9, 0.5, 9)], {"min": -1.0, "max": 2.0}, 7, f32(-1, 0.5, 2)),
    "Clip 6, no limits": ("Clip", [f32(-INF, 0.5, INF, NAN)], {}, 10,
                          f32(-LARGEST, 0.5, LARGEST, NAN)),
    "Clip 6 of halves": ("Clip", [np.float16([-INF, 9])], {"max": 8.0}, 7, np.float16([-INF, 8])),
    "Clip, the upper limit wins": (
        "Clip", [f32(-9, 2, 9), f32(3)[0], f32(1)], {}, 13, f32(1, 1, 1)),
    "Clip of integers from above": ("Clip", [i8(-9, 9), None, i8(5).reshape(())], {}, 12,
                                    i8(-9, 5)),
    "Clip keeps NaN": ("Clip", [f32(NAN, 2), f32(0).reshape(())], {}, 11, f32(NAN, 2)),
    "Max": ("Max", [f32(1, NAN, 3), f32(2, 0, NAN), f32(0, 0, 0)], {}, 8, f32(2, NAN, NAN)),
    "Min": ("Min", [f32(1, NAN, 3), f32(2, 0, 1)], {}, 13, f32(1, NAN, 1)),
    "Max of integers": ("Max", [i64(2**62 + 1, -5), i64(2**62, 5)], {}, 12, i64(2**62 + 1, 5)),
    "Sum": ("Sum", [f32(1, 2), f32(10), f32(100, 200)], {}, 8, f32(111, 212)),
    "Mean of halves": ("Mean", [np.float16([1, 2]), np.float16([4])], {}, 13,
                       np.float16([2.5, 3])),
    "Round": ("Round", [f32(-2.5, -1.5, 0.5, 1.5, 2.5, -0.4)], {}, 11, f32(-2, -2, 0, 2, 2, -0.0)),
    "IsInf": ("IsInf", [f32(-INF, INF, NAN, 1)], {}, 10, np.array([True, True, False, False])),
    "IsInf, above": ("IsInf", [f32(-INF, INF, NAN)], {"detect_negative": 0}, 20,
                     np.array([False, True, False])),
    "IsInf, below": ("IsInf", [f32(-INF, INF, NAN)], {"detect_positive": 0}, 10,
                     np.array([True, False, False])),
    "IsInf, neither": ("IsInf", [f32(-INF, INF)], {"detect_positive": 0, "detect_negative": 0}, 20,
                       np.array([False, False])),
    "BitShift": ("BitShift", [np.uint8([1, 255]), np.uint8([7, 4])], {"direction": "LEFT"}, 11,
                 np.uint8([128, 240])),
    "PRelu of integers": ("PRelu", [i32(-4, 4), i32(3)], {}, 9, i32(-12, 4)),
    "Shrink of integers": ("Shrink", [i32(-5, -1, 2, 5)], {"bias": 1.7, "lambd": 1.0}, 9,
                           i32(-4, 0, 1, 4)),
    "ThresholdedRelu": ("ThresholdedRelu", [f32(0.5, 1, 1.5)], {}, 10, f32(0, 0, 1.5)),
    "LeakyRelu": ("LeakyRelu", [f32(-8, 8)], {"alpha": 0.25}, 7, f32(-2, 8)),
    "HardSwish": ("HardSwish", [f32(-4, 0, 3, 6)], {}, 14, f32(-0.0, 0, 3, 6)),
    "Softsign": ("Softsign", [f32(-3, 0, 1)], {}, 7, f32(-0.75, 0, 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    operator, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, operator, inputs, attributes, opset=opset)
    assert_same(found, expected)


X = f32(-200, -3, -0.5, 0, 0.5, 3, 200)
BELOW = np.minimum(X.astype(np.float64), 0)
INNER = math.sqrt(2 / math.pi) * (X + 0.044715 * X.astype(np.float64) ** 3)

# Activations in float64, by name: operator, attributes, opset, expected.
ACTIVATIONS = {
    "Elu 6": ("Elu", {"alpha": 2.0}, 7, np.where(X > 0, X, 2 * np.expm1(BELOW))),
    "Celu 12": ("Celu", {"alpha": 2.0}, 12, np.where(X > 0, X, 2 * np.expm1(BELOW / 2))),
    "Selu 6": ("Selu", {"alpha": 3.0, "gamma": 2.0}, 7,
               2 * np.where(X > 0, X, 3 * np.expm1(BELOW))),
    "HardSigmoid 6": ("HardSigmoid", {"alpha": 0.5, "beta": 0.25}, 7, np.clip(X / 2 + 0.25, 0, 1)),
    "Swish 24": ("Swish", {"alpha": 2.0}, 24, X / (1 + np.exp(-2.0 * X.astype(np.float64)))),
    "Mish 18": ("Mish", {}, 18, X * np.tanh(np.logaddexp(0, X.astype(np.float64)))),
    "Gelu 20": ("Gelu", {}, 20, [x * math.erfc(-x / math.sqrt(2)) / 2 for x in X.tolist()]),
    "Gelu by tanh": ("Gelu", {"approximate": "tanh"}, 20,
                     X * (1 + np.tanh(INNER)) / 2),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, way):
    operator, attributes, opset, expected = ACTIVATIONS[name]
    (found,) = outputs_of(way, operator, [X], attributes, opset=opset)
    assert found.dtype == np.float32
    assert found.shape == X.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("operator", ["Elu", "Celu", "Selu", "Mish", "Swish", "Softsign"])
def test_gradients_are_right_far_from_zero(operator):
    model = model_of(operator, [X], {})
    found = tp.grad(lambda x: tp.sum(model.apply({}, {"x0": x})["y0"]))(tp.asarray(X)).numpy()
    step = np.float64(1e-4)
    (above,), (below,) = (
        outputs_of("called", operator, [X.astype(np.float64) + sign * step], {}, opset=28)
        for sign in (1, -1)
    )
    smooth = X != 0  # Selu has a kink there
    np.testing.assert_allclose(found[smooth], ((above - below) / (2 * step))[smooth], atol=1e-5)


# What must not run, by name: operator, inputs, attributes, what the message says.
WRONG = {
    "direction": ("BitShift", [np.uint8([1]), np.uint8([1])], {"direction": "UP"}, "'UP'"),
    "approximate": ("Gelu", [X], {"approximate": "erf"}, "'erf'"),
    "limits that are not scalars": ("Clip", [f32(1), f32(1, 2)], {}, "scalar"),
    "slopes that are too many": ("PRelu", [f32(1), f32(1, 2)], {}, "slope"),
    "whole slopes that are too many": ("PRelu", [i32(1), i32(1, 2)], {}, "slope"),
    "shapes": ("Add", [f32(1, 2), f32(1, 2, 3)], {}, "broadcast"),
}


# Likewise for version 6: operator, inputs, attributes.
WRONG_6 = {
    "a broadcast without the attribute": ("Add", [f32(1, 2), f32(1)], {}),
    "a first operand that is smaller": ("Mul", [f32(1), f32(1, 2)], {"broadcast": 1}),
    "an axis that does not fit": ("Add", [X[None], f32(1, 2)], {"broadcast": 1, "axis": 1}),
    "a bias without the attribute": ("Gemm", [X[None], X[:, None], f32(1)], {}),
}


@pytest.mark.parametrize("name", WRONG_6)
def test_errors_of_version_6(name):
    operator, inputs, attributes = WRONG_6[name]
    with pytest.raises(NodeError, match=operator):
        outputs_of("called", operator, inputs, attributes, opset=6)


@pytest.mark.parametrize("way", ["called", "compiled"])
@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name, way):
    operator, inputs, attributes, message = WRONG[name]
    with pytest.raises(NodeError, match=rf"{operator}.*{message}"):
        outputs_of(way, operator, inputs, attributes)
