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
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

    Tensors = Sequence[Tensor]

gradients = GradientTable()

gradients.stop(ops.ATTENTION, "mask", because="a boolean mask has no derivative")
gradients.stop(ops.ATTENTION_GRAD, "mask", because="a boolean mask has no derivative")


@gradients.wrt(ops.ATTENTION, "qkv")
def attention_wrt_qkv(
    dy_y: Tensor,
    dy_log_sum_exp: Tensor,
    qkv: Tensors,
    bias: Tensor | None,
    mask: Tensor | None,
    y: Tensor,
    log_sum_exp: Tensor,
    causal: Any,
    scale: float,
) -> list[Tensor]:
    """Return dq, dk and dv, of one call of the gradient kernel."""
    delta = _delta(dy_y, dy_log_sum_exp, y)
    return dispatch_multiple(
        ops.ATTENTION_GRAD,
        dy_y,
        qkv,
        bias,
        mask,
        log_sum_exp,
        delta,
        causal=causal,
        scale=scale,
    )


@gradients.wrt(ops.ATTENTION, "bias")
def attention_wrt_bias(
    dy_y: Tensor,
    dy_log_sum_exp: Tensor,
    qkv: Tensors,
    bias: Tensor,
    mask: Tensor | None,
    y: Tensor,
    log_sum_exp: Tensor,
    causal: Any,
    scale: float,
) -> Tensor:
    """Return dS, as large as the scores; the tape sums it to the bias's shape."""
    p = probabilities(scores(qkv, bias, mask, causal=causal, scale=scale), log_sum_exp)
    delta = _delta(dy_y, dy_log_sum_exp, y)
    ds = p * (times_transposed(wide(dy_y), wide(qkv[2])) - column(delta))
    return astype(ds, bias.dtype)


def _delta(dy: Tensor, of_rows: Tensor, y: Tensor) -> Tensor:
    return sum_(wide(dy) * wide(y), axis=-1) - of_rows


@dataclass(frozen=True)
class _Second:
    """A call of the gradient kernel and what came in for its outputs, in the notation above."""

    abc: Tensors
    dy: Tensor
    qkv: Tensors
    bias: Tensor | None
    mask: Tensor | None
    log_sum_exp: Tensor
    delta: Tensor
    attributes: dict[str, Any]

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return float(self.attributes["scale"])

    @cached_property
    def p(self) -> Tensor:
        """The probabilities."""
        found = scores(self.qkv, self.bias, self.mask, **self.attributes)
        return probabilities(found, self.log_sum_exp)

    @cached_property
    def g(self) -> Tensor:
        """G."""
        (a, b, _), (q, k, _) = map(wide, self.abc), map(wide, self.qkv)
        return (times_transposed(a, k) + times_transposed(q, b)) * self.scale

    @cached_property
    def slope(self) -> Tensor:
        """DS / P."""
        return times_transposed(wide(self.dy), wide(self.qkv[2])) - column(self.delta)

    @cached_property
    def e(self) -> Tensor:
        """E."""
        return self.p * (self.g * self.slope + times_transposed(wide(self.dy), wide(self.abc[2])))

    def for_dy(self) -> Tensor:
        """Return W v + P c."""
        of_slope = matmul(self.g * self.p, wide(self.qkv[2]))
        return astype(of_slope + matmul(self.p, wide(self.abc[2])), self.dy.dtype)

    def for_qkv(self) -> list[Tensor]:
        """Return the gradients through S, plus those through the factors k, q and v themselves."""
        (a, b, _), (q, k, _) = map(wide, self.abc), map(wide, self.qkv)
        ds = self.p * self.slope
        of_q = matmul(self.e, k) + matmul(ds, b)
        of_k = transposed_times(self.e, q) + transposed_times(ds, a)
        of_v = transposed_times(self.g * self.p, wide(self.dy))
        found = (of_q * self.scale, of_k * self.scale, of_v)
        return [astype(cotangent, self.dy.dtype) for cotangent in found]

    def for_bias(self) -> Tensor:
        """Return E, which the tape sums to the bias's shape."""
        return astype(self.e, self.dy.dtype)

    def for_log_sum_exp(self) -> Tensor:
        """Return minus E, summed along the keys."""
        return -sum_(self.e, axis=-1)

    def for_delta(self) -> Tensor:
        """Return minus W, summed along the keys."""
        return -sum_(self.g * self.p, axis=-1)


def _rule(answer: Callable[[_Second], Any]) -> Callable[..., Any]:
    """Return a rule of the gradient kernel; each rule needs all inputs and gradients."""

    def rule(
        ddy_dq: Tensor,
        ddy_dk: Tensor,
        ddy_dv: Tensor,
        dy: Tensor,
        qkv: Tensors,
        bias: Tensor | None,
        mask: Tensor | None,
        log_sum_exp: Tensor,
        delta: Tensor,
        attributes: dict[str, Any],
    ) -> Any:
        abc = ddy_dq, ddy_dk, ddy_dv
        return answer(_Second(abc, dy, qkv, bias, mask, log_sum_exp, delta, attributes))

    return rule


for _name, _answer in {
    "dy": _Second.for_dy,
    "qkv": _Second.for_qkv,
    "bias": _Second.for_bias,
    "log_sum_exp": _Second.for_log_sum_exp,
    "delta": _Second.for_delta,
}.items():
    gradients.wrt(ops.ATTENTION_GRAD, _name)(_rule(_answer))
