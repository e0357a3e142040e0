"""Entries of the tables of rules: gradients, tangents, and the batching of ``vmap``.

What a function asks for is checked here, when its entry is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from tensorplug.contract import signatures
from tensorplug.contract.entries import Entry, read_dtypes
from tensorplug.errors import GradientError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec


TangentKind: TypeAlias = Literal["rule", "linear", "elementwise", "symmetric"]
BatchingKind: TypeAlias = Literal["rule", "elementwise", "leading", "folded"]

WANTED: Final = "wanted"
"""The parameter of joint gradient rules that tells which gradients they are to return."""


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

        def rule(*values: Any, **named: Any) -> Any:
            bound = signature.bind(*values, **named).arguments
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
        gradients: Any = self.function(**values)
        if not isinstance(gradients, Mapping) or gradients.keys() != wanted:
            returned = (
                sorted(gradients) if isinstance(gradients, Mapping) else type(gradients).__name__
            )
            raise GradientError(
                f"the gradients with respect to {what}: "
                f"{signatures.location(self.function)} must return a mapping with the keys "
                f"{sorted(wanted)}, got {returned}"
            )
        return gradients


class _OfInput(Entry):
    __slots__ = ()
    wrt: str

    @property
    def key(self) -> tuple[str, str]:
        """The names of the kernel and the input."""
        return self.spec.name, self.wrt


@dataclass(frozen=True, slots=True)
class GradientEntry(_OfInput):
    """The rule for one input (of these ``dtypes``), or None and the reason why there is none.

    ``joint``: the function of several inputs together from which ``rule`` takes its result; None
    for a rule of one input. Entries that share it are computed by one call.
    """

    spec: KernelSpec
    wrt: str
    rule: Callable[..., Any] | None
    asks: tuple[str, ...]
    override: bool = False
    dtypes: frozenset[DType] | None = None
    reason: str = ""
    joint: JointRule | None = None
    kept_in: ClassVar[str] = "gradients"
    _titled: ClassVar[str] = "gradient of {0.spec.name!r} with respect to {0.wrt!r}"

    def rule_for(self, dtype: DType) -> Callable[..., Any] | None:
        """Return the rule for an input of ``dtype``; None where it has no derivative."""
        return self.rule if self.dtypes is None or dtype in self.dtypes else None


@dataclass(frozen=True, slots=True)
class TangentEntry(_OfInput):
    """How the tangent of one input becomes those of the outputs: as ``kind`` says.

    A method of ``RuleTable`` for each kind ("rule": ``jvp``) describes it. ``together``: the
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
    kept_in: ClassVar[str] = "tangents"
    _titled: ClassVar[str] = "tangent of {0.spec.name!r} along {0.wrt!r}"


@dataclass(frozen=True, slots=True)
class BatchingEntry(Entry):
    """How one kernel is batched: see the methods of ``RuleTable``, which ``kind`` names.

    ``rule``, ``asks``: the function of kind "rule", and its keyword-only parameters. ``names``:
    the attributes of kind "leading", the inputs of kind "folded".
    """

    spec: KernelSpec
    kind: BatchingKind
    rule: Callable[..., Any] | None = None
    asks: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    override: bool = False
    kept_in: ClassVar[str] = "batchings"
    _titled: ClassVar[str] = "batching rule of {0.spec.name!r}"


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
    _check_inputs(spec, (wrt,), role)
    if rule is None:
        return GradientEntry(spec, wrt, None, (), override, reason=reason)
    asks = signatures.check_names(rule, role, _askable(spec))
    served = read_dtypes(dtypes, role)
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
    _check_inputs(spec, names, role)
    asks = signatures.check_names(rule, role, (WANTED, *_askable(spec)))
    if WANTED not in asks:
        raise RegistrationError(
            f"{role}: {signatures.location(rule)} must have the parameter {WANTED!r}, the set of "
            "the inputs' names whose gradients it is to return"
        )
    served = read_dtypes(dtypes, role)
    joint = JointRule(rule, asks)
    others = tuple(name for name in asks if name != WANTED)
    return [
        GradientEntry(spec, name, joint.alone(name), others, override, served, joint=joint)
        for name in names
    ]


def _check_inputs(spec: KernelSpec, names: Sequence[str], role: str) -> None:
    wrong = [name for name in names if name not in spec.input_names]
    if wrong or not names:
        raise RegistrationError(
            f"{role}: {', '.join(map(repr, wrong)) or 'nothing'} is not an input; inputs are "
            f"{', '.join(spec.input_names)}"
        )


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
    _check_inputs(spec, names, role)
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
        others = _askable(spec)[len(cotangent_names(spec)) :]
        asks = signatures.check_names(rule, role, (*map(tangent_name, names), *others))
    return [TangentEntry(spec, name, kind, names, rule, asks, fixed, override) for name in names]


def batching_entry(
    spec: KernelSpec,
    kind: BatchingKind,
    rule: Callable[..., Any] | None = None,
    names: Iterable[str] = (),
    *,
    override: bool = False,
) -> BatchingEntry:
    """Check a batching rule against ``spec`` and return its entry.

    Raises:
        RegistrationError: the rule's parameters are not the inputs, then attributes, ``batched``,
            ``size`` or ``out``; or one of ``names`` is not an attribute (or input) of the spec.

    """
    role = f"batching rule of {spec.name!r}"
    asks: tuple[str, ...] = ()
    if rule is not None:
        allowed = (*spec.attributes, "attributes", "batched", "size", "out")
        asks = signatures.check_split(rule, role, spec.input_names, allowed)
    known = spec.input_names if kind == "folded" else tuple(spec.attributes)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise RegistrationError(
            f"{role}: it has no {', '.join(map(repr, unknown))}; possible are {', '.join(known)}"
        )
    return BatchingEntry(spec, kind, rule, asks, tuple(names), override)


@cache
def stated_tangents(spec: KernelSpec) -> Mapping[str, TangentEntry]:
    """Return by input how tangents pass a kernel, as the facts of its spec say."""
    entries = [
        entry
        for group in spec.linear_groups
        for entry in tangent_entries(spec, group, "linear", attributes=spec.linear_with)
    ]
    entries += [TangentEntry(spec, name, "symmetric", (name,)) for name in spec.symmetric]
    by_input = {entry.wrt: entry for entry in entries}
    for name in spec.input_names if spec.elementwise else ():
        by_input.setdefault(name, TangentEntry(spec, name, "elementwise", (name,)))
    return by_input


@cache
def stated_batching(spec: KernelSpec) -> BatchingEntry | None:
    """Return how ``vmap`` runs a kernel, as the facts of its spec say."""
    if spec.fold:
        return BatchingEntry(spec, "folded", names=spec.fold)
    if spec.leading is not None:
        return BatchingEntry(spec, "leading", names=spec.leading)
    return BatchingEntry(spec, "elementwise") if spec.elementwise else None
