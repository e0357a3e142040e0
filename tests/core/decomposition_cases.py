"""Where each decomposition is tried, and the formula in NumPy that says what must come out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import exact_random
from . import sliding_formulas as formulas
from .sliding import ONLY_CONVOLUTION, WINDOWS, Sliding, positions

if TYPE_CHECKING:
    from collections.abc import Callable

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Case:
    """One call; ``formula`` takes the inputs (floats in extended precision) in order.

    ``ulps``: how far a float may be from the formula, in units of its last place; 0: equal.
    """

    kernel: str
    what: str
    inputs: tuple[Any, ...]
    formula: Callable[..., Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    ulps: float = 0

    def __str__(self) -> str:
        return f"{self.kernel}-{self.what}".replace(" ", "_")


def edges(dtype: str) -> np.ndarray:
    """Return the values of ``dtype`` at which formulas break."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        wanted = [
            low,
            low + 1,
            high,
            high - 1,
            high // 2,
            0,
            1,
            2,
            3,
            *(() if low == 0 else (-1, -2)),
        ]
        return np.array(wanted, dtype)
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny, 1e-6, 0.1, 0.5, 0.6249, 0.6251, 1.0]
    positive += [1.5, 9.0, 19.0, 88.0, 89.0, 104.0, 709.0, 710.0, 746.0, 1e6, info.max, np.inf]
    return np.array([*positive, *(-np.array(positive)), np.nan], dtype)


RANKS = [(), (3,), (2, 3), (2, 1, 3), (1, 2, 2, 3), (2, 1, 2, 1, 2), (0,), (2, 0)]


