"""Tests of the bilateral filter by its definition, natively and decomposed, and of the command."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import bilateral_kernels
import compare_kernels
import custom_op_picture
import numpy as np
import pytest
from bilateral_filter import BILATERAL_FILTER, bilateral_filter, register_rules

import tensorplug as tp
from tensorplug.testing import check_grads, isolated_engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

NUMBERS = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _own_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    with isolated_engine("cpu"):
        yield


@pytest.fixture(params=["cpu", "opencl", "minimal"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    try:
        with tp.use_backend(name):
            register_rules()
            yield name
    except (tp.errors.BackendUnavailableError, tp.errors.BackendNotInstalledError) as error:
        pytest.skip(str(error))


def by_definition(x: Array, radius: int, sigma_space: float, sigma_range: float) -> Array:
    """Return weighted means, pixel by pixel, with the exponential of the C library."""
    result = np.empty(x.shape)
    for image, target in zip(
        x.reshape(-1, *x.shape[-2:]), result.reshape(-1, *x.shape[-2:]), strict=True
    ):
        places = list(np.ndindex(image.shape))
        for row, column in places:
            total = weights = 0.0
            for i, j in places:
                if max(abs(i - row), abs(j - column)) > radius:
                    continue
                near = ((i - row) ** 2 + (j - column) ** 2) / (2 * sigma_space**2)
                alike = (float(image[i, j]) - float(image[row, column])) ** 2
                weight = math.exp(-near - alike / (2 * sigma_range**2))
                total, weights = total + weight * float(image[i, j]), weights + weight
            target[row, column] = total / weights
    return result


CASES = {
    "one image": ((7, 9), {"radius": 2, "sigma_space": 1.5, "sigma_range": 0.3}),
    "several": ((2, 1, 4, 5), {"radius": 1, "sigma_space": 0.7, "sigma_range": 0.1}),
    "smaller than the window": ((2, 1), {"radius": 2, "sigma_space": 3.0, "sigma_range": 2.0}),
    "a pixel": ((1, 1), {"radius": 1, "sigma_space": 1.0, "sigma_range": 1e-6}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("how", "dtype"),
    [("native", "float32"), ("native", "float64"), ("decomposed", "float32")],
)
def test_values(backend: str, name: str, how: str, dtype: str) -> None:
    shape, attributes = CASES[name]
    x = np.random.default_rng(1).random(shape).astype(dtype)
    if how == "native":
        bilateral_kernels.register(BILATERAL_FILTER, backend)
    assert tp.explain(BILATERAL_FILTER, [x], attributes).how == how
    found = bilateral_filter(x, **attributes)  # type: ignore[arg-type]  # a table of cases
    assert found.shape == shape
    assert found.dtype.name == dtype
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found.numpy(), by_definition(x, **attributes), rtol=rtol)  # type: ignore[arg-type]


def test_several_bands_are_one_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bilateral_kernels, "BAND", 50)
    x = NUMBERS.random((17, 23))
    bilateral_kernels.register(BILATERAL_FILTER, "cpu")
    found = bilateral_filter(x, radius=3, sigma_range=0.4).numpy()
    np.testing.assert_allclose(found, by_definition(x, 3, 2.0, 0.4), rtol=1e-12)


def test_no_pixels(backend: str) -> None:
    bilateral_kernels.register(BILATERAL_FILTER, backend)
    for shape in ((0, 3, 4), (3, 0)):
        assert bilateral_filter(tp.zeros(shape)).shape == shape


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_gradients_of_the_kernel(backend: str, order: Literal[1, 2]) -> None:
    bilateral_kernels.register(BILATERAL_FILTER, backend)

    def some(x: tp.Tensor) -> tp.Tensor:
        return bilateral_filter(x, radius=1, sigma_space=1.0, sigma_range=0.5)

    x = NUMBERS.random((2, 4, 3))
    assert tp.explain(BILATERAL_FILTER, [x], {"radius": 1}).how == "native"
    check_grads(some, [x], order=order)


def test_footprints_stop_at_edges() -> None:
    """A pixel's result depends on its side of an edge alone; shares add up to 1."""
    register_rules()
    image = np.repeat([0.0, 9.0], 20).astype(np.float32) + np.zeros((15, 1), np.float32)
    found = custom_op_picture.footprints(tp.asarray(image), [7], [17]).numpy()
    assert found[:, 20:].max() == 0
    assert found[7, 17] == found.max()
    assert found.sum() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"radius": 0}, "radius"),
        ({"radius": 1.5}, "radius"),
        ({"sigma_space": 0}, "sigma_space"),
        ({"sigma_range": float("nan")}, "sigma_range"),
    ],
)
def test_attributes_are_checked(attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(tp.errors.ArgumentError, match=said):
        bilateral_filter(tp.zeros((3, 3)), **attributes)


def test_a_row_is_no_image() -> None:
    with pytest.raises(tp.errors.ArgumentError, match=r"\[\.\.\., height, width\]"):
        bilateral_filter(tp.zeros(3))


ARGUMENTS = ["--backend", "cpu", "--backend", "minimal", "--size", "48", "--repeat", "1"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "folder" / "op.png"
    arguments = [*ARGUMENTS, "--radius", "2", "--output", str(file)]
    assert compare_kernels.main(arguments) == 0
    assert "minimal" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_wrong_kernel_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(x: Any, *, radius: int, sigma_space: float, sigma_range: float) -> Any:  # noqa: ARG001
        return x

    monkeypatch.setattr(bilateral_kernels, "on_minimal", unchanged)
    arguments = [*ARGUMENTS, "--radius", "1", "--output", str(tmp_path / "op.png")]
    assert compare_kernels.main(arguments) == 1
