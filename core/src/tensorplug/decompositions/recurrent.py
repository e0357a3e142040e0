"""Recurrent layers and their gradient kernels, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.nn import gru as gru_ops
from tensorplug.ops.nn import lstm as lstm_ops
from tensorplug.ops.nn import recurrent_steps as steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(lstm_ops.LSTM)
def lstm(operands: Sequence[Tensor], mask: Tensor | None) -> list[Tensor]:
    return steps.lstm(operands, mask)


@decompositions.of(lstm_ops.LSTM_GRAD)
def lstm_grad(operands: Sequence[Tensor], mask: Tensor | None) -> list[Tensor]:
    return steps.lstm_grad(operands, mask)


@decompositions.of(gru_ops.GRU)
def gru(operands: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    return steps.gru(operands, mask)


@decompositions.of(gru_ops.GRU_GRAD)
def gru_grad(operands: Sequence[Tensor], mask: Tensor | None) -> list[Tensor]:
    return steps.gru_grad(operands, mask)
