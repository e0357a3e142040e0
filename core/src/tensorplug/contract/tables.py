"""Tables of kernels, gradient rules and decompositions: inert, filled by decorators.

A plugin fills tables at import and hands them over from its hooks; nothing is registered
before the engine takes them. What a function asks for is checked when it enters a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tensorplug.contract import dtypes as dt
from tensorplug.contract import signatures
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec

__all__ = [
    "DecompositionEntry",
    "DecompositionTable",
    "GradientEntry",
    "GradientTable",
    "KernelEntry",
    "KernelTable",
]

F = TypeVar("F", bound="Callable[..., Any]")

OnDevice: TypeAlias = "Callable[[Backend], object]"

KERNEL_EXTRAS = ("attributes", "backend", "out")


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
class GradientEntry:
    """The rule for one input (of these ``dtypes``), or None and the reason why there is none."""

    spec: KernelSpec
    wrt: str
    rule: Callable[..., Any] | None
    asks: tuple[str, ...]
    override: bool = False
    dtypes: frozenset[DType] | None = None
    reason: str = ""

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
    types = type_names(spec)
    allowed = (
        *cotangent_names(spec),
        *spec.input_names,
        *types,
        *spec.output_names,
        *spec.attributes,
        "attributes",
    )
    asks = signatures.check_names(rule, role, allowed)
    served = _read_dtypes(dtypes, role)
    return GradientEntry(spec, wrt, rule, asks, override, served)


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
