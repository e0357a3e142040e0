"""Conformance cases: every step against its definition in wide arithmetic, with a bound for each.

Only the conformance suite imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, KernelSpec, ShapeError
from tensorplug_conformance import Bounded, Case, CaseTable
from tensorplug_conformance.corpus import LARGE
from tensorplug_train import specs
from tensorplug_train.bounds import Arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tensorplug_conformance import Corpus
    from tensorplug_conformance.tables import Array
    from tensorplug_train.bounds import Near

cases = CaseTable()

Answer = tuple[Bounded, ...]

# The oracles --------------------------------------------------------------------------------


class _Step:
    """A call's inputs and attributes, in wide arithmetic with bounds."""

    def __init__(
        self, spec: KernelSpec, inputs: tuple[Any, ...], attributes: Mapping[str, Any]
    ) -> None:
        self._arithmetic = Arithmetic(inputs[0].dtype)
        self._attributes = {
            name: attributes.get(name, attribute.default)
            for name, attribute in spec.attributes.items()
        }
        self._inputs = dict(zip(spec.input_names, inputs, strict=True))
        self.p = self["parameter"]
        self.g = self["gradient"]
        if self._attributes["weight_decay"] and not self._attributes.get("decoupled"):
            self.g = self.g + self.number("weight_decay") * self.p

    def __getitem__(self, name: str) -> Near:
        return self._arithmetic.exact(self._inputs[name])

    def has(self, name: str) -> bool:
        """Return whether an optional input is given, or a flag is set."""
        return self._inputs.get(name) is not None or self._attributes.get(name) is True

    def number(self, name: str) -> Near:
        """Return an attribute."""
        return self._arithmetic.constant(self._attributes[name])

    def mean(self, old: str, new: Near, share: str) -> Near:
        """Return the running mean of which the attribute ``share`` stays."""
        rest = self._arithmetic.constant(1 - self._attributes[share])
        return self.number(share) * self[old] + rest * new

    def zero(self) -> Near:
        """Return an exact 0."""
        return self._arithmetic.exact(np.zeros((), self._inputs["parameter"].dtype))

    def one(self) -> Near:
        """Return an exact 1."""
        return self._arithmetic.exact(np.ones((), self._inputs["parameter"].dtype))


def _oracle(spec: KernelSpec) -> Callable[[Callable[[_Step], tuple[Near, ...]]], Any]:
    """Turn a formula over a step into what the suite calls."""

    def decorate(formula: Callable[[_Step], tuple[Near, ...]]) -> Callable[..., Answer | Bounded]:
        def oracle(*inputs: Array | None, **attributes: Any) -> Answer | Bounded:
            answer = tuple(
                expression.bounded() for expression in formula(_Step(spec, inputs, attributes))
            )
            return answer if spec.multiple_outputs else answer[0]

        return oracle

    return decorate


@_oracle(specs.SGD)
def _sgd(step: _Step) -> tuple[Near, ...]:
    return (step.p - step["rate"] * step.g,)


@_oracle(specs.MOMENTUM)
def _momentum(step: _Step) -> tuple[Near, ...]:
    v = step.number("momentum") * step["velocity"] + step.g
    ahead = step.g + step.number("momentum") * v if step.has("nesterov") else v
    return step.p - step["rate"] * ahead, v


@_oracle(specs.ADAM)
def _adam(step: _Step) -> tuple[Near, ...]:
    p, rate = step.p, step["rate"]
    if step.has("decoupled"):
        p = p * (step.one() - rate * step.number("weight_decay"))
    m = step.mean("mean", step.g, "beta1")
    s = step.mean("square", step.g * step.g, "beta2")
    root = s.sqrt() / step["square_correction"].sqrt()
    return p - rate / step["mean_correction"] * (m / (root + step.number("epsilon"))), m, s


@_oracle(specs.ADAMAX)
def _adamax(step: _Step) -> tuple[Near, ...]:
    m = step.mean("mean", step.g, "beta1")
    n = (step.number("beta2") * step["norm"]).at_least(abs(step.g))
    return (
        step.p - step["rate"] / step["mean_correction"] * (m / (n + step.number("epsilon"))),
        m,
        n,
    )


