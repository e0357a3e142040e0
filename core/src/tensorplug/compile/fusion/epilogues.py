"""Epilogues: products with a bias and an activation become one call of a fused kernel.

A backend may end a product, or a convolution, with a bias and an activation while its results are
in registers. Where it has such a kernel, ``activation(product + bias)`` becomes one call of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tensorplug.compile.fusion.steps import Steps
from tensorplug.compile.tracing.trace import Call
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.ops import elementwise, matrix_products
from tensorplug.ops.nn import activation, fused
from tensorplug.ops.nn.convolution import convolution, depthwise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.engine.engine import Engine

__all__ = ["add_epilogues"]

_PRODUCTS: Final[dict[KernelSpec, KernelSpec]] = {
    matrix_products.BATCH_MAT_MUL: fused.FUSED_MAT_MUL,
    convolution.CONV2D: fused.FUSED_CONV2D,
    depthwise.DEPTHWISE_CONV2D: fused.FUSED_DEPTHWISE_CONV2D,
}
_ACTIVATIONS: Final[dict[KernelSpec, str]] = {
    activation.RELU: "relu",
    activation.RELU6: "relu6",
    activation.ELU: "elu",
    activation.SIGMOID: "sigmoid",
    activation.LEAKY_RELU: "leakyrelu",
    activation.PRELU: "prelu",
}

Operand: TypeAlias = Value | Constant


class _Match(NamedTuple):
    """``activation(product + bias)``; ``inside``: the places of the calls before the last."""

    product: Call
    inside: list[int]
    bias: Operand | None = None
    activation: str = "linear"
    alpha: float | None = None  # of a leaky ReLU
    weights: Operand | None = None  # of a PReLU


def add_epilogues(engine: Engine, calls: Sequence[Call], wanted: Iterable[Operand]) -> list[Call]:
    """Return the calls with fused ones in the place of products and what ends them.

    ``wanted``: the values that the program returns. A bias alone is left to the elementwise calls
    that use the sum, whose group adds it without a pass of its own.
    """
    calls = list(calls)
    finder = _Finder(engine, calls, wanted)
    gone: set[int] = set()
    for at, call in enumerate(calls):
        match = finder.match(call)
        made = match and _fuse(engine, call, match)
        if match and made:
            calls[at] = made
            gone.update(match.inside)
    return [call for at, call in enumerate(calls) if at not in gone]


class _Finder:
    """Finds the calls that end a product."""

    def __init__(self, engine: Engine, calls: Sequence[Call], wanted: Iterable[Operand]) -> None:
        self._calls = calls
        self._places = {output: at for at, call in enumerate(calls) for output in call.outputs}
        self._uses = Counter(operand for call in calls for operand in call.operands())
        self._uses.update(wanted)
        self._steps = Steps(engine)

    def match(self, call: Call) -> _Match | None:
        """Return what ends with ``call``."""
        found: _Match | None
        spec = call.plan.spec
        if not _is_own(call):
            return None
        if spec is elementwise.ADD:
            found = self._biased(call)
            return None if found and self._joins_a_group(call.outputs[0]) else found
        if spec not in _ACTIVATIONS:
            return None
        x, *weights = call.operands()
        place = self._before(x)
        if place is None:
            return None
        inner = self._calls[place]
        if inner.plan.spec in _PRODUCTS:
            found = _Match(inner, [place])
        elif inner.plan.spec is elementwise.ADD:
            found = self._biased(inner)
        else:
            found = None
        return found and found._replace(
            inside=[*{*found.inside, place}],
            activation=_ACTIVATIONS[spec],
            alpha=call.plan.attributes.get("alpha"),
            weights=weights[0] if weights else None,
        )

    def _joins_a_group(self, x: Operand) -> bool:
        """Return whether calls that use ``x`` may be in a group, which then adds a bias too."""
        using = [call for call in self._calls if x in call.operands()]
        return any(self._steps.find(call.plan) is not None for call in using)

    def _biased(self, call: Call) -> _Match | None:
        """Return the product and the bias that ``call`` adds."""
        for product, bias in (call.operands(), reversed(call.operands())):
            place = self._before(product)
            if place is not None and self._calls[place].plan.spec in _PRODUCTS:
                return _Match(self._calls[place], [place], bias)
        return None

    def _before(self, x: Operand) -> int | None:
        """Return the place of the native call that makes ``x``, which is used once."""
        place = self._places.get(x) if isinstance(x, Value) else None
        if place is None or self._uses[x] != 1 or not _is_own(self._calls[place]):
            return None
        return place


def _is_own(call: Call) -> bool:
    """Return whether a call runs a kernel of the backend itself, not one put in its place."""
    return call.plan.how == "native" and call.plan.owner == call.plan.device.owner


def _fuse(engine: Engine, call: Call, match: _Match) -> Call | None:
    """Return the fused call with the result of ``call``; None if the backend has no kernel."""
    product, out = match.product.plan, call.outputs[0].placement.type
    ends: list[TensorType | None] = [
        None if operand is None else operand.placement.type
        for operand in (match.bias, match.weights)
    ]
    if out.dtype not in dt.FLOATING or not _broadcasts_alike(ends, out, product.attributes):
        return None
    spec = _PRODUCTS[product.spec]
    attributes = {**product.attributes, "activation": match.activation}
    if match.alpha is not None:
        attributes["leakyrelu_alpha"] = match.alpha
    if not attributes.keys() <= spec.attributes.keys():
        return None
    plan, _ = engine.explain(spec, product.device, [*product.inputs, *ends], attributes)
    operands = [*match.product.inputs, match.bias, match.weights]
    made = Call(plan, operands, call.outputs, call.site)
    return made if _is_own(made) else None


def _broadcasts_alike(
    ends: Sequence[TensorType | None], out: TensorType, attributes: Mapping[str, Any]
) -> bool:
    """Return whether bias and weights mean the same to the fused kernel: a number per channel.

    Others, such as a whole tensor that is added, are as well added by a group.
    """
    data_format = attributes.get("data_format", "NHWC")
    return data_format == "NHWC" and all(
        type_ is None or (type_.dtype is out.dtype and type_.shape in ((), (1,), out.shape[-1:]))
        for type_ in ends
    )
