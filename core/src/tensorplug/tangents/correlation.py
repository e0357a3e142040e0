"""Tangents of convolutions and of their gradient kernels: each is a product of two inputs."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.nn.convolution import convolution, depthwise, volumes

tangents: TangentTable = TangentTable()
for _family in (convolution.FAMILY, depthwise.FAMILY, volumes.FAMILY):
    for _spec in (_family.forward, _family.backprop_input, _family.backprop_filter):
        for _name in _spec.input_names:
            tangents.linear(_spec, _name)
