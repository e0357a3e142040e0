"""Runs a shader once, on a device for which there is no runtime yet."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import wgpu

MEMBERS: Final = 64  # work-items of a work-group


def run(device: wgpu.GPUDevice, text: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what a shader makes of an array, one work-item for each element of its first axis."""
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    memory = device.create_buffer_with_data(data=x, usage=usage)
    module = device.create_shader_module(code=text)
    compute = {"module": module, "entry_point": "run"}
    pipeline = device.create_compute_pipeline(layout="auto", compute=compute)
    resource = {"buffer": memory, "offset": 0, "size": memory.size}
    layout = pipeline.get_bind_group_layout(0)
    entries = [{"binding": 0, "resource": resource}]
    encoder = device.create_command_encoder()
    steps = encoder.begin_compute_pass()
    steps.set_pipeline(pipeline)
    steps.set_bind_group(0, device.create_bind_group(layout=layout, entries=entries))
    steps.dispatch_workgroups(len(x) // MEMBERS)
    steps.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(memory), x.dtype).reshape(x.shape)
