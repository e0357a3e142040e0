"""What the core knows of this distribution, and what goes in and out."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.engine import catalogue

from tensorplug_acme.backend import AcmeBackend

DISTRIBUTION = "tensorplug-acme"
DTYPES = sorted(item.name for item in AcmeBackend.dtypes)
README = Path(__file__).parents[1] / "README.md"


def test_it_is_listed_with_its_distribution():
    info = next(backend for backend in tp.backends() if backend.name == "acme")
    assert (info.distribution, info.version) == (DISTRIBUTION, version(DISTRIBUTION))


@pytest.mark.parametrize("spec", catalogue.catalogue(), ids=lambda spec: spec.name)
def test_every_kernel_of_the_catalogue_has_a_way(spec):
    explained = tp.explain(spec)
    assert explained.how in ("native", "decomposed", "host"), explained
    if explained.how == "native":
        assert explained.owner == f"{DISTRIBUTION} {version(DISTRIBUTION)}"


@pytest.mark.parametrize("device", ["1", "gpu"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(tp.errors.BackendUnavailableError, match=f"no '{device}'"):
        tp.set_backend(f"acme:{device}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_data_comes_back_as_it_went(dtype, shape):
    given = np.array(np.arange(np.prod(shape)).reshape(shape) % 2, dtype)
    tensor = tp.asarray(given)
    expected = given.tolist()
    given[...] = np.logical_not(given)  # which the tensor must not see
    back = tensor.numpy()
    assert tensor.device == "acme"
    assert (back.dtype, back.shape) == (np.dtype(dtype), shape)
    assert back.tolist() == expected


def test_memory_is_given_back():
    before = tp.memory()["acme"].bytes
    x = tp.asarray(np.zeros((4, 8), np.float32))
    assert tp.memory()["acme"].bytes == before + 4 * 8 * 4
    del x
    assert tp.memory()["acme"].bytes == before


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_the_readme_says_what_happens(block):
    exec(block, {})
