"""Why a kernel runs the way it does on a device, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.errors import TensorplugError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.device import Device
    from tensorplug.dtypes import DType
    from tensorplug.engine import Engine
    from tensorplug.plans import How, Step
    from tensorplug.spec import KernelSpec

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one call runs on one device.

    ``how`` is None when there is no way; then ``reason`` says why. ``steps`` are what was tried,
    in order, with what came of each. ``owner`` is the distribution whose code runs.
    """

    kernel: str
    call: str
    backend: str
    how: How | None
    owner: str
    steps: tuple[Step, ...]
    reason: str = ""

    @classmethod
    def of(
        cls,
        engine: Engine,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Explanation:
        """Resolve the call on ``device`` without running it."""
        call = spec.describe(types)
        try:
            plan, steps = engine.explain(spec, device, types, attributes)
        except TensorplugError as error:
            return cls(spec.name, call, device.name, None, "", (), str(error))
        return cls(spec.name, call, device.name, plan.how, str(plan.owner), tuple(steps))

    @classmethod
    def in_general(
        cls, engine: Engine, spec: KernelSpec, device: Device, dtype: DType | None
    ) -> Explanation:
        """Say what is registered for ``spec``, without the types of a call.

        A kernel may still decline types or attributes that it does not support; only an
        explanation of a call with its inputs can tell.
        """
        state, steps = engine.registry.state, []
        call = f"{spec.name}({', '.join(spec.inputs)})" + (f" in {dtype}" if dtype else "")
        native = state.kernel(spec.name, device.backend_name)
        decomposed = state.decomposition(spec.name)
        if dtype is not None and dtype not in device.backend.dtypes:
            reason = f"backend {device.name!r} has no dtype {dtype}"
            return cls(spec.name, call, device.name, None, "", (), reason)
        if native is None:
            steps.append(("native", "not registered"))
        elif dtype and native.entry.dtypes is not None and dtype not in native.entry.dtypes:
            steps.append(("native", f"the kernel of {native.owner} does not take {dtype}"))
        else:
            steps.append(("native", f"kernel of {native.owner}"))
            return cls(spec.name, call, device.name, "native", str(native.owner), tuple(steps))
        if decomposed is None:
            steps.append(("decomposed", "no decomposition is registered"))
        elif (
            dtype and decomposed.entry.dtypes is not None and dtype not in decomposed.entry.dtypes
        ):
            steps.append(("decomposed", f"the one of {decomposed.owner} does not take {dtype}"))
        else:
            steps.append(("decomposed", f"by {decomposed.owner}"))
            owner = str(decomposed.owner)
            return cls(spec.name, call, device.name, "decomposed", owner, tuple(steps))
        others = sorted({name for kernel, name in state.kernels if kernel == spec.name})
        others = [name for name in others if name != device.backend_name]
        if engine.fallback == "error":
            steps.append(("fallback", "not allowed (TENSORPLUG_FALLBACK=error)"))
        elif others:
            steps.append(("fallback", f"runs on backend {others[0]!r}"))
            return cls(spec.name, call, device.name, "fallback", others[0], tuple(steps))
        else:
            steps.append(("fallback", "no loaded backend has a kernel for it"))
        return cls(spec.name, call, device.name, None, "", tuple(steps))

    def __str__(self) -> str:
        head = f"{self.call} on backend {self.backend!r}: {self.how or 'not possible'}"
        lines = [f"  {what}: {outcome}" for what, outcome in self.steps]
        return "\n".join([head, *lines, *([f"  {self.reason}"] if self.reason else [])])
