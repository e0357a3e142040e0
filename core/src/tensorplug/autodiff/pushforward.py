"""Pushforwards: the tangents of a kernel's outputs from those of its inputs.

The tangent rule of an input says how, if there is one. Without it, an elementwise kernel has a
diagonal Jacobian, so that its gradient rule, called on the tangent, gives the tangent. Any other
gradient rule is linear in dy, and its transpose is the derivative.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.backpropagation import fit
from tensorplug.autodiff.grad import vjp
from tensorplug.autodiff.recipes import is_narrow, positional, widening_rule
from tensorplug.contract import dtypes as dt
from tensorplug.contract.owner import PROGRAM
from tensorplug.contract.rule_entries import WANTED, cotangent_names, tangent_name, type_names
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientError, GradientNotFoundError
from tensorplug.ops import creation, movement
from tensorplug.ops.elementwise import arithmetic, casting, complexes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug.autodiff.recipes import Recorded
    from tensorplug.contract.rule_entries import GradientEntry, JointRule, TangentEntry

    Tangent = Any  # of an input: a tensor, None for zero; a list of these for a variadic input
    Tangents = Sequence[Tangent]


def has_tangent(tangent: Tangent) -> bool:
    """Return whether the tangent of an input is not zero."""
    if isinstance(tangent, list):
        return any(member is not None for member in tangent)
    return tangent is not None


class Pushforward:
    """The derivative of the calls of one plan, for one set of inputs that have tangents.

    Args:
        plan: of a kernel call.
        wanted: for each input whether it has a tangent.

    """

    __slots__ = ("_plan", "_steps")

    def __init__(self, plan: Recorded, present: Sequence[bool]) -> None:
        self._plan = plan
        self._steps: list[Callable[..., Any]] = []
        if any(placement.type.dtype in dt.INEXACT for placement in plan.outputs):
            self._choose([name for name, want in zip(_names(plan), present, strict=True) if want])

    @property
    def is_zero(self) -> bool:
        """Whether the outputs have no tangents, because they do not depend on these inputs."""
        return not self._steps

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Tensor], tangents: Tangents
    ) -> list[Tensor | None]:
        """Return the tangents of ``outputs``, which a call with ``inputs`` has given.

        Raises:
            GradientError: a rule returns something other than tangents of the outputs.
            GradientNotFoundError: an input has neither a tangent rule nor a gradient rule.

        """
        parts = [self._listed(step(inputs, outputs, tangents)) for step in self._steps]
        return [
            self._summed([listed[at] for listed in parts], output)
            for at, output in enumerate(outputs)
        ]

    def of_one(self, inputs: Sequence[Any], output: Tensor, tangents: Tangents) -> Tensor | None:
        """Return the tangent of the only output; see ``__call__``."""
        steps = self._steps
        if len(steps) == 1:
            part: Tensor | None = steps[0](inputs, (output,), tangents)
            if part.__class__ is Tensor and part._placement is output._placement:
                return part  # the most frequent case
            parts = [part]
        else:
            parts = [step(inputs, (output,), tangents) for step in steps]
        return self._summed(parts, output)

    def _summed(self, parts: Iterable[Any], output: Tensor) -> Tensor | None:
        """Return the sum of the parts of an output's tangent; None for zero."""
        if output.dtype not in dt.INEXACT:
            return None
        checked = [self._checked(part, output) for part in parts if part is not None]
        if not checked:
            return None
        tangent = reduce(arithmetic.add, checked)
        if tangent.shape == output.shape:
            return tangent
        return movement.broadcast_to(tangent, output.shape)

    def _listed(self, parts: Any) -> Sequence[Any]:
        if not self._plan.spec.multiple_outputs:
            return (parts,)
        count = len(self._plan.outputs)
        if not isinstance(parts, list | tuple) or len(parts) != count:
            got = f"{len(parts)} tangents" if isinstance(parts, list | tuple) else type(parts)
            raise GradientError(f"the tangent of {self._plan.spec.name!r} is {got}, not {count}")
        return parts

    def _checked(self, part: Any, output: Tensor) -> Tensor:
        """Return the tangent of an output: of a real one the real part."""
        tangent: Tensor = part
        if part.__class__ is Tensor and part._placement.type is output._placement.type:
            return tangent  # the most frequent case
        what = f"the tangent of {self._plan.spec.name!r}"
        if not isinstance(part, Tensor):
            raise GradientError(f"{what} is {type(part).__name__}, not a tensor")
        if part.dtype in dt.COMPLEX and dt.real_part(part.dtype) is output.dtype:
            tangent = part = complexes.real(part)
        if part.dtype is output.dtype.compute is not output.dtype:
            tangent = part = casting.astype(part, output.dtype)
        lead = len(output.shape) - len(part.shape)
        fits = lead >= 0 and all(
            size in (1, whole) for size, whole in zip(part.shape, output.shape[lead:], strict=True)
        )
        if part.dtype is not output.dtype or not fits:
            raise GradientError(f"{what} is {part.type}, but must be {output.type}")
        return tangent

    # Steps: functions of inputs, outputs and tangents --------------------------------------

    def _choose(self, names: Sequence[str]) -> None:
        """Decide how the tangents of the inputs ``names`` pass the kernel."""
        plan, transposed = self._plan, []
        done: set[str] = set()
        for name in names:
            entry = _entry(plan, name)
            if name in done:
                continue
            if entry is not None and entry.kind in ("rule", "linear"):
                done.update(entry.together)
                apply = _apply_kernel if entry.rule is None else _apply_rule
                self._steps.append(apply(plan, entry))
                continue
            gradient = _gradient(plan, name)
            if gradient is None:
                continue
            if entry is not None:
                self._steps.append(_apply_diagonal(plan, gradient))
            else:
                transposed.append(gradient)
        if transposed:
            self._steps.append(_Transpose(plan, transposed))


