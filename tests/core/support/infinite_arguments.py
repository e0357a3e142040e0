"""Functions that subtract a maximum, at infinite arguments: values and derivatives by NumPy.

A result is infinite because of the elements that equal it; these share its slope equally, and its
second derivative is 0. Without such a result the derivatives are the limits of the ordinary ones.
"""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Array = Any


class Point(NamedTuple):
    """A function of a vector, and what is known of it at ``x``.

    ``slope``: the gradient of the sum of the results; ``curve``: the derivatives of ``slope``.
    """

    name: str
    f: Callable[[tp.Tensor], tp.Tensor]
    x: list[float]
    value: Array
    slope: Array
    curve: Array


ROWS: list[list[float]] = [
    *([-inf], [inf], [-inf, -inf], [inf, inf], [inf, 0], [0, -inf], [inf, -inf], [-inf] * 3),
    *([-inf, 0, 0], [2, -inf, 1], [inf, inf, 0, -inf], [-inf, -inf, inf, 1, inf], [1, 2, 2]),
    [nan, -inf],
]


def _log_sum_exp(x: Array) -> tuple[float, Array, Array]:
    """Return log(sum(exp(x))), its slope and its curve."""
    most = x.max()
    if np.isnan(most):
        lost = np.full(x.size, nan)
        return nan, lost, np.full((x.size, x.size), nan)
    if np.isinf(most):
        tied = x == most
        return most, tied / tied.sum(), np.zeros((x.size, x.size))
    powers = np.exp(x - most)
    share = powers / powers.sum()
    return most + np.log(powers.sum()), share, np.diag(share) - np.outer(share, share)


def _running(x: Array) -> tuple[Array, Array, Array]:
    """Return the running sums, which are joined two by two: infinite ones get half each."""
    joined = [
        (number, unit, np.zeros((x.size, x.size)))
        for number, unit in zip(x, np.eye(x.size), strict=True)
    ]
    step = 1
    while step < x.size:
        joined = [
            *joined[:step],
            *[_join(a, b) for a, b in zip(joined[step:], joined, strict=False)],
        ]
        step *= 2
    values, slopes, curves = zip(*joined, strict=True)
    return np.array(values), sum(slopes), sum(curves)


def _join(*parts: tuple[float, Array, Array]) -> tuple[float, Array, Array]:
    value, share, curve = _log_sum_exp(np.array([part[0] for part in parts]))
    slopes = np.array([part[1] for part in parts])
    bent = sum(weight * part[2] for weight, part in zip(share, parts, strict=True))
    return value, share @ slopes, bent + slopes.T @ curve @ slopes


def _of_sums() -> Iterator[Point]:
    for row in ROWS:
        x = np.array(row, np.float64)
        with np.errstate(invalid="ignore"):
            value, slope, curve = _log_sum_exp(x)
            yield Point("log_sum_exp", tp.log_sum_exp, row, value, slope, curve)
            yield Point(
                "log_sum_exp of a row",
                lambda x: tp.log_sum_exp(tp.expand_dims(x, axis=0), axis=-1, keepdims=True),
                row,
                [[value]],
                slope,
                curve,
            )
            if x.size == 2:
                f = lambda x: tp.logaddexp(x[0], x[1])  # noqa: E731  # a column of the table
                yield Point("logaddexp", f, row, value, slope, curve)
            if not np.isnan(x).any():
                yield Point("cumulative_log_sum_exp", tp.cumulative_log_sum_exp, row, *_running(x))


def _of_classes() -> Iterator[Point]:
    """Softmax and losses, which are NaN unless the largest score is finite."""
    for row in ROWS:
        x = np.array(row, np.float64)
        with np.errstate(invalid="ignore"):
            total, share, curve = _log_sum_exp(x)
        weights = np.arange(1.0, x.size + 1)
        finite = np.isfinite(total)
        if not finite:
            share, curve = np.full(x.size, nan), np.full((x.size, x.size), nan)

        def weighted(x: tp.Tensor, weights: Array = weights) -> tp.Tensor:
            return tp.nn.softmax(x) * tp.asarray(weights, dtype=x.dtype)

        mean = (weights * share).sum()
        bend = _softmax_curve(share, weights)
        yield Point("softmax", weighted, row, weights * share, share * (weights - mean), bend)
        yield Point(
            "log_softmax",
            tp.nn.log_softmax,
            row,
            x - total if finite else share,
            1 - share * x.size,
            -x.size * curve,
        )
        for at in range(x.size):
            hot = (np.arange(x.size) == at) * 1.0
            loss = total - x[at] if finite else nan
            for name, f in _losses_of_a_class(at, hot):
                yield Point(name, f, row, loss, share - hot, curve)
        yield Point(
            "an ignored class",
            _ignored,
            row,
            [0],
            np.zeros(x.size),
            curve * 0 if finite else np.zeros_like(curve),
        )
        possible = x > -inf
        if finite and possible.sum() == 2:
            soft = possible * np.arange(1.0, x.size + 1)

            def of_soft_labels(x: tp.Tensor, soft: Array = soft) -> tp.Tensor:
                labels = tp.asarray(soft, dtype=x.dtype)
                return tp.losses.softmax_cross_entropy(labels, x, reduction="none")

            loss = (soft * (total - np.where(possible, x, 0))).sum()
            slope = share * soft.sum() - soft
            yield Point("soft labels", of_soft_labels, row, loss, slope, curve * soft.sum())


