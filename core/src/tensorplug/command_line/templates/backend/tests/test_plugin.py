"""The distribution as the core sees it, and copies to and from the device."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.plugin import specs

DISTRIBUTION = "tensorplug-acme"
README = Path(__file__).parents[1] / "README.md"


def test_backend_is_listed_with_its_distribution():
    infos = {info.name: info for info in tp.backends()}
    info = infos["acme"]
    assert (info.distribution, info.version) == (DISTRIBUTION, version(DISTRIBUTION))


@pytest.mark.parametrize("spec", list(specs), ids=lambda spec: spec.name)
def test_every_kernel_can_run(spec):
    explained = tp.explain(spec)
    assert explained.how in ("native", "decomposed", "host"), explained
    if explained.how == "native":
        assert explained.owner == f"{DISTRIBUTION} {version(DISTRIBUTION)}"


@pytest.mark.parametrize("device", ["999", "a-device-that-is-not-there"])
def test_missing_device_is_refused(device):
    with pytest.raises(tp.errors.BackendUnavailableError, match=f"device.*'{device}'"):
        tp.set_backend(f"acme:{device}")


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_data_survives_the_round_trip(shape, backend):
    for dtype in backend.dtypes:
        array = np.array(np.arange(np.prod(shape)).reshape(shape) % 2, dtype.numpy)
        tensor = tp.asarray(array)
        expected = array.tolist()
        array[...] = np.logical_not(array)  # the tensor must not change
        back = tensor.numpy()
        assert tensor.device == "acme"
        assert (back.dtype, back.shape) == (dtype.numpy, shape)
        assert back.tolist() == expected


def test_memory_is_freed():
    before = tp.memory()["acme"].bytes
    x = tp.asarray(np.zeros((4, 8), np.float32))
    assert tp.memory()["acme"].bytes == before + 4 * 8 * 4
    del x
    assert tp.memory()["acme"].bytes == before


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_readme(block):
    exec(block, {})
