"""Explanations of how a kernel runs on a device, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.errors import KernelNotFoundError, TensorplugError
from tensorplug.introspection.abstract_evaluation import AbstractEvaluation, DataNeededError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How, Plan, Step

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one call runs on one device.

    ``how`` is None if the call is not possible, for the ``reason`` given. ``steps`` are the steps
    tried, with their outcomes. ``owner`` is the distribution whose code runs. ``inner`` are the
    explanations of a decomposition's calls, in order; they are unknown without the types of a
    call.
    """

    kernel: str
    call: str
    backend: str
    how: How | None
    owner: str
    steps: tuple[Step, ...]
    reason: str = ""
    inner: tuple[Explanation, ...] = ()

    @classmethod
    def of(
        cls,
        engine: Engine,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Explanation:
        """Resolve the call on ``device`` without running a kernel.

        A decomposition is called with tensors without data, to find its calls.
        """
        return _Explainer(engine, device).explain(spec, types, attributes)[0]

    @classmethod
    def in_general(
        cls, engine: Engine, spec: KernelSpec, device: Device, dtype: DType | None
    ) -> Explanation:
        """Explain what is registered for ``spec``, without the types of a call.

        A kernel may still decline types or attributes, and a decomposition may call a missing
        kernel; only the explanation of a call with its inputs shows that.
        """
        call = f"{spec.name}({', '.join(spec.inputs)})" + (f" in {dtype}" if dtype else "")
        start = cls(spec.name, call, device.name, None, "", ())
        steps: list[Step] = []
        if dtype is not None:
            promoted = _promote(spec, dtype)
            if promoted is not dtype:
                steps.append(_promotion(promoted))
            dtype = promoted
            reason = _explain_refusal(spec, device, dtype)
            if reason:
                return replace(start, steps=tuple(steps), reason=reason)
        how, owner = _resolve_registered(engine, spec, device, dtype, steps)
        return replace(start, how=how, owner=owner, steps=tuple(steps))

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        yield f"{indent}{self.call} on backend {self.backend!r}: {self.how or 'not possible'}"
        for what, outcome in self.steps:
            into = ", into" if what == "decomposed" and self.inner else ""
            yield f"{indent}  {what}: {outcome}{into}"
        for line, count in _count_texts(call._short(f"{indent}    ") for call in self.inner):
            yield line if count == 1 else f"{line}, {count} times"
        if self.reason:
            yield f"{indent}  {self.reason}"

    def _short(self, indent: str) -> str:
        """Return one line for a native call, and also the inner calls of others."""
        head = f"{indent}{self.call}: {self.how or 'not possible'}"
        if self.how is None:
            return f"{head}: {self.reason}"
        lines = _count_texts(call._short(f"{indent}  ") for call in self.inner)
        inside = [line if count == 1 else f"{line}, {count} times" for line, count in lines]
        return "\n".join([head, *inside])


def _count_texts(texts: Iterator[str]) -> list[tuple[str, int]]:
    """Return the distinct texts with their counts, in the order of first occurrence."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return list(counts.items())


def _promotion(dtype: DType) -> Step:
    return ("promoted", f"to {dtype}")


# A call ---------------------------------------------------------------------------------


class _Explainer:
    """Explains a call, and the calls of its decomposition."""

    def __init__(self, engine: Engine, device: Device) -> None:
        self._engine = engine
        self._device = device
        self._enclosing: list[str] = []  # the calls being explained

    def explain(
        self, spec: KernelSpec, types: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[Explanation, Sequence[TensorType]]:
        """Return the explanation of a call and the types of its outputs, empty if impossible."""
        call = spec.describe(types)
        start = Explanation(spec.name, call, self._device.name, None, "", ())
        try:
            plan, steps = self._engine.explain(spec, self._device, types, attributes)
        except TensorplugError as error:
            return replace(start, reason=str(error)), ()
        if plan.inputs != list(types):
            dtype = spec.promoted(types)
            assert dtype is not None  # since something was promoted
            steps.insert(0, _promotion(dtype))
        outputs = [placement.type for placement in plan.outputs]
        found = replace(start, how=plan.how, owner=str(plan.owner), steps=tuple(steps))
        if plan.how != "decomposed":
            return found, outputs
        inner, reason, known = self._explain_inner(plan, f"{call} {plan.attributes}")
        if not known:
            steps.append(("unknown", f"its further calls depend on data: {reason}"))
            return replace(found, steps=tuple(steps), inner=inner), outputs
        if reason:
            return replace(found, how=None, inner=inner, reason=reason), ()
        return replace(found, inner=inner), outputs

    def _explain_inner(self, plan: Plan, name: str) -> tuple[tuple[Explanation, ...], str, bool]:
        """Return the calls of a decomposition, why it cannot run ("" if it can).

        The third result is False if that depends on data.
        """
        if name in self._enclosing:
            return (), "its decomposition calls itself", True
        calls: list[Explanation] = []

        def resolve(
            spec: KernelSpec, types: Sequence[Any], attributes: Mapping[str, Any]
        ) -> Sequence[TensorType]:
            explained, outputs = self.explain(spec, types, attributes)
            calls.append(explained)
            if explained.how is None:
                raise KernelNotFoundError(f"its decomposition needs {explained.call}")
            return outputs

        self._enclosing.append(name)
        try:
            AbstractEvaluation(self._engine, self._device, resolve).evaluate(plan)
        except DataNeededError as error:
            return tuple(calls), str(error), False
        except KernelNotFoundError as error:
            return tuple(calls), str(error), True
        except Exception as error:  # noqa: BLE001  # of a plugin; a run would raise it, too
            return tuple(calls), f"its decomposition raises {type(error).__name__}: {error}", True
        finally:
            self._enclosing.pop()
        return tuple(calls), "", True


# In general -----------------------------------------------------------------------------


def _promote(spec: KernelSpec, dtype: DType) -> DType:
    """Return the dtype in which a kernel computes with inputs of ``dtype``."""
    return dt.inexact(dtype) if spec.inexact else dtype


def _explain_refusal(spec: KernelSpec, device: Device, dtype: DType) -> str:
    """Return why spec or device do not support ``dtype``; "" if they do."""
    if device.home(dtype) is None:
        return f"backend {device.name!r} has no dtype {dtype}"
    if spec.inputs and not any(dtype in spec.accepted(name) for name in spec.input_names):
        return f"no input of {spec.name} accepts {dtype}"
    return ""


def _resolve_registered(
    engine: Engine, spec: KernelSpec, device: Device, dtype: DType | None, steps: list[Step]
) -> tuple[How | None, str]:
    """Return how the registered entries run a kernel, and their owner; append to ``steps``."""
    state = engine.registry.state
    native = state.kernel(spec.name, device.backend_name)
    if native is None:
        steps.append(("native", "not registered"))
    elif _serves(native.entry.dtypes, dtype):
        steps.append(("native", f"kernel of {native.owner}"))
        return "native", str(native.owner)
    else:
        steps.append(("native", f"the kernel of {native.owner} does not take {dtype}"))
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
