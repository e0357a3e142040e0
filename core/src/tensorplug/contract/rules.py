"""The table of rules by family: gradients, tangents, and the batching of ``vmap``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tensorplug.contract import signatures
from tensorplug.contract.rule_entries import (
    WANTED,
    BatchingEntry,
    GradientEntry,
    TangentEntry,
    batching_entry,
    gradient_entry,
    joint_entries,
    tangent_entries,
)
from tensorplug.contract.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec


F = TypeVar("F", bound="Callable[..., Any]")
Rule: TypeAlias = GradientEntry | TangentEntry | BatchingEntry


class RuleTable(Table[Rule]):
    """Rules of kernels: gradients and tangents by input, batching rules by kernel.

    ``formulas`` enters gradients that are one expression, and ``vjp`` decorates the others. All
    methods that decorate take a lambda as well: ``rules.batch(NEG)(lambda x: -x)``.

    Only gradients are needed, or a ``stop``. Without a tangent rule, forward mode transposes the
    gradient rule, which is right and slower. Without a batching rule, ``vmap`` batches the calls
    of a kernel's decomposition; without one of these either, it calls the kernel once per
    example. What the structure of a kernel says needs no rule: see ``KernelSpec``.
    """

    def formulas(
        self, spec: KernelSpec, /, *, override: bool = False, **of_inputs: Callable[..., Any]
    ) -> None:
        """Enter gradient rules that are one expression each, by the name of the input.

        It is the short form of ``vjp``: the parameters name what a formula needs, and only the
        formulas of inputs whose gradients are asked for are computed::

            rules.formulas(SIN, x=lambda dy, x: dy * cos(x))
            rules.formulas(MULTIPLY, a=lambda dy, b: dy * b, b=lambda dy, a: dy * a)

        A name that is not an input's, or a parameter that a rule may not have, raises
        ``RegistrationError``.
        """
        self._enter(
            [
                gradient_entry(spec, name, formula, override=override)
                for name, formula in of_inputs.items()
            ]
        )

    def vjp(
        self,
        spec: KernelSpec,
        *names: str,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Decorate the gradient rule of an input, of these ``dtypes``: others have no derivative.

        Its parameters name what it needs: ``dy`` (or ``dy_<output>`` for each of several
        outputs), inputs, outputs, attributes (``attributes``: a dict of all), and
        ``<input>_type`` where the type of an input will do; the tape saves that and nothing
        else. The rule returns a tensor of the input's dtype whose shape is the input's or
        broadcasts from it (the tape sums it back), or a list of them for a variadic input. Of
        complex numbers it sees and gives dL/dx - i dL/dy (docs/adr/0018)::

            @rules.vjp(SIN, "x")
            def sin(dy, x):
                return dy * cos(x)

        A rule with the parameter ``wanted`` serves several inputs (all, if none is named), which
        share work. ``wanted`` is the set of the inputs' names whose gradients are needed this
        time; the rule returns a mapping with exactly these keys::

            @rules.vjp(DIVIDE)
            def divide(wanted, dy, a, b):
                of_a = dy / b
                slopes = {"a": of_a, "b": -of_a * a / b}
                return {name: slopes[name] for name in wanted}

        The tape calls it once for all inputs on the way. Another plugin, or the user, may still
        replace the rule of a single input.
        """

        def decorate(rule: F) -> F:
            chosen = names or spec.input_names
            taken, asked = signatures.named(rule, f"gradient of {spec.name!r}")
            if len(chosen) != 1 or WANTED in (*taken, *asked):
                self._enter(joint_entries(spec, chosen, rule, dtypes=dtypes, override=override))
            else:
                entry = gradient_entry(spec, chosen[0], rule, dtypes=dtypes, override=override)
                self._enter([entry])
            return rule

        return decorate

    def stop(self, spec: KernelSpec, *names: str, because: str = "") -> None:
        """State that inputs have no derivative (all inputs, if none is named), and why."""
        self._enter(
            gradient_entry(spec, name, None, reason=because) for name in names or spec.input_names
        )

    def jvp(self, spec: KernelSpec, *names: str, override: bool = False) -> Callable[[F], F]:
        """Decorate the tangent rule of inputs (all, if none is named): of forward mode.

        Its parameters name what it needs: the tangents, ``x_dot`` for an input x (for a variadic
        input a list, with None for a tensor without one), and inputs, their types
        (``x_type``), outputs and attributes, as in a gradient rule. It is linear in the tangents,
        and is called only if there is one; of several ``names``, others are None. It returns a
        tensor of the output's dtype whose shape is the output's or broadcasts to it, or None for
        zero; for several outputs a list of these; ``NotImplemented`` for a call that it leaves to
        the gradient rule::

            @rules.jvp(MAX, "x")
            def max_(x_dot, x, out, axis): ...

        Tangents of complex numbers are derivatives along a real parameter.
        """

        def decorate(rule: F) -> F:
            chosen = names or spec.input_names
            self._enter(tangent_entries(spec, chosen, "rule", rule, override=override))
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
        self._enter(
            tangent_entries(spec, names, "linear", attributes=attributes, override=override)
        )

    def elementwise(self, *specs: KernelSpec, override: bool = False) -> None:
        """State that each element of the one output depends on one element of each input.

        Then the gradient rule, called on the tangent, gives the tangent. The inputs' shapes
        broadcast to the output's. Of a real output and a complex input, the tangent is the real
        part.
        """
        for spec in specs:
            for name in spec.input_names:
                self._enter(tangent_entries(spec, (name,), "elementwise", override=override))

    def symmetric(self, spec: KernelSpec, *names: str, override: bool = False) -> None:
        """State that the Jacobian with respect to each of these inputs is a symmetric matrix.

        Then, too, the gradient rule gives the tangent. Softmax is such a kernel.
        """
        for name in names:
            self._enter(tangent_entries(spec, (name,), "symmetric", override=override))

    def batch(self, spec: KernelSpec, *, override: bool = False) -> Callable[[F], F]:
        """Decorate a function of all examples: inputs by name, then what it asks keyword-only.

        Inputs whose names are in ``batched`` have the axis of the examples in front (all members
        of a list have it); the others are what each example gets. Other keywords: any attribute
        (``attributes``: a dict of all of them), ``size``, the number of examples, and ``out``, the
        output type of one example (a tuple of them if there are several outputs). It calls ops,
        and returns the output with the axis of the examples in front, or a list of outputs, or
        ``NotImplemented`` for calls that it does not serve::

            @rules.batch(TRANSPOSE)
            def transpose(x, *, perm):
                return permute_dims(x, (0, *(axis + 1 for axis in perm)))

        """
        return self._entering(lambda rule: batching_entry(spec, "rule", rule, override=override))

    def broadcast(self, *specs: KernelSpec, override: bool = False) -> None:
        """State that further axes in front of the inputs broadcast, and give such outputs."""
        self._enter(batching_entry(spec, "elementwise", override=override) for spec in specs)

    def leading(self, spec: KernelSpec, *axes: str, override: bool = False) -> None:
        """State that the kernel does the same along any further axis in front of its inputs.

        All of these get it. ``axes``: the attributes that number axes, which then count one more.
        """
        self._enter([batching_entry(spec, "leading", names=axes, override=override)])

    def folded(self, spec: KernelSpec, *inputs: str, override: bool = False) -> None:
        """State that axis 0 of ``inputs`` and of the outputs is a batch.

        The examples join it. This serves calls in which no other input depends on the example.
        """
        self._enter([batching_entry(spec, "folded", names=inputs, override=override)])

    def _enter(self, entries: Iterable[Rule]) -> None:
        for entry in entries:
            self._add(entry)


class GradientTable(RuleTable):
    """A ``RuleTable`` with the method names that gradients had in a table of their own."""

    def wrt(
        self,
        spec: KernelSpec,
        name: str,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Do as ``RuleTable.vjp`` with one name."""
        return self._entering(
            lambda rule: gradient_entry(spec, name, rule, dtypes=dtypes, override=override)
        )

    def of(
        self,
        spec: KernelSpec,
        *names: str,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Do as ``RuleTable.vjp`` with a rule that has the parameter ``wanted``."""

        def decorate(rule: F) -> F:
            chosen = names or spec.input_names
            self._enter(joint_entries(spec, chosen, rule, dtypes=dtypes, override=override))
            return rule

        return decorate


class TangentTable(RuleTable):
    """A ``RuleTable`` with the method names that tangents had in a table of their own."""

    wrt = RuleTable.jvp


class BatchingTable(RuleTable):
    """A ``RuleTable`` with the method names that batching had in a table of its own."""

    of = RuleTable.batch
    elementwise = RuleTable.broadcast