def _numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return small numbers of which several are equal."""
    picked = np.random.default_rng(len(shape)).integers(0 if dtype[0] in "ub" else -3, 4, shape)
    return np.asarray(picked).astype(dtype)


def elementwise(kernel: str, formula: Any, dtypes: Any, ulps: float = 0) -> list[Case]:
    inputs = [
        ("edges", edges),
        *((f"shape {list(s)}", lambda d, s=s: _numbers(s, d)) for s in RANKS),
    ]
    return [
        Case(kernel, f"{what} {dtype}", (make(dtype),), formula, {}, ulps)
        for dtype in dtypes
        for what, make in inputs
        if what == "edges" or dtype == dtypes[0]
    ]


def pairwise(kernel: str, formula: Any, dtypes: Any, ulps: float = 0) -> list[Case]:
    return [
        Case(kernel, f"edges {d}", (edges(d)[:, None], edges(d)[None]), formula, {}, ulps)
        for d in dtypes
    ] + [
        Case(
            kernel,
            f"{list(a)} with {list(b)}",
            (_numbers(a, dtypes[0]), _numbers(b, dtypes[0])),
            formula,
            {},
            ulps,
        )
        for a, b in (
            ((), ()),
            ((), (2, 3)),
            ((3, 1), (1, 4)),
            ((4,), (2, 1, 3, 4)),
            ((1, 2), (0, 1)),
        )
    ]


ELEMENTWISE = [
    *elementwise(
        "Relu", lambda x: np.where(np.isnan(x), x, np.where(x > 0, x, 0)), (*FLOATS, *INTEGERS)
    ),
    *elementwise("Sigmoid", lambda x: 1 / (1 + np.exp(-x)), FLOATS, 4),
    *elementwise("Tanh", np.tanh, FLOATS, 4),
    *elementwise("Square", lambda x: x * x, (*FLOATS, *INTEGERS)),
    *elementwise("ZerosLike", np.zeros_like, (*FLOATS, *INTEGERS, "bool")),
    *elementwise("OnesLike", np.ones_like, (*FLOATS, *INTEGERS, "bool")),
    *pairwise("Minimum", np.minimum, (*FLOATS, *INTEGERS)),
    *pairwise("SquaredDifference", lambda a, b: (a - b) * (a - b), (*FLOATS, *INTEGERS)),
    *pairwise("NotEqual", np.not_equal, (*FLOATS, *INTEGERS, "bool")),
    *pairwise("LessEqual", np.less_equal, (*FLOATS, *INTEGERS)),
    *pairwise("Greater", np.greater, (*FLOATS, *INTEGERS)),
    *pairwise("GreaterEqual", np.greater_equal, (*FLOATS, *INTEGERS)),
    *pairwise("LogicalOr", np.logical_or, ("bool",)),
]


def _softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True)) if x.size else x
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: int) -> Any:
    shifted = x - np.max(x, axis=axis, keepdims=True) if x.size else x
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


SPECIAL_ROWS = np.array(
    [
        [0.0, -0.0, 0.0],
        [1e4, 0.0, -1e4],
        [88.0, 88.5, 87.0],
        [-np.inf, 0.0, 1.0],
        [-np.inf, -np.inf, -np.inf],
        [np.inf, 0.0, 1.0],
        [np.nan, 0.0, 1.0],
        [3e38, -3e38, 3e38],
    ]
)
SOFTMAX = [
    Case(
        kernel,
        f"{what}, {dtype}",
        (x.astype(dtype),),
        lambda x, f=f, axis=axis: f(x, axis),
        {name: axis},
        4,
    )
    for kernel, name, f in (("Softmax", "dim", _softmax), ("LogSoftmax", "axis", _log_softmax))
    for what, x, axis in (
        ("special rows", SPECIAL_ROWS, -1),
        ("first axis", np.arange(12.0).reshape(4, 3) * 0.7, 0),
        ("rank 5", np.arange(24.0).reshape(1, 2, 3, 2, 2) / 5, 2),
        ("size 1", np.array([[5.0], [-2.0]]), 1),
        ("empty axis", np.zeros((3, 0)), 1),
        ("empty batch", np.zeros((0, 3)), 1),
    )
    for dtype in FLOATS
]

REDUCED = [  # shape, axis
    ((), None),
    ((4,), 0),
    ((2, 3), None),
    ((2, 3), -1),
    ((2, 3, 4), (0, 2)),
    ((1, 3), 0),
    ((2, 1, 3, 2), (1, -1)),
    ((2, 2, 1, 2, 2), 3),
    ((2, 3), ()),
    ((0, 3), 1),
]
EMPTY = [((0,), None), ((2, 0), 1), ((0, 3), 0), ((0, 0), (0, 1))]


def reduction(kernel: str, f: Any, dtypes: Any, *, empty: bool, ulps: float = 0) -> list[Case]:
    cases = []
    for keep in (False, True):
        for shape, axis in [*REDUCED, *(EMPTY if empty else [])]:
            cases += [
                Case(
                    kernel,
                    f"{list(shape)} over {axis}{', kept' * keep}, {dtype}",
                    (_numbers(shape, dtype),),
                    lambda x, axis=axis, keep=keep: f(x, axis=axis, keepdims=keep),
                    {"axis": axis, "keep_dims": keep},
                    ulps,
                )
                for dtype in dtypes
            ]
    return cases


def _mean(x: Any, **options: Any) -> Any:
    total = np.sum(x, **options)
    return np.asarray(total / (x.size / total.size) if total.size else total)


REDUCTION = [
    *reduction("Min", np.min, (*FLOATS, "int32", "uint8"), empty=False),
    *reduction("Any", np.any, ("bool",), empty=True),
    *reduction("All", np.all, ("bool",), empty=True),
    *reduction("Mean", _mean, FLOATS, empty=False, ulps=1),
    *(
        Case("Min", f"{n + 1} edges {d}", (edges(d)[: n + 1],), np.min)
        for d in INTEGERS
        for n in (0, 3, 8)
    ),
    *(Case("Min", f"edges {d}", (edges(d)[:-1],), np.min) for d in FLOATS),
    *(Case("Min", f"with NaN {d}", (edges(d),), lambda _: np.asarray(np.nan)) for d in FLOATS),
    *(
        Case(
            "Mean",
            f"of none, {d}",
            (np.zeros((0, 2), d),),
            lambda _: np.full(2, np.nan),
            {"axis": 0},
        )
        for d in FLOATS
    ),
    Case(
        "Mean",
        "float16 whose sum overflows",
        (np.full(1000, 300.0, np.float16),),
        lambda _: np.asarray(300.0),
    ),
    *(
        Case(
            "Mean",
            f"infinite, {d}",
            (np.array([[np.inf, 1], [np.inf, -np.inf], [np.nan, 1]], d),),
            lambda _: np.array([np.inf, np.nan, np.nan]),
            {"axis": 1},
        )
        for d in FLOATS
    ),
]


def _one_hot(indices: Any, depth: int, on: Any, off: Any, dtype: str) -> np.ndarray:
    out = np.full((*indices.shape, depth), off, dtype)
    for at in np.ndindex(*indices.shape):
        if 0 <= int(indices[at]) < depth:
            out[(*at, int(indices[at]))] = on
    return out


ONE_HOT = [
    Case(
        "OneHot",
        f"{what} {dtype}",
        (indices,),
        lambda x, depth=depth, on=on, off=off, dtype=dtype: _one_hot(x, depth, on, off, dtype),
        {"depth": depth, "on_value": on, "off_value": off, "dtype": dtype},
    )
    for what, indices, depth in (
        ("in range", np.array([[0, 2], [1, 1]], np.int32), 3),
        ("outside", np.array([-1, 3, 2, -4], np.int32), 3),
        ("scalar", np.array(1, np.int64), 2),
        ("uint8", np.array([0, 255], np.uint8), 256),
        ("uint8, deeper", np.array([0, 255, 7], np.uint8), 300),
        ("int8, deeper", np.array([-1, 127], np.int8), 130),
        ("uint64", np.array([0, 2**64 - 1], np.uint64), 2),
        ("int64, far outside", np.array([2**40, -(2**40), 1], np.int64), 2),
        ("none", np.zeros((0, 2), np.int32), 3),
        ("depth 0", np.array([0, 1], np.int32), 0),
    )
    for on, off, dtype in (
        (1, 0, "float32"),
        (-2.5, 7, "float64"),
        (5, -1, "int32"),
        (1, 0, "bool"),
    )
]


def _whole(shape: tuple[int, ...], salt: int, dtype: str) -> np.ndarray:
    """Return small whole numbers: their sums of products are exact in any order."""
    picked = np.random.default_rng([salt, *shape]).integers(-4, 5, shape)
    return np.asarray(picked).astype(dtype)


def _shape(window: Sliding, height_width: tuple[int, ...], channels: int) -> tuple[int, ...]:
    if window.data_format == "NCHW":
        return (window.batch, channels, *height_width)
    return (window.batch, *height_width, channels)


def convolution(window: Sliding, dtype: str) -> list[Case]:
    options = {
        **window.attributes(),
        "dilations": window.dilations,
        "data_format": window.data_format,
    }
    x = _whole(_shape(window, window.image, 2), 0, dtype)
    filter_ = _whole((*window.taps, 2, 3), 1, dtype)
    dy = _whole(_shape(window, positions(window), 3), 2, dtype)
    what = f"{window.what}, {dtype}"
    return [
        Case("Conv2D", what, (x, filter_), lambda x, f: formulas.convolved(x, f, window), options),
        Case(
            "Conv2DBackpropInput",
            what,
            (dy, filter_),
            lambda dy, f: formulas.input_gradient(dy, f, window),
            {**options, "input_shape": x.shape},
        ),
        Case(
            "Conv2DBackpropFilter",
            what,
            (x, dy),
            lambda x, dy: formulas.filter_gradient(x, dy, window),
            {**options, "filter_shape": filter_.shape},
        ),
    ]


def pooling(window: Sliding, dtype: str) -> list[Case]:
    options = {**window.attributes(), "filter_size": window.taps}
    tied = _whole((window.batch, *window.image, 2), 3, dtype)
    cases = [("ties", tied)]
    if dtype in FLOATS:
        special = tied.copy()
        special.flat[::5], special.flat[1::7], special.flat[2::3] = np.nan, np.inf, -np.inf
        cases += [("special", special), ("all -inf", np.full_like(tied, -np.inf))]
    else:
        cases += [("smallest", np.full_like(tied, np.iinfo(dtype).min))]
    made = []
    for kind, x in cases:
        what = f"{window.what}, {kind}, {dtype}"
        made.append(Case("MaxPool", what, (x,), lambda x: formulas.pooled(x, window), options))
        if dtype in FLOATS:
            dy = _whole((window.batch, *positions(window), 2), 4, dtype)
            made.append(
                Case(
                    "MaxPoolGrad",
                    what,
                    (dy, x, formulas.pooled(x, window)),
                    lambda dy, x, _: formulas.pooled_gradient(dy, x, window),
                    options,
                )
            )
    return made


SLIDING = [
    *(item for w in (*WINDOWS, *ONLY_CONVOLUTION) for item in convolution(w, "float32")),
    *(
        item
        for w in (*WINDOWS, *ONLY_CONVOLUTION)
        if w.data_format == "NHWC" and w.dilations == 1
        for dtype in ("float64", "int32", "uint8")
        for item in pooling(w, dtype)
    ),
]

KEY = np.array([1, 2, 3, 2**32 - 1], np.uint32)
WORDS = exact_random.words(KEY.tolist(), 14)
LONGS = exact_random.longs(WORDS)[:6]


def drawn(kernel: str, expected: Any, dtype: str, *inputs: Any, ulps: float = 0) -> Case:
    attributes = {"shape": (len(expected),)} | ({"dtype": dtype} if dtype in FLOATS else {})
    return Case(kernel, dtype, (KEY, *inputs), lambda *_: expected, attributes, ulps)


RANDOM = [
    drawn("RandomBits", WORDS, "uint32"),
    drawn("RandomUniform", [word // 256 / 2**24 for word in WORDS], "float32"),
    drawn("RandomIntegers", [w * 1000 >> 64 for w in LONGS], "uint32", np.array(1000, np.uint32)),
    *(
        drawn(kernel, formula(LONGS if dtype == "float64" else WORDS, dtype), dtype, ulps=2)
        for kernel, formula in (
            ("RandomExponential", exact_random.exponential),
            ("RandomNormal", exact_random.normal),
        )
        for dtype in FLOATS
    ),
]

CASES: list[Case] = [*ELEMENTWISE, *SOFTMAX, *REDUCTION, *ONE_HOT, *SLIDING, *RANDOM]