def _softmax_curve(share: Array, weights: Array) -> Array:
    """Return the second derivatives of ``sum(weights * softmax(x))``."""
    mean = (weights * share).sum()
    away = share * (weights - mean)
    return np.diag(away) - np.outer(away, share) - np.outer(share, away)


def _losses_of_a_class(at: int, hot: Array) -> Iterator[tuple[str, Callable[[tp.Tensor], Any]]]:
    def sparse(x: tp.Tensor) -> tp.Tensor:
        return tp.losses.sparse_softmax_cross_entropy(at, x, reduction="none")

    def one_hot(x: tp.Tensor) -> tp.Tensor:
        labels = tp.asarray(hot, dtype=x.dtype)
        return tp.losses.softmax_cross_entropy(labels, x, reduction="none")

    yield "sparse_softmax_cross_entropy", sparse
    yield "softmax_cross_entropy", one_hot


def _ignored(x: tp.Tensor) -> tp.Tensor:
    return tp.losses.sparse_softmax_cross_entropy(
        [-1], tp.expand_dims(x, axis=0), ignore_index=-1, label_smoothing=0.1, reduction="none"
    )


def _sigmoid_cross_entropy(label: float) -> Callable[[tp.Tensor], tp.Tensor]:
    def loss(x: tp.Tensor) -> tp.Tensor:
        return tp.losses.sigmoid_cross_entropy(tp.ones_like(x) * label, x, reduction="none")

    return loss


def _of_numbers() -> Iterator[Point]:
    """Functions of one number each: values, slopes and curves of the limits."""
    zeros = [0.0, 0.0]
    both = [inf, -inf]
    rows: list[tuple[str, Any, list[float], list[float], list[float], list[float]]] = [
        ("softplus", tp.nn.softplus, both, [inf, 0], [1, 0], zeros),
        ("sigmoid", tp.nn.sigmoid, both, [1, 0], zeros, zeros),
        ("label 0", _sigmoid_cross_entropy(0), both, [nan, nan], [1, 0], zeros),
        ("label 1", _sigmoid_cross_entropy(1), both, [nan, inf], [0, -1], zeros),
        ("label 3/4", _sigmoid_cross_entropy(0.75), both, [nan, inf], [0.25, -0.75], zeros),
        ("log1p", tp.log1p, [inf, -1.0], [inf, -inf], [0, inf], [0, -inf]),
        ("log_ndtr", tp.special.log_ndtr, both, [0, -inf], [0, inf], [0, -1]),
        ("expm1", tp.expm1, [-inf], [-1], [0], [0]),
        (
            "logit",
            tp.special.logit,
            [0.0, 1.0, 0.5],
            [-inf, inf, 0],
            [inf, inf, 4],
            [-inf, inf, 0],
        ),
    ]
    for name, f, x, value, slope, curve in rows:
        yield Point(name, f, x, value, slope, np.diag(np.array(curve, np.float64)))


POINTS: list[Point] = [*_of_sums(), *_of_classes(), *_of_numbers()]


def check(point: Point, dtype: tp.DType, *, bits: float) -> None:
    """Compare values and derivatives in all ways that there are to compute them.

    ``bits``: the relative difference that is allowed.
    """

    def same(actual: Any, wanted: Any, what: str) -> None:
        found = np.asarray(actual.numpy(), np.float64)
        wanted = np.asarray(wanted, np.float64)
        assert found.shape == wanted.shape, what
        np.testing.assert_allclose(found, wanted, rtol=bits, atol=bits, err_msg=what)

    f = point.f

    def total(x: tp.Tensor) -> tp.Tensor:
        return tp.sum(f(x))

    def slope(x: tp.Tensor) -> tp.Tensor:
        return tp.grad(total, unconnected="zeros")(x)

    x = tp.asarray(point.x, dtype=dtype)
    units = [tp.asarray(row, dtype=dtype) for row in np.eye(len(point.x))]
    same(f(x), point.value, "value")
    same(tp.compile(f)(x), point.value, "compiled value")
    same(slope(x), point.slope, "gradient")
    same(tp.compile(slope)(x), point.slope, "compiled gradient")
    one_direction = np.isfinite(point.slope).all() and np.isfinite(point.curve).all()
    if not one_direction:
        return  # 0 times an infinite slope
    for unit, along, row in zip(units, point.slope, point.curve, strict=True):
        if not np.isnan(np.asarray(point.value, np.float64)).any():
            same(tp.jvp(f, [x], [unit])[1].sum(), along, "tangent")
        same(tp.jvp(slope, [x], [unit])[1], row, "second derivative, forwards")
        second = tp.grad(lambda x, unit=unit: tp.sum(slope(x) * unit), unconnected="zeros")
        same(second(x), row, "second derivative, backwards")
        if unit is units[0]:
            same(tp.compile(second)(x), row, "compiled second derivative")
