"""Shared by the tests of other libraries: inputs as tensors and as arrays, and a comparison.

Each test makes one call twice, with tensors and with NumPy's arrays, and compares what comes back.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[["Given"], Any]

RELATIVE = {"float32": 3e-4, "float64": 1e-9, "complex64": 3e-4, "complex128": 1e-9}
DTYPES = ["float64", "float32"]


def require_scipy_switch() -> None:
    """Skip the module that calls this, unless SciPy was told of the standard before its import."""
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        reason = "SciPy reads SCIPY_ARRAY_API=1 when it is imported: run `make clients`"
        pytest.skip(reason, allow_module_level=True)


def names(text: str) -> list[str]:
    return text.split()


class Given:
    """Inputs of one dtype, made by one namespace: NumPy or tensorplug."""

    def __init__(self, xp: Any, dtype: str) -> None:
        self.xp = xp
        self.dtype = getattr(xp, dtype)

    def array(self, values: Any) -> Any:
        """Return an array of the dtype asked for."""
        return self.xp.asarray(np.asarray(values, dtype=np.dtype(self.dtype)))

    def ints(self, values: Any, dtype: str = "int32") -> Any:
        return self.xp.asarray(np.asarray(values, dtype=dtype))

    def bools(self, values: Any) -> Any:
        return self.xp.asarray(np.asarray(values, dtype=bool))

    @property
    def x(self) -> Any:
        """A matrix of positive numbers."""
        return self.array(np.linspace(0.1, 2, 24).reshape(4, 6))

    @property
    def p(self) -> Any:
        """Numbers between 0 and 1."""
        return self.array(np.linspace(0.05, 0.95, 12).reshape(3, 4))

    @property
    def v(self) -> Any:
        """A vector from -1 to 1."""
        return self.array(np.linspace(-1, 1, 50))

    @property
    def sample(self) -> Any:
        """A vector in no order."""
        return self.array(np.random.default_rng(5).normal(size=50))

    @property
    def other(self) -> Any:
        """Another one."""
        return self.array(np.random.default_rng(6).normal(0.3, 1.5, size=50))

    @property
    def square(self) -> Any:
        """A regular matrix."""
        return self.array(np.random.default_rng(0).normal(size=(4, 4)) + 4 * np.eye(4))

    @property
    def symmetric(self) -> Any:
        """A positive definite matrix."""
        a = np.random.default_rng(0).normal(size=(4, 4))
        return self.array(a @ a.T + 4 * np.eye(4))

    @property
    def points(self) -> Any:
        """Three heaps of points."""
        rng = np.random.default_rng(1)
        return self.array(rng.normal(size=(45, 3)) + 6 * np.repeat(np.eye(3), 15, axis=0))

    @property
    def image(self) -> Any:
        """A picture with two blots."""
        rows, columns = np.mgrid[:12, :10]
        near, far = (rows - 3) ** 2 + (columns - 3) ** 2, (rows - 8) ** 2 + (columns - 7) ** 2
        return self.array(np.exp(-near / 4) + 0.5 * np.exp(-far / 3))


def compare(call: Call, dtype: str, *, loose: bool = False, onto_host: bool = False) -> None:
    """Make the call with arrays and with tensors; everything about the results must agree.

    ``loose``: but for the precision. The library asks the namespace for its default dtype, which
    is float32 here and float64 in NumPy, or gives NumPy's arrays a treatment of their own.
    ``onto_host``: the library makes arrays of whatever it is given, and returns arrays.
    """
    expected = call(Given(np, dtype))
    judge = Judge(dtype, loose=loose, onto_host=onto_host)
    with only_lacking_complex():
        result = call(Given(tp, dtype))
    judge.same(result, expected, "result")


def refused(call: Call, error: type[Exception], message: str) -> None:
    """Make a call that cannot work, and see that it says so."""
    with only_lacking_complex(), pytest.raises(error, match=message):
        call(Given(tp, "float64"))


def by_views(call: Call) -> None:
    """Make a call that writes through a view: tensors have none, so it gives other values.

    docs/array_api.md lists these. A test fails when the library stops to rely on views.
    """
    expected = call(Given(np, "float64"))
    with only_lacking_complex():
        result = call(Given(tp, "float64"))
    assert isinstance(result, tp.Tensor)
    assert (result.shape, str(result.dtype)) == (expected.shape, str(expected.dtype))
    assert not np.allclose(result.numpy(), expected)


@contextmanager
def only_lacking_complex() -> Iterator[None]:
    """Skip the test where the backend in use has no complex numbers, and they are asked for."""
    try:
        yield
    except DTypeError as error:
        lacking = tp.complex128.name not in tp.__array_namespace_info__().dtypes()
        if not lacking or "complex" not in str(error):
            raise
        pytest.skip(f"{tp.get_backend()} has no complex numbers: {error}")


class Judge:
    """Compares results, parts and all."""

    def __init__(self, dtype: str, *, loose: bool = False, onto_host: bool = False) -> None:
        self.rtol = RELATIVE["float32" if loose else dtype]
        self.loose = loose
        self.kind = np.ndarray | np.generic if onto_host else tp.Tensor

    def same(self, result: Any, expected: Any, where: str) -> None:
        """Compare types, devices, dtypes and shapes, then values."""
        if isinstance(expected, (np.ndarray, np.generic)):
            self._same_array(result, expected, where)
        elif isinstance(expected, (tuple, list)):
            assert type(result).__name__ == type(expected).__name__, where
            assert len(result) == len(expected), where
            for index, (one, wanted) in enumerate(zip(result, expected, strict=True)):
                self.same(one, wanted, f"{where}[{index}]")
        elif isinstance(expected, dict):
            assert result.keys() == expected.keys(), where
            for name, wanted in expected.items():
                self.same(result[name], wanted, f"{where}[{name!r}]")
        elif isinstance(expected, float):
            assert float(result) == pytest.approx(expected, rel=self.rtol), where
        elif hasattr(expected, "__dict__"):
            self.same(vars(result), vars(expected), where)
        else:
            assert result == expected, where

    def _same_array(self, result: Any, expected: Any, where: str) -> None:
        assert isinstance(result, self.kind), f"{where} is {type(result)}"
        if self.kind is tp.Tensor:
            assert result.device.partition(":")[0] == tp.get_backend(), where
        wanted, found = np.asarray(expected), np.asarray(result)
        assert found.shape == wanted.shape, where
        assert self.loose or found.dtype == wanted.dtype, where
        if wanted.dtype.kind not in "fc":
            assert self.loose or found.dtype.kind == wanted.dtype.kind, where
            np.testing.assert_array_equal(found, wanted, err_msg=where)
            return
        finite = np.abs(wanted[np.isfinite(wanted)])
        largest = float(finite.max()) if finite.size else 0.0
        np.testing.assert_allclose(
            found, wanted, rtol=self.rtol, atol=self.rtol * largest, err_msg=where
        )
