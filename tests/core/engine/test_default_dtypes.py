"""TENSORPLUG_DEFAULT_FLOAT and _INT, read once; so each value has a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

FLOATS = """
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

INTEGERS = """
import json, warnings
warnings.simplefilter("error")
import numpy as np
import tensorplug as tp

tp.set_backend("cpu")
x = tp.asarray([2.0, 0.0, 2.0])
truths = x > 0
wide = tp.asarray([1, 2], dtype="int64")
int16, int32, uint8 = (tp.asarray([1, 2], dtype=name) for name in ("int16", "int32", "uint8"))
key = tp.random.key(0)
image = tp.ones((1, 2, 2, 1))
everything = tp.unique_all(x)
follow = {
    "a list": tp.asarray([1, 2]),
    "an empty range": tp.asarray(range(0)),
    "a number": tp.asarray(3),
    "the Python type": x.astype(int),
    "full": tp.full(2, 1),
    "arange": tp.arange(3),
    "truths and a number": truths + 1,
    "sum of truths": tp.sum(truths),
    "sum of a list of truths": tp.sum([True, False]),
    "sum of int16": tp.sum(int16),
    "sum of int32": int32.sum(),
    "numpy.sum": np.sum(int32),
    "prod": tp.prod(int32),
    "nansum": tp.nansum(int32),
    "nanprod": tp.nanprod(int32),
    "trace": tp.linalg.trace(tp.reshape(int32[[0, 0, 1, 1]], (2, 2))),
    "cumulative_sum": tp.cumulative_sum(int16),
    "cumulative_prod": tp.cumulative_prod(int16),
    "cumsum of truths": tp.cumsum(truths),
    "cumprod of truths": tp.cumprod(truths),
    "count_nonzero": tp.count_nonzero(x),
    "argmax": tp.argmax(x),
    "the method argmin": x.argmin(axis=0),
    "argsort": tp.argsort(x),
    "argpartition": tp.argpartition(x, 1),
    "topk": tp.topk(int32, 1)[1],
    "nonzero": tp.nonzero(x)[0],
    "argwhere": tp.argwhere(x),
    "searchsorted": tp.searchsorted(x, x),
    "lower_bound": tp.lower_bound(x, x),
    "upper_bound": tp.upper_bound(x, x),
    "unique": tp.unique(int32).indices,
    "unique_counts": tp.unique_counts(int32).counts,
    "unique_inverse": tp.unique_inverse(int32).inverse_indices,
    "unique_all: indices": everything.indices,
    "unique_all: inverse": everything.inverse_indices,
    "unique_all: counts": everything.counts,
    "unique_all of nothing": tp.unique_all([]).counts,
    "setdiff1d": tp.setdiff1d(x, x).indices,
    "bincount": tp.bincount(int32),
    "dense_bincount": tp.dense_bincount(int32, None, 3),
    "histogram": tp.histogram(x).hist,
    "matrix_rank": tp.linalg.matrix_rank(tp.ones((2, 2))),
    "lstsq": tp.linalg.lstsq(tp.ones((2, 2)), x[:2]).rank,
    "max_pool_with_argmax": tp.nn.max_pool_with_argmax(image, 2, 1)[1],
    "random.integers": tp.random.integers(key, (2,), low=0, high=9),
    "random.categorical": tp.random.categorical(key, x),
    "random.permutation": tp.random.permutation(key, 3),
    "random.choice": tp.random.choice(key, 3, (2,), replace=False),
    "random.poisson": tp.random.poisson(key, rate=3.0),
    "compiled": tp.compile(lambda x: tp.argmax(x) + tp.sum(x > 0))(x),
}
fixed = {
    "float32": x,
    "int64": tp.sum(wide),
    "int32": int32 + 1,
    "uint8": tp.max(uint8) * 2,
    "int16": tp.sum(int16, dtype="int16"),
}
stay = {  # results in the dtype of an argument
    "topk": tp.topk(int32, 1)[0],
    "unique": tp.unique(int32).values,
    "unique_counts": tp.unique_counts(int32).values,
    "bincount with weights": tp.bincount(int32, int32),
    "bincount with named weights": tp.bincount(int32, weights=int32),
    "dense_bincount with weights": tp.dense_bincount(int32, int32, 3),
    "histogram with weights": tp.histogram(int32, weights=int32).hist,
    "cumsum": tp.cumsum(int32),
    "random.permutation": tp.random.permutation(key, int32),
}
info = tp.__array_namespace_info__().default_dtypes()
follow |= {f"info: {name}": info[name] for name in ("integral", "indexing")}
fixed |= {str(info[name]): info[name] for name in ("real floating", "complex floating")}

def name_of(x):
    return str(x if isinstance(x, tp.DType) else x.dtype)

print(json.dumps({
    "follow": {name: name_of(x) for name, x in follow.items()},
    "fixed": {name: name_of(x) for name, x in fixed.items()},
    "stay": {name: name_of(x) for name, x in stay.items()},
    "unsigned": name_of(tp.sum(uint8)),
    "large": [int(tp.sum(tp.asarray([2**31 - 1, 1], dtype="int32"))),
              tp.cumulative_sum(tp.asarray([2**31 - 1, 1], dtype="int32")).tolist()],
    "gradient": tp.grad(lambda x: tp.sum(tp.topk(x, 2)[0]))(x).tolist(),
}))
"""


def run(program, **variables):
    environ = {
        name: text for name, text in os.environ.items() if not name.startswith("TENSORPLUG")
    }
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(program, name, value):
    """Return what a program prints as JSON with a variable; None: without it."""
    done = run(program, **({} if value is None else {name: value}))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("value", "dtype", "complex_dtype"),
    [
        (None, "float32", "complex64"),
        ("", "float32", "complex64"),
        ("float32", "float32", "complex64"),
        (" float64 ", "float64", "complex128"),
    ],
)
def test_which_dtypes_follow_the_default_float(value, dtype, complex_dtype):
    dtypes = answer(FLOATS, "TENSORPLUG_DEFAULT_FLOAT", value)
    expected = {name: complex_dtype if name in COMPLEX else dtype for name in dtypes} | FIXED
    assert dtypes == expected


@pytest.mark.parametrize(
    ("value", "dtype", "unsigned", "largest_sum"),
    [
        (None, "int32", "uint32", -(2**31)),
        ("", "int32", "uint32", -(2**31)),
        ("int32", "int32", "uint32", -(2**31)),
        (" int64 ", "int64", "uint64", 2**31),
    ],
)
def test_which_dtypes_follow_the_default_int(value, dtype, unsigned, largest_sum):
    results = answer(INTEGERS, "TENSORPLUG_DEFAULT_INT", value)
    assert results["follow"] == dict.fromkeys(results["follow"], dtype)
    assert results["fixed"] == {name: name for name in results["fixed"]}
    assert results["stay"] == dict.fromkeys(results["stay"], "int32")
    assert results["unsigned"] == unsigned
    assert results["large"] == [largest_sum, [2**31 - 1, largest_sum]]
    assert results["gradient"] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("float", ["float16", "double", "1"]), ("int", ["int16", "int", "64"])],
)
def test_other_values_of_a_default_are_refused(kind, values):
    name = f"TENSORPLUG_DEFAULT_{kind.upper()}"
    for value in values:
        done = run(f"import tensorplug; tensorplug.{kind}32", **{name: value})
        assert done.returncode == 1
        said = f"SettingsError: {name}={value!r}: must be {kind}32 or {kind}64"
        assert said in done.stderr
