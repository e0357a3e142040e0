"""Recurrent layers and their gradient kernels, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.nn import gru as gru_ops
from tensorplug.ops.nn import lstm as lstm_ops
from tensorplug.ops.nn import recurrent_steps as steps

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()


@decompositions.of(lstm_ops.LSTM)
def lstm(
    gates: Tensor,
    recurrent: Tensor,
    h: Tensor,
    c: Tensor,
    mask: Tensor | None,
) -> list[Tensor]:
    return steps.lstm((gates, recurrent, h, c), mask)


@decompositions.of(lstm_ops.LSTM_GRAD)
def lstm_grad(
    dhidden: Tensor,
    dcell: Tensor,
    gates: Tensor,
    recurrent: Tensor,
    h: Tensor,
    c: Tensor,
    hidden: Tensor,
    cell: Tensor,
    mask: Tensor | None,
) -> list[Tensor]:
    return steps.lstm_grad((dhidden, dcell, gates, recurrent, h, c, hidden, cell), mask)


@decompositions.of(gru_ops.GRU)
def gru(
    gates: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    h: Tensor,
    mask: Tensor | None,
) -> Tensor:
    return steps.gru((gates, recurrent, bias, h), mask)


@decompositions.of(gru_ops.GRU_GRAD)
def gru_grad(
    dhidden: Tensor,
    gates: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    h: Tensor,
    hidden: Tensor,
    mask: Tensor | None,
) -> list[Tensor]:
    return steps.gru_grad((dhidden, gates, recurrent, bias, h, hidden), mask)
