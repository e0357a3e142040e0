"""The steps for tensorplug-cpu: NumPy's functions on blocks that a cache holds.

What a step reads comes from memory once, and its results go there once; what is in between stays
in the cache, mostly in the room of the new parameter. Numbers from one step to the next are
arrays of rank 0 in the parameter's dtype, and so are constants, so that nothing is widened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelTable, TensorType
from tensorplug_cpu.extensions import elementwise
from tensorplug_train import specs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Arrays = Sequence[Any]  # vectors, numbers, or None for an absent input

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]

kernels = KernelTable()


class _Constants:
    """A step's attributes as numbers of the dtype in which it computes."""

    def __init__(self, attributes: Attributes, out: TensorType) -> None:
        self._number = out.dtype.numpy.type
        self._attributes = attributes

    def __getitem__(self, name: str) -> Any:
        return self._number(self._attributes[name])

    def rest(self, name: str) -> Any:
        """Return 1 minus the attribute."""
        return self._number(1.0 - self._attributes[name])


def _decayed(gradient: Array, parameter: Array, weight_decay: Any) -> Array:
    if not weight_decay:
        return gradient
    result = np.multiply(parameter, weight_decay)
    result += gradient
    return np.asarray(result)


def _average(old: Array, new: Array, keep: Any, rest: Any, result: Array, room: Array) -> None:
    """Put the running mean into ``result``; ``new`` may be ``room``, which is overwritten."""
    np.multiply(old, keep, out=result)
    np.multiply(new, rest, out=room)
    result += room


def _fall(parameter: Array, by: Array, rate: Any, result: Array) -> None:
    """Put ``parameter - rate * by`` into ``result``, which may be ``by``."""
    np.multiply(by, rate, out=result)
    np.subtract(parameter, result, out=result)


@kernels.prepare(specs.SGD)
def sgd(
    parameter: TensorType,
    gradient: TensorType,
    rate: TensorType,
    *,
    attributes: Attributes,
    out: TensorType,
) -> Callable[..., Array]:
    weight_decay = _Constants(attributes, out)["weight_decay"]

    def work(results: Arrays, inputs: Arrays) -> None:
        p, g, rate = inputs
        _fall(p, _decayed(g, p, weight_decay), rate, results[0])

    step = elementwise(work, [out])
    return lambda *inputs: step(*inputs)[0]


@kernels.prepare(specs.MOMENTUM)
def momentum(
    parameter: TensorType,
    gradient: TensorType,
    velocity: TensorType,
    rate: TensorType,
    *,
    attributes: Attributes,
    nesterov: bool,
    out: tuple[TensorType, ...],
) -> Callable[..., list[Array]]:
    constants = _Constants(attributes, out[0])
    weight_decay, momentum = constants["weight_decay"], constants["momentum"]

    def work(results: Arrays, inputs: Arrays) -> None:
        (new, kept), (p, g, v, rate) = results, inputs
        g = _decayed(g, p, weight_decay)
        np.multiply(v, momentum, out=kept)
        kept += g
        move = kept
        if nesterov:
            move = np.multiply(kept, momentum, out=new)
            move += g
        _fall(p, move, rate, new)

    return elementwise(work, out)


@kernels.prepare(specs.ADAM)
def adam(
    parameter: TensorType,
    gradient: TensorType,
    mean: TensorType,
    square: TensorType,
    rate: TensorType,
    mean_correction: TensorType,
    square_correction: TensorType,
    *,
    attributes: Attributes,
    decoupled: bool,
    out: tuple[TensorType, ...],
) -> Callable[..., list[Array]]:
    constants = _Constants(attributes, out[0])
    keep1, rest1 = constants["beta1"], constants.rest("beta1")
    keep2, rest2 = constants["beta2"], constants.rest("beta2")
    epsilon, weight_decay = constants["epsilon"], constants["weight_decay"]

    def work(results: Arrays, inputs: Arrays) -> None:
        (new, m, s), (p, g, old_m, old_s, rate, correct_m, correct_s) = results, inputs
        if not decoupled:
            g = _decayed(g, p, weight_decay)
        _average(old_m, g, keep1, rest1, m, new)
        np.multiply(g, g, out=new)
        _average(old_s, new, keep2, rest2, s, new)
        np.sqrt(s, out=new)
        new *= 1 / np.sqrt(correct_s)
        new += epsilon
        np.divide(m, new, out=new)
        if decoupled:
            p = np.multiply(p, 1 - rate * weight_decay)
        _fall(p, new, rate / correct_m, new)

    return elementwise(work, out)


