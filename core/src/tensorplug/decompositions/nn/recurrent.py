"""Recurrent layers and their gradient kernels, step by step."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.nn import gru as gru_ops
from tensorplug.ops.nn import lstm as lstm_ops
from tensorplug.ops.nn import recurrent_steps as steps

decompositions: DecompositionTable = DecompositionTable(alone=True)
decompositions.of(lstm_ops.LSTM)(
    lambda gates, recurrent, h, c, mask: steps.lstm((gates, recurrent, h, c), mask)
)
decompositions.of(lstm_ops.LSTM_GRAD)(
    lambda dhidden, dcell, gates, recurrent, h, c, hidden, cell, mask: steps.lstm_grad(
        (dhidden, dcell, gates, recurrent, h, c, hidden, cell), mask
    )
)
decompositions.of(gru_ops.GRU)(
    lambda gates, recurrent, bias, h, mask: steps.gru((gates, recurrent, bias, h), mask)
)
decompositions.of(gru_ops.GRU_GRAD)(
    lambda dhidden, gates, recurrent, bias, h, hidden, mask: steps.gru_grad(
        (dhidden, gates, recurrent, bias, h, hidden), mask
    )
)
