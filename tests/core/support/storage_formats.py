"""Dtypes for storage by their definitions: what bits stand for, rounding, and movement."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np

import tensorplug as tp
from tensorplug.contract import dtypes as dt

INF, NAN = math.inf, math.nan
STORAGE = sorted(dt.STORAGE, key=str)
WHOLE = [dtype for dtype in STORAGE if dtype in dt.WHOLE]
FLOATS = [dtype for dtype in STORAGE if dtype not in dt.WHOLE]
FORMATS = {  # digits of the exponent and of the fraction, bias, bits of NaN, bits of infinity
    "float8_e4m3fn": (4, 3, 7, {0x7F, 0xFF}, set()),
    "float8_e4m3fnuz": (4, 3, 8, {0x80}, set()),
    "float8_e5m2": (5, 2, 15, {*range(0x7D, 0x80), *range(0xFD, 0x100)}, {0x7C, 0xFC}),
    "float8_e5m2fnuz": (5, 2, 16, {0x80}, set()),
    "float4_e2m1fn": (2, 1, 1, set(), set()),
}


def number(dtype: dt.DType, bits: int) -> float:
    """Return what bits stand for, by the definition of the format."""
    if dtype.name == "float8_e8m0fnu":
        return NAN if bits == 0xFF else 2.0 ** (bits - 127)
    exponent_bits, fraction_bits, bias, nans, infinities = FORMATS[dtype.name]
    sign = -1.0 if bits >> (exponent_bits + fraction_bits) else 1.0
    if bits in nans:
        return NAN
    if bits in infinities:
        return sign * INF
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    if exponent:
        return sign * 2.0 ** (exponent - bias) * (1 + fraction / 2**fraction_bits)
    return sign * 2.0 ** (1 - bias) * (fraction / 2**fraction_bits)


def numbers(dtype: dt.DType) -> np.ndarray:
    return np.array([number(dtype, bits) for bits in range(1 << dtype.bits)])


def nearest(dtype: dt.DType, x: float) -> float:
    """Return the number nearest to ``x``, of two the one with an even last digit."""
    expected = numbers(dtype)
    candidates = [
        (abs(value - x), bits & 1, value)
        for bits, value in enumerate(expected)
        if math.isfinite(value)
    ]
    return min(candidates)[2]


TOO_LARGE = {  # without and with saturate, of 1e9, -inf and NaN
    "float8_e4m3fn": ([NAN, NAN, NAN], [448, -448, NAN]),
    "float8_e4m3fnuz": ([NAN, NAN, NAN], [240, -240, NAN]),
    "float8_e5m2": ([INF, -INF, NAN], [57344, -57344, NAN]),
    "float8_e5m2fnuz": ([NAN, NAN, NAN], [57344, -57344, NAN]),
    "float8_e8m0fnu": ([2.0**30, NAN, NAN], [2.0**30, 2.0**-127, NAN]),
    "float4_e2m1fn": ([6, -6, 0], [6, -6, 0]),
    "int4": ([0, 0, 0], [7, -8, 0]),
    "uint4": ([0, 0, 0], [15, 0, 0]),
    "int2": ([0, 0, 0], [1, -2, 0]),
    "uint2": ([0, 0, 0], [3, 0, 0]),
}


def moving(dtype: dt.DType) -> np.ndarray:
    """Return an array of different elements, for MOVES."""
    raw = (np.arange(24, dtype=np.int64).reshape(2, 3, 4) * 37 % (1 << dtype.bits)).astype("u1")
    return raw.view(dtype.numpy) if dtype in FLOATS else raw.astype(dtype.numpy)


def moved(x):
    return tp.concat([x[:, 1:], x[:, :1]], axis=1)


MOVES = {  # of tensors and of bytes
    "reshape": (lambda x: tp.reshape(x, (6, 4)), lambda x: x.reshape(6, 4)),
    "transpose": (lambda x: tp.permute_dims(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "slice": (lambda x: x[1:, ::-1, 1::2], lambda x: x[1:, ::-1, 1::2]),
    "index": (lambda x: x[tp.asarray([1, 0, 1])], lambda x: x[[1, 0, 1]]),
    "take": (lambda x: tp.take(x, [2, 0], axis=1), lambda x: x[:, [2, 0]]),
    "concat": (lambda x: tp.concat([x, x], axis=1), lambda x: np.concatenate([x, x], 1)),
    "stack": (lambda x: tp.stack([x, x], axis=-1), lambda x: np.stack([x, x], -1)),
    "unstack": (lambda x: tp.unstack(x)[1], lambda x: x[1]),
    "split": (lambda x: tp.split(x, 2, axis=2)[1], lambda x: x[:, :, 2:]),
    "tile": (lambda x: tp.tile(x, (1, 2, 1)), lambda x: np.tile(x, (1, 2, 1))),
    "repeat": (lambda x: tp.repeat(x, 2, axis=1), lambda x: x.repeat(2, 1)),
    "flip": (lambda x: tp.flip(x, axis=1), lambda x: x[:, ::-1]),
    "roll": (lambda x: tp.roll(x, 1, axis=2), lambda x: np.roll(x, 1, 2)),
    "broadcast": (lambda x: tp.broadcast_to(x[:1], (2, 3, 4)), lambda x: x[[0, 0]]),
    "where": (
        lambda x: tp.where(MASK, x, x[:, ::-1]),
        lambda x: np.where(MASK, x, x[:, ::-1]),
    ),
    "reflect": (
        lambda x: tp.mirror_pad(x, [(0, 0), (1, 1), (0, 0)], "reflect"),
        lambda x: np.pad(x, [(0, 0), (1, 1), (0, 0)], "reflect"),
    ),
    "copy": (copy.deepcopy, np.copy),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x)), np.copy),
    "compiled": (
        lambda x: tp.compile(moved)(x),  # noqa: PLW0108  # each compiled anew
        lambda x: np.roll(x, -1, 1),
    ),
}
MASK = np.arange(24).reshape(2, 3, 4) % 3 == 0
