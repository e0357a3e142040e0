"""Derivatives of functions that subtract a maximum, where that is infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.core.support.infinite_arguments import POINTS, check

import tensorplug as tp

if TYPE_CHECKING:
    from tests.core.support.infinite_arguments import Point

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.name} {point.x}")
def test_limits(point: Point) -> None:
    check(point, tp.float64, bits=1e-12)


SEEN = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 1]], bool)
Q, K, V, DY = np.random.default_rng(7).normal(size=(4, 3, 2))


@pytest.mark.parametrize("mask", [SEEN, np.where(SEEN, 0.0, -np.inf)], ids=["boolean", "added"])
def test_a_query_that_sees_no_key(mask: np.ndarray) -> None:
    """It takes no part: the derivatives are those of the other queries alone."""
    given = tp.asarray(Q), tp.asarray(K), tp.asarray(V)

    def attended(q: tp.Tensor, k: tp.Tensor, v: tp.Tensor, *, rows: list[int]) -> tp.Tensor:
        at = tp.asarray(rows)
        y = tp.nn.scaled_dot_product_attention(tp.take(q, at, axis=0), k, v, mask[rows])
        return tp.sum(y * tp.asarray(DY[rows]))

    def derivatives(rows: list[int]) -> tp.Tensor:
        slopes = tp.grad(lambda *x: attended(*x, rows=rows), (0, 1, 2))
        return lambda *x: tp.stack(list(slopes(*x)))

    whole, others = derivatives([0, 1, 2]), derivatives([0, 2])
    wanted = others(*given).numpy()
    np.testing.assert_allclose(whole(*given).numpy(), wanted, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(tp.compile(whole)(*given).numpy(), wanted, rtol=1e-12, atol=1e-15)
    along = [tp.asarray(DY), tp.asarray(Q), tp.asarray(K)]
    wanted = tp.jvp(others, given, along)[1].numpy()
    np.testing.assert_allclose(
        tp.jvp(whole, given, along)[1].numpy(), wanted, rtol=1e-11, atol=1e-14
    )
    assert np.isfinite(wanted).all()
