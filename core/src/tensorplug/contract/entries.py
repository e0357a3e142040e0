"""Entries of the tables of kernels, gradient and tangent rules, and decompositions.

What a function asks for is checked here, when its entry is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tensorplug.contract import dtypes as dt
from tensorplug.contract import signatures
from tensorplug.errors import GradientError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec


OnDevice: TypeAlias = "Callable[[Backend], object]"
TangentKind: TypeAlias = Literal["rule", "linear", "elementwise", "symmetric"]

KERNEL_EXTRAS = ("attributes", "backend", "out")
WANTED: Final = "wanted"
"""The parameter of joint gradient rules that tells which gradients they are to return."""


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One kernel: ``function`` works on buffers, or prepares such a function from types.

    ``prepares``: ``function`` takes input *types* and returns the callable that takes buffers.
    ``dtypes``: the kernel is native only where the dtype of the call is among them. That is the
    dtype of its data (``KernelSpec.dtype_of``): of ``x`` for IsNan, whose output is boolean, and
    of ``params`` for a gather, whose indices are integers.
    ``asks``: the keyword-only parameters, from the attributes, ``backend`` and ``out``.
    ``override``: it is meant to replace a kernel that is registered already.
    ``setup``, ``teardown``: called with the Backend, once for each device that the kernel comes
    to, and once when it leaves it or the device is closed.
    """

    spec: KernelSpec
    function: Callable[..., Any]
    prepares: bool
    dtypes: frozenset[DType] | None
    asks: tuple[str, ...]
    override: bool = False
    setup: OnDevice | None = None
    teardown: OnDevice | None = None


