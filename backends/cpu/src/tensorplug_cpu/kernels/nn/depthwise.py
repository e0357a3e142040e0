"""Depthwise convolution in either data format."""

from __future__ import annotations

from tensorplug.algorithms import CONVOLUTION_DEPTHWISE
from tensorplug_cpu import depthwise
from tensorplug_cpu.jit.families import depthwise as native
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.kernels.nn.convolution import enter

kernels = Kernels()
enter(kernels, CONVOLUTION_DEPTHWISE, depthwise, native)
