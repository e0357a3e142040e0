"""Gradients of scaled dot-product attention and of its gradient kernel.

With S the scores, P = exp(S - log_sum_exp) and, for gradients dy and dl of the two outputs,

    delta = rowsum(dy y) - dl         dS = P (dy v^T - delta)

the gradient kernel gives dq = scale dS k, dk = scale dS^T q and dv = P^T dy. To it log_sum_exp
and delta are inputs like the others; the rules of the ops that made them account for their
dependence on q, k and v. For incoming gradients a, b, c of dq, dk, dv, with

    G = scale (a k^T + q b^T)         that of dS
    W = G P                           that of dy v^T, and minus that of delta
    E = P (G (dy v^T - delta) + dy c^T)   that of S, and minus that of log_sum_exp
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.ops.elementwise import astype
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.nn import attention as ops
from tensorplug.ops.nn.attention_scores import (
    column,
    probabilities,
    scores,
    times_transposed,
    transposed_times,
    wide,
)
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor

    Tensors = Sequence[Tensor]

gradients: GradientTable = GradientTable()

gradients.stop(ops.ATTENTION, "mask", because="a boolean mask has no derivative")
gradients.stop(ops.ATTENTION_GRAD, "mask", because="a boolean mask has no derivative")


@gradients.of(ops.ATTENTION, "q", "k", "v", "bias")
def attention(
    wanted: frozenset[str],
    dy_y: Tensor,
    dy_log_sum_exp: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    y: Tensor,
    log_sum_exp: Tensor,
    causal: Any,
    scale: float,
) -> dict[str, Tensor]:
    """Return dq, dk and dv, of one call of the gradient kernel, and dS for the bias."""
    delta = _delta(dy_y, dy_log_sum_exp, y)
    options = {"causal": causal, "scale": scale}
    found: dict[str, Tensor] = {}
    if wanted != {"bias"}:
        gradients_of_qkv = dispatch_multiple(
            ops.ATTENTION_GRAD, dy_y, q, k, v, bias, mask, log_sum_exp, delta, **options
        )
        found.update(zip("qkv", gradients_of_qkv, strict=True))
    if "bias" in wanted:
        assert bias is not None  # the gradient is with respect to it
        p = probabilities(scores(q, k, bias, mask, **options), log_sum_exp)
        ds = p * (times_transposed(wide(dy_y), wide(v)) - column(delta))
        found["bias"] = astype(ds, bias.dtype)  # as large as the scores; the tape sums it
    return {name: found[name] for name in wanted}


def _delta(dy: Tensor, of_rows: Tensor, y: Tensor) -> Tensor:
    return sum_(wide(dy) * wide(y), axis=-1) - of_rows


@dataclass(frozen=True)
class _Second:
    """A call of the gradient kernel and what came in for its outputs, in the notation above.

    All tensors are wide.
    """

    abc: Tensors
    dy: Tensor
    qkv: Tensors
    p: Tensor
    delta: Tensor
    scale: float

    @cached_property
    def g(self) -> Tensor:
        """G."""
        (a, b, _), (q, k, _) = self.abc, self.qkv
        return (times_transposed(a, k) + times_transposed(q, b)) * self.scale

    @cached_property
    def w(self) -> Tensor:
        """W."""
        return self.g * self.p

    @cached_property
    def slope(self) -> Tensor:
        """DS / P."""
        return times_transposed(self.dy, self.qkv[2]) - column(self.delta)

    @cached_property
    def e(self) -> Tensor:
        """E."""
        return self.p * (self.g * self.slope + times_transposed(self.dy, self.abc[2]))

    @cached_property
    def ds(self) -> Tensor:
        """DS."""
        return self.p * self.slope

    def wrt(self, name: str) -> Tensor:
        """Return the gradient with respect to one input.

        Those of q and k come through S, and through the factors k and q themselves.
        """
        (a, b, c), (q, k, v) = self.abc, self.qkv
        match name:
            case "dy":
                return matmul(self.w, v) + matmul(self.p, c)
            case "q":
                return (matmul(self.e, k) + matmul(self.ds, b)) * self.scale
            case "k":
                return (transposed_times(self.e, q) + transposed_times(self.ds, a)) * self.scale
            case "v":
                return transposed_times(self.w, self.dy)
            case "bias":
                return self.e  # the tape sums it to the bias's shape
            case "log_sum_exp":
                return -sum_(self.e, axis=-1)
            case _:
                return -sum_(self.w, axis=-1)  # of delta


@gradients.of(ops.ATTENTION_GRAD, "dy", "q", "k", "v", "bias", "log_sum_exp", "delta")
def attention_grad(
    wanted: frozenset[str],
    ddy_dq: Tensor,
    ddy_dk: Tensor,
    ddy_dv: Tensor,
    dy: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    log_sum_exp: Tensor,
    delta: Tensor,
    causal: Any,
    scale: float,
) -> dict[str, Tensor]:
    p = probabilities(scores(q, k, bias, mask, causal=causal, scale=scale), log_sum_exp)
    abc = [wide(x) for x in (ddy_dq, ddy_dk, ddy_dv)]
    second = _Second(abc, wide(dy), [wide(x) for x in (q, k, v)], p, delta, scale)
    rows = {"log_sum_exp", "delta"}  # these are wide themselves
    return {
        name: second.wrt(name) if name in rows else astype(second.wrt(name), dy.dtype)
        for name in wanted
    }
