"""Cases for activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import SELU_ALPHA, SELU_SCALE
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.nn import activation as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

cases.of(specs.RELU, oracle=oracle.relu)(patterns.unary)
cases.of(specs.RELU6, oracle=oracle.relu6)(lambda corpus: patterns.unary(corpus, _to_6(corpus)))


def _to_6(corpus: Corpus) -> Callable[[tuple[int, ...]], Array]:
    return lambda shape: corpus.ordinary(shape, -8.0, 16.0)


_FALLING = patterns.far_out(np.exp, -5.0, -9.5, -20.0, -40.0)
_SELU_FALLING = patterns.far_out(
    lambda x: np.exp(x) * np.longdouble(SELU_SCALE) * np.longdouble(SELU_ALPHA), -9.5, -20.0
)
_RISING = patterns.far_out(lambda x: 1 / (1 + np.exp(-x)), -9.5, -20.0, -40.0)

for spec, curve, beyond in (
    (specs.ELU, oracle.elu, _FALLING),
    (specs.SELU, oracle.selu, _SELU_FALLING),
    (specs.SOFTPLUS, oracle.softplus, _RISING),
):

    @cases.of(spec, oracle=curve)
    def exponential(corpus: Corpus) -> Iterator[Case]:
        """Near 0, where adding 1 loses digits, and far out, where powers overflow or vanish."""
        yield from patterns.unary(corpus)
        near = corpus.ordinary((65,)) * corpus.of(2.0**-7)
        yield Case("near 0", (near,))
        yield Case("tiny", (near * corpus.of(2.0**-7),))
        yield Case("far", (corpus.of([-1000.0, -100, -50, -9.5, 9.5, 50, 100, 1000]),))

    @cases.gradients(spec, "x")
    def exponential_points(
        corpus: Corpus, beyond: Callable[[Corpus], Iterator[Case]] = beyond
    ) -> Iterator[Case]:
        yield from beyond(corpus)
        yield Case("both sides", (corpus.of([-3.0, -1.5, -0.5, 0.5, 2.0]),))
        yield Case("rank 3", (corpus.ordinary((2, 1, 3), 0.25, 2.0),))
        yield Case("rank 0", (corpus.ordinary((), -2.0, -0.25),))
        yield Case("empty", (corpus.ordinary((0, 3)),))


@cases.of(specs.SIGMOID_GRAD, oracle=oracle.sigmoid_grad)
def sigmoid_grad(corpus: Corpus) -> Iterator[Case]:
    """Far out on both sides, where 1 minus a sigmoid loses all digits. Dy is finite."""
    far = [-1000.0, -740, -104, -88, -50, -17, -9.5, -0.0, 0.0, 9.5, 17, 50, 88, 104, 740, 1000]
    x = corpus.of([*far, np.inf, -np.inf, np.nan])
    yield Case("far", (corpus.ordinary(x.shape, 0.5, 2.0), x))
    yield from patterns.slopes(corpus)


@cases.gradients(specs.SIGMOID_GRAD, "dy", "x")
def sigmoid_grad_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.slope_points(corpus)


@cases.of(specs.ELU_GRAD, oracle=oracle.elu_grad)
def elu_grad(corpus: Corpus) -> Iterator[Case]:
    """y as Elu gives it: from -1 to infinity."""

    def y(shape: tuple[int, ...]) -> Array:
        return corpus.ordinary(shape, -1.0, 2.0)

    values = corpus.of([-1.0, -0.5, -0.0, 0.0, 1.0, np.inf, np.nan])
    finite = corpus.of([0.0, -0.0, 1.0, -3.0, 0.001])
    yield Case("edges", tuple(np.array(np.meshgrid(finite, values)).reshape(2, -1)))
    for name, shape in (("rank 0", ()), ("empty", (0, 3)), ("odd", (7,)), ("large", (LARGE,))):
        yield Case(name, (corpus.ordinary(shape), y(shape)))
    yield Case("rank 6", (corpus.ordinary((1, 2, 1, 3, 1, 2)), y((1, 2, 1, 3, 1, 2))))
    least = np.nextafter(corpus.of(0), corpus.of(1)) * corpus.of([3, -5, 1, 40])
    yield Case("subnormal", (least, corpus.of([1, 2, 0, 1])))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)), y((3, 5))), layout=layout)


@cases.gradients(specs.ELU_GRAD, "dy", "y")
def elu_grad_points(corpus: Corpus) -> Iterator[Case]:
    y = corpus.of([-0.75, -0.25, 0.5, 2.0])
    yield Case("both sides", (corpus.ordinary((4,)), y))
    yield Case("rank 3", (corpus.ordinary((2, 1, 2)), y.reshape(2, 1, 2)))
    yield Case("rank 0", (corpus.ordinary(()), y[:1].reshape(())))
    yield Case("empty", (corpus.ordinary((0, 3)), y[:0].reshape(0, 3)))


@cases.of(specs.LEAKY_RELU, oracle=oracle.leaky_relu)
def leaky_relu(corpus: Corpus) -> Iterator[Case]:
    """Slopes below, at and above those of a line, none, and a negative one."""
    yield from patterns.unary(corpus)
    finite = corpus.of([-1000.0, -2.0, -0.25, -0.0, 0.0, 0.25, 3.0, np.nan])
    for alpha in (0, 1, 1.5, -0.5, 0.01):
        yield Case(f"alpha {alpha}", (finite,), {"alpha": alpha})


@cases.gradients(specs.LEAKY_RELU, "x")
def leaky_relu_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.around(corpus, -2.0, -0.5, 0.5, 3.0, 1.5, -1.0)
    yield Case("steep", (corpus.of([-2.0, -0.5, 0.5, 3.0]),), {"alpha": 1.5})
    slope = corpus.of(0.25)
    yield Case("at 0", (corpus.of([0.0]),), {"alpha": 0.25}, expected=(slope.reshape(1),))


@cases.of(specs.PRELU, oracle=oracle.prelu)
def prelu(corpus: Corpus) -> Iterator[Case]:
    """Alpha broadcasts to x, and x to alpha."""
    yield from patterns.binary(corpus)


@cases.gradients(specs.PRELU, "x", "alpha")
def prelu_points(corpus: Corpus) -> Iterator[Case]:
    both = corpus.of([[-2.0, 0.5, -0.5], [1.5, -1.0, 3.0]])
    yield Case("same shape", (both, corpus.ordinary((2, 3))))
    yield Case("one slope", (both, corpus.ordinary(())))
    yield Case("a slope per column", (both, corpus.ordinary((3,))))
    yield Case("more slopes than x", (corpus.of([-2.0, 0.5, -1.0]), corpus.ordinary((2, 3))))
    deep = both.reshape(2, 1, 3)
    yield Case("rank 3", (deep, corpus.ordinary((2, 1))))
    yield Case("slopes of rank 3", (both[:, :1], corpus.ordinary((2, 1, 3))))
    yield Case("rank 0", (corpus.of(-2.0), corpus.ordinary(())))
    yield Case("empty", (both[:0], corpus.ordinary((3,))))
    yield Case("no slopes", (both[:, :1], corpus.ordinary((2, 0))))


@cases.of(specs.STEP, oracle=oracle.step)
def step(corpus: Corpus) -> Iterator[Case]:
    """The level for x <= 0 is any number of the dtype."""
    yield from patterns.unary(corpus)
    yield Case("level 3", (corpus.edges(),), {"alpha": 3})
    if corpus.floating:
        yield Case("level 0.3", (corpus.edges(),), {"alpha": 0.3})


@cases.of(specs.SIGMOID, oracle=oracle.sigmoid)
def sigmoid(corpus: Corpus) -> Iterator[Case]:
    """Far out on both sides, where the naive formula overflows."""
    if corpus.dtype in dt.COMPLEX:  # away from the poles at i * pi
        for case in patterns.unary(corpus, lambda shape: corpus.ordinary(shape, -2.0, 2.0)):
            if "edges" not in case.id:
                yield case
    else:
        yield from patterns.unary(corpus)
    if corpus.floating:
        yield Case("far", (corpus.of([-9.5, -8.0, 8.0, 9.5, 50.0, -1000.0, 1000.0]),))


for spec, reference, name in (
    (specs.SOFTMAX, oracle.softmax, "dim"),
    (specs.LOG_SOFTMAX, oracle.log_softmax, "axis"),
):

    @cases.of(spec, oracle=reference)
    def normalized(corpus: Corpus, name: str = name) -> Iterator[Case]:
        """Every axis, one class, scores that overflow when they are not shifted first."""
        yield Case("last axis", (corpus.ordinary((3, 4)),))
        yield Case("first axis", (corpus.ordinary((4, 4)),), {name: 0})
        yield Case("middle axis", (corpus.ordinary((3, 3, 3)),), {name: 1})
        yield Case("negative axis", (corpus.ordinary((2, 3, 2)),), {name: -2})
        yield Case("one class", (corpus.ordinary((3, 1)),))
        yield Case("rank 1", (corpus.ordinary((7,)),))
        yield Case("rank 6", (corpus.ordinary((1, 2, 1, 3, 1, 2)),), {name: 3})
        yield Case("empty", (corpus.ordinary((0, 3)),))
        yield Case("shifted", (corpus.of([[1000.0, 1001, 999], [-1000, -1001, -1000]]),))
        yield Case("uniform", (corpus.of(np.zeros((2, 5))),))
        yield Case("infinities", (corpus.of([[-np.inf, 0, 1], [np.inf, 0, 1], [np.nan, 0, 1]]),))
        nothing = [[-np.inf, -np.inf, -np.inf], [0, -np.inf, -np.inf]]
        yield Case("all minus infinity", (corpus.of(nothing),))
        yield Case("large", (corpus.ordinary((257, 259)),))
        yield Case("many short rows", (corpus.ordinary((701, 21)),))
        far = corpus.ordinary((701, 21)) * corpus.of(np.where(np.arange(21) % 2, 1, 12))
        yield Case("many short rows, far apart", (far,))
        far = corpus.ordinary((3, 1009)) * corpus.of(30)
        yield Case("long rows, far apart", (far,))
        yield Case("many classes", (corpus.ordinary((2, 1000)),))
        yield Case("many classes in front", (corpus.ordinary((1009, 3)),), {name: 0})
        yield Case("many classes between", (corpus.ordinary((2, 1009, 3)),), {name: 1})
        for at in (0, 500, 1008):
            usual = corpus.ordinary((1009,))
            usual[at] = 40
            yield Case(f"one great at {at}", (usual,))
        yield Case("transposed", (corpus.ordinary((3, 4)),), layout="transposed")
        yield Case("sliced", (corpus.ordinary((3, 4)),), layout="sliced")

    @cases.gradients(spec, "logits", cancelled=1)
    def normalized_points(corpus: Corpus, name: str = name) -> Iterator[Case]:
        yield Case("last axis", (corpus.ordinary((2, 3), -1.0, 1.0),))
        yield Case("first axis", (corpus.ordinary((3, 2), -1.0, 1.0),), {name: 0})
        yield Case("middle axis", (corpus.ordinary((2, 2, 2), -1.0, 1.0),), {name: -2})
        yield Case("rank 4", (corpus.ordinary((1, 2, 1, 3), -1.0, 1.0),), {name: 3})
        yield Case("one class", (corpus.ordinary((3, 1), -1.0, 1.0),))
        yield Case("empty", (corpus.ordinary((0, 3)),))


@cases.gradients(specs.RELU, "x")
def relu_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.around(corpus, -2.0, -0.5, 0.5, 3.0, 1.5, -1.0)
    yield Case("at 0", (corpus.of([0.0, -0.0]),), expected=(corpus.of([0.0, 0.0]),))


@cases.gradients(specs.RELU6, "x")
def relu6_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.around(corpus, -2.0, -0.5, 0.5, 5.0, 7.0, 9.0)
    yield Case("corners", (corpus.of([0.0, 6.0]),), expected=(corpus.of([0.0, 1.0]),))


@cases.gradients(specs.SIGMOID, "x")
def sigmoid_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.near(-2.0, 2.0)(corpus)
    if corpus.floating:
        bell = patterns.far_out(lambda x: 1 / (2 * np.cosh(x / 2)) ** 2, *_SIDES)
        yield from bell(corpus)


_SIDES = (-40.0, -20.0, -9.5, 9.5, 20.0, 40.0)
