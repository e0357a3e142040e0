"""Cases for products with bias and activation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import fused as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]
_FLOATING = ("elu", "leakyrelu", "sigmoid")
_SAME: dict[str, Any] = {"strides": 1, "pad": "same"}
_PAIRS = ((0, 0), (1, 2), (0, 1), (0, 0))
_MOVES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("valid", {"strides": 1, "pad": "valid"}),
    ("strided", {"strides": (2, 3), "pad": "same"}),
    ("dilated", {"strides": 1, "pad": "valid", "dilations": (2, 1)}),
    ("explicit pad", {"strides": 1, "pad": _PAIRS}),
    *(
        (f"rounded: {how}", {"strides": (2, 3), "pad": 1, "dim_rounding_mode": how})
        for how in ("floor", "ceil", "round")
    ),
)
_FIRST: dict[str, Any] = {**_SAME, "data_format": "NCHW", "dilations": 2}
_SAVING: dict[str, Any] = {"activation": "leakyrelu", "leakyrelu_alpha": -0.5}


def _ordinary(corpus: Corpus, shape: Shape | None) -> Array | None:
    return None if shape is None else corpus.ordinary(shape, -1, 1)


def _convolution(corpus: Corpus, channels: int, *, full: bool) -> Iterator[Case]:
    """Every activation, bias and slopes of every shape; ``channels``: of the result."""

    def case(
        name: str,
        bias: Shape | None,
        slopes: Shape | None,
        options: dict[str, Any],
        x: Shape = (2, 4, 5, 2),
    ) -> Case:
        taps = corpus.ordinary((2, 3, 2, channels if full else channels // 2), -1, 1)
        return Case(
            name,
            (
                corpus.ordinary(x, -1, 1),
                taps,
                _ordinary(corpus, bias),
                _ordinary(corpus, slopes),
            ),
            options,
        )

    yield case("bare", None, None, _SAME)
    yield case("bias", (channels,), None, _SAME)
    yield case("scalar bias", (), None, _SAME)
    yield case("bias of one", (1,), None, _SAME)
    yield case("bias for all", (1, 4, 5, channels), None, _SAME)
    for name in ("relu", "relu6", *_FLOATING):
        yield case(name, (channels,), None, {**_SAME, "activation": name})
    yield case("falling", (channels,), None, {**_SAME, **_SAVING})
    prelu = {"activation": "prelu"}
    yield case("prelu", (channels,), (channels,), {**_SAME, **prelu})
    yield case("one slope", None, (1,), {**_SAME, **prelu})
    yield case("slopes for all", None, (4, 5, channels), {**_SAME, **prelu})
    yield case("slopes not asked for", None, (channels,), {**_SAME, "activation": "relu"})
    first = (2, 2, 4, 5)
    yield case("NCHW", (channels,), (channels,), {**_FIRST, **prelu}, first)
    yield case("NCHW, full bias", (channels, 1, 5), None, {**_FIRST, "activation": "elu"}, first)
    yield case("no batch", (channels,), None, {**_SAME, "activation": "relu"}, (0, 4, 5, 2))
    for name, moves in _MOVES:
        yield case(name, (channels,), None, {**moves, "activation": "relu"})
    missing = case("no slopes", None, None, {**_SAME, **prelu})
    yield Case(missing.id, missing.inputs, missing.attributes, expected=ArgumentError)
    wrong = case("wrong bias", (channels + 1,), None, _SAME)
    yield Case(wrong.id, wrong.inputs, wrong.attributes, expected=ShapeError)


# Taps over padding may be multiplied by zeros or left out.
_ORDINARY = ("filter", "prelu_activation_weights")


@cases.of(specs.FUSED_CONV2D, oracle=oracle.fused_conv2d, ordinary=_ORDINARY)
def fused_conv2d(corpus: Corpus) -> Iterator[Case]:
    """Every activation, bias and slopes of every shape, both data formats."""
    yield from _convolution(corpus, 3, full=True)
    inputs = (
        corpus.ordinary((1, 83, 83, 2), -1, 1),
        corpus.ordinary((3, 3, 2, 10), -1, 1),
        corpus.ordinary((10,), -1, 1),
        None,
    )
    yield Case("large", inputs, {**_SAME, "activation": "relu"})


@cases.of(specs.FUSED_DEPTHWISE_CONV2D, oracle=oracle.fused_depthwise, ordinary=_ORDINARY)
def fused_depthwise(corpus: Corpus) -> Iterator[Case]:
    """The same."""
    yield from _convolution(corpus, 4, full=False)
    inputs = (
        corpus.ordinary((1, 83, 83, 10), -1, 1),
        corpus.ordinary((3, 3, 10, 1), -1, 1),
        corpus.ordinary((10,), -1, 1),
        None,
    )
    yield Case("large", inputs, {**_SAME, "activation": "relu6"})


_PRODUCTS: tuple[tuple[str, tuple[Shape, Shape, Shape | None], dict[str, Any]], ...] = (
    ("bare", ((3, 4), (4, 5), None), {}),
    ("bias", ((3, 4), (4, 5), (5,)), {}),
    ("a transposed", ((4, 3), (4, 5), (3, 1)), {"transpose_a": True}),
    ("b transposed", ((3, 4), (5, 4), ()), {"transpose_b": True}),
    ("batch", ((2, 1, 3, 4), (3, 4, 2), (3, 1, 2)), {"activation": "relu"}),
    ("rank 5", ((1, 2, 1, 3, 4), (4, 2), None), {"activation": "relu"}),
    ("relu", ((3, 4), (4, 5), (5,)), {"activation": "relu"}),
    ("relu6", ((3, 4), (4, 5), (5,)), {"activation": "relu6"}),
    ("no inner", ((3, 0), (0, 2), (2,)), {"activation": "relu"}),
    ("no rows", ((0, 3), (3, 2), (2,)), {}),
    ("large", ((257, 3), (3, 259), (259,)), {"activation": "relu6"}),
    ("few rows", ((3, 100), (100, 900), (900,)), {"activation": "relu"}),
    ("few rows, b transposed", ((3, 100), (900, 100), (900,)), {"transpose_b": True}),
)


@cases.of(specs.FUSED_MAT_MUL, oracle=oracle.fused_mat_mul, ordinary=_ORDINARY[1:])
def fused_mat_mul(corpus: Corpus) -> Iterator[Case]:
    """Integers have few activations, complex numbers none; flags, broadcast batches."""
    for name, (a, b, bias), options in _PRODUCTS:
        inputs = (*(corpus.ordinary(shape, -1, 1) for shape in (a, b)), _ordinary(corpus, bias))
        refused = corpus.dtype in dt.COMPLEX and "activation" in options
        yield Case(name, (*inputs, None), options, expected=DTypeError if refused else None)
    left, right = corpus.ordinary((3, 4), -1, 1), corpus.ordinary((4, 5), -1, 1)
    offsets, slopes = corpus.ordinary((5,), -1, 1), corpus.ordinary((3, 1), -1, 1)
    refusal = None if corpus.floating else DTypeError
    for name in _FLOATING:
        yield Case(name, (left, right, offsets, None), {"activation": name}, expected=refusal)
    yield Case("falling", (left, right, offsets, None), _SAVING, expected=refusal)
    prelu = {"activation": "prelu"}
    yield Case("prelu", (left, right, offsets, slopes), prelu, expected=refusal)
    yield Case("no slopes", (left, right, None, None), prelu, expected=ArgumentError)


# Gradients. Kinks are missed: products are multiples of 1/16, and the bias is not.


def _quarters(corpus: Corpus, shape: Shape) -> Array:
    return corpus.small(shape, 6) / corpus.of(4)


def _offsets(corpus: Corpus, shape: Shape) -> Array:
    return np.asarray(_quarters(corpus, shape) + corpus.of(1.5 + 1 / 32))


_NAMES = ("linear", "relu", "relu6", "elu", "leakyrelu", "sigmoid", "prelu")


def _points(corpus: Corpus, taps: Shape, channels: int) -> Iterator[Case]:
    per_channel = (channels,)
    for name in _NAMES:
        yield _point(corpus, name, taps, per_channel, per_channel, {**_SAME, "activation": name})
    yield _point(corpus, "falling", taps, per_channel, per_channel, {**_SAME, **_SAVING})
    for name in ("relu", "prelu"):
        options = {**_FIRST, "activation": name}
        yield _point(corpus, f"NCHW, {name}", taps, per_channel, per_channel, options)
    for name, pad in (
        ("valid", "valid"),
        ("numeric pad", 1),
        ("explicit pad", ((0, 0), (1, 0), (0, 2), (0, 0))),
    ):
        options = {"strides": (1, 2), "pad": pad, "activation": "relu"}
        yield _point(corpus, name, taps, per_channel, None, options)
    for how in ("floor", "ceil", "round"):
        rounded = {"strides": (2, 1), "pad": 1, "dim_rounding_mode": how, "activation": "relu"}
        yield _point(corpus, f"rounded: {how}", taps, per_channel, None, rounded)
    smooth = {**_SAME, "activation": "sigmoid"}
    for name, bias in (("no bias", None), ("one bias", ()), ("bias of one", (1,))):
        yield _point(corpus, name, taps, bias, None, smooth)
    prelu = {**_SAME, "activation": "prelu"}
    yield _point(corpus, "all of rank 3", taps, (3, 1, channels), (1, 3, channels), prelu)
    yield _point(corpus, "slopes of one", taps, (channels,), (1,), prelu)
    yield _point(corpus, "no images", taps, (channels,), (channels,), prelu, images=0)


def _point(
    corpus: Corpus,
    name: str,
    taps: Shape,
    bias: Shape | None,
    slopes: Shape | None,
    options: dict[str, Any],
    images: int = 1,
) -> Case:
    shape = (images, 2, 3, 3) if "data_format" in options else (images, 3, 3, 2)
    inputs = (
        _quarters(corpus, shape),
        _quarters(corpus, taps),
        None if bias is None else _offsets(corpus, bias),
        _ordinary(corpus, slopes),
    )
    return Case(name, inputs, options)


_WRT = ("x", "filter", "bias", "prelu_activation_weights")
cases.gradients(specs.FUSED_CONV2D, *_WRT)(lambda corpus: _points(corpus, (2, 2, 2, 3), 3))


@cases.gradients(specs.FUSED_DEPTHWISE_CONV2D, *_WRT)
def fused_depthwise_points(corpus: Corpus) -> Iterator[Case]:
    yield from _points(corpus, (2, 2, 2, 2), 4)
    relu = {**_SAME, "activation": "relu"}
    yield _point(corpus, "one each", (2, 2, 2, 1), (2,), None, relu)


@cases.gradients(specs.FUSED_MAT_MUL, "a", "b", *_WRT[2:])
def fused_mat_mul_points(corpus: Corpus) -> Iterator[Case]:
    for case in _mat_mul_points(corpus):
        linear = {**case.attributes, "activation": "linear"}  # the only complex one
        yield case if corpus.floating else replace(case, attributes=linear)


def _mat_mul_points(corpus: Corpus) -> Iterator[Case]:
    for name in _NAMES:
        yield Case(
            name,
            (
                _quarters(corpus, (3, 2)),
                _quarters(corpus, (2, 2)),
                _offsets(corpus, (2,)),
                corpus.ordinary((3, 1), -1, 1),
            ),
            {"activation": name},
        )
    for left, right in ((False, True), (True, False), (True, True)):
        yield Case(
            f"transposed: {left}, {right}",
            (
                _quarters(corpus, (2, 3) if left else (3, 2)),
                _quarters(corpus, (4, 2) if right else (2, 4)),
                _offsets(corpus, (3, 4)),
                corpus.ordinary((), -1, 1),
            ),
            {"transpose_a": left, "transpose_b": right, "activation": "prelu"},
        )
    for name, a, b, bias in (
        ("no bias", (3, 2), (2, 2), None),
        ("batch on the left", (2, 3, 2), (2, 1), (3, 1)),
        ("batch on the right", (1, 2), (3, 2, 2), (3, 1, 2)),
        ("one bias", (3, 2), (2, 2), ()),
        ("no rows", (0, 2), (2, 2), (2,)),
        ("nothing inside", (2, 0), (0, 2), (2,)),
        ("a batch of none", (2, 2), (0, 2, 2), (2,)),
    ):
        inputs = (
            _quarters(corpus, a),
            _quarters(corpus, b),
            None if bias is None else _offsets(corpus, bias),
            None,
        )
        yield Case(name, inputs, {"activation": "sigmoid"})
