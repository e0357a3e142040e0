"""The adapters that WebGPU finds: which there are, and which one a name means."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import wgpu
from wgpu.backends.wgpu_native._ffi import ffi
from wgpu.backends.wgpu_native.extras import set_instance_extras

from tensorplug.plugin import BackendUnavailableError, DeviceInfo
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HALF: Final = "shader-f16"
_KINDS: Final = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU", "Unknown")
# OpenGL reaches the same hardware as these, with less of WebGPU, and complains without a screen.
_APIS: Final = {"Vulkan": "Vulkan", "Metal": "Metal", "D3D12": "DX12"}


_QUIET: Final = "NODEVICE_SELECT"  # Mesa's layer, which asks the screen for its GPU, is left out
_ASKED: Final = ("XDG_RUNTIME_DIR", "DRI_PRIME", "MESA_VK_DEVICE_SELECT", _QUIET)


@cache
def _begin() -> int:
    """Start WebGPU; return the process that has."""
    _read_types()
    with _without_screen():
        with suppress(RuntimeError):  # the program has begun with wgpu itself
            set_instance_extras(backends=tuple(_APIS.values()))
        wgpu.gpu.enumerate_adapters_sync()
    return os.getpid()


def _read_types() -> None:
    """Read the names of wgpu's structures at once, as cffi would one by one, in 16 ms each.

    It reads all names of the header with each of them. Opening and the first kernel take 0.7 of
    the time so.
    """
    typedefs, structures, _unions = ffi.list_types()
    names = [f"{name} *" for name in sorted({*typedefs} & {*structures})]
    types = ffi.typeof(f"void(*)({', '.join(names)})").args
    known = getattr(ffi, "_parsed_types", {})  # private: another cffi may have none
    known.update((name, (type_, False)) for name, type_ in zip(names, types, strict=True))


@contextmanager
def _without_screen() -> Iterator[None]:
    """Keep Mesa from asking Wayland for a screen, which writes an error if there is none.

    Nothing changes for those who have a screen, or tell Mesa which GPU to take.
    """
    if sys.platform != "linux" or any(os.environ.get(name) for name in _ASKED):
        yield
        return
    os.environ[_QUIET] = "1"
    try:
        yield
    finally:
        del os.environ[_QUIET]


def find() -> list[wgpu.GPUAdapter]:
    """Return the adapters, the best first: those of GPUs, then processors that act as one.

    Raises:
        BackendUnavailableError: there is none, or this is a forked child.

    """
    if _begin() != os.getpid():
        raise BackendUnavailableError(
            "WebGPU was used by the parent process, and a forked child has none of the threads of "
            "its drivers. Start processes with the 'spawn' method of multiprocessing, or use "
            "webgpu in children only"
        )
    every = [
        each for each in wgpu.gpu.enumerate_adapters_sync() if each.info["backend_type"] in _APIS
    ]
    if not every:
        raise BackendUnavailableError(
            "WebGPU finds no adapter. A GPU needs its maker's driver for Vulkan, Metal or "
            "Direct3D 12; a computer without one can use Mesa's lavapipe, which Debian and "
            "Ubuntu call mesa-vulkan-drivers"
        )
    return sorted(every, key=lambda each: _KINDS.index(each.info["adapter_type"]))


def name_of(adapter: wgpu.GPUAdapter) -> str:
    """Return what people call the hardware, and the interface that reaches it."""
    info = adapter.info
    return f"{info['device'] or info['description']} ({info['backend_type']})"


def is_processor(adapter: wgpu.GPUAdapter) -> bool:
    """Return whether an adapter computes on the processor, as if it were a GPU."""
    return bool(adapter.info["adapter_type"] == "CPU")


def dtypes_of(adapter: wgpu.GPUAdapter) -> frozenset[dt.DType]:
    """Return the dtypes that an adapter computes with. WGSL has none of 64 bits, or of 8."""
    half = {dt.float16} if HALF in adapter.features else frozenset()
    return dt.BOOL | {dt.int32, dt.uint32, dt.float32} | half


def choose(device: str | None) -> wgpu.GPUAdapter:
    """Return the adapter of this number, or the first whose name contains the text.

    Raises:
        BackendUnavailableError: there is no such adapter, or none at all.

    """
    adapters = find()
    if device is None:
        return adapters[0]
    for number, adapter in enumerate(adapters):
        if device == str(number):
            return adapter
    for adapter in adapters:
        if not device.isdecimal() and device.lower() in name_of(adapter).lower():
            return adapter
    names = "; ".join(f"{number} is {name_of(each)}" for number, each in enumerate(adapters))
    raise BackendUnavailableError(f"there is no device {device!r}; {names}")


def list_infos() -> Sequence[DeviceInfo]:
    """Return what users see of each adapter."""
    return [
        DeviceInfo(name_of(each), driver=each.info["description"], dtypes=dtypes_of(each))
        for each in find()
    ]
