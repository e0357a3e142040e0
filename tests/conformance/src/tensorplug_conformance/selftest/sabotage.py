"""Sabotage: wraps one kernel of a clean backend, on one engine, to make it wrong.

A saboteur gets host arrays and a function that runs the clean kernel, and returns other arrays.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.owner import Owner
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import mapped
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.floats import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.engine.registry import Handle
    from tensorplug.plugin import Backend, DType, KernelEntry, KernelSpec
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.denominator import Mode
    from tensorplug_conformance.session import Session


@dataclass(slots=True)
class Call:
    """One call of a sabotaged kernel.

    ``buffers`` are the kernel's inputs; ``memory`` lasts as long as the plan, ``lasting``
    as long as the saboteur. ``allowed``: the error in ulp that the suite's table allows.
    """

    backend: Backend
    buffers: Sequence[Any]
    types: Sequence[TensorType]
    attributes: Mapping[str, Any]
    run: Callable[..., list[Any]]
    spec: KernelSpec
    memory: dict[str, Any] = field(default_factory=dict)
    lasting: dict[str, Any] = field(default_factory=dict)
    allowed: float = 0.5

    def inputs(self) -> list[Any]:
        """Return the inputs as host arrays; a variadic one as a list of them."""
        return [mapped(self._host, buffer) for buffer in self.buffers]

    def _host(self, buffer: Any) -> Array:
        return np.array(self.backend.to_host(buffer))

    def clean(self, inputs: Sequence[Any] | None = None, **changed: Any) -> list[Array]:
        """Return the clean kernel's results, perhaps for other inputs or attributes.

        Unchanged inputs keep their memory: in other memory, sums may be rounded differently.
        """
        same = inputs is None or _unchanged(inputs, self.inputs())
        buffers = self.buffers if same else self._uploaded(inputs or ())
        if not changed:
            return self._results(buffers, self.attributes)
        # A kernel trusts that the types of its results fit to its attributes: where they do not,
        # it would write past the end of its memory.
        types = self.types_of(buffers)
        attributes, outs = self.spec.resolve(types, {**self.attributes, **changed})
        return [self._host(buffer) for buffer in self.run(buffers, attributes, types, outs)]

    def clean_in_fresh_memory(self) -> list[Array]:
        """Return the clean kernel's results for copies of the inputs."""
        return self._results(self._uploaded(self.inputs()), self.attributes)

    def _results(self, buffers: Sequence[Any], attributes: Mapping[str, Any]) -> list[Array]:
        return [self._host(buffer) for buffer in self.run(buffers, attributes)]

    def as_of(self, inputs: Sequence[Any]) -> list[Array]:
        """Return the clean kernel's results for inputs that may have other types.

        Raises:
            ArgumentError, DTypeError: when the spec does not allow them.

        """
        buffers = self._uploaded(inputs)
        types = self.types_of(buffers)
        attributes, outs = self.spec.resolve(types, self.attributes)
        return [self._host(buffer) for buffer in self.run(buffers, attributes, types, outs)]

    def types_of(self, buffers: Sequence[Any]) -> list[Any]:
        """Return the types of buffers: a list of them for a list, None for an absent one."""
        return [mapped(self.backend.describe, buffer) for buffer in buffers]

    def _uploaded(self, operands: Sequence[Any]) -> list[Any]:
        return [mapped(self.backend.from_host, operand) for operand in operands]


def _unchanged(inputs: Sequence[Any], operand: Sequence[Any]) -> bool:
    """Return whether all arrays have the same bits; lists of them are compared one by one."""
    for a, b in zip(inputs, operand, strict=True):
        if isinstance(a, list):
            if len(a) != len(b) or not _unchanged(a, b):
                return False
        elif a is None or b is None:
            if a is not b:
                return False
        elif not same_bits(a, b):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Saboteur:
    """A plausible mistake in one kernel.

    ``wrong`` takes a ``Call`` (for a gradient rule, a ``RuleCall``) and returns the wrong arrays,
    which are cut or stretched to the shape and dtype of the spec; with ``raw``, it returns the
    buffers themselves.
    ``mode``: of the row in which it must be caught; ``detail``: which of several such mistakes.
    ``demanded``: the cases must give it an opportunity. Otherwise a kernel for which it never
    makes a difference is not counted.
    """

    kind: str
    kernel: str
    wrong: Callable[[Any], Any]
    dtype: str = "float32"
    raw: bool = False
    mode: Mode = "native"
    detail: str = ""
    demanded: bool = False

    @property
    def name(self) -> str:
        """Its name in the matrix."""
        return f"{self.kind}: {self.kernel}{f'.{self.detail}' if self.detail else ''}"


@dataclass(slots=True)
class Witness:
    """Records whether a saboteur has struck: whether any result differed from the clean one.

    ``signed_zero``: whether the sign of a zero makes a difference, as it does to the judge.
    """

    watching: bool = False
    struck: bool = False
    signed_zero: bool = True

    def compare(self, results: Sequence[Array], clean: Sequence[Array]) -> None:
        """Record one call."""
        for a, b in zip(results, clean, strict=True):
            self.struck |= not _alike(a, b, signed_zero=self.signed_zero)


