"""How a kernel would run, by what is registered for its spec: without the types of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.engine.widening import computed, is_left

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How, Step


def promote(spec: KernelSpec, dtype: DType) -> DType:
    """Return the dtype in which a kernel computes with inputs of ``dtype``."""
    return dt.inexact(dtype) if spec.inexact else dtype


def explain_refusal(spec: KernelSpec, device: Device, dtype: DType) -> str:
    """Return why spec or device do not support ``dtype``; "" if they do."""
    if device.home(dtype) is None:
        return f"backend {device.name!r} has no dtype {dtype}"
    if spec.inputs and not any(dtype in spec.accepted(name) for name in spec.input_names):
        return f"no input of {spec.name} accepts {dtype}"
    return ""


def resolve(
    engine: Engine, spec: KernelSpec, device: Device, dtype: DType | None, steps: list[Step]
) -> tuple[How | None, str]:
    """Return how the registered entries run a kernel, and their owner; append to ``steps``."""
    state = engine.registry.state
    native = state.kernel(spec.name, device.backend_name)
    wide = dtype and computed(spec, device, state, dtype)
    if native is None:
        steps.append(("native", "not registered"))
    elif not _serves(native.entry.dtypes, dtype):
        steps.append(("native", f"the kernel of {native.owner} does not take {dtype}"))
    elif dtype and native.entry.dtypes is None and is_left(spec, device, state, dtype):
        steps.append(("native", f"the kernel of {native.owner} names no dtypes"))
    else:
        steps.append(("native", f"kernel of {native.owner}"))
        return "native", str(native.owner)
    if wide is not dtype:
        steps.append(("widened", f"in {wide}"))
        return "widened", "tensorplug"
    decomposed = state.decomposition(spec.name)
    if decomposed is None:
        steps.append(("decomposed", "no decomposition is registered"))
    elif _serves(decomposed.entry.dtypes, dtype):
        how: How = "host" if decomposed.entry.on_host else "decomposed"
        steps.append((how, f"by {decomposed.owner}"))
        return how, str(decomposed.owner)
    else:
        steps.append(("decomposed", f"the one of {decomposed.owner} does not take {dtype}"))
    if engine.fallback == "error":
        steps.append(("fallback", "not allowed (TENSORPLUG_FALLBACK=error)"))
        return None, ""
    others = sorted({name for kernel, name in state.kernels if kernel == spec.name})
    others = [name for name in others if name != device.backend_name]
    if not others:
        steps.append(("fallback", "no loaded backend has a kernel for it"))
        return None, ""
    steps.append(("fallback", f"runs on backend {others[0]!r}"))
    return "fallback", others[0]


def _serves(dtypes: frozenset[DType] | None, dtype: DType | None) -> bool:
    return dtype is None or dtypes is None or dtype in dtypes