def _names(plan: Recorded) -> tuple[str, ...]:
    return plan.spec.input_names


def _entry(plan: Recorded, name: str) -> TangentEntry | None:
    """Return the tangent rule of an input, unless the program has replaced its gradient rule.

    That of an elementwise kernel is its gradient rule.
    """
    owned = plan.state.tangent(plan.spec.name, name)
    if owned is None:
        return None
    if owned.entry.kind == "elementwise":
        return owned.entry
    gradient = plan.state.gradient(plan.spec.name, name)
    replaced = gradient is not None and gradient.owner is PROGRAM
    return None if replaced and owned.owner is not PROGRAM else owned.entry


def _gradient(plan: Recorded, name: str) -> GradientEntry | None:
    """Return the gradient rule of an input; None if it stops the gradient.

    Raises:
        GradientNotFoundError: there is none.

    """
    owned = plan.state.gradient(plan.spec.name, name)
    if owned is None:
        kernel = plan.spec.name
        raise GradientNotFoundError(
            f"kernel {kernel!r} has no derivative with respect to its input {name!r}; register a "
            f"gradient with register_gradient({kernel!r}, {name!r}, rule), or use stop_gradient"
        )
    type_ = plan.inputs[_names(plan).index(name)]
    dtype = type_[0].dtype if isinstance(type_, list) else type_.dtype
    return None if owned.entry.rule_for(dtype) is None else owned.entry


def _apply_kernel(plan: Recorded, entry: TangentEntry) -> Callable[..., Any]:
    """Return the step of a kernel that is linear in some inputs: the kernel itself."""
    run = dispatch_multiple if plan.spec.multiple_outputs else dispatch
    attributes = {**plan.attributes, **entry.attributes}
    chosen = [name in entry.together for name in _names(plan)]

    def step(inputs: Sequence[Any], _outputs: Any, tangents: Tangents) -> Any:
        operands = [
            _filled(tangent, x) if linear else x
            for x, tangent, linear in zip(inputs, tangents, chosen, strict=True)
        ]
        return run(plan.spec, *operands, **attributes)

    return step


def _filled(tangent: Tangent, x: Any) -> Any:
    """Return the tangent of an input, with zeros where there is none."""
    if isinstance(x, list):
        pairs = zip(tangent or [None] * len(x), x, strict=True)
        return [_filled(*pair) for pair in pairs]
    return creation.zeros_like(x) if tangent is None and x is not None else tangent


def _rule(plan: Recorded, entry: TangentEntry | GradientEntry) -> Callable[..., Any]:
    """Return the rule, with positional parameters; narrow floats it gets in a wider dtype."""
    assert entry.rule is not None
    rule = positional(entry.rule, entry.asks)
    return widening_rule(rule) if is_narrow(plan) else rule


def _apply_rule(plan: Recorded, entry: TangentEntry) -> Callable[..., Any]:
    rule = _rule(plan, entry)
    others: list[_Transpose] = []
    places = {tangent_name(name): _names(plan).index(name) for name in entry.together}
    choose = _chooser(plan, entry.asks, places)

    def step(inputs: Sequence[Any], outputs: Sequence[Tensor], tangents: Tangents) -> Any:
        dots = rule(*choose(inputs, outputs, tangents))
        if dots is not NotImplemented:
            return dots
        if not others:
            names = [
                name
                for name in entry.together
                if has_tangent(tangents[places[tangent_name(name)]])
            ]
            gradients = [_gradient(plan, name) for name in names]
            others.append(_Transpose(plan, [one for one in gradients if one is not None]))
        return others[0](inputs, outputs, tangents)

    return step


def _apply_diagonal(plan: Recorded, entry: GradientEntry) -> Callable[..., Any]:
    """Return the step of an elementwise kernel: its gradient rule, called on the tangent."""
    rule = _rule(plan, entry)
    at = _names(plan).index(entry.wrt)
    (dy,) = cotangent_names(plan.spec)
    choose = _chooser(plan, entry.asks, {dy: at})

    def step(inputs: Sequence[Any], outputs: Sequence[Tensor], tangents: Tangents) -> Any:
        return rule(*choose(inputs, outputs, tangents))

    return step


