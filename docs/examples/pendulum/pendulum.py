"""A pendulum, its measurement, and the fit of its length and damping: functions of tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from numpy.typing import NDArray


State = tuple[tp.Tensor, tp.Tensor]  # angle in radians, speed in radians per second

GRAVITY = 9.81  # m/s2
TRUTH = (1.3, 0.15)  # length in m, damping in 1/s
RELEASE = 2.2  # the angle at which the pendulum is let go, in radians: far from small
SECONDS, MEASUREMENTS, SUBSTEPS = 10.0, 100, 2  # two steps of simulation per measurement
TIMES = np.linspace(0.0, SECONDS, MEASUREMENTS + 1, dtype=np.float32)[1:]
NOISE = 0.1  # standard deviation of a measured angle, in radians

LENGTHS, DAMPINGS = (0.4, 3.5), (0.03, 1.5)  # where the fit starts: between these
NEWTON_STEPS = 3


@dataclass(frozen=True)
class Fit:
    """What ``fit`` found. Parameters are length and damping.

    ``parameters``: [2], the best. ``covariance``: [2, 2].
    ``paths``: [starts, steps, 2], the parameters before each step. ``misfits``: [starts, steps].
    """

    parameters: NDArray[np.float64]
    covariance: NDArray[np.float64]
    paths: NDArray[np.float32]
    misfits: NDArray[np.float32]

    @property
    def deviations(self) -> NDArray[np.float64]:
        """The standard deviation of each parameter, [2]."""
        return np.sqrt(np.diag(self.covariance))


def simulate(parameters: tp.Tensor) -> tp.Tensor:
    """Return the angles [MEASUREMENTS] of a pendulum that is let go at rest.

    The law of motion: angle'' = -gravity / length * sin(angle) - damping * angle'.
    """
    length, damping = parameters[0], parameters[1]
    dt = SECONDS / MEASUREMENTS / SUBSTEPS

    def slope(state: State) -> State:
        angle, speed = state
        return speed, -GRAVITY / length * tp.sin(angle) - damping * speed

    def along(state: State, by: float, slopes: State) -> State:
        return state[0] + by * slopes[0], state[1] + by * slopes[1]

    def step(state: State) -> State:
        """Take one step of the classical Runge-Kutta method, of order 4."""
        k1 = slope(state)
        k2 = slope(along(state, dt / 2, k1))
        k3 = slope(along(state, dt / 2, k2))
        k4 = slope(along(state, dt, k3))
        mean = along(along(k1, 2.0, k2), 2.0, along(k3, 0.5, k4))
        return along(state, dt / 6, mean)

    def until_measured(state: State, _: None) -> tuple[State, tp.Tensor]:
        for _substep in range(SUBSTEPS):
            state = step(state)
        return state, state[0]

    angle, speed = (tp.asarray(x, dtype=parameters.dtype) for x in (RELEASE, 0.0))
    _, angles = tp.scan(until_measured, (angle, speed), length=MEASUREMENTS)
    return angles


def measure(key: tp.Tensor) -> tp.Tensor:
    """Return what a camera sees of the true pendulum: angles [MEASUREMENTS] with normal errors."""
    noise = tp.random.normal(key, (MEASUREMENTS,), scale=NOISE)
    return simulate(tp.asarray(TRUTH, dtype="float32")) + noise


def misfit(parameters: tp.Tensor, angles: tp.Tensor) -> tp.Tensor:
    """Return minus the logarithm of the likelihood, up to a constant: half of chi squared."""
    return tp.sum(tp.square((simulate(parameters) - angles) / NOISE)) / 2


def descend(
    start: tp.Tensor, angles: tp.Tensor, steps: int
) -> tuple[tp.Tensor, tuple[tp.Tensor, tp.Tensor]]:
    """Minimize the misfit with Adam, from one starting point [2].

    It works on logarithms, so parameters stay positive, and a step is a ratio.

    Returns:
        The parameters found, [2]; then parameters [steps, 2] and misfits [steps] before each step.

    """
    optimizer = tp.train.adam(tp.train.cosine_decay(0.1, steps))

    def step(carry: Any, _: None) -> tuple[Any, tuple[tp.Tensor, tp.Tensor]]:
        logs, state = carry
        value, gradient = tp.value_and_grad(lambda logs: misfit(tp.exp(logs), angles))(logs)
        # Slopes differ by orders of magnitude from place to place: keep their direction.
        gradient, _norm = tp.train.clip_by_global_norm(gradient, 1.0)
        after, state = optimizer.step(gradient, state, logs)
        return (after, state), (tp.exp(logs), value)

    logs = tp.log(start)
    (logs, _), path = tp.scan(step, (logs, optimizer.init(logs)), length=steps)
    return tp.exp(logs), path


def newton(parameters: tp.Tensor, angles: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    """Return the minimum near ``parameters`` [2], and the Hessian [2, 2] of the misfit there."""
    gradient, hessian = tp.compile(tp.grad(misfit)), tp.compile(tp.hessian(misfit))
    for _ in range(NEWTON_STEPS):
        step = tp.linalg.solve(hessian(parameters, angles), gradient(parameters, angles))
        parameters = parameters - step
    return parameters, hessian(parameters, angles)


def fit(angles: tp.Tensor, key: tp.Tensor, starts: int, steps: int) -> Fit:
    """Descend from many starting points at once, and go on from the best with Newton's method.

    The inverse of the Hessian is the covariance of the parameters (Laplace's approximation:
    MacKay, Information Theory, Inference, and Learning Algorithms, 2003, chapter 27).

    Raises:
        ArithmeticError: no minimum was found.

    """
    low, high = (
        tp.asarray([math.log(x) for x in end]) for end in zip(LENGTHS, DAMPINGS, strict=True)
    )
    places = tp.exp(tp.random.uniform(key, (starts, 2), low=low, high=high))
    # One descent is a function of one starting point; vmap makes it a function of many.
    from_all = tp.vmap(lambda start, angles: descend(start, angles, steps), in_axes=(0, None))
    ends, (paths, misfits) = tp.compile(from_all)(places, angles)
    best = ends[int(tp.argmin(misfits[:, -1]))]
    parameters, hessian = newton(best, angles)
    if not np.all(np.linalg.eigvalsh(hessian.numpy()) > 0):  # not a number is no minimum either
        raise ArithmeticError("the descents led to no minimum; try more steps, or more starts")
    return Fit(
        parameters=parameters.numpy().astype(np.float64),
        covariance=np.linalg.inv(hessian.numpy().astype(np.float64)),
        paths=paths.numpy(),
        misfits=misfits.numpy(),
    )


def landscape(angles: tp.Tensor, lengths: tp.Tensor, dampings: tp.Tensor) -> tp.Tensor:
    """Return the misfit [dampings, lengths] of each pair of parameters."""

    def of_pair(damping: tp.Tensor, length: tp.Tensor) -> tp.Tensor:
        return misfit(tp.stack([length, damping]), angles)

    of_row = tp.vmap(of_pair, in_axes=(None, 0))
    return tp.compile(tp.vmap(of_row, in_axes=(0, None)))(dampings, lengths)
