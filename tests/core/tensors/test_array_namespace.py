"""The array API's namespace: its inspection functions, and the namespace of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, BackendNotInstalledError

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_a_tensor_knows_its_namespace():
    x = tp.asarray([1.0])
    assert x.__array_namespace__() is tp
    for version in ("2021.12", "2024.12", "2025.12", None):
        assert x.__array_namespace__(api_version=version) is tp
    with pytest.raises(ArgumentError, match=r"got '2019\.12'"):
        x.__array_namespace__(api_version="2019.12")
    assert tp.__array_api_version__ == "2025.12"


def test_capabilities_and_defaults():
    info = tp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    defaults = info.default_dtypes()
    assert defaults == info.default_dtypes(device="cpu")
    assert defaults["real floating"] is tp.asarray([1.0]).dtype
    assert defaults["complex floating"] is tp.asarray([1j]).dtype
    assert defaults["integral"] is tp.asarray([1]).dtype
    assert defaults["indexing"] is tp.argmax(tp.asarray([1.0])).dtype


def test_devices():
    info = tp.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert type(info.devices()) is tuple  # as in version 2025.12 of the standard
    assert set(info.devices()) >= {"cpu", "opencl", "minimal"}
    with tp.use_backend("minimal"):
        assert info.default_device() == "minimal"
        assert info.default_device() in info.devices()
    assert tp.asarray(1.0).device in info.devices()


def test_dtypes_of_a_device():
    info = tp.__array_namespace_info__()
    assert sorted(info.dtypes()) == sorted(DTYPES.split())
    assert all(dtype is getattr(tp, name) for name, dtype in info.dtypes(device="cpu").items())
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {
        "bool",
        "complex64",
        "complex128",
    }
    assert info.dtypes(kind=()) == {}
    assert "complex64" not in info.dtypes(device="minimal")
    with pytest.raises(ArgumentError, match="kind must be"):
        info.dtypes(kind="float")
    with pytest.raises(BackendNotInstalledError):
        info.dtypes(device="abacus")


def test_to_device():
    x = tp.asarray([1.0, 2.0])
    placed = x.to_device(x.device)
    assert placed.to_device(x.device) is placed
    there = x.to_device("minimal", stream=None)
    assert there.device == "minimal"
    np.testing.assert_array_equal(there.numpy(), x.numpy())
    with pytest.raises(ArgumentError, match="stream must be None, got 1"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (1.5, ".3f", "1.500"),
        (7, "04d", "0007"),
        (7, "", "7"),
        ([2.5], "+.1f", "+2.5"),
        ([1, 2], "", "Tensor([1, 2], dtype=int32, device='cpu')"),
    ],
)
def test_formatting(value, spec, text):
    assert format(tp.asarray(value), spec) == text


def test_formatting_several_numbers_as_one():
    with pytest.raises(ValueError, match="needs a tensor with one element"):
        format(tp.asarray([1.0, 2.0]), ".3f")


def test_astype_copies_or_not_and_changes_the_device():
    x = tp.asarray([1.5, -2.5])
    assert tp.astype(x, "float32", copy=False) is x
    assert tp.astype(x, "float32") is not x
    whole = tp.astype(x, "int32", copy=False)
    assert (whole.dtype, whole.tolist()) == (tp.int32, [1, -2])
    there = x.astype("int32", device="minimal")
    assert (there.device, there.dtype, there.tolist()) == ("minimal", tp.int32, [1, -2])
    assert tp.astype(x, "float32", copy=False, device="minimal").device == "minimal"
    placed = tp.astype(x, "float32", copy=False, device="cpu")
    assert tp.astype(placed, "float32", copy=False, device="cpu") is placed
    assert tp.astype([1, 2], "float64", copy=False).dtype is tp.float64