class _Transpose:
    """The step that transposes gradient rules: a function of dy, whose vjp is the derivative."""

    def __init__(self, plan: Recorded, entries: Sequence[GradientEntry]) -> None:
        self._plan = plan
        self._at = [_names(plan).index(entry.wrt) for entry in entries]
        self._alone = [entry for entry in entries if entry.joint is None]
        self._joint: dict[JointRule, list[str]] = {}
        for entry in entries:
            if entry.joint is not None:
                self._joint.setdefault(entry.joint, []).append(entry.wrt)

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Tensor], tangents: Tangents
    ) -> Any:
        def pull(dys: list[Tensor]) -> list[Any]:
            gradients = self._gradients(inputs, outputs, dys)
            return [
                self._fitted(gradients[_names(self._plan)[at]], at, tangents[at])
                for at in self._at
            ]

        zeros = [creation.zeros_like(output) for output in outputs]
        smooth = [at for at, output in enumerate(outputs) if output.dtype in dt.INEXACT]
        present = [_present(tangents[at]) for at in self._at]

        def of_smooth(dys: list[Tensor]) -> list[Any]:
            full = list(zeros)
            for at, dy in zip(smooth, dys, strict=True):
                full[at] = dy
            return pull(full)

        _, push = vjp(of_smooth, [zeros[at] for at in smooth], unconnected="zeros")
        dots: list[Any] = [None] * len(outputs)
        for at, dot in zip(smooth, push(present)[0], strict=True):
            dots[at] = dot
        return dots if self._plan.spec.multiple_outputs else dots[0]

    def _gradients(
        self, inputs: Sequence[Any], outputs: Sequence[Tensor], dys: list[Tensor]
    ) -> dict[str, Any]:
        """Return the gradients of the inputs by name."""
        plan = self._plan
        names = cotangent_names(plan.spec)
        variadic = plan.spec.outputs[0].endswith("[]")
        cotangents: dict[str, Any] = (
            {names[0]: dys} if variadic else dict(zip(names, dys, strict=True))
        )
        gradients: dict[str, Any] = {}
        for entry in self._alone:
            assert entry.rule is not None
            values = _values(plan, entry.asks, inputs, outputs, cotangents)
            gradients[entry.wrt] = entry.rule(**dict(zip(entry.asks, values, strict=True)))
        for rule, names_of_rule in self._joint.items():
            chosen = frozenset(names_of_rule)
            asks = rule.asks
            values = _values(plan, asks, inputs, outputs, {**cotangents, WANTED: chosen})
            what = f"{plan.spec.name!r}"
            gradients |= rule.call(what, chosen, dict(zip(asks, values, strict=True)))
        return gradients

    def _fitted(self, gradient: Any, at: int, tangent: Tangent) -> Any:
        """Return a gradient in the type of its input; of a list, those whose tangents count."""
        what = f"{self._plan.spec.name!r} with respect to {_names(self._plan)[at]!r}"
        type_ = self._plan.inputs[at]
        if not isinstance(type_, list):
            return fit(gradient, type_, what)
        if not isinstance(gradient, list | tuple) or len(gradient) != len(type_):
            raise GradientError(f"the gradient of {what} is not a list of {len(type_)} tensors")
        return [
            fit(one, own, what)
            for one, own, dot in zip(gradient, type_, tangent, strict=True)
            if dot is not None
        ]


def _present(tangent: Tangent) -> Any:
    if isinstance(tangent, list):
        return [member for member in tangent if member is not None]
    return tangent


def _chooser(
    plan: Recorded, asks: Iterable[str], tangents: Mapping[str, int]
) -> Callable[[Sequence[Any], Sequence[Tensor], Tangents], list[Any]]:
    """Return a function that picks what a rule asks for.

    ``tangents``: the positions of the inputs whose tangents it asks for, by the names of these.
    """
    places = [
        (_TANGENTS, tangents[name]) if name in tangents else _place(plan, name) for name in asks
    ]

    def choose(inputs: Sequence[Any], outputs: Sequence[Tensor], dots: Tangents) -> list[Any]:
        rows = (inputs, outputs, (outputs,), dots)
        return [at if row is None else rows[row][at] for row, at in places]

    return choose


_INPUTS, _OUTPUTS, _ALL_OUTPUTS, _TANGENTS = range(4)  # rows of `choose`


def _place(plan: Recorded, name: str) -> tuple[int | None, Any]:
    """Return the row, and the place in it, of what a rule asks for; for a constant None and it."""
    spec = plan.spec
    if name in spec.input_names:
        return _INPUTS, spec.input_names.index(name)
    if name in spec.output_names:
        variadic = spec.outputs[0].endswith("[]")
        return (_ALL_OUTPUTS, 0) if variadic else (_OUTPUTS, spec.output_names.index(name))
    if name in type_names(spec):
        return None, plan.inputs[type_names(spec).index(name)]
    return None, plan.attributes if name == "attributes" else plan.attributes[name]


def _values(
    plan: Recorded,
    asks: Iterable[str],
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    known: Mapping[str, Any],
) -> list[Any]:
    """Return the arguments that a rule asks for."""
    rows = (inputs, outputs, (outputs,))
    values = []
    for name in asks:
        if name in known:
            values.append(known[name])
        else:
            row, at = _place(plan, name)
            values.append(at if row is None else rows[row][at])
    return values
