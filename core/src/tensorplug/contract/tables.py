"""Tables of kernels, gradient rules and decompositions: inert, filled by decorators.

A plugin fills tables at import and hands them over from its hooks; nothing is registered
before the engine takes them. What a function asks for is checked when it enters a table.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from tensorplug.contract import dtypes as dt
from tensorplug.contract import signatures
from tensorplug.errors import GradientError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec

__all__ = [
    "DecompositionEntry",
    "DecompositionTable",
    "GradientEntry",
    "GradientTable",
    "JointRule",
    "KernelEntry",
    "KernelTable",
]

F = TypeVar("F", bound="Callable[..., Any]")

OnDevice: TypeAlias = "Callable[[Backend], object]"

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


def _twice(what: str, old: Callable[..., Any] | None, new: Callable[..., Any] | None) -> str:
    places = [signatures.location(item) if item else "a stop" for item in (old, new)]
    return f"{what} is in this table twice: {places[0]} and {places[1]}"


class KernelTable:
    """Kernels of one backend, by kernel name.

    ``override=True`` states that an entry replaces one that another plugin registered; without
    it, a second registration is an error that names both owners. The same holds for the other
    tables.
    """

    def __init__(self) -> None:
        self._entries: dict[str, KernelEntry] = {}

    def register(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
        setup: OnDevice | None = None,
        teardown: OnDevice | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function of buffers: inputs by name, then what it asks keyword-only.

        It may ask for any attribute (``attributes``: a dict of all of them), for ``backend``
        (the Backend object) and for ``out`` (the inferred output type, a tuple of them if there
        are several outputs). It returns
        a buffer, or a sequence of them for several outputs, and never writes into an input.

        ``setup(backend)`` is called once for each device that is opened (or is open when the
        kernel is registered), before the kernel can run there; ``teardown(backend)`` once when
        the device is closed or the kernel removed. They use the backend, and run no op.
        """

        def decorate(function: F) -> F:
            entry = kernel_entry(
                spec,
                function,
                dtypes=dtypes,
                override=override,
                setup=setup,
                teardown=teardown,
            )
            self._add(entry)
            return function

        return decorate

    def prepare(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
        setup: OnDevice | None = None,
        teardown: OnDevice | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function of input *types* that returns the callable to run on buffers.

        It is called once per plan, so work that depends only on types and attributes is done
        once: building a program, choosing an algorithm. It raises ``KernelRefusedError`` to
        decline, and the engine then decomposes the kernel or falls back. ``setup`` and
        ``teardown`` are as for ``register``.
        """

        def decorate(function: F) -> F:
            entry = kernel_entry(
                spec,
                function,
                prepares=True,
                dtypes=dtypes,
                override=override,
                setup=setup,
                teardown=teardown,
            )
            self._add(entry)
            return function

        return decorate

    def _add(self, entry: KernelEntry) -> None:
        old = self._entries.setdefault(entry.spec.name, entry)
        if old is not entry:
            what = f"kernel {entry.spec.name!r}"
            raise RegistrationError(_twice(what, old.function, entry.function))

    def __iter__(self) -> Iterator[KernelEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


class GradientTable:
    """Gradient rules, by kernel name and input."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], GradientEntry] = {}

    def wrt(
        self,
        spec: KernelSpec,
        name: str,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Decorate the rule for input ``name``, of these ``dtypes``: others have no derivative.

        Its parameters name what it needs: ``dy`` (or ``dy_<output>`` for each of several
        outputs), inputs, outputs, attributes (``attributes``: a dict of all), and
        ``<input>_type`` where the type of an input will do; the tape saves that and nothing
        else. The rule returns a tensor of the input's dtype whose shape is the input's or
        broadcasts from it (the tape sums it back), or a list of them for a variadic input. Of
        complex numbers it sees and gives dL/dx - i dL/dy (docs/adr/0018).
        """

        def decorate(rule: F) -> F:
            self._add(gradient_entry(spec, name, rule, dtypes=dtypes, override=override))
            return rule

        return decorate

    def of(
        self,
        spec: KernelSpec,
        *names: str,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Decorate one rule for several inputs (all, if none is named), which share work.

        Besides what ``wrt`` lists it has the parameter ``wanted``, the set of the inputs' names
        whose gradients are needed this time. It returns a mapping with exactly these keys::

            @gradients.of(DIVIDE)
            def divide(wanted, dy, a, b):
                of_a = dy / b
                found = {"a": of_a, "b": -of_a * a / b}
                return {name: found[name] for name in wanted}

        The tape calls it once for all inputs on the way. Another plugin, or the user, may still
        replace the rule of a single input.
        """

        def decorate(rule: F) -> F:
            for entry in joint_entries(
                spec, names or spec.input_names, rule, dtypes=dtypes, override=override
            ):
                self._add(entry)
            return rule

        return decorate

    def stop(self, spec: KernelSpec, *names: str, because: str = "") -> None:
        """State that inputs have no derivative (all inputs, if none is named), and why."""
        for name in names or spec.input_names:
            self._add(gradient_entry(spec, name, None, reason=because))

    def _add(self, entry: GradientEntry) -> None:
        old = self._entries.setdefault((entry.spec.name, entry.wrt), entry)
        if old is not entry:
            what = f"gradient of {entry.spec.name!r} with respect to {entry.wrt!r}"
            raise RegistrationError(_twice(what, old.rule, entry.rule))

    def __iter__(self) -> Iterator[GradientEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


class DecompositionTable:
    """Kernel specs written with other ops, by kernel name."""

    def __init__(self) -> None:
        self._entries: dict[str, DecompositionEntry] = {}

    def of(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Decorate a function of tensors: inputs by name, then what it asks keyword-only.

        It may ask for any attribute (``attributes``: a dict of all of them) and for ``out``,
        the inferred output type. It calls ops,
        which run on the active backend, and reads no tensor's data.
        """

        def decorate(function: F) -> F:
            self._add(decomposition_entry(spec, function, dtypes=dtypes, override=override))
            return function

        return decorate

    def on_host(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Decorate a function of NumPy arrays, for what no device's ops can express.

        That is what depends on data in its shape or its course, or works on strings. Its
        parameters are as for ``of``, with arrays for tensors; it returns an array, or a
        sequence of them for several outputs, and never writes into an input. The engine
        copies the inputs to the host and the results back; strings stay there where the
        device has none.
        """

        def decorate(function: F) -> F:
            self._add(
                decomposition_entry(spec, function, dtypes=dtypes, override=override, on_host=True)
            )
            return function

        return decorate

    def _add(self, entry: DecompositionEntry) -> None:
        old = self._entries.setdefault(entry.spec.name, entry)
        if old is not entry:
            what = f"decomposition of {entry.spec.name!r}"
            raise RegistrationError(_twice(what, old.function, entry.function))

    def __iter__(self) -> Iterator[DecompositionEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
