"""Depthwise convolution in either data format."""

from __future__ import annotations

from tensorplug.contract.tables import KernelTable
from tensorplug.ops.nn.convolution import depthwise as ops
from tensorplug_cpu import depthwise
from tensorplug_cpu.kernels.convolution import enter

kernels = KernelTable()
enter(kernels, ops.FAMILY, depthwise)
