"""Tests of the filters by sums and formulas, and of a whole small run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import filter_image
import image_filters as filters
import numpy as np
import pytest
import scene

import tensorplug as tp
from tensorplug.testing import check_grads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUMBERS = np.random.default_rng(0)
IMAGE = NUMBERS.random((11, 14, 2), dtype=np.float32)
KERNEL = NUMBERS.random((3, 4), dtype=np.float32)  # without symmetry: it shows what is turned


def by_sums(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the definition of convolution, pixel by pixel, in float64."""
    rows, columns = kernel.shape
    height, width = image.shape[0] - rows + 1, image.shape[1] - columns + 1
    turned = kernel[::-1, ::-1, None].astype(np.float64)
    result = np.empty((height, width, image.shape[2]))
    for row in range(height):
        for column in range(width):
            window = image[row : row + rows, column : column + columns]
            result[row, column] = (window * turned).sum(axis=(0, 1))
    return result


@pytest.mark.parametrize("function", [filters.convolve, filters.convolve_by_fft])
def test_both_convolutions_are_the_sum(
    function: Callable[[tp.Tensor, tp.Tensor], tp.Tensor],
) -> None:
    found = function(tp.asarray(IMAGE), tp.asarray(KERNEL))
    expected = by_sums(IMAGE, KERNEL)
    assert (found.shape, found.dtype) == (expected.shape, tp.float32)
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-6)


@pytest.mark.parametrize("kernel", [filters.gaussian(1.5), filters.shake()])
def test_kernels_keep_the_brightness(kernel: np.ndarray) -> None:
    assert kernel.sum() == pytest.approx(1, rel=1e-6)
    assert kernel.min() >= 0


def test_edges_of_a_slope() -> None:
    rows, columns = np.mgrid[0:8, 0:9]
    slope = (0.3 * rows - 0.4 * columns).astype(np.float32)[:, :, None]
    found = filters.edges(tp.asarray(slope))
    assert found.shape == (8, 9)
    np.testing.assert_allclose(found.numpy()[1:-1, 1:-1], 0.5, rtol=1e-5)


def test_sharpening_overshoots_at_an_edge_alone() -> None:
    step = np.repeat([0.25, 0.75], 20).astype(np.float32)
    image = np.tile(step[:, None], (12, 1, 1))
    sharp = filters.sharpen(tp.asarray(image)).numpy()[6, :, 0]
    assert sharp[19] < 0.1
    assert sharp[20] > 0.9
    np.testing.assert_allclose(sharp[[0, 5, 34, 39]], [0.25, 0.25, 0.75, 0.75], atol=1e-5)


@pytest.mark.parametrize("waves", [1, 6, 13])
def test_filters_by_frequency_scale_waves(waves: int) -> None:
    """A wave keeps its place, and has the height that Butterworth's formula gives it."""
    wave = np.cos(2 * np.pi * waves * np.arange(40) / 40 + 0.5)
    image = np.tile(wave.astype(np.float32)[:, None, None], (1, 30, 1))
    gain = 1 / (1 + (waves / 40 / 0.1) ** 4)
    low, high = (f(tp.asarray(image), 0.1).numpy() for f in (filters.low_pass, filters.high_pass))
    np.testing.assert_allclose(low, gain * image, atol=2e-6)
    np.testing.assert_allclose(high, (1 - gain) * image, atol=2e-6)


def test_wiener_of_a_steady_camera() -> None:
    """Where nothing was blurred, only the estimate of the noise dampens."""
    kernel = np.zeros((5, 5), np.float32)
    kernel[2, 2] = 1
    found = filters.wiener(tp.asarray(IMAGE), tp.asarray(kernel), noise=0.25)
    np.testing.assert_allclose(found.numpy(), IMAGE / 1.25, atol=2e-6)


def test_total_variation_of_a_step() -> None:
    """The height of the step times the length of the edge: 3 channels of 0.2, 9 rows."""
    image = np.zeros((10, 8, 3))
    image[:, 5:] = 0.2
    flat = 1e-3 * 9 * 7  # from the number under the root
    found = filters.total_variation(tp.asarray(image)).item()
    assert found == pytest.approx(np.sqrt(3) * 0.2 * 9, abs=flat)


def test_gradient_of_the_misfit() -> None:
    photo = NUMBERS.random((6, 5, 2))
    kernel = tp.asarray(NUMBERS.random((3, 3)))
    with tp.use_backend("cpu"):
        check_grads(
            lambda image: filters.misfit(image, tp.asarray(photo), kernel),
            [NUMBERS.random((8, 7, 2))],
        )


def test_the_image_has_text_and_is_the_same_each_time() -> None:
    image = scene.draw(64)
    assert image.shape == (64, 64, 3)
    assert image.dtype == np.float32
    assert image.min() >= 0
    assert image.max() <= 1
    np.testing.assert_array_equal(image, scene.draw(64))


def test_the_command_restores_the_photo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "folder" / "filters.png"
    arguments = ["--backend", "cpu", "--size", "64", "--steps", "40", "--output", str(file)]
    assert filter_image.main(arguments) == 0
    assert "cpu" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_no_step_is_no_success(tmp_path: Path) -> None:
    """The restoration starts from Wiener's result, and must gain something."""
    arguments = ["--backend", "cpu", "--size", "64", "--steps", "0"]
    assert filter_image.main([*arguments, "--output", str(tmp_path / "filters.png")]) == 1


@pytest.mark.slow
def test_opencl_finds_the_same() -> None:
    found = []
    for backend in ("cpu", "opencl"):
        try:
            with tp.use_backend(backend):
                found.append(filter_image.run(64, 10, 0))
        except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError) as error:
            pytest.skip(str(error))
    assert max(run.difference for run in found) < 1e-5
    for name, image in found[0].images.items():
        # Adam's steps depend on signs, so they multiply differences of rounding.
        scale = np.abs(image).max() * (20 if name == "restored" else 1)
        np.testing.assert_allclose(found[1].images[name], image, atol=1e-3 * scale, err_msg=name)
    np.testing.assert_allclose(found[1].misfits, found[0].misfits, rtol=2e-3)
