"""Batching of elementwise kernels that have neither an expression nor such a tangent."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import comparison, complexes, elementwise, rounding, strings
from tensorplug.ops.nn import activation

batching: BatchingTable = BatchingTable()

batching.elementwise(
    *(comparison.NOT_EQUAL, comparison.LOGICAL_XOR),
    *(comparison.IS_FINITE, comparison.IS_INF, comparison.IS_NAN),
    *(complexes.COMPLEX, complexes.REAL, complexes.IMAG, complexes.CONJ),
    elementwise.ADD_N,
    *(rounding.SIGN, rounding.SIGN_BIT, activation.STEP),
    *(strings.STATIC_REGEX_REPLACE, strings.STRING_TO_HASH_BUCKET_FAST),
)