@_oracle(specs.ADAGRAD)
def _adagrad(step: _Step) -> tuple[Near, ...]:
    s = step["square"] + step.g * step.g
    return step.p - step["rate"] * (step.g / (s + step.number("epsilon")).sqrt()), s


@_oracle(specs.RMSPROP)
def _rmsprop(step: _Step) -> tuple[Near, ...]:
    s = step.mean("square", step.g * step.g, "decay")
    kept, under = [s], s
    if step.has("mean"):
        m = step.mean("mean", step.g, "decay")
        under = (s - m * m).at_least(step.zero())
        kept.append(m)
    # A mean near the root of the mean square leaves a variance that is all rounding.
    epsilon = step.number("epsilon")
    least = np.sqrt(np.maximum(epsilon.value - epsilon.error, 0))
    move = step["rate"] * step.g.over((under + epsilon).sqrt(), least)
    if step.has("velocity"):
        move = step.number("momentum") * step["velocity"] + move
        kept.append(move)
    return (step.p - move, *kept)


# The cases ----------------------------------------------------------------------------------

# Numbers of a second step: the rate, 1 - 0.9**2 and 1 - 0.999**2. Differences for slopes are
# taken over steps that would be long beside such small numbers.
_NUMBERS: Final = {"rate": 0.125, "mean_correction": 0.19, "square_correction": 0.001999}
_LATER: Final = {"rate": 0.5, "mean_correction": 0.875, "square_correction": 0.75}
_NOT_NEGATIVE: Final = {"square", "norm"}

# Attributes beside the defaults, and what a kernel must refuse.
_DECAY: Final[dict[str, Any]] = {"weight_decay": 0.25}
_VARIANTS: Final[dict[KernelSpec, tuple[dict[str, Any], ...]]] = {
    specs.SGD: (_DECAY,),
    specs.MOMENTUM: ({"nesterov": True}, {"momentum": 0.0}, {"nesterov": True, **_DECAY}),
    specs.ADAM: (
        _DECAY,
        {"decoupled": True, **_DECAY},
        {"beta1": 0.0, "beta2": 0.5, "epsilon": 0.25},
    ),
    specs.ADAMAX: (_DECAY, {"beta1": 0.0, "beta2": 0.5, "epsilon": 0.25}),
    specs.ADAGRAD: (_DECAY, {"epsilon": 0.25}),
    specs.RMSPROP: (_DECAY, {"decay": 0.5, "epsilon": 0.25}),
}
_REFUSED: Final = (-1.0, float("inf"), float("nan"), "1", True)


def _inputs(
    spec: KernelSpec,
    corpus: Corpus,
    arrays: Callable[[int], Array],
    without: tuple[str, ...] = (),
    numbers: Mapping[str, float] = _NUMBERS,
) -> tuple[Array | None, ...]:
    """Return inputs of a call; ``arrays`` gives one after the other."""
    inputs: dict[str, Array | None] = {}
    for at, name in enumerate(spec.input_names):
        if name in numbers:
            inputs[name] = corpus.of(numbers[name])
        else:
            inputs[name] = np.abs(arrays(at)) if name in _NOT_NEGATIVE else arrays(at)
    mean, square = inputs.get("mean"), inputs.get("square")
    if spec is specs.RMSPROP and mean is not None and square is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # a variance is not negative
            inputs["square"] = corpus.of(square + mean * mean)
    return tuple(None if name in without else array for name, array in inputs.items())


def _many(spec: KernelSpec, corpus: Corpus, without: tuple[str, ...] = ()) -> Iterator[Case]:
    """Yield special values, awkward shapes and other layouts."""
    edges = corpus.edges()

    def drawn(shape: tuple[int, ...]) -> tuple[Array | None, ...]:
        return _inputs(spec, corpus, lambda _: corpus.ordinary(shape), without)

    # Each array is rotated differently, so that every special value meets ordinary ones.
    special = _inputs(spec, corpus, lambda at: np.roll(edges, at), without)
    also = f" without {' and '.join(without)}" if without else ""
    yield Case(f"edges{also}", special)
    for attributes in _VARIANTS[spec]:
        label = ", ".join(f"{name} {value}" for name, value in attributes.items())
        yield Case(f"edges{also}, {label}", special, attributes)
        yield Case(f"{label}{also}", drawn((5, 3)), attributes)
    for shape in ((), (0, 3), (2, 1, 3, 1, 2), (LARGE,)):
        yield Case(f"shape {list(shape)}{also}", drawn(shape))
    yield Case(f"transposed{also}", drawn((3, 4)), layout="transposed")
    yield Case(f"sliced{also}", drawn((3, 4)), layout="sliced")


