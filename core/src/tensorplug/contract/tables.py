"""Tables of kernels, gradient and tangent rules, and decompositions: inert, filled by decorators.

A plugin fills tables at import and hands them over from its hooks; nothing is registered
before the engine takes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorplug.contract import signatures
from tensorplug.contract.entries import (
    decomposition_entry,
    gradient_entry,
    joint_entries,
    kernel_entry,
    tangent_entries,
)
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import (
        DecompositionEntry,
        GradientEntry,
        KernelEntry,
        OnDevice,
        TangentEntry,
    )
    from tensorplug.contract.spec import KernelSpec


F = TypeVar("F", bound="Callable[..., Any]")


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


class TangentTable:
    """Tangent rules, of forward mode, by kernel name and input.

    A kernel needs none: without one, the tangent comes from its gradient rule, transposed, which
    is right and slower. Kernels with a scalar expression need no entry either: they are
    elementwise.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], TangentEntry] = {}

    def wrt(self, spec: KernelSpec, *names: str, override: bool = False) -> Callable[[F], F]:
        """Decorate the rule for inputs: from their tangents to that of the output.

        Its parameters name what it needs: the tangents, ``x_dot`` for an input x (for a variadic
        input a list, with None for a tensor without one), and inputs, their types
        (``x_type``), outputs and attributes, as in a gradient rule. It is linear in the tangents,
        and is called only if there is one; of several ``names``, others are None. It returns a
        tensor of the output's dtype whose shape
        is the output's or broadcasts to it; for several outputs a list, with None for each that
        has no derivative; ``NotImplemented`` for a call that it leaves to the gradient rule::

            @tangents.wrt(MAX, "x")
            def max_(x_dot, x, out, axis): ...

        Tangents of complex numbers are derivatives along a real parameter.
        """

        def decorate(rule: F) -> F:
            self._add(tangent_entries(spec, names, "rule", rule, override=override))
            return rule

        return decorate

    def linear(
        self, spec: KernelSpec, *names: str, override: bool = False, **attributes: Any
    ) -> None:
        """State that the kernel is linear in these inputs, taken together.

        The tangent is the kernel of their tangents, with zeros for those without one, and with
        ``attributes`` in the place of the call's: ``linear(PAD_V2, "x", constant_value=0)``. A
        product is linear in each factor alone: ``linear(MATMUL, "a")`` and
        ``linear(MATMUL, "b")``.
        """
        self._add(tangent_entries(spec, names, "linear", attributes=attributes, override=override))

    def elementwise(self, *specs: KernelSpec, override: bool = False) -> None:
        """State that each element of the one output depends on one element of each input.

        Then the gradient rule, called on the tangent, gives the tangent. The inputs' shapes
        broadcast to the output's. Of a real output and a complex input, the tangent is the real
        part.
        """
        for spec in specs:
            for name in spec.input_names:
                self._add(tangent_entries(spec, (name,), "elementwise", override=override))

    def symmetric(self, spec: KernelSpec, *names: str, override: bool = False) -> None:
        """State that the Jacobian with respect to each of these inputs is a symmetric matrix.

        Then, too, the gradient rule gives the tangent. Softmax is such a kernel.
        """
        for name in names:
            self._add(tangent_entries(spec, (name,), "symmetric", override=override))

    def _add(self, entries: Iterable[TangentEntry]) -> None:
        for entry in entries:
            if self._entries.setdefault((entry.spec.name, entry.wrt), entry) is not entry:
                raise RegistrationError(
                    f"tangent of {entry.spec.name!r} along {entry.wrt!r} is in this table twice"
                )

    def __iter__(self) -> Iterator[TangentEntry]:
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
