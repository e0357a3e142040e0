"""Schedules: learning rates as functions of the number of steps taken before.

A schedule takes this number, a tensor or a Python number, and returns a float32 tensor of rank 0.
It consists of ops, so that it works in compiled functions. Any such function is a schedule.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorplug as tp
from tensorplug.plugin import ArgumentError, arguments, as_tensor
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug import Tensor
    from tensorplug.typing import ArrayLike

    Schedule: TypeAlias = Callable[[ArrayLike], Tensor]


def constant(value: float) -> Schedule:
    """Return the schedule that is always ``value``.

    Examples:
        >>> float(tp.train.constant(0.5)(7))
        0.5

    """
    _check_numbers("constant", value=value)
    return lambda step: _float(step) * 0.0 + value


def exponential_decay(
    initial: float, decay_steps: float, decay_rate: float, *, staircase: bool = False
) -> Schedule:
    """Return the schedule ``initial * decay_rate ** (step / decay_steps)``.

    ``staircase``: the exponent is rounded down, so that the rate changes every ``decay_steps``.
    (As ``tf.keras.optimizers.schedules.ExponentialDecay``.)

    Raises:
        ArgumentError: an argument is not a number, or ``decay_steps`` or ``decay_rate`` is not
            positive.

    Examples:
        >>> halving = tp.train.exponential_decay(0.5, 10, 0.5)
        >>> [float(halving(step)) for step in (0, 10, 20)]
        [0.5, 0.25, 0.125]

    """
    _check_numbers("exponential_decay", initial=initial)
    _check_positive("exponential_decay", decay_steps=decay_steps, decay_rate=decay_rate)

    def schedule(step: ArrayLike) -> Tensor:
        turns = _float(step) / decay_steps
        turns = tp.floor(turns) if staircase else turns
        return tp.exp(turns * math.log(decay_rate)) * initial

    return schedule


def cosine_decay(initial: float, decay_steps: float, final: float = 0.0) -> Schedule:
    """Return the schedule that follows half a cosine wave from ``initial`` to ``final``.

    It is ``final + (initial - final) * (1 + cos(pi * min(step / decay_steps, 1))) / 2``, so after
    ``decay_steps`` it stays at ``final``. (Loshchilov
    and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017, without restarts.)

    Raises:
        ArgumentError: an argument is not a number, or ``decay_steps`` is not positive.

    Examples:
        >>> [round(float(tp.train.cosine_decay(1.0, 100)(step)), 6) for step in (0, 50, 100, 200)]
        [1.0, 0.5, 0.0, 0.0]

    """
    _check_numbers("cosine_decay", initial=initial, final=final)
    _check_positive("cosine_decay", decay_steps=decay_steps)

    def schedule(step: ArrayLike) -> Tensor:
        share = tp.minimum(_float(step) / decay_steps, 1.0)
        # 1 + cos(a) = 2 cos(a / 2)**2, which has no cancellation near the end.
        return tp.square(tp.cos(share * (math.pi / 2))) * (initial - final) + final

    return schedule


def polynomial_decay(
    initial: float, decay_steps: float, final: float = 0.0, power: float = 1.0
) -> Schedule:
    """Return the schedule of a polynomial decay from ``initial`` to ``final``.

    It is ``final + (initial - final) * (1 - min(step / decay_steps, 1)) ** power``.

    With the default ``power`` the decay is linear.

    Raises:
        ArgumentError: an argument is not a number, or ``decay_steps`` or ``power`` is not
            positive.

    Examples:
        >>> [float(tp.train.polynomial_decay(1.0, 4)(step)) for step in (0, 1, 4, 5)]
        [1.0, 0.75, 0.0, 0.0]

    """
    _check_numbers("polynomial_decay", initial=initial, final=final)
    _check_positive("polynomial_decay", decay_steps=decay_steps, power=power)

    def schedule(step: ArrayLike) -> Tensor:
        rest = 1.0 - tp.minimum(_float(step) / decay_steps, 1.0)
        return tp.pow(rest, power) * (initial - final) + final

    return schedule


def piecewise_constant(boundaries: Sequence[float], values: Sequence[float]) -> Schedule:
    """Return the schedule ``values[k]``, where k is the number of ``boundaries`` up to ``step``.

    Raises:
        ArgumentError: the values are not one more than the boundaries, or these do not increase.

    Examples:
        >>> steps = tp.train.piecewise_constant([100, 200], [0.5, 0.25, 0.125])
        >>> [float(steps(step)) for step in (0, 99, 100, 200)]
        [0.5, 0.5, 0.25, 0.125]

    """
    for name, given in (("boundaries", boundaries), ("values", values)):
        if not isinstance(given, list | tuple):
            raise ArgumentError(
                f"piecewise_constant: {name} must be a list, got {arguments.quoted(given)}"
            )
    if len(values) != len(boundaries) + 1:
        raise ArgumentError(
            "piecewise_constant: there must be one more value than boundaries, got "
            f"{len(values)} values and {len(boundaries)} boundaries"
        )
    for name, numbers in (("boundaries", boundaries), ("values", values)):
        for number in numbers:
            _check_numbers("piecewise_constant", **{name: number})
    if any(later <= earlier for earlier, later in pairwise(boundaries)):
        raise ArgumentError(
            f"piecewise_constant: boundaries must increase, got {arguments.quoted(boundaries)}"
        )

    def schedule(step: ArrayLike) -> Tensor:
        step = _float(step)
        rate: Tensor = step * 0.0 + values[0]
        for boundary, value in zip(boundaries, values[1:], strict=True):
            rate = tp.where(step >= boundary, value, rate)
        return rate

    return schedule


def warmup(
    schedule: float | Callable[[Tensor], float | Tensor], steps: float, initial: float = 0.0
) -> Schedule:
    """Return the schedule that goes linearly from ``initial`` to the start of ``schedule``.

    At step t it is ``initial + (schedule(0) - initial) * t / steps`` before ``steps``, and then
    ``schedule(t - steps)``. (Goyal et al., "Accurate, large minibatch SGD", 2017.)

    Args:
        schedule: a schedule, or a number for a constant rate.
        steps: the number of steps of the line.
        initial: the rate at step 0.

    Raises:
        ArgumentError: ``steps`` is not positive, or ``initial`` is not a number.

    Examples:
        >>> rate = tp.train.warmup(tp.train.cosine_decay(1.0, 100), 4)
        >>> [round(float(rate(step)), 6) for step in (0, 1, 4, 54, 104)]
        [0.0, 0.25, 1.0, 0.5, 0.0]

    """
    _check_numbers("warmup", initial=initial)
    _check_positive("warmup", steps=steps)
    later = schedule if callable(schedule) else constant(schedule)

    def warming(step: ArrayLike) -> Tensor:
        step = _float(step)
        rest = tp.maximum(step - steps, 0.0)
        line = (later(step * 0.0) - initial) * (step / steps) + initial
        return tp.where(step < steps, line, later(rest))

    return warming


def one_cycle(
    peak: float,
    steps: float,
    *,
    rising: float = 0.3,
    initial: float | None = None,
    final: float | None = None,
) -> Schedule:
    """Return the schedule that rises to ``peak``, and then falls, along halves of cosine waves.

    It takes ``rising * steps`` steps from ``initial`` to ``peak``, the rest to ``final``, where it
    stays. (Smith and Topin, "Super-convergence", 2018; the defaults are PyTorch's.)

    Args:
        peak: the largest rate.
        steps: the number of steps of the whole cycle.
        rising: the part of the steps before the peak, between 0 and 1.
        initial: the rate at step 0; by default ``peak / 25``.
        final: the rate at the end; by default ``initial / 10_000``.

    Raises:
        ArgumentError: a number is out of its range.

    Examples:
        >>> rate = tp.train.one_cycle(1.0, 10, rising=0.5, initial=0.0, final=0.5)
        >>> [round(float(rate(step)), 6) for step in (0, 5, 10, 20)]
        [0.0, 1.0, 0.5, 0.5]

    """
    _check_numbers("one_cycle", peak=peak)
    initial = peak / 25 if initial is None else initial
    final = initial / 10_000 if final is None else final
    _check_numbers("one_cycle", initial=initial, final=final)
    _check_positive("one_cycle", steps=steps, rising=rising)
    if rising >= 1:
        raise ArgumentError(f"one_cycle: rising must be below 1, got {arguments.quoted(rising)}")
    top = rising * steps
    up, down = cosine_decay(initial, top, peak), cosine_decay(peak, steps - top, final)

    def schedule(step: ArrayLike) -> Tensor:
        step = _float(step)
        return tp.where(step < top, up(step), down(tp.maximum(step - top, 0.0)))

    return schedule


def _float(step: ArrayLike) -> Tensor:
    return tp.astype(as_tensor(step, what="schedule: step"), dt.float32, copy=False)


def _check_numbers(who: str, **numbers: object) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ArgumentError(f"{who}: {name} must be a number, got {arguments.quoted(value)}")


def _check_positive(who: str, **numbers: Any) -> None:
    _check_numbers(who, **numbers)
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise ArgumentError(
                f"{who}: {name} must be positive and finite, got {arguments.quoted(value)}"
            )
