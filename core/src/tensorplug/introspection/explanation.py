"""Explanations of how a kernel, or the kernels of a function, run on a device: data and text."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Literal

from tensorplug.compile.decomposed import find_groups
from tensorplug.compile.tracing.trace import Trace
from tensorplug.contract.extents import plain
from tensorplug.contract.spec import TensorType
from tensorplug.contract.tensor_types import unwatched
from tensorplug.dispatch.context import use_context
from tensorplug.engine import operands
from tensorplug.engine.build_notice import collecting_sources
from tensorplug.engine.plans import BY_OPS
from tensorplug.errors import CompileError, DataNeededError, KernelNotFoundError, TensorplugError
from tensorplug.introspection import public_functions, registered
from tensorplug.mapping import examples
from tensorplug.system.foreign_text import cause_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How, Plan, Step


CALLS: Final = "calls"  # how a function runs: by calls of kernels


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one call runs on one device.

    ``how`` is None if the call is not possible, for the ``reason`` given. ``steps`` are the steps
    tried, with their outcomes, and the groups in which a large call runs. ``owner`` is the
    distribution whose code runs. ``inner`` are the explanations of a decomposition's calls, in
    order; they are unknown without the types of a call. ``sources``: the texts that the backend
    has compiled for the kernel or the groups, if they were asked for. ``vmap``: how that runs the
    kernel on all examples; ``facts``: what its spec says of its structure, by name; both in an
    explanation without the types of a call.

    Of a function, ``kernel`` is its name, ``how`` is ``"calls"``, and ``inner`` are the
    explanations of the kernels that it calls.
    """

    kernel: str
    call: str
    backend: str
    how: How | Literal["calls"] | None
    owner: str
    steps: tuple[Step, ...]
    reason: str = ""
    inner: tuple[Explanation, ...] = ()
    sources: tuple[str, ...] = ()
    vmap: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        engine: Engine,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        source: bool = False,
    ) -> Explanation:
        """Resolve the call on ``device`` without running a kernel.

        A decomposition is called with tensors without data, to find its calls.
        """
        return _Explainer(engine, device, source=source).explain(spec, types, attributes)

    @classmethod
    def of_function(
        cls,
        engine: Engine,
        device: Device,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        *,
        source: bool = False,
    ) -> Explanation:
        """Call a function with tensors without data, and explain the calls of kernels.

        Of ``arguments`` and ``options``, which may be lists, tensor types become tensors.
        """
        explainer = _Explainer(engine, device, source=source)
        return explainer.explain_function(function, arguments, options)

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
            promoted = registered.promote(spec, dtype)
            if promoted is not dtype:
                steps.append(_promotion(promoted))
            dtype = promoted
            reason = registered.explain_refusal(spec, device, dtype)
            if reason:
                return replace(start, steps=tuple(steps), reason=reason)
        how, owner = registered.resolve(engine, spec, device, dtype, steps)
        batched = examples.explain(spec, engine.registry.state)
        explanation = replace(start, how=how, owner=owner, steps=tuple(steps))
        return replace(explanation, vmap=batched, facts=spec.facts())

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        nothing = " no kernel" if self.how == CALLS and not self.inner and not self.steps else ""
        how = self.how or "not possible"
        yield f"{indent}{self.call} on backend {self.backend!r}: {how}{nothing}"
        for what, outcome in self.steps:
            into = ", into" if what in BY_OPS and self.inner else ""
            yield f"{indent}  {what}: {outcome}{into}"
        for line, count in _count_texts(call._short(f"{indent}    ") for call in self.inner):
            yield line if count == 1 else f"{line}, {count} times"
        if self.vmap == examples.ONCE_PER_EXAMPLE:
            yield f"{indent}  vmap: {self.vmap}"
        for fact, text in self.facts.items():
            yield f"{indent}  {fact}: {text}"
        if self.reason:
            yield f"{indent}  {self.reason}"
        for source in dict.fromkeys(self._all_sources()):
            yield f"\n{source.rstrip()}"

    def _all_sources(self) -> Iterator[str]:
        """Yield the texts of what runs: the calls inside a group do not run by themselves."""
        yield from self.sources
        for call in () if self.sources else self.inner:
            yield from call._all_sources()

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
    """Explains a call, and the calls of its decomposition, as the engine of a trace of it.

    It leaves every call to the real engine, and notes it.
    """

    def __init__(self, engine: Engine, device: Device, *, source: bool = False) -> None:
        self._engine = engine
        self._source = source
        self._collects = collecting_sources if source else _collecting_nothing
        self._trace = Trace(self, device, folds=False)  # type: ignore[arg-type]  # the rest is delegated
        self._calls: list[Explanation] = []  # of the innermost decomposition
        self._enclosing: list[str] = []  # the decompositions being explained

    def explain(
        self, spec: KernelSpec, types: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Explanation:
        """Return the explanation of a call."""
        try:
            explanation, plan = self._resolve(spec, types, attributes)
            if plan is None:
                return explanation
            explanation = self._with_groups(explanation, plan)
            if plan.how not in BY_OPS:
                return explanation
            context = self._trace.context()
            with use_context(context):
                tensors = [self._enter(operand) for operand in types]
                return self._call(context, spec, tensors, attributes, explanation, plan)[0]
        finally:
            self._trace.finish()
            del self._trace  # whose engine this is

    def _with_groups(self, explanation: Explanation, plan: Plan) -> Explanation:
        """Add the groups in which a large call runs. Their texts replace those of kernels."""
        with self._collects() as sources:
            groups = _find_groups(self._engine, plan)
        steps = (*explanation.steps, *groups)
        return replace(explanation, steps=steps, sources=tuple(sources) or explanation.sources)

    def explain_function(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Explanation:
        """Return the explanation of a call of a function."""
        name = public_functions.name_of(function)
        shown = [*map(public_functions.shown, arguments)]
        shown += [f"{key}={public_functions.shown(value)}" for key, value in options.items()]
        call = f"{name}({', '.join(shown)})"
        steps: tuple[Step, ...] = ()
        how: Literal["calls"] | None = CALLS
        reason = ""
        try:
            with use_context(self._trace.context()):
                tensors = [self._enter(argument) for argument in arguments]
                more = {key: self._enter(value) for key, value in options.items()}
                if isinstance(function(*tensors, **more), FunctionType):
                    how, reason = None, "it returns a function: explain a call of that one"
        except CompileError as error:
            steps = (_further_calls(error),)
        except KernelNotFoundError:
            how = None  # the last call says why
        except TensorplugError as error:
            how, reason = None, str(error)
        except Exception as error:  # noqa: BLE001  # of any function; a call would raise it, too
            how, reason = None, f"it raises {cause_of(error)}"
        finally:
            device = self._trace.real
            self._trace.finish()
            del self._trace  # whose engine this is
        return Explanation(name, call, device.name, how, "", steps, reason, tuple(self._calls))

    def _resolve(
        self, spec: KernelSpec, types: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[Explanation, Plan | None]:
        """Return the explanation of a call without its inner calls; no plan if impossible."""
        device, types = self._trace.real, unwatched(list(types))
        attributes = {name: plain(value) for name, value in attributes.items()}
        start = Explanation(spec.name, spec.describe(types), device.name, None, "", ())
        try:
            with self._collects() as sources:
                plan, steps = self._engine.explain(spec, device, types, attributes)
        except TensorplugError as error:
            return replace(start, reason=str(error)), None
        if plan.inputs != types:
            cast = zip(operands.flatten(plan.inputs), operands.flatten(types), strict=True)
            dtype = next(to.dtype for to, given in cast if to.dtype is not given.dtype)
            steps.insert(0, _promotion(dtype))
        explanation = replace(
            start,
            how=plan.how,
            owner=str(plan.owner),
            steps=tuple(steps),
            sources=tuple(sources),
        )
        return explanation, plan

    def _enter(self, value: Any) -> Any:
        """Return a tensor without data for a type, also in lists; any other value unchanged."""
        if isinstance(value, list | tuple):
            return type(value)(map(self._enter, value))
        return self._trace.enter(value)[1] if isinstance(value, TensorType) else value

    def _call(
        self,
        context: Context,
        spec: KernelSpec,
        tensors: Sequence[Any],
        attributes: Mapping[str, Any],
        explanation: Explanation,
        plan: Plan,
    ) -> tuple[Explanation, Any]:
        """Run a decomposition without data; return the explanation with its calls, and outputs.

        The outputs are None if the call is not possible.
        """
        name = f"{explanation.call} {plan.attributes}"
        if name in self._enclosing:
            return replace(explanation, how=None, reason="its decomposition calls itself"), None
        before, self._calls = self._calls, []
        self._enclosing.append(name)
        result, reason = None, ""
        try:
            result = self._engine.run(context, spec, tensors, attributes)
        except CompileError as error:
            explanation = replace(explanation, steps=(*explanation.steps, _further_calls(error)))
            result = self._outputs(plan)
        except KernelNotFoundError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001  # of a plugin; a run would raise it, too
            reason = f"its decomposition raises {cause_of(error)}"
        finally:
            self._enclosing.pop()
            calls, self._calls = self._calls, before
        if reason:
            explanation = replace(explanation, how=None, reason=reason)
        return replace(explanation, inner=tuple(calls)), result

    def _outputs(self, plan: Plan) -> Any:
        """Return the outputs of a plan without running it."""
        outputs = [self._enter(placement.type) for placement in plan.outputs]
        return outputs if plan.spec.multiple_outputs else outputs[0]

    # EngineProtocol ---------------------------------------------------------------------

    def run(
        self,
        context: Context,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Note a call of a decomposition; return its outputs, without data.

        Raises:
            KernelNotFoundError: it is not possible.
            DataNeededError: its output shape depends on data.

        """
        device = self._trace.device
        if context.device is not device:
            return self._engine.run(context, spec, inputs, attributes)
        tensors = operands.prepare_inputs(device, spec, inputs)
        explanation, plan = self._resolve(spec, operands.types_of(tensors), attributes)
        if plan is not None and self._source:
            explanation = self._with_groups(explanation, plan)
        result = None
        if plan is not None and plan.how in BY_OPS:
            explanation, result = self._call(context, spec, tensors, attributes, explanation, plan)
        self._calls.append(explanation)
        if explanation.how is None:
            raise KernelNotFoundError(f"its decomposition needs {explanation.call}")
        if plan is not None and not plan.static_shapes:
            raise DataNeededError("", f"the output shape of {spec.name} depends on its data")
        if result is None:
            result = self._engine.run(context, spec, tensors, attributes)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@contextmanager
def _collecting_nothing() -> Iterator[list[str]]:
    yield []


def _further_calls(error: CompileError) -> Step:
    why = error.reason if isinstance(error, DataNeededError) else str(error)
    return ("unknown", f"its further calls depend on data: {why}")


def _find_groups(engine: Engine, plan: Plan) -> list[Step]:
    """Return the groups in which a large call runs, or why it is none."""
    fusion = find_groups(engine, plan)
    if fusion is None:
        return []
    found = [f"{fused.group.name}, by {plan.device.name}" for fused in fusion.groups]
    found += [f"{name}: {reason}" for name, reason in fusion.declined.items() if found]
    reasons = dict.fromkeys(fusion.alone.values())
    return [("group", text) for text in found or [f"none: {'; '.join(reasons)}"]]