@dataclass(frozen=True, slots=True)
class JointRule:
    """A gradient rule of several inputs: it takes the names that are wanted among what it asks.

    ``asks``: its parameters in order, ``wanted`` among them. It returns the gradients by name.
    """

    function: Callable[..., Mapping[str, Any]]
    asks: tuple[str, ...]

    def alone(self, name: str) -> Callable[..., Any]:
        """Return the rule of one input: the same parameters without ``wanted``."""
        wanted = frozenset({name})
        asked = inspect.signature(self.function)
        kept = [each for each in asked.parameters.values() if each.name != WANTED]

        def rule(*values: Any, **given: Any) -> Any:
            bound = signature.bind(*values, **given).arguments
            return self.call(name, wanted, {**bound, WANTED: wanted})[name]

        update_wrapper(rule, self.function)
        signature = asked.replace(parameters=kept)
        rule.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
        return rule

    def call(
        self, what: str, wanted: frozenset[str], values: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the gradients by name; ``what`` names them in messages.

        Raises:
            GradientError: they are not those of ``wanted``.

        """
        found: Any = self.function(**values)
        if not isinstance(found, Mapping) or found.keys() != wanted:
            given = sorted(found) if isinstance(found, Mapping) else type(found).__name__
            raise GradientError(
                f"the gradients with respect to {what}: "
                f"{signatures.location(self.function)} must return a mapping with the keys "
                f"{sorted(wanted)}, got {given}"
            )
        return found


@dataclass(frozen=True, slots=True)
class GradientEntry:
    """The rule for one input (of these ``dtypes``), or None and the reason why there is none.

    ``joint``: the function of several inputs together from which ``rule`` takes its result; None
    for a rule of one input. Entries with the same one are computed by one call.
    """

    spec: KernelSpec
    wrt: str
    rule: Callable[..., Any] | None
    asks: tuple[str, ...]
    override: bool = False
    dtypes: frozenset[DType] | None = None
    reason: str = ""
    joint: JointRule | None = None

    def rule_for(self, dtype: DType) -> Callable[..., Any] | None:
        """Return the rule for an input of ``dtype``; None where it has no derivative."""
        return self.rule if self.dtypes is None or dtype in self.dtypes else None


@dataclass(frozen=True, slots=True)
class TangentEntry:
    """How the tangent of one input becomes those of the outputs: as ``kind`` says.

    A method of ``TangentTable`` for each kind ("rule": ``wrt``) describes it. ``together``: the
    inputs whose tangents are taken together, ``wrt`` among them. ``rule``, ``asks``: the function
    of kind "rule" and its parameters. ``attributes``: for the kernel of kind "linear".
    """

    spec: KernelSpec
    wrt: str
    kind: TangentKind
    together: tuple[str, ...] = ()
    rule: Callable[..., Any] | None = None
    asks: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    override: bool = False


@dataclass(frozen=True, slots=True)
class DecompositionEntry:
    """A kernel spec written with other ops, on tensors.

    ``dtypes``: it serves only where the dtype of the call is among them, as for a kernel.
    ``on_host``: the function takes and returns NumPy arrays instead, in the host's memory.
    """

    spec: KernelSpec
    function: Callable[..., Any]
    asks: tuple[str, ...]
    dtypes: frozenset[DType] | None = None
    override: bool = False
    on_host: bool = False


def kernel_entry(
    spec: KernelSpec,
    function: Callable[..., Any],
    *,
    prepares: bool = False,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    setup: OnDevice | None = None,
    teardown: OnDevice | None = None,
) -> KernelEntry:
    """Check ``function`` against ``spec`` and return its entry.

    Raises:
        RegistrationError: when its parameters are not what a kernel of ``spec`` may ask for, or
            ``setup`` or ``teardown`` does not take the backend alone.
        DTypeError: one of ``dtypes`` is not a dtype.

    """
    allowed = (*spec.attributes, *KERNEL_EXTRAS)
    role = f"kernel {spec.name!r}"
    asks = signatures.check_split(function, role, spec.input_names, allowed)
    native = _read_dtypes(dtypes, role)
    for what, item in (("setup", setup), ("teardown", teardown)):
        if item is not None:
            signatures.check_split(item, f"{what} of {role}", ("backend",), ())
    return KernelEntry(spec, function, prepares, native, asks, override, setup, teardown)


def cotangent_names(spec: KernelSpec) -> tuple[str, ...]:
    """Return what gradient rules of ``spec`` call the incoming gradients.

    One output: ``dy``. Several: ``dy_`` and the output's name, such as ``dy_values``. Where an
    input is called dy, because the kernel is itself a gradient, it is ``ddy`` instead.
    """
    base = "ddy" if "dy" in spec.input_names else "dy"
    if len(spec.output_names) == 1:
        return (base,)
    return tuple(f"{base}_{name}" for name in spec.output_names)


def type_names(spec: KernelSpec) -> tuple[str, ...]:
    """Return what gradient rules call the inputs' types: ``x_type`` keeps no data alive."""
    return tuple(f"{name}_type" for name in spec.input_names)


def gradient_entry(
    spec: KernelSpec,
    wrt: str,
    rule: Callable[..., Any] | None,
    *,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    reason: str = "",
) -> GradientEntry:
    """Check a gradient rule against ``spec`` and return its entry.

    Raises:
        RegistrationError: when ``wrt`` is not an input, or the rule asks for something else
            than incoming gradients, inputs, outputs and attributes.

    """
    role = f"gradient of {spec.name!r} with respect to {wrt!r}"
    if wrt not in spec.input_names:
        raise RegistrationError(
            f"{role}: {wrt!r} is not an input; inputs are {', '.join(spec.input_names)}"
        )
    if rule is None:
        return GradientEntry(spec, wrt, None, (), override, reason=reason)
    asks = signatures.check_names(rule, role, _askable(spec))
    served = _read_dtypes(dtypes, role)
    return GradientEntry(spec, wrt, rule, asks, override, served)


def joint_entries(
    spec: KernelSpec,
    names: Sequence[str],
    rule: Callable[..., Mapping[str, Any]],
    *,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
) -> list[GradientEntry]:
    """Check a gradient rule of several inputs against ``spec`` and return their entries.

    Raises:
        RegistrationError: one of ``names`` is not an input, or the rule does not ask for
            ``wanted``, or asks for something that a rule may not have.

    """
    role = f"joint gradient of {spec.name!r}"
    unknown = [name for name in names if name not in spec.input_names]
    if unknown or not names:
        raise RegistrationError(
            f"{role}: {', '.join(map(repr, unknown)) or 'nothing'} is not an input; inputs are "
            f"{', '.join(spec.input_names)}"
        )
    asks = signatures.check_names(rule, role, (WANTED, *_askable(spec)))
    if WANTED not in asks:
        raise RegistrationError(
            f"{role}: {signatures.location(rule)} must have the parameter {WANTED!r}, the set of "
            "the inputs' names whose gradients it is to return"
        )
    served = _read_dtypes(dtypes, role)
    joint = JointRule(rule, asks)
    others = tuple(name for name in asks if name != WANTED)
    return [
        GradientEntry(spec, name, joint.alone(name), others, override, served, joint=joint)
        for name in names
    ]


def _askable(spec: KernelSpec) -> tuple[str, ...]:
    """Return what a gradient rule of ``spec`` may ask for."""
    return (
        *cotangent_names(spec),
        *spec.input_names,
        *type_names(spec),
        *spec.output_names,
        *spec.attributes,
        "attributes",
    )


def tangent_name(name: str) -> str:
    """Return what tangent rules call the tangent of input ``name``: ``x_dot``."""
    return f"{name}_dot"


def tangent_entries(
    spec: KernelSpec,
    names: tuple[str, ...],
    kind: TangentKind,
    rule: Callable[..., Any] | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    override: bool = False,
) -> list[TangentEntry]:
    """Check a tangent rule against ``spec`` and return its entries, one for each of ``names``.

    Raises:
        RegistrationError: one of ``names`` is not an input, or ``attributes`` has other names than
            the spec, or a kernel of several outputs is said to be elementwise, or the rule asks
            for something else than the inputs' tangents, inputs, their types, outputs and
            attributes.

    """
    role = f"tangent of {spec.name!r} along {', '.join(map(repr, names))}"
    fixed = dict(attributes or {})
    wrong = [name for name in names if name not in spec.input_names]
    if wrong or not names:
        raise RegistrationError(
            f"{role}: {', '.join(map(repr, wrong)) or 'nothing'} is not an input; inputs are "
            f"{', '.join(spec.input_names)}"
        )
    unknown = sorted(set(fixed) - set(spec.attributes))
    if unknown:
        raise RegistrationError(
            f"{role}: {', '.join(map(repr, unknown))} is not an attribute; attributes are "
            f"{', '.join(spec.attributes) or 'none'}"
        )
    if spec.multiple_outputs and kind in ("elementwise", "symmetric"):
        raise RegistrationError(f"{role}: it has several outputs, so it is not {kind}")
    asks: tuple[str, ...] = ()
    if rule is not None:
        given = _askable(spec)[len(cotangent_names(spec)) :]
        asks = signatures.check_names(rule, role, (*map(tangent_name, names), *given))
    return [TangentEntry(spec, name, kind, names, rule, asks, fixed, override) for name in names]


def decomposition_entry(
    spec: KernelSpec,
    function: Callable[..., Any],
    *,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    on_host: bool = False,
) -> DecompositionEntry:
    """Check a decomposition against ``spec`` and return its entry.

    Raises:
        RegistrationError: when its parameters are not the inputs, then attributes or ``out``.

    """
    role = f"decomposition of {spec.name!r}"
    allowed = (*spec.attributes, "attributes", "out")
    asks = signatures.check_split(function, role, spec.input_names, allowed)
    served = _read_dtypes(dtypes, role)
    return DecompositionEntry(spec, function, asks, served, override, on_host)


def _read_dtypes(dtypes: Iterable[Any] | None, role: str) -> frozenset[DType] | None:
    return None if dtypes is None else frozenset(dt.of(dtype, role) for dtype in dtypes)
