"""What wgpu raises, as errors for the user."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import wgpu

from tensorplug.plugin import BackendMemoryError, DeviceLostError, TensorplugError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOST: Final = "device is lost"  # of wgpu-native, which has no kind of error of its own for it
_LINES: Final = 20


class ShaderError(TensorplugError, RuntimeError):
    """The compiler refused one of our shaders; the message shows where."""


@contextmanager
def translated(device: str, action: str) -> Iterator[None]:
    """Raise errors of ours for those that wgpu raises inside, which came from ``action``.

    An error that is none of these is a bug in this package: it gets a note.

    Raises:
        DeviceLostError: the device is gone.
        BackendMemoryError: memory ran out.

    """
    try:
        yield
    except wgpu.GPUError as error:
        if _LOST in str(error):
            raise DeviceLostError(
                f"{device} is lost, and with it all tensors stored there, which {action} found. "
                'tp.remove_backend("webgpu"), then tp.set_backend("webgpu"), opens it anew'
            ) from error
        if isinstance(error, wgpu.GPUOutOfMemoryError):
            raise BackendMemoryError(f"{device} ran out of memory while {action}") from error
        error.add_note(f"while {action} on {device}")
        raise


def compile_shader(
    device: wgpu.GPUDevice, name: str, kernel: str, text: str
) -> wgpu.GPUShaderModule:
    """Return a compiled shader.

    Raises:
        ShaderError: the compiler refuses the text.
        DeviceLostError: the device is gone.

    """
    with translated(name, f"compiling {kernel!r}"):
        try:
            return device.create_shader_module(code=text)
        except wgpu.GPUValidationError as error:
            if _LOST in str(error):
                raise
            lines = [line for line in str(error).splitlines() if line.strip()]
            log = "\n".join(lines[:_LINES])
            raise ShaderError(f"{name} refused the shader of {kernel!r}:\n{log}") from error