def _alike(a: Array, b: Array, *, signed_zero: bool) -> bool:
    """Return whether two results are equal for the judge, who ignores payloads of NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if kind_of(a.dtype) not in "fc":
        return bool(np.all(a == b))
    if not np.array_equal(a, b, equal_nan=True):
        return False
    same_sign = np.signbit(a.real) == np.signbit(b.real)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return not signed_zero or bool(np.all(same_sign | (a != 0)))


def is_installable(session: Session, saboteur: Saboteur) -> bool:
    """Return whether the clean backend has a kernel that the saboteur can replace."""
    state = session.engine.registry.state
    return state.kernel(saboteur.kernel, session.device.backend_name) is not None


def install(
    session: Session, saboteur: Saboteur, witness: Witness | None = None, allowed: float = 0.5
) -> Handle:
    """Replace the kernel by the saboteur on this session's engine; return what removes it.

    Raises:
        LookupError: when the clean backend has no such kernel.

    """
    state = session.engine.registry.state
    name = session.device.backend_name
    owned = state.kernel(saboteur.kernel, name)
    if owned is None:
        raise LookupError(f"backend {name!r} has no kernel {saboteur.kernel!r} to sabotage")
    entry: KernelEntry = owned.entry
    # It asks for everything, so that a saboteur can ignore an attribute on purpose.
    asks = (*entry.spec.attributes, "backend", "out")
    wrapped = _Wrapped(entry, saboteur, witness or Witness(), allowed)
    wrong = dataclasses.replace(
        entry, function=wrapped.prepare, prepares=True, asks=asks, dtypes=_serve(entry, saboteur)
    )
    owner = Owner("saboteur", saboteur.kind)
    return session.engine.registry.add(owner, kernels=[(name, wrong)], override=True)


def _serve(entry: KernelEntry, saboteur: Saboteur) -> frozenset[DType] | None:
    """Return the dtypes of a sabotaged kernel, a narrow float in which it is tried among them."""
    dtype = dt.of(saboteur.dtype)
    if dtype.compute is dtype:
        return entry.dtypes
    return (dt.ANY if entry.dtypes is None else entry.dtypes) | {dtype}


class _Wrapped:
    def __init__(
        self, entry: KernelEntry, saboteur: Saboteur, witness: Witness, allowed: float
    ) -> None:
        self.entry = entry
        self.saboteur = saboteur
        self.witness = witness
        self.allowed = allowed
        self.lasting: dict[str, Any] = {}

    def prepare(self, *types: Any, **extras: Any) -> Callable[..., Any]:
        """Prepare the clean kernel, and return the wrong one."""
        entry, several = self.entry, self.entry.spec.multiple_outputs
        widens = dt.of(self.saboteur.dtype) in dt.WIDENED
        outs: list[TensorType] = list(extras["out"]) if several else [extras["out"]]
        backend = extras["backend"]
        attributes = {name: extras[name] for name in entry.spec.attributes}
        memory: dict[str, Any] = {}

        def run(
            buffers: Sequence[Any],
            changed: Mapping[str, Any],
            others: Sequence[Any] | None = None,
            made: Sequence[TensorType] | None = None,
        ) -> list[Any]:
            operand = {**extras, **changed, "attributes": {**attributes, **changed}}
            if made is not None:
                operand["out"] = tuple(made) if several else made[0]
            used_types = others or types
            if widens:  # the clean kernel leaves the dtype to the engine
                buffers, used_types, operand["out"] = _widened(
                    backend, buffers, used_types, operand["out"]
                )
            asked = {name: operand[name] for name in entry.asks}
            if entry.prepares:
                result = entry.function(*used_types, **asked)(*buffers)
            else:
                result = entry.function(*buffers, **asked)
            results = list(result) if several else [result]
            if widens:
                return [_rounded(backend, *pair) for pair in zip(results, outs, strict=True)]
            return results

        def kernel(*buffers: Any) -> Any:
            call = Call(
                backend,
                buffers,
                outs,
                attributes,
                run,
                entry.spec,
                memory,
                self.lasting,
                self.allowed,
            )
            before = call.clean() if self.witness.watching else []
            results = self.saboteur.wrong(call)
            if not self.saboteur.raw:
                results = [
                    backend.from_host(_fitted(item, type_))
                    for item, type_ in zip(results, outs, strict=True)
                ]
            if self.witness.watching:
                self.witness.compare(
                    [np.array(backend.to_host(array)) for array in results], before
                )
            return results if several else results[0]

        return kernel


def _widened(backend: Backend, *operands: Any) -> Any:
    """Return buffers or types, or lists of them, in the dtypes in which they are computed with."""

    def wide(operand: Any) -> Any:
        if isinstance(operand, TensorType):
            return TensorType(operand.dtype.compute, operand.shape)
        if isinstance(operand, list | tuple):
            return [wide(each) for each in operand]
        if operand is None:
            return None
        array = backend.to_host(operand)
        return backend.from_host(array.astype(dt.of(array.dtype).compute.numpy))

    return [wide(operand) for operand in operands]


def _rounded(backend: Backend, buffer: Any, type_: TensorType) -> Any:
    """Return a buffer in the dtype of the type."""
    array = backend.to_host(buffer)
    own = type_.dtype.numpy
    return buffer if array.dtype == own else backend.from_host(array.astype(own))


def _fitted(array: Any, type_: TensorType) -> Array:
    """Return a wrong result in the shape and dtype of the spec."""
    operand = np.asarray(array)
    own = type_.dtype.numpy
    with np.errstate(all="ignore"):
        # NumPy warns of lost imaginary parts.
        converted = (operand if own.kind == "c" else operand.real).astype(own)
    if type_.admits(TensorType(type_.dtype, operand.shape)):
        return converted
    return (
        np.resize(converted, type_.shape)
        if operand.size
        else np.zeros(type_.shape, converted.dtype)
    )
