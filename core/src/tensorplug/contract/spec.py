"""Kernel specs: what every kernel of one name must do, on whatever backend.

A spec holds the name (TensorFlow's), the inputs, the attributes with their defaults, which
dtypes are accepted and promoted, and the rule that gives shape and dtype of every output.
Kernels, gradients and decompositions never repeat any of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes, signatures
from tensorplug.contract.arguments import quoted
from tensorplug.contract.declarations import REQUIRED, Attribute, Input
from tensorplug.contract.expression_rules import ExpressionRule
from tensorplug.contract.extents import plain
from tensorplug.contract.facts import Facts
from tensorplug.contract.tensor_types import (
    UNKNOWN,
    InputType,
    InputTypes,
    TensorType,
    members,
    show,
)
from tensorplug.errors import ArgumentError, DTypeError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given


__all__ = [
    "REQUIRED",
    "UNKNOWN",
    "Attribute",
    "Input",
    "InputType",
    "InputTypes",
    "KernelSpec",
    "TensorType",
    "show",
]


@dataclass(frozen=True, eq=False)
class KernelSpec(Facts):
    """What every kernel called ``name`` must do.

    Args:
        name: TensorFlow's name, such as ``SquaredDifference``.
        inputs: names in order; ``"scale?"`` may be absent, ``"xs[]"`` is a list.
        infer: gives the output type (a tuple of them if there are several outputs) from the
            input types, positionally, and from the attributes it names as keyword-only
            parameters (``attributes``: a dict of all). A size that depends on the data is
            ``UNKNOWN``. It may raise ``ArgumentError`` and ``DTypeError``; the spec adds who.
        attributes: name -> ``Attribute``, in order.
        outputs: names; ``("outs[]",)`` where their number depends on the inputs.
        accepts: dtypes allowed, for all inputs or by input name (others: anything).
        promote: inputs that are brought to their common dtype before a kernel sees them.
        inexact: integers and booleans among ``promote`` become the default float.
        typed_by: the input whose dtype is that of the call (see ``dtype_of``), "" for the first
            output; needed only where that is not the first input that may hold floats.
        expression: what an elementwise kernel computes (see ``ExpressionRule``): the name of an
            operation, such as "add", or a function of expressions; for calls for which it
            returns None or raises ``DTypeError``, and without it, the decomposition says so.
        exact: the kernel only moves elements, or depends on their bits: it runs in the dtypes of
            the call, never in wider ones whose results are rounded. By default, what takes
            strings.
        autocast: the dtype in which it runs inside ``autocast``: ``"low"``, that of the block, for
            kernels that take most of the time; ``"float32"`` where rounded inputs would lose.
            Kernels of the core are listed in ``engine/autocast.py``.

    Facts of its structure spare it rules: ``linear``, ``linear_with``, ``elementwise``,
    ``symmetric``, ``fold`` and ``leading``, by keyword (see ``Facts``).

    Examples:
        >>> spec = tp.KernelSpec("Total", ("x",), lambda x: tp.TensorType(x.dtype, x.shape[:-1]))
        >>> with tp.register_kernel(spec, "cpu", lambda x: x.sum(axis=-1)):
        ...     print(tp.run_kernel(spec, [[[1.0, 2.0], [3.0, 4.0]]]))
        Tensor([3., 7.], dtype=float32, device='cpu')

    """

    name: str
    inputs: tuple[str, ...]
    infer: Callable[..., TensorType | tuple[TensorType, ...]]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("out",)
    accepts: frozenset[DType] | Mapping[str, frozenset[DType]] = dt.STORED
    promote: tuple[str, ...] = ()
    inexact: bool = False
    typed_by: str | None = None
    expression: Given | None = None
    exact: bool | None = None
    autocast: Literal["low", "float32"] | None = None

    # Derived once, read on every call.
    declared: tuple[Input, ...] = field(init=False, repr=False)
    input_names: tuple[str, ...] = field(init=False, repr=False)
    output_names: tuple[str, ...] = field(init=False, repr=False)
    multiple_outputs: bool = field(init=False, repr=False)
    expression_rule: ExpressionRule | None = field(init=False, repr=False)
    _infer_asks: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_forms()
        if not self.outputs:
            raise RegistrationError(f"kernel spec {self.name!r}: it must have an output")
        accepts: Any = self.accepts
        if not isinstance(accepts, frozenset) and not (
            isinstance(accepts, Mapping)
            and all(isinstance(dtypes, frozenset) for dtypes in accepts.values())
        ):
            raise RegistrationError(
                f"kernel spec {self.name!r}: accepts must be a frozenset of dtypes, or one for "
                f"each input by name, got {quoted(self.accepts)}"
            )
        if self.inexact and not self.promote:
            raise RegistrationError(
                f"kernel spec {self.name!r}: inexact concerns the inputs in promote, but there "
                "are none"
            )
        declared = tuple(Input.parse(text) for text in self.inputs)
        names = tuple(item.name for item in declared)
        derive = object.__setattr__  # the dataclass is frozen for everyone else
        derive(self, "declared", declared)
        derive(self, "input_names", names)
        derive(self, "output_names", tuple(text.rstrip("[]") for text in self.outputs))
        derive(self, "multiple_outputs", len(self.outputs) > 1 or self.outputs[0].endswith("[]"))
        derive(self, "_infer_asks", self._check(names))
        derive(self, "expression_rule", self._read_expression(names))
        if self.elementwise is None:
            derive(self, "elementwise", self.expression is not None)
        outputs = len(self.outputs) + self.multiple_outputs
        self._check_facts(f"kernel spec {self.name!r}", names, self.attributes, outputs)
        if self.typed_by is None:
            derive(self, "typed_by", self._main_input())
        if self.exact is None:
            moves = self.typed_by and dt.string in self.accepted(self.typed_by)
            derive(self, "exact", bool(moves))

    def _check_forms(self) -> None:
        """Refuse arguments of classes that no spec has.

        Raises:
            RegistrationError: there is one.

        """
        if not isinstance(self.name, str):
            raise RegistrationError(f"kernel spec: name must be text, got {quoted(self.name)}")
        role = f"kernel spec {quoted(self.name)}"
        for what in ("inputs", "outputs", "promote"):
            names = getattr(self, what)
            if not isinstance(names, tuple | list) or not all(isinstance(x, str) for x in names):
                raise RegistrationError(
                    f"{role}: {what} must be a tuple of names, got {quoted(names)}"
                )
        if not isinstance(self.typed_by, str | None):
            raise RegistrationError(
                f"{role}: typed_by must be the name of an input, got {quoted(self.typed_by)}"
            )
        if not isinstance(self.inexact, bool):
            raise RegistrationError(
                f"{role}: inexact must be True or False, got {quoted(self.inexact)}"
            )
        if self.autocast not in (None, "low", "float32"):
            raise RegistrationError(
                f"{role}: autocast must be 'low' or 'float32', got {quoted(self.autocast)}"
            )
        attributes: Any = self.attributes
        if not isinstance(attributes, Mapping) or not all(
            isinstance(name, str) and isinstance(attribute, Attribute)
            for name, attribute in attributes.items()
        ):
            raise RegistrationError(
                f"{role}: attributes must be Attributes by name, got {quoted(attributes)}"
            )

    def _check(self, names: tuple[str, ...]) -> tuple[str, ...]:
        role = f"kernel spec {self.name!r}"
        everything = [*names, *self.attributes, *self.output_names]
        if len(set(everything)) != len(everything):
            raise RegistrationError(f"{role}: a name is used twice among {everything}")
        reserved = {"attributes", "backend"} & set(everything)
        if reserved:
            raise RegistrationError(f"{role}: {sorted(reserved)} have a meaning of their own")
        unknown = {*self.promote, self.typed_by or ""} - {*names, ""}
        if not isinstance(self.accepts, frozenset):
            unknown |= set(self.accepts) - set(names)
        if unknown:
            raise RegistrationError(f"{role}: {sorted(unknown)} are not inputs of it")
        taken, asks = signatures.named(self.infer, role)
        allowed = {*self.attributes, "attributes"}
        if len(taken) != len(names) or not set(asks) <= allowed:
            raise RegistrationError(
                f"{role}: its infer rule {signatures.location(self.infer)} must take "
                f"{len(names)} input types, then any of {list(self.attributes)} keyword-only"
            )
        return asks

    def _read_expression(self, names: tuple[str, ...]) -> ExpressionRule | None:
        if self.expression is None:
            return None
        role = f"kernel spec {self.name!r}"
        if self.multiple_outputs:
            raise RegistrationError(f"{role}: expression is for kernels of one output")
        return ExpressionRule(self.expression, role, names, self.attributes)

    def _main_input(self) -> str:
        """Return the input whose dtype is that of the call; "" where there is no input."""
        if self.promote:
            return self.promote[0]
        data = [
            name for name in self.input_names if not self.accepted(name).isdisjoint(dt.INEXACT)
        ]
        return next(iter(data or self.input_names), "")

    def dtype_of(self, types: Sequence[InputType], outputs: Sequence[TensorType]) -> DType:
        """Return the dtype of a call, which ``dtypes=`` of a kernel is compared with.

        It is that of the input ``typed_by``: the first one that is promoted, else the first one
        that may hold floats (so indices and conditions do not count), else the first one. A call
        without inputs has the dtype of its first output.
        """
        by_name = dict(zip(self.input_names, types, strict=True))
        typing = members(by_name.get(self.typed_by or ""))
        return typing[0].dtype if typing else outputs[0].dtype

    def __repr__(self) -> str:
        return f"<KernelSpec {self.name}>"

    def accepted(self, name: str) -> frozenset[DType]:
        """Return the dtypes that input ``name`` may have."""
        if isinstance(self.accepts, frozenset):
            return self.accepts
        return self.accepts.get(name, dt.STORED)

    def describe(self, types: Sequence[InputType]) -> str:
        """Return a call with these input types as text, for messages."""
        parts = [
            f"{name}={show(type_)}" for name, type_ in zip(self.input_names, types, strict=False)
        ]
        return f"{self.name}({', '.join(parts)})"

    def promoted(self, types: Sequence[InputType]) -> DType | None:
        """Return the dtype to which the ``promote`` inputs are brought; None without any.

        Raises:
            DTypeError: when they have no common dtype.

        """
        dtypes = [
            member.dtype
            for name, type_ in zip(self.input_names, types, strict=False)
            if name in self.promote
            for member in members(type_)
        ]
        if not dtypes:  # if one is missing, `resolve` says so
            return None
        try:
            common = dt.promote(dtypes)
        except DTypeError as error:
            raise DTypeError(f"{self.describe(types)}: {error}") from None
        return dt.inexact(common) if self.inexact else common

    def resolve(
        self,
        types: Sequence[InputType],
        given: Mapping[str, Any],
        declared: frozenset[DType] = frozenset(),
    ) -> tuple[dict[str, Any], tuple[TensorType, ...]]:
        """Check a call and return its canonical attributes and output types.

        ``types`` are the inputs' types after promotion, one entry per declared input;
        ``declared`` are dtypes for storage for which the backend has a kernel all the same.

        Raises:
            ArgumentError: a missing input, an unknown or missing or bad attribute, shapes
                that do not fit, an output of more than 64 axes or 2**63 bytes.
            DTypeError: a dtype that an input does not accept.

        """
        return self._resolve(types, given, declared, types)

    def _resolve(
        self,
        types: Sequence[InputType],
        given: Mapping[str, Any],
        declared: frozenset[DType],
        unwatched: Sequence[InputType],
    ) -> tuple[dict[str, Any], tuple[TensorType, ...]]:
        """Do the same; ``unwatched``: the types for inference, which may read all sizes.

        If these are other objects, attributes may have extents.
        """
        try:
            self._check_inputs(types, declared)
            attributes = self._canonical(types, given)
            known = attributes
            if unwatched is not types:
                known = {name: plain(value) for name, value in attributes.items()}
            outputs = self._infer_outputs(unwatched, known)
        except (ArgumentError, DTypeError) as error:
            raise type(error)(f"{self.describe(types)}: {error}") from None
        return attributes, outputs

    def _infer_outputs(
        self, types: Sequence[InputType], attributes: dict[str, Any]
    ) -> tuple[TensorType, ...]:
        """Return the output types of a call with canonical attributes.

        Raises:
            ArgumentError: shapes do not fit, or an output is too large.

        """
        known = {**attributes, "attributes": attributes}
        asked = {name: known[name] for name in self._infer_asks}
        outputs = self._checked(self.infer(*types, **asked))
        for output, before in zip(outputs, (None, *outputs), strict=False):
            if output is not before:  # of thousands of equal parts, one
                shapes.check_limits(output.shape, output.dtype.itemsize)
        return outputs

    def _checked(self, result: Any) -> tuple[TensorType, ...]:
        """Return what the infer rule gave as a tuple of one type per output.

        Raises:
            RegistrationError: when it is something else.

        """
        outputs = result if isinstance(result, tuple) else (result,)
        right = len(outputs) == len(self.outputs) or self.outputs[0].endswith("[]")
        if not right or False in [isinstance(output, TensorType) for output in outputs]:
            raise RegistrationError(
                f"kernel spec {self.name!r}: its infer rule {signatures.location(self.infer)} "
                f"returned {result!r} instead of one TensorType for each of {list(self.outputs)}"
            )
        return outputs

    def _check_inputs(self, types: Sequence[InputType], more: frozenset[DType]) -> None:
        if len(types) != len(self.declared):
            raise ArgumentError(f"takes {len(self.declared)} inputs, got {len(types)}")
        for declared, type_ in zip(self.declared, types, strict=True):
            if declared.variadic != isinstance(type_, list):
                form = "a list of tensors" if declared.variadic else "one tensor"
                raise ArgumentError(f"input {declared.name!r} must be {form}")
            if type_ is None and not declared.optional:
                raise ArgumentError(f"input {declared.name!r} is missing")
            allowed = self.accepted(declared.name)
            for member in members(type_):
                if member.dtype not in allowed and member.dtype not in more:
                    stored = member.dtype in dt.STORAGE
                    hint = f"; {member.dtype} is for storage: convert it with astype"
                    raise DTypeError(
                        f"input {declared.name!r} is {member}, but its dtype must be one of "
                        f"{', '.join(sorted(dtype.name for dtype in allowed))}{hint * stored}"
                    )

    def _canonical(self, types: Sequence[InputType], given: Mapping[str, Any]) -> dict[str, Any]:
        unknown = [name for name in given if name not in self.attributes]
        if unknown:
            known = ", ".join(self.attributes) or "none"
            raise ArgumentError(f"has no attribute {unknown[0]!r}; its attributes: {known}")
        by_name: InputTypes = dict(zip(self.input_names, types, strict=True))
        result: dict[str, Any] = {}
        for name, attribute in self.attributes.items():
            value = given.get(name, attribute.default)
            if value is REQUIRED:
                raise ArgumentError(f"attribute {name!r} is missing")
            try:
                result[name] = by_name[name] = attribute.canonical(value, by_name)
            except (ArgumentError, DTypeError) as error:
                raise type(error)(f"attribute {name!r}: {error}") from None
        return result