@kernels.prepare(specs.ADAMAX)
def adamax(
    parameter: TensorType,
    gradient: TensorType,
    mean: TensorType,
    norm: TensorType,
    rate: TensorType,
    mean_correction: TensorType,
    *,
    attributes: Attributes,
    out: tuple[TensorType, ...],
) -> Callable[..., list[Array]]:
    constants = _Constants(attributes, out[0])
    keep1, rest1, keep2 = constants["beta1"], constants.rest("beta1"), constants["beta2"]
    epsilon, weight_decay = constants["epsilon"], constants["weight_decay"]

    def work(results: Arrays, inputs: Arrays) -> None:
        (new, m, n), (p, g, old_m, old_n, rate, correct_m) = results, inputs
        g = _decayed(g, p, weight_decay)
        _average(old_m, g, keep1, rest1, m, new)
        np.abs(g, out=new)
        np.multiply(old_n, keep2, out=n)
        np.maximum(n, new, out=n)
        np.add(n, epsilon, out=new)
        np.divide(m, new, out=new)
        _fall(p, new, rate / correct_m, new)

    return elementwise(work, out)


@kernels.prepare(specs.ADAGRAD)
def adagrad(
    parameter: TensorType,
    gradient: TensorType,
    square: TensorType,
    rate: TensorType,
    *,
    attributes: Attributes,
    out: tuple[TensorType, ...],
) -> Callable[..., list[Array]]:
    constants = _Constants(attributes, out[0])
    epsilon, weight_decay = constants["epsilon"], constants["weight_decay"]

    def work(results: Arrays, inputs: Arrays) -> None:
        (new, s), (p, g, old_s, rate) = results, inputs
        g = _decayed(g, p, weight_decay)
        np.multiply(g, g, out=s)
        s += old_s
        np.add(s, epsilon, out=new)
        np.sqrt(new, out=new)
        np.divide(g, new, out=new)
        _fall(p, new, rate, new)

    return elementwise(work, out)


@kernels.prepare(specs.RMSPROP)
def rmsprop(
    parameter: TensorType,
    gradient: TensorType,
    square: TensorType,
    mean: TensorType | None,
    velocity: TensorType | None,
    rate: TensorType,
    *,
    attributes: Attributes,
    out: tuple[TensorType, ...],
) -> Callable[..., list[Array]]:
    constants = _Constants(attributes, out[0])
    keep, rest, momentum = constants["decay"], constants.rest("decay"), constants["momentum"]
    epsilon, weight_decay = constants["epsilon"], constants["weight_decay"]
    none = out[0].dtype.numpy.type(0)

    def work(results: Arrays, inputs: Arrays) -> None:
        (new, s, *others), (p, g, old_s, old_m, old_v, rate) = results, inputs
        g = _decayed(g, p, weight_decay)
        np.multiply(g, g, out=new)
        _average(old_s, new, keep, rest, s, new)
        if old_m is None:
            np.add(s, epsilon, out=new)
        else:
            m = others[0]
            _average(old_m, g, keep, rest, m, new)
            np.multiply(m, m, out=new)
            np.subtract(s, new, out=new)
            np.maximum(new, none, out=new)
            new += epsilon
        np.sqrt(new, out=new)
        np.divide(g, new, out=new)
        new *= rate
        move = new
        if old_v is not None:
            move = others[-1]
            np.multiply(old_v, momentum, out=move)
            move += new
        np.subtract(p, move, out=new)

    return elementwise(work, out)
