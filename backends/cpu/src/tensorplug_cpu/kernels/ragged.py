"""Ragged tensors, as on the host of any device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tensorplug.algorithms import host_functions
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()


@kernels.prepare(specs.RAGGED_GATHER, because="faster")
def ragged_gather(
    params_nested_splits: list[TensorType], params_dense_values: TensorType, indices: TensorType
) -> Call:
    return without_warnings(host_functions.ragged.gather)


@kernels.prepare(specs.RAGGED_RANGE, because="faster")
def ragged_range(starts: TensorType, limits: TensorType, deltas: TensorType) -> Call:
    return without_warnings(host_functions.ragged.ragged_range)


@kernels.prepare(specs.RAGGED_TENSOR_TO_TENSOR, because="faster")
def ragged_tensor_to_tensor(
    shape: TensorType,
    values: TensorType,
    default_value: TensorType,
    row_partition_tensors: list[TensorType],
    *,
    row_partition_types: tuple[str, ...],
) -> Call:
    return without_warnings(
        partial(host_functions.ragged.to_tensor, row_partition_types=row_partition_types)
    )
