"""Gradients of recurrent layers, and of their gradient kernels.

A gradient kernel goes through all steps. Its own gradients, for second derivatives, are those of
its steps written with ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.autodiff.grad import vjp
from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.ops.nn import gru as gru_ops
from tensorplug.ops.nn import lstm as lstm_ops
from tensorplug.ops.nn import recurrent_steps as steps
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

    Tensors = Sequence[Tensor]

gradients = GradientTable()

for _spec in (lstm_ops.LSTM, lstm_ops.LSTM_GRAD, gru_ops.GRU, gru_ops.GRU_GRAD):
    gradients.stop(_spec, "mask", because="a boolean mask has no derivative")


@gradients.wrt(lstm_ops.LSTM, "operands")
def lstm_wrt_operands(
    dy_hidden: Tensor,
    dy_cell: Tensor,
    operands: Tensors,
    mask: Tensor | None,
    hidden: Tensor,
    cell: Tensor,
) -> list[Tensor]:
    cotangents = [dy_hidden, dy_cell, *operands, hidden, cell]
    dgates, dh, dc = dispatch_multiple(lstm_ops.LSTM_GRAD, cotangents, mask)
    before = steps.states_before(operands[2], hidden)
    return [dgates, steps.sum_of_steps(before, dgates), dh, dc]


@gradients.wrt(lstm_ops.LSTM_GRAD, "operands")
def lstm_grad_wrt_operands(
    dy_dgates: Tensor, dy_dh: Tensor, dy_dc: Tensor, operands: Tensors, mask: Tensor | None
) -> list[Tensor]:
    return _pull(steps.lstm_grad, operands, mask, [dy_dgates, dy_dh, dy_dc])


@gradients.wrt(gru_ops.GRU, "operands")
def gru_wrt_operands(
    dy: Tensor, operands: Tensors, mask: Tensor | None, hidden: Tensor
) -> list[Tensor]:
    dgates, dproducts, dh = dispatch_multiple(gru_ops.GRU_GRAD, [dy, *operands, hidden], mask)
    before = steps.states_before(operands[3], hidden)
    drecurrent = steps.sum_of_steps(before, dproducts)
    return [dgates, drecurrent, sum_(dproducts, axis=(0, 1)), dh]


@gradients.wrt(gru_ops.GRU_GRAD, "operands")
def gru_grad_wrt_operands(
    dy_dgates: Tensor,
    dy_dproducts: Tensor,
    dy_dh: Tensor,
    operands: Tensors,
    mask: Tensor | None,
) -> list[Tensor]:
    return _pull(steps.gru_grad, operands, mask, [dy_dgates, dy_dproducts, dy_dh])


def _pull(
    run: Callable[[Tensors, Tensor | None], list[Tensor]],
    operands: Tensors,
    mask: Tensor | None,
    cotangents: list[Tensor],
) -> list[Tensor]:
    """Return the cotangents of operands; without steps, most have none."""
    _, pull = vjp(lambda *given: run(given, mask), *operands, unconnected="zeros")
    return list(pull(cotangents))
