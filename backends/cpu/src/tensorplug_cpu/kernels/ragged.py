"""Ragged tensors, as on the host of any device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tensorplug.contract.tables import KernelTable
from tensorplug.host_functions import ragged
from tensorplug.ops import ragged as ops
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()


@kernels.prepare(ops.RAGGED_GATHER)
def ragged_gather(
    params_nested_splits: list[TensorType], params_dense_values: TensorType, indices: TensorType
) -> Call:
    return quietly(ragged.gather)


@kernels.prepare(ops.RAGGED_RANGE)
def ragged_range(starts: TensorType, limits: TensorType, deltas: TensorType) -> Call:
    return quietly(ragged.ragged_range)


@kernels.prepare(ops.RAGGED_TENSOR_TO_TENSOR)
def ragged_tensor_to_tensor(
    shape: TensorType,
    values: TensorType,
    default_value: TensorType,
    row_partition_tensors: list[TensorType],
    *,
    row_partition_types: tuple[str, ...],
) -> Call:
    return quietly(partial(ragged.to_tensor, row_partition_types=row_partition_types))
