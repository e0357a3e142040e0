"""Which specs of the core the CPU backend has kernels for, and why."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import specs
from tensorplug.plugins import catalogue
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.plugin import TABLES

HOST: Final = "its decomposition makes one call of the same function of the host"
GROUP: Final = "its decomposition runs as one group, in less time than NumPy's functions take"
SHORT: Final = "its decomposition is as fast, for many elements and for few"
LOOP: Final = "its decomposition runs as one native loop, in a half to a tenth of NumPy's time"
DECOMPOSED_ON_PURPOSE: Final[dict[str, str]] = {  # kernel: why the decomposition is good enough
    "AddN": SHORT,
    "BatchToSpaceND": SHORT,
    "DepthToSpace": SHORT,
    "Dequantize": GROUP,
    "FakeQuantize": GROUP,
    "FusedBatchNorm": GROUP,
    "GRU": LOOP,
    "GRUGrad": LOOP,
    "LSTM": LOOP,
    "LSTMGrad": LOOP,
    "LowerBound": SHORT,
    "Lu": HOST,
    "MultiplyAdd": SHORT,
    "Multinomial": SHORT,
    "NonMaxSuppressionV3": HOST,
    "NonMaxSuppressionV4": HOST,
    "NonMaxSuppressionV5": HOST,
    "Quantize": GROUP,
    "RaggedGather": HOST,
    "RaggedRange": HOST,
    "RaggedTensorToTensor": HOST,
    "Rsqrt": SHORT,
    "SigmoidGrad": SHORT,
    "SoftmaxCrossEntropy": SHORT,
    "SoftmaxCrossEntropyGrad": SHORT,
    "SoftmaxGrad": SHORT,
    "SpaceToBatchND": SHORT,
    "SpaceToDepth": SHORT,
    "SparseFillEmptyRows": HOST,
    "SparseReshape": HOST,
    "SquaredDifference": SHORT,
    "StaticRegexReplace": HOST,
    "StringNGrams": HOST,
    "StringSplit": HOST,
    "StringToHashBucketFast": HOST,
    "Tile": SHORT,
    "UpperBound": SHORT,
    "Where": HOST,
}


def test_the_kernels_that_are_missing_are_missing_on_purpose():
    native = {entry.spec.name for table in TABLES for entry in table}
    assert {spec.name for spec in specs} - native == set(DECOMPOSED_ON_PURPOSE)


def test_a_kernel_says_what_it_is_better_at_than_its_decomposition():
    decomposed = {entry.spec.name for table in catalogue.decompositions() for entry in table}
    for table in TABLES:
        assert isinstance(table, Kernels)
        assert {entry.spec.name for entry in table} & decomposed <= set(table.reasons)
