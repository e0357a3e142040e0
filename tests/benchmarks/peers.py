"""The contenders: our backends, and PyTorch on the CPU or on the GPU.

On a GPU, PyTorch waits for the device after each call, as we do. TensorFloat-32 is off, since its
products would have 10 bits where ours have 24.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness import Workload

    Call = Callable[[], object]

GPUS: Final = ("cuda", "xpu")  # what PyTorch calls GPUs; those of ROCm are "cuda", too


@dataclass
class Chosen:
    """The options of the command line.

    ``backends``: the contenders; none stands for all that open. ``gpu``: they compute on a GPU,
    and ``torch_device`` is PyTorch's, or "cpu" where it has none. ``logarithm``: a large array
    has 2**logarithm elements.
    """

    backends: tuple[str, ...] = ()
    gpu: bool = False
    torch_device: str = "cpu"
    logarithm: int = 26


_chosen = Chosen()


def choose(names: Sequence[str], *, gpu: bool, logarithm: int) -> None:
    """Set the options of the command line."""
    _chosen.backends, _chosen.gpu, _chosen.logarithm = tuple(names), gpu, logarithm
    _chosen.torch_device = _torch_gpu() if gpu else "cpu"
    backends.cache_clear()
    if _chosen.torch_device != "cpu":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False


def available(module: str) -> bool:
    """Return whether a library to compare with is installed."""
    return importlib.util.find_spec(module) is not None


def _torch_gpu() -> str:
    if available("torch"):
        import torch

        for name in GPUS:
            module = getattr(torch, name, None)
            if module is not None and module.is_available():
                return name
    return "cpu"


@cache
def backends() -> tuple[str, ...]:
    """Return the names of the tensorplug backends that take part and can be opened."""
    names: list[str] = []
    for name in _chosen.backends or [str(info.name) for info in tp.backends()]:
        try:
            with tp.use_backend(name):
                tp.zeros((1,))
        except tp.errors.BackendUnavailableError as error:
            print(f"left out: {error}")
        else:
            names.append(name)
    return tuple(names)


def compiling() -> list[str]:
    """Return those of ``backends()`` that have a compiler for whole programs."""
    return [backend for backend in backends() if backend.partition(":")[0] in ("cpu", "opencl")]


def on(backend: str, work: Callable[[], Call]) -> Call:
    """Return the call that ``work`` prepares, run and prepared on ``backend``."""
    with tp.use_backend(backend):
        call = work()

    def run() -> object:
        with tp.use_backend(backend):
            result = call()
            tp.synchronize()
        return result

    return run


def logarithm() -> int:
    """Return how many elements are in a large array, as a power of 2."""
    return _chosen.logarithm


def torch_device() -> str:
    """Return the device of PyTorch's tensors."""
    return _chosen.torch_device


def torch_tensor(array: Any) -> Any:
    """Return a PyTorch tensor of ``array``, in memory of its own.

    On NumPy's memory, PyTorch would find in the cache what NumPy has read just before.
    """
    import torch

    return torch.tensor(array, device=_chosen.torch_device)


def torch_told() -> str:
    """Return PyTorch's version and device as text; "" if it is not installed."""
    if not available("torch"):
        return ""
    import torch

    if _chosen.torch_device == "cpu":
        return f"PyTorch {torch.__version__} on the CPU"
    name = getattr(torch, _chosen.torch_device).get_device_name()
    return f"PyTorch {torch.__version__} on {name}, without TensorFloat-32"


def parts(workload: Workload) -> list[Workload]:
    """Return ``workload`` for the contenders, in parts that are timed one after the other.

    A call on the host lets a GPU fall idle, and the next call on the GPU pays for that. So where
    a GPU is compared, the host's contenders have rounds of their own, the last ones. The first
    part has the baseline: if that does not take part, or is the host's, PyTorch on the GPU,
    else our own backend. There are no parts without a backend of ours.
    """
    ours = [name for name in workload.contenders if _is_ours(name)]
    if not ours:
        return []
    taken = {
        name: _waiting(call) if _is_torch(name) else call
        for name, call in workload.contenders.items()
        if name in ours or not name.startswith("tensorplug")
    }
    first = {name: call for name, call in taken.items() if name in ours or _is_beside(name)}
    rest = {name: call for name, call in taken.items() if name not in first}
    wanted = (workload.baseline, "torch", "numpy", *first)
    baseline = next(name for name in wanted if name in first)
    found = [replace(workload, contenders=first, baseline=baseline)]
    if rest:
        found.append(replace(workload, contenders=rest, baseline=next(iter(rest))))
    return found


def _is_torch(name: str) -> bool:
    return name.startswith("torch")


def _is_beside(name: str) -> bool:
    """Return whether a contender that is not ours has rounds in common with ours."""
    if not _chosen.gpu:
        return True
    return name.startswith("pyopencl") or (_is_torch(name) and _chosen.torch_device != "cpu")


def _is_ours(name: str) -> bool:
    """Return whether ``name`` is a contender of a backend that takes part."""
    named = (f"tensorplug {backend}" for backend in _chosen.backends)
    return not _chosen.backends or any(
        name == asked or name.startswith((f"{asked} ", f"{asked},")) for asked in named
    )


def _waiting(call: Call) -> Call:
    if _chosen.torch_device == "cpu":
        return call
    import torch

    wait = getattr(torch, _chosen.torch_device).synchronize

    def run() -> object:
        result = call()
        wait()
        return result

    return run
