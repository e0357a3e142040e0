"""Gradients of recurrent layers, and of their gradient kernels.

A gradient kernel goes through all steps. Its own gradients, for second derivatives, are those of
its steps written with ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.autodiff.grad import vjp
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.ops.nn import gru as gru_ops
from tensorplug.ops.nn import lstm as lstm_ops
from tensorplug.ops.nn import recurrent_steps as steps
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

    Tensors = Sequence[Tensor]

rules: RuleTable = RuleTable()
for _spec in (lstm_ops.LSTM, lstm_ops.LSTM_GRAD, gru_ops.GRU, gru_ops.GRU_GRAD):
    rules.stop(_spec, "mask", because="a boolean mask has no derivative")


@rules.vjp(lstm_ops.LSTM, "gates", "recurrent", "h", "c")
def lstm(
    wanted: frozenset[str],
    dy_hidden: Tensor,
    dy_cell: Tensor,
    gates: Tensor,
    recurrent: Tensor,
    h: Tensor,
    c: Tensor,
    mask: Tensor | None,
    hidden: Tensor,
    cell: Tensor,
) -> dict[str, Tensor]:
    dgates, dh, dc = dispatch_multiple(
        lstm_ops.LSTM_GRAD, dy_hidden, dy_cell, gates, recurrent, h, c, hidden, cell, mask
    )
    gradients = {"gates": dgates, "h": dh, "c": dc}
    if "recurrent" in wanted:
        gradients["recurrent"] = steps.sum_of_steps(steps.states_before(h, hidden), dgates)
    return {name: gradients[name] for name in wanted}


@rules.vjp(gru_ops.GRU, "gates", "recurrent", "bias", "h")
def gru(
    wanted: frozenset[str],
    dy: Tensor,
    gates: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    h: Tensor,
    mask: Tensor | None,
    hidden: Tensor,
) -> dict[str, Tensor]:
    dgates, dproducts, dh = dispatch_multiple(
        gru_ops.GRU_GRAD, dy, gates, recurrent, bias, h, hidden, mask
    )
    gradients = {"gates": dgates, "h": dh}
    if "recurrent" in wanted:
        gradients["recurrent"] = steps.sum_of_steps(steps.states_before(h, hidden), dproducts)
    if "bias" in wanted:
        gradients["bias"] = sum_(dproducts, axis=(0, 1))
    return {name: gradients[name] for name in wanted}


_LSTM_OPERANDS = ("dhidden", "dcell", "gates", "recurrent", "h", "c", "hidden", "cell")
_GRU_OPERANDS = ("dhidden", "gates", "recurrent", "bias", "h", "hidden")


@rules.vjp(lstm_ops.LSTM_GRAD, *_LSTM_OPERANDS)
def lstm_grad(
    wanted: frozenset[str],
    dy_dgates: Tensor,
    dy_dh: Tensor,
    dy_dc: Tensor,
    dhidden: Tensor,
    dcell: Tensor,
    gates: Tensor,
    recurrent: Tensor,
    h: Tensor,
    c: Tensor,
    hidden: Tensor,
    cell: Tensor,
    mask: Tensor | None,
) -> dict[str, Tensor]:
    operands = (dhidden, dcell, gates, recurrent, h, c, hidden, cell)
    gradients = _pull(steps.lstm_grad, operands, mask, [dy_dgates, dy_dh, dy_dc])
    return {name: gradients[_LSTM_OPERANDS.index(name)] for name in wanted}


@rules.vjp(gru_ops.GRU_GRAD, *_GRU_OPERANDS)
def gru_grad(
    wanted: frozenset[str],
    dy_dgates: Tensor,
    dy_dproducts: Tensor,
    dy_dh: Tensor,
    dhidden: Tensor,
    gates: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    h: Tensor,
    hidden: Tensor,
    mask: Tensor | None,
) -> dict[str, Tensor]:
    operands = (dhidden, gates, recurrent, bias, h, hidden)
    gradients = _pull(steps.gru_grad, operands, mask, [dy_dgates, dy_dproducts, dy_dh])
    return {name: gradients[_GRU_OPERANDS.index(name)] for name in wanted}


def _pull(
    run: Callable[[Tensors, Tensor | None], list[Tensor]],
    operands: Tensors,
    mask: Tensor | None,
    cotangents: list[Tensor],
) -> list[Tensor]:
    """Return the cotangents of operands; without steps, most have none."""
    _, pull = vjp(lambda *given: run(given, mask), *operands, unconnected="zeros")
    return list(pull(cotangents))
