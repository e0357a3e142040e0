"""Tests of the pendulum: its simulation, its derivatives, and what the fit says of its errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import fit_pendulum
import numpy as np
import pendulum
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path

ODD = (0.9, 0.4)  # a length and a damping that nothing else here uses


def in_small_steps(length: float, damping: float, steps: int = 400) -> np.ndarray:
    """Return the angles when measured, by the midpoint rule in float64, with small steps."""
    angle, speed, angles = pendulum.RELEASE, 0.0, []
    dt = pendulum.SECONDS / pendulum.MEASUREMENTS / steps

    def force(angle: float, speed: float) -> float:
        return -pendulum.GRAVITY / length * math.sin(angle) - damping * speed

    for _ in range(pendulum.MEASUREMENTS):
        for _ in range(steps):
            half = speed + dt / 2 * force(angle, speed)
            speed += dt * force(angle + dt / 2 * speed, half)
            angle += dt * half
        angles.append(angle)
    return np.array(angles)


def test_the_simulation_is_accurate() -> None:
    """A fifth of a percent of the release angle: far below the noise."""
    angles = tp.compile(pendulum.simulate)(tp.asarray(ODD))
    assert angles.shape == (pendulum.MEASUREMENTS,)
    assert angles.dtype == tp.float32
    np.testing.assert_allclose(angles.numpy(), in_small_steps(*ODD), atol=4e-3)


def test_gradient_and_hessian_are_those_of_differences() -> None:
    with tp.use_backend("cpu"):
        seen = tp.asarray(in_small_steps(*pendulum.TRUTH, steps=20))  # float64
        at = np.array([1.25, 0.17])
        gradient = tp.compile(tp.grad(pendulum.misfit))
        hessian = tp.compile(tp.hessian(pendulum.misfit))(tp.asarray(at), seen).numpy()
        value = tp.compile(pendulum.misfit)
        for index in range(2):
            step = 1e-5 * np.eye(2)[index]
            ends = [tp.asarray(at + step), tp.asarray(at - step)]
            slope = (value(ends[0], seen) - value(ends[1], seen)).item() / 2e-5
            bend = (gradient(ends[0], seen) - gradient(ends[1], seen)).numpy() / 2e-5
            assert gradient(tp.asarray(at), seen)[index].item() == pytest.approx(slope, rel=1e-5)
            np.testing.assert_allclose(hessian[index], bend, rtol=1e-5)


def test_deviations_are_those_of_repeated_experiments() -> None:
    """Fit 200 noisy measurements of one pendulum, all at once, from the true values."""

    truth = tp.asarray(pendulum.TRUTH, dtype="float32")

    def repeat(key: tp.Tensor) -> tp.Tensor:
        return pendulum.descend(truth, pendulum.measure(key), 200)[0]

    found = tp.compile(tp.vmap(repeat))(tp.random.split(tp.random.key(5), 200)).numpy()
    exact = tp.compile(pendulum.simulate)(truth)
    hessian = tp.compile(tp.hessian(pendulum.misfit))(truth, exact).numpy()
    said = np.sqrt(np.diag(np.linalg.inv(hessian)))
    # The standard deviation of 200 numbers is known to 5 percent, their mean to 7 of one.
    np.testing.assert_allclose(found.std(axis=0) / said, 1.0, atol=0.2)
    np.testing.assert_allclose((found.mean(axis=0) - pendulum.TRUTH) / said, 0.0, atol=0.25)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_command_finds_the_pendulum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    file = tmp_path / "folder" / "pendulum.png"
    arguments = ["--backend", "cpu", "--starts", "4", "--seed", str(seed), "--output", str(file)]
    assert fit_pendulum.main(arguments) == 0
    assert "cpu" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("seed", "said"), [(1, "Picture"), (3, "led to no minimum")], ids=["another", "none"]
)
def test_a_wrong_minimum_and_none_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int, said: str
) -> None:
    file = tmp_path / "pendulum.png"
    arguments = ["--backend", "cpu", "--steps", "1", "--starts", "1", "--seed", str(seed)]
    assert fit_pendulum.main([*arguments, "--output", str(file)]) == 1
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_opencl_finds_the_same() -> None:
    found = []
    for backend in ("cpu", "opencl"):
        try:
            with tp.use_backend(backend):
                angles = tp.compile(pendulum.measure)(tp.random.key(1))
                found.append(pendulum.fit(angles, tp.random.key(2), 4, 150))
        except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError) as error:
            pytest.skip(str(error))
    apart = np.abs(found[0].parameters - found[1].parameters) / found[0].deviations
    assert apart.max() < 0.02
    np.testing.assert_allclose(found[0].misfits[:, :5], found[1].misfits[:, :5], rtol=1e-3)
