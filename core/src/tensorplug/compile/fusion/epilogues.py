"""Epilogues: products with a bias and an activation become one call of a fused kernel.

A backend may end a product, or a convolution, with a bias and an activation while its results are
in registers. Where it has such a kernel, ``activation(product + bias)`` becomes one call of it.

Between a product and its bias may be Transposes and Reshapes, as in a convolution of groups of
channels, which is a product for each group. A constant bias is brought to the product's axes then.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tensorplug.compile.fusion.arrangements import Arrangements, shape_of
from tensorplug.compile.fusion.reshapes import broadcast_before
from tensorplug.compile.fusion.steps import Steps
from tensorplug.compile.fusion.structures import has_step
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.ops import matrix_products, movement
from tensorplug.ops.elementwise import arithmetic
from tensorplug.ops.nn import activation, fused
from tensorplug.ops.nn.convolution import convolution, depthwise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.engine.engine import Engine


_PRODUCTS: Final[dict[KernelSpec, KernelSpec]] = {
    matrix_products.BATCH_MAT_MUL: fused.FUSED_MAT_MUL,
    convolution.CONV2D: fused.FUSED_CONV2D,
    depthwise.DEPTHWISE_CONV2D: fused.FUSED_DEPTHWISE_CONV2D,
}
_MOVES: Final = (movement.TRANSPOSE, movement.RESHAPE)
_MOVED: Final = (matrix_products.BATCH_MAT_MUL,)  # products that may have moves behind them
_ACTIVATIONS: Final[dict[KernelSpec, str]] = {
    activation.RELU: "relu",
    activation.RELU6: "relu6",
    activation.ELU: "elu",
    activation.SIGMOID: "sigmoid",
    activation.LEAKY_RELU: "leakyrelu",
    activation.PRELU: "prelu",
}
_SCALING: Final = ("leakyrelu", "prelu")
"""Activations that may bring what is too large for a narrow float into its range, as a bias may.