def _refused(spec: KernelSpec, corpus: Corpus) -> Iterator[Case]:
    """Yield what no kernel may take."""
    row = _inputs(spec, corpus, lambda _: corpus.ordinary((3,)))
    other = "float64" if row[0] is not None and row[0].dtype == np.float32 else "float32"
    for at, name in enumerate(spec.input_names):
        array = row[at]
        assert array is not None  # all are given
        wrong = array.reshape(1, *array.shape)
        if at:
            mixed = _with(row, at, array.astype(other))
            yield Case(f"{name} of another dtype", mixed, expected=DTypeError)
            yield Case(f"{name} of another shape", _with(row, at, wrong), expected=ShapeError)
    for name, attribute in spec.attributes.items():
        if isinstance(attribute.default, bool):
            yield Case(f"{name} 1", row, {name: 1}, expected=ArgumentError)
        else:
            for value in _REFUSED:
                yield Case(f"{name} {value!r}", row, {name: value}, expected=ArgumentError)
        if name in ("beta1", "beta2", "decay"):
            yield Case(f"{name} 1.0", row, {name: 1.0}, expected=ArgumentError)


def _scattered_below_zero(corpus: Corpus) -> Case:
    """Return a state that rounding might leave: the mean's square exceeds the mean square."""
    names = {"parameter": 1.0, "gradient": 0.125, "square": 0.0, "mean": 8.0, "velocity": 0.5}
    numbers_of = {**names, **_NUMBERS}
    row = tuple(corpus.of([numbers_of[name]] * 3) for name in specs.RMSPROP.input_names[:-1])
    return Case("a variance below 0", (*row, corpus.of(numbers_of["rate"])))


def _with(row: tuple[Any, ...], at: int, other: Array) -> tuple[Any, ...]:
    return (*row[:at], other, *row[at + 1 :])


def _smooth(spec: KernelSpec, corpus: Corpus, without: tuple[str, ...] = ()) -> Iterator[Case]:
    """Yield points away from where a root or a larger one has no slope."""

    def drawn(shape: tuple[int, ...]) -> tuple[Array | None, ...]:
        def apart(at: int) -> Array:
            return corpus.ordinary(shape, (at + 1) / 4, (at + 2) / 4)

        return _inputs(spec, corpus, apart, without, _LATER)

    also = f" without {' and '.join(without)}" if without else ""
    yield Case(f"row{also}", drawn((3,)))
    for attributes in _VARIANTS[spec]:
        label = ", ".join(f"{name} {value}" for name, value in attributes.items())
        yield Case(f"{label}{also}", drawn((2, 2)), attributes)


def _enter(spec: KernelSpec, oracle: Any, *options: tuple[str, ...]) -> None:
    """Put the cases of a kernel into the table; ``options``: which inputs may be left out."""
    # What is under a root is not negative, and does not vanish by chance.
    squares = [name for name in spec.input_names if name in ("square", "mean")]

    @cases.of(spec, oracle=oracle, ordinary=squares)
    def all_of(corpus: Corpus) -> Iterator[Case]:
        for without in ((), *options):
            yield from _many(spec, corpus, without)
        yield from _refused(spec, corpus)
        if spec is specs.RMSPROP:
            yield _scattered_below_zero(corpus)

    @cases.gradients(spec, *spec.input_names)
    def smooth(corpus: Corpus) -> Iterator[Case]:
        for without in ((), *options):
            yield from _smooth(spec, corpus, without)


_enter(specs.SGD, _sgd)
_enter(specs.MOMENTUM, _momentum)
_enter(specs.ADAM, _adam)
_enter(specs.ADAMAX, _adamax)
_enter(specs.ADAGRAD, _adagrad)
_enter(specs.RMSPROP, _rmsprop, ("mean",), ("velocity",), ("mean", "velocity"))
