"""Batching of recurrent layers: the examples join the batch of sequences.

Where weights differ from example to example, their decompositions are batched.
"""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops.nn import gru, lstm

batching: BatchingTable = BatchingTable()

for _spec in (gru.GRU, gru.GRU_GRAD, lstm.LSTM, lstm.LSTM_GRAD):
    _weights = ("recurrent", "bias")
    batching.folded(_spec, *(name for name in _spec.input_names if name not in _weights))
