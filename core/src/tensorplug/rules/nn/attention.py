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
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.mapping.derived import aligned, in_front
from tensorplug.ops.elementwise.arithmetic import add
from tensorplug.ops.elementwise.casting import astype
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
    from tensorplug.contract.spec import TensorType

rules: RuleTable = RuleTable()
for _spec in (ops.ATTENTION, ops.ATTENTION_GRAD):
    rules.stop(_spec, "mask", because="a boolean mask has no derivative")
    rules.stop(_spec, "lengths", because="an integer has no derivative")


@rules.vjp(ops.ATTENTION, "q", "k", "v", "bias")
def attention(
    wanted: frozenset[str],
    dy_y: Tensor,
    dy_log_sum_exp: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    y: Tensor,
    log_sum_exp: Tensor,
    causal: Any,
    scale: float,
) -> dict[str, Tensor]:
    """Return dq, dk and dv, of one call of the gradient kernel, and dS for the bias."""
    delta = _delta(dy_y, dy_log_sum_exp, y)
    options = {"causal": causal, "scale": scale}
    gradients: dict[str, Tensor] = {}
    if wanted != {"bias"}:
        of_qkv = dispatch_multiple(
            ops.ATTENTION_GRAD, dy_y, q, k, v, bias, mask, lengths, log_sum_exp, delta, **options
        )
        gradients.update(zip("qkv", of_qkv, strict=True))
    if "bias" in wanted:
        assert bias is not None  # the gradient is with respect to it
        p = probabilities(scores(q, k, bias, mask, lengths, **options), log_sum_exp)
        ds = p * (times_transposed(wide(dy_y), wide(v)) - column(delta))
        gradients["bias"] = astype(ds, bias.dtype)  # as large as the scores; the tape sums it
    return {name: gradients[name] for name in wanted}


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
        slopes: dict[str, Callable[[], Tensor]] = {
            "dy": lambda: matmul(self.w, v) + matmul(self.p, c),
            "q": lambda: (matmul(self.e, k) + matmul(self.ds, b)) * self.scale,
            "k": lambda: (transposed_times(self.e, q) + transposed_times(self.ds, a)) * self.scale,
            "v": lambda: transposed_times(self.w, self.dy),
            "bias": lambda: self.e,  # the tape sums it to the bias's shape
            "log_sum_exp": lambda: -sum_(self.e, axis=-1),
            "delta": lambda: -sum_(self.w, axis=-1),
        }
        return slopes[name]()


@rules.vjp(ops.ATTENTION_GRAD, "dy", "q", "k", "v", "bias", "log_sum_exp", "delta")
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
    lengths: Tensor | None,
    log_sum_exp: Tensor,
    delta: Tensor,
    causal: Any,
    scale: float,
) -> dict[str, Tensor]:
    p = probabilities(scores(q, k, bias, mask, lengths, causal=causal, scale=scale), log_sum_exp)
    abc = [wide(x) for x in (ddy_dq, ddy_dk, ddy_dv)]
    second = _Second(abc, wide(dy), [wide(x) for x in (q, k, v)], p, delta, scale)
    rows = {"log_sum_exp", "delta"}  # these are wide themselves
    return {
        name: second.wrt(name) if name in rows else astype(second.wrt(name), dy.dtype)
        for name in wanted
    }


# Tangents of scaled dot-product attention.
#
# With S the scores and P = exp(S - log_sum_exp), and dots for tangents,
#
#     S' = scale (q' k^T + q k'^T) + bias'      log_sum_exp' = rowsum(P S')
#     y' = P (S' - log_sum_exp') v + P v'


@rules.jvp(ops.ATTENTION, "q", "k", "v", "bias")
def attention_jvp(
    q_dot: Tensor | None,
    k_dot: Tensor | None,
    v_dot: Tensor | None,
    bias_dot: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    y: Tensor,
    log_sum_exp: Tensor,
    causal: Any,
    scale: float,
) -> list[Tensor | None]:
    p = probabilities(scores(q, k, bias, mask, lengths, causal=causal, scale=scale), log_sum_exp)
    of_values = None if v_dot is None else matmul(p, wide(v_dot))
    of_scores = [
        times_transposed(wide(a) * scale, wide(b))
        for a, b in ((q_dot, k), (q, k_dot))
        if a is not None and b is not None
    ]
    if bias_dot is not None:
        of_scores.append(wide(bias_dot))
    if not of_scores:
        return [None if of_values is None else astype(of_values, y.dtype), None]
    weighted = p * reduce(add, of_scores)
    of_rows = sum_(weighted, axis=-1)
    along = matmul(weighted - p * column(of_rows), wide(v))
    return [astype(along if of_values is None else along + of_values, y.dtype), of_rows]


@rules.batch(ops.ATTENTION)
def attention_batch(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: tuple[TensorType, ...],
) -> Sequence[Tensor]:
    whole = in_front(q, "q" in batched, size)
    keys = [in_front(x, name in batched, 1) for name, x in (("k", k), ("v", v))]
    added = _added(out[0].rank, batched, bias, mask, lengths)
    return dispatch_multiple(ops.ATTENTION, whole, *keys, *added, **attributes)


def _added(
    rank: int,
    batched: frozenset[str],
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
) -> list[Tensor | None]:
    """Return what broadcasts to the scores, of the rank of q, or to their leading axes."""
    return [
        *aligned(rank, batched, bias=bias, mask=mask),
        *aligned(rank - 2, batched, lengths=lengths),
    ]


@rules.batch(ops.ATTENTION_GRAD)
def attention_grad_batch(
    dy: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    log_sum_exp: Tensor,
    delta: Tensor,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: tuple[TensorType, ...],
) -> Sequence[Tensor]:
    tensors = {"dy": dy, "q": q, "k": k, "v": v, "log_sum_exp": log_sum_exp, "delta": delta}
    *first, rows, last = [in_front(x, name in batched, size) for name, x in tensors.items()]
    added = _added(out[0].rank, batched, bias, mask, lengths)
    return dispatch_multiple(ops.ATTENTION_GRAD, *first, *added, rows, last, **attributes)
