"""TENSORPLUG_DEFAULT_FLOAT, which a process reads once; so each value has a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CALLS = """
import json, warnings
warnings.simplefilter("error")
import numpy as np
import tensorplug as tp

tp.set_backend("cpu")
ints = tp.asarray([1, 2])
calls = {
    "a list": tp.asarray([1.0, 2]),
    "a number": tp.asarray(0.5),
    "complex numbers": tp.asarray([1j]),
    "the Python type": tp.asarray([1, 2], dtype=float),
    "zeros": tp.zeros(2),
    "ones": tp.ones(2),
    "full": tp.full(2, 0.5),
    "eye": tp.eye(2),
    "arange": tp.arange(0.5, 3),
    "linspace": tp.linspace(0, 1, 3),
    "a root of integers": tp.sqrt(ints),
    "a mean of integers": tp.mean(ints),
    "integers and a number": ints + 0.5,
    "integers divided": ints / 2,
    "random numbers": tp.random.uniform(tp.random.key(0), (2,)),
    "gradient": tp.grad(lambda x: x**2)(3.0),
    "integers": ints,
    "a tensor and a number": tp.asarray(np.float32([1])) + 0.5,
    "an array": tp.asarray(np.float32([1])),
}
dtypes = {name: str(x.dtype) for name, x in calls.items()}
info = tp.__array_namespace_info__().default_dtypes()
dtypes |= {f"info: {name}": str(dtype) for name, dtype in info.items()}
print(json.dumps(dtypes))
"""
FIXED = {
    "integers": "int32",
    "a tensor and a number": "float32",
    "an array": "float32",
    "info: integral": "int32",
    "info: indexing": "int32",
}
COMPLEX = ("complex numbers", "info: complex floating")


def run(value, program=CALLS):
    environ = {
        name: text for name, text in os.environ.items() if not name.startswith("TENSORPLUG")
    }
    if value is not None:
        environ["TENSORPLUG_DEFAULT_FLOAT"] = value
    return subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("value", "dtype", "complex_dtype"),
    [
        (None, "float32", "complex64"),
        ("", "float32", "complex64"),
        ("float32", "float32", "complex64"),
        (" float64 ", "float64", "complex128"),
    ],
)
def test_which_dtypes_follow(value, dtype, complex_dtype):
    done = run(value)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = {name: complex_dtype if name in COMPLEX else dtype for name in found} | FIXED
    assert found == wanted


@pytest.mark.parametrize("value", ["float16", "double", "1"])
def test_other_values_are_refused(value):
    done = run(value, "import tensorplug; tensorplug.float32")
    assert done.returncode == 1
    assert (
        f"SettingsError: TENSORPLUG_DEFAULT_FLOAT={value!r}: must be float32 or float64"
        in done.stderr
    )