The fused kernel rounds once; the calls, each to the dtype.
"""

Operand: TypeAlias = Value | Constant


class _Match(NamedTuple):
    """``activation(product + bias)``.

    ``place``: that of the product. ``moves``: those of the Transposes and Reshapes behind it, in
    their order. ``added``: that of the addition.
    """

    place: int
    moves: tuple[int, ...]
    added: int | None = None
    bias: Operand | None = None
    activation: str = "linear"
    alpha: float | None = None  # of a leaky ReLU
    weights: Operand | None = None  # of a PReLU


def add_epilogues(
    engine: Engine,
    calls: Sequence[Call],
    results: Iterable[Operand],
    declined: list[Call] | None = None,
) -> list[Call]:
    """Return the calls with fused ones in the place of products and what ends them.

    ``results``: the values that the program returns. ``declined``: gets the calls that end a
    product, for which there is no kernel at these sizes. A bias alone is left to the elementwise
    calls that use the sum, whose group adds it without a pass of its own; not if elements are
    moved between product and bias, since groups begin after that.
    """
    calls = list(calls)
    finder = _Finder(engine, calls, results)
    gone: set[int] = set()
    for at, call in enumerate(calls):
        match = finder.match(call)
        if match is None:
            continue
        moves = [calls[number] for number in match.moves]
        made = _fuse(engine, calls[match.place], call, match, moves)
        if made is None:
            continue
        if not _is_own(made):
            if declined is not None:
                declined.append(call)
            continue
        if moves:  # the last one makes the result of ``call``, in its place
            *_, last = moves
            calls[match.place] = made
            calls[at] = Call(last.plan, last.inputs, call.outputs, last.site)
            gone.add(match.moves[-1])
        else:
            calls[at] = made
            gone.add(match.place)
        if match.added is not None:
            gone.add(match.added)
    return [call for at, call in enumerate(calls) if at not in gone]


class _Finder:
    """Finds the calls that end a product."""

    def __init__(self, engine: Engine, calls: Sequence[Call], results: Iterable[Operand]) -> None:
        self._calls = calls
        self._places = {output: at for at, call in enumerate(calls) for output in call.outputs}
        self._users: dict[Operand, list[Call]] = {}
        for call in calls:
            for operand in call.operands():
                self._users.setdefault(operand, []).append(call)
        self._uses = Counter({operand: len(users) for operand, users in self._users.items()})
        self._uses.update(results)
        self._steps = Steps(engine)

    def match(self, call: Call) -> _Match | None:
        """Return what ends with ``call``."""
        match: _Match | None
        spec = call.plan.spec
        if not _is_own(call):
            return None
        if spec is arithmetic.ADD:
            match = self._biased(call)
            leaves = self._is_ended if match and match.moves else self._joins_a_group
            return None if leaves(call.outputs[0]) else match
        if spec not in _ACTIVATIONS:
            return None
        x, *weights = call.operands()
        match = self._product(x)
        if match is None:
            number = self._before(x)
            if number is None or self._calls[number].plan.spec is not arithmetic.ADD:
                return None
            biased = self._biased(self._calls[number])
            match = biased and biased._replace(added=number)
        return match and match._replace(
            activation=_ACTIVATIONS[spec],
            alpha=call.plan.attributes.get("alpha"),
            weights=weights[0] if weights else None,
        )

    def _joins_a_group(self, x: Operand) -> bool:
        """Return whether calls that use ``x`` may be in a group, which then adds a bias too."""
        return any(has_step(self._steps, call) for call in self._users.get(x, ()))

    def _is_ended(self, x: Operand) -> bool:
        """Return whether an activation is all that uses ``x``; then the match is found there."""
        ends = [
            call
            for call in self._users.get(x, ())
            if call.plan.spec in _ACTIVATIONS and _is_own(call)
        ]
        return self._uses[x] == len(ends) == 1

    def _biased(self, call: Call) -> _Match | None:
        """Return the product and the bias that ``call`` adds."""
        for product, bias in (call.operands(), reversed(call.operands())):
            product_match = self._product(product)
            if product_match is not None:
                return product_match._replace(bias=bias)
        return None

    def _product(self, x: Operand) -> _Match | None:
        """Return the product that makes ``x``, perhaps with its elements moved afterwards."""
        moves: list[int] = []
        number = self._before(x)
        while number is not None and self._calls[number].plan.spec in _MOVES:
            moves.insert(0, number)
            number = self._before(self._calls[number].operands()[0])
        if number is None or self._calls[number].plan.spec not in (_MOVED if moves else _PRODUCTS):
            return None
        return _Match(number, tuple(moves))

    def _before(self, x: Operand) -> int | None:
        """Return the place of the native call that makes ``x``, which is used once."""
        number = self._places.get(x) if isinstance(x, Value) else None
        if number is None or self._uses[x] != 1 or not _is_own(self._calls[number]):
            return None
        return number


def _is_own(call: Call) -> bool:
    """Return whether a call runs a kernel of the backend itself, not one put in its place."""
    return call.plan.how == "native" and call.plan.owner == call.plan.device.owner


def _fuse(
    engine: Engine, producing: Call, call: Call, match: _Match, moves: Sequence[Call]
) -> Call | None:
    """Return the fused call, for which a backend may have no kernel; None if there is none.

    It makes what ``call`` makes, before the ``moves``.
    """
    product, out = producing.plan, producing.outputs[0].placement.type
    bias = _carried(engine, producing, match, moves) if moves else match.bias
    if moves and bias is None:
        return None
    operands = [bias, match.weights]
    ends: list[TensorType | None] = [
        None if operand is None else operand.placement.type for operand in operands
    ]
    if out.dtype not in dt.FLOATING:
        return None
    if out.dtype.compute is not out.dtype and (bias or match.activation in _SCALING):
        return None
    if not moves and not _broadcasts_alike(ends, out, product.attributes):
        return None
    spec = _PRODUCTS[product.spec]
    attributes = {**product.attributes, "activation": match.activation}
    if match.alpha is not None:
        attributes["leakyrelu_alpha"] = match.alpha
    if not attributes.keys() <= spec.attributes.keys():
        return None
    # Resolved without data: a backend may decline this very shape, and the calls stay as they are.
    plan, _ = engine.explain(spec, product.device, [*product.inputs, *ends], attributes)
    outputs = producing.outputs if moves else call.outputs
    return Call(plan, [*producing.inputs, *operands], outputs, call.site)


def _carried(
    engine: Engine, product: Call, match: _Match, moves: Sequence[Call]
) -> Operand | None:
    """Return a bias that is constant for a stack of products, before ``moves``.

    None if it, or the matrices, are not constant, if it is not a number for each column of each
    product, or there are weights as well.
    """
    bias, out = match.bias, product.outputs[0].placement.type
    constants = product.inputs[1], bias
    if match.weights is not None or not all(isinstance(each, Constant) for each in constants):
        return None
    assert bias is not None  # it is constant
    made = _before_moves(Arrangements(engine, product.plan.device), bias, moves)
    target = (*out.shape[:-2], 1, out.shape[-1])
    if made is None or made.placement.type.dtype is not out.dtype or shape_of(made) != target:
        return None
    return made


def _before_moves(new: Arrangements, end: Operand, moves: Sequence[Call]) -> Operand | None:
    """Return what broadcasts to the input of ``moves`` as ``end`` does to their output."""
    rank, shape = len(shape_of(moves[-1].outputs[0])), shape_of(end)
    if len(shape) > rank:
        return None
    end = new.reshaped(end, (1,) * (rank - len(shape)) + shape)
    for move in reversed(moves):
        if move.plan.spec is movement.TRANSPOSE:
            end = new.turned(end, move.plan.attributes["perm"])
            continue
        before, after = (shape_of(x) for x in (move.operands()[0], move.outputs[0]))
        target = broadcast_before(shape_of(end), before, after)
        if target is None:
            return None
        end = new.reshaped(end, target)
    return end


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
