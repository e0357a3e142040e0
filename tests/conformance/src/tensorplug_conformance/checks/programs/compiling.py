"""Compiled = eager: programs return what the functions return, and what NumPy computes.

Integers, booleans and random numbers must be the same bits. Floats may differ, since a backend may
fuse kernels: they must be within the bound for programs of the reference and of one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import tree
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.checks.programs.models import PERCEPTRON
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.floats import finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_LONG: Final = (1 << 14) + 3
"""Elements: from 2**14 on backends tend to take programs in blocks."""
_LONGER: Final = (1 << 19) + 7
"""Elements: by threads, too."""


@dataclass(frozen=True, slots=True)
class Program:
    """A function, its arguments (from a seed), its reference, and how many steps it takes.

    ``steps``: 0 if results are exact.

    ``reference`` takes and returns float64 arrays, in the same order as the function's results.
    """

    name: str
    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Array, ...]]
    reference: Callable[..., Any]
    steps: int = 1


def drawn(*shapes: tuple[int, ...]) -> Callable[[int], tuple[Array, ...]]:
    """Return a function that draws float32 arrays of these shapes from a seed."""

    def arguments(seed: int) -> tuple[Array, ...]:
        random = np.random.default_rng(seed)
        return tuple(random.uniform(-2, 2, shape).astype(np.float32) for shape in shapes)

    return arguments


def _chain(x: Any, y: Any) -> Any:
    product = x * y
    bent = tp.tanh(product) + tp.exp(-tp.abs(x))
    return bent / (1.5 + tp.square(y)) - product, tp.maximum(bent, x)


def _chain_in_numpy(x: Array, y: Array) -> Any:
    bent = np.tanh(x * y) + np.exp(-np.abs(x))
    return bent / (1.5 + y**2) - x * y, np.maximum(bent, x)


def _reduced(x: Any) -> Any:
    centred = x - tp.mean(x, axis=0)
    return tp.sum(tp.square(centred)) / 8, tp.max(centred, axis=1)


def _reduced_in_numpy(x: Array) -> Any:
    centred = x - x.mean(axis=0)
    return np.sum(centred**2) / 8, centred.max(axis=1)


def _slopes(x: Any, w: Any) -> Any:
    loss, slopes = tp.value_and_grad(lambda w: tp.mean(tp.square(tp.tanh(x @ w))))(w)
    return loss, slopes


def _slopes_in_numpy(x: Array, w: Array) -> Any:
    t = np.tanh(x @ w)
    return np.mean(t**2), x.T @ (2 * t * (1 - t**2) / t.size)


def _curvature(x: Any, v: Any) -> Any:
    def slope(x: Any) -> Any:
        return tp.sum(tp.grad(lambda x: tp.sum(tp.exp(x) * x))(x) * v)

    return tp.grad(slope)(x)


def _chosen(x: Any, y: Any) -> Any:
    total = x
    for step in range(4):  # a loop of Python's, unrolled
        total = tp.where(total > 1, total - y, total + x) if step % 2 else total * 1.25
    return total, tp.astype(total > y, tp.int32)


def _chosen_in_numpy(x: Array, y: Array) -> Any:
    total = x
    for step in range(4):
        total = np.where(total > 1, total - y, total + x) if step % 2 else total * 1.25
    return total, (total > y).astype(np.int32)


def _written(x: Any, y: Any) -> Any:
    z = x * 2
    z[1:3] = y
    z[..., 0] += 1
    return z, x + z


def _written_in_numpy(x: Array, y: Array) -> Any:
    z = x * 2
    z[1:3] = y
    z[..., 0] += 1
    return z, x + z


def _moved(x: Any) -> Any:
    turned = tp.permute_dims(tp.reshape(x, (3, 4, 2)), (2, 0, 1))
    return tp.concat([turned[:, ::-1], tp.flip(turned)], axis=1), tp.argmax(turned, axis=2)


def _moved_in_numpy(x: Array) -> Any:
    turned = np.transpose(np.reshape(x, (3, 4, 2)), (2, 0, 1))
    return np.concatenate([turned[:, ::-1], np.flip(turned)], axis=1), np.argmax(turned, axis=2)


def _counted(n: Any) -> Any:
    return tp.cumulative_sum(n) * n - 7, tp.sum(n), n // 3, n % 5 == 2


def _counted_in_numpy(n: Array) -> Any:
    return np.cumsum(n) * n - 7, np.sum(n), n // 3, n % 5 == 2


def _descended(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    p = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
    loss, slopes = tp.value_and_grad(PERCEPTRON.loss)(p, x, y)
    return loss, *(item - 0.25 * slopes[name] for name, item in p.items())


def _descended_in_numpy(w1: Array, b1: Array, w2: Array, b2: Array, x: Array, y: Array) -> Any:
    p = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
    loss, slopes = PERCEPTRON.reference(p, x, y)
    return loss, *(item - 0.25 * slopes[name] for name, item in p.items())


def _step_of_training(seed: int) -> tuple[Array, ...]:
    return *PERCEPTRON.start(seed=seed).values(), *PERCEPTRON.batch()


_WEIGHTS: Final = tuple(np.random.default_rng(9).uniform(-1, 1, (2, 32, 32)).astype(np.float32))


def _weighed(images: Any) -> Any:
    """Convolutions of one tap and a product, with constants of one type but other values."""
    first, second = (tp.asarray(each) for each in _WEIGHTS)
    mixed = tp.nn.conv2d(images, tp.reshape(first, (1, 1, 32, 32)), data_format="NCHW")
    again = tp.nn.conv2d(mixed, tp.reshape(second, (1, 1, 32, 32)), data_format="NCHW")
    rows = images[0, 0, :, :32]
    return mixed, again, rows @ first, rows @ second


def _weighed_in_numpy(images: Array) -> Any:
    first, second = (each.astype(np.float64) for each in _WEIGHTS)
    mixed = np.einsum("nchw,ck->nkhw", images, first)
    rows = images[0, 0, :, :32]
    return mixed, np.einsum("nchw,ck->nkhw", mixed, second), rows @ first, rows @ second


PROGRAMS: Final = (
    Program("elementwise chain", _chain, drawn((5, 7), (5, 7)), _chain_in_numpy),
    Program("long chain", _chain, drawn((_LONG,), (_LONG,)), _chain_in_numpy),
    Program("longer chain", _chain, drawn((_LONGER,), (_LONGER,)), _chain_in_numpy),
    Program("broadcast chain", _chain, drawn((6, 1, 5), (4, 5)), _chain_in_numpy),
    Program("empty chain", _chain, drawn((0, 5), (5,)), _chain_in_numpy),
    Program("chain into sums", _reduced, drawn((64, 300)), _reduced_in_numpy, 4),
    Program("gradient", _slopes, drawn((6, 4), (4, 3)), _slopes_in_numpy, 4),
    Program(
        "second gradient",
        _curvature,
        drawn((7,), (7,)),
        lambda x, v: v * (2 + x) * np.exp(x),
        4,
    ),
    Program("loop and choice", _chosen, drawn((3, 5), (5,)), _chosen_in_numpy, 4),
    Program("written in place", _written, drawn((4, 3), (2, 3)), _written_in_numpy),
    Program("moved", _moved, drawn((24,)), _moved_in_numpy),
    Program(
        "integers",
        _counted,
        lambda seed: (np.random.default_rng(seed).integers(-99, 99, 37).astype(np.int32),),
        _counted_in_numpy,
    ),
    Program("constants", _weighed, drawn((2, 32, 10, 34)), _weighed_in_numpy, 4),
    Program("step of training", _descended, _step_of_training, _descended_in_numpy, 4),
)


def compiles(program: Program, _target: Target, opened: Callable[[], Session]) -> None:
    """Run eagerly and compiled, with three sets of arguments; the first ones twice."""
    session = opened()
    for dtype in {dt.of(array.dtype) for array in program.arguments(1)}:
        if dtype not in session.device.backend.dtypes:
            raise NotMeasuredError(f"the backend does not declare {dtype}")
    compiled = tp.compile(program.function)
    earlier: list[tuple[list[Any], list[Array]]] = []
    with session.entered():
        for seed in (1, 2, 3, 1):
            arrays = program.arguments(seed)
            tensors = [tp.asarray(array) for array in arrays]
            eager = _read(program.function(*tensors))
            results = tree.leaves(compiled(*tensors))
            results_read = _read(results)
            meant = _wide(program.reference(*map(_float64, arrays)))
            judged(eager, meant, "the function", program.steps)
            judged(results_read, meant, "the program", program.steps)
            judged(results_read, eager, "the program against the function", program.steps)
            if any(
                not same_bits(t.numpy(), host) for t, host in zip(tensors, arrays, strict=True)
            ):
                raise CheckFailedError("the compiled function changed its arguments")
            earlier.append((results, results_read))
        for results, before in earlier:
            if not all(map(same_bits, before, _read(results))):
                raise CheckFailedError("a later run changed the results of an earlier one")
    if not all(map(same_bits, earlier[0][1], earlier[-1][1])):
        raise CheckFailedError("the same arguments gave other bits after other ones")


def _float64(array: Array) -> Array:
    return array.astype(np.float64) if kind_of(array.dtype) == "f" else array


def _wide(results: Any) -> list[Array]:
    return [
        np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))
    ]


def _read(results: Any) -> list[Array]:
    return [np.array(leaf.numpy()) for leaf in tree.leaves(results)]


def judged(results: list[Array], meant: list[Array], what: str, steps: int = 1) -> None:
    """Compare results with expected ones: floats within the bound of so many steps.

    Raises:
        CheckFailedError: at the first wrong one; ``what`` names the function.

    """
    for at, (got, value) in enumerate(zip(results, meant, strict=True)):
        where = f"result {at} of {what}" if len(meant) > 1 else what
        if got.shape != value.shape:
            raise CheckFailedError(f"{where}: shape {list(got.shape)}, not {list(value.shape)}")
        if kind_of(got.dtype) != kind_of(value.dtype):
            raise CheckFailedError(f"{where}: dtype {got.dtype}")
        if kind_of(got.dtype) != "f":
            if not np.array_equal(got, value):
                raise CheckFailedError(f"{where}: {got.tolist()}, must be {value.tolist()}")
            continue
        own, right = _float64(got), _float64(value)
        scale = float(np.max(np.abs(right), initial=2.0**-10, where=np.isfinite(right)))
        eps = float(finfo(got.dtype).eps)
        differ = (own != right) & ~(np.isnan(own) & np.isnan(right))
        error = np.abs(np.subtract(own, right, where=differ, out=np.zeros(own.shape))) / scale
        if not bool(np.all(error <= tolerances().program * steps * eps)):
            worst = float(np.max(error) / eps)
            raise CheckFailedError(f"{where}: off by {worst:.3g} eps of its largest element")


def _random(_target: Target, opened: Callable[[], Session]) -> None:
    """A generator draws anew at every run, the same numbers as eagerly."""
    session = opened()
    with session.entered():
        eager, drawn = (tp.random.Generator(5) for _ in range(2))

        def noisy(x: Any, source: Any) -> Any:
            return x + source.uniform(x.shape), source.integers((9,), high=1000)

        compiled = tp.compile(lambda x: noisy(x, drawn))
        x = tp.asarray(np.arange(6, dtype=np.float32))
        rounds = [(_read(noisy(x, eager)), _read(compiled(x))) for _ in range(3)]
    for one, other in rounds:
        if not all(map(same_bits, one, other)):
            raise CheckFailedError("a compiled function draws other numbers than the eager one")
    if any(same_bits(rounds[0][1][1], later[1][1]) for later in rounds[1:]):
        raise CheckFailedError("a compiled function draws the same numbers at every run")


def _variables(_target: Target, opened: Callable[[], Session]) -> None:
    """Variables are read and assigned at every run, and tensors read before keep their values."""
    with opened().entered():
        total = tp.Variable(np.zeros(3, np.float32))

        @tp.compile
        def add(x: Any) -> Any:
            total.assign(total + x)
            total.assign(total * 2)
            return total - x

        meant = np.zeros(3)
        for number in (1.0, 2.0, 4.0):
            x = np.array([number, -number, 0.5], np.float32)
            before = total.read()
            meant_before, meant = meant, 2 * (meant + x)
            result = add(tp.asarray(x)).numpy()
            if not np.array_equal(before.numpy(), meant_before):
                raise CheckFailedError("an assignment changed a tensor that was read before it")
            if not (np.array_equal(total.numpy(), meant) and np.array_equal(result, meant - x)):
                raise CheckFailedError(
                    f"the variable is {total.tolist()} after {number}, must be {meant.tolist()}"
                )
        total.dispose()


def _through(_target: Target, opened: Callable[[], Session]) -> None:
    """Gradients flow through a compiled function, also where it is one part of more."""
    with opened().entered():
        inner = tp.compile(lambda x, w: tp.tanh(x * w) * x)
        for seed in (1, 2):
            x, w = drawn((5, 3), (3,))(seed)
            slopes = tp.grad(lambda x, w: tp.sum(tp.exp(inner(x, w))), (0, 1))(
                tp.asarray(x), tp.asarray(w)
            )
            wide, v = x.astype(np.float64), w.astype(np.float64)
            t = np.tanh(wide * v)
            bent = np.exp(t * wide)
            along_x = bent * (t + wide * v * (1 - t**2))
            along_w = (bent * wide**2 * (1 - t**2)).sum(axis=0)
            judged(_read(slopes), [along_x, along_w], "the gradient through it", steps=4)


CHECKS: Final = (
    *(
        Check(4, f"compiled = eager: {program.name}", partial(compiles, program))
        for program in PROGRAMS
    ),
    Check(4, "compiled = eager: random numbers", _random),
    Check(4, "compiled = eager: variables", _variables),
    Check(4, "compiled = eager: gradients through", _through),
)
